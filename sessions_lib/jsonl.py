r"""Bytes ↔ lines: append one line, read lines with a report of damage, read the end, copy a prefix.

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

import errno
import gc
import json
import os
import re
import stat
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from sessions_lib.content import Message
from sessions_lib.errors import InvalidMessage, SessionError, StorageError
from sessions_lib.messages import clean, is_message

BLOCK = 1 << 20
_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_encoder = msgspec.json.Encoder()
_ESCAPED = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"), (b"\xc2\x85", b"\\u0085"))
_GLUED_START = re.compile(r'\{\s*"(?:role|content|id|timestamp|tool_calls|tool_call_id)"\s*:')
_MAX_RECOVERIES = 16  # candidates tried for a message behind a torn one; each costs a scan of the rest of the line


@dataclass(frozen=True, slots=True)
class DamagedLine:
    """A line that is no message as it stands: its number (from 1), what is wrong, and the kind of fault in a word.

    Kinds: ``torn``, ``not JSON``, ``not a message``, ``undecodable``, ``NUL``, ``glued``. Of the last three the
    messages were read all the same.
    """

    line: int
    reason: str
    kind: str


@dataclass(frozen=True, slots=True)
class Line:
    """One line: number (from 1), byte range ``[start, end)`` with its newline, its messages, and its fault if any."""

    number: int
    start: int
    end: int
    records: list[Message]
    damage: DamagedLine | None
    ends: tuple[int, ...] = ()  # byte offset behind each record


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


def encode(record: Any) -> bytes:
    """``record`` as one line without its newline; ``InvalidMessage`` if it holds what JSON cannot.

    >>> encode({"role": "user", "content": "a\\u2028b"})
    b'{"role":"user","content":"a\\\\u2028b"}'
    """
    try:
        line = _encoder.encode(record)
    except UnicodeEncodeError:
        line = _encoder.encode(clean(record))
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        raise InvalidMessage(
            f"This message cannot be stored as JSON: {error}. Give texts, numbers and lists."
        ) from error
    for raw, escape in _ESCAPED:
        if raw in line:
            line = line.replace(raw, escape)
    return line


def decode(line: bytes | str) -> Any:
    """The JSON value in ``line``, read tolerantly; ``ValueError`` if there is none.

    Lone surrogates become U+FFFD, NaN and infinity ``None``, integers keep every digit.
    """
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError, RecursionError):
        text = line if isinstance(line, str) else line.decode("utf-8")
        try:
            return clean(_json().decode(text.lstrip("\ufeff")))
        except RecursionError as error:
            raise ValueError("nested too deeply") from error


def _json() -> json.JSONDecoder:
    return json.JSONDecoder(strict=False, parse_constant=lambda _: None, parse_float=_finite)


def _finite(text: str) -> float | None:
    number = float(text)
    return number if number - number == 0 else None


# ---------------------------------------------------------------- reading


def parse_line(raw: bytes, number: int, start: int, is_last: bool = False) -> Line | None:
    """One line, ``raw`` without its newline if ``is_last`` and it had none; ``None`` if it is blank."""
    end = start + len(raw)
    body = raw.strip()
    if not body:
        return None
    try:
        value = _decoder.decode(body)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError, RecursionError):
        return _parse_odd_line(raw, number, start, is_last and not raw.endswith(b"\n"))
    if is_message(value):
        return Line(number, start, end, [value], None, (end,))
    return Line(number, start, end, [], _damage(number, "not a message", "JSON, but no object with a string role"))


def _damage(number: int, kind: str, reason: str) -> DamagedLine:
    return DamagedLine(number, reason, kind)


def _parse_odd_line(raw: bytes, number: int, start: int, is_unfinished: bool) -> Line | None:
    """A line that is not one strict JSON value: find every message in it and say what is wrong."""
    end = start + len(raw)
    text = raw.decode("utf-8", "replace")
    undecodable = "\ufffd" in text and not _is_utf8(raw)
    stripped = text.strip("\ufeff \t\r\n")
    has_nul = stripped.startswith("\0") or stripped.endswith("\0")
    stripped = stripped.strip("\0\ufeff \t\r\n")
    if not stripped:
        return Line(number, start, end, [], _damage(number, "NUL", "a run of NUL bytes")) if has_nul else None
    values, value_ends, is_whole = _values_in(stripped)
    records = [clean(value) for value in values if is_message(value)]
    if not records:
        if is_unfinished and not is_whole:
            damage = _damage(number, "torn", "the last line is unfinished")
        elif undecodable:
            damage = _damage(number, "undecodable", "not UTF-8 and not JSON")
        elif is_whole and values:
            damage = _damage(number, "not a message", "JSON, but no object with a string role")
        else:
            damage = _damage(number, "not JSON", "not JSON, perhaps cut off")
        return Line(number, start, end, [], damage)
    if not is_whole:
        fault = _damage(number, "not JSON", "part of the line is not JSON; the message in it was read")
    elif undecodable:
        fault = _damage(number, "undecodable", "a byte that is not UTF-8, read as U+FFFD")
    elif has_nul:
        fault = _damage(number, "NUL", "NUL bytes around the message, which was read")
    elif len(values) > 1:
        fault = _damage(number, "glued", f"{len(values)} objects on one line, all read")
    else:
        return Line(number, start, end, records, None, (end,))  # BOM, NaN, lone surrogate: no damage
    ends = [end] * len(records)
    if fault.kind == "glued" and len(records) == len(values):
        lead = len(text[: text.index(stripped[0])].encode())
        ends = [start + lead + len(stripped[:stop].encode()) for stop in value_ends[:-1]] + [end]
    return Line(number, start, end, records, fault, tuple(ends))


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _values_in(text: str) -> tuple[list[Any], list[int], bool]:
    """The JSON values that stand one behind the other in ``text``, where each ends, and whether they are all of it.

    Where the text starts torn, a message that starts inside it and reaches the end is found too.
    """
    decoder = _json()
    values: list[Any] = []
    ends: list[int] = []
    position = 0
    while position < len(text):
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            return values + _behind_a_torn_one(text, position, decoder), ends, False
        values.append(value)
        ends.append(position)
        while position < len(text) and text[position] in " \t\r\n\0\ufeff":
            position += 1
    return values, ends, True


def _behind_a_torn_one(text: str, position: int, decoder: json.JSONDecoder) -> list[Any]:
    for tried, match in enumerate(_GLUED_START.finditer(text, position + 1)):
        if tried >= _MAX_RECOVERIES:
            break
        # Behind ':', ',' or '[' it would be a value inside the torn object, not a message of its own.
        if text[: match.start()].rstrip()[-1:] in (":", ",", "["):
            continue
        found: list[Any] = []
        at = match.start()
        try:
            while at < len(text):
                value, at = decoder.raw_decode(text, at)
                found.append(value)
        except (ValueError, RecursionError):
            continue
        if all(is_message(value) for value in found):
            return found
    return []


def open_to_read(path: Path) -> int:
    """A descriptor of the regular file ``path``; a symbolic link is refused, so nothing outside is ever read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise StorageError(path, "a symbolic link, which is never followed", "Replace it by the file.") from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StorageError(path, "not a regular file", "Move it out of the folder.")
    return descriptor


