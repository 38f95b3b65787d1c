"""What a comparison is for: a verdict on the branches that are shown, and merging two.

A verdict goes into the metadata of each branch. A merge makes a new session of two, after a preview; both sources
stay as they are.

Does not judge or merge itself: ``verdicts`` and ``merge_sessions`` do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from pages.compare_parts import blind
from pages.shared import folder, links
from pages.shared.frame import page
from pages.shared.safe_markdown import safe_label
from sessions_lib import messages, names
from sessions_lib.compare import LETTERS, verdicts
from sessions_lib.errors import SessionError
from sessions_lib.messages import content
from sessions_lib.store import merge, merge_sessions

_OPEN, _MADE, _TOLD = "compare_home_open", "compare_home_made", "compare_verdict_told"
_TURNS, _BY_TIME = "Chosen turns behind the last one", "Both, interleaved by time"


def draw_verdict_menu(shown: Sequence[str], titles: Mapping[str, str]) -> None:
    """The menu that says which branch won, why, and under which tags."""
    with st.popover("Verdict", icon=":material/emoji_events:", key="compare_verdict", on_change="rerun"):
        blind.button()
        winner = st.radio(
            "Which one won?",
            list(shown),
            index=None,
            key=_winner_key(shown),
            format_func=lambda one: f"{LETTERS[list(shown).index(one)]} · {safe_label(titles.get(one, one), 60)}",
        )
        st.text_input("Why", key="compare_why", placeholder="Shorter, and it checked first")
        st.multiselect(
            "Tag the winner",
            folder.known_tags(),
            key="compare_winner_tags",
            accept_new_options=True,
            select_all=False,
        )
        st.button(
            "Save",
            type="primary",
            key="compare_verdict_save",
            disabled=winner is None,
            on_click=_give,
            args=(tuple(shown),),
        )


def _winner_key(shown: Sequence[str]) -> str:
    return f"compare_winner_{'-'.join(shown)}"


def _give(shown: Sequence[str]) -> None:
    # What is in the fields now: what was chosen or typed last came with this click, after the button was drawn.
    winner: str | None = st.session_state[_winner_key(shown)]
    why, tags = st.session_state["compare_why"], tuple(st.session_state["compare_winner_tags"])
    if winner is None:
        return
    st.session_state["compare_verdict"] = False  # closed: a line on the page says it
    others = [one for one in shown if one != winner]
    try:
        failed = verdicts.give(folder.manager(), winner, others, why, tags)
    except SessionError as error:
        failed = [str(error)]
    st.session_state[_TOLD] = " ".join(failed)


def draw_verdict(shown: Sequence[str], titles: Mapping[str, str]) -> None:
    """One line: who won against whom and why, with the way to take it back."""
    if told := st.session_state.get(_TOLD):
        st.warning(safe_label(told), icon=":material/error:")
    for session_id in shown:
        try:
            found = verdicts.of(folder.current(session_id).meta)
        except SessionError:
            continue
        if not found or found["verdict"] != verdicts.WON:
            continue
        against = [one for one in found.get("against", []) if one in shown] if "against" in found else []
        with st.container(
            horizontal=True, vertical_alignment="center", key=f"compare_won_{LETTERS[shown.index(session_id)]}"
        ):
            letter = LETTERS[shown.index(session_id)]
            than = f" over {', '.join(LETTERS[shown.index(one)] for one in against)}" if against else ""
            why = ", judged blind" if found.get("blind") is True else ""
            why += f": {safe_label(str(found['why']), 200)}" if found.get("why") else ""
            name = safe_label(titles.get(session_id, session_id), 60)
            st.markdown(f":material/emoji_events: **{letter} · {name}** won{than}{why}", width="content")
            st.button(
                "Take back",
                type="tertiary",
                key=f"compare_verdict_back_{letter}",
                on_click=_take_back,
                args=((session_id, *against),),
            )


def _take_back(session_ids: Sequence[str]) -> None:
    st.session_state.pop(_TOLD, None)
    try:
        verdicts.take_back(folder.manager(), session_ids)
    except SessionError as error:
        st.session_state[_TOLD] = str(error)


# ---------------------------------------------------------------- merge


def draw_home_button(shown: Sequence[str], *, is_live: bool) -> None:
    """The button that opens the dialog; not while a branch is being answered."""
    st.button(
        "Merge",
        icon=":material/merge:",
        key="compare_home",
        help="Make one new session of two branches",
        disabled=is_live,
        on_click=_open,
        args=(tuple(shown),),
    )


def _open(shown: tuple[str, ...]) -> None:
    st.query_params.update(links.to_compare(*shown))  # the new session must not become what is shown
    st.session_state[_OPEN] = shown


def draw_home(shown: Sequence[str], titles: Mapping[str, str]) -> None:
    """What the last merge made, and the dialog for the next one while it is open."""
    if made := st.session_state.get(_MADE):
        with st.container(horizontal=True, vertical_alignment="center", key="compare_home_made"):
            st.markdown(f":material/check_circle: Merged into **{safe_label(made[1], 80)}**.", width="content")
            st.page_link(page("chat"), label="Open", icon=":material/forum:", query_params=links.to_chat(made[0]))
            st.button(
                "Dismiss", type="tertiary", key="compare_home_seen", on_click=lambda: st.session_state.pop(_MADE, None)
            )
    if st.session_state.get(_OPEN) == tuple(shown):
        _dialog(shown, titles)


def _close() -> None:
    st.session_state.pop(_OPEN, None)


@st.dialog("Merge two branches", width="large", on_dismiss=_close)
def _dialog(shown: Sequence[str], titles: Mapping[str, str]) -> None:
    def label(one: str) -> str:
        return f"{LETTERS[list(shown).index(one)]} · {titles.get(one, one)}"

    left, right = st.columns(2)
    base = left.selectbox("Into", list(shown), key="compare_home_base", format_func=label)
    others = [one for one in shown if one != base]
    other = right.selectbox("Take from", others, key=f"compare_home_other_{base}", format_func=label)
    how = st.radio("How", [_TURNS, _BY_TIME], key="compare_home_how", horizontal=True, label_visibility="collapsed")
    try:
        turns = _choose_turns(base, other) if how == _TURNS else None
        if turns == []:
            st.caption("Choose the turns to take.")
            return
        plan = merge_sessions.preview(folder.manager(), base, other, turns)
    except SessionError as error:
        st.info(safe_label(str(error)), icon=":material/info:")
        return
    title = st.text_input("Title of the new session", plan.title, key=f"compare_home_title_{base}_{other}")
    _draw_preview(plan)
    if st.button("Make the new session", type="primary", key="compare_home_go"):
        try:
            plan = merge_sessions.preview(folder.manager(), base, other, turns, title.strip() or None)
            made = merge_sessions.join(folder.manager(), plan)
        except SessionError as error:
            st.error(safe_label(str(error)), icon=":material/error:")
            return
        st.session_state[_MADE] = (made.id, made.title)
        _close()
        st.rerun()


def _choose_turns(base: str, other: str) -> list[int]:
    first, second = folder.current(base), folder.current(other)
    shared = merge.shared_start(first.messages, second.messages)
    prompts: dict[int, str] = {}
    index = 0
    for number, turn in enumerate(messages.turns(second.messages), 1):
        index += len(turn)
        if index > shared:
            prompt = next((message for message in turn if message.get("role") == "user"), turn[0])
            prompts[number] = names.one_line(names.request_in(content.text(prompt)), 90) or "no text"
    return st.multiselect(
        "Turns",
        list(prompts),
        default=list(prompts),
        key=f"compare_home_turns_{base}_{other}",
        format_func=lambda number: f"turn {number}: {prompts.get(number, '')}",
    )


def _draw_preview(plan: merge_sessions.Preview) -> None:
    count, new = len(plan.messages), len(plan.added)
    st.caption(
        f"A new session of {count} messages: {count - new} of the first, {new} of the second. "
        "Both stay as they are, and nothing is said again."
    )
    with st.container(border=True, height=220 if len(plan.turns) > 6 else "content", key="compare_home_preview"):
        for line in plan.turns:
            st.markdown(f":material/add: {safe_label(line, 120)}")
