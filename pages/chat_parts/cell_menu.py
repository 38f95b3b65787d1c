"""What a cell can do: fork here or before, edit and rerun, rerun with another model, copy; and its children's chips.

Every action that would change what was said works in a fork. A point where no fork may be is disabled, with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import streamlit as st

from pages.chat_parts import chat_state
from pages.chat_parts.turn import Turn
from pages.shared import browser, folder, frame, links, model_choice, money, providers
from pages.shared.safe_markdown import safe_label
from sessions_lib import messages, text
from sessions_lib.agent import runs
from sessions_lib.errors import SessionError
from sessions_lib.export import export
from sessions_lib.export.redact import Redaction
from sessions_lib.messages import content, places, tool_calls
from sessions_lib.messages.content import Message
from sessions_lib.messages.tool_calls import Call
from sessions_lib.store.session import Session

DIALOG = "chat_dialog"  # (kind, session id, message index): what is open over the page


def draw_menu(session_id: str, turn: Turn, forbidden: Mapping[int, Sequence[Call]]) -> None:
    """The menu of a cell; its entries are made when it is opened."""
    key = f"cell-menu-{session_id}-{turn.start}"
    menu = st.popover(
        f"Actions of turn {turn.number}", icon=":material/more_horiz:", type="tertiary", key=key, on_change="rerun"
    )
    if not menu.open:
        return
    with menu:
        _draw_entries(session_id, turn, forbidden, key)


def _draw_entries(session_id: str, turn: Turn, forbidden: Mapping[int, Sequence[Call]], key: str) -> None:
    here, before = turn.end, prompt_index(turn)
    act = f"cell-act-{session_id}-{turn.start}"
    _entry("Fork from here", "fork_right", f"{act}-fork", _fork, (session_id, here, key), why_not(forbidden, here))
    if before is not None:
        reason = why_not(forbidden, before)
        _entry("Edit and rerun …", "edit", f"{act}-edit", open_dialog, ("edit", session_id, before, key), reason)
        _entry("Rerun", "replay", f"{act}-rerun", rerun, (session_id, before, None, key), "")
        _entry(
            "Rerun with another model …",
            "model_training",
            f"{act}-model",
            open_dialog,
            ("rerun", session_id, before, key),
            "",
        )
        _entry(
            "Change what was said …", "edit_note", f"{act}-change", open_dialog, ("change", session_id, before, key), ""
        )
        _entry("Try in parallel …", "call_split", f"{act}-try", open_dialog, ("try", session_id, before, key), reason)
        st.page_link(
            frame.page("trials"),
            label="Try it 10 times …",
            icon=":material/science:",
            query_params=links.to_new_trial(session_id, before, content.text(turn.messages[before])),
            disabled=bool(reason),
        )
        _entry("Fork before here", "fork_left", f"{act}-before", _fork, (session_id, before, key), reason)
    st.divider()
    _entry("Copy link", "link", f"{act}-link", _copy_link, (session_id, turn.start, key), "")
    _entry("Copy as Markdown", "content_copy", f"{act}-copy", _copy_markdown, (session_id, list(turn.own), key), "")


def _entry(label: str, icon: str, key: str, action: Any, args: tuple[Any, ...], reason: str) -> None:
    st.button(
        label,
        key=key,
        icon=f":material/{icon}:",
        type="tertiary",
        width="stretch",
        on_click=action,
        args=args,
        disabled=bool(reason),
        help=reason or None,
    )


def why_not(forbidden: Mapping[int, Sequence[Call]], at: int) -> str:
    """Why no fork may keep exactly ``at`` messages; empty if it may."""
    waiting = forbidden.get(at)
    if not waiting:
        return ""
    call = safe_label(tool_calls.label(waiting[0], 50))
    return f"Not here: {call} has no result yet, and a fork would end in that call."


def prompt_index(turn: Turn) -> int | None:
    """The index of the turn's prompt."""
    return next((index for index in range(turn.start, turn.end) if turn.messages[index].get("role") == "user"), None)


def _close_menu(key: str) -> None:
    st.session_state[key] = False


def open_dialog(kind: str, session_id: str, index: int, menu_key: str | None = None) -> None:
    """Open the dialog ``kind`` for a message."""
    st.session_state[DIALOG] = (kind, session_id, index)
    if menu_key:
        _close_menu(menu_key)


