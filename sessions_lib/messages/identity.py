"""Which message is which: its id *together with what it says*, so that copies are known, and nothing else is a copy.

Other tools number their messages within a conversation (``1``, ``m1``): of two messages with one id that say different
things, neither is a copy. A message without an id is named by ``h_`` and a hash chained over the messages before it,
so a copy of a file that never had ids (the seeds') still shares its start with the original.

Pure functions. Does not read files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sessions_lib.messages import content
from sessions_lib.messages.content import Message
from sessions_lib.messages.tool_calls import calls_of


def has_id(message: Mapping[str, Any]) -> bool:
    """True if ``message`` carries an ``id`` of its own."""
    return isinstance(message.get("id"), str) and message["id"] != ""


def ids(messages: Iterable[Message]) -> list[str]:
    """The id of each message: its own, else ``h_`` and a hash chained over the messages before it.

    The hash covers role, content, calls and timestamp; only messages without an id are hashed.
    """
    found: list[str] = []
    previous = ""
    for message in messages:
        previous = next_id(previous, message)
        found.append(previous)
    return found


def last_id(messages: Sequence[Message]) -> str:
    """The id of the last of ``messages`` (see ``ids``); what stands before the last own id is not looked at."""
    own = (at for at in range(len(messages) - 1, -1, -1) if has_id(messages[at]))
    return ids(messages[next(own, 0) :])[-1]


def next_id(previous: str, message: Mapping[str, Any]) -> str:
    """The id of ``message`` behind one whose id is ``previous`` (``""``: the first)."""
    return message["id"] if has_id(message) else chained(previous, message)


def identities(messages: Sequence[Message]) -> list[str]:
    """The identity of each message: equal for copies, and for nothing else."""
    return [identity(own, message) for own, message in zip(ids(messages), messages, strict=True)]


def identity(message_id: str, message: Mapping[str, Any]) -> str:
    """The identity of ``message``, whose id (see ``ids``) is ``message_id``: 16 hex digits."""
    calls = [(call.id, call.name, call.arguments) for call in calls_of(message)]
    text = said(message.get("content"), message.get("refusal"))
    return made_of(message_id, str(message.get("role")), text, calls, message.get("tool_call_id"))


def made_of(message_id: str, role: str, said: bytes, calls: Iterable[tuple[str, str, str]], answers: Any) -> str:
    """An identity, for a reader that has its parts and no message.

    ``said`` is what the function of that name gives, ``calls`` are (id, name, arguments) as ``calls_of`` has them,
    ``answers`` is the ``tool_call_id``.
    """
    named = f"\0{message_id}\0{role}\0{content.as_text(answers) if answers else ''}"
    for call in calls:
        named += "\0" + "\0".join(call)
    digest = hashlib.blake2b(said, digest_size=8)
    digest.update(named.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def said(given: Any, refusal: Any = None) -> bytes:
    """What a content says, the same for every way to write it down as JSON; without any, the ``refusal``."""
    if given is None or given == "":
        given = content.as_text(refusal)
    if isinstance(given, str):
        return given.encode("utf-8", "surrogatepass")
    return b"\0" + _plain(given)


def chained(previous: str, message: Mapping[str, Any]) -> str:
    """The id of a message that has none, behind one with the id ``previous`` (``""``: the first)."""
    said = message.get("content")
    if not isinstance(said, str):
        return "h_" + digest([previous, *_what_was_said(message), message.get("timestamp")])
    rest = [previous, message.get("role"), message.get("tool_calls"), message.get("tool_call_id")]
    # Texts are most of a file: they are hashed as they are, not as JSON.
    text = said.encode("utf-8", "surrogatepass")
    return "h_" + digest([*rest, message.get("timestamp")], text)


def content_key(message: Mapping[str, Any]) -> str:
    """A hash of what was said, without id, time and order of keys: equal for copies that another tool re-stamped."""
    return "c_" + digest(_what_was_said(message))


def _what_was_said(message: Mapping[str, Any]) -> list[Any]:
    return [
        message.get("role"),
        message.get("content"),
        message.get("tool_calls"),
        message.get("tool_call_id"),
    ]


def digest(values: list[Any], text: bytes = b"") -> str:
    """24 hex digits of ``values``, however deep they are nested, and of ``text``."""
    hashed = hashlib.blake2b(_plain(values), digest_size=12)
    if text:
        hashed.update(b"\0" + text)
    return hashed.hexdigest()


def _plain(value: Any) -> bytes:
    try:
        plain = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    except RecursionError:
        plain = "".join(_flat(value))
    return plain.encode("utf-8", "surrogatepass")


def _flat(value: Any) -> list[str]:
    """What ``value`` holds, for one that is nested deeper than ``json`` goes."""
    found = []
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Mapping):
            found.append(f"{{{len(item)}")
            for key in sorted(item, key=str):
                waiting += [item[key], str(key)]
        elif isinstance(item, list | tuple):
            found.append(f"[{len(item)}")
            waiting += item
        else:
            found.append(json.dumps(item, default=str))
    return found
