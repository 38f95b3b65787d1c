"""What a person does to selected sessions: open, compare, tag, export, trash and undo.

Every act is given the ids it is about when its button is drawn: whatever happens to the list meanwhile, it acts on
those sessions. What happened is said at the top of the page until it is dismissed, undone or followed by another act.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import streamlit as st

from pages.shared import exporting, folder, links
from pages.shared.safe_markdown import safe_label
from sessions_lib import text
from sessions_lib.errors import SessionError

_FLASH = "sessions_flash"
_DIALOG = "sessions_dialog"
_GO = "sessions_goes_to"
MAX_COMPARED = 4


def tell(text: str, undo: Sequence[str] = (), faults: Sequence[str] = ()) -> None:
    """Say what was done; ``undo`` are the entries of the trash that a click takes back, ``faults`` what went wrong."""
    st.session_state[_FLASH] = {"text": text, "undo": list(undo), "faults": list(faults)}


@contextmanager
def told_as_flash() -> Iterator[None]:
    """Say what goes wrong inside, in a callback, at the top of the page."""
    try:
        yield
    except SessionError as error:
        tell("Nothing was changed.", faults=[str(error)])


def flash() -> None:
    """Draw what was told last, with Undo where something can be taken back."""
    told: dict[str, Any] | None = st.session_state.get(_FLASH)
    if told is None:
        return
    for fault in told["faults"]:
        st.error(safe_label(fault), icon=":material/error:")
    with st.container(border=True, horizontal=True, vertical_alignment="center", key="sessions_flash_box"):
        st.markdown(f":material/info: {safe_label(told['text'])}", width="stretch")
        if told["undo"]:
            st.button("Undo", key="sessions_undo", on_click=_undo, args=(told["undo"],), icon=":material/undo:")
        st.button("Dismiss", key="sessions_dismiss", on_click=_dismiss, type="tertiary")


def _dismiss() -> None:
    st.session_state.pop(_FLASH, None)


def trash(sessions: Sequence[str]) -> None:
    """Move the sessions to the trash and offer to take that back."""
    if _FLASH in st.session_state and not any(map(folder.manager().exists, sessions)):
        return  # a second click: the first moved them, and its offer to take that back stands
    done, faults = [], []
    for session in sessions:
        try:
            done.append(folder.manager().delete(session).entry)
        except SessionError as error:
            faults.append(str(error))
    what = f"{text.count(len(done), 'session')} moved to the trash." if done else "Nothing was moved to the trash."
    tell(what, done, faults)


def _trash_own(session: str) -> None:
    """Trash the session whose own view is open: the list takes its place."""
    trash([session])
    if not st.session_state[_FLASH]["faults"]:
        st.query_params.pop("session", None)


def _undo(entries: Sequence[str]) -> None:
    told: dict[str, Any] = st.session_state.get(_FLASH, {})
    if told.get("undo"):  # else it is a second click: the first is bringing them back
        told["undo"] = []
        restore(entries)


def restore(entries: Sequence[str]) -> None:
    """Take the entries out of the trash again."""
    done, faults = 0, []
    for entry in entries:
        try:
            folder.manager().restore(entry)
            done += 1
        except SessionError as error:
            faults.append(str(error))
    tell(f"{text.count(done, 'session')} restored.", faults=faults)


def _ask(kind: str, sessions: Sequence[str]) -> None:
    st.session_state[_DIALOG] = (kind, list(sessions))


def close() -> None:
    """Close the dialog."""
    st.session_state.pop(_DIALOG, None)


def go(page: str, query: dict[str, str]) -> None:
    """Go to another view when the page is drawn next."""
    st.session_state[_GO] = (page, query)


def goes_to() -> tuple[str, dict[str, str]] | None:
    """Where a click wants to go; once."""
    found: tuple[str, dict[str, str]] | None = st.session_state.pop(_GO, None)
    return found


def bar(selected: Sequence[str], total: int) -> None:
    """The acts for what is selected."""
    count, one = len(selected), len(selected) == 1
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="sessions_bar"):
        st.markdown(
            f"**{count}** of {text.count(total, 'session')} selected"
            if count
            else f"**{total:,}** {text.noun(total, 'session')}",
            width="stretch",
        )
        session = selected[0] if selected else ""
        st.button(
            "Details",
            key="sessions_details",
            disabled=not one,
            on_click=go,
            args=("sessions", {"session": session}),
            icon=":material/info:",
        )
        st.button(
            "Compare",
            key="sessions_compare",
            disabled=not 2 <= count <= MAX_COMPARED,
            on_click=go,
            args=("compare", links.to_compare(*selected[:MAX_COMPARED])),
            icon=":material/compare_arrows:",
            help="Select two to four sessions.",
        )
        st.button(
            "Tag", key="sessions_tag", disabled=not count, on_click=_ask, args=("tag", selected), icon=":material/sell:"
        )
        st.button(
            "Export",
            key="sessions_export",
            disabled=not count,
            on_click=_ask,
            args=("export", selected),
            icon=":material/download:",
        )
        st.button(
            "Trash",
            key="sessions_trash",
            disabled=not count,
            on_click=trash,
            args=(list(selected),),
            icon=":material/delete:",
        )


def own_buttons(session: str, parent: str | None) -> None:
    """The acts in a session's own view; ``parent`` if there is one to compare with."""
    st.button(
        "Open",
        key="sessions_own_open",
        type="primary",
        on_click=go,
        args=("chat", links.to_chat(session)),
        icon=":material/forum:",
    )
    if parent:
        st.button(
            "Compare with its parent",
            key="sessions_own_compare",
            on_click=go,
            args=("compare", links.to_compare(parent, session)),
            icon=":material/compare_arrows:",
        )
    st.button("Rename", key="sessions_rename", on_click=_ask, args=("rename", [session]), icon=":material/edit:")
    st.button("Tag", key="sessions_own_tag", on_click=_ask, args=("tag", [session]), icon=":material/sell:")
    st.button("Trash", key="sessions_own_trash", on_click=_trash_own, args=(session,), icon=":material/delete:")


