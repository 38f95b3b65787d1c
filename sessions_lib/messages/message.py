"""What a message is: the OpenAI Chat Completions dict plus our own keys; made, cut into turns.

Our own keys are ``id`` and ``timestamp`` on every message; ``model``, ``base_url``, ``finish_reason``, ``usage``,
``duration_ms``, ``first_token_ms``, ``interrupted`` and ``cost_usd`` (what another tool says it cost) on assistant
messages; ``name``, ``is_error``, ``effect`` and ``duration_ms`` on tool results. Unknown keys are kept and never sent
(``request`` says what is). What a provider wants back with a message or a call stands there under the provider's own
names, and ``wire`` (``{"api","base_url","model","keys"}``) says who that is and which of the message's keys go back.

Pure functions. Does not read files, and never changes a message it is given.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sessions_lib import times
from sessions_lib.messages import content, tool_calls
from sessions_lib.messages.content import Message
from sessions_lib.messages.identity import has_id

_MAX_DEPTH = 10_000
# What other tools note among the messages, by the ``source.kind`` of the ``system`` message that holds it.
_NOTES = {
    "bashExecution": "Run by the person",
    "user_shell_command": "Run by the person",
    "custom_message": "Note of an extension",
    "agent message": "Message of an agent",
}


def new_id() -> str:
    """A unique message id: ``msg_`` and 24 hex digits."""
    return "msg_" + secrets.token_hex(12)


def stamped(message: Mapping[str, Any]) -> Message:
    """A copy of ``message`` with an ``id`` and a ``timestamp`` where it has none."""
    copy = dict(message)
    if not has_id(copy):
        copy["id"] = new_id()
    if copy.get("timestamp") is None:
        copy["timestamp"] = times.now()
    return copy


def is_message(value: Any) -> bool:
    """True for an object with a string ``role``."""
    return isinstance(value, dict) and isinstance(value.get("role"), str)


def note(message: Mapping[str, Any]) -> str:
    """What a ``system`` message is that another tool noted among the messages; ``""`` for a system prompt."""
    source = message.get("source") if message.get("role") == "system" else None
    kind = source.get("kind") if isinstance(source, Mapping) else None
    return _NOTES.get(kind, f"Note: {kind}") if isinstance(kind, str) and kind else ""


def turns(messages: Sequence[Message]) -> list[list[Message]]:
    """``messages`` cut before each user message. What stands before the first prompt joins the first turn."""
    return [list(messages[start:end]) for start, end in tool_calls.each_turn(messages)]


def turn_count(messages: Iterable[Mapping[str, Any]]) -> int:
    """How many prompts there are: the user messages."""
    # A list is counted in half the time of a sum, which a fork of a long session waits for.
    return [message.get("role") for message in messages].count("user")


def effective_times(messages: Sequence[Message]) -> list[datetime | None]:
    """When each message was said: its own time, else that of the nearest message before it in its turn, else after."""
    found: list[datetime | None] = []
    for start, end in tool_calls.each_turn(messages):
        own = [times.parse(message.get("timestamp")) for message in messages[start:end]]
        latest = next((moment for moment in own if moment), None)
        for moment in own:
            latest = moment or latest
            found.append(latest)
    return found


def first_prompt(messages: Iterable[Message]) -> str:
    """The text of the first user message that has any, else ``""``."""
    return next((said for m in messages if m.get("role") == "user" and (said := content.text(m).strip())), "")


def awaits_answer(messages: Sequence[Message]) -> bool:
    """True if the last message is a prompt, a tool result, or an answer that was interrupted: one may go on from it."""
    last = messages[-1] if messages else {}
    return last.get("role") in ("user", "tool") or bool(last.get("interrupted"))


def clean(value: Any) -> Any:
    """A copy of ``value`` with every lone surrogate in its texts and keys replaced by U+FFFD: what UTF-8 can hold.

    However deep it is nested, but for a value that holds itself: ``RecursionError``.
    """
    copied = [value]
    waiting: list[tuple[Any, Any, int]] = [(copied, 0, 0)]  # container, key, depth: Python's own stack is too short
    while waiting:
        container, key, depth = waiting.pop()
        item = container[key]
        if isinstance(item, str):
            container[key] = _clean_text(item)
        elif isinstance(item, list | tuple | dict):
            if depth > _MAX_DEPTH:
                raise RecursionError("nested too deeply")
            if isinstance(item, dict):
                copy: Any = {_clean_text(k) if isinstance(k, str) else k: v for k, v in item.items()}
                waiting += [(copy, k, depth + 1) for k in copy]
            else:
                copy = list(item)
                waiting += [(copy, index, depth + 1) for index in range(len(copy))]
            container[key] = copy
    return copied[0]


def _clean_text(text: str) -> str:
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
