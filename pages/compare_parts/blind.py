"""A blind verdict (``blind=1``): the answers side by side without names and settings, in an order of chance; which is
which is told once one was chosen.

Does not keep a verdict itself: ``verdicts`` does.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Sequence

import streamlit as st

from pages.shared import folder
from pages.shared.safe_markdown import safe_label, safe_markdown
from sessions_lib import text
from sessions_lib.compare import Comparison, verdicts
from sessions_lib.errors import SessionError
from sessions_lib.export import facts

_SEED, _TOLD = "compare_blind_seed", "compare_verdict_told"
_SHOWN = 20_000  # characters of an answer
_KEYS = "123456789"


def is_on() -> bool:
    """True if the address asks for a blind verdict."""
    return st.query_params.get("blind") == "1"


def button() -> None:
    """The button that begins."""
    st.button("Judge blind", icon=":material/visibility_off:", key="compare_blind", type="tertiary", on_click=_begin)


def _begin() -> None:
    st.session_state["compare_verdict"] = False
    st.session_state[_SEED] = secrets.token_hex(8)
    st.query_params["blind"] = "1"


def order(shown: Sequence[str], seed: str) -> list[str]:
    """``shown`` in an order of chance that stays for the ``seed``."""
    shuffled = sorted(shown)
    random.Random(seed).shuffle(shuffled)
    return shuffled


def draw(comparison: Comparison) -> None:
    """The answers after the shared start, a column each, and the choice."""
    shown = [branch.id for branch in comparison.branches]
    ordered = order(shown, st.session_state.setdefault(_SEED, secrets.token_hex(8)))
    by_id = {branch.id: branch for branch in comparison.branches}
    st.markdown("## Which is better?")
    st.caption("Without names and settings, in an order of chance. Which is which is shown when you have chosen.")
    for column, number, session in zip(st.columns(len(ordered)), _KEYS, ordered, strict=False):
        with column, st.container(border=True, height=520, key=f"compare_blind_{number}"):
            st.markdown(f"**{number}**")
            _draw_said(by_id[session].messages[comparison.shared.messages :])
    st.text_input("Why", key="compare_blind_why", placeholder="Shorter, and it checked first")
    with st.container(horizontal=True, key="compare_blind_choices"):
        for number, session in zip(_KEYS, ordered, strict=False):
            st.button(
                f"{number} is better",
                key=f"compare_blind_choose_{number}",
                shortcut=f"Alt+{number}",
                on_click=_choose,
                args=(session, tuple(one for one in shown if one != session)),
            )
        st.button("No verdict", key="compare_blind_end", type="tertiary", on_click=_end)


def _draw_said(said: Sequence[dict[str, object]]) -> None:
    words = 0
    for message in said:
        shown = facts.said(message)
        if message.get("role") == "user":
            st.caption(safe_label(shown, 400))
        elif message.get("role") == "assistant" and shown.strip():
            st.markdown(safe_markdown(shown[:_SHOWN]))
            words += len(shown)
    if not words:
        st.caption("No words after the shared start.")
    elif words > _SHOWN:
        st.caption(f"{text.count(words, 'character')} in all.")


def _choose(winner: str, others: tuple[str, ...]) -> None:
    why = str(st.session_state.get("compare_blind_why") or "")
    try:
        failed = verdicts.give(folder.manager(), winner, others, why, is_blind=True)
    except SessionError as error:
        failed = [str(error)]
    st.session_state[_TOLD] = " ".join(failed)
    _end()


def _end() -> None:
    st.query_params.pop("blind", None)
    st.session_state.pop(_SEED, None)
