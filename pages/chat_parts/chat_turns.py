"""The middle of Chat: the turns in the window, the rule where a fork begins, the chips of children, the damage.

Does not load the session, and writes nothing.
"""

from __future__ import annotations

from functools import partial

import streamlit as st

from pages.chat_parts import cell_menu, change, chat_state, message
from pages.chat_parts.turn import View, draw_turn, turns_of
from pages.shared import browser, folder, links
from pages.shared.safe_markdown import safe_label
from sessions_lib import messages, text
from sessions_lib.agent import approval
from sessions_lib.messages import places, tool_calls
from sessions_lib.store.session import Session
from sessions_lib.text import visible

DAMAGED_SHOWN = 50  # lines, in the raw view
_SHOWN = "chat_shown"  # the session this visitor saw last: a newly opened one is shown at its end


def draw_turns(session: Session, view: View, *, is_live: bool) -> st.delta_generator.DeltaGenerator:
    """The turns in the window; returns the place, in the last cell, where a live answer goes."""
    stored = session.messages
    if not stored:
        st.caption("Nothing was said yet. Ask something below; every message is saved as it is said.")
        return st.empty()
    first, last = chat_state.window(session.id, stored)
    count = messages.turn_count(stored)
    forbidden = tool_calls.forbidden_points(stored)
    children = folder.children(session.id)
    _draw_earlier(session.id, first, last)
    place = st.empty()
    asked = links.asked_message()
    drawn = turns_of(stored, first, last)
    for turn in drawn:
        is_last = turn.end == len(stored)
        key = chat_state.cell_key(session.id, turn.start)
        with st.container(key=key, gap="xsmall"):
            if asked is not None and turn.start <= asked < turn.end:
                st.html('<span class="fb-found"></span>')
            draw_turn(
                turn,
                key,
                meta=session.meta,
                view=view,
                is_live=is_live and is_last,
                menu=partial(cell_menu.draw_menu, session.id, turn, forbidden),
                before=partial(_draw_rule_at, session),
            )
            if is_last:
                place = st.container(key="chat-live", gap="small")
            cell_menu.draw_children(session.id, turn, children)
    if last == len(list(tool_calls.each_turn(stored))) and asked is None and st.session_state.get(_SHOWN) != session.id:
        browser.scroll_to(chat_state.cell_key(session.id, drawn[-1].start if drawn else 0))
    st.session_state[_SHOWN] = session.id
    if session.parent and session.inherited == len(stored):
        _draw_rule(session)
    _draw_later(session.id, first, last, count)
    return place


def _draw_rule_at(session: Session, index: int) -> None:
    if session.parent and index == session.inherited:
        _draw_rule(session)
    change.draw_mark(session, index)


def _draw_rule(session: Session) -> None:
    inherited = session.messages[: session.inherited]
    assert session.parent is not None  # asked by the callers
    cell_menu.draw_rule(session, session.parent, cell_menu.effects_line(inherited))


def _draw_earlier(session_id: str, first: int, last: int) -> None:
    if first <= 0:
        return
    new_first = max(0, first - chat_state.STEP)
    with st.container(horizontal=True, horizontal_alignment="center"):
        st.button(
            f"Load earlier turns ({first:,} more)",
            key=f"chat-earlier-{session_id}",
            icon=":material/expand_less:",
            type="tertiary",
            on_click=chat_state.move_window,
            args=(session_id, new_first, min(last, new_first + chat_state.CAP)),
        )


def _draw_later(session_id: str, first: int, last: int, count: int) -> None:
    total = max(count, last)
    if last >= total:
        return
    new_last = min(total, last + chat_state.STEP)
    with st.container(horizontal=True, horizontal_alignment="center"):
        st.button(
            f"Load later turns ({total - last:,} more)",
            key=f"chat-later-{session_id}",
            icon=":material/expand_more:",
            type="tertiary",
            on_click=chat_state.move_window,
            args=(session_id, max(first, new_last - chat_state.CAP), new_last),
        )
        st.button(
            "To the newest",
            key=f"chat-newest-{session_id}",
            type="tertiary",
            on_click=_to_newest,
            args=(session_id,),
        )


def _to_newest(session_id: str) -> None:
    chat_state.to_newest(session_id)
    chat_state.go(session_id)


def draw_damage(session: Session) -> None:
    """What reading found wrong, as one quiet line that opens to the details."""
    report = session.report
    pieces = []
    if report.damaged:
        pieces.append(f"{text.count(len(report.damaged), 'damaged line')} left in the file")
    if report.repaired:
        pieces.append(f"{text.count(len(report.repaired), 'line')} read in spite of a fault")
    asked = {call.id for call in approval.waiting(session)}  # these wait for a person, and did not run
    unanswered = [call for call in report.unanswered if call.id not in asked]
    if unanswered:
        pieces.append(f"{text.count(len(unanswered), 'tool call')} without a result")
    if report.metadata:
        pieces.append("metadata unreadable")
    if not pieces:
        return
    with st.expander(" · ".join(pieces), type="compact", icon=":material/healing:", key=f"chat-damage-{session.id}"):
        st.caption("Every whole line is shown. Nothing was changed by reading.")
        lines = [f"- line {item.line}: {safe_label(item.reason)}" for item in [*report.damaged, *report.repaired][:50]]
        turns = places.turns_of(session.messages)
        lines += [
            f"- {safe_label(tool_calls.label(call))} in turn {turns[call.message]}: no result was recorded; "
            "whether it took effect is unknown, and the model is told so"
            for call in unanswered[:50]
        ]
        if report.metadata:
            lines.append(f"- the metadata {safe_label(report.metadata)}; title and tags are not known")
        st.markdown("\n".join(lines))
        if report.damaged:
            st.caption("To take the damaged lines out (the original is kept):")
            st.code(f"forkbook repair {session.id}", language="sh")


def draw_damaged_lines(session: Session) -> None:
    """The damaged lines as they stand in the file; bytes that are no text are named by their numbers."""
    damaged = session.report.damaged
    if not damaged:
        return
    shown = damaged[:DAMAGED_SHOWN]
    found = folder.store().lines(session.id, {item.line for item in shown})
    for item in shown:
        st.caption(f":material/healing: Line {item.line} · {safe_label(item.reason)}")
        text = found.get(item.line, "").encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        key = f"chat-damaged-{session.id}-{item.line}"
        message.draw_cut(
            text, key, message.RAW_SHOWN, lambda text: st.code(visible(text), language=None, wrap_lines=True)
        )
    if len(damaged) > len(shown):
        st.caption(f"{len(damaged) - len(shown):,} more damaged lines: forkbook check {session.id}")
