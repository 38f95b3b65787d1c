"""Asking every branch of a comparison at once, and watching the answers side by side.

One prompt goes to each branch that is shown; each has its own run, its own file and its own Stop. Where tools that
change the world are switched on, the page first says how often they may run, and asks.

Does not start anything but for a submit or a click, and writes nothing itself: runs do.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import streamlit as st

from pages.shared import folder, links, providers
from pages.shared.safe_markdown import safe_label, safe_markdown
from sessions_lib.agent import approval, demo_world, experiments, runs
from sessions_lib.agent.runs import Run, Snapshot
from sessions_lib.compare import LETTERS
from sessions_lib.errors import SessionError

_WAITING, _FAILED = "compare_waiting", "compare_failed"  # a prompt that waits for a yes; what went wrong, by session
INTERVAL_S = 0.1
_TAIL = 6_000  # characters of an answer that are sent again at each update; the whole is in the grid when it is stored


def live(shown: Sequence[str]) -> list[Run]:
    """The runs that answer one of ``shown`` now."""
    store = folder.store()
    return [run for run in (runs.of(store, one) for one in shown) if run is not None and run.is_live]


def prompt_box(shown: Sequence[str], titles: Sequence[str]) -> None:
    """The prompt for every branch, the question before tools run, and what went wrong with the last one."""
    is_live = bool(live(shown))
    _draw_failures(shown, titles)
    if (waiting := st.session_state.get(_WAITING)) and waiting[0] == tuple(shown):
        _draw_question(shown, waiting[1])
        return
    with st.container(key="compare_ask"):
        st.chat_input(
            "The branches are answering …" if is_live else f"Ask {_how_many(len(shown))} branches the same",
            key="compare_prompt",
            disabled=is_live,
            on_submit=_submitted,
            args=(tuple(shown),),
        )


def _how_many(count: int) -> str:
    return {2: "both", 3: "all three"}.get(count, "all four")


def _submitted(shown: tuple[str, ...]) -> None:
    prompt = st.session_state.get("compare_prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        return
    if at_stake(shown):
        st.session_state[_WAITING] = (shown, prompt)
    else:
        send(shown, prompt)


def at_stake(shown: Sequence[str]) -> list[str]:
    """What may run in how many branches, a sentence a tool."""
    counts: dict[str, int] = {}
    for session_id in shown:
        try:
            session = folder.current(session_id)
            settings = providers.run_settings(session.meta)
        except SessionError:
            continue
        for tool in demo_world.TOOLS if settings.tools is None else settings.tools:
            if tool.effect or approval.must_ask(session, tool):
                counts[tool.name] = counts.get(tool.name, 0) + 1
    return [f"{name} may run in {count} branch{'es' if count > 1 else ''}" for name, count in counts.items()]


def _draw_question(shown: Sequence[str], prompt: str) -> None:
    with st.container(border=True, key="compare_question"):
        st.markdown(f"**{safe_label(prompt, 200)}**")
        said = "; ".join(at_stake(shown))
        st.caption(f":material/bolt: {safe_label(said)}. What a tool changes happens for real, once in each branch.")
        with st.container(horizontal=True):
            st.button(
                f"Ask {_how_many(len(shown))}",
                type="primary",
                key="compare_ask_yes",
                on_click=_confirmed,
                args=(tuple(shown), prompt),
            )
            st.button("Cancel", key="compare_ask_no", on_click=lambda: st.session_state.pop(_WAITING, None))


def _confirmed(shown: tuple[str, ...], prompt: str) -> None:
    st.session_state.pop(_WAITING, None)
    send(shown, prompt)


def send(shown: Sequence[str], prompt: str) -> None:
    """Start a run in each of ``shown``; what could not start is told in its column, the others go on."""
    st.query_params.update(links.to_compare(*shown))  # what was asked stays what is shown
    manager = folder.manager()
    tell(experiments.ask(shown, prompt, lambda one: providers.run_settings(manager.open(one).meta, asks=False)))


def tell(asked: Sequence[experiments.Asked]) -> None:
    """Keep what went wrong, for the columns of the comparison."""
    st.session_state[_FAILED] = {one.session: one.error for one in asked if one.error}


def _draw_failures(shown: Sequence[str], titles: Sequence[str]) -> None:
    """What went wrong in a branch: it could not start, or its run failed."""
    told: dict[str, str] = dict(st.session_state.get(_FAILED, {}))
    store = folder.store()
    for session_id in shown:
        run = runs.of(store, session_id)
        if run is not None and run.state == "failed" and run.error:
            told.setdefault(session_id, run.error)
    told = {session_id: error for session_id, error in told.items() if session_id in shown}
    if not told:
        return
    columns = st.columns(len(shown))
    for column, session_id, letter, title in zip(columns, shown, LETTERS, titles, strict=False):
        if error := told.get(session_id):
            with column:
                name = safe_label(title, 40)
                st.error(f"**{letter} · {name}** {safe_label(error)}", icon=":material/error:")


def watch(shown: Sequence[str], titles: Sequence[str], stored: Sequence[int]) -> None:
    """Draw the answers of the live runs side by side until one stores a message or ends; then draw the page again.

    ``stored`` is how many messages of each session the page has drawn.
    """
    store = folder.store()
    st.markdown("## Answering now")
    views: list[tuple[Run, int, _Column]] = []
    columns = st.columns(len(shown))
    for column, session_id, letter, title, count in zip(columns, shown, LETTERS, titles, stored, strict=False):
        run = runs.of(store, session_id)
        with column, st.container(border=True, key=f"compare_live_{letter}", height="stretch"):
            st.markdown(f"**{letter} · {safe_label(title, 50)}**")
            if run is None or not run.is_live:
                st.caption("Done" if run is not None and run.state == "done" else "Not asked")
                continue
            views.append((run, count, _Column()))
            st.button(
                "Stop", icon=":material/stop_circle:", key=f"compare_stop_{letter}", on_click=run.stop, width="content"
            )
    while True:
        for run, count, view in views:
            snapshot = run.snapshot()
            if snapshot.state != "running" or snapshot.stored > count:
                st.rerun()
            view.show(snapshot)
        time.sleep(INTERVAL_S)


class _Column:
    """The elements one growing answer is drawn into; they are sent only when something changed."""

    def __init__(self) -> None:
        self._text, self._state = st.empty(), st.empty()
        self._version = -1

    def show(self, snapshot: Snapshot) -> None:
        """Draw ``snapshot`` if it is news."""
        if snapshot.version == self._version:
            return
        self._version = snapshot.version
        if snapshot.text:
            cut = len(snapshot.text) > _TAIL
            self._text.markdown(safe_markdown(("… " if cut else "") + snapshot.text[-_TAIL:]))
        self._state.caption(f":material/pending: {_doing(snapshot)} …")


def _doing(snapshot: Snapshot) -> str:
    if snapshot.waiting is not None:
        return safe_label(snapshot.waiting.text, 100)
    running = next((step.call.name for step in snapshot.steps if step.result is None), None)
    return f"Running {safe_label(running, 30)}" if running else "Answering" if snapshot.text else "Thinking"