def _raw_blocks(descriptor: int, start: int, stop: int | None = None) -> Iterator[tuple[int, bytes]]:
    """``(offset, bytes)`` blocks that end at a newline, but for the last one; memory is one block and one line."""
    offset, position = start, start
    rest: list[bytes] = []
    while True:
        want = BLOCK if stop is None else min(BLOCK, stop - position)
        block = os.pread(descriptor, want, position) if want > 0 else b""
        position += len(block)
        if not block:
            if rest:
                yield offset, b"".join(rest)
            return
        cut = block.rfind(b"\n") + 1
        if not cut:
            rest.append(block)
            continue
        rest.append(block[:cut])
        whole = b"".join(rest) if len(rest) > 1 else rest[0]
        yield offset, whole
        offset += len(whole)
        rest = [block[cut:]] if cut < len(block) else []


def _lines_of(block: bytes, offset: int, number: int, is_end: bool) -> Iterator[tuple[int, Line | None]]:
    """The lines of one block, as ``(number, line)``; a blank line is ``None``."""
    start = 0
    while start < len(block):
        cut = block.find(b"\n", start) + 1 or len(block)
        yield number, parse_line(block[start:cut], number, offset + start, is_end and cut == len(block))
        start, number = cut, number + 1


@contextmanager
def _without_gc() -> Iterator[None]:
    # Thousands of new dicts make the collector walk all of them again and again: 1.4 times the time at 95 MB.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def read(path: Path, start: int = 0, line_number: int = 1) -> Lines:
    """Every message of ``path`` from byte ``start`` on, with a report of damage; ``OSError`` if it cannot be read.

    ``start`` must be the start of a line, ``line_number`` its number. Offsets count from the file's start.
    """
    lines = Lines(size=start, line_count=line_number - 1)
    descriptor = open_to_read(path)
    try:
        with _without_gc():
            for offset, block in _raw_blocks(descriptor, start):
                _read_block(lines, offset, block)
    finally:
        os.close(descriptor)
    return lines


