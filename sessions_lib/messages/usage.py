"""Token counts: what a provider reported → one meaning.

``input`` is everything sent, cached tokens inside it; ``output`` everything generated, reasoning inside it. Unknown is
``None``, never 0. The dict as reported stays in the message under ``usage``; nothing here writes.

* OpenAI Chat: ``prompt_tokens`` (of which ``prompt_tokens_details.cached_tokens``; from DeepSeek
  ``prompt_cache_hit_tokens``, from proxies ``cache_read_input_tokens``), ``completion_tokens`` (of which
  ``completion_tokens_details.reasoning_tokens``).
* OpenAI Responses and Codex: ``input_tokens`` (of which ``input_tokens_details.cached_tokens`` or
  ``cached_input_tokens``), ``output_tokens`` (of which ``output_tokens_details.reasoning_tokens`` or
  ``reasoning_output_tokens``).
* Anthropic: ``input_tokens`` + ``cache_creation_input_tokens`` + ``cache_read_input_tokens`` (the last one is the
  cached part), ``output_tokens``.
* Gemini: ``promptTokenCount`` (of which ``cachedContentTokenCount``), ``candidatesTokenCount`` +
  ``thoughtsTokenCount``.
* Ollama: ``prompt_eval_count``, ``eval_count``. Any of these names in camelCase, as Bedrock and the AI SDK write them.
* Pi: ``input`` + ``cacheWrite`` + ``cacheRead`` (the last one is the cached part), ``output``.

**A usage is a list of model calls.** Most answers took one call, of the message's own model, and their usage says no
more. Where an answer took several (an advisor of another model, a compaction on the way), ``usage`` also holds
``model_calls``: one dict a call, each in the names above with its own ``model``, together all that was spent. The
numbers beside the list are their sums, for readers that do not know it. What a price depends on stands in a call too:
``prompt_tokens_details`` has ``cache_write_tokens`` (part of the input) and ``cache_write_1h_tokens`` (the part of the
writes that was kept for an hour), ``service_tier`` what the provider called the tier, where it was not the usual one.

Does not estimate: what nobody reported is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

_HUMP = re.compile(r"(?<=[a-z])([A-Z])")
_OTHER_NAMES = {
    "prompt_token_count": "prompt_tokens",
    "prompt_eval_count": "prompt_tokens",
    "candidates_token_count": "completion_tokens",
    "eval_count": "completion_tokens",
    "total_token_count": "total_tokens",
    "cached_content_token_count": "cached_input_tokens",
    "cache_write_input_tokens": "cache_creation_input_tokens",
    "reasoning_tokens": "reasoning_output_tokens",
}
SUMS = ("input", "cached", "output", "reasoning", "total")
MODEL_CALLS = "model_calls"
USUAL_TIERS = ("standard", "default", "auto")

Counts = tuple[int | None, int | None, int | None, int | None, int | None]

_USUAL = frozenset(
    {"prompt_tokens", "completion_tokens", "total_tokens", "service_tier"}
    | {"prompt_tokens_details", "completion_tokens_details"}
)
_TOO_MANY = 10**18
_DETAILS_DEEP = 3  # details inside a usage that are looked into


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one answer, each ``None`` where not reported."""

    input: int | None = None
    cached: int | None = None
    output: int | None = None
    reasoning: int | None = None
    total: int | None = None


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of a model: what it took, and what a price depends on.

    ``model`` is ``""`` where nobody said which. ``written`` are those tokens of the input that went into the cache,
    ``written_1h`` those of them that stay there for an hour; ``tier`` is the provider's name for an unusual service
    tier (``batch``, ``priority``), else ``""``.
    """

    model: str
    tokens: Usage
    written: int | None = None
    written_1h: int | None = None
    tier: str = ""


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over answers: known tokens, and how many of the answers reported any (``reported`` of ``answers``).

    A sum is ``None`` when something was answered or spent and nobody reported that number; where nothing was, every
    sum is 0.
    """

    input: int | None = None
    cached: int | None = None
    output: int | None = None
    reasoning: int | None = None
    total: int | None = None
    reported: int = 0
    answers: int = 0

    @property
    def is_partial(self) -> bool:
        """True if some answers reported none: the true sums are larger."""
        return 0 < self.reported < self.answers

    def __post_init__(self) -> None:
        if not self.answers and self.total is None:
            for name in SUMS:
                object.__setattr__(self, name, getattr(self, name) or 0)


def _count(value: Any) -> int | None:
    if type(value) is int:
        return value if 0 <= value < _TOO_MANY else None
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        value = int(value) if value.strip().isascii() and value.strip().isdigit() and len(value) < 19 else None
    if isinstance(value, float):
        value = int(value) if value.is_integer() and abs(value) < 1e18 else None
    return value if isinstance(value, int) and 0 <= value < _TOO_MANY else None


