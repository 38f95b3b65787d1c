"""Money on the pages: amounts that Markdown leaves alone, what has no price in words, the warning about own prices.

Does not price anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from pages.shared import providers
from pages.shared.safe_markdown import safe_label
from sessions_lib import own_prices, prices, text
from sessions_lib.errors import SessionError
from sessions_lib.messages.content import Message
from sessions_lib.prices import Reported, Spent


def shown(amount: str) -> str:
    """An amount where Markdown is read: two dollar signs in a line would be a formula."""
    return amount.replace("$", "\\$")


def reported(told: Reported | None) -> list[str]:
    """What the tool that wrote the answers says they cost; in red where that is not what is computed."""
    if told is None:
        return []
    return [f":red[{shown(str(told))}]" if told.differs else shown(str(told))]


def without_price(money: Spent) -> str:
    """``1,550 tokens have no price, 700 are not metered.``; empty if all have one."""
    said = [f"{text.count(money.unpriced, 'token')} have no price"] if money.unpriced else []
    said += [f"{text.count(money.unmetered, 'token')} are not metered"] if money.unmetered else []
    return f"{', '.join(said)}." if said else ""


def draw_fault() -> None:
    """Say that a person's own prices cannot be used, if so: what the page shows is without them."""
    if fault := own_prices.current().fault:
        st.warning(safe_label(fault, 400), icon=":material/price_change:")


def draw_history_cost(said: Sequence[Message], meta: Mapping[str, Any]) -> None:
    """What sending ``said`` once more costs with the settings in ``meta``, where that is known."""
    try:
        where = providers.endpoint(providers.told(meta))
    except SessionError:
        return
    if not where.is_demo and (again := prices.of_history(said, where.model, where.base_url or "")):
        st.caption(safe_label(again, 300))
