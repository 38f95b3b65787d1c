"""Commands that end an experiment: ``merge`` brings a branch home, ``verdict`` says which one won.

Do not change the sessions they are told of, but for the verdict in their metadata.
"""

from __future__ import annotations

import re
from typing import Annotated

import typer

from sessions_lib.cli import options, printing
from sessions_lib.cli.options import Folder, Json, SessionName
from sessions_lib.errors import SessionError


def merge(
    session: SessionName,
    other: Annotated[str, typer.Argument(metavar="OTHER", help="The session to take from.")],
    turns: Annotated[
        str | None, typer.Option("--turns", metavar="TURNS", help="Copy these turns of OTHER to the end: 3,5-7.")
    ] = None,
    by_time: Annotated[bool, typer.Option("--by-time", help="Interleave both by time.")] = False,
    title: Annotated[str | None, typer.Option("--title", metavar="TITLE", help="The new session's title.")] = None,
    new_id: Annotated[str | None, typer.Option("--id", metavar="ID", help="Exactly this id.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be merged.")] = False,
    json: Json = False,
    folder: Folder = None,
) -> None:
    """Merge two sessions into a new one and print its id.

    Both stay as they are; what they share is taken once.

    Example: forkbook merge quest-1 quest-2 --turns 3
    """
    from sessions_lib.store import merge_sessions

    if by_time == (turns is not None):
        raise typer.BadParameter("Say how to merge: --turns 3,5-7 or --by-time.")
    found = options.manager(folder)
    chosen = None if turns is None else numbers(turns)
    plan = merge_sessions.preview(found, found.resolve(session), found.resolve(other), chosen, title)
    made = None if dry_run else merge_sessions.join(found, plan, new_id)
    if json:
        added = [{"message": index + 1, **plan.messages[index]} for index in plan.added]
        printing.record({"id": made and made.id, "title": plan.title, "messages": len(plan.messages), "added": added})
    elif made:
        printing.data(made.id)
    else:
        for line in plan.turns:
            printing.data(printing.line(line, 200))
    done = "Would add" if dry_run else "Added"
    count = printing.count(len(plan.added), "message")
    printing.talk(f"{done} {count} of {plan.second} to the {len(plan.messages) - len(plan.added):,} of {plan.first}.")


def numbers(text: str) -> list[int]:
    """``3,5-7`` as the numbers 3, 5, 6, 7; called wrongly if it is no such list."""
    found: list[int] = []
    for part in text.replace(" ", "").split(","):
        match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", part)
        if match is None:
            raise typer.BadParameter(f"{printing.line(text)!r} are no turns. Write them as 3 or 3,5-7.")
        found += range(int(match[1]), int(match[2] or match[1]) + 1)
    return found


def verdict(
    winner: Annotated[str, typer.Argument(metavar="WINNER", help="The session that won.")],
    others: Annotated[list[str], typer.Argument(metavar="OTHER...", help="Those it was compared with.")],
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="The reason.")] = "",
    tag: Annotated[list[str] | None, typer.Option("--tag", "-t", metavar="TAG", help="Tag the winner.")] = None,
    folder: Folder = None,
) -> None:
    """Say which session won over others.

    Found again with: forkbook search verdict:won

    Example: forkbook verdict quest-2 quest-1 --why "found another way in"
    """
    from sessions_lib.compare import verdicts

    found = options.manager(folder)
    ids = [found.resolve(name) for name in (winner, *others)]
    failed = verdicts.give(found, ids[0], ids[1:], why, tag or ())
    printing.talk(f"{ids[0]} won over {', '.join(ids[1:])}.")
    if failed:
        raise SessionError("\n".join(failed))
