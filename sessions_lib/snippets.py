"""Where in a text a query was found, and the piece of the text around it.

What was found in the folded text is marked in the text as it is written.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from sessions_lib import query
from sessions_lib.query import Query

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Snippet:
    """A piece of a text on one line; ``marks`` are the half-open ranges in ``text`` that the query found."""

    text: str
    marks: tuple[Range, ...] = ()


def snippet(text: str, asked: Query, width: int = 160) -> Snippet:
    """The piece of ``text`` around the first place a needle of ``asked`` stands, at most about ``width`` characters."""
    marks = _first_marks(text, asked)
    if not marks:
        return _cut(text, 0, width, [])
    start = max(0, marks[0][0] - width // 3)
    if start and (space := text.find(" ", start, marks[0][0])) >= 0:
        start = space + 1
    return _cut(text, start, width, marks)


def _cut(text: str, start: int, width: int, marks: Iterable[Range]) -> Snippet:
    """``width`` characters of ``text`` from ``start`` on one line, with ``…`` where something is left out."""
    end = min(len(text), start + width)
    said = "…" if start else ""
    positions = []  # of each character of the window in the snippet
    for char in text[start:end]:
        positions.append(len(said))
        blank = char.isspace() or unicodedata.category(char)[0] == "C"
        said += "" if blank and said[-1:] in (" ", "") else " " if blank else char
    positions.append(len(said))
    said = said.rstrip() + ("…" if end < len(text) else "")
    inside = [(max(a, start) - start, min(b, end) - start) for a, b in marks if b > start and a < end]
    return Snippet(said, tuple((positions[a], positions[b]) for a, b in inside if positions[a] < positions[b]))


def _first_marks(text: str, asked: Query) -> list[Range]:
    """The ranges in ``text`` that needles of ``asked`` have, near the first of them."""
    folded = query.fold(text)
    places = [found.start() for needle in asked.needles if (found := query.expression(needle).search(folded))]
    if not places:
        return []
    # Folding goes line by line, so only the lines near the first place need the map from folded to written characters.
    lines, at, written, first = text.split("\n"), 0, 0, 0
    for first, line in enumerate(lines):  # noqa: B007  (used after the loop)
        if at + (length := len(query.fold(line))) >= min(places):
            break
        at, written = at + length + 1, written + len(line) + 1
    end = written + len(lines[first]) + 400
    window = text[written : min(len(text), end)]
    return [(a + written, b + written) for a, b in ranges(window, asked.needles)]


def ranges(text: str, needles: Iterable[str]) -> list[Range]:
    """The ranges of ``text`` at which the folded ``needles`` stand, in order, overlapping ones joined."""
    folded, origin = _folded_with_origin(text)
    found = sorted(
        (origin[hit.start()], origin[hit.end() - 1] + 1)
        for needle in needles
        if needle
        for hit in query.expression(needle).finditer(folded)
    )
    joined: list[Range] = []
    for start, end in found:
        end = _to_cluster_end(text, end)
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _to_cluster_end(text: str, end: int) -> int:
    while end < len(text) and _joins(text[end]):
        end += 1
    return end


def _joins(char: str) -> bool:
    """True if ``char`` may become one character with what stands before it: marks, and the inner letters of Hangul."""
    return not char.isascii() and (unicodedata.category(char)[0] == "M" or "\u1160" <= char <= "\u11ff")


def _folded_with_origin(text: str) -> tuple[str, list[int] | range]:
    """``fold(text)``, and for each of its characters the place in ``text`` it comes from."""
    if text.isascii():
        return text.lower(), range(len(text))
    pieces, origin = [], []
    start = 0
    for at in range(1, len(text) + 1):
        if at < len(text) and _joins(text[at]):
            continue
        piece = query.fold(text[start:at])
        pieces.append(piece)
        origin += [start] * len(piece)
        start = at
    return "".join(pieces), origin
