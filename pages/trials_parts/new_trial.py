"""Setting a trial up: where it starts, what is asked, the variants, the checks, and what it will take.

Nothing is asked before the button: it makes the trial and starts it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from pages.shared import folder, links, providers
from pages.shared.safe_markdown import safe_label
from pages.trials_parts import variant_form
from sessions_lib.errors import SessionError
from sessions_lib.messages import places
from sessions_lib.store.session import Session
from sessions_lib.trials import checks, estimate, running
from sessions_lib.trials.trial import Trial, Variant

MOST = 4
_GO = "trials_go"
_CHECKS = {
    "contains": "The answer contains",
    "contains_not": "The answer does not contain",
    "regex": "The answer matches the regular expression",
    "equals": "The answer is",
    "json": "The answer is JSON",
    "called": "A tool was called",
    "no_tool_failed": "No tool failed",
    "tokens": "At most so many tokens",
    "seconds": "At most so many seconds",
    "dollars": "At most so many dollars",
    "judge": "A model finds that it meets the rubric",
    "pick": "I pick, without knowing which is which",
}
_WITHOUT_VALUE = ("json", "no_tool_failed", "pick")


def goes_to() -> dict[str, Any] | None:
    """The address to go on at, once a trial was made."""
    goes: dict[str, Any] | None = st.session_state.pop(_GO, None)
    return goes


def go_to(name: str) -> None:
    """Have the page show the trial ``name`` when it is drawn next."""
    st.session_state[_GO] = links.to_trial(name)


def draw(session_id: str) -> None:
    """The form for a trial that starts in ``session_id``."""
    session = folder.current(session_id)
    at = _asked_number("at", len(session.messages))
    others = [one for one in st.query_params.get_all("branch") if one != session_id][: MOST - 1]
    where = (
        f"at the start of {safe_label(session.title, 60)}"
        if not at
        else (f"in **{safe_label(session.title, 60)}** {places.place(session.messages, at)}")
    )
    st.markdown(f"It starts {where}. Each answer is a fork of its own; the session stays as it is.")
    key = f"trial-{session_id}-{at}"
    typed = st.text_area(
        "Prompt", links.asked("prompt") or "", key=f"{key}-prompt", height=110,
        help="A line of three dashes (---) parts several prompts, which are asked one after the other.",
    )  # fmt: skip
    prompts = [prompt.strip() for prompt in re.split(r"^---$", typed, flags=re.MULTILINE) if prompt.strip()]
    variants = variant_form.draw(session, at, others, key, prompts=prompts)
    checked = _checks(key)
    left, middle, right = st.columns(3)
    repeats = int(left.number_input("Repeats of each variant", 2, 200, 10, key=f"{key}-repeats"))
    parallel = int(middle.number_input("At a time", 1, 32, 4, key=f"{key}-parallel"))
    name = right.text_input("Name", key=f"{key}-name", placeholder="made of the session's title")
    settings = providers.run_settings(session.meta)
    tools = None if settings.tools is None else list(settings.tools)
    effects = _effects(tools, key)
    problems = [check.problem for check in checked if check.problem]
    for problem in problems:
        st.caption(f":material/error: {safe_label(problem)}")
    asked = _Asked(
        session_id, at, prompts, variants, [check.made for check in checked if check.made], repeats, name.strip()
    )
    is_asked = bool(prompts) or any(variant.change for variant in variants)
    if is_asked and not problems:
        with folder.errors_told():
            said = estimate.sentence(asked.trial(Session.open(folder.store(), session_id)))
            st.caption(f":material/info: {safe_label(said, 300)} The first variant is asked twice: that much is noise.")
    # No callback: it would have what the fields held when the button was drawn, not what was typed last.
    if st.button(
        "Set up and start", type="primary", key=f"{key}-go", disabled=not is_asked or bool(problems)
    ):  # fmt: skip
        _start(asked, parallel, tools, effects, settings.api_key)
        st.rerun()


@dataclass(frozen=True)
class _Check:
    made: Mapping[str, Any] | None = None
    problem: str = ""


@dataclass(frozen=True)
class _Asked:
    session: str
    at: int
    prompts: list[str]
    variants: list[Variant]
    checks: list[Mapping[str, Any]]
    repeats: int
    name: str

    def trial(self, begins: Session) -> Trial:
        """The trial that is asked for, which starts in ``begins``; not stored yet."""
        name = self.name or None
        return Trial(begins, self.at, self.prompts, self.variants, self.checks, self.repeats, name=name)


def _asked_number(name: str, most: int) -> int:
    given = links.asked(name)
    return min(int(given), most) if given and given.isascii() and given.isdigit() else most


def _checks(key: str) -> list[_Check]:
    """What makes an answer pass: up to four checks, all of which have to."""
    st.markdown("**An answer passes if**")
    count = st.session_state.setdefault(f"{key}-checks", 1)
    found = [_check(number, key) for number in range(count)]
    if count < MOST:
        st.button(
            "And", icon=":material/add:", key=f"{key}-more", type="tertiary",
            on_click=lambda: st.session_state.update({f"{key}-checks": count + 1}),
        )  # fmt: skip
    return found


def _check(number: int, key: str) -> _Check:
    kind_place, value_place = st.columns(2)
    kind = kind_place.selectbox(
        f"Check {number + 1}", list(_CHECKS), format_func=lambda one: _CHECKS[one], key=f"{key}-check-{number}",
        label_visibility="collapsed",
    )  # fmt: skip
    if kind in _WITHOUT_VALUE:
        return _Check({kind: True})
    value = value_place.text_input(
        f"Value of check {number + 1}", key=f"{key}-value-{number}", label_visibility="collapsed",
        placeholder={"called": "the tool's name", "judge": "what a good answer is"}.get(str(kind), ""),
    )  # fmt: skip
    if not value.strip():
        return _Check()
    try:
        return _Check(_made(str(kind), value.strip()))
    except (SessionError, ValueError) as error:
        return _Check(problem=f"{_CHECKS[str(kind)]}: {error}")


def _made(kind: str, value: str) -> Mapping[str, Any]:
    if kind in ("tokens", "seconds", "dollars"):
        return checks.checked({"at_most": {kind: float(value)}})
    if kind == "called":
        return checks.called(value)
    return checks.judge(value) if kind == "judge" else checks.checked({kind: value})


def _effects(tools: list[Any] | None, key: str) -> str:
    """Whether tools that change the world run: asked only if there are any."""
    names = [tool.name for tool in tools or () if tool.effect]
    if not names:
        return "ask"
    chosen = st.radio(
        f"{', '.join(names)} would run in every answer",
        ["simulated", "real"],
        format_func=lambda one: (
            "answer from the recording (simulated)" if one == "simulated" else "let them run for real"
        ),
        key=f"{key}-effects",
    )
    return str(chosen)


def _start(asked: _Asked, parallel: int, tools: list[Any] | None, effects: str, api_key: str | None) -> None:
    """Make the trial and start it; what is wrong is said on the page, and the form stays."""
    from pages.shared import acting

    store = folder.store()
    try:
        if asked.name and store.trial(asked.name) is not None:
            raise SessionError(f"There is a trial {asked.name!r} already. Choose another name.")
        trial = variant_form.with_keys(asked.trial(Session.open(store, asked.session)))
        running.start(trial, parallel, tools=tools, effects=effects, api_key=api_key)
    except SessionError as error:
        acting.tell("Nothing was asked.", faults=[str(error)])
        return
    go_to(trial.name)
