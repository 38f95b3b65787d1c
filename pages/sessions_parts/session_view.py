"""One session's own view: what it is, its family, its report, its raw lines, its exports.

Does not draw the conversation: Chat does.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import tzinfo

import pandas as pd
import streamlit as st

from pages.sessions_parts import table
from pages.shared import acting, exporting, folder, moments, session_queries
from pages.shared.frame import page
from pages.shared.money import shown, without_price
from pages.shared.safe_markdown import safe_label
from sessions_lib import prices, text
from sessions_lib.errors import SessionError
from sessions_lib.messages import content
from sessions_lib.prices import NOTHING, Spent
from sessions_lib.store.records import SessionInfo
from sessions_lib.store.session import Session
from sessions_lib.text import visible

PARTS = {"": "Family", "report": "Report", "raw": "Raw lines", "export": "Export"}
LINES = 20
_LONGEST_LINE = 4_000
_LARGEST_FAMILY = 100


def draw(info: SessionInfo, where: tzinfo) -> None:
    """Draw the session's own view."""
    _head(info, where)
    _figures(info)
    asked = st.query_params.get("part", "")
    key = "sessions_part"
    if st.session_state.get(key) != (value := asked if asked in PARTS else ""):
        st.session_state[key] = value
    st.segmented_control(
        "Part",
        list(PARTS),
        key=key,
        format_func=PARTS.__getitem__,
        required=True,
        label_visibility="collapsed",
        on_change=_part_chosen,
    )
    parts: dict[str, Callable[[SessionInfo, tzinfo], None]] = {
        "": _family,
        "report": _report,
        "raw": _raw,
        "export": _export,
    }
    with folder.errors_told():
        parts[value](info, where)


def _part_chosen() -> None:
    part = st.session_state["sessions_part"]
    if part:
        st.query_params["part"] = part
    else:
        st.query_params.pop("part", None)
    st.query_params.pop("line", None)


def _head(info: SessionInfo, where: tzinfo) -> None:
    with st.container(key="sessions_own_head"):
        st.page_link(page("sessions"), label="All sessions", icon=":material/arrow_back:")
    st.title(safe_label(info.title), anchor=False)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        for tag in info.tags:
            st.badge(safe_label(tag, 40), color=table.badge_color(tag))
        for state in table.states(info):
            st.badge(state, color="green" if state == "running" else "red", icon=":material/flag:")
        st.caption(f"{safe_label(info.id)} · last message {moments.both(info.last_active, where)}")
    is_parent_here = bool(info.parent and session_queries.infos([info.parent]))
    with st.container(horizontal=True, gap="small"):
        acting.own_buttons(info.id, info.parent if is_parent_here else None)


def _figures(info: SessionInfo) -> None:
    tokens = info.own_tokens
    reported = f"{tokens.reported} of {tokens.answers} answers reported usage" if tokens.answers else None
    inherited = table.inherited_tokens(info)
    with st.container(horizontal=True, key="sessions_figures"):
        st.metric("Turns", f"{info.turns:,}")
        st.metric(
            "Messages",
            f"{info.messages:,}",
            help=f"{info.own_messages:,} written here, {info.inherited:,} copied from its parent"
            if info.parent
            else None,
        )
        own = text.number(tokens.total, is_partial=tokens.is_partial)
        st.metric("Own tokens" if info.parent else "Tokens", own, help=reported)
        if info.parent:
            meaning = "Tokens of the messages copied from its parent."
            st.metric("Inherited tokens", text.number(inherited), help=meaning)
        _money(info)
        st.metric("Tool calls", f"{info.tool_calls:,}")
        st.metric("Tool errors", f":red[{info.errors:,}]" if info.errors else "0")


def _money(info: SessionInfo) -> None:
    own, inherited = session_queries.costs([info.id]).get(info.id, (NOTHING, NOTHING))
    if info.own_tokens.answers:
        meaning = f"{without_price(own) or 'What was spent in this session.'} Prices: {prices.version()}."
        st.metric("Own cost" if info.parent else "Cost", shown(prices.said(own, info.own_tokens)), help=meaning)
    if inherited != NOTHING:
        said = text.spent(inherited.cost, inherited.unpriced, inherited.unmetered)
        st.metric("Inherited cost", shown(said), help="What the messages copied from its parent had cost there.")
    with suppress(SessionError):  # what cannot be read is told by its report
        _reported(folder.current(info.id))


