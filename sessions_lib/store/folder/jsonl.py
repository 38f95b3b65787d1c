r"""Bytes ↔ lines: append one line, read lines with a report of damage, copy a prefix.

The format, version 1. A session file is UTF-8; every line is one JSON object and ends in ``\n``; an object with a
string ``role`` is a message, anything else is a damaged line. We write compact JSON with U+2028, U+2029 and U+0085
escaped (the seeds' ``splitlines`` breaks on them), a lone surrogate as U+FFFD, NaN and infinity as ``null``.

Reading never writes, and a damaged line never costs another one:

* empty lines, a byte-order mark and ``\r\n`` are no damage; a last line that is whole but has no newline is a message;
* two objects glued on one line are both read, and so is a message glued behind a torn one;
* an undecodable byte is read as U+FFFD, a run of NUL bytes before an object is passed over: both are reported;
* a last line that is unfinished is ``torn``: somebody may be writing it at this moment.

Writing: one ``write()`` of whole lines, then ``fdatasync`` (and the folder, when the file is new). A torn last line is
ended first. If the disk refuses, the file is cut back to its previous size and ``StorageError`` tells the caller.

Does not know chat, metadata or locks: callers hold the session's lock while they append.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from sessions_lib.messages import encoding
from sessions_lib.messages.content import Message
from sessions_lib.store.damage import Line as Line
from sessions_lib.store.damage import parse_line as parse_line
from sessions_lib.store.folder import disk
from sessions_lib.store.folder.disk import BLOCK as BLOCK
from sessions_lib.store.records import DamagedLine

_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


@dataclass(slots=True)
class Lines:
    """A file as read: its messages in order, what was damaged, and where each message ends.

    ``ends[i]`` is the size in bytes of the prefix that holds messages 0 to i; ``line_numbers[i]`` is i's line.
    ``glued`` are lines that held several objects, all read.
    """

    messages: list[Message] = field(default_factory=list)
    damaged: list[DamagedLine] = field(default_factory=list)
    glued: list[DamagedLine] = field(default_factory=list)
    ends: array[int] = field(default_factory=lambda: array("q"))
    line_numbers: array[int] = field(default_factory=lambda: array("q"))
    size: int = 0
    line_count: int = 0

    @property
    def is_torn(self) -> bool:
        """True if the last line is unfinished."""
        return bool(self.damaged) and self.damaged[-1].kind == "torn"

    def extend(self, more: Lines) -> None:
        """Go on with what was read behind these lines."""
        self.messages += more.messages
        self.damaged += more.damaged
        self.glued += more.glued
        self.ends.extend(more.ends)
        self.line_numbers.extend(more.line_numbers)
        self.size, self.line_count = more.size, more.line_count

    def add(self, written: Sequence[Message], widths: Sequence[int], size: int) -> None:
        """Go on with messages that were appended, as lines of ``widths`` bytes, to a file that now has ``size``."""
        if self.is_torn:  # the write has ended that line: it is damaged for good
            self.damaged[-1] = DamagedLine(self.damaged[-1].line, "not JSON, perhaps cut off", "not JSON")
        end = size - sum(widths)
        for width in widths:
            end += width
            self.line_count += 1
            self.ends.append(end)
            self.line_numbers.append(self.line_count)
        self.messages += written
        self.size = size


def raw_blocks(descriptor: int, start: int, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
    """``(offset, bytes)`` blocks that end at a newline, but for the last one; memory is one block and one line."""
    offset, position = start, start
    stop = os.fstat(descriptor).st_size if stop is None else stop  # what is added from now on is for the next reading
    rest: list[bytes] = []
    while True:
        want = min(BLOCK, stop - position)
        block = os.pread(descriptor, want, position) if want > 0 else b""
        position += len(block)
        if not block:
            if rest:
                whole, rest = b"".join(rest), []
                yield offset, whole
            return
        cut = block.rfind(b"\n") + 1
        if not cut:
            rest.append(block)
            continue
        rest.append(block[:cut])
        whole = b"".join(rest) if len(rest) > 1 else rest[0]
        rest = [block[cut:]] if cut < len(block) else []  # before the caller goes on: a line may be a gigabyte
        yield offset, whole
        offset += len(whole)


def lines_of(block: bytes, offset: int, number: int, is_end: bool) -> Iterator[tuple[int, Line | None]]:
    """The lines of one block at byte ``offset``, as ``(number, line)`` from ``number`` on; a blank line is ``None``."""
    start = 0
    while start < len(block):
        cut = block.find(b"\n", start) + 1 or len(block)
        yield number, parse_line(block[start:cut], number, offset + start, is_end and cut == len(block))
        start, number = cut, number + 1


def read(path: Path, start: int = 0, line_number: int = 1, stop: int | None = None) -> Lines:
    """Every message of ``path`` from byte ``start`` on, with a report of damage; ``OSError`` if it cannot be read.

    ``start`` must be the start of a line, ``line_number`` its number. Offsets count from the file's start. ``stop`` is
    the byte to end before, if not at the end of the file.
    """
    lines = Lines(size=start, line_count=line_number - 1)
    descriptor = disk.open_to_read(path)
    try:
        with encoding.without_gc():
            for offset, block in raw_blocks(descriptor, start, stop):
                _read_block(lines, offset, block)
    finally:
        os.close(descriptor)
    return lines


def _read_block(lines: Lines, offset: int, block: bytes) -> None:
    ends = encoding.line_ends(block)
    if (records := _messages_in(block, ends)) is not None:
        lines.ends.extend([offset + end for end in ends])
        lines.line_numbers.extend(range(lines.line_count + 1, lines.line_count + 1 + len(ends)))
        lines.messages += records
    else:
        for _, line in lines_of(block, offset, lines.line_count + 1, is_end=not block.endswith(b"\n")):
            if line is not None:
                _take(lines, line)
    lines.line_count += len(ends)
    lines.size = offset + len(block)


def _messages_in(block: bytes, ends: Sequence[int]) -> list[Message] | None:
    """The messages of a block, at the decoder's speed; ``None`` if it is not one message on each of its lines."""
    try:
        records: list[Message] = _decoder.decode_lines(block)
        are_messages = {type(record["role"]) for record in records} <= {str}
    except (KeyError, TypeError, msgspec.DecodeError, msgspec.ValidationError, UnicodeError, RecursionError):
        return None
    return records if are_messages and encoding.is_one_a_line(block, ends, len(records)) else None


