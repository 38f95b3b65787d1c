"""What every export says about a message in words: who, when, how long, how many tokens, and what went wrong.

Plain text, nothing escaped: each export escapes for its own format. Unknown facts are left out, never shown as zero.

Does not read the clock: the same session gives the same export.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from sessions_lib import messages, names, prices, text, times
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


def place(member: Relative) -> str:
    """Where ``member`` left its parent, in turns, if it says so: ``after turn 2``."""
    said = getattr(member, "place", "")
    return said if isinstance(said, str) and member.parent else ""


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
    """``User``, ``Assistant``, ``Tool result`` …; what a note is; a role that nobody knows as it is written."""
    role = message.get("role")
    if note := messages.note(message):
        return names.one_line(note, 40)
    return _ROLES.get(str(role)) or names.one_line(content.as_text(role), 40) or "Message"


def when(message: Message) -> str:
    """``2026-11-29 19:40:01 UTC``, or ``""`` without a time."""
    moment = times.parse(message.get("timestamp"))
    return f"{moment.replace(tzinfo=None).isoformat(' ', 'seconds')} UTC" if moment else ""


def facts(message: Message, meta: Mapping[str, Any]) -> list[str]:
    """Name, model, time, tokens, cost and duration: those that are known; ``meta`` is the session's."""
    found = []
    for key in ("name", "model") if message.get("role") != "tool" else ():
        if isinstance(message.get(key), str) and message[key].strip():
            found.append(names.one_line(message[key]))
    found.append(when(message))
    counted = usage.of(message)
    if counted is not None and counted.total is not None:
        found.append(text.tokens(counted.total))
        found.append(cost(prices.of([message], meta)))
        found += [f"at the price of {name}" for name in prices.borrowed([message], meta)]
        found += [str(told)] if (told := prices.reported([message], meta)) else []
    found.append(took(message))
    return [fact for fact in found if fact]


def notes(message: Message) -> list[str]:
    """What a reader must know about a message: changed by a person; cut, filtered, refused, failed. Usually nothing."""
    found = ["Changed by a person; the session it was forked from has the original."] if "edited" in message else []
    if message.get("role") == "assistant":
        if message.get("interrupted") is True:
            found.append("Interrupted: the answer was cut.")
        reason = message.get("finish_reason")
        if isinstance(reason, str) and reason and reason not in _ENDED:
            said = names.one_line(reason, 40)
            found.append(f"{_REASONS[reason]} ({said})." if reason in _REASONS else f"Finish reason: {said}.")
        if content.as_text(message.get("refusal")):
            found.append("The model refused.")
    elif message.get("role") == "tool":
        if message.get("simulated") is True:
            found.append("Simulated: answered from the recording, the tool did not run.")
        if message.get("is_error") is True:
            found.append("The tool reported an error.")
    return found


def said(message: Message) -> str:
    """The texts of a message as they are: its text parts, and its refusal where it has one."""
    words, refusal = content.text(message), content.as_text(message.get("refusal"))
    return words if not refusal or refusal in words else f"{words}\n\n{refusal}"


def took(message: Message) -> str:
    """``412 ms``, or ``""`` where the message does not say how long it took."""
    spent = times.milliseconds(message.get("duration_ms"))
    return "" if spent is None else text.duration(spent)


def cost(money: prices.Spent, *, is_partial: bool = False) -> str:
    """``$0.10``, ``unpriced``, ``unmetered``; empty where no tokens are known, which is said beside it."""
    said = text.spent(money.cost, money.unpriced, money.unmetered, is_partial=is_partial)
    return "" if said == text.UNKNOWN else said


def summary(said: Sequence[Message], inherited: int, meta: Mapping[str, Any]) -> list[str]:
    """Counts of a session: messages, turns, its own tokens and money, and those of the ``inherited`` messages beside
    them.
    """
    found = [text.count(len(said), "message"), text.count(messages.turn_count(said), "turn")]
    own, copied = usage.total(said[inherited:]), usage.total(said[:inherited])
    if own.answers or copied.answers:
        known = f" (known for {own.reported} of {own.answers} answers)" if own.is_partial else ""
        found.append(text.tokens(own.total, copied.total) + known)
        spent = cost(prices.of(said, meta, inherited), is_partial=own.is_partial) if own.answers else "$0"
        if copied.answers:
            before = cost(prices.of(said, meta, 0, inherited), is_partial=copied.is_partial)
            spent = ", ".join(filter(None, (spent and f"{spent} of its own", before and f"{before} inherited")))
        found += [spent] if spent else []
        found += [str(told)] if (told := prices.reported(said, meta, inherited)) else []
    return found
