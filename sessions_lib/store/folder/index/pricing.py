"""Money in the catalog: each row of ``activity`` priced once, and again when the prices change.

A row holds tokens of one model, address, tier, length and quarter of an hour, so it has one price: 500,000 messages are
some 25,000 prices. Nothing is priced, and no table of prices imported, before somebody asks for money.

Does not sum.
"""

from __future__ import annotations

import sqlite3
from datetime import datetime, timedelta
from functools import cache

from sessions_lib import prices
from sessions_lib.price_table import PICO, Billed, Rate, unit_of
from sessions_lib.prices import Spent
from sessions_lib.store.folder.index.schema import transaction
from sessions_lib.store.folder.index.sums import DAY_0_US, QUARTER_US, billed
from sessions_lib.times import EPOCH

_UNPRICED, _UNMETERED = -1.0, -2.0
_ASKED = "model, tier, host, step, quarter"
_PRICE = f"""
UPDATE activity SET is_priced=1, cost=CASE WHEN model IS NOT NULL AND total IS NOT NULL
  THEN money({_ASKED}, {", ".join(Billed._fields)}) END"""
_SORT = f"""
UPDATE activity SET unpriced=CASE cost WHEN {_UNPRICED} THEN total END,
  unmetered=CASE cost WHEN {_UNMETERED} THEN total END, cost=CASE WHEN cost>=0 THEN cost END
WHERE is_priced=1"""
MONEY = "sum(a.cost), sum(a.unpriced), sum(a.unmetered)"


def settle(db: sqlite3.Connection) -> None:
    """Price what is not priced yet, or all if the prices are others by now."""
    version = prices.version()
    is_current = db.execute("SELECT value FROM facts WHERE name='prices'").fetchone()[0] == version
    if is_current and not db.execute("SELECT 1 FROM activity WHERE is_priced=0 LIMIT 1").fetchone():
        return
    offer(db)
    with transaction(db):
        db.execute(_PRICE + (" WHERE is_priced=0" if is_current else ""))
        db.execute(_SORT)
        db.execute("UPDATE activity SET is_priced=2 WHERE is_priced=1")
        db.execute("UPDATE facts SET value=? WHERE name='prices'", (version,))


def offer(db: sqlite3.Connection) -> None:
    """Make ``money(model, tier, host, step, quarter, …what is billed)`` known to SQL: picodollars, -1.0 for unpriced,
    -2.0 for unmetered.
    """
    unit = cache(lambda rate, quarter: unit_of(rate, moment(quarter)))

    def money(model: str, tier: str, host: str, step: int, quarter: int | None, *counts: int) -> float:
        found = unit(Rate(model, tier, host, step), quarter)
        if found is None:
            return _UNPRICED
        return _UNMETERED if isinstance(found, str) else float(found.price(counts))

    db.create_function("money", 5 + len(Billed._fields), money)


def of_call(c: str, quarter: str) -> str:
    """``money`` of a row ``c`` of messages or of calls as SQL; ``NULL`` where its tokens are unknown."""
    rate = f"coalesce({c}.model, ''), {c}.tier, {c}.host, {c}.step, {quarter}"
    return f"CASE WHEN {c}.total IS NOT NULL THEN money({rate}, {', '.join(billed(c))}) END"


def parts(cost: str, total: str) -> str:
    """The sums of ``MONEY`` over rows that have ``money`` in the column ``cost`` and tokens in ``total``."""
    return (
        f"sum({cost}) FILTER (WHERE {cost}>=0), sum({total}) FILTER (WHERE {cost}={_UNPRICED}), "
        f"sum({total}) FILTER (WHERE {cost}={_UNMETERED})"
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


# What was spent in the session ``s`` itself, in picodollars: 0 where nothing was answered, ``NULL`` for unknown.
OWN_COST = "CASE WHEN s.own_answers THEN (SELECT sum(a.cost) FROM activity a WHERE a.session=s.n AND a.own) ELSE 0 END"


def condition(bounds: tuple[tuple[str, float], ...]) -> tuple[list[str], list[int]]:
    """``Query.cost`` as conditions on ``sessions s``, and their values."""
    return [f"{OWN_COST} {sign} ?" for sign, _ in bounds], [round(dollars * PICO) for _, dollars in bounds]
