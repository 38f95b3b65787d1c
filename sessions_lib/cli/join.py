"""Commands that end an experiment: ``merge`` makes one session of two, ``verdict`` says which one won.

Do not change the sessions they are told of, but for the verdict in their metadata.
"""

from __future__ import annotations

import re

import click

from sessions_lib.cli import options, printing
from sessions_lib.errors import SessionError


@click.command("merge")
@options.session_name
@click.argument("other", metavar="OTHER")
@click.option("--turns", "turns", metavar="TURNS", help="Copy these turns of OTHER to the end: 3,5-7.")
@click.option("--by-time", "by_time", is_flag=True, help="Interleave both by time.")
@click.option("--title", "title", metavar="TITLE", help="The new session's title.")
@click.option("--id", "new_id", metavar="ID", help="Exactly this id.")
@click.option("--dry-run", "dry_run", is_flag=True, help="Only say what would be merged.")
@options.as_json
@options.folder
def merge(
    session: str,
    other: str,
    turns: str | None,
    by_time: bool,
    title: str | None,
    new_id: str | None,
    dry_run: bool,
    json: bool,
    folder: str | None,
) -> None:
    """Merge two sessions into a new one and print its id.

    OTHER: The session to take from.

    Both stay as they are; what they share is taken once.

    Example: forkbook merge quest-1 quest-2 --turns 3
    """
    from sessions_lib.store import merge_sessions

    if by_time == (turns is not None):
        raise click.UsageError("Say how to merge: --turns 3,5-7 or --by-time.")
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
            raise click.UsageError(f"{printing.line(text)!r} are no turns. Write them as 3 or 3,5-7.")
        found += range(int(match[1]), int(match[2] or match[1]) + 1)
    return found


@click.command("verdict")
@click.argument("winner", metavar="WINNER")
@click.argument("others", metavar="OTHER...", nargs=-1, required=True)
@click.option("--why", "why", default="", metavar="TEXT", help="The reason.")
@click.option("--tag", "-t", "tag", multiple=True, metavar="TAG", help="Tag the winner.")
@options.folder
def verdict(winner: str, others: tuple[str, ...], why: str, tag: tuple[str, ...], folder: str | None) -> None:
    """Say which session won over others.

    WINNER: The session that won.

    OTHER: Those it was compared with.

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