def _first(usage: Mapping[str, Any], *paths: str) -> int | None:
    for path in paths:
        value: Any = usage.get(path)
        if value is None and "." in path:
            value = usage
            for key in path.split("."):
                value = value.get(key) if isinstance(value, dict) else None
        if value is not None and (found := _count(value)) is not None:
            return found
    return None


def add(*numbers: int | None) -> int | None:
    """The sum of what is known of ``numbers``; ``None`` if nothing is."""
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def parse(usage: Any) -> Usage | None:
    """The tokens in one reported ``usage`` dict, or ``None`` if it reports nothing usable.

    >>> parse({"prompt_tokens": "12", "completion_tokens": 3})
    Usage(input=12, cached=None, output=3, reasoning=None, total=15)
    """
    found = counts(usage)
    return None if found is None else Usage(*found)


def counts(usage: Any) -> Counts | None:
    """``parse(usage)`` as (input, cached, output, reasoning, total)."""
    if not isinstance(usage, dict):
        return None
    if usage.keys() <= _USUAL:  # most dicts: a tenth of the cost
        sent, output, total = map(usage.get, ("prompt_tokens", "completion_tokens", "total_tokens"))
        details, more = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
        cached = details.get("cached_tokens") if type(details) is dict else None
        reasoning = more.get("reasoning_tokens") if type(more) is dict else None
        if (
            type(sent) is int
            and type(output) is int
            and 0 <= sent < _TOO_MANY
            and 0 <= output < _TOO_MANY
            and (total is None or (type(total) is int and 0 <= total < _TOO_MANY))
            and (cached is None or (type(cached) is int and 0 <= cached < _TOO_MANY))
            and (reasoning is None or (type(reasoning) is int and 0 <= reasoning < _TOO_MANY))
        ):
            whole = sent + output
            return sent, cached, output, reasoning, whole if total is None or total < whole else total
    if MODEL_CALLS in usage and (calls := _listed(usage)):
        return _sum(counts for _, _, counts in calls)
    return _any_counts(usage)


def _listed(usage: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any], Counts]]:
    """The calls in the list of ``usage``: model, as reported, counts; what is no call in it is left out."""
    listed = usage.get(MODEL_CALLS)
    found: list[tuple[str, Mapping[str, Any], Counts]] = []
    for call in listed if isinstance(listed, list) else ():
        if isinstance(call, dict) and (known := counts(call)) is not None:
            model = call.get("model")
            found.append((model if isinstance(model, str) else "", call, known))
    return found


def _sum(found: Iterable[Counts]) -> Counts:
    sent, cached, output, reasoning, whole = (add(*column) for column in zip(*found, strict=True))
    return sent, cached, output, reasoning, whole


def by_model(usage: Any, model: str) -> list[tuple[str, Counts]]:
    """What each model took of ``usage``, the message's own ``model`` first if it took any; empty if unknown.

    >>> by_model({"prompt_tokens": 5, "completion_tokens": 2}, "m")
    [('m', (5, None, 2, None, 7))]
    """
    if not isinstance(usage, dict) or MODEL_CALLS not in usage or not (listed := _listed(usage)):
        found = counts(usage)
        return [] if found is None else [(model, found)]
    sums: dict[str, list[Counts]] = {}
    for name, _, known in sorted(listed, key=lambda call: (call[0] or model) != model):
        sums.setdefault(name or model, []).append(known)
    return [(name, _sum(taken)) for name, taken in sums.items()]


def model_calls(message: Mapping[str, Any]) -> list[ModelCall]:
    """The calls of models that ``message`` took, in order; empty where it reports nothing usable."""
    reported, model = message.get("usage"), message.get("model")
    if message.get("role") != "assistant" or not isinstance(reported, dict):
        return []
    own = model if isinstance(model, str) else ""
    listed = _listed(reported)
    known = None if listed else counts(reported)
    if known is not None:
        listed.append(("", reported, known))
    return [_call(name or own, call, taken) for name, call, taken in listed]


def last_call(message: Mapping[str, Any]) -> Usage | None:
    """The last call of the model that ``message`` names: its input is how long the conversation was by then.

    ``None`` where no input is known: the rest of an answer that was imported in parts has only an output.
    """
    called = [call for call in model_calls(message) if call.tokens.input is not None]
    own = [call for call in called if call.model == (message.get("model") or "")]
    return (own or called)[-1].tokens if called else None


