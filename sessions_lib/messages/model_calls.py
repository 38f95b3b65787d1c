"""The calls of models that an answer took: which model, how many tokens, and what their price depends on.

Most answers took one call, of the message's own model, and their ``usage`` says no more. Where an answer took several
(an advisor of another model, a compaction on the way), ``usage`` also holds ``model_calls``: one dict a call, each in
the names of ``usage`` with its own ``model``, together all that was spent. The numbers beside the list are their sums,
for readers that do not know it. A call holds what a price depends on: ``prompt_tokens_details`` has
``cache_write_tokens`` (part of the input) and ``cache_write_1h_tokens`` (the part of the writes that was kept for an
hour), ``service_tier`` is what the provider called the tier, where it was not the usual one.

Does not price anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sessions_lib.messages import usage
from sessions_lib.messages.usage import MODEL_CALLS, SUMS, Counts, Usage

_USUAL_TIERS = ("standard", "default", "auto")
_USUAL = frozenset({"prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details"}) | {
    "completion_tokens_details"
}
_READ = frozenset({"cached_tokens", "audio_tokens"})
_WRITTEN = ("cache_write_tokens", "cache_write_1h_tokens")


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of a model: what it took, and what a price depends on.

    ``model`` is ``""`` where nobody said which. ``written`` are those tokens of the input that went into the cache,
    ``written_1h`` those of them that stay there for an hour; ``tier`` is the provider's name for an unusual service
    tier (``batch``, ``priority``, ``fast``), else ``""``; ``searches`` are of the web.
    """

    model: str
    tokens: Usage
    written: int | None = None
    written_1h: int | None = None
    tier: str = ""
    searches: int | None = None


def by_model(reported: Any, model: str) -> list[tuple[str, Counts]]:
    """What each model took of a ``usage``, the message's own ``model`` first if it took any; empty if unknown.

    >>> by_model({"prompt_tokens": 5, "completion_tokens": 2}, "m")
    [('m', (5, None, 2, None, 7))]
    """
    listed = usage.listed(reported) if isinstance(reported, dict) else []
    if not listed:
        found = usage.counts(reported)
        return [] if found is None else [(model, found)]
    sums: dict[str, list[Counts]] = {}
    for name, _, known in sorted(listed, key=lambda call: (call[0] or model) != model):
        sums.setdefault(name or model, []).append(known)
    return [(name, usage.summed(taken)) for name, taken in sums.items()]


def of(message: Mapping[str, Any]) -> list[ModelCall]:
    """The calls of models that ``message`` took, in order; empty where it reports nothing usable."""
    reported, model = message.get("usage"), message.get("model")
    if message.get("role") != "assistant" or not isinstance(reported, dict):
        return []
    own = model if isinstance(model, str) else ""
    listed = usage.listed(reported)
    known = None if listed else usage.counts(reported)
    if known is not None:
        listed.append(("", reported, known))
    return [_call(name or own, call, taken) for name, call, taken in listed]


def last(message: Mapping[str, Any]) -> Usage | None:
    """The last call of the model that ``message`` names: its input is how long the conversation was by then.

    ``None`` where no input is known: the rest of an answer that was imported in parts has only an output.
    """
    called = [call for call in of(message) if call.tokens.input is not None]
    own = [call for call in called if call.model == (message.get("model") or "")]
    return (own or called)[-1].tokens if called else None


def _call(model: str, reported: Mapping[str, Any], known: Counts) -> ModelCall:
    return ModelCall(model, Usage(*known), *_extras(reported))


def _extras(reported: Mapping[str, Any]) -> tuple[int | None, int | None, str, int | None]:
    """What a price depends on beside the tokens: written, written for an hour, tier, searches."""
    details = reported.get("prompt_tokens_details")
    if reported.keys() <= _USUAL and (details is None or (type(details) is dict and details.keys() <= _READ)):
        return None, None, "", None  # most dicts
    if reported.keys() <= _USUAL and type(details) is dict and details.keys() <= _READ.union(_WRITTEN):
        written, hour = map(details.get, _WRITTEN)
        if type(written) is int and type(hour) in (int, type(None)) and min(written, hour or 0) >= 0:
            return written, hour, "", None
    spelled = usage.spelled(reported)
    written = usage.first_of(
        spelled,
        "prompt_tokens_details.cache_write_tokens",
        "input_tokens_details.cache_write_tokens",
        "cache_creation_input_tokens",
        "cacheWrite",
    )
    hour = usage.first_of(
        spelled, "prompt_tokens_details.cache_write_1h_tokens", "cache_creation.ephemeral_1h_input_tokens"
    )
    searches = usage.first_of(spelled, "web_searches", "server_tool_use.web_search_requests")
    return written, hour, unusual_tier(reported), searches


def as_usage(called: Sequence[ModelCall]) -> dict[str, Any] | None:
    """The ``usage`` of a message that took these calls (those without a model are its own's); ``None`` if none."""
    made = [_reported(call) for call in called]
    if not made:
        return None
    if len(made) == 1 and "model" not in made[0]:
        return made[0]
    whole = [call.tokens for call in called]
    sums = Usage(*(usage.add(*(getattr(tokens, name) for tokens in whole)) for name in SUMS))
    written, hour = usage.add(*(call.written for call in called)), usage.add(*(call.written_1h for call in called))
    searches = usage.add(*(call.searches for call in called))
    return {**_reported(ModelCall("", sums, written, hour, searches=searches)), MODEL_CALLS: made}


def _reported(call: ModelCall) -> dict[str, Any]:
    """A call in OpenAI's names; what is not known is left out."""
    tokens = call.tokens
    details = {
        "cached_tokens": tokens.cached,
        "cache_write_tokens": call.written,
        "cache_write_1h_tokens": call.written_1h,
    }
    made: dict[str, Any] = {
        "prompt_tokens": tokens.input,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.total,
        "prompt_tokens_details": {name: count for name, count in details.items() if count is not None} or None,
        "completion_tokens_details": None if tokens.reasoning is None else {"reasoning_tokens": tokens.reasoning},
        "service_tier": call.tier or None,
        "web_searches": call.searches or None,
        "model": call.model or None,
    }
    return {name: value for name, value in made.items() if value is not None}


def unusual_tier(reported: Mapping[str, Any]) -> str:
    """The service tier, or the speed, that ``reported`` names, ``""`` for the usual one."""
    for named in (reported.get("service_tier"), reported.get("speed")):
        if isinstance(named, str) and named and named not in _USUAL_TIERS:
            return named
    return ""
