"""A file to import, on disk or inside a zip, opened and cut into records.

JSON Lines, whole JSON documents and objects printed over several lines are told apart by content. Each line is parsed
once. A byte-order mark, lone surrogates, NaN, blank lines and two objects glued on one line are
read; what cannot be read is reported by line. Nothing is read without a bound.

Does not know what the records mean.
"""

from __future__ import annotations

import io
import json
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from sessions_lib.errors import ImportRefused, StorageError
from sessions_lib.importers import zips
from sessions_lib.messages import clean, content, encoding

_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_BLOCK = 1 << 20
_HOPELESS_LINES = 200  # this many lines without one JSON object: not JSON Lines, the rest is not read
_MAX_LINE = 256_000_000  # bytes; a longer line is told, and not read
_MAX_DOCUMENT = 1_000_000_000  # bytes of a file that is one JSON value, which is read at once
_MAX_METADATA = 16_000_000
_MARK = b"\xef\xbb\xbf"
_LOOKED_AT = 400  # objects; a file's kind shows long before
SQLITE = b"SQLite format 3\x00"


@dataclass(frozen=True, slots=True)
class Source:
    """A file, or ``member`` of the zip ``path``; ``found_in`` is what a person named, if it is not the file itself."""

    path: Path
    member: str | None = None
    found_in: Path | None = None

    @property
    def name(self) -> str:
        """The file's own name."""
        return self.member.rsplit("/", 1)[-1] if self.member else self.path.name

    @property
    def label(self) -> Path:
        """What to call it in messages: the path, a member behind its zip's name."""
        return self.path / self.member if self.member else self.path

    def open(self) -> BinaryIO:
        """The file's bytes; ``StorageError`` if they cannot be read, are too many, or it is no regular file."""
        try:
            if self.member is None:
                return _open_regular(self.path)
            return io.BytesIO(zips.read(zips.opened(self.path), self.member))
        except zips.TooLarge as error:
            raise StorageError(self.label, str(error), "Unpack it yourself, and import the file.") from error
        except zips.ERRORS as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise StorageError(self.label, f"cannot be read ({reason})", "Check the file and try again.") from error

    def metadata(self) -> dict[str, Any]:
        """The object in the ``.meta.json`` beside the file; empty if there is none that can be read."""
        raw = self._beside(".meta.json")
        try:
            values = encoding.decode(raw) if raw is not None else {}
        except ValueError:
            values = {}
        return values if isinstance(values, dict) else {}

    def _beside(self, suffix: str) -> bytes | None:
        stem = self.name.rsplit(".", 1)[0]
        if self.member is None:
            other = Source(self.path.with_name(stem + suffix))
        else:
            folder = self.member.rpartition("/")[0]
            other = Source(self.path, f"{folder}/{stem}{suffix}" if folder else stem + suffix)
        try:
            with other.open() as file:
                raw = file.read(_MAX_METADATA + 1)
        except StorageError:
            return None
        return raw if len(raw) <= _MAX_METADATA else None


