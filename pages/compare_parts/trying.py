"""Trying one prompt in several ways at once: two to four forks that differ in model, temperature or system prompt.

Opened from a cell's menu; ends in the comparison of the forks, which are answering by then.

Does not answer: runs do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from pages.compare_parts import asking
from pages.shared import folder, links, model_choice, money, providers
from pages.shared.safe_markdown import safe_label
from sessions_lib import messages
from sessions_lib.agent import experiments
from sessions_lib.agent.experiments import Variant
from sessions_lib.agent.providers import Endpoint
from sessions_lib.errors import SessionError
from sessions_lib.messages import content
from sessions_lib.messages.content import Message

GO = "chat_to_compare"  # the comparison to open once the dialog is closed


def draw(session_id: str, index: int, said: Sequence[Message], meta: Mapping[str, Any]) -> None:
    """The body of the dialog for the prompt at ``index``: the prompt, the ways, and the button that starts them."""
    key = f"try-{session_id}-{index}"
    settings = providers.told(meta)
    try:
        where = providers.endpoint(settings)
    except SessionError as error:
        st.error(safe_label(str(error)))
        return
    if f"{key}-models" not in st.session_state:
        st.session_state[f"{key}-models"], st.session_state[f"{key}-wrong"] = providers.models_of(where)
    typed = st.text_area("Prompt", str(messages.clean(content.text(said[index]))), height=110, key=f"{key}-prompt")
    count = st.segmented_control("Ways", [2, 3, 4], default=3, key=f"{key}-count", required=True)
    variants = [_draw_way(number, where, settings, key) for number in range(1, int(count or 2) + 1)]
    if wrong := st.session_state[f"{key}-wrong"]:
        st.caption(safe_label(wrong))
    st.caption("Each way is a fork of its own, answered at the same time; this session stays as it is.")
    money.draw_history_cost(said[:index], meta)
    for sentence in asking.at_stake([session_id]):
        st.caption(f":material/bolt: {safe_label(sentence.replace('1 branch', f'{len(variants)} branches'))}")
    if st.button("Try them", type="primary", key=f"{key}-go", disabled=not typed.strip()):
        _go(session_id, index, typed, variants)


def _draw_way(number: int, where: Endpoint, settings: Mapping[str, Any], key: str) -> Variant:
    listed: list[str] = st.session_state[f"{key}-models"]
    with st.container(border=True):
        model_place, temperature_place = st.columns([2, 1])
        with model_place:
            model = model_choice.draw(
                f"Model of way {number}", listed, f"{key}-model-{number}", start=number - 1, place=f", way {number}"
            )
        temperature = temperature_place.number_input(
            "Temperature", 0.0, 2.0, None, 0.1, key=f"{key}-temperature-{number}", placeholder="as it is"
        )
        system = st.text_input(
            "System prompt",
            key=f"{key}-system-{number}",
            placeholder="System prompt: as in the session",
            label_visibility="collapsed",
        )
    return Variant(
        model=model or None,
        base_url=where.base_url,
        temperature=temperature,
        system=system.strip() or None,
        api_key=where.api_key,
    )


def _go(session_id: str, index: int, prompt: str, variants: list[Variant]) -> None:
    manager = folder.manager()
    try:
        asked = experiments.try_in_parallel(
            manager,
            session_id,
            index,
            prompt,
            variants,
            lambda one: providers.run_settings(manager.open(one).meta, asks=False),
        )
    except SessionError as error:
        st.error(safe_label(str(error)), icon=":material/error:")
        return
    asking.tell(asked)
    st.session_state[GO] = links.to_compare(*(one.session for one in asked))
    st.rerun()