def _call(model: str, reported: Mapping[str, Any], known: Counts) -> ModelCall:
    spelled = _spelled(reported)
    written = _first(
        spelled,
        "prompt_tokens_details.cache_write_tokens",
        "input_tokens_details.cache_write_tokens",
        "cache_creation_input_tokens",
        "cacheWrite",
    )
    hour = _first(spelled, "prompt_tokens_details.cache_write_1h_tokens", "cache_creation.ephemeral_1h_input_tokens")
    return ModelCall(model, Usage(*known), written, hour, unusual_tier(reported))


def unusual_tier(reported: Mapping[str, Any]) -> str:
    """The service tier that ``reported`` names, ``""`` for the usual one."""
    tier = reported.get("service_tier")
    return tier if isinstance(tier, str) and tier not in USUAL_TIERS else ""


def fuller(first: Mapping[str, Any] | None, second: Mapping[str, Any]) -> dict[str, Any]:
    """Two reports about one answer as one: of each count the larger, so zeros in a last chunk take nothing back.

    >>> fuller({"prompt_tokens": 9, "completion_tokens": 1}, {"prompt_tokens": 0, "completion_tokens": 4})
    {'prompt_tokens': 9, 'completion_tokens': 4}
    """
    return _fuller(first or {}, second, _DETAILS_DEEP)


def _fuller(first: Mapping[str, Any], second: Mapping[str, Any], deep: int) -> dict[str, Any]:
    made = dict(first)
    for key, value in second.items():
        before = made.get(key)
        if deep and isinstance(before, Mapping) and isinstance(value, Mapping):
            made[key] = _fuller(before, value, deep - 1)
        elif isinstance(before, list) and isinstance(value, list):
            made[key] = value if len(value) >= len(before) else before
        elif before is None or (value is not None and not _is_less(value, before)):
            made[key] = value
    return made


def _is_less(value: Any, before: Any) -> bool:
    count, known = _count(value), _count(before)
    return known is not None and (count is None or count < known)


@lru_cache(maxsize=1000)
def _name(key: str) -> str:
    name = key if key in ("cacheRead", "cacheWrite") else _HUMP.sub(r"_\1", key).lower()
    return _OTHER_NAMES.get(name, name)


def _spelled(usage: Mapping[str, Any]) -> Mapping[str, Any]:
    """``usage`` with the names of the providers whose numbers mean the same: Gemini, Ollama, Bedrock, AI SDK."""
    found: dict[str, Any] = {}
    for key, value in usage.items():
        name = _name(str(key))
        if found.get(name) is None or key == name:
            found[name] = {_name(str(inner)): one for inner, one in value.items()} if type(value) is dict else value
    if (thought := _count(found.get("thoughts_token_count"))) is not None:  # Gemini's are beside its candidates
        found["reasoning_output_tokens"] = thought
        found["completion_tokens"] = add(_count(found.get("completion_tokens")), thought)
    return found


def _any_counts(usage: Mapping[str, Any]) -> Counts | None:
    usage = _spelled(usage)
    read, written = _first(usage, "cache_read_input_tokens", "cacheRead"), None
    sent = _first(usage, "prompt_tokens")  # several proxies add Anthropic's cache counts to it: they are inside
    if sent is not None:
        pass
    elif read is not None or "cache_creation_input_tokens" in usage or "cacheWrite" in usage:
        written = _first(usage, "cache_creation_input_tokens", "cacheWrite")
        sent = add(_first(usage, "input_tokens", "input"), read, written)
    else:
        sent = _first(usage, "input_tokens", "input")
    cached = (
        read
        if read is not None
        else _first(
            usage,
            "prompt_tokens_details.cached_tokens",
            "input_tokens_details.cached_tokens",
            "cached_input_tokens",
            "prompt_cache_hit_tokens",
        )
    )
    output = _first(usage, "completion_tokens", "output_tokens", "output")
    reasoning = _first(
        usage,
        "completion_tokens_details.reasoning_output_tokens",
        "output_tokens_details.reasoning_output_tokens",
        "reasoning_output_tokens",
    )
    total, whole = _first(usage, "total_tokens"), add(sent, output)
    if total is None or (whole is not None and total < whole):  # a total below its own parts is none
        total = whole
    return None if total is None else (sent, cached, output, reasoning, total)


def of(message: Mapping[str, Any]) -> Usage | None:
    """The tokens one message reports; ``None`` for all that is not an assistant message with usable usage."""
    return parse(message.get("usage")) if message.get("role") == "assistant" else None


def total(messages: Iterable[Mapping[str, Any]]) -> Totals:
    """The sums over the assistant messages in ``messages``, each counted as often as it is given."""
    answers, known = 0, list[Counts]()
    for message in messages:
        if message.get("role") == "assistant":
            answers += 1
            if (found := counts(message.get("usage"))) is not None:
                known.append(found)
    if not known:
        return Totals(answers=answers)
    return Totals(*_sum(known), reported=len(known), answers=answers)
