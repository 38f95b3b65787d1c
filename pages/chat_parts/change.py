"""“Change what was said and go on”: a fork in which an answer or a tool result says something else.

The fork's copied part ends there; the changed message says that a person wrote it, with the original one click away.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from pages.chat_parts import cell_menu, chat_state
from pages.shared import folder, frame, links, providers
from pages.shared.safe_markdown import safe_label
from sessions_lib import messages
from sessions_lib.agent import runs
from sessions_lib.errors import SessionError
from sessions_lib.messages import content, tool_calls
from sessions_lib.messages.content import Message
from sessions_lib.store import forks
from sessions_lib.store.session import Session


def draw(session_id: str, index: int, said: Sequence[Message]) -> None:
    """The dialog: which answer or result of the turn of the message ``index``, and what it says instead."""
    key = f"cell-change-{session_id}-{index}"
    start, end = next((start, end) for start, end in tool_calls.each_turn(said) if start <= index < end)
    labels = {at: label for at in range(start, end) if (label := _label(said, at))}
    if not labels:
        st.caption("Nothing was answered in this turn yet.")
        return
    chosen = st.selectbox(
        "What", list(labels), index=len(labels) - 1, format_func=labels.__getitem__, key=f"{key}-what"
    )
    was = str(messages.clean(content.text(said[chosen])))
    typed = st.text_area("What it says instead", was, height=220, key=f"{key}-text-{chosen}")
    is_result = said[chosen].get("role") == "tool"
    st.caption(
        "The fork ends with it, marked as changed by a person; this session stays as it is. "
        + ("The model goes on from there." if is_result else "Go on with your next prompt.")
    )
    # Never disabled: what was typed last comes with the click.
    if st.button("Make the fork", type="primary", key=f"{key}-go"):
        if typed == was:
            st.warning("It says the same as before. Change the text first.", icon=":material/edit:")
            return
        cell_menu.close_dialog()
        _make(session_id, chosen, typed)
        st.rerun()


def _label(said: Sequence[Message], index: int) -> str:
    """What a message is called in the list; ``""`` for one that cannot be changed."""
    message = said[index]
    words = safe_label(" ".join(content.text(message).split()), 60)
    if message.get("role") == "tool":
        return f"Result of {safe_label(str(message.get('name') or 'a tool'), 30)}: {words}"
    is_answer = message.get("role") == "assistant" and bool(content.text(message).strip())
    return f"Answer: {words}" if is_answer else ""


def _make(session_id: str, index: int, typed: str) -> None:
    try:
        session = folder.manager().open(session_id)
        changed = forks.change(session.messages, index, typed)
        child = session.fork(at=changed.at, then=changed.then, mark=changed.mark)
        chat_state.go(child.id)
        if session.messages[index].get("role") == "tool":
            runs.start(child.id, None, providers.run_settings(child.meta))
    except SessionError as error:
        chat_state.refused(error, None)


def draw_mark(session: Session, index: int) -> None:
    """Above a message that a person changed: that it was, and the way to what it was."""
    if "edited" not in session.messages[index]:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"cell-changed-{index}"):
        st.caption(":material/edit: Changed by a person", width="content")
        if session.parent and index == session.inherited and folder.manager().exists(session.parent):
            st.page_link(
                frame.page("chat"),
                label="Original",
                icon=":material/history:",
                query_params=links.to_chat(session.parent, index),
            )
