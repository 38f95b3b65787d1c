"""The comparison on the page: made as HTML by ``comparison_html``, put into one inline component.

``grid.js`` sends what a person clicks, and walks through the differences. Does not compare or draw by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamlit as st

from sessions_lib.compare import Comparison
from sessions_lib.export import comparison_html
from sessions_lib.export.comparison_text import Look

_HERE = Path(__file__).parent

MOST_ROWS = 300


@st.cache_resource(show_spinner=False)
def _component() -> Any:
    return st.components.v2.component(
        "forkbook_grid",
        html="<div class='comparison'></div>",
        css=comparison_html.style_sheet(),
        js=(_HERE / "grid.js").read_text(encoding="utf-8"),
    )


def head(comparison: Comparison, key: str) -> None:
    """Draw what differs, first: a sentence for each branch, and the settings that differ."""
    _component()(key=key, data={"html": comparison_html.head(comparison), "here": None}, height="content")


def grid(comparison: Comparison, look: Look, *, key: str, picked: Callable[[dict[str, Any]], None]) -> None:
    """Draw ``comparison``, scrolled to the row ``look.here``.

    ``picked`` is called with what a person asks for: ``{"act": "shared"}``, ``{"act": "turn", "turn": 4, "id": …}``,
    ``{"act": "rows"}`` or ``{"act": "open", "id": …, "message": …}``.
    """

    def chosen() -> None:
        found = (st.session_state.get(key) or {}).get("pick")
        if isinstance(found, dict):
            picked(found)

    sent = {"html": comparison_html.body_of(comparison, look), "here": look.here}
    _component()(key=key, data=sent, on_pick_change=chosen, height="content")
