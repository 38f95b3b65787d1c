"""A trial while it is asked: how far it is, Stop, and going on; the page follows without being asked.

Does not start anything but for a click.
"""

from __future__ import annotations

import streamlit as st

from pages.shared import acting, folder, providers
from pages.shared.safe_markdown import safe_label
from pages.trials_parts import variant_form
from sessions_lib import text
from sessions_lib.errors import SessionError
from sessions_lib.trials import running
from sessions_lib.trials.running import TrialRun
from sessions_lib.trials.trial import Trial

EVERY_S = 0.5


def draw(trial: Trial) -> None:
    """The bar of a trial that is running; the buttons to go on or to have more repeats of one that is not."""
    run = running.of(trial.store, trial.name)
    if run is not None and run.is_live:
        _follow(run)
        return
    if run is not None and (error := run.progress().error):
        st.error(safe_label(error), icon=":material/error:")
    left = len(trial.open_repeats())
    with st.container(horizontal=True, vertical_alignment="bottom", key="trial-buttons"):
        if left:
            st.button(
                f"Go on: {text.count(left, 'answer')}", type="primary", icon=":material/play_arrow:", key="trial-go-on",
                on_click=_go_on, args=(trial.name, None),
            )  # fmt: skip
        else:
            st.button(
                "10 more repeats",
                icon=":material/add:",
                key="trial-more",
                on_click=_go_on,
                args=(trial.name, trial.repeats + 10),
            )


@st.fragment(run_every=EVERY_S)
def _follow(run: TrialRun) -> None:
    progress = run.progress()
    if not progress.is_live:
        st.rerun(scope="app")
    with st.container(horizontal=True, vertical_alignment="center", key="trial-progress"):
        failed = f", {progress.failed} failed" if progress.failed else ""
        st.progress(
            min(1.0, progress.done / max(1, progress.total)), f"{progress.done} of {progress.total} answers{failed}"
        )
        st.button("Stop", icon=":material/stop_circle:", key="trial-stop", on_click=run.stop)
    drawn = st.session_state.get("trial_drawn")
    if drawn is not None and progress.done - drawn >= max(5, progress.total // 10):
        st.session_state.trial_drawn = progress.done
        st.rerun(scope="app")
    st.session_state.setdefault("trial_drawn", progress.done)


def _go_on(name: str, repeats: int | None) -> None:
    store = folder.store()
    try:
        trial = variant_form.with_keys(Trial.load(store, name))
        if repeats is not None:
            trial.extend(repeats)
        settings = providers.run_settings(folder.current(trial.session_id).meta)
        tools = None if settings.tools is None else list(settings.tools)
        running.start(trial, tools=tools, effects=trial.effects, api_key=settings.api_key)
    except SessionError as error:
        acting.tell("Nothing was asked.", faults=[str(error)])
