"""The demo's sessions on the pages: the button that loads them, and, elsewhere, the one that takes them away.

The two never stand in the same place: whoever clicks "Load the demo" twice must not hit its removal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import streamlit as st

from pages.shared import acting, folder
from sessions_lib import demo
from sessions_lib.text import count


def draw_load(key: str, kind: Literal["primary", "secondary"] = "secondary") -> None:
    """The button that makes the demo's sessions; the page it stands on stays open and says so."""
    st.button("Load the demo", key=key, type=kind, icon=":material/science:", on_click=_load)


def _load() -> None:
    with acting.told_as_flash():
        demo.load(folder.manager())
        # Of all that are there: a second click finds the first one's sessions, and says the same.
        there = count(len(folder.manager().marked("demo")), "session")
        acting.tell(f"{there} are there to look at. The foot of Home can remove them again.")


def draw_remove(session_ids: Sequence[str]) -> None:
    """One line: the demo is among the sessions, and a button that moves it to the trash, with undo."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="home-demo"):
        st.caption(f"The demo’s {count(len(session_ids), 'session')} are among yours.", width="content")
        st.button(
            "Remove the demo",
            icon=":material/delete_sweep:",
            type="tertiary",
            key="home-demo-remove",
            on_click=acting.trash,
            args=(tuple(session_ids),),
        )
