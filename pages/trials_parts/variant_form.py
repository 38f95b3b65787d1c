"""The variants of a trial that is set up: branches, or up to four ways to answer in one session.

A way may have another model, address, temperature or system prompt, go without tools, or pretend that something else
was said before: by a person, the model or a tool.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from pages.shared import folder, providers
from pages.shared.safe_markdown import safe_label
from sessions_lib import names
from sessions_lib.export import facts
from sessions_lib.messages import content, places, tool_calls
from sessions_lib.messages.content import Message
from sessions_lib.store.session import Session
from sessions_lib.trials.trial import Trial, Variant

_SHOWN = 60  # characters of a message to choose


def draw(session: Session, at: int, others: Sequence[str], key: str, *, prompts: Sequence[str]) -> list[Variant]:
    """What differs: the branches ``others`` beside ``session``, or ways to answer after ``at`` messages of it.

    Without ``prompts`` each way goes on from what was changed, and the others from the same place as it was.
    """
    if others:
        found = []
        for one in (session.id, *others):
            branch = folder.current(one)
            found.append(Variant(branch.title[:28] or one, session=one, at=len(branch.messages)))
        st.caption("Variants: " + " · ".join(safe_label(variant.name, 60) for variant in found))
        return _numbered(found)
    count = st.segmented_control("Variants", [1, 2, 3, 4], default=2, key=f"{key}-count", required=True)
    ways = _numbered([_way(session, at, number, key) for number in range(1, int(count or 2) + 1)])
    place = next((way.change[0] for way in ways if way.change), None)
    if prompts or place is None:
        return ways
    as_it_was = (place, content.text(session.messages[place]))
    return [way if way.change else replace(way, change=as_it_was) for way in ways]


def with_keys(trial: Trial) -> Trial:
    """``trial`` with this visitor's keys for the addresses of its variants: they are never stored."""
    trial.variants = [replace(one, api_key=providers.key_for(one.base_url)) for one in trial.variants]
    return trial


def _numbered(variants: list[Variant]) -> list[Variant]:
    """``variants`` with a number before a name that is not the only one of its kind."""
    named = [variant.name.lower() for variant in variants]
    return [
        replace(one, name=f"{number} {one.name}") if named.count(one.name.lower()) > 1 else one
        for number, one in enumerate(variants, 1)
    ]


def _way(session: Session, at: int, number: int, key: str) -> Variant:
    with st.container(border=True, gap="small", key=f"{key}-variant-{number}"):
        name_place, model_place, temperature_place = st.columns([2, 2, 1])
        usual = "as it is" if number == 1 else f"variant {number}"
        name = name_place.text_input(f"Name of variant {number}", usual, key=f"{key}-name-{number}")
        model = model_place.text_input(
            f"Model of variant {number}", key=f"{key}-model-{number}", placeholder="as in the session"
        )
        temperature = temperature_place.number_input(
            f"Temperature of {number}", 0.0, 2.0, None, 0.1, key=f"{key}-temperature-{number}", placeholder="as it is"
        )
        system = st.text_area(
            f"System prompt of variant {number}", key=f"{key}-system-{number}", placeholder="System prompt: as it is",
            label_visibility="collapsed", height=68,
        )  # fmt: skip
        with st.expander("More that may differ", key=f"{key}-further-{number}"):
            address = st.text_input(
                f"Address of variant {number}", key=f"{key}-url-{number}", placeholder="as in the session",
                help="Of another server. A key that you typed for it in Chat goes along.",
            )  # fmt: skip
            has_tools = st.toggle(f"Tools of variant {number}", True, key=f"{key}-tools-{number}")
            change = _change(session, at, number, key)
    return Variant(
        name.strip() or usual, model=model.strip() or None, base_url=address.strip() or None, temperature=temperature,
        system=system.strip() or None, tools=None if has_tools else (), change=change,
    )  # fmt: skip


def _change(session: Session, at: int, number: int, key: str) -> tuple[int, str] | None:
    """Another text for a message before the start, if one is chosen: (its index, what it says instead)."""
    said, turns = session.messages[:at], places.turns_of(session.messages[:at])
    index = st.selectbox(
        f"Variant {number} pretends that something else was said", range(len(said)), None,
        format_func=lambda one: f"turn {turns[one]} · {_line(said[one])}",
        key=f"{key}-change-{number}", placeholder="nothing: all as it was", disabled=not said,
    )  # fmt: skip
    if index is None:
        return None
    words = st.text_area(
        "What was said instead", content.text(said[index]), key=f"{key}-instead-{number}-{index}", height=110
    )
    return None if words == content.text(said[index]) else (index, words)


def _line(message: Message) -> str:
    """A message in a list to choose from: who, and how it begins, or what it calls."""
    calls = ", ".join(map(tool_calls.label, tool_calls.calls_of(message)))
    return f"{facts.who(message)}: {names.one_line(content.text(message) or calls, _SHOWN)}"
