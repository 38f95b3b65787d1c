"""What a message is: the OpenAI Chat Completions dict plus our own keys; made, cut into turns, sent.

Our own keys are ``id`` and ``timestamp`` on every message; ``model``, ``finish_reason``, ``usage``, ``duration_ms``,
``first_token_ms`` and ``interrupted`` on assistant messages; ``name``, ``is_error``, ``effect`` and ``duration_ms`` on
tool results. Unknown keys are kept and never sent.

Pure functions. Does not read files, and never changes a message it is given.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sessions_lib import times
from sessions_lib.messages import content, tool_calls
from sessions_lib.messages.content import Message
from sessions_lib.messages.identity import digest, has_id

SENT_ROLES = ("system", "developer", "user", "assistant", "tool")
_NO_TOOL_NAME = re.compile(r"[^A-Za-z0-9_-]")  # OpenAI refuses a history with any other tool name, or a longer one
_MAX_DEPTH = 10_000
_SENT_PARTS = ("text", "image_url", "input_audio", "file")


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


def turns(messages: Sequence[Message]) -> list[list[Message]]:
    """``messages`` cut before each user message. What stands before the first prompt joins the first turn."""
    return [list(messages[start:end]) for start, end in tool_calls.each_turn(messages)]


def turn_count(messages: Iterable[Mapping[str, Any]]) -> int:
    """How many prompts there are: the user messages."""
    return sum(message.get("role") == "user" for message in messages)


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


def for_request(messages: Sequence[Message], system: str | None = None) -> list[Message]:
    """The messages as any Chat Completions provider accepts them, ``system`` first if given.

    Only the provider's keys; every call answered exactly once, right behind its message, in call order (an unanswered
    one by an error that says the outcome is unknown); orphan and duplicate results, roles no provider knows, and
    assistant messages with neither text nor calls are left out; arguments that are no JSON object become ``{}``;
    tool names and call ids from elsewhere are brought into the form OpenAI takes.
    The list given is not changed, and an equal list gives an equal request.
    """
    answers = {(step.call.message, step.call.position): step for step in tool_calls.pair(messages).steps}
    request: list[Message] = [{"role": "system", "content": clean(system)}] if system and system.strip() else []
    for index, message in enumerate(messages):
        role = message.get("role")
        if role == "assistant":
            request += _assistant(message, index, answers)
        elif role in SENT_ROLES and role != "tool":
            sent: Message = {"role": role, "content": _sent_content(message)}
            if isinstance(message.get("name"), str) and message["name"]:
                sent["name"] = clean(message["name"])
            request.append(sent)
    return request


def _assistant(message: Message, index: int, answers: Mapping[tuple[int, int], tool_calls.Step]) -> list[Message]:
    sent: Message = {"role": "assistant"}
    said = clean(content.text({"content": message.get("content")}))
    sent["content"] = said or None
    if (refusal := content.as_text(message.get("refusal"))) and not said:
        sent["refusal"] = clean(refusal)
    made, results, seen = [], [], set()
    for call in tool_calls.calls_of(message, index):
        call_id = _sent_id(clean(call.id))
        if not call_id or call_id in seen:
            call_id = f"call_{index}_{call.position}"
        seen.add(call_id)
        given = clean(call.arguments) if tool_calls.arguments(call) and call.arguments.strip() else "{}"
        made.append(
            {
                "id": call_id,
                "type": "function",
                "function": {"name": _NO_TOOL_NAME.sub("_", call.name)[:64] or "unnamed", "arguments": given},
            }
        )
        results.append(
            {"role": "tool", "tool_call_id": call_id, "content": _result_text(answers[index, call.position])}
        )
    if made:
        sent["tool_calls"] = made
    if not made and not said and "refusal" not in sent:
        return []
    return [sent, *results]


def _sent_id(call_id: str) -> str:
    """``call_id`` as OpenAI takes it: at most 40 characters."""
    return call_id if len(call_id) <= 40 else f"call_{digest([call_id])}"


def _result_text(step: tool_calls.Step) -> str:
    if step.result is None:
        return tool_calls.UNKNOWN_OUTCOME
    found = [part.text if part.kind == "text" else f"[{part.label}]" for part in content.parts(step.result)]
    return str(clean("\n".join(found)))


def _sent_content(message: Message) -> Any:
    """User content: text as text, parts a provider knows as they are, others as a placeholder."""
    given = message.get("content")
    if not isinstance(given, list):
        return clean(content.text(message))
    sent = []
    for item, part in zip(given, content.parts(message), strict=True):
        if part.kind == "text":
            sent.append({"type": "text", "text": clean(part.text)})
        elif isinstance(item, dict) and item.get("type") in _SENT_PARTS and isinstance(item.get(item["type"]), dict):
            sent.append({"type": item["type"], item["type"]: clean(item[item["type"]])})
        elif part.kind == "image" and part.url:
            sent.append({"type": "image_url", "image_url": {"url": clean(part.url)}})
        else:
            sent.append({"type": "text", "text": clean(f"[{part.label}]")})
    return sent or ""
