"""The presenting view (``present=1``, key ``P``): a comparison, a session or a trial over the whole window.

The keyboard alone is enough: left and right a slide, up and down the pointer, Escape ends. The slides are made as HTML
by ``presentation``; ``presenting.js`` shows one at a time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from sessions_lib.export import presentation

_HERE = Path(__file__).parent
_KEY = "presentation"


def is_on() -> bool:
    """True if the address asks for the presenting view."""
    return st.query_params.get("present") == "1"


def button(*, is_quiet: bool = False) -> None:
    """The button that begins, and the key ``P`` with it (``frame.js``)."""
    st.button(
        "Present",
        icon=":material/slideshow:",
        key="present",
        type="tertiary" if is_quiet else "secondary",
        help="Over the whole window, a turn at a time. Key: P",
        on_click=_begin,
    )


def _begin() -> None:
    st.query_params["present"] = "1"


def draw(slides: str) -> None:
    """Show ``slides`` over everything else, until Escape."""
    _component()(key=_KEY, data={"html": slides}, on_end_change=_end, height=0)


def _end() -> None:
    st.query_params.pop("present", None)


@st.cache_resource(show_spinner=False)
def _component() -> Any:
    return st.components.v2.component(
        "forkbook_presentation",
        html="<div class='presentation comparison' tabindex='-1' role='region' aria-label='Presentation'></div>",
        css=presentation.style_sheet(),
        js=(_HERE / "presenting.js").read_text(encoding="utf-8"),
    )
