"""Places in a conversation are turns: which one a message stands in, and where a fork leaves it.

Does not write places down: ``text.place`` does.
"""

from __future__ import annotations

from collections.abc import Sequence

from sessions_lib import text
from sessions_lib.messages.content import Message
from sessions_lib.messages.message import turn_count
from sessions_lib.messages.tool_calls import calls_of, each_turn


def turn_of(messages: Sequence[Message], index: int) -> int:
    """The number of the turn (from 1) that holds the message ``index``; what precedes the first prompt is in turn 1."""
    return max(1, turn_count(messages[: index + 1]))


def turns_of(messages: Sequence[Message]) -> list[int]:
    """The number of the turn of each message."""
    return [number for number, (start, end) in enumerate(each_turn(messages), 1) for _ in range(start, end)]


def turn_cut_at(messages: Sequence[Message], at: int) -> int | None:
    """The turn that the message ``at`` goes on with, or ``None`` where it begins a turn, or nothing follows."""
    if not 0 < at < len(messages) or messages[at].get("role") == "user":
        return None
    return turn_count(messages[:at]) or None


def place(messages: Sequence[Message], at: int) -> str:
    """Where the first ``at`` messages end: ``after turn 2``, ``inside turn 2``, ``before turn 1``.

    ``inside`` where the turn goes on in ``messages``, or where what is kept of it ends without an answer.

    >>> place([{"role": "user", "content": "Hello"}], 1)
    'inside turn 1'
    """
    kept = messages[:at]
    last = kept[-1] if kept else {}
    following = messages[at].get("role") if at < len(messages) else None
    return place_behind(turn_count(kept), last.get("role"), bool(calls_of(last)), following)


def place_behind(turn: int, role: object, has_calls: bool, following: object) -> str:
    """``place`` behind a message of ``role`` in turn ``turn`` and before one of the role ``following``, if any."""
    is_open = role in ("user", "tool") or has_calls
    return text.place(turn, is_inside=bool(turn) and (is_open or following not in (None, "user")))
