"""What a source gives: conversations as our messages, and a report of what else was in it.

Does not read files and does not write sessions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sessions_lib import times
from sessions_lib.messages import model_calls, usage
from sessions_lib.messages.content import Message

SUB_AGENT = "sub-agent"  # the tag of sub-agents' sessions, to tell them from what a person asked
UNKNOWN_KIND = "unknown kind"  # the ``source.kind`` of a text from a record that no importer knows
TOKENS_ONLY = "tokens without an answer"  # the ``source.kind`` of an empty answer that only holds tokens
_TEXTS = frozenset(
    {"text", "message", "content", "body", "summary", "summary_text", "markdown", "prompt", "question", "answer"}
    | {"parts", "output", "output_text", "reply", "response", "caption", "explanation", "thinking", "reasoning"}
)


@dataclass(frozen=True, slots=True)
class Imported:
    """One conversation, or one branch of one, as it will be a session.

    ``key`` names it for good; ``conversation`` names what its branches have in common. The branch that the tool shows
    (the newest, or the visible one) comes first and carries the conversation's own key; the others, and forks that the
    tool keeps in another file, name the key they come from in ``parent_key`` and, where the source tells, how many
    messages they share with it. ``formerly`` is what earlier versions called the conversation, where they called it
    otherwise. ``meta`` goes into the session's metadata, ``source`` into its ``imported_from``.
    ``keeps_as_is`` means that messages without an id are stored so. A time that no source tells is never made up.
    """

    key: str
    title: str | None
    messages: list[Message]
    conversation: str = ""
    tags: tuple[str, ...] = ()
    parent_key: str | None = None
    shared: int = 0
    meta: Mapping[str, Any] = field(default_factory=dict)
    source: Mapping[str, Any] = field(default_factory=dict)
    created: datetime | None = None
    keeps_as_is: bool = False
    formerly: str = ""


@dataclass(slots=True)
class ImportReport:
    """What was in a source: format, name, sessions, messages, what was skipped (by kind), warnings, damaged lines.

    ``damaged`` maps a file's name to its ``(line, reason)`` pairs; ``skipped`` counts records that are no conversation,
    ``unknown`` those of kinds that are not known, whose texts came in.
    """

    format: str = ""
    name: str = ""
    sessions: int = 0
    messages: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)
    damaged: dict[str, list[tuple[int, str]]] = field(default_factory=dict)

    def warn(self, text: str) -> None:
        """Add a warning, each text once."""
        if text not in self.warnings:
            self.warnings.append(text)

    def add(self, other: ImportReport) -> None:
        """Take in the counts of another source."""
        self.format = self.format if self.format in ("", other.format) else "several"
        self.format = self.format or other.format
        self.sessions += other.sessions
        self.messages += other.messages
        self.skipped.update(other.skipped)
        self.unknown.update(other.unknown)
        for text in other.warnings:
            self.warn(f"{other.name}: {text}" if other.name else text)
        for name, lines in other.damaged.items():
            self.damaged.setdefault(name, []).extend(lines)

    @property
    def damaged_lines(self) -> int:
        """How many lines could not be read."""
        return sum(len(lines) for lines in self.damaged.values())


def word(value: Any) -> str:
    """``value`` if it is a string, else ``""``: what a name or an id must be before it is looked up."""
    return value if isinstance(value, str) else ""


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects in a list; none in anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def texts_in(value: Any) -> list[str]:
    """The texts in a record of an unknown kind: what stands under the names that texts have everywhere, each once.

    >>> texts_in({"type": "shout", "id": "i1", "content": [{"type": "Text", "text": "Land!"}]})
    ['Land!']
    """
    found: dict[str, None] = {}
    waiting: list[tuple[Any, bool]] = [(value, False)]
    while waiting:
        item, is_named = waiting.pop()
        if isinstance(item, str):
            if is_named and item.strip():
                found[item] = None
        elif isinstance(item, list):
            waiting += [(inner, is_named) for inner in reversed(item)]
        elif isinstance(item, dict):
            waiting += [(inner, str(name).lower() in _TEXTS) for name, inner in reversed(item.items())]
    return list(found)


def common(first: Sequence[str], second: Sequence[str]) -> int:
    """How many identities both start with.

    >>> common(["a", "b", "c"], ["a", "b", "d"])
    2
    """
    count = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        count += 1
    return count


def iso(value: Any) -> str | None:
    """A source's time as we store it, or ``None`` if it is none."""
    if isinstance(value, str) and len(value) == 24 and value[23] == "Z" and value[19] == "." and value[10] == "T":
        return value  # already ours; parsing every line's time again would be a fifth of an import
    moment = times.parse(value)
    return times.iso(moment) if moment else None


