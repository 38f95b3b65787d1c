"""The options and arguments that commands share, and what they stand for.

Does not print, but for a progress bar and what was redacted.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sessions_lib.cli import printing
from sessions_lib.errors import SessionError

if TYPE_CHECKING:
    from sessions_lib.export.redact import Redaction
    from sessions_lib.store.manager import SessionManager
    from sessions_lib.store.session import Session

MANY = 500  # sessions that a person would wait for

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
def indexed(
    folder: str | None, meanwhile: Callable[[SessionManager, int], None] | None = None, after_s: float = 0.0
) -> Iterator[SessionManager]:
    """The folder of sessions as of one look at it; a progress bar on the way if there is much to read.

    ``meanwhile(sessions, how many wait)`` is called once for a person who would wait: after ``after_s`` seconds, when
    some have been read, the newest files first. What it asks is answered from these.
    """
    found = manager(folder)
    if meanwhile and printing.has_reader():
        _look_first(found, meanwhile, after_s)
    with ExitStack() as stack:
        with ExitStack() as while_reading:
            stack.enter_context(found.catalog.at_one_moment(_shown(while_reading)))
        yield found


def _shown(while_reading: ExitStack) -> Callable[[int, int], None]:
    """What shows how many sessions of how many are read, until ``while_reading`` ends."""
    bars: list[Any] = []

    def show(done: int, todo: int) -> None:
        if not bars:
            bars.append(while_reading.enter_context(printing.bar(todo, "Reading")))
        bars[0].update(done - bars[0].pos)

    return show


def _look_first(found: SessionManager, meanwhile: Callable[[SessionManager, int], None], after_s: float) -> None:
    """Read what waits in a thread, with ``meanwhile`` as soon as something is read; less than ``MANY`` is not worth it.

    What the thread meets, the question after it meets again, and says.
    """
    catalog = found.catalog
    if (waiting := catalog.waiting()) < MANY or catalog.is_in_memory:
        return
    some = threading.Event()
    read = 0, waiting

    def count(done: int, todo: int) -> None:
        nonlocal read
        read = done, todo
        some.set()

    def catch_up() -> None:
        with suppress(SessionError, OSError):
            catalog.catch_up(count)
        some.set()

    reader = threading.Thread(target=catch_up, name="reading", daemon=True)  # stopped, it goes on from its last batch
    with catalog.as_known(), ExitStack() as while_reading:
        reader.start()
        some.wait()
        reader.join(after_s)
        meanwhile(found, waiting)
        show = _shown(while_reading)
        while reader.is_alive():
            show(*read)
            reader.join(0.1)


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