def _take(lines: Lines, line: Line) -> None:
    lines.messages += line.records
    lines.ends.extend(line.ends)
    lines.line_numbers.extend([line.number] * len(line.records))
    if line.damage is not None:
        (lines.glued if line.damage.kind == "glued" else lines.damaged).append(line.damage)


def iterate(path: Path, start: int = 0, line_number: int = 1) -> Iterator[Line]:
    """The lines of ``path`` from byte ``start`` on, one at a time, blank ones left out; memory is one block."""
    descriptor = disk.open_to_read(path)
    try:
        for offset, block in raw_blocks(descriptor, start):
            for _, line in lines_of(block, offset, line_number, is_end=not block.endswith(b"\n")):
                if line is not None:
                    yield line
            line_number += block.count(b"\n")
    finally:
        os.close(descriptor)


def raw_lines(path: Path, numbers: Collection[int]) -> dict[int, str]:
    """The lines ``numbers`` (from 1) as they stand in the file; bytes that are no text are lone surrogates."""
    found: dict[int, str] = {}
    last = max(numbers, default=0)
    with open(path, "rb") as file:
        for number, line in enumerate(islice(file, last), start=1):
            if number in numbers:
                found[number] = line.removesuffix(b"\n").decode("utf-8", "surrogateescape")
    return found


def line_count(path: Path) -> int:
    """How many lines the file has, an unfinished last one included."""
    count, last = 0, b"\n"
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            count, last = count + block.count(b"\n"), block[-1:]
    return count + (last != b"\n")


def ends_line(path: Path, size: int) -> bool:
    """True if a line ends at byte ``size``, as far as the file can be read."""
    if not size:
        return True
    try:
        with path.open("rb") as file:
            file.seek(size - 1)
            return file.read(1) == b"\n"
    except OSError:
        return False
