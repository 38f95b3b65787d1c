"""A person's own prices and budgets, from one TOML file: ``$FORKBOOK_PRICES``, else ``prices.toml`` in the folder of
settings (``$XDG_CONFIG_HOME/forkbook``, ``~/.config/forkbook``).

::

    currency = "EUR"            # what the prices below are in; US dollars without it
    rate = 1.08                 # US dollars for one of it

    [model."my-model"]          # per million tokens; "my-*" is every model whose name starts so
    input = 0.5
    output = 1.5
    cached = 0.05               # read from a cache; else as input
    cache_write = 0.6           # written to a cache; else as input
    cache_write_1h = 1.0        # kept there for an hour; else as cache_write

    [budget]                    # in US dollars
    session = 2.0               # of every session that has none of its own
    folder."~/.pi-agent/sessions" = 50.0

A file that cannot be read gives no prices and no budgets, and ``fault`` says why.

Does not know what a token cost anybody.
"""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

_KEYS = ("input", "output", "cached", "cache_write", "cache_write_1h")


@dataclass(frozen=True, slots=True)
class OwnPrice:
    """The picodollars for one token: fresh, read, written, written for an hour, generated; and for a search."""

    name: str
    units: tuple[int, int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Own:
    """What the file says; ``stamp`` changes when it does, and is empty without one."""

    name: str = ""
    stamp: str = ""
    prices: Mapping[str, OwnPrice] = field(default_factory=dict)
    session_budget: float | None = None
    folder_budgets: Mapping[str, float] = field(default_factory=dict)
    fault: str = ""

    def price(self, names: Sequence[str]) -> OwnPrice | None:
        """The price of the first of ``names`` that has one; a whole name before a beginning, the longest of these."""
        for name in map(str.lower, names):
            if name in self.prices:
                return self.prices[name]
        begun = [key for key in self.prices if key.endswith("*") and any(n.lower().startswith(key[:-1]) for n in names)]
        return self.prices[max(begun, key=len)] if begun else None


_NONE = Own()


def place() -> Path:
    """The file of a person's own prices, there or not."""
    if named := os.environ.get("FORKBOOK_PRICES"):
        return expanded(named)
    return expanded(os.environ.get("XDG_CONFIG_HOME") or "~/.config") / "forkbook" / "prices.toml"


def expanded(path: str) -> Path:
    """``path`` with the home folder for its ``~``; as it is where that is nobody's."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def current() -> Own:
    """What the file says now; looked at anew whenever it changed."""
    path = place()
    try:
        state = path.stat()
    except OSError as error:
        # A file that was named and is not there is a mistake; the usual one need not be there.
        named = bool(os.environ.get("FORKBOOK_PRICES"))
        return Own(path.name, fault=f"{path} cannot be read ({error.strerror}). {_NEXT}") if named else _NONE
    return _read(path, state.st_mtime_ns, state.st_size, state.st_ino)


_NEXT = "Your own prices and budgets are not used until it is put right."


@lru_cache(8)
def _read(path: Path, mtime_ns: int, size: int, inode: int) -> Own:
    moment = datetime.fromtimestamp(mtime_ns / 10**9, UTC).isoformat(timespec="microseconds")
    stamp = f"{moment} ({size} bytes)"
    try:
        return _own(path.name, stamp, tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        return Own(path.name, stamp, fault=f"{path} cannot be read ({error.strerror}). {_NEXT}")
    except (ValueError, RecursionError) as error:
        return Own(path.name, stamp, fault=f"{path}: {error}. {_NEXT}")


def _own(name: str, stamp: str, told: Mapping[str, Any]) -> Own:
    _known(told, ("currency", "rate", "model", "budget"), "the file")
    rate = 1.0
    if "rate" in told:
        rate = _amount(told["rate"], "rate")
    elif str(told.get("currency", "USD")).upper() != "USD":
        raise ValueError(f"prices in {told['currency']} need a rate: how many US dollars one of it is (rate = 1.08)")
    prices = {}
    for model, given in _table(told, "model").items():
        at = f'model."{model}"'
        if not isinstance(given, Mapping):
            raise ValueError(f"{at} is no table of prices ([{at}] and input = 0.5 below it)")
        _known(given, _KEYS, at)
        told_prices = {key: _amount(given[key], f"{at} {key}") * rate for key in given}
        if not {"input", "output"} <= told_prices.keys():
            raise ValueError(f"{at} needs input and output, each the price of a million tokens")
        fresh = told_prices["input"]
        written = told_prices.get("cache_write", fresh)
        hour = told_prices.get("cache_write_1h", written)
        units = (fresh, told_prices.get("cached", fresh), written, hour, told_prices["output"])
        prices[model.lower()] = OwnPrice(model, (*(round(price * 10**6) for price in units), 0))  # type: ignore[arg-type]  # five and one
    budget = _table(told, "budget")
    _known(budget, ("session", "folder"), "budget")
    session = _amount(budget["session"], "budget session") if "session" in budget else None
    folders = {
        str(where): _amount(limit, f'budget folder."{where}"') for where, limit in _table(budget, "folder").items()
    }
    return Own(name, stamp, prices, session, folders)


def _table(told: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = told.get(key, {})
    if not isinstance(value, Mapping):
        raise ValueError(f"{key} is no table ([{key}])")
    return value


def _known(told: Mapping[str, Any], keys: Sequence[str], where: str) -> None:
    if unknown := [key for key in told if key not in keys]:
        raise ValueError(f"{where} says {unknown[0]}, which is none of {', '.join(keys)}")


def _amount(value: Any, where: str) -> float:
    """A number of money; not a sum below 0, not a text."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not math.isfinite(value)
        or not 0 <= value < 10**6
    ):
        raise ValueError(f"{where} is no amount (it looks like 0.5)")
    return float(value)
