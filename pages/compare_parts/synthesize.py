"""“Synthesize”: a new session from the shared start, in which a chosen model writes one answer out of the branches'.

What is asked is shown, and can be changed, before it is sent. The new session is compared with the branches then.
"""

from __future__ import annotations

import streamlit as st

from pages.compare_parts import asking
from pages.shared import folder, links, model_choice, money, providers
from pages.shared.safe_markdown import safe_label
from sessions_lib import text
from sessions_lib.agent import runs
from sessions_lib.compare import MOST, Comparison, synthesis
from sessions_lib.errors import SessionError

_OPEN = "compare_synthesize_open"
MARK = "synthesis"


def button(comparison: Comparison) -> None:
    """The button that opens the dialog; not while a branch is being answered."""
    ids = tuple(branch.id for branch in comparison.branches)
    st.button(
        "Synthesize",
        icon=":material/join_inner:",
        key="compare_synthesize",
        help="Have a model write one answer out of these",
        disabled=bool(asking.live(ids)),
        on_click=lambda: st.session_state.update({_OPEN: ids}),
    )


def draw(comparison: Comparison) -> None:
    """The dialog, while it is open."""
    if st.session_state.get(_OPEN) == tuple(branch.id for branch in comparison.branches):
        _dialog(comparison)


def _close() -> None:
    st.session_state.pop(_OPEN, None)


@st.dialog("Synthesize", width="large", on_dismiss=_close)
def _dialog(comparison: Comparison) -> None:
    base = comparison.branches[0]
    settings = providers.told(dict(base.meta))
    try:
        where = providers.endpoint(settings)
    except SessionError as error:
        st.error(safe_label(str(error)))
        return
    key = f"compare-synthesize-{'-'.join(branch.id for branch in comparison.branches)}"
    if f"{key}-models" not in st.session_state:
        st.session_state[f"{key}-models"], st.session_state[f"{key}-wrong"] = providers.models_of(where)
    kept = text.count(comparison.shared.messages, "message")
    st.caption(f"A new session with the {kept} of the shared start, answered by a model of {safe_label(where.name)}.")
    model = model_choice.draw("Model", st.session_state[f"{key}-models"], f"{key}-model", current=_model(comparison))
    if wrong := st.session_state[f"{key}-wrong"]:
        st.caption(safe_label(wrong))
    asked = st.text_area("What is asked", synthesis.prompt(comparison), height=320, key=f"{key}-prompt")
    money.draw_history_cost(base.messages, {**base.meta, "base_url": where.settings.get("base_url"), "model": model})
    if st.button("Ask", type="primary", key="compare-synthesize-go", disabled=not asked.strip()):
        _ask(comparison, asked, model, where.settings.get("base_url"))
        _close()
        st.rerun()


def _model(comparison: Comparison) -> str:
    own = (message.get("model") for branch in comparison.branches for message in reversed(branch.messages))
    return next((name for name in own if isinstance(name, str) and name and name != "demo"), "")


def _ask(comparison: Comparison, asked: str, model: str, base_url: object) -> None:
    """Fork at the shared start and ask there; what went wrong is told on the page."""
    ids = [branch.id for branch in comparison.branches]
    try:
        made = folder.manager().open(ids[0]).fork(at=comparison.shared.messages, mark=MARK)
        if model:
            made.update_meta({"model": model, "base_url": base_url})
        runs.start(made.id, asked, providers.run_settings(made.meta))
    except SessionError as error:
        st.session_state["compare_verdict_told"] = str(error)
        return
    st.query_params.update(links.to_compare(*[*ids, made.id][-MOST:]))