def fill_times(messages: list[Message], start: str | None) -> None:
    """Give messages without a time that of the one before (the first: ``start``), so that none gets the import's."""
    latest = next((m["timestamp"] for m in messages if m.get("timestamp")), None) or start
    for message in messages:
        if message.get("timestamp"):
            latest = message["timestamp"]
        elif latest:
            message["timestamp"] = latest


_OTHER_COUNTS = frozenset(
    {"prompt_tokens", "completion_tokens", "total_tokens", "totalTokens", "output_tokens_details", "model_calls"}
    | {"completion_tokens_details", "reasoning_output_tokens"}
)


def _anthropic(reported: dict[str, Any]) -> dict[str, Any] | None:
    """``chat_usage`` of what Anthropic always reports, in a fifth of the time: an import is mostly this."""
    sent, written = reported.get("input_tokens"), reported.get("cache_creation_input_tokens")
    read, output = reported.get("cache_read_input_tokens"), reported.get("output_tokens")
    if not (type(sent) is type(written) is type(read) is type(output) is int and _OTHER_COUNTS.isdisjoint(reported)):
        return None
    if not 0 <= min(sent, written, read, output) <= max(sent, written, read, output) < 10**15:
        return None
    searched = reported.get("server_tool_use")
    if reported.get("iterations") or (isinstance(searched, dict) and searched.get("web_search_requests")):
        return None
    sent += written + read
    details = {"cached_tokens": read, "cache_write_tokens": written}
    kept = reported.get("cache_creation")
    if written and type(kept) is dict and type(hour := kept.get("ephemeral_1h_input_tokens")) is int:
        details["cache_write_1h_tokens"] = hour
    converted = {
        "prompt_tokens": sent,
        "completion_tokens": output,
        "total_tokens": sent + output,
        "prompt_tokens_details": details,
    }
    return {**converted, "service_tier": tier} if (tier := model_calls.unusual_tier(reported)) else converted


def chat_usage(reported: Any, advisor: str = "") -> dict[str, Any] | None:
    """Tokens in OpenAI's meaning: everything sent (cached and cache writes inside) and everything generated.

    ``None`` if nothing usable was reported; a number that was not reported is left out, never 0. Where several calls of
    models were reported, they are listed (see ``usage``); ``advisor`` is the model of those that name none.

    >>> chat_usage({"input_tokens": 4, "cache_creation_input_tokens": 15000, "output_tokens": 120})["prompt_tokens"]
    15004
    """
    if not isinstance(reported, dict):
        return None
    if (quick := _anthropic(reported)) is not None:
        return quick
    called = model_calls.of({"role": "assistant", "usage": {usage.MODEL_CALLS: _calls(reported, advisor)}})
    return model_calls.as_usage(called)


def _calls(reported: dict[str, Any], advisor: str) -> list[Any]:
    """The calls that one report is about: Anthropic's ``iterations``, else the report is one.

    Its own model's iterations are inside the numbers at the top (and are one call where they do not add up to them);
    those of an advisor, or a compaction on the way, are beside them.
    """
    listed = reported.get("iterations")
    if not isinstance(listed, list) or not any(isinstance(one, dict) for one in listed):
        return list(reported.get(usage.MODEL_CALLS) or [reported])
    told = [one for one in listed if isinstance(one, dict)]
    own = [one for one in told if one.get("type", "message") == "message"]
    top, parts = usage.counts(reported), usage.counts({usage.MODEL_CALLS: own})
    is_split = parts is not None and (top is None or (parts[4] or 0) >= (top[4] or 0))
    calls = [] if is_split else [{key: value for key, value in reported.items() if key != "iterations"}]
    for one in told:
        if one.get("type", "message") != "message":
            calls.append({"model": advisor if one.get("type") == "advisor_message" else "", **one})
        elif is_split:
            whole = ("service_tier", "speed", *(() if calls else ("server_tool_use",)))
            calls.append({**{key: reported.get(key) for key in whole}, **one, "model": ""})
    return calls


def set_usage(message: Message, reported: Any, advisor: str = "") -> None:
    """Put ``reported`` on ``message``: converted under ``usage``, as it was under ``usage_reported``."""
    converted = chat_usage(reported, advisor)
    if converted is not None:
        message["usage"] = converted
        message["usage_reported"] = reported


def as_call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    """A tool call as a message holds it."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
