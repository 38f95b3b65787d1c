"""Tool calls and their results: who answers whom, what is unanswered, where a fork may be, what changed the world.

A result belongs to the latest assistant message that has an unanswered call of its id, and within that message to the
first such call: ids repeat in real files. Pairing reads from the top, so the pairs of a prefix are the pairs of the
whole that lie in it.

Does not write and never changes a message.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sessions_lib.messages import content
from sessions_lib.messages.content import Message

UNKNOWN_OUTCOME = (
    "No result was recorded for this call: the program stopped first. Whether it took effect is unknown; "
    "check before calling it again."
)


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call: message index, position in its message, id, tool name, arguments as the model wrote them."""

    message: int
    position: int
    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Step:
    """A call with its result, ``None`` while unanswered; ``result_message`` is the result's message index."""

    call: Call
    result: Message | None
    result_message: int | None

    @property
    def is_error(self) -> bool:
        """True if the result says that the tool failed."""
        return bool(self.result and self.result.get("is_error"))

    @property
    def has_effect(self) -> bool:
        """True unless the result says that the tool does not change the world: unknown tools count as if they did."""
        return self.result is None or self.result.get("effect") is not False


@dataclass(frozen=True, slots=True)
class Pairing:
    """All calls in order with their results, and the indices of results without a call or beside another result."""

    steps: list[Step] = field(default_factory=list)
    orphans: list[int] = field(default_factory=list)
    duplicates: list[int] = field(default_factory=list)

    @property
    def unanswered(self) -> list[Call]:
        """The calls without a result, in order."""
        return [step.call for step in self.steps if step.result is None]


def calls_of(message: Mapping[str, Any], index: int = 0) -> list[Call]:
    """The tool calls of an assistant message; what is not an object there is left out."""
    listed = message.get("tool_calls") if message.get("role") == "assistant" else None
    if not isinstance(listed, list):
        return []
    found = []
    for position, call in enumerate(listed):
        if not isinstance(call, Mapping):
            continue
        function = call.get("function")
        if not isinstance(function, Mapping):
            custom = call.get("custom")  # OpenAI's free-form tools keep their name and input here
            function = custom if isinstance(custom, Mapping) else {}
        arguments = function.get("arguments", function.get("input"))
        found.append(
            Call(
                index,
                position,
                content.as_text(call.get("id")),
                content.as_text(function.get("name")),
                content.as_text(arguments),
            )
        )
    return found


