"""The bottom of Chat: the prompt, who answers it, Stop, and what the visitor has to be told.

A prompt that could not be stored is shown with the reason, and never lost. Only a submit or a click starts a run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import streamlit as st

from pages.chat_parts import chat_header, chat_state
from pages.chat_parts.cell_menu import open_dialog
from pages.chat_parts.chat_state import Notice
from pages.shared import browser, folder, providers
from pages.shared.safe_markdown import safe_label
from sessions_lib import text as wording
from sessions_lib.agent import approval, budget, runs
from sessions_lib.agent.approval import Decision
from sessions_lib.agent.runs import Run
from sessions_lib.errors import SessionError, SessionLocked
from sessions_lib.messages import attachments, tool_calls, turn_count
from sessions_lib.messages.content import Message
from sessions_lib.messages.request import SEND_EVERYTHING, SEND_FROM, newest_that_fit, summed_up
from sessions_lib.messages.tool_calls import Call
from sessions_lib.store.session import Session
from sessions_lib.text import visible

_HOW = {True: "are summed up for the model", False: "are not sent to the model"}
_UNSENT = "chat_unsent_files"  # of the prompt that could not be sent
_TOLD = "chat_failure_told"  # the failed run this visitor was taken to


def draw_composer(session: Session | None, run: Run | None) -> None:
    """The prompt of ``session``, or of a new one; disabled, with a Stop, while ``run`` answers it."""
    is_live = run is not None
    settings = providers.told(session.meta) if session else providers.told({})
    name = providers.name_of(settings)
    key = f"chat-prompt-{session.id if session else 'new'}"
    if session is not None:
        st.session_state[f"chat-seen-{session.id}"] = len(session.messages)
    read_only = folder.why_read_only(session.id if session else None)
    with st.bottom:
        if read_only:
            st.caption(f":material/lock: {safe_label(read_only)}")
        st.chat_input(
            "The answer is being written …"
            if is_live
            else f"Ask the {name}"
            if name == "demo model"
            else f"Ask {name}",
            key=key,
            disabled=is_live or bool(read_only),
            accept_file="multiple",
            on_submit=_submit,
            args=(session.id if session else None, key),
        )
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="chat-under"):
            st.button(
                safe_label(name, 60),
                icon=":material/tune:",
                type="tertiary",
                key="chat-settings",
                on_click=open_dialog,
                args=("settings", session.id if session else "", 0),
            )
            for icon, said in providers.conditions(settings):
                st.caption(f":material/{icon}: {safe_label(said, 80)}", width="content")
            if session is not None:
                for warning in _budgets(session):
                    st.caption(f":material/payments: {safe_label(warning, 120)}", width="content")
                st.button(
                    "Fork",
                    icon=":material/fork_right:",
                    type="tertiary",
                    key="chat-fork",
                    on_click=chat_header.fork_here,
                    args=(session.id,),
                    shortcut="Alt+F",
                )
            if run is not None:
                st.space("stretch")
                st.button("Stop", icon=":material/stop_circle:", key="chat-stop", on_click=run.stop, shortcut="Esc")


def _budgets(session: Session) -> list[str]:
    """The budgets of which so much is spent that the visitor is warned."""
    return [str(one) for one in budget.of(session) if one.share >= budget.WARN_AT]


def _submit(session_id: str | None, key: str) -> None:
    given = st.session_state.get(key)
    prompt = given if isinstance(given, str) else getattr(given, "text", "") or ""
    files = [(file.name, file.getvalue()) for file in getattr(given, "files", None) or ()]
    if prompt or files:
        send(session_id, prompt, files)


def send(
    session_id: str | None, prompt: str, files: Sequence[tuple[str, bytes]] = (), *, over_budget: bool = False
) -> None:
    """Store ``prompt`` with its ``files`` and start answering it, in a new session for ``None``; tell why if that
    cannot be. Files that were not sent are kept for the next try."""
    chat_state.dismiss()
    created = None
    st.session_state.pop(_UNSENT, None)
    try:
        asked = attachments.content(prompt, files)
        st.session_state[_UNSENT] = list(files)
        if session_id is None:
            created = folder.manager().create(**providers.for_new_session())
            session_id = created.id
        elif _has_changed(session_id):
            raise SessionError("This session has new messages since you began to type. Read them, then send again.")
        session = folder.manager().open(session_id)
        runs.start(session_id, asked, providers.run_settings(session.meta, over_budget=over_budget))
    except SessionError as error:
        chat_state.refused(error, prompt, locked=session_id if isinstance(error, SessionLocked) else None)
        if created is not None and not created.messages:
            _take_back(created)
        return
    st.session_state.pop(_UNSENT, None)
    chat_state.to_newest(session_id)
    chat_state.go(session_id)
    _scroll_to_last_turn(session_id)


def _scroll_to_last_turn(session_id: str) -> None:
    """Bring what was just asked into sight, wherever the visitor was reading."""
    with suppress(SessionError):
        *_, (start, _) = tool_calls.each_turn(folder.current(session_id).messages)
        browser.scroll_to(chat_state.cell_key(session_id, start))


def _has_changed(session_id: str) -> bool:
    seen = st.session_state.get(f"chat-seen-{session_id}")
    return seen is not None and len(folder.current(session_id).messages) != seen


def _take_back(created: Session) -> None:
    """Remove the empty session of a prompt that could not be stored: nobody asked for it."""
    try:
        folder.manager().delete(created.id)
    except SessionError:
        return


def answer(session_id: str, *, over_budget: bool = False, without_tools: bool = False) -> None:
    """Start answering what is stored last: a prompt, or results, without an answer."""
    chat_state.dismiss()
    try:
        session = folder.manager().open(session_id)
        settings = providers.run_settings(session.meta, over_budget=over_budget, without_tools=without_tools)
        runs.start(session_id, None, settings)
    except SessionError as error:
        chat_state.refused(error)


def _go_on_with_newest(session_id: str, refusal: str) -> None:
    """Answer the waiting prompt in a fork that sends its newest turns alone."""
    chat_state.dismiss()
    try:
        session = folder.manager().open(session_id)
        named = [int(number) for number in re.findall(r"\d{4,7}", refusal.replace(",", ""))]
        size = session.meta.get("context_tokens")
        limit = size if isinstance(size, int) and size > 0 else min(named, default=None)
        said = session.messages
        start = newest_that_fit(said, limit)
        child = session.fork(at=len(said), mark="newest turns")
        child.update_meta({SEND_FROM: child.messages[start].get("id")})
        chat_state.go(child.id)
        runs.start(child.id, None, providers.run_settings(child.meta))
    except SessionError as error:
        chat_state.refused(error)


def draw_summed_up(session: Session) -> None:
    """How much of the history is not in the next request as it was said, and the choice to send everything."""
    begins = session.meta.get(SEND_FROM)
    cut = next((at for at, message in enumerate(session.messages) if begins and message.get("id") == begins), None)
    index = summed_up(session.messages) if cut is None else cut
    if index is None:
        return
    sends_all = bool(session.meta.get(SEND_EVERYTHING))
    turns = wording.count(turn_count(session.messages[:index]), "earlier turn")
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="chat-summed-up"):
        st.caption(
            f":material/compress: {turns} go along in full."
            if sends_all
            else f":material/compress: {turns} {_HOW[cut is None]}; the session keeps all.",
            width="content",
        )
        st.button(
            "Send less again" if sends_all else "Send everything",
            key="chat-send-everything",
            type="tertiary",
            on_click=_send_everything,
            args=(session.id, not sends_all),
        )


def _send_everything(session_id: str, is_wanted: bool) -> None:
    try:
        folder.manager().open(session_id).update_meta({SEND_EVERYTHING: is_wanted or None})
    except SessionError as error:
        chat_state.refused(error)


def draw_state(session: Session, run: Run | None, *, is_live: bool) -> None:
    """Below the last turn: why the last run failed, or that something waits for an answer, and the button to go on."""
    if is_live:
        return
    if calls := approval.waiting(session):
        _draw_question(session, calls[0])
        return
    ended = run.snapshot() if run is not None else None
    waiting = waits_for(session.messages)
    is_last_word = ended is not None and ended.stored == len(session.messages)
    failed = ended.error if ended is not None and (waiting or is_last_word) else None
    for notice in ended.notices if ended is not None and is_last_word else ():
        st.caption(f":material/info: {safe_label(notice)}")
    if failed and ended is not None:
        key = f"chat-failed-{session.id.replace('.', '_')}"
        with st.container(key=key):
            st.error(safe_label(failed), icon=":material/error:")
        if st.session_state.get(_TOLD) != (session.id, ended.version):
            st.session_state[_TOLD] = (session.id, ended.version)
            browser.scroll_to(key)  # the prompt field covers what stands below the window
    elif waiting and waiting != "prompt":
        st.caption(f":material/history: {waiting}")
    if waiting and failed and run is not None and run.was_too_long:
        st.button(
            "Go on with the newest turns, in a fork",
            key=f"chat-newest-{session.id}",
            icon=":material/content_cut:",
            help="The fork keeps all that was said, and sends the turns that are likely to fit.",
            on_click=_go_on_with_newest,
            args=(session.id, run.error or ""),
        )
    if waiting and failed and run is not None and run.refused_tools:
        st.button(
            "Ask without the tools",
            key=f"chat-without-tools-{session.id}",
            icon=":material/build_circle:",
            help="This model takes no tools. It is asked once without them; the answer says so.",
            on_click=answer,
            args=(session.id,),
            kwargs={"without_tools": True},
        )
    if waiting:
        st.button(
            "Try again" if failed else "Answer" if waiting == "prompt" else "Go on",
            key=f"chat-answer-{session.id}",
            icon=":material/play_arrow:",
            on_click=answer,
            args=(session.id,),
        )


def _draw_question(session: Session, call: Call) -> None:
    """A call that waits for a yes: what it would do, and what can be said of it. Nothing runs before a click."""
    key = f"chat-approve-{session.id}"
    with st.container(border=True, key=key.replace(".", "_")):
        st.markdown(f":material/bolt: **{safe_label(tool_calls.label(call, 200))}?**")
        only_looks = any(tool.name == call.name and not tool.effect for tool in providers.offered())
        what = "It only looks" if only_looks else "It changes something outside of this conversation"
        st.caption(f"{what}, and waits for you: also if you close this window.")
        reason = st.text_input(
            "Why not", key=f"{key}-why", placeholder="Why not (the model reads it)", label_visibility="collapsed"
        )
        with st.container(horizontal=True):
            for label, icon, decision in (
                ("Allow once", "check", Decision(is_allowed=True)),
                ("Always in this session", "done_all", Decision(is_allowed=True, always=True)),
                ("Deny", "block", Decision(is_allowed=False, reason=reason)),
            ):
                st.button(
                    label,
                    key=f"{key}-{icon}",
                    icon=f":material/{icon}:",
                    type="primary" if icon == "check" else "secondary",
                    on_click=_decide,
                    args=(session.id, call.id, decision),
                )


def _decide(session_id: str, call_id: str, decision: Decision) -> None:
    """Go on with what was decided; whoever decides second, in another window, is told."""
    chat_state.dismiss()
    try:
        session = folder.manager().open(session_id)
        calls = approval.waiting(session)
        if call_id not in [call.id for call in calls]:
            raise SessionError("That was decided already, in another window.")
        if decision.is_allowed:
            providers.switch_on(session.meta, [call.name for call in calls])
        runs.start(session_id, None, providers.run_settings(session.meta, decisions={call_id: decision}))
    except SessionError as error:
        chat_state.refused(error)


def waits_for(stored: Sequence[Message]) -> str:
    """``prompt`` if a prompt is stored last; a sentence if the run behind it was cut; empty if all is answered."""
    last = stored[-1] if stored else {}
    if last.get("role") == "user":
        return "prompt"
    if last.get("role") == "tool":
        return "The run ended behind a tool’s result, before the answer."
    if last.get("interrupted"):
        return "The last answer was stopped before its end."
    if last.get("role") == "assistant" and last.get("tool_calls"):
        return "The program ended while a tool was called; whether the call took effect is unknown."
    return ""


def draw_notice() -> None:
    """What went wrong with the last thing the visitor did, with their text if they had typed one."""
    told = chat_state.notice()
    if told is None:
        return
    draw = st.error if told["kind"] == "error" else st.info
    draw(safe_label(told["text"]), icon=":material/error:" if told["kind"] == "error" else ":material/info:")
    prompt = told.get("prompt")
    if prompt:
        st.caption("Your text was not sent; it is kept here:")
        st.code(visible(prompt[:20_000]), language=None, wrap_lines=True)
        if files := st.session_state.get(_UNSENT):
            st.caption(f":material/attach_file: {safe_label(', '.join(name for name, _ in files), 200)}")
    with st.container(horizontal=True):
        if told.get("over_budget"):
            _draw_go_on(prompt)
        elif prompt:
            _draw_retry(told, prompt)
        if undo := told.get("undo"):
            st.button("Undo", key="chat-undo", icon=":material/undo:", on_click=restore, args=(undo,))
        st.button("Dismiss", key="chat-dismiss", type="tertiary", on_click=chat_state.dismiss)


def _draw_go_on(prompt: str | None) -> None:
    """The button that agrees to spend more than the budget, for this one prompt."""
    open_now = chat_state.chosen()
    go_on = partial(send, open_now, prompt, _unsent()) if prompt else partial(answer, open_now or "")
    st.button(
        "Go on all the same",
        key="chat-over-budget",
        icon=":material/payments:",
        on_click=go_on,
        kwargs={"over_budget": True},
    )


def _draw_retry(told: Notice, prompt: str) -> None:
    open_now = chat_state.chosen()
    if open_now is not None and folder.manager().exists(open_now):
        st.button(
            "Send again", key="chat-resend", icon=":material/send:", on_click=send, args=(open_now, prompt, _unsent())
        )
    if locked := told.get("session"):
        st.button(
            "Send in a fork",
            key="chat-resend-fork",
            icon=":material/fork_right:",
            on_click=_send_in_fork,
            args=(locked, prompt),
        )
    args = (None, prompt, _unsent())
    st.button("Send in a new session", key="chat-resend-new", icon=":material/add:", on_click=send, args=args)


def _unsent() -> list[tuple[str, bytes]]:
    """The files of the prompt that could not be sent: they go along when it is sent again."""
    return list(st.session_state.get(_UNSENT) or ())


def _send_in_fork(session_id: str, prompt: str) -> None:
    try:
        child = folder.manager().fork(session_id)
    except SessionError as error:
        chat_state.notify({"kind": "error", "text": str(error), "prompt": prompt})
        return
    send(child.id, prompt, _unsent())


def restore(session_id: str) -> None:
    """Take a deleted session out of the trash and open it."""
    chat_state.dismiss()
    try:
        folder.manager().restore(session_id)
    except SessionError as error:
        chat_state.notify({"kind": "error", "text": str(error)})
    else:
        chat_state.go(session_id)