def _reported(session: Session) -> None:
    if told := prices.reported(session.messages, session.meta, session.inherited):
        amount = shown(text.money(told.cost))
        meaning = f"What the tool that wrote it says: {shown(str(told))}."
        st.metric("Reported cost", f":red[{amount}]" if told.differs else amount, help=meaning)


def _family(info: SessionInfo, where: tzinfo) -> None:
    family = folder.manager().family(info.id)
    if info.parent and all(relative.id != info.parent for relative in family):
        st.caption(f"Forked {info.place} of {safe_label(info.parent)}, which is not in this folder any more.")
    if len(family) <= 1:
        st.caption('No forks yet. Open it and choose "Fork from here" at any answer.')
        return
    costs = session_queries.costs([relative.id for relative in family])
    depths: dict[str, int] = {}
    for relative in family[:_LARGEST_FAMILY]:
        depth = depths[relative.id] = depths.get(relative.parent or "", -1) + 1
        _relative(relative, depth, relative.id == info.id, where, costs.get(relative.id, (NOTHING, NOTHING))[0])
    if (more := len(family) - _LARGEST_FAMILY) > 0:
        st.caption(f"and {more} more")


def _relative(info: SessionInfo, depth: int, is_here: bool, where: tzinfo, money: Spent) -> None:
    indent = "\u2003" * max(0, depth - 1) + ("└\u2002" if depth else "")
    label = safe_label(info.title, 80)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"sessions_relative_{info.id}"):
        here = {"session": info.id}
        st.page_link(page("sessions"), label=f"{indent}**{label}**" if is_here else indent + label, query_params=here)
        said = [
            f"forked {info.place}" if depth else "",
            text.count(info.turns, "turn"),
            table.tokens(info),
            shown(table.cost(info, money) or ""),
            moments.both(info.last_active, where),
            "this session" if is_here else "",
        ]
        st.caption(" · ".join(filter(None, said)))


def _report(info: SessionInfo, where: tzinfo) -> None:
    store = folder.store()
    if (holder := store.holder(info.id)) is not None:
        st.caption(f"Being written at this moment{f' since {holder.since}' if holder.since else ''}.")
    faults = store.faults(info.id)
    if not faults:
        st.success("Nothing is wrong with its files.", icon=":material/check_circle:")
        return
    st.dataframe(
        pd.DataFrame(
            {
                "Where": [f.file if f.line is None else f"line {f.line}" for f in faults],
                "What": [f.kind for f in faults],
                "Meaning": [visible(f.text) for f in faults],
                "Repair": ["mends it" if f.can_be_repaired else "leaves it" for f in faults],
            }
        ),
        hide_index=True,
        key="sessions_faults",
        column_config={"Meaning": st.column_config.TextColumn(width="large")},
    )
    if any(fault.can_be_repaired for fault in faults):
        st.button(
            "Repair",
            key="sessions_repair",
            on_click=_repair,
            args=(info.id,),
            icon=":material/build:",
            help="Writes the files anew without what is broken. The originals go to the trash.",
        )


def _repair(session_id: str) -> None:
    with acting.told_as_flash():
        mended = folder.store().repair(session_id)
        acting.tell(f"{len(mended)} faults repaired. The originals are in the trash.")


def _raw(info: SessionInfo, where: tzinfo) -> None:
    store = folder.store()
    total = store.line_count(info.id)
    if not total:
        st.caption("No lines yet: the file is written with the first message.")
        return
    pages = -(-total // LINES)
    asked = st.query_params.get("line", "1")
    first = min(max(1, int(asked)), total) if asked.isascii() and asked.isdigit() and len(asked) < 10 else 1
    number = (first - 1) // LINES + 1
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"{total:,} lines, {content.size_text(info.size_bytes)}", width="stretch")
        if pages > 1:
            key = f"sessions_raw_page_{number}"
            st.pagination(pages, default=number, key=key, on_change=_raw_page_chosen, args=(key,))
    start = (number - 1) * LINES + 1
    for line, written in store.lines(info.id, range(start, start + LINES)).items():
        with st.container(horizontal=True, gap="small"):
            st.caption(str(line), width=44)
            cut = written[:_LONGEST_LINE].encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            st.code(visible(cut) + (" …" if len(written) > _LONGEST_LINE else ""), language=None, wrap_lines=True)


def _raw_page_chosen(key: str) -> None:
    st.query_params["line"] = str((st.session_state[key] - 1) * LINES + 1)


def _export(info: SessionInfo, where: tzinfo) -> None:
    exporting.panel([info.id], "sessions_own_export")
