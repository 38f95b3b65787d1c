"""Compare: two to four branches side by side, where they parted and what each cost."""

from __future__ import annotations

from typing import Any

import streamlit as st

from pages.compare_parts import asking, blind, comparing, deciding, synthesize
from pages.compare_parts.branch_map import branch_map
from pages.compare_parts.grid import MOST_ROWS, grid, head
from pages.shared import acting, browser, folder, links, presenting
from pages.shared.frame import frame, page
from pages.shared.safe_markdown import safe_label
from sessions_lib.compare.branch_map import FEW_LANES, MOST_LANES
from sessions_lib.export import presentation
from sessions_lib.export.comparison_html import row_of
from sessions_lib.export.comparison_text import Look
from sessions_lib.store import family

VIEWS = {"aligned": "Aligned", "differences": "Differences", "changes": "Only changes"}

frame("Compare")
if "compare_go" in st.session_state:
    st.switch_page(page("chat"), query_params=st.session_state.pop("compare_go"))
if (goes := acting.goes_to()) is not None:
    st.switch_page(page(goes[0]), query_params=goes[1])


def picked(what: dict[str, Any]) -> None:
    """Do what was asked for on the map or in the grid."""
    act, session, at = what.get("act"), what.get("id"), what.get("message")
    now = list(shown)
    if act == "open":
        st.session_state.compare_go = links.to_chat(str(session), at if isinstance(at, int) else None)
    elif act == "turn" and isinstance(what.get("turn"), int):
        comparing.note(now, turn=comparing.turn_name(what["turn"], what.get("id"), now))
    elif act == "shared":
        comparing.note(now, start=None if st.query_params.get("start") == "open" else "open")
    elif act == "lanes":
        comparing.note(now, lanes=None if st.query_params.get("lanes") == "all" else "all")
    elif act == "rows":
        st.session_state.compare_rows = st.session_state.get("compare_rows", MOST_ROWS) + MOST_ROWS
    elif act == "base":
        comparing.ask([str(session), *(one for one in now if one != session)][: max(len(now), 2)])
    elif act == "second":
        comparing.ask([now[0], str(session), *now[2:]])
    elif act == "add" and len(now) < len(comparing.SLOTS):
        comparing.ask([*now, str(session)])


st.title("Compare")
st.caption("Where conversations parted, and what each way cost.")
acting.flash()
with folder.errors_told():
    listed = folder.manager().list()
    asked = comparing.asked()
    shown = [one for one in asked if any(info.id == one for info in listed)]
    if missing := [one for one in asked if one not in shown]:
        st.warning(comparing.gone(missing), icon=":material/search_off:")
    if len(shown) < 2 and not asked:
        shown = list(family.newest_pair(listed) or ())
    if presenting.is_on() and len(shown) > 1:
        comparison, _ = comparing.load(shown, "prompts")
        presenting.draw(presentation.of_comparison(comparison, comparing.map_picture(listed, shown)))
        st.stop()
    if blind.is_on() and len(shown) > 1:
        blind.draw(comparing.load(shown, "prompts")[0])
        st.stop()
    comparing.pickers(listed, shown)
    if len(shown) < 2:
        comparing.empty(listed)
        st.stop()
    if len(shown) > 2:  # the width they need, where the screen has it
        st.html("<style>:root { --fb-width: 110rem; }</style>")
    before = comparing.stamps(shown)
    with st.container(horizontal=True, vertical_alignment="center", key="compare_bar"):
        view, drawn, order = comparing.view(VIEWS, shown), comparing.drawn(shown), comparing.order(shown)
        comparison, faults = comparing.load(shown, order)
        comparing.exports(comparison)
        comparing.copy_link(shown)
        presenting.button()
        titles = {branch.id: branch.title for branch in comparison.branches}
        deciding.draw_verdict_menu(shown, titles)
        synthesize.button(comparison)
        deciding.draw_home_button(shown, is_live=bool(asking.live(shown)))
        st.page_link(
            page("trials"),
            label="Try 10 times …",
            icon=":material/science:",
            query_params=links.to_new_trial(shown[0], len(comparison.branches[0].messages), "", shown[1:]),
            help="Ask each of these branches the same, ten times: is one better, or was it luck?",
        )
    deciding.draw_home(shown, titles)
    synthesize.draw(comparison)
    deciding.draw_verdict(shown, titles)
    head(comparison, key="compare_head")
    is_few = st.query_params.get("lanes") != "all"
    lanes = comparing.family_map(listed, shown, FEW_LANES if is_few else MOST_LANES)
    branch_map(lanes, shown, key="compare_map", picked=picked, is_few=is_few and bool(lanes.left_out))
    for note in (*comparison.notes, *faults):
        st.caption(safe_label(note))
    looked_at = comparing.turn()
    look = Look(
        view,
        drawn,
        rows=st.session_state.get("compare_rows", MOST_ROWS),
        on_page=True,
        opened=st.query_params.get("start") == "open",
        here=None if looked_at is None else row_of(comparison, *looked_at),
    )
    grid(comparison, look, key="compare_grid", picked=picked)
    names = list(titles.values())
    answers = st.container()
    asking.prompt_box(shown, names)
    if asking.live(shown):
        with answers:
            asking.watch(shown, names, [len(branch.messages) for branch in comparison.branches])
    browser.draw()
    comparing.follow(shown, before)