def open_export(sessions: Sequence[str]) -> None:
    """Ask how to export ``sessions``."""
    _ask("export", sessions)


def dialogs() -> None:
    """Draw the dialog that is open, if one is."""
    kind, sessions = st.session_state.get(_DIALOG, ("", []))
    if kind == "tag":
        _tag_dialog(sessions)
    elif kind == "export":
        _export_dialog(sessions)
    elif kind == "rename":
        _rename_dialog(sessions[0])


@st.dialog("Tags", on_dismiss=close)
def _tag_dialog(sessions: list[str]) -> None:
    worn: list[str] = []
    for session in sessions:
        with folder.errors_told():
            worn += folder.current(session).tags
    st.caption(text.count(len(sessions), "session") if len(sessions) > 1 else safe_label(folder.title_of(sessions[0])))
    known = list(dict.fromkeys([*folder.manager().tags(), *worn]))
    # Save stands beside the field: an open list of tags would lie over it below.
    row = st.container(horizontal=True, vertical_alignment="bottom", wrap=False, gap="small")
    add = row.multiselect(
        "Add",
        known,
        accept_new_options=True,
        select_all=False,
        key="sessions_tags_to_add",
        placeholder="Choose or type",
    )
    remove: list[str] = []
    if worn:
        remove = st.multiselect(
            "Remove",
            list(dict.fromkeys(worn)),
            select_all=False,
            key="sessions_tags_to_remove",
            placeholder="Choose",
        )
    if row.button("Save", key="sessions_tags_save", type="primary", disabled=not (add or remove)):
        change_tags(sessions, add, remove)
        close()
        st.rerun()


def change_tags(sessions: Sequence[str], add: Sequence[str], remove: Sequence[str]) -> None:
    """Add and remove tags of ``sessions``, and say so."""
    done, faults = 0, []
    for session_id in sessions:
        try:
            folder.manager().open(session_id).change_tags(add, remove)
            done += 1
        except SessionError as error:
            faults.append(str(error))
    tell(f"Tags of {text.count(done, 'session')} changed.", faults=faults)


@st.dialog("Export", width="medium", on_dismiss=close)
def _export_dialog(sessions: list[str]) -> None:
    st.caption(text.count(len(sessions), "session") if len(sessions) > 1 else safe_label(folder.title_of(sessions[0])))
    exporting.panel(sessions, "sessions_export_dialog", _exported)


def _exported(name: str) -> None:
    close()
    tell(f"Downloaded {name}")


@st.dialog("Rename", on_dismiss=close)
def _rename_dialog(session: str) -> None:
    with st.form("sessions_rename_form", border=False):  # Enter saves too
        title = st.text_input("Title", value=folder.title_of(session), key="sessions_new_title", max_chars=200)
        is_saved = st.form_submit_button("Save", key="sessions_rename_save", type="primary")
    if is_saved:
        rename(session, title)
        close()
        st.rerun()


def rename(session: str, title: str) -> None:
    """Give ``session`` the title, or none for a blank one."""
    with told_as_flash():
        folder.manager().open(session).rename(title)
        tell("Renamed." if title.strip() else "The title was taken away; its first prompt is shown.")
