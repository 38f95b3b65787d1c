"""Money on the pages: amounts that Markdown leaves alone, what has no price in words, the warning about own prices.

Does not price anything.
"""

from __future__ import annotations

import streamlit as st

from pages.shared.safe_markdown import safe_label
from sessions_lib import own_prices, text
from sessions_lib.prices import Spent


def shown(amount: str) -> str:
    """An amount where Markdown is read: two dollar signs in a line would be a formula."""
    return amount.replace("$", "\\$")


def without_price(money: Spent) -> str:
    """``1,550 tokens have no price, 700 are not metered.``; empty if all have one."""
    said = [f"{text.count(money.unpriced, 'token')} have no price"] if money.unpriced else []
    said += [f"{text.count(money.unmetered, 'token')} are not metered"] if money.unmetered else []
    return f"{', '.join(said)}." if said else ""


def draw_fault() -> None:
    """Say that a person's own prices cannot be used, if so: what the page shows is without them."""
    if fault := own_prices.current().fault:
        st.warning(safe_label(fault, 400), icon=":material/price_change:")
