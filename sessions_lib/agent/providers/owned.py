"""What belongs to a provider in an answer: opaque values that have to come back to it with the next request.

Gemini's thought signatures stand in ``extra_content`` of a call or a message, OpenRouter's thoughts in
``reasoning_details``, those of proxies for Anthropic in ``thinking_blocks`` and ``provider_specific_fields``; DeepSeek,
Kimi and GLM want their ``reasoning_content`` back while the tools of a turn are being called, and over Responses whole
``items`` go back, with their encrypted reasoning. All are kept on the
message under their own names. ``wire`` beside them says who made them, and they go back to that address and model only:
others refuse keys they do not know, and a signature is worth nothing to them.

Does not read what is in them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sessions_lib import text
from sessions_lib.agent.providers.endpoints import Endpoint
from sessions_lib.messages.content import Message

REASONING = "reasoning_content"
_KEPT = ("extra_content", "reasoning_details", "thinking_blocks", "provider_specific_fields", "items", "annotations")
_RETURNED = _KEPT[:-1]
_GROWING = ("text", "thinking", "summary", "data", "content")  # pieces of a text; other texts are sent whole
_DEEPEST = 40  # levels; a message may be nested deeper, but no provider does


def take_message(kept: dict[str, Any], delta: Mapping[str, Any]) -> None:
    """Add to ``kept`` what belongs to the provider in a delta of a message."""
    for key in (*_KEPT, REASONING):
        _add(kept, key, delta.get(key))


def take(kept: dict[str, Any], delta: Mapping[str, Any], beside: tuple[str, ...]) -> None:
    """Add to ``kept`` all of a delta but the keys ``beside``: of a call, nothing else is the client's."""
    for key, value in delta.items():
        if key not in beside:
            _add(kept, str(key), value)


def _add(kept: dict[str, Any], key: str, value: Any) -> None:
    if value not in (None, "", [], {}) and _is_flat_enough(value):
        kept[key] = _joined(kept[key], value, key) if key in kept else value


def _is_flat_enough(value: Any, depth: int = 0) -> bool:
    if depth > _DEEPEST:
        return False
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return all(_is_flat_enough(item, depth + 1) for item in inner)


def _joined(old: Any, new: Any, key: str) -> Any:
    if isinstance(old, dict) and isinstance(new, Mapping):
        return {
            **old,
            **{name: _joined(old[name], value, name) if name in old else value for name, value in new.items()},
        }
    if isinstance(old, list) and isinstance(new, list):
        return _listed(old, new)
    if isinstance(old, str) and isinstance(new, str) and (key in _GROWING or key == REASONING):
        return old + new
    return old if new is None else new


def _listed(old: list[Any], new: list[Any]) -> list[Any]:
    """``old`` and ``new``; a piece of the entry that came last (its ``index`` and ``type``) is joined to it."""
    found = list(old)
    for item in new:
        last = found[-1] if found else None
        if isinstance(item, Mapping) and isinstance(last, Mapping) and _is_piece(item, last):
            found[-1] = _joined(last, item, "")
        else:
            found.append(item)
    return found


def _is_piece(item: Mapping[str, Any], last: Mapping[str, Any]) -> bool:
    has_place = item.get("index") is not None
    return has_place and item.get("index") == last.get("index") and item.get("type") in (None, last.get("type"))


def returned(kept: Mapping[str, Any], *, has_calls: bool) -> list[str]:
    """The keys of a message that go back with it; reasoning only beside calls."""
    is_spoken = has_calls and REASONING in kept and "items" not in kept  # items hold their reasoning
    return [key for key in _RETURNED if key in kept] + ([REASONING] if is_spoken else [])


def wire(endpoint: Endpoint, keys: list[str]) -> dict[str, Any]:
    """The mark of who made a message: the wire, the address without anything secret in it, the model that was asked."""
    return {"api": endpoint.wire, **endpoint.settings, "keys": keys}


def left_for_another(stored: Sequence[Message], endpoint: Endpoint) -> list[str]:
    """A sentence if what earlier answers hold for their own model alone is left out now, for the first time."""
    is_own = is_made_by(endpoint)
    answers = [message for message in stored if message.get("role") == "assistant"]
    held = [message for message in answers if not is_own(message) and any(message.get(key) for key in _RETURNED)]
    makers = dict.fromkeys(_maker(message) for message in held)
    if not held:
        return []
    count = text.count(len(held), "earlier answer")
    said = f"The hidden reasoning of {count} ({', '.join(makers)}) is for the model that made it, and is left out."
    return [] if any(said in (message.get("changed") or ()) for message in answers) else [said]


def _maker(message: Message) -> str:
    mark = message.get("wire")
    named = mark.get("model") if isinstance(mark, Mapping) else None
    return str(named or message.get("model") or "another model")


def is_made_by(endpoint: Endpoint) -> Callable[[Message], bool]:
    """Whether a stored message was made by the model of ``endpoint``.

    Where no ``wire`` says so, as in a file of another program, the model's name has to do.
    """
    own = endpoint.settings

    def is_own(message: Message) -> bool:
        mark = message.get("wire")
        if isinstance(mark, Mapping):
            return {key: mark.get(key) for key in own} == own and mark.get("api", "chat") == endpoint.wire
        return bool(endpoint.model) and message.get("model") == endpoint.model

    return is_own
