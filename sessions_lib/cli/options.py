"""The options and arguments that commands share, and what they stand for.

Does not print, but for a progress bar and what was redacted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sessions_lib.cli import printing
from sessions_lib.errors import SessionError

if TYPE_CHECKING:
    from sessions_lib.export.redact import Redaction
    from sessions_lib.store.manager import SessionManager
    from sessions_lib.store.session import Session

F = TypeVar("F", bound=Callable[..., Any])


def _folder(ctx: click.Context, _: click.Parameter, value: str | None) -> str | None:
    """What stands behind the command, else what stands before it."""
    before = ctx.parent.obj if ctx.parent else None
    ctx.obj = before if value is None else value
    return None if ctx.obj is None else str(ctx.obj)


def _dir(*names: str, is_given: bool = True) -> Callable[[F], F]:
    return click.option(
        *names,
        metavar="FOLDER",
        help="The folder of sessions; without it $SESSIONS_DIR, else ~/.pi-agent/sessions.",
        callback=_folder,
        expose_value=is_given,
    )


folder = _dir("--dir", "folder")
folder_of_all = _dir("--dir", is_given=False)  # before the command
as_json = click.option("--json", is_flag=True, help="Print one JSON object a line.")
yes = click.option("--yes", "-y", is_flag=True, help="Do not ask.")
session_name = click.argument("session", metavar="SESSION")  # its id, a start of the id that no other has, or its title
exact_id = click.argument("session", metavar="ID")


def manager(folder: str | None) -> SessionManager:
    """The folder of sessions that ``--dir`` names."""
    from sessions_lib.store.manager import SessionManager

    if folder is not None and not folder.strip():
        raise SessionError("--dir names no folder; nothing was done. Leave it out for the default folder.")
    from sessions_lib.store.store import is_address

    return SessionManager(folder if not folder or is_address(folder) else path(folder))


@contextmanager
def indexed(folder: str | None) -> Iterator[SessionManager]:
    """The folder of sessions as of one look at it; a progress bar on the way if there is much to read."""
    found = manager(folder)
    with ExitStack() as stack:
        with ExitStack() as while_reading:
            bars: list[Any] = []

            def show(done: int, todo: int) -> None:
                if not bars:
                    bars.append(while_reading.enter_context(printing.bar(todo, "Reading")))
                bars[0].update(done - bars[0].pos)

            stack.enter_context(found.catalog.at_one_moment(show))
        yield found


def opened(folder: str | None, name: str) -> Session:
    """The session that ``name`` means in the folder that ``--dir`` names."""
    found = manager(folder)
    return found.open(found.resolve(name))


def path(text: str) -> Path:
    """``text`` as a path: the same bytes that were typed, whatever the locale says of them.

    A ``~name`` that is no user here stays as it is, as in a shell; whoever opens it says that it is not there.
    """
    typed = Path(os.fsdecode(text.encode("utf-8", "surrogateescape")))
    try:
        return typed.expanduser()
    except RuntimeError:
        return typed


def redaction(is_on: bool, patterns: Sequence[str]) -> Redaction:
    """The redaction of one export; on, too, if there are ``patterns`` of one's own."""
    from sessions_lib.export.redact import Redaction

    return Redaction(patterns, is_on=is_on or bool(patterns))


def say_redaction(redaction: Redaction) -> None:
    """Say what was replaced, by kind, and how to have it otherwise; the texts themselves stay out of terminals."""
    if not redaction.is_on:
        printing.talk(f"{redaction.sentence()} To replace what looks like a secret: --redact")
    else:
        printing.talk(redaction.sentence() + (" To keep everything: --no-redact" if redaction.findings else ""))


def say_own_prices() -> None:
    """Say so if a person's own prices cannot be used: what is printed is without them."""
    from sessions_lib import own_prices

    if fault := own_prices.current().fault:
        printing.talk(fault)
