"""A source that has grown: which of its messages are new, and what is new of an answer that was imported half-written.

A later part of an answer has the answer's id with ``+2``, ``+3``…; one that adds only tokens says nothing. Where tokens
were known before their answer, an empty answer stands in for it; when the answer comes, its tokens are those that the
stand-in does not have.

Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sessions_lib import messages
from sessions_lib.importers.imported import TOKENS_ONLY, set_usage
from sessions_lib.messages import content
from sessions_lib.messages.content import Message


def whole_id(message_id: str) -> str:
    """The id of the answer that ``message_id`` is a later part of, or itself."""
    base, plus, number = message_id.rpartition("+")
    return base if plus and number.isdigit() else message_id


def is_stand_in(message: Message) -> bool:
    """True for an empty answer that only holds tokens."""
    source = message.get("source")
    return isinstance(source, Mapping) and source.get("kind") == TOKENS_ONLY


def what_is_new(
    stored: Sequence[Message], stored_ids: Sequence[str], source: Sequence[Message], line: Sequence[str]
) -> list[Message]:
    """The messages of the source that are not stored, the rest of a half-written answer first."""
    have = set(stored_ids)
    added: list[Message] = []
    last = next((m for m in reversed(source) if m.get("role") == "assistant" and m.get("id") in have), None)
    if last is not None:
        parts = [m for m, i in zip(stored, stored_ids, strict=True) if whole_id(i) == last["id"] or i == last["id"]]
        rest = _rest_of(last, parts)
        if rest is not None:
            added.append(rest)
    added += [message for message, message_id in zip(source, line, strict=True) if message_id not in have]
    known = set(line)
    for message, message_id in zip(reversed(stored), reversed(stored_ids), strict=True):
        if not is_stand_in(message) or whole_id(message_id) in known:
            break  # what it stood for came before
        added = _without_tokens_of(message, added)
    return added


def in_parts(
    source: Sequence[Message], stored: Sequence[tuple[Sequence[Message], Sequence[str]]]
) -> list[Message] | None:
    """``source`` with the answers that are stored in parts as those parts; ``None`` if none is.

    So a branch that is new shares the identities of the sessions it parts from, and each token is counted once.
    """
    parts: dict[str, dict[str, Message]] = {}
    for said, ids in stored:
        by_id = dict(zip(ids, said, strict=True))
        for message_id, message in by_id.items():
            if (base := whole_id(message_id)) != message_id and base in by_id:
                parts.setdefault(base, {base: by_id[base]})[message_id] = message
    if not parts or not any(message.get("id") in parts for message in source):
        return None
    made: list[Message] = []
    for message in source:
        pieces = parts.get(str(message.get("id")))
        made += pieces.values() if pieces else [message]
    return made


def _rest_of(whole: Message, parts: Sequence[Message]) -> Message | None:
    """What ``whole`` has beyond its stored ``parts``, as a message of its own; ``None`` if nothing."""
    if not messages.has_id(whole) or not parts:
        return None
    have = {call.get("id") for part in parts for call in part.get("tool_calls") or [] if isinstance(call, dict)}
    calls = [call for call in whole.get("tool_calls") or [] if isinstance(call, dict) and call.get("id") not in have]
    text = content.text(whole)
    for part in parts:
        said = content.text(part)
        text = text[len(said) :].lstrip("\n") if text.startswith(said) else ""
    spent = _beyond(whole.get("usage_reported"), [part.get("usage_reported") for part in parts])
    if not calls and not text and not spent:
        return None
    kept = ("timestamp", "model", "finish_reason", "source")
    rest: Message = {"role": "assistant", "content": text or None, **{k: whole[k] for k in kept if k in whole}}
    if calls:
        rest["tool_calls"] = calls
    elif not text:
        rest["source"] = {"kind": TOKENS_ONLY}
    rest["id"] = f"{whole['id']}+{len(parts) + 1}"
    set_usage(rest, spent)
    return rest


def _beyond(now: Any, before: Sequence[Any]) -> dict[str, int] | None:
    """The counts of ``now`` that ``before`` does not hold together; ``None`` if there are none."""
    if not isinstance(now, Mapping):
        return None
    told = [one for one in before if isinstance(one, Mapping)]
    more: dict[str, int] = {}
    for key, count in now.items():
        if isinstance(count, int) and not isinstance(count, bool):
            known = [one.get(key, 0) for one in told]
            more[key] = max(0, count - sum(k for k in known if isinstance(k, int)))
    return more if any(more.values()) else None


def _without_tokens_of(stand_in: Message, added: Sequence[Message]) -> list[Message]:
    """``added``, its first answer with tokens without those of ``stand_in``."""
    for index, message in enumerate(added):
        if message.get("role") == "assistant" and "usage_reported" in message:
            left = {key: value for key, value in message.items() if key not in ("usage", "usage_reported")}
            set_usage(left, _beyond(message["usage_reported"], [stand_in.get("usage_reported")]))
            return [*added[:index], left, *added[index + 1 :]]
    return list(added)
