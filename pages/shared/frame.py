"""The frame around every page: its configuration, the list of pages, and the guard that makes deep links work.

With a ``pages/`` folder on disk, the first deep link after a server start runs that page without ``app.py`` (seen on
Streamlit 1.67). ``frame()``, the first statement of every page, notices and starts over through the shell.

Does not draw a page's content.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, Literal

import streamlit as st

from pages.shared import folder, money, reading
from pages.shared.safe_markdown import safe_label
from sessions_lib.errors import SessionError

ROOT = Path(__file__).resolve().parents[2]
PARTS = ROOT / "pages" / "shared"

_SHELL = "frame_shell"
_WIDTHS = {"reading": "50rem", "home": "62rem", "page": "76rem"}
_PAGES = (
    ("home", "Home", ":material/home:"),
    ("chat", "Chat", ":material/forum:"),
    ("sessions", "Sessions", ":material/list:"),
    ("compare", "Compare", ":material/compare_arrows:"),
    ("trials", "Trials", ":material/science:"),
    ("stats", "Stats", ":material/bar_chart:"),
)


def pages() -> list[Any]:
    """The app's pages for ``st.navigation``; Home is the default and lives at ``/``."""
    return [
        st.Page(ROOT / "pages" / f"{name}.py", title=title, icon=icon, url_path=name, default=name == "home")
        for name, title, icon in _PAGES
    ]


def page(name: str) -> str:
    """The path that ``st.switch_page`` and ``st.page_link`` take for the page ``name``: ``page("chat")``."""
    return str(ROOT / "pages" / f"{name}.py")


def configure() -> None:
    """Set title, the local icon and the wide layout: before navigation, or the browser asks Google for the icon."""
    st.set_page_config(page_title="Forkbook", page_icon=str(PARTS / "mark.png"), layout="wide")


def mark_shell() -> None:
    """Remember that this visit came through ``app.py``."""
    st.session_state[_SHELL] = True


def frame(title: str | None = None, *, width: Literal["reading", "home", "page"] = "page") -> None:
    """Make the page whole: through the shell, with the app's style, under the browser title ``title · Forkbook``.

    ``reading`` keeps lines short (chat), ``home`` a little less; ``page`` is for tables and columns.
    """
    if not st.session_state.get(_SHELL):
        configure()
        st.navigation(pages(), position="hidden")
        st.rerun()
    if title:
        st.set_page_config(page_title=f"{title} · Forkbook")
    fault = ""
    try:
        store = folder.store()
        with contextlib.suppress(SessionError):  # the page itself says what is wrong with the folder
            reading.begin(store)
    except SessionError as error:  # it names no folder at all
        fault = str(error)
    st.logo(str(PARTS / "mark.svg"), size="medium")
    st.html(PARTS / "style.css")
    st.html(f"<style>:root {{ --fb-width: {_WIDTHS[width]}; }}</style>")
    with st.container(key="frame-browser"):
        _component()(key="frame_browser", height=0)
    money.draw_fault()
    if fault:
        st.error(safe_label(fault), icon=":material/error:")
        st.stop()


@st.cache_resource(show_spinner=False)
def _component() -> Any:
    """What every page needs of the browser (``frame.js``), registered once in a process."""
    return st.components.v2.component(
        "forkbook_frame", html="<span></span>", js=(PARTS / "frame.js").read_text("utf-8")
    )
