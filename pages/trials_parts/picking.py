"""Picking blind: two answers side by side without names, by keyboard or click; which is which shows the table.

What is picked is kept at once: one goes on where one stopped.
"""

from __future__ import annotations

import random

import streamlit as st

from pages.shared import acting, folder
from pages.shared.safe_markdown import safe_markdown
from sessions_lib.errors import SessionError
from sessions_lib.trials import running
from sessions_lib.trials.checks import run_of
from sessions_lib.trials.trial import Result, Trial, changed

_PAIR = (
    ("A is better", (True, False)),
    ("B is better", (False, True)),
    ("Both are good", (True, True)),
    ("Neither is", (False, False)),
)
_ONE = (("It is good", (True,)), ("It is not", (False,)))
_SHOWN = 12_000  # characters of an answer


def draw(trial: Trial) -> None:
    """Two answers that nobody judged yet, if a person is to judge; how many are left."""
    if not any("pick" in check for check in trial.checks):
        return
    run = running.of(trial.store, trial.name)
    if run is not None and run.is_live:
        st.caption("You can pick once it has ended.")
        return
    open_pairs = pairs(trial)
    with st.container(border=True, key="trial-picking"):
        if not open_pairs:
            st.markdown("**All picked.** The table above says what came of it.")
            return
        shown = open_pairs[0]
        asked = "Which is better?" if len(shown) == 2 else "Is it good?"
        st.markdown(f"**{asked}** {len(open_pairs)} to go; which variant is which is not shown.")
        for column, letter, result in zip(st.columns(len(shown)), "AB", shown, strict=False):
            answer = _answer(trial, result)
            with column, st.container(border=True, height=420 if len(answer) > 1_500 else "stretch"):
                st.markdown(f"**{letter}**")
                st.markdown(safe_markdown(answer))
        with st.container(horizontal=True, key="trial-pick-buttons"):
            for key, (label, picks) in enumerate(_PAIR if len(shown) == 2 else _ONE, 1):
                st.button(
                    label, key=f"trial-pick-{key}", shortcut=str(key), on_click=_pick,
                    args=(trial.name, tuple(one.session for one in shown), picks),
                )  # fmt: skip


def pairs(trial: Trial) -> list[tuple[Result, ...]]:
    """Two unpicked answers each, of different variants where possible, in an order of chance that stays; the last may
    be one alone."""
    waiting = [one for one in trial.results.values() if one.state == "done" and one.session not in trial.picked]
    shuffled = sorted(waiting, key=lambda one: random.Random(f"{trial.created}{one.session}").random())
    found: list[tuple[Result, ...]] = []
    while len(shuffled) > 1:
        first = shuffled.pop(0)
        other = next((at for at, one in enumerate(shuffled) if one.variant != first.variant), 0)
        found.append((first, shuffled.pop(other)))
    return [*found, (shuffled[0],)] if shuffled else found


def _answer(trial: Trial, result: Result) -> str:
    session = folder.current(result.session)
    answer = run_of(session.messages[session.inherited + changed(session) :]).answer
    return answer[:_SHOWN] or "(no words)"


def _pick(name: str, sessions: tuple[str, ...], picks: tuple[bool, ...]) -> None:
    try:
        trial = Trial.load(folder.store(), name)
        for session, is_good in zip(sessions, picks, strict=True):
            if session not in trial.picked:
                trial.pick(session, is_good)
    except SessionError as error:
        acting.tell("Nothing was kept.", faults=[str(error)])
