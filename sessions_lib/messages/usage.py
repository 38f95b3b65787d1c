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

Where an answer took several calls of models (``model_calls``), its usage is their sum.

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


def first_of(usage: Mapping[str, Any], *paths: str) -> int | None:
    """The first count that is known under one of ``paths`` (keys joined by dots)."""
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
    if MODEL_CALLS in usage and (calls := listed(usage)):
        return summed(known for _, _, known in calls)
    return _any_counts(usage)


def listed(usage: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any], Counts]]:
    """The calls in the list of ``usage``: model, as reported, counts; what is no call in it is left out."""
    calls = usage.get(MODEL_CALLS)
    found: list[tuple[str, Mapping[str, Any], Counts]] = []
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict) and (known := counts(call)) is not None:
            model = call.get("model")
            found.append((model if isinstance(model, str) else "", call, known))
    return found


def summed(found: Iterable[Counts]) -> Counts:
    """The sum of some counts; of what none of them knows, ``None``."""
    sent, cached, output, reasoning, whole = (add(*column) for column in zip(*found, strict=True))
    return sent, cached, output, reasoning, whole


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


def spelled(usage: Mapping[str, Any]) -> Mapping[str, Any]:
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
    usage = spelled(usage)
    read, written = first_of(usage, "cache_read_input_tokens", "cacheRead"), None
    sent = first_of(usage, "prompt_tokens")  # several proxies add Anthropic's cache counts to it: they are inside
    if sent is not None:
        pass
    elif read is not None or "cache_creation_input_tokens" in usage or "cacheWrite" in usage:
        written = first_of(usage, "cache_creation_input_tokens", "cacheWrite")
        sent = add(first_of(usage, "input_tokens", "input"), read, written)
    else:
        sent = first_of(usage, "input_tokens", "input")
    cached = (
        read
        if read is not None
        else first_of(
            usage,
            "prompt_tokens_details.cached_tokens",
            "input_tokens_details.cached_tokens",
            "cached_input_tokens",
            "prompt_cache_hit_tokens",
        )
    )
    output = first_of(usage, "completion_tokens", "output_tokens", "output")
    reasoning = first_of(
        usage,
        "completion_tokens_details.reasoning_output_tokens",
        "output_tokens_details.reasoning_output_tokens",
        "reasoning_output_tokens",
    )
    total, whole = first_of(usage, "total_tokens"), add(sent, output)
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
    return Totals(*summed(known), reported=len(known), answers=answers)
