"""Which session a visitor has open in Chat, and what the page still has to tell them.

The address says what is open (``/chat?session=…``); the visitor's state remembers it for the way back to the page.
Never holds messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict

import streamlit as st

from pages.shared import browser, links
from sessions_lib.errors import BudgetReached, SessionError
from sessions_lib.messages.content import Message
from sessions_lib.messages.tool_calls import each_turn

WINDOW = 30  # turns on the page at first
STEP = 30  # more of them on demand
CAP = 150  # then the other end is dropped

_SESSION, _NOTICE = "chat_session", "chat_notice"


class Notice(TypedDict, total=False):
    """Something the visitor has to know until they dismiss it; ``prompt`` is what they typed and must not lose.

    ``over_budget``: they are asked whether to go on all the same.
    """

    kind: Literal["error", "info"]
    text: str
    prompt: str
    session: str
    undo: str
    over_budget: bool


def chosen() -> str | None:
    """The id in the address, else the session this visitor had open last, which goes into the address."""
    session = links.asked("session")
    if session is None and (remembered := st.session_state.get(_SESSION)):
        session = str(remembered)
        st.query_params["session"] = session
    if session is not None:
        st.session_state[_SESSION] = session
    return session


def go(session: str | None, message: int | None = None) -> None:
    """Open ``session`` (``None``: the page for a new one), at the message of index ``message``."""
    for name in ("session", "message"):
        if name in st.query_params:
            del st.query_params[name]
    st.session_state[_SESSION] = session
    if session is not None:
        for name, value in links.to_chat(session, message).items():
            st.query_params[name] = value


def refused(error: SessionError, prompt: str | None = None, locked: str | None = None) -> None:
    """Tell why nothing was sent, with the ``prompt`` that was typed; ``locked`` is the session another one writes."""
    told: Notice = {"kind": "error", "text": str(error)}
    if prompt is not None:
        told["prompt"] = prompt
    if isinstance(error, BudgetReached):
        told["over_budget"] = True
    if locked is not None:
        told["session"] = locked
    notify(told)


def notify(notice: Notice) -> None:
    """Tell the visitor something that stays until it is dismissed."""
    st.session_state[_NOTICE] = notice


def notice() -> Notice | None:
    """What the visitor was told and has not dismissed."""
    found: Notice | None = st.session_state.get(_NOTICE)
    return found


def dismiss() -> None:
    """Forget what the visitor was told."""
    st.session_state.pop(_NOTICE, None)


def cell_key(session: str, start: int) -> str:
    """The key of the cell of the turn that starts at the message of index ``start``."""
    return f"chat-cell-{session.replace('.', '_')}-{start}"


def window(session: str, messages: Sequence[Message]) -> tuple[int, int]:
    """The turns to draw, as half-open positions: around the message asked for, else the last ones, else as scrolled."""
    ranges = list(each_turn(messages))
    count = len(ranges)
    asked = links.asked_message()
    state = f"chat-window-{session}"
    if asked is not None and st.session_state.get(f"{state}-asked") != asked:
        st.session_state[f"{state}-asked"] = asked
        found = next((i for i, (start, end) in enumerate(ranges) if start <= asked < end), None)
        if found is not None:
            first = max(0, min(found - 5, count - WINDOW))
            st.session_state[state] = (first, first + WINDOW)
            browser.scroll_to(cell_key(session, ranges[found][0]))
    first, last = st.session_state.get(state, (None, None))
    if first is None or first >= count:
        return max(0, count - WINDOW), count
    if last >= count - 1:
        last = count
    return first, min(last, count)


def move_window(session: str, first: int, last: int) -> None:
    """Show the turns ``first`` to ``last`` from now on."""
    st.session_state[f"chat-window-{session}"] = (first, last)


def to_newest(session: str) -> None:
    """Show the last turns again, and follow them."""
    st.session_state.pop(f"chat-window-{session}", None)


def forget() -> None:
    """Open Chat with a new session next time."""
    st.session_state.pop(_SESSION, None)
