"""What every export says about a message in words: who, when, how long, how many tokens, and what went wrong.

Plain text, nothing escaped: each export escapes for its own format. Unknown facts are left out, never shown as zero.

Does not read the clock: the same session gives the same export.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from sessions_lib import messages, names, times
from sessions_lib.messages import content, usage
from sessions_lib.messages.content import Message
from sessions_lib.text import visible

_ROLES = {
    "user": "User",
    "assistant": "Assistant",
    "tool": "Tool result",
    "system": "System",
    "developer": "Developer",
}
_ENDED = ("stop", "tool_calls", "function_call", "end_turn", "tool_use", "stop_sequence", "completed")
_REASONS = {
    "length": "Cut off at the length limit",
    "max_tokens": "Cut off at the length limit",
    "content_filter": "Stopped by the provider's filter",
}


class Relative(Protocol):
    """A member of a session's family, as a listing gives it."""

    @property
    def id(self) -> str:
        """The session's id."""

    @property
    def title(self) -> str:
        """Its title as it is shown."""

    @property
    def parent(self) -> str | None:
        """The id of the session it was forked from, or ``None``."""

    @property
    def inherited(self) -> int:
        """How many of its messages were copied from the parent."""


def title(said: Sequence[Message], meta: Mapping[str, Any]) -> str:
    """The session's title on one line: its own, else from its first prompt, else its id; never empty."""
    for candidate in (meta.get("title"), names.title_from(messages.first_prompt(said)), meta.get("id")):
        if isinstance(candidate, str) and (line := " ".join(visible(candidate).split())):
            return line
    return "Session"


def tags(meta: Mapping[str, Any]) -> list[str]:
    """The session's tags, each on one line; none if the metadata holds no list of them."""
    listed = meta.get("tags")
    if not isinstance(listed, list | tuple):
        return []
    return [line for tag in listed if isinstance(tag, str) and (line := " ".join(visible(tag).split()))]


def fork_point(meta: Mapping[str, Any]) -> tuple[str, int] | None:
    """The parent's id and the number of messages copied from it, or ``None`` for a session that is no fork."""
    origin = meta.get("forked_from")
    if not isinstance(origin, Mapping) or not isinstance(origin.get("session"), str):
        return None
    kept = origin.get("messages")
    return origin["session"], kept if isinstance(kept, int) and not isinstance(kept, bool) and kept >= 0 else 0


def who(message: Message) -> str:
    """``User``, ``Assistant``, ``Tool result`` …; a role that nobody knows as it is written."""
    role = message.get("role")
    return _ROLES.get(str(role)) or names.one_line(content.as_text(role), 40) or "Message"


def when(message: Message) -> str:
    """``2026-11-29 19:40:01 UTC``, or ``""`` without a time."""
    moment = times.parse(message.get("timestamp"))
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC") if moment else ""


def facts(message: Message) -> list[str]:
    """Name, model, time, tokens and duration: those that are known."""
    found = []
    for key in ("name", "model") if message.get("role") != "tool" else ():
        if isinstance(message.get(key), str) and message[key].strip():
            found.append(names.one_line(message[key]))
    found.append(when(message))
    counted = usage.of(message)
    if counted is not None and counted.total is not None:
        found.append(f"{counted.total:,} tokens")
    found.append(duration(message.get("duration_ms")))
    return [fact for fact in found if fact]


def duration(milliseconds: Any) -> str:
    """``412 ms``, ``1.2 s``, ``3 min 20 s``; ``""`` if unknown."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float) or not 0 <= milliseconds < 1e12:
        return ""
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1000:.1f} s"
    minutes, seconds = divmod(round(milliseconds / 1000), 60)
    return f"{minutes} min {seconds} s"


def notes(message: Message) -> list[str]:
    """What a reader must know about how the message ended: cut, filtered, refused, failed. Usually nothing."""
    found = []
    if message.get("role") == "assistant":
        if message.get("interrupted") is True:
            found.append("Interrupted: the answer was cut.")
        reason = message.get("finish_reason")
        if isinstance(reason, str) and reason and reason not in _ENDED:
            said = names.one_line(reason, 40)
            found.append(f"{_REASONS[reason]} ({said})." if reason in _REASONS else f"Finish reason: {said}.")
        if content.as_text(message.get("refusal")):
            found.append("The model refused.")
    elif message.get("role") == "tool" and message.get("is_error") is True:
        found.append("The tool reported an error.")
    return found


def said(message: Message) -> str:
    """The texts of a message as they are: its text parts, and its refusal where it has one."""
    text = content.text(message)
    refusal = content.as_text(message.get("refusal"))
    return text if not refusal or refusal in text else f"{text}\n\n{refusal}"


def summary(said: Sequence[Message]) -> list[str]:
    """Counts of a session: messages, turns, tokens (and of how many answers they are known)."""
    turns = messages.turn_count(said)
    found = [_count(len(said), "message"), _count(turns, "turn")]
    totals = usage.total(said)
    if totals.reported and totals.total is not None:
        known = f" (known for {totals.reported} of {totals.answers} answers)"
        found.append(f"{totals.total:,} tokens{'' if totals.reported == totals.answers else known}")
    elif totals.answers:
        found.append("tokens unknown")
    return found


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
