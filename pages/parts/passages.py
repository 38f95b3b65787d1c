"""What a search found, in its words: snippets with the match marked, grouped by session, each opening at its message.

Does not search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import tzinfo

import streamlit as st

from pages.parts import links, moments
from pages.parts.filters import Filters
from pages.parts.frame import page
from pages.parts.safe_markdown import safe_label, visible
from sessions_lib.listing import Hit, SessionInfo

PER_SESSION = 3
_WHO = {"user": "You", "assistant": "Answer", "tool": "Tool result", "system": "System"}


def grouped(found: Sequence[Hit]) -> dict[str, list[Hit]]:
    """The hits by session, the session with the newest hit first."""
    groups: dict[str, list[Hit]] = {}
    for hit in found:
        groups.setdefault(hit.session, []).append(hit)
    return groups


def marked(hit: Hit) -> str:
    """The snippet as Markdown: nothing in it is interpreted, and what matched has a background."""
    written, at = [], 0
    for start, end in hit.marks:
        match = _piece(hit.snippet[start:end])
        written += [_piece(hit.snippet[at:start]), f":orange-background[{match}]" if match.strip() else match]
        at = end
    return "".join([*written, _piece(hit.snippet[at:])]).strip()


def _piece(text: str) -> str:
    """``text`` escaped, with the blanks at its ends: they part it from the marks around it."""
    core = safe_label(text)
    if not core:
        return " " if text else ""
    return " " * text[:1].isspace() + core + " " * text[-1:].isspace()


def draw(infos: dict[str, SessionInfo], groups: dict[str, list[Hit]], chosen: Filters, where: tzinfo) -> None:
    """Draw the groups of one page; ``infos`` are their sessions."""
    for session, found in groups.items():
        info = infos.get(session)
        if info is None:
            continue
        with st.container(key=f"sessions_group_{session}", gap="small"):
            _head(info, len(found), where)
            shown = found if len(groups) == 1 else found[:PER_SESSION]
            for hit in shown[:100]:
                _passage(hit, where)
            if (more := len(found) - len(shown)) > 0:
                st.page_link(
                    page("sessions"),
                    label=f"{more} more in this session",
                    icon=":material/more_horiz:",
                    query_params={**replace(chosen, zone_name=chosen.zone_name).address(), "within": session},
                )


def _head(info: SessionInfo, count: int, where: tzinfo) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.page_link(page("chat"), label=f"**{safe_label(info.title, 90)}**", query_params=links.to_chat(info.id))
        said = [f"{count} hit{'s' if count > 1 else ''}", *info.tags[:4], moments.ago(info.last_active)]
        st.caption(" · ".join(safe_label(text) for text in said if text))


def _passage(hit: Hit, where: tzinfo) -> None:
    if hit.message is None:
        st.markdown(f":gray[Title and tags:] {marked(hit)}")
        return
    who = _WHO.get(hit.role, visible(hit.role))
    with st.container(horizontal=True, wrap=False, gap="small"):
        st.page_link(
            page("chat"),
            label=f"{safe_label(who)} · message {hit.message + 1}",
            icon=":material/arrow_forward:",
            query_params=links.to_chat(hit.session, hit.message),
            help=moments.exact(hit.when, where) or None,
            width=200,
        )
        st.markdown(marked(hit), width="stretch")
