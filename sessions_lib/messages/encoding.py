"""Messages ↔ JSON: the one encoder and the one decoder.

What is written is compact JSON with U+2028, U+2029 and U+0085 escaped (the seeds' ``splitlines`` breaks on them), a
lone surrogate as U+FFFD, NaN and infinity as ``null``. Strict JSON is read by msgspec; all else by the standard
library, tolerantly and much slower, because it is rare.

Both go as deep as Python's stack: what is written is nested ``MAX_DEPTH`` levels at most, so whoever reads it, from
however deep a call, can. Deeper JSON of other programs is read on a stack of its own, so that it is always read or
never.

Does not know files.
"""

from __future__ import annotations

import _thread
import gc
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from sessions_lib.errors import InvalidMessage
from sessions_lib.messages.message import clean

_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_encoder = msgspec.json.Encoder()
_NESTED = (dict, list, tuple)
MAX_DEPTH = 200
_OPENS, _CLOSES = b"{}"
_ESCAPED = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"), (b"\xc2\x85", b"\\u0085"))


def encode(record: Any) -> bytes:
    """``record`` as one line without its newline; ``InvalidMessage`` if it holds what JSON cannot.

    >>> encode({"role": "user", "content": "a\\u2028b"})
    b'{"role":"user","content":"a\\\\u2028b"}'
    """
    if is_too_deep(record):
        raise InvalidMessage(
            f"This message cannot be stored as JSON: it is nested more than {MAX_DEPTH} levels deep. Give it flatter."
        )
    try:
        try:
            line = _encoder.encode(record)
        except UnicodeEncodeError:
            line = _encoder.encode(clean(record))
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        raise InvalidMessage(
            f"This message cannot be stored as JSON: {error}. Give texts, numbers and lists."
        ) from error
    return _escaped(line)


def is_too_deep(value: Any) -> bool:
    """True for a value of more than ``MAX_DEPTH`` objects and lists inside each other; one that holds itself is one."""
    level = [value] if isinstance(value, _NESTED) else []
    depth = 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            return True
        inner = [
            item
            for holder in level
            for item in (holder.values() if isinstance(holder, dict) else holder)
            if isinstance(item, _NESTED)
        ]
        level = list({id(item): item for item in inner}.values())
    return False


def on_an_empty_stack(function: Callable[..., Any], *arguments: Any) -> Any:
    """``function(*arguments)`` as if nothing had called it: what is nested takes all of Python's stack."""
    done = _thread.allocate_lock()
    done.acquire()
    outcome: list[tuple[bool, Any]] = []

    def run() -> None:
        try:
            outcome.append((True, function(*arguments)))
        except BaseException as error:  # noqa: BLE001 - raised again below, in the caller's thread
            outcome.append((False, error))
        finally:
            done.release()

    _thread.start_new_thread(run, ())
    done.acquire()
    is_fine, result = outcome[0]
    if not is_fine:
        raise result
    return result


def encode_lines(records: Sequence[Any]) -> bytes:
    """``records`` as lines with their newlines."""
    return b"".join([encode(record) + b"\n" for record in records])


def _escaped(line: bytes) -> bytes:
    if line.isascii():  # most are, and it is found out at memory speed
        return line
    for raw, escape in _ESCAPED:
        if raw in line:
            line = line.replace(raw, escape)
    return line


def decode(line: bytes | str) -> Any:
    """The JSON value in ``line``, read tolerantly; ``ValueError`` if there is none.

    Lone surrogates become U+FFFD, NaN and infinity ``None``, integers keep every digit.
    """
    try:
        return _decode(line)
    except RecursionError:
        try:
            return on_an_empty_stack(_decode, line)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error


def _decode(line: bytes | str) -> Any:
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError):
        text = line if isinstance(line, str) else line.decode("utf-8")
        return clean(json_decoder().decode(text.lstrip("\ufeff")))


def json_decoder() -> json.JSONDecoder:
    """The tolerant reader behind ``decode``, for texts with several values."""
    return json.JSONDecoder(strict=False, parse_constant=lambda _: None, parse_float=_finite)


def _finite(text: str) -> float | None:
    number = float(text)
    return number if number - number == 0 else None


@contextmanager
def without_gc() -> Iterator[None]:
    """The garbage collector rests while many records are read."""
    # Thousands of new dicts make the collector walk all of them again and again: 1.4 times the time at 95 MB.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def line_ends(block: bytes) -> list[int]:
    """Where each line of ``block`` ends: behind its newline, the last one perhaps without."""
    ends, end = [], 0
    while end := block.find(b"\n", end) + 1:
        ends.append(end)
    if not block.endswith(b"\n"):
        ends.append(len(block))
    return ends


def is_one_a_line(block: bytes, ends: Sequence[int], values: int) -> bool:
    """True if each line, ending at ``ends``, holds one of the ``values`` objects that were decoded from ``block``.

    The decoder takes two values on a line, none on another, and one over two. Inside a value no ``}`` is followed by a
    ``{`` on the next line, so where every line break stands between these two, it stands between two values.
    """
    if len(ends) != values or not block.startswith(b"{"):
        return False
    return all(
        block[end] == _OPENS and (block[end - 2] == _CLOSES or block[end - 3 : end - 1] == b"}\r") for end in ends[:-1]
    )
