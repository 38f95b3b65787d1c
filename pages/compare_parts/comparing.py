"""What the Compare page compares: the sessions its address names, loaded and laid out, and the pickers that change it.

The address is the truth (``?a=&b=&c=&d=``, ``view``, ``by``, ``turn``, ``start``); widgets are set from it and write to
it. Loaded comparisons are kept, bounded, by the state of the files they came from.

Does not draw the comparison: that is ``grid`` and ``branch_map``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, cast

import streamlit as st

from pages.sessions_parts.listed import begin
from pages.shared import browser, exporting, folder, links
from pages.shared.safe_markdown import safe_label
from sessions_lib import compare, names, text
from sessions_lib.agent import runs
from sessions_lib.compare import branch_map
from sessions_lib.errors import SessionError
from sessions_lib.export import branch_map as branch_map_export
from sessions_lib.export import comparison as compare_export
from sessions_lib.export.comparison_text import View
from sessions_lib.export.redact import Redaction
from sessions_lib.messages.content import Message
from sessions_lib.store.family import relatives
from sessions_lib.store.records import Revision, SessionInfo, verdict

SLOTS = "abcd"
MOST_OPTIONS = 500  # sessions a picker offers: the family, then the newest
Stamp = tuple[str, Revision | None, bool]


def asked() -> list[str]:
    """The sessions the address names, in order."""
    return [st.query_params[slot] for slot in SLOTS if st.query_params.get(slot)]


def ask(sessions: Sequence[str]) -> None:
    """Put ``sessions`` into the address; the turn that was looked at is another one now."""
    for slot in SLOTS:
        st.query_params.pop(slot, None)
    st.query_params.update(dict(zip(SLOTS, sessions, strict=False)))
    st.query_params.pop("turn", None)


def note(shown: Sequence[str], **changes: str | None) -> None:
    """Put ``changes`` into the address, and the sessions that are shown, so that it can be handed on as it is."""
    st.query_params.update(dict(zip(SLOTS, shown, strict=False)))
    for name, value in changes.items():
        if value is None:
            st.query_params.pop(name, None)
        else:
            st.query_params[name] = value


def stamps(sessions: Sequence[str]) -> tuple[Stamp, ...]:
    """What changes when one of ``sessions`` does: its revision, and whether an answer is running."""
    found = []
    store = folder.store()
    for session in sessions:
        run = runs.of(store, session)
        found.append((session, store.revision(session), run is not None and run.is_live))
    return tuple(found)


def load(sessions: Sequence[str], order: compare.Order) -> tuple[compare.Comparison, tuple[str, ...]]:
    """The comparison of ``sessions`` as they are now, and what could not be read of them, in sentences."""
    loaded = [folder.current(session) for session in sessions]
    titles = tuple(session.title for session in loaded)
    found = _compared(folder.store().name, stamps(sessions), titles, order)
    faults = [
        f"{letter}: {text.count(len(session.report.damaged), 'damaged line')} "
        f"cannot be read and {'are' if len(session.report.damaged) > 1 else 'is'} left out. "
        f"See: forkbook check {session.id}"
        for letter, session in zip(compare.LETTERS, loaded, strict=False)
        if session.report.damaged
    ]
    return found, tuple(faults)


@st.cache_resource(max_entries=8, show_spinner=False)
def _compared(name: str, state: tuple[Stamp, ...], titles: tuple[str, ...], order: compare.Order) -> compare.Comparison:
    sides = []
    for (session, _, is_running), title in zip(state, titles, strict=True):
        now = folder.current(session)
        sides.append(compare.Branch(session, title, list(now.messages), now.meta, is_running))
    return compare.compare(sides, order=order)


def family_map(
    listed: Sequence[SessionInfo], shown: Sequence[str], most: int = branch_map.MOST_LANES
) -> branch_map.Map:
    """The map of the branches related to those that are ``shown``, at most ``most``; only these are read."""
    by_id, parents = {info.id: info for info in listed}, {info.id: info.parent for info in listed}
    family = dict.fromkeys(one for side in shown for one in relatives(parents, [side]))
    order = branch_map.choose({one: parents[one] for one in family}, shown, most)
    name = folder.store().name
    drawn = [
        _twig(name, info.id, info.title, info.parent, info.inherited, verdict(info.meta), stamps([info.id])[0])
        for info in (by_id[one] for one in order)
    ]
    return branch_map.layout(drawn, keep=tuple(shown), unread=len(family) - len(order))


def map_picture(listed: Sequence[SessionInfo], shown: Sequence[str]) -> str:
    """The same map as a picture, for this machine's own screen: nothing in it is redacted."""
    return branch_map_export.svg(family_map(listed, shown, branch_map.FEW_LANES), shown, lambda branch: branch.title)


