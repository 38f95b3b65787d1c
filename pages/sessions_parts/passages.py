"""What a search found, in its words: snippets with the match marked, grouped by session, each opening at its message.

Does not search.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from itertools import pairwise

import streamlit as st

from pages.shared import links, moments, session_queries
from pages.shared.filters import Filters
from pages.shared.frame import page
from pages.shared.safe_markdown import safe_label
from sessions_lib import text
from sessions_lib.store import family
from sessions_lib.store.records import Hit, SessionInfo
from sessions_lib.text import visible

PER_SESSION = 3
MOST_HITS = 100
Place = tuple[str, int | None]
Again = dict[Place, int]
_WHO = {"user": "You", "assistant": "Answer", "tool": "Tool result", "system": "System"}


def grouped(hits: Sequence[Hit]) -> dict[str, list[Hit]]:
    """The hits by session, the session with the newest hit first."""
    groups: dict[str, list[Hit]] = {}
    for hit in hits:
        groups.setdefault(hit.session, []).append(hit)
    return groups


def enough(chosen: Filters, wanted: int | None) -> tuple[dict[str, list[Hit]], Again, bool]:
    """The groups of a search, the newest first, at least ``wanted`` sessions if there are so many; and if that is all.

    A word that everybody says is found in no more messages than a page has use for.
    """
    limit = None if wanted is None else max(MOST_HITS, 2 * PER_SESSION * wanted)
    while True:
        hits = session_queries.hits(chosen, limit)
        groups, again = said_once(grouped(hits), session_queries.lineage())
        is_all = limit is None or len(hits) < limit
        if is_all or wanted is None or len(groups) > wanted:
            return groups, again, is_all
        limit = 4 * (limit or 1)


def said_once(groups: dict[str, list[Hit]], lineage: dict[str, tuple[str, int]]) -> tuple[dict[str, list[Hit]], Again]:
    """The groups without what a fork only repeats, and in how many forks each of the places stands again.

    ``lineage`` gives each fork's parent and how many messages it copied. A copy whose original was not found (its
    session is gone, or passes no filter) stays.
    """
    there = {(hit.session, hit.message) for hits in groups.values() for hit in hits}
    parents = {session: parent for session, (parent, _) in lineage.items()}
    again: Again = {}
    left: dict[str, list[Hit]] = {}
    for session, hits in groups.items():
        for hit in hits:
            place = _original(hit, family.line(session, parents), lineage, there)
            if place == (hit.session, hit.message):
                left.setdefault(session, []).append(hit)
            else:
                again[place] = again.get(place, 0) + 1
    return left, again


def _original(hit: Hit, line: Sequence[str], lineage: dict[str, tuple[str, int]], there: set[Place]) -> Place:
    """The place furthest up the line of parents that holds the same message and was found too."""
    best: Place = (hit.session, hit.message)
    for fork, parent in pairwise(line):
        if hit.message is None or hit.message >= lineage[fork][1]:
            break
        if (parent, hit.message) in there:
            best = (parent, hit.message)
    return best


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


def draw(infos: dict[str, SessionInfo], groups: dict[str, list[Hit]], again: Again, chosen: Filters) -> None:
    """Draw the groups of one page; ``infos`` are their sessions, ``again`` says which places forks repeat."""
    where = chosen.zone
    for session, hits in groups.items():
        info = infos.get(session)
        if info is None:
            continue
        with st.container(key=f"sessions_group_{session}", gap="small"):
            _head(info, len(hits), where)
            shown = hits if len(groups) == 1 else hits[:PER_SESSION]
            for hit in shown[:100]:
                _passage(hit, again.get((hit.session, hit.message), 0), where)
            if (more := len(hits) - len(shown)) > 0:
                st.page_link(
                    page("sessions"),
                    label=f"{more} more in this session",
                    icon=":material/more_horiz:",
                    query_params={**chosen.address(), "within": session},
                )


def _head(info: SessionInfo, count: int, where: tzinfo) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.page_link(page("chat"), label=f"**{safe_label(info.title, 90)}**", query_params=links.to_chat(info.id))
        said = [text.count(count, "hit"), *info.tags[:4], moments.ago(info.last_active)]
        st.caption(" · ".join(safe_label(text) for text in said if text))


def _passage(hit: Hit, forks: int, where: tzinfo) -> None:
    if hit.message is None:
        st.markdown(f":gray[Title and tags:] {marked(hit)}")
        return
    who = _WHO.get(hit.role, visible(hit.role))
    with st.container(horizontal=True, wrap=False, gap="small"):
        st.page_link(
            page("chat"),
            label=f"{safe_label(who)} · turn {hit.turn}",
            icon=":material/arrow_forward:",
            query_params=links.to_chat(hit.session, hit.message),
            help=" · ".join(filter(None, [f"message {hit.message + 1}", moments.exact(hit.when, where)])),
            width=200,
        )
        repeated = f" :gray[· also in {text.count(forks, 'fork')}]" if forks else ""
        st.markdown(marked(hit) + repeated, width="stretch")
