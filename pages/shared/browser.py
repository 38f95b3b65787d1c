"""What only the browser can do for the Chat page: copy a text, scroll to a turn, the keys that move between turns.
And a word in passing, a toast, that says what was done.

Asks are left in the visitor's state and done when the page is drawn next, once.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import streamlit as st

from pages.shared.safe_markdown import safe_label

_HERE = Path(__file__).parent
_COPY, _SCROLL, _SAID, _COMPONENT = "browser_copy", "browser_scroll", "browser_said", "browser"


def copy(text: str, said: str) -> None:
    """Put ``text`` on the visitor's clipboard; ``said`` is the toast that tells so."""
    st.session_state[_COPY] = {"id": secrets.token_hex(8), "text": text}
    say(said, "content_copy")


def say(text: str, icon: str = "check_circle") -> None:
    """Tell the visitor in passing what was done, when the page is drawn next."""
    st.session_state[_SAID] = (text, icon)


def scroll_to(key: str) -> None:
    """Bring the element with the key ``key`` to the top of the window."""
    st.session_state[_SCROLL] = {"id": secrets.token_hex(8), "key": key}


def draw() -> None:
    """Do what was asked for; to be called once a run, after the elements it may scroll to."""
    if said := st.session_state.pop(_SAID, None):
        st.toast(safe_label(said[0]), icon=f":material/{said[1]}:")
    data: dict[str, Any] = {"copy": st.session_state.get(_COPY), "scroll": st.session_state.get(_SCROLL)}
    with st.container(key="browser-part"):
        component()(key=_COMPONENT, data=data, on_failed_change=_copy_failed, height=0)
    if failed := st.session_state.get("browser_failed"):
        st.caption("The browser did not allow copying; here it is:")
        st.code(failed, language=None, wrap_lines=True)
        st.button("Close", key="browser-close", on_click=_close)


@st.cache_resource(show_spinner=False)
def component() -> Any:
    """The component, registered once in a process."""
    return st.components.v2.component(
        "forkbook_browser", html="<span></span>", js=(_HERE / "browser.js").read_text("utf-8")
    )


def _copy_failed() -> None:
    asked = st.session_state.get(_COPY)
    st.session_state["browser_failed"] = asked["text"] if asked else ""


def _close() -> None:
    st.session_state.pop("browser_failed", None)