@st.cache_resource(max_entries=1024, show_spinner=False)
def _twig(
    name: str, session: str, title: str, parent: str | None, inherited: int, judged: str, stamp: Stamp
) -> branch_map.Branch:
    said: Sequence[Message] = ()
    with suppress(SessionError):  # deleted meanwhile
        said = folder.manager().open(session).messages
    return branch_map.branch(
        session, title, said, parent=parent, inherited=inherited, is_running=stamp[2], verdict=judged
    )


def pickers(listed: Sequence[SessionInfo], shown: Sequence[str]) -> None:
    """A picker for each session that is compared, swap between the first two, and up to two columns more."""
    offered = _offered(listed, shown)
    label = _labels(listed)
    count = max(len(shown), 2)
    widths = [5.0, 0.72, 5.0, *([4.4, 0.72] * (count - 2)), *([1.9] if count < compare.MOST else [])]
    places = iter(st.columns(widths, vertical_alignment="bottom", gap="small"))
    for at in range(count):
        slot = SLOTS[at]
        key = f"compare_{slot}"
        st.session_state[key] = shown[at] if at < len(shown) else None
        with next(places):
            st.selectbox(
                f"{compare.LETTERS[at]}, the base" if at == 0 else compare.LETTERS[at],
                offered,
                index=None,
                key=key,
                format_func=label,
                placeholder="Choose a session",
                on_change=_changed,
                args=(slot,),
            )
        if at == 0:
            with next(places):
                st.button(
                    "",
                    icon=":material/swap_horiz:",
                    help="Swap A and B",
                    key="compare_swap",
                    on_click=ask,
                    args=([*shown[1::-1], *shown[2:]],),
                    disabled=len(shown) < 2,
                )
        if at > 1:
            with next(places):
                st.button(
                    "",
                    icon=":material/close:",
                    help=f"Take {compare.LETTERS[at]} out",
                    key=f"compare_close_{slot}",
                    on_click=ask,
                    args=([*shown[:at], *shown[at + 1 :]],),
                )
    if count < compare.MOST:
        with next(places):
            more = next((one for one in offered if one not in shown), None)
            st.button(
                "Column",
                icon=":material/add:",
                key="compare_add",
                on_click=ask,
                args=([*shown, more],),
                disabled=more is None or len(shown) < 2,
            )


def gone(missing: Sequence[str]) -> str:
    """What to say of sessions that the address names and the folder does not have."""
    names_given = ", ".join(f"“{safe_label(one, 60)}”" for one in missing)
    verb = "is not a session" if len(missing) == 1 else "are not sessions"
    return f"{names_given} {verb} of this folder, or {'was' if len(missing) == 1 else 'were'} deleted. Choose another."


def empty(infos: Sequence[SessionInfo]) -> None:
    """What to do where there is nothing to compare yet."""
    is_forked = len(infos) > 1 and any(info.parent for info in infos)
    if len(infos) < 2:
        st.markdown("## Nothing to compare yet")
        st.caption(
            "A comparison needs two sessions. Start a conversation, then fork it at any turn to try another way."
        )
    else:
        st.markdown("## Choose two sessions" if is_forked else "## No fork yet")
        st.caption(
            "Fork a conversation at any turn in Chat, and both ways stand side by side here. "
            "Any two sessions can be compared too: choose them above."
        )
    if not is_forked:
        begin()


def view(views: Mapping[str, str], shown: Sequence[str]) -> View:
    """The view the address asks for, and the control that changes it."""
    asked_for = st.query_params.get("view")
    st.session_state.compare_view = asked_for if asked_for in views else "differences"
    chosen = st.segmented_control(
        "View",
        list(views),
        key="compare_view",
        format_func=lambda one: views[one],
        required=True,
        label_visibility="collapsed",
        on_change=lambda: note(shown, view=st.session_state.compare_view),
    )
    return cast("View", chosen)


def drawn(shown: Sequence[str]) -> bool:
    """Whether answers are drawn or stand as typed with their changed words, and the control that changes it."""
    st.session_state.compare_text = "drawn" if st.query_params.get("text") == "drawn" else "text"
    chosen = st.segmented_control(
        "Answers",
        ["text", "drawn"],
        key="compare_text",
        format_func=str.capitalize,
        required=True,
        label_visibility="collapsed",
        help="Text: as it was written, with the words that changed. Drawn: tables, lists and code as they are meant.",
        on_change=lambda: note(shown, text="drawn" if st.session_state.compare_text == "drawn" else None),
    )
    return chosen == "drawn"


