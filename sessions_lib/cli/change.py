"""Commands that make, mark, fork and remove sessions: ``new``, ``fork``, ``tag``, ``delete``, ``restore``, ``purge``.

``delete`` and ``purge`` take the exact id and ask first; what cannot be asked is not done.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from sessions_lib.cli import options, printing
from sessions_lib.errors import SessionError, SessionNotFound

if TYPE_CHECKING:
    from sessions_lib.store.manager import SessionManager
    from sessions_lib.store.records import Purgeable, SessionInfo
    from sessions_lib.store.session import Session


@click.command("new")
@click.argument("title", metavar="[TITLE]", required=False)
@click.option("--tag", "-t", "tag", multiple=True, metavar="TAG", help="Tag it; may be repeated.")
@click.option("--id", "session_id", metavar="ID", help="Exactly this id.")
@options.folder
def new(title: str | None, tag: tuple[str, ...], session_id: str | None, folder: str | None) -> None:
    """Make an empty session and print its id.

    TITLE: Any text; the id is made from it.

    Example: forkbook new "Project review" --tag python
    """
    made = options.manager(folder).create(title, tag or (), session_id)
    printing.data(made.id)
    printing.talk(f"Made. Talk in it: forkbook chat {made.id}")


@click.command("fork")
@options.session_name
@click.option(
    "--at", "at", type=click.IntRange(min=0), metavar="MESSAGES", help="Keep this many messages; all without it."
)
@click.option("--id", "new_id", metavar="ID", help="Exactly this id for the fork.")
@click.option("--title", "title", metavar="TITLE", help="The fork's title.")
@click.option(
    "--change",
    "change",
    nargs=2,
    type=(click.IntRange(min=1), str),
    metavar="MESSAGE TEXT",
    help="End the fork with this message, saying this text instead.",
)
@options.folder
def fork(
    session: str,
    at: int | None,
    new_id: str | None,
    title: str | None,
    change: tuple[int, str] | None,
    folder: str | None,
) -> None:
    """Fork a session after a message and print the id.

    Example: forkbook fork quest-1 --at 6 --id quest-2
    """
    from sessions_lib.messages import places

    source = options.opened(folder, session)
    child = source.fork(new_id, at, title) if change is None else _changed(source, at, new_id, title, *change)
    printing.data(child.id)
    left = child.report.left_out
    kept = f"Forked from {source.id} {places.place(source.messages, child.inherited)}"
    printing.talk(f"{kept}; {printing.count(left, 'later message')} left out." if left else f"{kept}.")


def _changed(source: Session, at: int | None, new_id: str | None, title: str | None, number: int, said: str) -> Session:
    """A fork of ``source`` that ends with its message ``number`` (from 1), which says ``said`` instead."""
    from sessions_lib.store import forks

    if at is not None:
        raise click.UsageError("--change says where the fork ends; leave --at out.")
    if number > len(source.messages):
        count = printing.count(len(source.messages), "message")
        raise SessionError(f"{source.id} has {count}; there is no message {number} to change.")
    made = forks.change(source.messages, number - 1, said)
    return source.fork(new_id, made.at, title, mark=made.mark, then=made.then)


@click.command("tag")
@options.session_name
@click.argument("tags", metavar="[TAG]...", nargs=-1, required=False)
@click.option("--remove", "-r", "remove", multiple=True, metavar="TAG", help="Take this tag away.")
@options.folder
def tag(session: str, tags: tuple[str, ...], remove: tuple[str, ...], folder: str | None) -> None:
    """Tag a session, take tags away, and print those it has.

    TAG: Tags to add.

    Example: forkbook tag quest-1 python decorator --remove draft
    """
    found = options.opened(folder, session)
    if tags or remove:
        found.change_tags(tags or (), remove or ())
    for one in found.tags:
        printing.data(printing.line(one, 200))


@click.command("delete")
@options.exact_id
@options.yes
@options.folder
def delete(session: str, yes: bool, folder: str | None) -> None:
    """Move a session to the trash.

    Example: forkbook delete old_session
    """
    found = options.manager(folder)
    row = _exactly(found, session)
    what = f"{session} ({printing.line(row.title, 60)}, {printing.count(row.messages, 'message')})"
    ask(f"Move {what} to the trash?", yes, f"{session!r} was not deleted")
    found.delete(session)
    printing.talk(f"Deleted. Bring it back: forkbook restore {session}")


def _exactly(found: SessionManager, session: str) -> SessionInfo:
    """The row of the session of exactly this id; if there is none, the error says which id was perhaps meant."""
    try:
        return found.info(session)
    except SessionNotFound:
        meant = found.resolve(session)
        raise SessionError(
            f"There is no session {session!r}; nothing was deleted. This wants the exact id: perhaps {meant}?"
        ) from None


def ask(question: str, yes: bool, otherwise: str) -> None:
    """Go on only if ``yes`` was given or the person answers so; else ``SessionError`` that begins ``otherwise``."""
    if yes:
        return
    try:
        agreed = click.confirm(printing.plain(question), err=True)
    except click.Abort:
        raise SessionError(f"{otherwise}: nobody answered. To do it without being asked, add --yes.") from None
    if not agreed:
        raise SessionError(f"{otherwise}.")


@click.command("restore")
@options.exact_id
@options.folder
def restore(session: str, folder: str | None) -> None:
    """Bring a deleted session back from the trash.

    Example: forkbook restore old_session
    """
    found = options.manager(folder).restore(session)
    printing.data(found.id)
    printing.talk(f"Restored: {printing.line(found.title)}")


@click.command("purge")
@click.argument("session", metavar="[ID]", required=False)
@click.option(
    "--older-than", "older_than", metavar="AGE", help="Everything, trash or not, whose last message is older."
)
@click.option("--dry-run", "dry_run", is_flag=True, help="Only list what would go.")
@options.as_json
@options.yes
@options.folder
def purge(
    session: str | None, older_than: str | None, dry_run: bool, json: bool, yes: bool, folder: str | None
) -> None:
    """Delete the trash, or what is old, for good.

    ID: Only this one; the exact id.

    Lists what would go, and asks first.

    Example: forkbook purge --older-than 90d
    """
    found = options.manager(folder)
    listed = found.purgeable(session, age(older_than))
    _print_purgeable(listed, json)
    if not listed and session is not None and older_than is None:
        raise SessionError(f"There is nothing of {session!r} in the trash. See: forkbook list --trash")
    if not listed:
        printing.talk("There is nothing to purge.")
        return
    if dry_run:
        printing.talk(f"{printing.count(len(listed), 'session')} would be deleted for good. Nothing was.")
        return
    ask(f"Delete {printing.count(len(listed), 'session')} for good?", yes, "Nothing was purged")
    done, kept = found.purge(listed)
    printing.talk(f"Purged {printing.count(len(done), 'session')}.")
    if kept:
        raise SessionError("\n".join(kept))


def _print_purgeable(listed: list[Purgeable], json: bool) -> None:
    if json:
        for one in listed:
            printing.record(one)
    elif listed:
        printing.table(
            ("ID", "TITLE", "LAST MESSAGE", "BYTES", "WHERE"),
            [
                (
                    one.session,
                    one.title or "",
                    printing.moment(one.last_active),
                    printing.number(one.size_bytes),
                    f"trash ({one.entry.kind})" if one.entry else "folder",
                )
                for one in listed
            ],
            cut=(1, 0),
            right=(3,),
        )


_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


def age(text: str | None) -> timedelta | None:
    """``90d``, ``12w`` or ``36h`` as a span of time; called wrongly if it is none."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,5}) ?([hdw])", text.strip().lower())
    if match is None:
        raise click.UsageError(f"{printing.line(text)!r} is no age. Write it as 90d, 12w or 36h.")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})