def close_dialog() -> None:
    """Nothing is open over the page any more."""
    st.session_state.pop(DIALOG, None)


def fork(session_id: str, at: int) -> Session:
    """A fork that keeps the first ``at`` messages."""
    return folder.manager().open(session_id).fork(at=at)


def _fork(session_id: str, at: int, menu_key: str | None = None) -> None:
    if menu_key:
        _close_menu(menu_key)
    try:
        child = fork(session_id, at)
    except SessionError as error:
        chat_state.notify({"kind": "error", "text": str(error)})
        return
    chat_state.go(child.id)


def rerun(session_id: str, index: int, changes: Mapping[str, Any] | None, menu_key: str | None = None) -> None:
    """Answer the stored prompt at ``index`` again, in a fork that keeps it; ``changes`` are settings of the fork."""
    if menu_key:
        _close_menu(menu_key)
    _run_in_fork(session_id, index + 1, None, changes or {})


def edit_and_rerun(session_id: str, index: int, prompt: str) -> None:
    """Answer ``prompt`` instead of the one at ``index``, in a fork from before it."""
    _run_in_fork(session_id, index, prompt, {})


def _run_in_fork(session_id: str, at: int, prompt: str | None, changes: Mapping[str, Any]) -> None:
    try:
        child = fork(session_id, at)
        chat_state.go(child.id)
        if changes:
            child.update_meta(changes)
        runs.start(child.id, prompt, providers.run_settings(child.meta))
    except SessionError as error:
        chat_state.refused(error, prompt)


def _copy_link(session_id: str, index: int, menu_key: str) -> None:
    _close_menu(menu_key)
    browser.copy(links.address("chat", links.to_chat(session_id, index)), "Link copied")


def _copy_markdown(session_id: str, said: list[Message], menu_key: str) -> None:
    _close_menu(menu_key)
    redaction, meta = Redaction(), dict[str, Any]()
    with suppress(SessionError):  # deleted since: the turn is still there to be copied
        meta = dict(folder.current(session_id).meta)
    left = redaction.leaving(said, meta)
    text = export.turn_markdown(left.said, left.meta)
    browser.copy(text, "Turn copied as Markdown" + (f". {redaction.sentence()}" if redaction.findings else ""))


# ---------------------------------------------------------------- dialogs


def draw_edit(session_id: str, index: int, said: Sequence[Message], meta: Mapping[str, Any]) -> None:
    """The dialog to change a prompt and have it answered in a fork."""
    prompt = said[index]
    typed = st.text_area(
        "Prompt", str(messages.clean(content.text(prompt))), height=180, key=f"cell-edit-{session_id}-{index}"
    )
    st.caption("It is answered in a fork; this session stays as it is.")
    money.draw_history_cost(said[:index], meta)
    if any(part.kind != "text" for part in content.parts(prompt)):
        st.caption("The files of this prompt are not taken along; “Rerun” keeps them.")
    if st.button("Run in a fork", key=f"cell-edit-run-{index}", type="primary", disabled=not typed):
        close_dialog()
        edit_and_rerun(session_id, index, typed)
        st.rerun()


def draw_rerun(session_id: str, index: int, said: Sequence[Message], meta: Mapping[str, Any]) -> None:
    """The dialog to have the same prompt answered by another model, in a fork."""
    settings = providers.told(meta)
    key = f"cell-rerun-{session_id}-{index}"
    try:
        where = providers.endpoint(settings)
    except SessionError as error:
        st.error(safe_label(str(error)))
        return
    if f"{key}-models" not in st.session_state:
        st.session_state[f"{key}-models"], st.session_state[f"{key}-wrong"] = providers.models_of(where)
    listed: list[str] = st.session_state[f"{key}-models"]
    st.caption(f"The same prompt, answered in a fork by another model of {safe_label(where.name)}.")
    model = model_choice.draw("Model", listed, f"{key}-model")
    money.draw_history_cost(said[:index], {**meta, "base_url": where.settings.get("base_url"), "model": model})
    if wrong := st.session_state[f"{key}-wrong"]:
        st.caption(safe_label(wrong))
    if where.is_demo:
        st.caption("For a model on another server, fork from here and choose it under the prompt.")
    if st.button("Run in a fork", key=f"{key}-run", type="primary", disabled=not model):
        close_dialog()
        rerun(session_id, index, {"model": model, "base_url": where.settings.get("base_url")})
        st.rerun()


