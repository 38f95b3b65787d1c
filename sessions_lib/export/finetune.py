"""OpenAI fine-tuning data: the turns of a session that can be learned from, as one example.

Does not write JSON, and changes no session.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sessions_lib import messages
from sessions_lib.errors import SessionError
from sessions_lib.export import facts
from sessions_lib.messages import content, tool_calls
from sessions_lib.messages.content import Message


def example(said: Sequence[Message], meta: Mapping[str, Any]) -> dict[str, Any]:
    """One fine-tuning example: ``{"messages": […]}``, with ``tools`` where the metadata has their schemas.

    Left out, whole: turns that do not end in a complete answer in words (interrupted, cut, filtered, refused), or with
    a call that is unanswered, whose outcome is unknown, or that the format does not take. Errors that a tool reported
    and the model answered to are kept: they are worth learning from. ``SessionError`` if no turn is left.
    """
    kept: list[Message] = []
    for turn in messages.turns(said):
        if _is_worth_learning(turn):
            kept += turn
    if not kept:
        raise SessionError("No turn of this session ends in a complete answer, so there is nothing to train on.")
    system = meta.get("system")
    request = messages.for_request(kept, system if isinstance(system, str) else None, keeps_ids=True)
    made: dict[str, Any] = {"messages": [_trainable(message) for message in request]}
    tools = meta.get("tools")
    if (
        isinstance(tools, list)
        and tools
        and all(isinstance(tool, dict) and tool.get("type") == "function" for tool in tools)
    ):
        made["tools"] = tools
    return made


def _is_worth_learning(turn: Sequence[Message]) -> bool:
    pairing = tool_calls.pair(turn)
    last = turn[-1]
    if pairing.unanswered or last.get("role") != "assistant" or tool_calls.calls_of(last):
        return False
    if not content.text({"content": last.get("content")}).strip():
        return False
    for message in turn:
        if message.get("role") == "assistant" and facts.notes(message):
            return False
    return all(
        re.fullmatch(r"[A-Za-z0-9_-]{1,64}", step.call.name)
        and tool_calls.arguments(step.call) is not None
        and content.text(step.result or {}) != tool_calls.UNKNOWN_OUTCOME
        for step in pairing.steps
    )


def _trainable(message: Message) -> Message:
    """``message`` with the roles, names and parts that fine-tuning takes: text and pictures."""
    kept = dict(message)
    if kept["role"] == "developer":
        kept["role"] = "system"
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", str(kept.get("name", "x"))):
        del kept["name"]
    if isinstance(kept.get("content"), list):
        kept["content"] = [
            item if item["type"] in ("text", "image_url") else {"type": "text", "text": f"[{part.label}]"}
            for item, part in zip(kept["content"], content.parts(kept), strict=True)
        ]
    return kept
