"""Chat: one session as a notebook of numbered turns, whose answers go on while nobody looks."""

from __future__ import annotations

import streamlit as st

from pages.chat_parts import (
    cell_menu,
    change,
    chat_composer,
    chat_header,
    chat_live,
    chat_new,
    chat_state,
    chat_turns,
    settings,
)
from pages.compare_parts import trying
from pages.shared import browser, exporting, folder, presenting
from pages.shared.frame import frame, page
from pages.shared.safe_markdown import safe_label
from sessions_lib import names
from sessions_lib.agent import runs
from sessions_lib.errors import SessionError
from sessions_lib.export import presentation
from sessions_lib.store.session import Session


def closed_saying(text: str) -> None:
    """Close the dialog; what it did is said over the page when it is drawn next."""
    cell_menu.close_dialog()
    browser.say(text)


def draw_dialog(session: Session | None) -> None:
    """The dialog the visitor opened, over the page."""
    kind, session_id, index = st.session_state[cell_menu.DIALOG]
    titles = {
        "edit": "Edit and rerun",
        "change": "Change what was said and go on",
        "rerun": "Rerun with another model",
        "try": "Try in parallel",
        "export": "Export",
        "delete": "Delete",
        "settings": "Settings",
    }

    @st.dialog(titles[kind], on_dismiss=cell_menu.close_dialog)
    def body() -> None:
        if kind == "settings":
            if settings.draw(session, f"chat-settings-{session_id}"):
                closed_saying("Saved")
                st.rerun()
        elif session is not None and kind == "delete":
            chat_header.draw_delete(session)
        elif session is not None and kind == "edit":
            cell_menu.draw_edit(session.id, index, session.messages, session.meta)
        elif session is not None and kind == "change":
            change.draw(session.id, index, session.messages)
        elif session is not None and kind == "export":
            exporting.panel([session.id], "chat-export", lambda name: closed_saying(f"Downloaded {name}"))
        elif session is not None and kind == "try":
            trying.draw(session.id, index, session.messages, session.meta)
        elif session is not None:
            cell_menu.draw_rerun(session.id, index, session.messages, session.meta)

    fits = session is None or index < len(session.messages) or kind not in ("edit", "change", "rerun")
    if fits and session_id == (session.id if session else ""):
        body()
    else:
        cell_menu.close_dialog()


frame("Chat", width="reading")
if trying.GO in st.session_state:
    cell_menu.close_dialog()
    st.switch_page(page("compare"), query_params=st.session_state.pop(trying.GO))
session_id = chat_state.chosen()

if session_id is None:
    chat_composer.draw_notice()
    chat_new.draw()
    chat_composer.draw_composer(None, None)
    if cell_menu.DIALOG in st.session_state:
        draw_dialog(None)
    browser.draw()
    st.stop()

run = runs.of(folder.store(), session_id)
progress = run.snapshot() if run else None  # before the file is read: what that has more is then drawn from the file
is_live = progress is not None and progress.state == "running"
try:
    session = folder.current(session_id)
except SessionError as error:
    st.error(safe_label(str(error)), icon=":material/error:")
    chat_composer.draw_notice()
    chat_new.draw_way_out(session_id, error)
    st.stop()

seen = chat_live.mark_of(session)  # now: other visitors share the session, and may read on while this page is drawn
st.set_page_config(page_title=f"{names.one_line(session.title, 60)} · Forkbook")
if presenting.is_on():
    presenting.draw(presentation.of_session(session.messages, {**session.meta, "id": session.id}, session.inherited))
    st.stop()
view = chat_header.draw_header(session)
chat_turns.draw_damage(session)
if view == "raw":
    chat_turns.draw_damaged_lines(session)
place = chat_turns.draw_turns(session, view, is_live=is_live)
chat_composer.draw_state(session, run, is_live=is_live)
chat_composer.draw_summed_up(session)
chat_composer.draw_notice()
chat_composer.draw_composer(session, run if is_live else None)
is_dialog_open = cell_menu.DIALOG in st.session_state
if is_dialog_open:
    draw_dialog(session)
browser.draw()

if run is not None and progress is not None and is_live:
    chat_live.watch_run(run, max(progress.stored, seen.messages), place, in_fragment=is_dialog_open)
else:
    chat_live.watch_files(session.id, seen)