# ---------------------------------------------------------------- branches


def draw_children(session_id: str, turn: Turn, children: Sequence[folder.Child]) -> None:
    """A chip for every fork that was taken in this turn."""
    here = [child for child in children if turn.start < child.at <= turn.end or (turn.start == 0 and child.at == 0)]
    if not here:
        return
    with st.container(horizontal=True, gap="small", key=f"cell-chips-{session_id}-{turn.start}"):
        for child in here[:12]:
            st.page_link(
                frame.page("chat"),
                label=safe_label(child.title or folder.title_of(child.id), 48),
                icon=":material/fork_right:",
                query_params=links.to_chat(child.id),
                help=f"Forked {places.place(turn.messages, child.at)}, with {text.count(child.at, 'message')}",
            )
        if len(here) > 12:
            st.caption(f"and {len(here) - 12} more")
        for at in dict.fromkeys(child.at for child in here):
            _draw_switch(session_id, at, [session_id, *(child.id for child in here if child.at == at)])


def draw_rule(session: Session, parent: str, effects: str) -> None:
    """The rule where the copied part of a fork ends: whence, the way back, its siblings, and what happened once."""
    session_id, at = session.id, session.inherited
    siblings = [child for child in folder.children(parent) if child.at == at]
    is_there = folder.manager().exists(parent)
    with st.container(key=f"chat-rule-{session_id}", gap="small"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            name = safe_label(folder.title_of(parent), 60) if is_there else f"{safe_label(parent)}, which was deleted,"
            where = places.place(session.messages, at)
            st.markdown(f":material/fork_right: Forked from **{name}** {where}", width="content")
            if is_there:
                st.page_link(
                    frame.page("chat"),
                    label="Back to parent",
                    icon=":material/arrow_back:",
                    query_params=links.to_chat(parent, at - 1 if at else None),
                )
                st.page_link(
                    frame.page("compare"),
                    label="Compare",
                    icon=":material/compare_arrows:",
                    query_params=links.to_compare(parent, session_id),
                )
            original = [parent] if is_there else []
            _draw_switch(session_id, at, [*original, *(child.id for child in siblings)])
        if effects:
            st.caption(f"These happened once, for every branch: {effects}")
        if at == len(session.messages):  # nothing was asked in the fork yet
            money.draw_history_cost(session.messages, session.meta)


def _draw_switch(session_id: str, at: int, ids: Sequence[str]) -> None:
    """``‹ 2/3 ›`` through the ways from one place, the original (the first of ``ids``) and its forks there."""
    if len(ids) < 2:
        return
    position = ids.index(session_id) if session_id in ids else 0
    key = f"cell-switch-{session_id}-{at}"
    with st.container(horizontal=True, vertical_alignment="center", gap=None, key=key, width="content"):
        for step, icon, label in ((-1, "chevron_left", "Previous way"), (1, "chevron_right", "Next way")):
            target = position + step
            is_possible = 0 <= target < len(ids)
            st.button(
                label,
                icon=f":material/{icon}:",
                type="tertiary",
                key=f"{key}-{step}",
                disabled=not is_possible,
                on_click=chat_state.go,
                args=(ids[target] if is_possible else session_id,),
            )
            if step < 0:
                st.caption(f"{position + 1}/{len(ids)}", width="content")


def effects_line(inherited: Sequence[Message]) -> str:
    """``buy(torch), give(key)``: the calls that changed the world, as one label; empty if there are none."""
    found = [_named(step.call) for step in tool_calls.effects(inherited)]
    shown = list(dict.fromkeys(found))
    line = ", ".join(safe_label(name, 60) for name in shown[:8])
    return f"{line} and {len(shown) - 8} more" if len(shown) > 8 else line


def _named(call: Call) -> str:
    given = tool_calls.arguments(call)
    if given is None:
        return tool_calls.label(call, 60)
    return f"{call.name or 'unnamed tool'}({', '.join(content.as_text(value) for value in given.values())})"