def arguments(call: Call) -> dict[str, Any] | None:
    """The call's arguments as an object, or ``None`` if they are not strict JSON or no object.

    No arguments at all are an empty object: several servers send an empty string.
    """
    if not call.arguments.strip():
        return {}
    try:
        parsed = json.loads(call.arguments, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def pair(messages: Sequence[Message]) -> Pairing:
    """Every call of ``messages`` with its result."""
    calls: list[Call] = []
    results: dict[int, int] = {}  # index in calls -> message index of its result
    open_calls: dict[str, list[list[int]]] = {}  # id -> a list of unanswered calls a message, latest message last
    known: set[str] = set()
    orphans: list[int] = []
    duplicates: list[int] = []
    for index, message in enumerate(messages):
        if message.get("role") == "assistant":
            by_id: dict[str, list[int]] = {}
            for call in calls_of(message, index):
                by_id.setdefault(call.id, []).append(len(calls))
                calls.append(call)
            for call_id, waiting in by_id.items():
                open_calls.setdefault(call_id, []).append(waiting)
                known.add(call_id)
        elif message.get("role") == "tool":
            call_id = content.as_text(message.get("tool_call_id"))
            if stack := open_calls.get(call_id):
                results[stack[-1].pop(0)] = index
                if not stack[-1]:
                    stack.pop()
            else:
                (duplicates if call_id in known else orphans).append(index)
    steps = [
        Step(call, messages[results[number]] if number in results else None, results.get(number))
        for number, call in enumerate(calls)
    ]
    return Pairing(steps, orphans, duplicates)


def unknown_outcome(call: Call) -> Message:
    """The error result for a call that nobody answered."""
    return {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": UNKNOWN_OUTCOME, "is_error": True}


def settle(messages: Sequence[Message]) -> list[Message]:
    """The error results that the calls of the last assistant message still lack, in call order."""
    last = next((i for i in range(len(messages) - 1, -1, -1) if messages[i].get("role") == "assistant"), None)
    if last is None:
        return []
    return [unknown_outcome(call) for call in pair(messages).unanswered if call.message == last]


def is_fork_point(messages: Sequence[Message], at: int) -> bool:
    """True if a fork may keep exactly the first ``at`` messages."""
    return 0 <= at <= len(messages) and _forbidding(messages, at) is None


def _forbidding(messages: Sequence[Message], at: int) -> int | None:
    """The index of the message whose calls are unanswered in the first ``at``, if that forbids a fork there.

    Only the end is looked at: a result belongs to the latest message with such a call open, so what stands before
    the last assistant message cannot answer its calls.
    """
    last = next((index for index in range(at - 1, -1, -1) if messages[index].get("role") != "tool"), None)
    if last is None or not messages[last].get("tool_calls"):
        return None
    return last if any(call.message == 0 for call in pair(messages[last:at]).unanswered) else None


def forbidden_points(messages: Sequence[Message]) -> dict[int, list[Call]]:
    """The numbers of messages a fork may not keep → the calls that would be left unanswered there.

    Forbidden is a prefix whose last message that is no tool result is an assistant message with a call unanswered
    in the prefix; an older unanswered call forbids nothing.
    """
    answered_at: dict[int, list[Step]] = {}
    for step in pair(messages).steps:
        answered_at.setdefault(step.call.message, []).append(step)
    forbidden: dict[int, list[Call]] = {}
    for index, steps in answered_at.items():
        at = index + 1
        while True:
            waiting = [step.call for step in steps if step.result_message is None or step.result_message >= at]
            if not waiting:
                break
            forbidden[at] = waiting
            if at >= len(messages) or messages[at].get("role") != "tool":
                break
            at += 1
    return forbidden


def last_fork_point(messages: Sequence[Message]) -> int:
    """The largest number of messages that a fork may keep."""
    at = len(messages)
    while (forbidding := _forbidding(messages, at)) is not None:
        at = forbidding
    return at


def nearest_fork_points(messages: Sequence[Message], at: int) -> list[int]:
    """The nearest allowed points around ``at``: one below, one above where there is one."""
    forbidden = forbidden_points(messages)
    at = max(at, 0)
    below = next(point for point in range(min(at, len(messages)), -1, -1) if point not in forbidden)
    above = next((point for point in range(at, len(messages) + 1) if point not in forbidden), None)
    return [below] if above is None or above == below else [below, above]


def effects(messages: Sequence[Message]) -> list[Step]:
    """The calls that changed the world, or may have: errors that say so with ``effect: false`` are not among them."""
    return [step for step in pair(messages).steps if step.has_effect]


def label(call: Call, limit: int = 80) -> str:
    """One line for a call: ``buy(item="torch")``; raw arguments where they are not JSON. Not escaped.

    >>> label(Call(0, 0, "c", "buy", '{"item": "torch"}'))
    'buy(item="torch")'
    """
    given = arguments(call)
    inside = (
        call.arguments
        if given is None
        else ", ".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in given.items())
    )
    line = " ".join(f"{call.name or 'unnamed tool'}({inside})".split())
    return line if len(line) <= limit else line[: limit - 2] + "…)"


def each_turn(messages: Sequence[Message]) -> Iterator[tuple[int, int]]:
    """The half-open ranges of message indices of the turns; what comes before a prompt joins turn 1."""
    starts = [index for index, message in enumerate(messages) if message.get("role") == "user"]
    if messages:
        bounds = [0, *starts[1:], len(messages)]
        yield from itertools.pairwise(bounds)
