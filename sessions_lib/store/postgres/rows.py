"""Messages ↔ rows: what a line of a session is in the tables, and what a row is as a message.

A message's line is kept byte for byte. A line that is no message, that holds several, or that text cannot hold is kept
whole in ``damage``, with how many messages were read from it; those have lines of their own in ``message``.

Does not talk to a database.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from sessions_lib import query
from sessions_lib.messages import content, encoding
from sessions_lib.messages.content import Message
from sessions_lib.store.damage import parse_line
from sessions_lib.store.records import Contents, DamagedLine

BLANK = "blank"  # a kind of ``damage`` that is none: the line is empty
_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


@dataclass(frozen=True, slots=True)
class Row:
    """A row of ``message`` to be."""

    id: str
    role: str
    line: str
    said: str

    @property
    def size(self) -> int:
        """The bytes of its line, newline included."""
        return len(self.line.encode()) + 1


@dataclass(frozen=True, slots=True)
class Damage:
    """A row of ``damage``: line number (from 1), how many messages are before it and in it, its bytes, its fault."""

    line: int
    seq: int
    held: int
    raw: bytes
    kind: str
    reason: str


def row_of(message: Message, line: bytes | None = None) -> Row:
    """``message`` as a row; ``line`` is how it is written, if it is already."""
    written = (encoding.encode(message) if line is None else line).decode()
    given = message.get("id")
    said = query.fold(content.searchable(message))
    return Row(as_text(given) if isinstance(given, str) else "", as_text(message["role"]), written, as_text(said))


def as_text(value: str) -> str:
    """``value`` as the database can hold it; a search never finds by what is lost."""
    return value.replace("\0", " ").encode("utf-8", "replace").decode()


def read_lines(lines: Sequence[str]) -> list[Message]:
    """The messages of ``lines``, one each."""
    try:
        found: list[Message] = _decoder.decode_lines("\n".join(lines))
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError, RecursionError):
        found = []
    return found if len(found) == len(lines) else [encoding.decode(line) for line in lines]


def parsed(lines: Sequence[str]) -> tuple[list[Row], list[Damage]]:
    """``lines`` (lone surrogates are bytes that are no text) as messages and what is damaged; the last may be torn."""
    rows: list[Row] = []
    damaged: list[Damage] = []
    for number, line in enumerate(lines, start=1):
        raw = line.encode("utf-8", "surrogateescape")
        is_last = number == len(lines)
        found = parse_line(raw if is_last else raw + b"\n", number, 0, is_last)
        if found is not None and found.damage is None and len(found.records) == 1 and _is_text(raw):
            rows.append(row_of(found.records[0], raw))
            continue
        records = found.records if found else []
        kind, reason = (found.damage.kind, found.damage.reason) if found and found.damage else (BLANK, "")
        damaged.append(Damage(number, len(rows), len(records), raw, kind, reason))
        rows += [row_of(record) for record in records]
    return rows, damaged


def _is_text(raw: bytes) -> bool:
    try:
        return "\0" not in raw.decode()
    except UnicodeDecodeError:
        return False


def take_damage(known: Contents, damaged: Sequence[Damage]) -> None:
    """Tell ``known`` what of its lines is damaged."""
    told = [DamagedLine(one.line, one.reason, one.kind) for one in damaged if one.kind != BLANK]
    known.damaged = [one for one in told if one.kind != "glued"]
    known.glued = [one for one in told if one.kind == "glued"]


def line_numbers(count: int, damaged: Iterable[Damage]) -> list[int]:
    """The number of the line that each of ``count`` messages stands on."""
    numbers: list[int] = []
    line = 1
    for one in damaged:
        while len(numbers) < one.seq:
            numbers.append(line)
            line += 1
        numbers += [one.line] * one.held
        line = one.line + 1
    return [*numbers, *range(line, line + count - len(numbers))]


def seq_of_lines(count: int, damaged: Sequence[Damage]) -> Iterator[tuple[int, int | Damage]]:
    """Each line's number with the message on it (its index), or what is damaged there."""
    seq, line = 0, 1
    for one in damaged:
        while line < one.line:
            yield line, seq
            seq, line = seq + 1, line + 1
        yield line, one
        seq, line = seq + one.held, line + 1
    while seq < count:
        yield line, seq
        seq, line = seq + 1, line + 1
