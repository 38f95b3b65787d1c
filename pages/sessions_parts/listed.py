"""What stands around the list of sessions: its head, the search and the filters, the order, the pages, empty states.

Does not draw sessions.
"""

from __future__ import annotations

import streamlit as st

from pages.chat_parts import chat_state
from pages.sessions_parts import importing, search_help
from pages.shared import acting, demo_sessions, filters, folder, session_queries
from pages.shared.filters import Filters
from pages.shared.frame import page
from pages.shared.links import asked
from pages.shared.safe_markdown import safe_label
from sessions_lib import text
from sessions_lib.errors import SessionError

_VIEWS = {"": "Passages", "table": "Sessions"}


def head(is_trash: bool) -> None:
    """The title of the page with the ways to import and to the trash."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="sessions_head"):
        st.title("Trash" if is_trash else "Sessions", anchor=False, width="stretch")
        if is_trash:
            st.page_link(page("sessions"), label="All sessions", icon=":material/arrow_back:")
            return
        importing.button()
        try:
            count = len(folder.manager().trash())
        except SessionError:
            count = 0
        if count:
            st.page_link(
                page("sessions"), label=f"Trash ({count})", icon=":material/delete:", query_params={"view": "trash"}
            )


def nothing_yet() -> None:
    """What to do in an empty folder."""
    st.markdown("No sessions yet. Every conversation is kept here as a file of its own, found by what was said in it.")
    begin()


def begin() -> None:
    """The two ways to have something to look at."""
    with st.container(horizontal=True, gap="small", key="sessions_begin"):
        demo_sessions.draw_load("sessions_demo", "primary")
        st.button("Start a session", key="sessions_start", icon=":material/add:", on_click=_start)


def _start() -> None:
    chat_state.forget()
    acting.go("chat", {})


def search_row(chosen: Filters) -> None:
    """The search field, its help, and the filters behind a button."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="sessions_search_row"):
        filters.search_box("sessions", chosen)
        search_help.draw()
        with st.popover("Filters", icon=":material/tune:", key="sessions_filters"):
            filter_boxes("sessions", chosen)


def filter_boxes(prefix: str, chosen: Filters, any_time: str = "") -> None:
    """All the filters, two beside each other."""
    left, right = st.columns(2)
    with left:
        filters.tag_boxes(prefix, chosen, session_queries.tags_in_use())
    with right:
        filters.model_box(prefix, chosen, session_queries.models_in_use())
        filters.span_box(prefix, chosen, any_time)
        filters.fork_box(prefix, chosen)
        filters.zone_box(prefix, chosen)


def what_is_asked(chosen: Filters, prefix: str = "sessions", *, has_search_field: bool = True) -> None:
    """Each filter that is on as a button that takes it away; what a query said that is no filter.

    A page with no search field and a choice of spans of its own shows the words and not the span.
    """
    for note in chosen.asked.notes:
        st.caption(safe_label(note))
    said = [
        (label, left)
        for label, left in filters.parts(chosen)
        if (left.q == chosen.q if has_search_field else left.when == chosen.when)
    ]
    if not said:
        return
    with st.container(horizontal=True, gap="small", key=f"{prefix}_asked"):
        for number, (label, left) in enumerate(said):
            st.button(
                safe_label(label, 60),
                key=f"{prefix}_drop_{number}",
                icon=":material/close:",
                on_click=filters.write,
                args=(left,),
                help="Take this filter away",
            )
        if len(said) > 1:
            clear = Filters(q=chosen.q, zone_name=chosen.zone_name) if has_search_field else Filters()
            st.button("Clear all", key=f"{prefix}_clear", type="tertiary", on_click=filters.write, args=(clear,))


def nothing_found(chosen: Filters, prefix: str = "sessions") -> None:
    """Say that nothing is left, and which filter to drop."""
    st.markdown("**Nothing passes all of this.**")
    unread()
    offers = [
        (label, left, count) for label, left, count in session_queries.without_each(chosen) if count and left.is_narrow
    ]
    for number, (label, left, count) in enumerate(offers[:6]):
        st.button(
            f"Without {safe_label(label, 60)}: {text.count(count, 'session')}",
            key=f"{prefix}_without_{number}",
            icon=":material/filter_alt_off:",
            on_click=filters.write,
            args=(left,),
        )
    st.button(
        f"Everything: {session_queries.total():,} sessions",
        key=f"{prefix}_everything",
        icon=":material/restart_alt:",
        on_click=filters.write,
        args=(Filters(zone_name=chosen.zone_name),),
    )


