"""Money in the catalog: each row of ``activity`` priced once, and again when the prices change.

A row holds tokens of one model, address, tier, length and quarter of an hour, so it has one price: 500,000 messages are
some 25,000 prices. Nothing is priced, and no table of prices imported, before somebody asks for money.

Does not sum.
"""

from __future__ import annotations

import sqlite3
from datetime import datetime, timedelta

from sessions_lib import prices
from sessions_lib.price_table import PICO, Billed, Rate, Units, units_of
from sessions_lib.prices import Spent
from sessions_lib.store.folder.index.schema import transaction
from sessions_lib.store.folder.index.sums import DAY_0_US, QUARTER_US, billed
from sessions_lib.times import EPOCH

_UNPRICED, _UNMETERED = -1.0, -2.0
_PRICE = f"""
UPDATE activity SET is_priced=1, cost=CASE WHEN model IS NOT NULL AND total IS NOT NULL
  THEN money(model, tier, host, step, quarter, {", ".join(Billed._fields)}) END"""


def settle(db: sqlite3.Connection) -> None:
    """Price what is not priced yet, or all if the prices are others by now."""
    version = prices.version()
    is_current = db.execute("SELECT value FROM facts WHERE name='prices'").fetchone()[0] == version
    if is_current and not db.execute("SELECT 1 FROM activity WHERE is_priced=0 LIMIT 1").fetchone():
        return
    offer(db)
    with transaction(db):
        db.execute(_PRICE + (" WHERE is_priced=0" if is_current else ""))
        db.execute("UPDATE facts SET value=? WHERE name='prices'", (version,))


def offer(db: sqlite3.Connection) -> None:
    """Make ``money(model, tier, host, step, quarter, …what is billed)`` known to SQL: picodollars, -1.0 for unpriced,
    -2.0 for unmetered.
    """
    found: dict[tuple[str, str, str, int], Units] = {}

    def money(model: str, tier: str, host: str, step: int, quarter: int | None, *counts: int) -> float:
        key = (model, tier, host, step)
        units = found.get(key)
        if units is None:
            units = found[key] = units_of(Rate(*key))
        unit = units.at(moment(quarter))
        if unit is None:
            return _UNPRICED
        return _UNMETERED if isinstance(unit, str) else float(unit.price(counts))

    db.create_function("money", 5 + len(Billed._fields), money)


def of_call(c: str, quarter: str) -> str:
    """``money`` of a row ``c`` of messages or of calls as SQL; ``NULL`` where its tokens are unknown."""
    rate = f"coalesce({c}.model, ''), {c}.tier, {c}.host, {c}.step, {quarter}"
    return f"CASE WHEN {c}.total IS NOT NULL THEN money({rate}, {', '.join(billed(c))}) END"


def parts(cost: str, total: str, also: str = "1") -> str:
    """The sums of ``numbers.MONEY`` over rows with ``money`` in the column ``cost`` and tokens in ``total``."""
    return (
        f"sum({cost}) FILTER (WHERE {cost}>=0 AND {also}), sum({total}) FILTER (WHERE {cost}={_UNPRICED} AND {also}), "
        f"sum({total}) FILTER (WHERE {cost}={_UNMETERED} AND {also})"
    )


def moment(quarter: int | None) -> datetime | None:
    """When a quarter of an hour begins; ``None`` where nobody knows, or the calendar does not."""
    try:
        return None if quarter is None else EPOCH + timedelta(microseconds=quarter * QUARTER_US - DAY_0_US)
    except OverflowError:
        return None


def row(cost: float | None, unpriced: int | None, unmetered: int | None) -> tuple[float | None, int, int]:
    """The columns ``numbers.MONEY`` of sums as SQL gives them."""
    return prices.dollars(cost), unpriced or 0, unmetered or 0


def spent(cost: float | None, unpriced: int | None, unmetered: int | None) -> Spent:
    """The same as an object."""
    return Spent(*row(cost, unpriced, unmetered))


MONEY = parts("a.cost", "a.total")
OWN_MONEY = parts("a.cost", "a.total", "a.own")
COPIED_MONEY = parts("a.cost", "a.total", "NOT a.own")
# What was spent in the session ``s`` itself, in picodollars: 0 where nothing was answered, ``NULL`` for unknown.
OWN_COST = (
    "CASE WHEN s.own_answers THEN (SELECT sum(a.cost) FROM activity a WHERE a.session=s.n AND a.own AND a.cost>=0) "
    "ELSE 0 END"
)


def condition(bounds: tuple[tuple[str, float], ...]) -> tuple[list[str], list[int]]:
    """``Query.cost`` as conditions on ``sessions s``, and their values."""
    return [f"{OWN_COST} {sign} ?" for sign, _ in bounds], [round(dollars * PICO) for _, dollars in bounds]
