"""Stats: what the sessions of these days took, each message counted once; every chart filters and has its table."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from pages.sessions_parts import listed
from pages.shared import acting, filters, folder, session_queries
from pages.shared.frame import frame, page
from pages.shared.session_queries import once
from pages.stats_parts import costly, figures_row, spending
from sessions_lib import stats

frame("Stats")
if (goes := st.session_state.pop("stats_go", None) or acting.goes_to()) is not None:
    st.switch_page(page(goes[0]), query_params=goes[1])

acting.flash()

with folder.errors_told(), session_queries.at_one_moment():
    if not session_queries.total():
        st.title("Stats", anchor=False)
        spending.nothing_yet()
        st.stop()

    chosen = spending.with_span(filters.from_address())
    spending.head(chosen)
    listed.what_is_asked(chosen, "stats", has_search_field=False)
    asked, zone = chosen.asked, chosen.zone
    now = once(stats.figures, asked)
    before = stats.period_before(asked, zone)
    figures_row.draw(now, once(stats.figures, before) if before else None)
    spending.said_below(now, before, chosen)
    if not now.messages:
        listed.nothing_found(chosen, "stats")
        st.stop()

    stamp = spending.stamp(chosen)
    rows = once(stats.sessions, asked)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        spending.tokens_by_day(chosen, stamp)
    with right:
        spending.turns_by_day(chosen, stamp)
    spending.cost_by_day(chosen, stamp)
    spending.year(replace(chosen, when="365d", since=None, until=None), stamp)
    left, right = st.columns(2, gap="medium")
    with left:
        spending.tags(asked, stamp)
    with right:
        spending.models(asked, stamp)
    left, right = st.columns(2, gap="medium")
    with left:
        spending.tools(asked, stamp)
    with right:
        costly.lengths(rows, stamp)
    left, right = st.columns(2, gap="medium")
    with left:
        costly.expensive_sessions(rows, stamp)
    with right:
        costly.expensive_families(asked, stamp)
    costly.growth(rows, stamp)