def _read_block(lines: Lines, offset: int, block: bytes) -> None:
    try:
        records = _decoder.decode_lines(block)
        are_messages = all(type(r) is dict and type(r.get("role")) is str for r in records)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError, RecursionError):
        are_messages, records = False, []
    count = block.count(b"\n") + (not block.endswith(b"\n"))
    if are_messages and len(records) == count:
        end = 0
        for number in range(count):
            end = block.find(b"\n", end) + 1 or len(block)
            lines.ends.append(offset + end)
            lines.line_numbers.append(lines.line_count + number + 1)
        lines.messages += records
    else:
        for _, line in _lines_of(block, offset, lines.line_count + 1, is_end=not block.endswith(b"\n")):
            if line is not None:
                _take(lines, line)
    lines.line_count += count
    lines.size = offset + len(block)


def _take(lines: Lines, line: Line) -> None:
    lines.messages += line.records
    lines.ends.extend(line.ends)
    lines.line_numbers.extend([line.number] * len(line.records))
    if line.damage is not None:
        (lines.glued if line.damage.kind == "glued" else lines.damaged).append(line.damage)


def iterate(path: Path, start: int = 0, line_number: int = 1) -> Iterator[Line]:
    """The lines of ``path`` from byte ``start`` on, one at a time, blank ones left out; memory is one block."""
    descriptor = open_to_read(path)
    try:
        for offset, block in _raw_blocks(descriptor, start):
            for _, line in _lines_of(block, offset, line_number, is_end=not block.endswith(b"\n")):
                if line is not None:
                    yield line
            line_number += block.count(b"\n")
    finally:
        os.close(descriptor)


def tail(path: Path, count: int) -> list[Message]:
    """The last ``count`` messages of ``path``; reads only the end of the file, however long it is."""
    descriptor = open_to_read(path)
    try:
        position = os.fstat(descriptor).st_size
        found: list[Message] = []
        rest = b""
        while position > 0 and len(found) < count:
            size = min(BLOCK // 8, position)
            position -= size
            block = os.pread(descriptor, size, position) + rest
            cut = 0 if position == 0 else block.find(b"\n") + 1
            if position and not cut:
                rest = block
                continue
            rest = block[:cut]
            records = [m for _, line in _lines_of(block[cut:], 0, 1, is_end=True) if line for m in line.records]
            found = records + found
        return found[-count:] if count else []
    finally:
        os.close(descriptor)


# ---------------------------------------------------------------- writing


def append(path: Path, records: Sequence[Any], *, create: bool = False) -> int:
    """Add each of ``records`` as a line in one write, on disk when it returns; the file's new size in bytes.

    A torn last line is ended first, so a record never joins it. ``create`` makes a missing file (0600), else
    ``FileNotFoundError``. If the disk refuses, the file keeps its previous size and ``StorageError`` is raised.
    """
    payload = b"".join(encode(record) + b"\n" for record in records)
    try:
        descriptor, is_new = _open_to_append(path, create)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _refused(path, error) from error
    try:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            payload = b"\n" + payload
        try:
            _write_all(descriptor, payload)
            _sync(descriptor)
            if is_new:
                sync_folder(path.parent)
        except OSError as error:
            _cut_back(descriptor, size, len(payload))
            raise _refused(path, error) from error
        return size + len(payload)
    finally:
        os.close(descriptor)


def _open_to_append(path: Path, create: bool) -> tuple[int, bool]:
    flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor, is_new = os.open(path, flags), False
    except FileNotFoundError:
        if not create:
            raise
        descriptor, is_new = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600), True
        os.fchmod(descriptor, 0o600)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    if mode & 0o077:  # written by a program that does not mind who reads it
        with suppress(OSError):  # another account's file: its owner decides
            os.fchmod(descriptor, 0o600)
    return descriptor, is_new


