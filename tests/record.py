"""What the tests of the record share: messages to type in once, and files written as bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sessions_lib.store.records import Fault
from sessions_lib.store.store import open_store

LIGHTHOUSES = {"role": "user", "content": "List the lighthouses on the north shore."}
GULL = {"role": "assistant", "content": "Gull Point and Cape Ember."}
TALLER = {"role": "user", "content": "Which one is taller?"}
METRES = {"role": "assistant", "content": "Cape Ember, by six metres."}


def call(*ids: str, name: str = "tide", arguments: str = '{"port":"Ember"}', content: Any = None) -> dict[str, Any]:
    """An assistant message that calls a tool once for each id."""
    made = [{"id": one, "type": "function", "function": {"name": name, "arguments": arguments}} for one in ids]
    return {"role": "assistant", "content": content, "tool_calls": made}


def result(call_id: str, content: Any = "2.1 m", **more: Any) -> dict[str, Any]:
    """A tool result."""
    return {"role": "tool", "content": content, "tool_call_id": call_id, **more}


def write(path: Path, *lines: Any, end: str = "\n") -> Path:
    """Write the file as another tool would: dicts as JSON, text and bytes as they are."""
    raw = [
        line if isinstance(line, bytes) else line.encode() if isinstance(line, str) else json.dumps(line).encode()
        for line in lines
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\n".join(raw) + (end.encode() if lines else b""))
    return path


def check(folder: Path, session: str) -> list[Fault]:
    """Every fault of a session of ``folder``."""
    return open_store(folder).faults(session)


def repair(folder: Path, session: str, *, write: bool = False) -> list[Fault]:
    """What a repair would mend; with ``write`` it does."""
    store = open_store(folder)
    return store.repair(session) if write else [fault for fault in store.faults(session) if fault.can_be_repaired]


def said(messages: list[dict[str, Any]]) -> list[Any]:
    """The contents, in order."""
    return [message.get("content") for message in messages]


def is_valid_request(request: list[dict[str, Any]]) -> bool:
    """True if every call has exactly one result right behind its message, and every result a call: a strict provider."""
    index = 0
    while index < len(request):
        message = request[index]
        index += 1
        if message["role"] == "tool":
            return False
        if message["role"] == "assistant":
            calls = [one["id"] for one in message.get("tool_calls", [])]
            if not calls and not message.get("content") and not message.get("refusal"):
                return False
            if len(set(calls)) != len(calls):
                return False
            for one in message.get("tool_calls", []):
                if not isinstance(json.loads(one["function"]["arguments"]), dict):
                    return False
            answered = []
            while index < len(request) and request[index]["role"] == "tool":
                answered.append(request[index]["tool_call_id"])
                index += 1
            if sorted(answered) != sorted(calls):
                return False
    return True
