"""``stats``: what the sessions hold and cost, from ``sessions_lib.stats``.

Does not add anything up itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sessions_lib import text
from sessions_lib.cli import options, printing

if TYPE_CHECKING:
    from sessions_lib.store.numbers import Figures

BY = {
    "tag": "by_tag",
    "model": "by_model",
    "tool": "tools",
    "day": "by_day",
    "session": "sessions",
    "family": "families",
}
SHOWN = (
    "sessions",
    "forks",
    "turns",
    "input",
    "output",
    "total",
    "sent_again",
    "calls",
    "tool_calls",
    "errors",
    "failures",
)
HEADS = {
    "input": "TOKENS IN",
    "output": "TOKENS OUT",
    "total": "TOKENS",
    "own_input": "OWN TOKENS IN",
    "own_output": "OWN TOKENS OUT",
    "own_total": "OWN TOKENS",
    "errors": "TOOL ERRORS",
}
NAMES = ("tag", "model", "tool", "day", "id", "root", "title")


@click.command("stats")
@click.argument("query", metavar="[QUERY]...", nargs=-1, required=False)
@click.option("--by", "by", metavar="WHAT", help="A row for each tag, model, tool, day, session or family.")
@options.as_json
@options.folder
def stats(query: tuple[str, ...], by: str | None, json: bool, folder: str | None) -> None:
    """Count sessions, turns and tokens, each message once.

    QUERY: Only what search would find.

    Example: forkbook stats after:2026-08-01 --by tag
    """
    from sessions_lib import stats as numbers
    from sessions_lib.query import parse

    if by is not None and by not in BY:
        raise click.UsageError(f"{printing.line(by)!r} is none of: {', '.join(BY)}.")
    asked = parse(" ".join(query or ()))
    wanted = [by] if by else [] if json else ["tag", "model", "tool"]
    with options.indexed(folder) as found:
        figures = numbers.figures(found.catalog, asked)
        tables = [rows(getattr(numbers, BY[one])(found.catalog, asked)) for one in wanted]
    for note in asked.notes:
        printing.talk(note)
    if json and by is None:
        printing.record(figures)
    elif not json:
        _print_figures(figures)
    for table in tables:
        _print_rows(table, json)


def rows(frame: Any) -> list[dict[str, Any]]:
    """The rows of a frame of ``sessions_lib.stats``, unknown as ``None``."""
    found: list[dict[str, Any]] = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return found


def _print_figures(figures: Figures) -> None:
    tokens, wait = figures.tokens, figures.first_token_ms
    reported = f"{tokens.reported:,} of {tokens.answers:,} answers reported usage"
    for name, value in (
        ("Sessions", f"{figures.sessions:,}, {figures.forks:,} of them forks"),
        ("Messages", f"{figures.messages:,} in {printing.count(figures.turns, 'turn')}"),
        ("Tokens", f"{printing.number(tokens.total)} ({reported})"),
        ("  in", f"{printing.number(tokens.input)}, of which cached {printing.number(tokens.cached)}"),
        ("  out", f"{printing.number(tokens.output)}, of which reasoning {printing.number(tokens.reasoning)}"),
        ("  sent again", f"{printing.number(figures.sent_again)} by forks, not counted above"),
        ("Tool calls", f"{figures.tool_calls:,}"),
        ("Tool errors", f"{figures.errors:,}"),
        ("First token", "-" if wait is None else f"{text.duration(wait)} in the median"),
    ):
        printing.data(f"{name:<13} {value}")


def _print_rows(found: list[dict[str, Any]], json: bool) -> None:
    if json:
        for row in found:
            printing.record(row)
    elif found:
        named = [name for name in NAMES if name in found[0]]
        own = {name.removeprefix("own_") for name in found[0] if name.startswith("own_")}
        counted = [f"own_{name}" if name in own else name for name in SHOWN if name in found[0]]
        printing.data()
        printing.table(
            [HEADS.get(name, name.replace("_", " ").upper()) for name in (*named, *counted)],
            [
                [str(row[name] or "") for name in named] + [printing.number(row[name]) for name in counted]
                for row in found
            ],
            cut=range(len(named)),
            right=range(len(named), len(named) + len(counted)),
        )
