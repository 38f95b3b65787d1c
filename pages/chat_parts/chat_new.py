"""Chat without a session: a new one to begin, recent ones to go on with, and the way out where one is not there."""

from __future__ import annotations

import streamlit as st

from pages.chat_parts import chat_composer, chat_state
from pages.shared import folder, frame, links, providers
from pages.shared.safe_markdown import safe_label
from sessions_lib import demo
from sessions_lib.errors import SessionError, SessionNotFound


def draw() -> None:
    """The page of a session that does not exist yet: it is made when the first prompt is sent."""
    st.title("New session", anchor=False)
    st.caption("It becomes a file of its own with your first prompt, and every message is saved as it is said.")
    if providers.is_demo(providers.told({})):
        st.caption("The **demo model** answers: a scripted village, offline. Try:")
        for number, prompt in enumerate((demo.DAY_1, demo.DAY_2, demo.WEST)):
            st.button(
                safe_label(prompt),
                key=f"chat-try-{number}",
                icon=":material/chat_bubble:",
                on_click=chat_composer.send,
                args=(None, prompt),
            )
    with folder.errors_told():
        recent = folder.manager().catalog.list(5)
        if recent:
            st.header("Or go on with", anchor=False)
        for info in recent:
            st.page_link(
                frame.page("chat"),
                label=safe_label(info.title, 80),
                icon=":material/forum:",
                query_params=links.to_chat(info.id),
            )


def draw_way_out(session_id: str, error: SessionError) -> None:
    """What to do where the session in the address cannot be opened."""
    with st.container(horizontal=True):
        if isinstance(error, SessionNotFound) and _is_in_trash(session_id):
            st.button(
                "Restore it",
                key="chat-restore",
                icon=":material/restore_from_trash:",
                type="primary",
                on_click=chat_composer.restore,
                args=(session_id,),
            )
        st.button("New session", key="chat-new", icon=":material/add:", on_click=chat_state.go, args=(None,))
        st.page_link(frame.page("sessions"), label="All sessions", icon=":material/list:")


def _is_in_trash(session_id: str) -> bool:
    try:
        return any(entry.session == session_id and entry.kind == "deleted" for entry in folder.manager().trash())
    except SessionError:
        return False
