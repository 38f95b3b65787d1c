"""Messages ↔ JSON: the one encoder and the one decoder.

What is written is compact JSON with U+2028, U+2029 and U+0085 escaped (the seeds' ``splitlines`` breaks on them), a
lone surrogate as U+FFFD, NaN and infinity as ``null``. Strict JSON is read by msgspec; all else by the standard
library, tolerantly and much slower, because it is rare.

Does not know lines or files.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from sessions_lib.errors import InvalidMessage
from sessions_lib.messages.message import clean

_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_encoder = msgspec.json.Encoder()
_ESCAPED = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"), (b"\xc2\x85", b"\\u0085"))


def encode(record: Any) -> bytes:
    """``record`` as one line without its newline; ``InvalidMessage`` if it holds what JSON cannot.

    >>> encode({"role": "user", "content": "a\\u2028b"})
    b'{"role":"user","content":"a\\\\u2028b"}'
    """
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
        return _decoder.decode(line)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError, RecursionError):
        text = line if isinstance(line, str) else line.decode("utf-8")
        try:
            return clean(json_decoder().decode(text.lstrip("\ufeff")))
        except RecursionError as error:
            raise ValueError("nested too deeply") from error


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