def order(shown: Sequence[str]) -> compare.Order:
    """How turns are lined up, and the control that changes it."""
    st.session_state.compare_by = st.query_params.get("by") == "likeness"
    st.toggle(
        "Line up alike turns",
        key="compare_by",
        help="Off: equal prompts stand side by side, the turns between them by their place. "
        "On: only turns that say nearly the same stand side by side, and what is in one branch alone stands alone.",
        on_change=lambda: note(shown, by="likeness" if st.session_state.compare_by else None),
    )
    return "likeness" if st.session_state.compare_by else "prompts"


def turn() -> tuple[int, int] | None:
    """The turn the address asks for, as the place of its branch and its number there: ``3``, ``b4``."""
    found = re.fullmatch(r"([a-d]?)([0-9]{1,8})", st.query_params.get("turn", ""))
    return (SLOTS.index(found[1] or SLOTS[0]), int(found[2])) if found else None


def turn_name(number: int, session: object, shown: Sequence[str]) -> str:
    """How the address names turn ``number`` of ``session``: ``3`` in the first of ``shown``, ``b4`` in another."""
    return f"{SLOTS[shown.index(session)] if session in shown[1:] else ''}{number}"


@st.fragment
def exports(comparison: compare.Comparison) -> None:
    """A menu with the comparison as files; each is made when it is clicked, of the sessions as they are then."""
    menu = st.popover("Export", icon=":material/download:", key="compare_export", on_change="rerun")
    with menu:
        redacted = exporting.switch("compare_export_redacted", is_on=True)
        if menu.open:  # searching takes its time
            st.caption(safe_label(_left(comparison, redacted)[1].sentence()))
        for label, extension, mime, make in (
            ("Web page", "html", "text/html", _web_page),
            ("Markdown", "md", "text/markdown", _markdown),
        ):
            st.download_button(
                label,
                data=partial(_made, make, comparison, redacted),
                file_name=compare_export.file_name(comparison, extension, Redaction(is_on=redacted)),
                mime=mime,
                key=f"compare_export_{extension}",
                on_click="ignore",
                width="stretch",
            )


def copy_link(shown: Sequence[str]) -> None:
    """The button that puts the address of this very view on the clipboard."""
    query = {**st.query_params.to_dict(), **dict(zip(SLOTS, shown, strict=False))}
    st.button(
        "Copy link",
        icon=":material/link:",
        key="compare_link",
        on_click=lambda: browser.copy(links.address("compare", query), "Link copied"),
    )


def _left(shown: compare.Comparison, redacted: bool) -> tuple[list[compare.Branch], Redaction]:
    """The branches as they leave, and their redaction."""
    redaction = Redaction(is_on=redacted)
    return redaction.branches(shown.branches), redaction


def _made(
    make: Callable[[compare.Comparison, compare.Comparison, Redaction], str],
    shown: compare.Comparison,
    redacted: bool,
) -> bytes:
    with suppress(SessionError):  # deleted meanwhile: what is on the screen can still be kept
        shown, _ = load([branch.id for branch in shown.branches], shown.order)
    branches, redaction = _left(shown, redacted)
    left = compare.compare(branches, order=shown.order) if redacted else shown
    return make(left, shown, redaction).encode()


def _web_page(left: compare.Comparison, shown: compare.Comparison, redaction: Redaction) -> str:
    ids = [branch.id for branch in shown.branches]
    picture = branch_map_export.svg(family_map(folder.manager().list(), ids), ids, redaction.title)
    return compare_export.html(left, picture, redaction.sentence())


def _markdown(left: compare.Comparison, _: compare.Comparison, redaction: Redaction) -> str:
    return compare_export.markdown(left)


@st.fragment(run_every=2)
def follow(sessions: Sequence[str], before: tuple[Stamp, ...]) -> None:
    """Draw the page again when one of ``sessions`` was written, deleted, or its answer ended."""
    if stamps(sessions) != before:
        st.rerun()


def _changed(slot: str) -> None:
    chosen = [st.session_state.get(f"compare_{one}") for one in SLOTS]
    if chosen[SLOTS.index(slot)]:
        ask([one for one in chosen if one])


def _offered(listed: Sequence[SessionInfo], shown: Sequence[str]) -> list[str]:
    family = relatives({info.id: info.parent for info in listed}, shown)
    others = [info.id for info in listed]
    return list(dict.fromkeys([*family, *others]))[: MOST_OPTIONS + len(family)]


def _labels(listed: Sequence[SessionInfo]) -> Any:
    titles = {info.id: names.one_line(info.title, 70) for info in listed}
    often = Counter(titles.values())
    return lambda one: titles[one] if often[titles.get(one, "")] == 1 else f"{titles.get(one) or one} · {one}"
