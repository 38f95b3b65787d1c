"""What commands print: sentences, JSON lines and tables, with nothing in them that steers a terminal.

Every text that was stored goes through ``plain`` or ``line`` first; ``record`` escapes by itself.

Does not decide what is printed.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sessions_lib import names, text, times
from sessions_lib.text import count as count
from sessions_lib.text import visible

if TYPE_CHECKING:
    from sessions_lib.messages.usage import Totals
    from sessions_lib.prices import Spent

Item = TypeVar("Item")


def data(text: str = "") -> None:
    """Print ``text`` as a line of data; stored text in it has been through ``plain`` or ``line``."""
    click.echo(text)


def talk(text: str) -> None:
    """Say ``text`` beside the data, on standard error, safe for a terminal."""
    click.echo(plain(text), err=True)


def plain(text: str) -> str:
    """``text`` as it may be shown in a terminal: its line breaks and tabs kept, what steers a terminal replaced."""
    return visible(text)


def line(text: str, limit: int = names.TITLE_LENGTH) -> str:
    """``text`` on one line of at most ``limit`` characters, safe for a terminal."""
    return names.one_line(text, limit)


def heading(text: str) -> None:
    """Print ``text`` as a heading: bold where a terminal shows it and ``NO_COLOR`` is not set."""
    click.echo(styled(text, sys.stdout, bold=True))


def styled(text: str, stream: Any, **style: Any) -> str:
    """``text`` in a style, if ``stream`` is a terminal and ``NO_COLOR`` is not set."""
    return click.style(text, **style) if is_styled(stream) else text


def has_reader() -> bool:
    """True if what is printed and said goes to a person: both streams are a terminal."""
    return sys.stdout.isatty() and sys.stderr.isatty()


def is_styled(stream: Any) -> bool:
    """True if styles may go to ``stream``: a terminal, and ``NO_COLOR`` not set."""
    return bool(stream.isatty()) and not os.environ.get("NO_COLOR")


def record(value: Any) -> None:
    """Print a mapping or dataclass as one JSON object on one line; times in UTC, unknown is ``null``."""
    # ASCII only: valid in every locale, and no control character of a stored text can reach the terminal.
    click.echo(json.dumps(jsonable(value)).replace("\x7f", "\\u007f"))


def jsonable(value: Any) -> Any:
    """``value`` made of what JSON has: dataclasses as objects, times as ISO 8601 in UTC, sets and tuples as lists."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: jsonable(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): jsonable(inside) for key, inside in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [jsonable(inside) for inside in value]
    if isinstance(value, datetime):
        return times.iso(value)
    if isinstance(value, date | Path):
        return str(value)
    return value


def number(value: float | None) -> str:
    """A number with thousands marked; ``-`` where it is unknown."""
    return "-" if value is None else f"{value:,}"


def spent(money: Spent, tokens: Totals) -> str:
    """What was spent where ``tokens`` were: ``$1.10``, ``unpriced``, ``unmetered``; ``-`` where it is unknown."""
    from sessions_lib import prices

    said = prices.said(money, tokens)
    return "-" if said == text.UNKNOWN else said


def session_money(money: tuple[Spent, Spent]) -> dict[str, Any]:
    """What was spent in a session and what its copied start had cost, as the keys of a JSON object."""
    found: dict[str, Any] = {}
    for prefix, part in zip(("own_", "inherited_"), money, strict=True):
        found |= {f"{prefix}cost_usd": part.cost, f"{prefix}unpriced_tokens": part.unpriced}
        found[f"{prefix}unmetered_tokens"] = part.unmetered
    return found


def moment(when: datetime | None) -> str:
    """``2026-11-29 19:40`` in this machine's zone, or ``unknown``."""
    return "unknown" if when is None else times.minute(when)


def terminal_width() -> int | None:
    """How many columns standard output has; ``None`` where it is no terminal and ``$COLUMNS`` is not set."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit():
        return max(shutil.get_terminal_size().columns, 20)
    return None


def table(
    heads: Sequence[str], rows: Iterable[Sequence[str]], *, cut: Sequence[int], right: Sequence[int] = ()
) -> None:
    """Print ``rows`` in aligned columns, one line a row, no wider than the terminal.

    ``cut`` are the columns that may be shortened, ``right`` those aligned to the right. A column that is empty in
    every row is left out, and the last ones where there is no room; into a pipe nothing is shortened.
    """
    cells = [[line(cell, 200) for cell in row] for row in rows]
    kept = [at for at in range(len(heads)) if any(row[at] for row in cells)]
    widths = {at: max(columns(text) for text in (heads[at], *(row[at] for row in cells))) for at in kept}
    _fit(widths, cut, terminal_width())
    for index, row in enumerate([list(heads), *cells]):
        shown = "  ".join(_padded(row[at], widths[at], at in right) for at in widths).rstrip()
        (data if index else heading)(shown)


def _fit(widths: dict[int, int], cut: Sequence[int], width: int | None) -> None:
    """Shorten the widest of the columns ``cut`` until all fit into ``width``, none below 8; then drop the last ones."""
    while width is not None and sum(widths.values()) + 2 * (len(widths) - 1) > width:
        widest = max((at for at in cut if at in widths), key=lambda at: widths[at], default=None)
        if widest is not None and widths[widest] > 8:
            widths[widest] -= 1
        elif len(widths) > 2:
            widths.popitem()
        else:
            return


def _padded(text: str, width: int, right: bool) -> str:
    shown = shortened(text, width)
    space = " " * (width - columns(shown))
    return space + shown if right else shown + space


def shortened(text: str, width: int) -> str:
    """``text`` in at most ``width`` columns, ended with ``…`` where it is longer."""
    if columns(text) <= width:
        return text
    kept = ""
    for char in text:
        if columns(kept + char) > width - 1:
            break
        kept += char
    return kept + "…"


def columns(text: str) -> int:
    """How many columns of a terminal ``text`` takes: wide characters two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(
        0
        if unicodedata.category(char) in ("Mn", "Me", "Cf")
        else 2
        if unicodedata.east_asian_width(char) in "WF"
        else 1
        for char in text
    )


@contextmanager
def bar(length: int, label: str) -> Iterator[Any]:
    """A progress bar with ``update`` on standard error, drawn only if that is a terminal and there is much to do."""
    # Where it may not draw, click's bar prints its label once: into a stream that nobody reads.
    out = sys.stderr if length >= 50 and sys.stderr.isatty() else io.StringIO()
    with click.progressbar(length=length, label=label, file=out) as drawn:
        yield drawn


def progress(items: Sequence[Item], label: str) -> Iterator[Item]:
    """``items`` one by one, with a progress bar."""
    with bar(len(items), label) as drawn:
        for item in items:
            yield item
            drawn.update(1)
