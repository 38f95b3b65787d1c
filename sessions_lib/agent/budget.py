"""Budgets: what a session, or all sessions of a folder, may cost, and how much of it is spent.

A session carries its own (``budget_usd`` in its metadata), else that of ``[budget]`` in a person's own prices; a folder
carries what is said there (see ``own_prices``). What counts is what was spent in the session itself, or in the folder,
each message once. Tokens without a price cannot be counted, and that is said.

Does not stop a request that is under way: it is asked before each.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from sessions_lib import own_prices, text
from sessions_lib.errors import BudgetReached
from sessions_lib.prices import Spent
from sessions_lib.query import Query
from sessions_lib.store.session import Session
from sessions_lib.store.store import SessionStore, is_address

KEY = "budget_usd"
WARN_AT = 0.8


@dataclass(frozen=True, slots=True)
class Budget:
    """A ``limit`` in US dollars, and what was ``spent`` of it by ``whose``: this session, the sessions in a folder."""

    whose: str
    limit: float
    spent: Spent

    @property
    def share(self) -> float:
        """How much of it is spent: 1 for all, more for more than all; unknown money is none of it."""
        return (self.spent.cost or 0.0) / self.limit if self.limit else 1.0

    def __str__(self) -> str:
        spent = text.money(self.spent.cost or 0.0)
        beside = f", beside {text.count(self.spent.unpriced, 'token')} without a price" if self.spent.unpriced else ""
        return f"{self.whose} spent {spent} of a budget of {text.money(self.limit)}{beside}"


def of(session: Session) -> list[Budget]:
    """The budgets that a request in ``session`` counts for: its own, then its folder's."""
    found = []
    own = own_prices.current()
    limit = _limit(session.meta.get(KEY))
    limit = own.session_budget if limit is None else limit
    if limit is not None:
        costs = session.store.catalog.costs([session.id]).get(session.id)
        found.append(Budget("This session", limit, costs[0] if costs else Spent()))
    for where, folder_limit in own.folder_budgets.items():
        if _is_place(where, session.store):
            money = session.store.catalog.numbers.figures(Query()).money
            found.append(Budget(f"The sessions in {session.store.where}", folder_limit, money))
    return found


def check(session: Session, *, is_agreed: bool = False) -> list[Budget]:
    """The budgets of which so much is spent that a person is warned.

    ``BudgetReached`` if one is spent, and nobody agreed to go on.
    """
    found = of(session)
    for budget in found:
        if budget.share >= 1 and not is_agreed:
            raise BudgetReached(str(budget), budget.limit, budget.spent.cost or 0.0)
    return [budget for budget in found if budget.share >= WARN_AT]


def _limit(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else None


def _is_place(where: str, store: SessionStore) -> bool:
    if is_address(where):
        return where in (store.name, store.where)
    return "\0" not in where and os.path.realpath(own_prices.expanded(where)) == store.name
