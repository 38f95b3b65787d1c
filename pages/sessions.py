"""Sessions: find any of them, see what it cost, act on several; ``?session=ID`` is one session's own view."""

from __future__ import annotations

import streamlit as st

from pages.sessions_parts import importing, listed, passages, session_view, table, trash_view
from pages.shared import acting, filters, folder, session_queries
from pages.shared.frame import frame, page
from pages.shared.links import asked
from pages.shared.safe_markdown import safe_label

SIZE = 50
GROUPS = 10

frame("Sessions")
if (goes := acting.goes_to()) is not None:
    st.switch_page(page(goes[0]), query_params=goes[1])
chosen = filters.from_address()
acting.flash()
acting.dialogs()
importing.dialog()

with folder.errors_told(), session_queries.at_one_moment():
    if (session := asked("session")) is not None:
        infos = session_queries.infos([session])
        if session in infos:
            session_view.draw(infos[session], chosen.zone)
        else:
            st.warning(f"There is no session {safe_label(session, 60)} in this folder.", icon=":material/search_off:")
            st.page_link(page("sessions"), label="All sessions", icon=":material/arrow_back:")
        st.stop()

    is_trash = asked("view") == "trash"
    listed.head(is_trash)
    if is_trash:
        trash_view.draw(chosen.zone)
        st.stop()
    if not session_queries.total():
        listed.nothing_yet()
        st.stop()

    listed.search_row(chosen)
    listed.what_is_asked(chosen)
    if chosen.asked.needles and listed.wants_passages():
        within = asked("within")
        groups, again, is_all = passages.enough(chosen, None if within else listed.asked_page() * GROUPS)
        if within:
            groups = {session: hits for session, hits in groups.items() if session == within}
        if not groups:
            listed.nothing_found(chosen)
            st.stop()
        count = len(groups) + (0 if is_all else GROUPS)
        shown = list(groups)[(number := listed.page_number(count, GROUPS) - 1) * GROUPS :][:GROUPS]
        listed.passages_bar(sum(map(len, groups.values())), len(groups), is_all)
        passages.draw(session_queries.infos(shown), {session: groups[session] for session in shown}, again, chosen)
        listed.pages(count, GROUPS)
        st.stop()

    order = listed.order()
    listing = session_queries.find(chosen, order, listed.asked_page(), SIZE)
    if not listing.total:
        listed.nothing_found(chosen)
        st.stop()
    bar = st.container()
    selected = table.draw(listing.rows, chosen.zone)
    if (opened := table.opened()) is not None:
        st.switch_page(page("chat"), query_params={"session": opened})
    with bar:
        acting.bar(selected, listing.total)
    listed.below(chosen, listing.total, SIZE)
