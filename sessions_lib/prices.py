"""What an answer cost: token counts → money, from dated prices that need no network.

Prices come from a person's own file, then from ``genai-prices``: by day, by tier (batch, priority, fast), by how long
the request was, with cache reads, cache writes for five minutes and for an hour, and web searches apart. A model
without a price is **unpriced**, a local server and the offline demo are **unmetered**. Neither is ever 0, and no price
is taken without its name (``Cost.matched``).

Prices are whole picodollars (10⁻¹² of a dollar) a token, so a sum does not depend on the order of its parts. What
decides the price of a call is its ``Rate``; calls of one rate and one quarter of an hour may be summed first.

Does not read sessions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sessions_lib import text
from sessions_lib.messages import effective_times, model_calls
from sessions_lib.messages.content import Message
from sessions_lib.messages.model_calls import ModelCall
from sessions_lib.messages.usage import Totals
from sessions_lib.price_table import OF_YOUR, PICO, Billed, Rate, step_of, units_of
from sessions_lib.price_table import version as version

_MOST = 10**9  # dollars; a report of more is none
_DATED = re.compile(r"[-@](?:\d{8}|\d{4}-\d\d-\d\d|\d{4}|latest)$")


@dataclass(frozen=True, slots=True)
class Spent:
    """Money of some answers: the dollars that are known, and the tokens that have none.

    ``cost`` is in US dollars, ``None`` if no answer was priced; ``unpriced`` are tokens of models without a price,
    ``unmetered`` those of local servers and the demo, beside it.
    """

    cost: float | None = None
    unpriced: int = 0
    unmetered: int = 0

    @property
    def is_partial(self) -> bool:
        """True if some tokens are without a price: the true sum is larger."""
        return self.cost is not None and self.unpriced > 0


NOTHING = Spent()


@dataclass(frozen=True, slots=True)
class Cost:
    """What one usage cost: ``amount`` of ``currency`` if it is ``priced``, else ``None``.

    ``matched`` names the price that was taken (``anthropic claude-sonnet-5``), else the model without one; ``version``
    says which table of prices.
    """

    state: Literal["priced", "unpriced", "unmetered"]
    amount: float | None = None
    currency: str = "USD"
    matched: str = ""
    version: str = ""


def cost(usage: Any, model: str, when: datetime | None = None, base_url: str | None = None) -> Cost:
    """What a ``usage`` as reported cost at the time ``when`` (default: now) at the address ``base_url``.

    A usage that lists several calls of models is their sum, each at its own price; unpriced if one of them is.

    >>> cost({"prompt_tokens": 1_000_000, "completion_tokens": 0}, "gpt-5").amount
    1.25
    """
    calls = model_calls.of({"role": "assistant", "model": model, "usage": usage})
    return _joined([_cost_of(call, when, base_url or "") for call in calls], model)


def _cost_of(call: ModelCall, when: datetime | None, host: str) -> tuple[int | None, str]:
    """Picodollars, ``None`` without a price and -1 unmetered, and the name of the price or of the model."""
    unit = units_of(rate_of(call, host)).at(when)
    if unit is None:
        return None, call.model or "unknown model"
    if isinstance(unit, str):
        return -1, call.model
    return unit.price(billed(call)), unit.matched


def _joined(costs: list[tuple[int | None, str]], model: str) -> Cost:
    known = [amount for amount, _ in costs if amount is not None and amount >= 0]
    if not costs or any(amount is None for amount, _ in costs):
        unknown = dict.fromkeys(name for amount, name in costs if amount is None)
        return Cost("unpriced", matched=", ".join(unknown) or model, version=version())
    matched = ", ".join(dict.fromkeys(name for _, name in costs))
    if not known:
        return Cost("unmetered", matched=matched, version=version())
    return Cost("priced", dollars(sum(known)), matched=matched, version=version())


def spent(calls: Iterable[tuple[ModelCall, datetime | None, str]]) -> Spent:
    """The money of some calls, each with its time and address."""
    total: int | None = None
    unpriced = unmetered = 0
    for call, when, host in calls:
        amount, _ = _cost_of(call, when, host)
        if amount is None:
            unpriced += call.tokens.total or 0
        elif amount < 0:
            unmetered += call.tokens.total or 0
        else:
            total = (total or 0) + amount
    return Spent(dollars(total), unpriced, unmetered)


def of(said: Sequence[Message], meta: Mapping[str, Any], start: int = 0, end: int | None = None) -> Spent:
    """The money of the messages from ``start`` up to ``end`` of the conversation ``said``, of metadata ``meta``."""
    settings, moments = settings_of(meta), effective_times(said)
    return spent(
        (call, moments[number], host_of(said[number], settings))
        for number in range(len(said))[start:end]
        for call in model_calls.of(said[number])
    )


def borrowed(said: Sequence[Message], meta: Mapping[str, Any]) -> list[str]:
    """The prices taken for the answers in ``said`` that go by another name than their model, or are of another tier.

    >>> borrowed([{"role": "assistant", "model": "gpt-5.1-codex-max", "usage": {"prompt_tokens": 1}}], {})
    ['openai gpt-5.1']
    """
    settings, moments = settings_of(meta), effective_times(said)
    taken = [
        (call.model, _cost_of(call, moment, host_of(message, settings)))
        for message, moment in zip(said, moments, strict=True)
        for call in model_calls.of(message)
    ]
    priced = [(model, matched) for model, (amount, matched) in taken if amount is not None and amount >= 0]
    return list(dict.fromkeys(matched for model, matched in priced if not _is_named(matched, model)))


def borrowed_by(models: Iterable[str]) -> list[str]:
    """A sentence without an end for each of ``models`` that has no price of its own name, as far as the name tells."""
    asked = ({"role": "assistant", "model": model, "usage": {"prompt_tokens": 0}} for model in models)
    taken = ((message["model"], borrowed([message], {})) for message in asked)
    return [f"{model} is taken at the price of {text.listed(names)}" for model, names in taken if names]


def _is_named(matched: str, model: str) -> bool:
    """True if the price ``matched`` goes by the name ``model``, but for a date, a router and a dot."""
    if OF_YOUR in matched or ", no price for" in matched:
        return OF_YOUR in matched
    name = matched.partition(" ")[2].partition(",")[0]
    return _plain(name) == _plain(model)


def _plain(name: str) -> str:
    return _DATED.sub("", name.rpartition("/")[2].lower()).replace(".", "-").removesuffix("-0")


@dataclass(frozen=True, slots=True)
class Reported:
    """What the tool that wrote some answers says they cost, and what is ``computed`` for the same answers, in dollars.

    ``computed`` is ``None`` unless all of them have a price.
    """

    cost: float
    computed: float | None

    @property
    def differs(self) -> bool:
        """True if the two are more than one per cent apart."""
        if self.computed is None:
            return False
        return abs(self.cost - self.computed) > 0.01 * max(self.cost, self.computed)

    def __str__(self) -> str:
        said = f"{text.money(self.cost)} reported"
        if self.computed is None or not self.differs:
            return said
        return (
            f"{said}, {'more' if self.cost > self.computed else 'less'} than the {text.money(self.computed)} computed"
        )


def reported(
    said: Sequence[Message], meta: Mapping[str, Any], start: int = 0, end: int | None = None
) -> Reported | None:
    """What was reported of the messages from ``start`` up to ``end``; ``None`` where nothing was."""
    told = {at: cost for at in range(len(said))[start:end] if (cost := _reported_cost(said[at])) is not None}
    if not told:
        return None
    settings, moments = settings_of(meta), effective_times(said)
    parts = [
        spent((call, moments[at], host_of(said[at], settings)) for call in model_calls.of(said[at])) for at in told
    ]
    is_whole = all(part.cost is not None and not part.unpriced for part in parts)
    return Reported(math.fsum(told.values()), add(parts).cost if is_whole else None)


def _reported_cost(message: Message) -> float | None:
    """The dollars that stand at an answer: from OpenRouter in its ``usage``, from other tools where they put them."""
    for place in (message.get("usage_reported"), message.get("usage"), message):
        for key in ("cost", "cost_usd", "costUSD"):
            amount = place.get(key) if isinstance(place, Mapping) else None
            if isinstance(amount, Mapping):
                amount = amount.get("total")
            if isinstance(amount, int | float) and not isinstance(amount, bool) and 0 <= amount < _MOST:
                return float(amount)
    return None


def of_history(said: Sequence[Message], model: str, base_url: str) -> str:
    """What sending ``said`` to ``model`` once more costs, in a sentence; empty if nobody knows, or no meter runs.

    >>> of_history([{"role": "assistant", "usage": {"prompt_tokens": 90_000, "completion_tokens": 10_000}}], "o3", "")
    'The history is about 100,000 tokens: $0.20 to send it once more, $0.05 where the provider still has it cached.'
    """
    last = next((found for message in reversed(said) if (found := model_calls.last(message))), None)
    if last is None or last.total is None or not model:
        return ""
    fresh, cached = (
        cost({"prompt_tokens": last.total, "prompt_tokens_details": {"cached_tokens": count}}, model, None, base_url)
        for count in (0, last.total)
    )
    if fresh.state == "unmetered":
        return ""
    length = f"The history is about {text.count(last.total, 'token')}"
    if fresh.amount is None:
        return f"{length}; {text.visible(fresh.matched)} has no price."
    again = f"{length}: {text.money(fresh.amount)} to send it once more"
    if cached.amount is not None and cached.amount < fresh.amount:
        again += f", {text.money(cached.amount)} where the provider still has it cached"
    return f"{again}."


def said(money: Spent, tokens: Totals) -> str:
    """The ``money`` of the answers whose ``tokens`` these are, as ``text.spent`` writes it; ``$0`` without answers."""
    if not tokens.answers:
        return text.money(0)
    return text.spent(money.cost, money.unpriced, money.unmetered, is_partial=tokens.is_partial)


def add(parts: Iterable[Spent]) -> Spent:
    """``parts`` together."""
    listed = list(parts)
    known = [part.cost for part in listed if part.cost is not None]
    total = dollars(sum(round(one * PICO) for one in known)) if known else None
    return Spent(total, sum(part.unpriced for part in listed), sum(part.unmetered for part in listed))


def dollars(pico: float | None) -> float | None:
    """Picodollars as dollars; ``None`` stays unknown."""
    return None if pico is None else round(pico / PICO, 12)


# ---------------------------------------------------------------- what is billed


def billed(call: ModelCall) -> Billed:
    """The tokens of ``call`` as they are billed; a part is never larger than its whole."""
    tokens = call.tokens
    sent = tokens.input or 0
    read, written, hour = bounded(tokens.input, tokens.cached, call.written, call.written_1h)
    return Billed(sent - read - written - hour, read, written, hour, tokens.output or 0, call.searches or 0)


def bounded(sent: int | None, cached: int | None, written: int | None, written_1h: int | None) -> tuple[int, int, int]:
    """Read from the cache, written for five minutes and for an hour, of an input of ``sent``."""
    read = min(cached or 0, sent or 0)
    whole = min(max(written or 0, written_1h or 0), (sent or 0) - read)
    hour = min(written_1h or 0, whole)
    return read, whole - hour, hour


def rate_of(call: ModelCall, host: str) -> Rate:
    """What decides the price of ``call`` at the address ``host``."""
    return Rate(call.model, call.tier, host, step_of(call.tokens))


def host_of(message: Mapping[str, Any], settings: tuple[str, str]) -> str:
    """Where ``message`` was answered: what it says, else the address in the ``settings`` of its session.

    ``settings`` are the session's address and model: what another model said, another address may have answered.
    """
    own = message.get("base_url")
    if isinstance(own, str) and own:
        return own
    host, model = settings
    return host if host and model in ("", message.get("model")) else ""


def settings_of(meta: Mapping[str, Any]) -> tuple[str, str]:
    """The address and the model that a session's metadata names, each ``""`` for none."""
    host, model = meta.get("base_url"), meta.get("model")
    return (host if isinstance(host, str) else ""), (model if isinstance(model, str) else "")
