"""The heads of a file's messages: role, id, time, tokens, calls and identity, without building what was said.

A listing needs a few fields of every message, and most bytes of a session are texts. A block of sound lines is
decoded into heads at about the speed of reading it; a block with anything odd in it goes the way of ``jsonl``, so both
say the same of every file.

Does not count or write.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from sessions_lib import messages
from sessions_lib.messages import content, encoding
from sessions_lib.messages import tool_calls as calls
from sessions_lib.store.folder import disk, jsonl


class Function(msgspec.Struct, gc=False):
    """The function of a call."""

    name: Any = None
    arguments: Any = msgspec.UNSET
    input: Any = None


_NO_FUNCTION = Function()


class CallHead(msgspec.Struct, gc=False):
    """One entry of ``tool_calls``."""

    id: Any = None
    function: Function | None = None
    custom: Function | None = None


class Head(msgspec.Struct, gc=False):
    """A message without what was said; ``content`` is undecoded, read it with ``prompt``."""

    role: str
    id: Any = None
    timestamp: Any = None
    content: msgspec.Raw = msgspec.Raw(b"null")
    refusal: Any = None
    model: Any = None
    base_url: Any = None
    usage: Any = None
    tool_calls: list[CallHead] | None = None
    tool_call_id: Any = None
    is_error: Any = None
    effect: Any = None
    duration_ms: Any = None
    first_token_ms: Any = None


_decoder = msgspec.json.Decoder(Head)
_decode = msgspec.json.decode
_ODD = (msgspec.DecodeError, msgspec.ValidationError, ValueError, RecursionError)


@dataclass(slots=True)
class Chunk:
    """The heads of some lines that stand together.

    Message i lies in the bytes ``[starts[i], ends[i])`` as the ``places[i]``-th of them; ``identities[i]`` is as
    ``messages.identities`` has it, and ``last_id`` is the last of ``messages.ids``. ``offset`` and ``lines`` are how
    far the file is read: bytes, and lines.
    """

    heads: list[Head] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    identities: list[str] = field(default_factory=list)
    last_id: str = ""
    damaged: int = 0
    offset: int = 0
    lines: int = 0
    is_open: bool = False  # the last line has no newline yet


def read(path: Path, start: int = 0, lines: int = 0, previous: str = "", stop: int | None = None) -> Iterator[Chunk]:
    """The heads of ``path`` from byte ``start`` to ``stop``, a block at a time; ``OSError`` if it cannot be read.

    ``lines`` is the number of lines before ``start``, ``previous`` the id of the message before it.
    """
    descriptor = disk.open_to_read(path)
    try:
        end = start  # of the message before
        for offset, block in jsonl.raw_blocks(descriptor, start, stop):
            chunk = _sound(block, offset, end, previous) or _odd(block, offset, lines, end, previous)
            lines += chunk.lines
            chunk.offset, chunk.lines, chunk.is_open = offset + len(block), lines, not block.endswith(b"\n")
            if chunk.heads:
                end, previous = chunk.ends[-1], chunk.last_id
            yield chunk
    finally:
        os.close(descriptor)


def _sound(block: bytes, offset: int, end: int, previous: str) -> Chunk | None:
    """The heads of a block of sound lines, one message each; ``None`` if it is none."""
    try:
        heads = _decoder.decode_lines(block)
        if not block.isascii():
            block.decode()  # texts that are passed over are not checked by the decoder
        lines = encoding.line_ends(block)
        if not encoding.is_one_a_line(block, lines, len(heads)):
            return None
        chunk = Chunk(heads, places=[0] * len(heads), lines=len(heads))
        starts, ends, identities = chunk.starts, chunk.ends, chunk.identities
        before = 0
        for head, at in zip(heads, lines, strict=True):
            starts.append(end)
            end = offset + at
            ends.append(end)
            given = head.id
            previous = given if type(given) is str and given else messages.chained(previous, _decode(block[before:at]))
            identities.append(_identity(previous, head))
            before = at
        chunk.last_id = previous
    except _ODD:
        return None
    return chunk


def _odd(block: bytes, offset: int, lines: int, end: int, previous: str) -> Chunk:
    """The heads of a block whose lines are read one by one, with what is damaged."""
    chunk = Chunk(lines=block.count(b"\n") + (not block.endswith(b"\n")))
    for _, line in jsonl.lines_of(block, offset, lines + 1, is_end=not block.endswith(b"\n")):
        if line is None:
            continue
        chunk.damaged += line.damage is not None and line.damage.kind != "glued"
        start = end
        for place, (message, stop) in enumerate(zip(line.records, line.ends, strict=True)):
            chunk.last_id = previous = messages.next_id(previous, message)
            chunk.heads.append(_head_of(message))
            chunk.starts.append(start)
            chunk.ends.append(stop)
            chunk.places.append(place)
            chunk.identities.append(messages.identity(previous, message))
            end = stop
    return chunk


def _head_of(message: Mapping[str, Any]) -> Head:
    given: dict[str, Any] = {name: message.get(name) for name in Head.__struct_fields__}
    if not isinstance(given["tool_calls"], list):
        given["tool_calls"] = None
    return Head(**given)  # its content is decoded already: ``prompt`` takes both


def _identity(message_id: str, head: Head) -> str:
    """As ``messages.identity`` has it."""
    raw = bytes(head.content)
    if not raw.startswith(b'"') or raw == b'""':
        said = messages.said(encoding.decode(raw), head.refusal)
    else:  # texts are most of a file: without escapes they stand there as they are hashed
        said = _decode(raw).encode() if b"\\" in raw else raw[1:-1]
    is_answer = head.role == "assistant" and head.tool_calls
    calls = [(call_id, name, arguments) for _, call_id, name, arguments in calls_in(head)] if is_answer else ()
    return messages.made_of(message_id, head.role, said, calls, head.tool_call_id)


def prompt(head: Head) -> str:
    """The text of a prompt, without blanks around it."""
    said: Any = head.content
    if isinstance(said, msgspec.Raw):
        said = encoding.decode(bytes(said))
    return content.text({"content": said, "refusal": head.refusal}).strip()


def calls_in(head: Head) -> list[tuple[int, str, str, str]]:
    """(position, id, tool name, arguments) of each call of an assistant message, as ``calls.calls_of`` has them."""
    listed: list[Any] = head.tool_calls or []
    if not listed or type(listed[0]) is not CallHead:
        found = calls.calls_of({"role": "assistant", "tool_calls": listed})
        return [(call.position, call.id, call.name, call.arguments) for call in found]
    made = []
    for position, call in enumerate(listed):
        function = call.function or call.custom or _NO_FUNCTION
        given = function.input if function.arguments is msgspec.UNSET else function.arguments
        made.append((position, content.as_text(call.id), content.as_text(function.name), content.as_text(given)))
    return made
