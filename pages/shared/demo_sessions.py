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
        there = _named(folder.manager().marked("demo"), "a finished trial")
        acting.tell(f"{there} are there to look at. The foot of Home can remove them again.")


def _named(session_ids: Sequence[str], trial: str) -> str:
    """How many sessions are listed, and the ``trial`` if its repeats are among them."""
    metas = folder.store().metas()
    listed = [one for one in session_ids if one not in metas or "trial" not in metas[one].values]
    return f"{count(len(listed), 'session')}{f' and {trial}' if len(listed) < len(session_ids) else ''}"


def draw_remove(session_ids: Sequence[str]) -> None:
    """One line: the demo is among the sessions, and a button that moves it to the trash, with undo."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="home-demo"):
        st.caption(f"The demo’s {_named(session_ids, 'its trial')} are among yours.", width="content")
        st.button(
            "Remove the demo",
            icon=":material/delete_sweep:",
            type="tertiary",
            key="home-demo-remove",
            on_click=acting.trash,
            args=(tuple(session_ids),),
        )