def unread() -> None:
    """Name what could not be read whole, so that nobody takes a search or a sum for more than it is."""
    if not (damaged := session_queries.damaged()):
        return
    few = ", ".join(safe_label(folder.title_of(one), 40) for one in damaged[:3]) + (" …" if len(damaged) > 3 else "")
    where = {"session": damaged[0], "part": "report"} if len(damaged) == 1 else {"q": "has:damage"}
    with st.container(key="unread"):
        st.page_link(
            page("sessions"),
            label=f"Not all could be read and counted: {few}",
            icon=":material/report:",
            query_params=where,
        )


def wants_passages() -> bool:
    """True unless the address asks for the table of what a search found."""
    return asked("view") != "table"


def _view_switch() -> None:
    key = "sessions_view"
    value = "table" if asked("view") == "table" else ""
    if st.session_state.get(key) != value:
        st.session_state[key] = value
    st.segmented_control(
        "Show",
        list(_VIEWS),
        key=key,
        format_func=_VIEWS.__getitem__,
        required=True,
        label_visibility="collapsed",
        on_change=_view_chosen,
    )


def _view_chosen() -> None:
    view = st.session_state["sessions_view"]
    if view:
        st.query_params["view"] = view
    else:
        st.query_params.pop("view", None)
    st.query_params.pop("page", None)


def passages_bar(hits: int, sessions: int, is_all: bool) -> None:
    """How much was found."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        found_words = f"**{hits:,}** {text.noun(hits, 'passage')} in **{sessions:,}** {text.noun(sessions, 'session')}"
        found_words += "" if is_all else " so far; older ones are on the next pages"
        st.markdown(found_words, width="stretch")
        if within := asked("within"):
            st.button(
                safe_label(folder.title_of(within), 40),
                key="sessions_within",
                icon=":material/close:",
                on_click=_drop_within,
            )
        _view_switch()
    unread()


def _drop_within() -> None:
    st.query_params.pop("within", None)


def asked_page() -> int:
    """The page the address asks for, from 1."""
    given = asked("page") or "1"
    return max(1, int(given)) if given.isascii() and given.isdigit() and len(given) < 8 else 1


def page_number(total: int, size: int) -> int:
    """The page the address asks for, if there is one of that number, else the last one."""
    return min(asked_page(), max(1, -(-total // size)))


def pages(total: int, size: int) -> None:
    """The choice of a page, if there are several."""
    count = -(-total // size)
    if count <= 1:
        return
    # The number is part of the key: a pagination takes its page from its default, never from the session's state.
    key = f"sessions_page_{page_number(total, size)}_of_{count}"
    st.pagination(count, default=page_number(total, size), key=key, on_change=_page_chosen, args=(key,))


def _page_chosen(key: str) -> None:
    if (number := st.session_state[key]) > 1:
        st.query_params["page"] = str(number)
    else:
        st.query_params.pop("page", None)


def order() -> str:
    """The order the address asks for."""
    given = asked("order") or ""
    return given if given in session_queries.ORDERS else ""


def _order_box() -> None:
    key = "sessions_order"
    if st.session_state.get(key) != (value := order()):
        st.session_state[key] = value

    def changed() -> None:
        st.query_params.pop("page", None)
        if st.session_state[key]:
            st.query_params["order"] = st.session_state[key]
        else:
            st.query_params.pop("order", None)

    st.selectbox(
        "Order",
        list(session_queries.ORDERS),
        key=key,
        format_func=lambda name: session_queries.ORDERS[name][0],
        on_change=changed,
        label_visibility="collapsed",
        width=190,
    )


def below(chosen: Filters, total: int, size: int) -> None:
    """Under the table: pages, order, and what is done with all that is listed."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="sessions_below"):
        pages(total, size)
        st.caption(f"Times in {chosen.zone}", width="stretch")
        if chosen.asked.needles:
            _view_switch()
        _order_box()
        st.button(
            f"Export all {total:,}",
            key="sessions_export_all",
            icon=":material/download:",
            on_click=_export_all,
            args=(chosen,),
        )


def _export_all(chosen: Filters) -> None:
    with acting.told_as_flash():
        acting.open_export(list(session_queries.ids(chosen)))
