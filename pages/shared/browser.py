"""What only the browser can do for the Chat page: copy a text, scroll to a turn, and the keys that move between turns.

Asks are left in the visitor's state and done when the page is drawn next, once.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import streamlit as st

_HERE = Path(__file__).parent
_COPY, _SCROLL, _COMPONENT = "browser_copy", "browser_scroll", "browser"


def copy(text: str, said: str) -> None:
    """Put ``text`` on the visitor's clipboard; ``said`` is the toast that tells so."""
    st.session_state[_COPY] = {"id": secrets.token_hex(8), "text": text, "said": said}


def scroll_to(key: str) -> None:
    """Bring the element with the key ``key`` to the top of the window."""
    st.session_state[_SCROLL] = {"id": secrets.token_hex(8), "key": key}


def draw() -> None:
    """Do what was asked for; to be called once a run, after the elements it may scroll to."""
    asked = st.session_state.get(_COPY)
    if asked and asked.get("said"):
        st.toast(asked.pop("said"), icon=":material/content_copy:")
    data: dict[str, Any] = {"copy": asked, "scroll": st.session_state.get(_SCROLL)}
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
