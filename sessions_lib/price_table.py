"""Which price counts for a call: by model, address, tier, length and day, from tables that need no network.

A person's own prices (see ``own_prices``) come first; a local server and the offline demo are unmetered; all else is
looked up in ``genai-prices``, at the address of a known provider in that provider's list alone, elsewhere (a proxy, an
import) by the name of the model, without what routers put before it.

Imports ``genai-prices`` when the first price is asked for.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import urlsplit

from sessions_lib import own_prices
from sessions_lib.messages.usage import Usage

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice, Provider

PICO = 10**12
_QUARTER_S = 900  # prices change at most so often
DEMO = ("demo", "sample-")  # the offline village, and the models of the demo's sessions: these begin so
# Requests longer than one of these cost more with some models; the whole request, so a sum must know which it was in.
STEPS = (32_000, 100_000, 128_000, 199_999, 200_000, 256_000, 272_000, 512_000, 524_288)
_NO_SPLIT = -1  # only the total of the call is known
_SIZED = re.compile(r":(?:[\w.]*[-_])?e?\d+(?:\.\d+)?[bm](?:\b|[-_])", re.IGNORECASE)  # what Ollama calls its own
_FREE = ":free"
OF_YOUR = " of your "  # between a person's own price and the name of its file
_BEDROCK = re.compile(r"(?:[a-z]{2,6}\.)?(?:ai21|amazon|anthropic|cohere|deepseek|meta|mistral|openai|qwen)\.")
# What routers call a provider; others go by the id they have in ``genai-prices``.
_ROUTED = {
    "bedrock": "aws",
    "vertex_ai": "google",
    "gemini": "google",
    "azure_ai": "azure",
    "xai": "x-ai",
    "moonshot": "moonshotai",
    "together_ai": "together",
    "fireworks_ai": "fireworks",
    "mistralai": "mistral",
}
_LOCAL_ENDINGS = (".local", ".lan", ".internal", ".home.arpa", ".localhost")


class Rate(NamedTuple):
    """What decides the price of a call beside its day: ``host`` is the address, ``step`` how many of ``STEPS`` it was
    longer than (-1: nobody knows what went in and what came out)."""

    model: str
    tier: str
    host: str
    step: int


class Billed(NamedTuple):
    """The tokens of a call as they are billed, no token in two of them."""

    fresh: int
    read: int
    written: int
    written_1h: int
    generated: int
    searches: int


class Unit(NamedTuple):
    """Picodollars for one of each that is ``Billed``, and the price that was taken, in words."""

    fresh: int
    read: int
    written: int
    written_1h: int
    generated: int
    searches: int
    matched: str

    def price(self, billed: Iterable[int]) -> int:
        """What ``billed`` costs, in picodollars."""
        return sum(unit * count for unit, count in zip(self[:6], billed, strict=True))


def version() -> str:
    """Which prices are taken: the version of the table, and of a person's own."""
    own = own_prices.current()
    return f"genai-prices {_table_version()}" + (f" and {own.name} of {own.stamp}" if own.stamp else "")


@lru_cache(1)
def _table_version() -> str:
    from importlib.metadata import version as version_of

    return version_of("genai-prices")


def step_of(tokens: Usage) -> int:
    """How many of ``STEPS`` a call was longer than."""
    if tokens.input is None and tokens.output is None:
        return _NO_SPLIT
    sent = tokens.input or 0
    return 0 if sent <= STEPS[0] else sum(sent > step for step in STEPS)


def units_of(rate: Rate) -> Units:
    """The unit prices of ``rate`` over time."""
    own = own_prices.current()
    return _units(rate, f"{own.name} {own.stamp}")


