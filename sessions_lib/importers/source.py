"""A file to import, on disk or inside a zip, opened and cut into records.

JSON Lines and whole JSON documents are told apart by content. Each line is parsed once. A byte-order mark, lone
surrogates, NaN, blank lines and two objects glued on one line are read; what cannot be read is reported by line.

Does not know what the records mean.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from sessions_lib.errors import ImportRefused, StorageError
from sessions_lib.messages import clean, encoding
from sessions_lib.store.folder import jsonl

_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_BLOCK = 1 << 20
_HOPELESS_LINES = 200  # this many lines without one JSON object: not JSON Lines, the rest is not read
SQLITE = b"SQLite format 3\x00"


@dataclass(frozen=True, slots=True)
class Source:
    """A file, or ``member`` of the zip ``path``; ``asked`` is true if a person named the file itself."""

    path: Path
    member: str | None = None
    asked: bool = True

    @property
    def name(self) -> str:
        """The file's own name."""
        return self.member.rsplit("/", 1)[-1] if self.member else self.path.name

    @property
    def label(self) -> Path:
        """What to call it in messages: the path, a member behind its zip's name."""
        return self.path / self.member if self.member else self.path

    def open(self) -> BinaryIO:
        """The file's bytes; ``StorageError`` if they cannot be read."""
        try:
            if self.member is None:
                return self.path.open("rb")
            with zipfile.ZipFile(self.path) as archive:
                return io.BytesIO(archive.read(self.member))
        except (OSError, zipfile.BadZipFile, RuntimeError, NotImplementedError, KeyError) as error:
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
            other = self.path.with_name(stem + suffix)
            return other.read_bytes() if other.is_file() else None
        folder = self.member.rpartition("/")[0]
        try:
            return Source(self.path, f"{folder}/{stem}{suffix}" if folder else stem + suffix).open().read()
        except StorageError:
            return None


@dataclass(slots=True)
class Records:
    """What a file holds: ``document`` (one JSON value) or ``lines`` (number, record); ``head`` is its first bytes.

    ``damaged`` are the lines that could not be read, ``odd`` the numbers of lines that are JSON but no object.
    """

    head: bytes = b""
    document: Any = None
    is_document: bool = False
    lines: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    damaged: list[tuple[int, str]] = field(default_factory=list)
    odd: list[int] = field(default_factory=list)

    @property
    def first(self) -> dict[str, Any]:
        """The first record, ``{}`` if there is none."""
        return self.lines[0][1] if self.lines else {}


def load(source: Source) -> Records:
    """All records of ``source``; never raises for what is in it, only if it cannot be read."""
    with source.open() as file:
        head = file.read(4096)
        file.seek(0)
        records = Records(head=head)
        start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
        if head.startswith(SQLITE) or not start:
            return records
        if start.startswith((b"\xff\xfe", b"\xfe\xff")):
            file = io.BytesIO(file.read().decode("utf-16", "replace").encode())
            start = file.getvalue()[:4096].lstrip()
        if start.startswith(b"["):
            raw = file.read()
            if _take_document(records, raw):
                return records
            file = io.BytesIO(raw)
        elif start.startswith(b"{") and not _is_whole(_first_line(file)):
            file.seek(0)
            raw = file.read()
            if _take_document(records, raw):
                return records
            file = io.BytesIO(raw)
        else:
            file.seek(0)
        _take_lines(records, file)
    return records


def _first_line(file: BinaryIO) -> bytes:
    for line in file:
        if line.strip(b"\xef\xbb\xbf \t\r\n"):
            return line
    return b""


def _is_whole(line: bytes) -> bool:
    try:
        encoding.decode(line.strip(b"\xef\xbb\xbf \t\r\n"))
    except ValueError:
        return b"}{" in line  # two objects glued on the first line
    return True


def _take_document(records: Records, raw: bytes) -> bool:
    body = raw.removeprefix(b"\xef\xbb\xbf").strip()
    try:
        records.document = _decoder.decode(body)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError, RecursionError):
        try:
            records.document = encoding.decode(body.decode("utf-8", "replace"))
        except ValueError:
            return False
    records.is_document = True
    return True


def _take_lines(records: Records, file: BinaryIO) -> None:
    number = 1
    while block := file.read(_BLOCK):
        block += file.readline()
        ends = jsonl.line_ends(block)
        try:
            values = _decoder.decode_lines(block)
        except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError, RecursionError):
            values = []
        if set(map(type, values)) == {dict} and jsonl.is_one_a_line(block, ends, len(values)):
            records.lines.extend(enumerate(values, number))
        elif not _take_each(records, block, number):
            return
        number += len(ends)


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
    decoder = json.JSONDecoder(strict=False, parse_constant=lambda _: None)
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


_EXTENSIONS = (".jsonl", ".json", ".ndjson")


def find(paths: list[Path]) -> Iterator[Source | ImportRefused]:
    """The files to import in ``paths``, in order: files as they are, folders and zips searched for JSON and JSONL.

    A path that is not there, or a folder or zip with nothing to import in it, is an ``ImportRefused`` among them.
    Metadata beside a session (``.meta.json``), hidden folders inside a folder and symbolic links are left out.
    """
    for path in paths:
        path = path.expanduser()
        if path.is_dir():
            yield from _in_folder(path)
        elif not path.exists():
            yield ImportRefused(path, "there is no such file or folder")
        elif zipfile.is_zipfile(path):
            yield from _in_zip(path)
        else:
            yield Source(path)


def _in_folder(folder: Path) -> Iterator[Source | ImportRefused]:
    found = False
    for path in _walk(folder):
        if path.suffix.lower() == ".zip":
            if zipfile.is_zipfile(path):
                found = True
                yield from _in_zip(path)
        elif _is_wanted(path.name):
            found = True
            yield Source(path, asked=False)
    if not found:
        yield ImportRefused(folder, "a folder without a .jsonl, .json or .zip file")


def _walk(folder: Path) -> Iterator[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    for path in entries:
        if path.is_symlink():
            continue
        if path.is_dir():
            if not path.name.startswith("."):
                yield from _walk(path)
        elif path.is_file():
            yield path


def _is_wanted(name: str) -> bool:
    lower = name.lower()
    return lower.endswith(_EXTENSIONS) and not lower.endswith(".meta.json") and not lower.startswith(".")


def _in_zip(path: Path) -> Iterator[Source | ImportRefused]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if _is_wanted(name.rsplit("/", 1)[-1])]
    except (OSError, zipfile.BadZipFile) as error:
        yield ImportRefused(path, f"a zip that cannot be read ({error})")
        return
    if not names:
        yield ImportRefused(path, "a zip without a .jsonl or .json file")
    for name in names:
        if not name.startswith("__MACOSX/"):
            yield Source(path, name, asked=False)