def _open_regular(path: Path) -> BinaryIO:
    """``path`` opened; a device or a pipe is refused, though a link to it was put there since it was looked at."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError("it is no regular file")
    return os.fdopen(descriptor, "rb")


@dataclass(slots=True)
class Records:
    """What a file holds: ``document`` (one JSON value) or ``lines`` (number, record); ``head`` is its first bytes.

    ``damaged`` are the lines that could not be read, ``odd`` the numbers of lines that are JSON but no object.
    ``source`` is the file. Of a database only ``head`` is read here.
    """

    head: bytes = b""
    source: Source | None = None
    document: Any = None
    is_document: bool = False
    lines: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    damaged: list[tuple[int, str]] = field(default_factory=list)
    odd: list[int] = field(default_factory=list)
    _items: list[Mapping[str, Any]] = field(default_factory=list)

    @property
    def first(self) -> dict[str, Any]:
        """The first record, ``{}`` if there is none."""
        return self.lines[0][1] if self.lines else {}

    @property
    def is_database(self) -> bool:
        """True for a database of SQLite."""
        return self.head.startswith(SQLITE)

    @property
    def is_list(self) -> bool:
        """True if the file is one JSON list."""
        return self.is_document and isinstance(self.document, list)

    @property
    def is_lines(self) -> bool:
        """True for several objects behind each other."""
        return not self.is_document and not self.whole

    @property
    def whole(self) -> Mapping[str, Any]:
        """The one object that the file is; ``{}`` if it is anything else."""
        if self.is_document:
            return self.document if isinstance(self.document, Mapping) else {}
        return self.first if len(self.lines) == 1 and not self.damaged and not self.odd else {}

    @property
    def items(self) -> Sequence[Mapping[str, Any]]:
        """The objects by which a file is recognised: of its list, its lines, or the one that it is."""
        if not self._items:
            if self.is_document:
                listed = self.document if isinstance(self.document, list) else [self.document]
                self._items = [item for item in listed[:_LOOKED_AT] if isinstance(item, Mapping)]
            else:
                self._items = [record for _, record in self.lines[:_LOOKED_AT]]
        return self._items


def load(source: Source) -> Records:
    """All records of ``source``; never raises for what is in it, only if it cannot be read or is too large."""
    with source.open() as file:
        head = file.read(4096)
        file.seek(0)
        records = Records(head, source)
        start = head.removeprefix(_MARK).lstrip()
        if head.startswith(SQLITE) or not start:
            return records
        if start.startswith((b"\xff\xfe", b"\xfe\xff")):
            file = io.BytesIO(_whole(source, file).decode("utf-16", "replace").encode())
            start = file.getvalue()[:4096].lstrip()
        if start.startswith(b"[") or (start.startswith(b"{") and not _is_whole(_first_line(file))):
            file.seek(0)
            raw = _whole(source, file)
            if _take_document(records, raw) or _take_values(records, raw):
                return records
            file = io.BytesIO(raw)
        else:
            file.seek(0)
        _take_lines(records, file)
    return records


def _whole(source: Source, file: BinaryIO) -> bytes:
    raw = file.read(_MAX_DOCUMENT + 1)
    if len(raw) > _MAX_DOCUMENT:
        size = file.seek(0, io.SEEK_END)
        most = content.size_text(_MAX_DOCUMENT)
        raise ImportRefused(source.label, f"one JSON value of {content.size_text(size)}, more than {most} are not read")
    return raw


def _first_line(file: BinaryIO) -> bytes:
    while line := file.readline(_MAX_LINE):
        if line.strip(_MARK + b" \t\r\n"):
            return line
    return b""


def _is_whole(line: bytes) -> bool:
    try:
        encoding.decode(line.strip(_MARK + b" \t\r\n"))
    except ValueError:
        return b"}{" in line  # two objects glued on the first line
    return True


def _take_document(records: Records, raw: bytes) -> bool:
    body = raw.removeprefix(_MARK).strip()
    try:
        records.document = _decoder.decode(body)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError, RecursionError):
        try:
            records.document = encoding.decode(body.decode("utf-8", "replace"))
        except ValueError:
            return False
    records.is_document = True
    return True


def _take_values(records: Records, raw: bytes) -> bool:
    """Objects one behind the other, each over several lines, as a person prints them; false if these are none."""
    text = raw.decode("utf-8", "replace").removeprefix("\ufeff")
    decoder = _tolerant()
    position, line, counted = _next(text, 0), 1, 0
    is_spread = text[position:].partition("\n")[0].strip() == "{"
    while position < len(text):
        line, counted = line + text.count("\n", counted, position), position
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            if not is_spread:
                return False  # lines, of which the first is cut
            again = text.find("\n{", position)
            records.damaged.append(
                (line, "not JSON, perhaps cut off" if again > 0 else "the last object is unfinished")
            )
            end = again if again > 0 else len(text)
        else:
            is_spread = is_spread or "\n" in text[position:end]
            if isinstance(value, list):  # a conversation as a list, and another one behind it
                value = {"messages": value}
            if isinstance(value, dict):
                records.lines.append((line, clean(value)))
            else:
                records.odd.append(line)
        position = _next(text, end)
    return True


def _next(text: str, position: int) -> int:
    """Where the next value starts: behind blanks, and the comma that some put between objects."""
    while position < len(text) and text[position] in " \t\r\n\0\ufeff,":
        position += 1
    return position


def _take_lines(records: Records, file: BinaryIO) -> None:
    number = 1
    while block := file.read(_BLOCK):
        rest = b"" if block.endswith(b"\n") else file.readline(_MAX_LINE)
        is_too_long = len(rest) == _MAX_LINE and not rest.endswith(b"\n")
        block = block[: block.rfind(b"\n") + 1] if is_too_long else block + rest
        ends = encoding.line_ends(block)
        try:
            values = _decoder.decode_lines(block)
        except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError, RecursionError):
            values = []
        if set(map(type, values)) == {dict} and encoding.is_one_a_line(block, ends, len(values)):
            records.lines.extend(enumerate(values, number))
        elif block and not _take_each(records, block, number):
            return
        number += len(ends)
        if is_too_long:
            records.damaged.append((number, f"a line of more than {content.size_text(_MAX_LINE)}, which is not read"))
            if not records.lines:
                return
            while (more := file.readline(_BLOCK)) and not more.endswith(b"\n"):
                pass
            number += 1


def _take_each(records: Records, block: bytes, number: int) -> bool:
    """The lines of ``block`` one by one, each with its fault; false if there is no hope to find any JSON."""
    for line in io.BytesIO(block):
        try:
            value = _decoder.decode(line)
        except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError, RecursionError):
            _take_odd_line(records, number, line)
            if number >= _HOPELESS_LINES and not records.lines:
                return False
        else:
            if type(value) is dict:
                records.lines.append((number, value))
            else:
                records.odd.append(number)
        number += 1
    return True


def _take_odd_line(records: Records, number: int, line: bytes) -> None:
    text = line.decode("utf-8", "replace").strip("\ufeff\0 \t\r\n")
    if not text:
        return
    values, is_whole = _values(text)
    for value in values:
        if isinstance(value, dict):
            records.lines.append((number, clean(value)))
        else:
            records.odd.append(number)
    if not is_whole:
        is_last = not line.endswith(b"\n")
        records.damaged.append((number, "the last line is unfinished" if is_last else "not JSON, perhaps cut off"))


def _values(text: str) -> tuple[list[Any], bool]:
    """The JSON values one behind the other in ``text``, and whether they are all of it."""
    decoder = _tolerant()
    values: list[Any] = []
    position = 0
    while position < len(text):
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            return values, False
        values.append(value)
        while position < len(text) and text[position] in " \t\r\n\0\ufeff":
            position += 1
    return values, True


def _tolerant() -> json.JSONDecoder:
    return json.JSONDecoder(strict=False, parse_constant=lambda _: None)
