"""Which call of which session made a sub-agent: what the caller's own messages say of it.

A sub-agent's file names the conversation it belongs to, and at best the call. Whether that call was made by the
person's session or by another sub-agent stands only there: in the calls, and in the results that name the agent.

Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sessions_lib.messages import content, tool_calls
from sessions_lib.messages.content import Message

INSIDE = ":agent:"  # between a caller's key and the name of its sub-agent


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of one session: all ids, and the one that made an agent or a workflow, or that gave a prompt."""

    ids: set[str] = field(default_factory=set)
    by_name: dict[str, str] = field(default_factory=dict)
    by_prompt: dict[str, str] = field(default_factory=dict)


def root_of(key: str) -> str:
    """The key of the conversation that a sub-agent's key, or its caller's, is inside of."""
    return key.partition(INSIDE)[0]


def calls_in(said: Sequence[Message]) -> Calls:
    """The calls of a session by what they may have made."""
    found = Calls()
    for message in said:
        for call in tool_calls.calls_of(message):
            found.ids.add(call.id)
            if '"prompt"' in call.arguments and (given := tool_calls.arguments(call)) is not None:
                prompt = given.get("prompt")
                if isinstance(prompt, str) and prompt.strip():
                    found.by_prompt.setdefault(prompt.strip(), call.id)
        source = message.get("source")
        if message.get("role") == "tool" and isinstance(source, Mapping):
            for name in (source.get("agent"), source.get("workflow")):
                if isinstance(name, str):
                    found.by_name.setdefault(name, content.as_text(message.get("tool_call_id")))
    return found


def call_of(agent: Mapping[str, Any], origin: Mapping[str, Any], prompt: str, calls: Calls) -> str | None:
    """The call that made a sub-agent, if it is one of ``calls``.

    ``agent`` is its ``subagent_of``, ``origin`` its ``imported_from``, ``prompt`` what it was asked.
    """
    named = agent.get("tool_call_id")
    if isinstance(named, str):
        return named if named in calls.ids else None
    for name in (origin.get("agent"), origin.get("workflow")):
        if isinstance(name, str) and name in calls.by_name:
            return calls.by_name[name]
    return calls.by_prompt.get(prompt.strip()) if prompt.strip() else None
