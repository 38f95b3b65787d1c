"""``stats``: what the sessions hold and cost, from ``sessions_lib.stats``.

Does not add anything up itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sessions_lib import prices, text
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
    "cost",
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
    "cost": "COST",
    "own_cost": "OWN COST",
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
        models = rows(numbers.by_model(found.catalog, asked))
        tables = [rows(getattr(numbers, BY[one])(found.catalog, asked)) for one in wanted]
        if "tool" in wanted:
            _add_money(tables[wanted.index("tool")], rows(numbers.by_tool(found.catalog, asked)))
    for note in asked.notes:
        printing.talk(note)
    options.say_own_prices()
    if json and by is None:
        printing.record(as_json(figures, models))
    elif not json:
        _print_figures(figures, models)
    for table in tables:
        _print_rows(table, json)


def rows(frame: Any) -> list[dict[str, Any]]:
    """The rows of a frame of ``sessions_lib.stats``, unknown as ``None``."""
    found: list[dict[str, Any]] = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return found


def _add_money(tools: list[dict[str, Any]], answers: list[dict[str, Any]]) -> None:
    """Put beside each tool what the answers that called it cost."""
    beside = {row["tool"]: {key: row[key] for key in ("cost", "unpriced", "unmetered")} for row in answers}
    for row in tools:
        row |= beside[row["tool"]]


def without_price(models: list[dict[str, Any]], column: str) -> list[dict[str, Any]]:
    """The models with ``unpriced`` or ``unmetered`` tokens, the most first."""
    named = [{"model": row["model"], "tokens": row[column]} for row in models if row[column]]
    return sorted(named, key=lambda one: -one["tokens"])


def as_json(figures: Figures, models: list[dict[str, Any]]) -> dict[str, Any]:
    """The figures as JSON has them: ``cost_usd`` a number or ``null``, the models without a price listed."""
    found: dict[str, Any] = {key: value for key, value in printing.jsonable(figures).items() if "money" not in key}
    cost = figures.money.cost if figures.tokens.answers else 0.0
    found |= {"cost_usd": cost, "sent_again_cost_usd": figures.money_again.cost, "prices": prices.version()}
    return found | {column: without_price(models, column) for column in ("unpriced", "unmetered")}


def _print_figures(figures: Figures, models: list[dict[str, Any]]) -> None:
    tokens, wait = figures.tokens, figures.first_token_ms
    lacking = [
        f"{printing.number(one['tokens'])} tokens of {printing.line(one['model'], 60)} {column}"
        for column in ("unpriced", "unmetered")
        for one in without_price(models, column)
    ]
    lacking += [printing.line(one, 160) for one in prices.borrowed_by(row["model"] for row in models)]
    again = figures.money_again
    sent_again = f", {text.money(again.cost)}" if again.cost is not None else ""
    reported = f"{tokens.reported:,} of {tokens.answers:,} answers reported usage"
    for name, value in (
        ("Sessions", f"{figures.sessions:,}, {figures.forks:,} of them forks"),
        ("Messages", f"{figures.messages:,} in {printing.count(figures.turns, 'turn')}"),
        ("Tokens", f"{printing.number(tokens.total)} ({reported})"),
        ("  in", f"{printing.number(tokens.input)}, of which cached {printing.number(tokens.cached)}"),
        ("  out", f"{printing.number(tokens.output)}, of which reasoning {printing.number(tokens.reasoning)}"),
        ("  sent again", f"{printing.number(figures.sent_again)} by forks{sent_again}, not counted above"),
        ("Cost", f"{printing.spent(figures.money, tokens)} ({'; '.join([prices.version(), *lacking])})"),
        ("Tool calls", f"{figures.tool_calls:,}"),
        ("Tool errors", f"{figures.errors:,}"),
        ("First token", "-" if wait is None else f"{text.duration(wait)} in the median"),
    ):
        printing.data(f"{name:<13} {value}")


def _cell(row: dict[str, Any], name: str) -> str:
    """A number of a row; money in words where it has none."""
    if not name.endswith("cost"):
        return printing.number(row[name])
    own = name.removesuffix("cost")
    said = text.spent(row[name], row[f"{own}unpriced"], row[f"{own}unmetered"], is_partial=_is_partial(row, own))
    return "-" if said == text.UNKNOWN else said


def _is_partial(row: dict[str, Any], own: str) -> bool:
    """True if not all answers reported their tokens."""
    return bool(row.get(f"{own}reported", 0) < row.get(f"{own}answers", 0))


def _money_named(row: dict[str, Any]) -> dict[str, Any]:
    """``row`` with the units of its money in their names: ``cost_usd``, ``unpriced_tokens``."""
    units = {"cost": "cost_usd", "unpriced": "unpriced_tokens", "unmetered": "unmetered_tokens"}
    names = {f"{own}{name}": f"{own}{unit}" for own in ("", "own_") for name, unit in units.items()}
    return {names.get(key, key): value for key, value in row.items()}


def _print_rows(found: list[dict[str, Any]], json: bool) -> None:
    if json:
        for row in found:
            printing.record(_money_named(row))
    elif found:
        named = [name for name in NAMES if name in found[0]]
        own = {name.removeprefix("own_") for name in found[0] if name.startswith("own_")}
        counted = [f"own_{name}" if name in own else name for name in SHOWN if name in found[0]]
        printing.data()
        printing.table(
            [HEADS.get(name, name.replace("_", " ").upper()) for name in (*named, *counted)],
            [[str(row[name] or "") for name in named] + [_cell(row, name) for name in counted] for row in found],
            cut=range(len(named)),
            right=range(len(named), len(named) + len(counted)),
        )