def _write_all(descriptor: int, payload: bytes) -> None:
    written = os.write(descriptor, payload)
    while written < len(payload):  # a nearly full disk takes a part; the next write says why
        written += os.write(descriptor, payload[written:])


_sync = getattr(os, "fdatasync", os.fsync)


def _cut_back(descriptor: int, size: int, added: int) -> None:
    try:
        # A program that knows no lock may have written behind us: then its bytes stay, and the next append ends ours.
        if os.fstat(descriptor).st_size <= size + added:
            os.ftruncate(descriptor, size)
    except OSError:
        return  # the half line stays torn; reading reports it and the next append ends it


def _refused(path: Path, error: OSError) -> SessionError:
    if error.errno == errno.ELOOP:
        return StorageError(path, "a symbolic link, which is never followed", "Replace it by the file.")
    return StorageError(path, f"cannot be written ({error.strerror or error})")


def sync_folder(folder: Path) -> None:
    """Put the folder's entries on disk, where the system can."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems have no such call
            raise
    finally:
        os.close(descriptor)


def copy_prefix(source: Path, target: Path, size: int) -> None:
    """Copy the first ``size`` bytes of ``source`` to the new file ``target`` (0600), on disk when it returns.

    A reflink where the file system has them. ``FileExistsError`` if there is a ``target``; ``StorageError``, and no
    target, if the disk refuses or the source is shorter than ``size``.
    """
    reading = open_to_read(source)
    try:
        try:
            writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except FileExistsError:
            raise
        except OSError as error:
            raise _refused(target, error) from error
        try:
            os.fchmod(writing, 0o600)
            _copy(reading, writing, size)
            _sync(writing)
            sync_folder(target.parent)
        except OSError as error:
            os.unlink(target)
            raise _refused(target, error) from error
        finally:
            os.close(writing)
    finally:
        os.close(reading)


def _copy(reading: int, writing: int, size: int) -> None:
    left = size
    use_range = hasattr(os, "copy_file_range")
    while left:
        if use_range:
            try:
                done = os.copy_file_range(reading, writing, left)
            except OSError as error:
                if error.errno not in (errno.EXDEV, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL):
                    raise
                use_range = False
                continue
        else:
            block = os.read(reading, min(BLOCK, left))
            _write_all(writing, block) if block else None
            done = len(block)
        if not done:
            raise OSError(errno.EIO, "the source became shorter while it was copied")
        left -= done


def write_new(path: Path, content: bytes) -> None:
    """Write the new file ``path`` (0600), on disk when it returns; ``FileExistsError`` if there is one."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        raise
    except OSError as error:
        raise _refused(path, error) from error
    try:
        os.fchmod(descriptor, 0o600)
        _write_all(descriptor, content)
        _sync(descriptor)
        sync_folder(path.parent)
    except OSError as error:
        os.unlink(path)
        raise _refused(path, error) from error
    finally:
        os.close(descriptor)


def replace(path: Path, content: bytes) -> None:
    """Put ``content`` in place of ``path`` in one step, through a sibling and a rename; readers see old or new."""
    sibling = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    try:
        write_new(sibling, content)
        os.replace(sibling, path)
        sync_folder(path.parent)
    except OSError as error:
        sibling.unlink(missing_ok=True)
        raise _refused(path, error) from error