class Units:
    """The prices of one rate over time."""

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        own = own_prices.current().price(_names(rate.model))
        self._fixed: Unit | Literal["unmetered"] | None = None
        self._model: ModelInfo | None = None
        self._provider: Provider | None = None
        self._made: dict[int, Unit | None] = {}
        if own is not None and rate.step != _NO_SPLIT:
            self._fixed = Unit(*own.units, matched=f"{own.name}{OF_YOUR}{own_prices.current().name}")
        elif rate.model == DEMO[0] or rate.model.startswith(DEMO[1]) or _is_loopback(rate.host):
            self._fixed = "unmetered"
        elif rate.step != _NO_SPLIT:
            self._provider, self._model = _find(rate.model, rate.host) or (None, None)
            if self._model is None and _is_near(rate.host):
                self._fixed = "unmetered"

    def at(self, when: datetime | None) -> Unit | Literal["unmetered"] | None:
        """The unit prices at ``when`` (``None``: now); ``"unmetered"``, or ``None`` without a price."""
        if self._model is None:
            return self._fixed
        when = when or datetime.now(UTC)
        tier = self._rate.tier
        context = {"processing": tier, "service_tier": tier, "speed": tier} if tier else None
        is_own = any(self._model is one for one in self._provider.models) if self._provider else False
        price = self._model.get_prices(when, context if is_own else None)
        # Without a tier it is one of the table's own prices; with one it is put together at every look.
        key = id(price) if context is None else int(when.timestamp()) // _QUARTER_S
        if key not in self._made:
            self._made[key] = self._unit(price, is_usual=not tier or price == self._model.get_prices(when))
        return self._made[key]

    def _unit(self, price: ModelPrice, *, is_usual: bool) -> Unit | None:
        step, tier = self._rate.step, self._rate.tier
        sent = STEPS[step - 1] + 1 if step else 0

        def pico(name: str, otherwise: int | None = None, per: int = 10**6) -> int | None:
            value = getattr(price, name)
            if value is None:
                return otherwise
            if hasattr(value, "tiers"):
                value = next((tier.price for tier in reversed(value.tiers) if sent > tier.start), value.base)
            pico_each: int = round(value * PICO / per)
            return pico_each

        fresh, generated = pico("input_mtok"), pico("output_mtok")
        if fresh is None or generated is None or self._provider is None or self._model is None:
            return None
        read, written = pico("cache_read_mtok", fresh), pico("cache_write_mtok", fresh)
        hour, searches = pico("cache_write_1h_mtok", written), pico("web_searches_kcount", 0, per=1000)
        matched = f"{self._provider.id} {self._model.id}"
        if tier:
            matched += f", no price for {tier}: the usual one" if is_usual else f", {tier}"
        return Unit(fresh, read or 0, written or 0, hour or 0, generated, searches or 0, matched)


@lru_cache(100_000)
def _units(rate: Rate, own: str) -> Units:
    return Units(rate)


def _names(model: str) -> list[str]:
    """``model`` as it is, and without what routers put before it: ``openrouter/openai/x``, ``openai/x``, ``x``."""
    parts = model.strip().split("/")
    return [name for start in range(len(parts)) if (name := "/".join(parts[start:]))]


@lru_cache(10_000)
def _find(model: str, host: str) -> tuple[Provider, ModelInfo] | None:
    """Whose price of ``model`` counts at ``host``, an address or ``""``.

    At the address of a known provider only its own list; elsewhere (a proxy, an import) by the name of the model.
    """
    from genai_prices.data_snapshot import get_snapshot

    snapshot = get_snapshot()
    names = _names(model)

    def found(name: str, **place: str | None) -> tuple[Provider, ModelInfo] | None:
        try:
            return snapshot.find_provider_model(name, None, place.get("id"), place.get("url"))
        except LookupError:
            return None

    if host and any(re.match(provider.api_pattern, host) for provider in snapshot.providers):
        return next((hit for name in names if (hit := found(name, url=host))), None)
    if _SIZED.search(model):
        return None
    if model.endswith(_FREE):  # what OpenRouter gives away is not sold by this name anywhere else
        return next((hit for name in names if (hit := found(name, id="openrouter"))), None)
    ids = {provider.id for provider in snapshot.providers}
    for place, name in enumerate(names):
        before = _ROUTED.get(router := model.split("/")[place - 1], router) if place else ""
        if before in ids and (hit := found(name, id=before)):
            return hit
        if _BEDROCK.match(name) and (hit := found(name, id="aws")):
            return hit
        if hit := found(name):
            return hit
    return None


def _is_loopback(host: str) -> bool:
    """True if ``host`` names this machine."""
    name, address = _address(host)
    return (
        name in ("localhost", "host.docker.internal")
        or name.endswith(".localhost")
        or bool(address and (address.is_loopback or address.is_unspecified))
    )


def _is_near(host: str) -> bool:
    """True if ``host`` names a machine of the same network."""
    name, address = _address(host)
    return name.endswith(_LOCAL_ENDINGS) or bool(address and not address.is_global)


def _address(host: str) -> tuple[str, ipaddress.IPv4Address | ipaddress.IPv6Address | None]:
    """The name in an address, ``""`` for none, and the number that it is, if it is one."""
    try:
        name = (urlsplit(host if "//" in host else f"//{host}").hostname or "").rstrip(".").lower()
    except ValueError:
        return "", None
    try:
        return name, ipaddress.ip_address(name)
    except ValueError:
        return name, None
