"""One line: bytes → the messages in it and what is wrong with it. Whatever the bytes are, nothing is raised.

Strict JSON is read by msgspec; all else by the standard library, tolerantly and much slower, because it is rare.

Does not know files: offsets and line numbers are given.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import msgspec

from sessions_lib.messages import clean, encoding, is_message
from sessions_lib.messages.content import Message
from sessions_lib.store.records import DamagedLine

_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_GLUED_START = re.compile(r'\{\s*"(?:role|content|id|timestamp|tool_calls|tool_call_id)"\s*:')
UTF16 = "the file is UTF-16, not UTF-8; convert it with: iconv -f UTF-16 -t UTF-8"
TOO_DEEP = "nested too deeply to be read; it stays in the file as it is"
_MAX_RECOVERIES = 16  # candidates tried for a message behind a torn one; each costs a scan of the rest of the line


@dataclass(frozen=True, slots=True)
class Line:
    """One line: number (from 1), byte range ``[start, end)`` with its newline, its messages, and its fault if any."""

    number: int
    start: int
    end: int
    records: list[Message]
    damage: DamagedLine | None
    ends: tuple[int, ...] = ()  # byte offset behind each record


def parse_line(raw: bytes, number: int, start: int, is_last: bool = False) -> Line | None:
    """One line, ``raw`` without its newline if ``is_last`` and it had none; ``None`` if it is blank."""
    try:
        return _parse_line(raw, number, start, is_last)
    except RecursionError:  # how deep one can read depends on who called: what is deep is read with the whole stack
        line: Line | None = encoding.on_an_empty_stack(_parse_deep_line, raw, number, start, is_last)
        return line


def _parse_deep_line(raw: bytes, number: int, start: int, is_last: bool) -> Line | None:
    try:
        return _parse_line(raw, number, start, is_last)
    except RecursionError:
        is_unfinished = is_last and not raw.endswith(b"\n")
        kind, reason = ("torn", "the last line is unfinished") if is_unfinished else ("too deep", TOO_DEEP)
        return Line(number, start, start + len(raw), [], _damage(number, kind, reason))


def _parse_line(raw: bytes, number: int, start: int, is_last: bool) -> Line | None:
    end = start + len(raw)
    # A line as we write it is decoded as it is: stripping would copy it, and it may be a gigabyte.
    body = raw if raw.startswith(b"{") and raw.endswith(b"}\n") else raw.strip()
    if not body:
        return None
    try:
        value = _decoder.decode(body)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError):
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
        if _is_utf16(raw):
            damage = _damage(number, "UTF-16", UTF16)
        elif is_unfinished and not is_whole:
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


def _is_utf16(raw: bytes) -> bool:
    """True for a line whose every second byte is NUL, as ASCII text is in UTF-16: the names of JSON are ASCII."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return True
    head = raw.strip(b"\r\n")[:64]
    return len(head) > 8 and max(head[::2].count(0), head[1::2].count(0)) >= len(head) // 2 - len(head) // 8


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
    decoder = encoding.json_decoder()
    values: list[Any] = []
    ends: list[int] = []
    position = 0
    while position < len(text):
        try:
            value, position = decoder.raw_decode(text, position)
        except ValueError:
            return values + _behind_a_torn_one(text, position, decoder), ends, False
        values.append(value)
        ends.append(position)
        while position < len(text) and text[position] in " \t\r\n\0\ufeff":
            position += 1
    return values, ends, True


def _behind_a_torn_one(text: str, position: int, decoder: json.JSONDecoder) -> list[Any]:
    for tried, match in enumerate(_GLUED_START.finditer(text, position)):
        if tried >= _MAX_RECOVERIES:
            break
        # Behind ':', ',' or '[' it would be a value inside the torn object, not a message of its own; but not right
        # behind a whole object, where only the comma is wrong.
        between = text[position : match.start()].strip()
        if between != "," and text[: match.start()].rstrip()[-1:] in (":", ",", "["):
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
