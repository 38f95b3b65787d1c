"""Watching: a run while it answers, and a session that other tabs and programs write to.

The run belongs to the server. The page only looks: it draws the part of the answer that is not stored yet, at most
twelve times a second, and starts over when a message was stored.

Does not start, stop or write anything.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import streamlit as st

from pages.shared import folder
from pages.shared.safe_markdown import GrowingMarkdown, safe_label
from sessions_lib import text as wording
from sessions_lib import times
from sessions_lib.agent import runs
from sessions_lib.agent.runs import Run, Snapshot
from sessions_lib.errors import SessionError
from sessions_lib.messages import content
from sessions_lib.store.session import Session

INTERVAL_S = 0.09
TAIL = 1_200  # characters of an answer that are set again at each update; what stands before them is settled


def watch_run(run: Run, stored: int, place: st.delta_generator.DeltaGenerator, *, in_fragment: bool) -> None:
    """Draw the answer of ``run`` into ``place`` as it grows, and rerun the page when it stored a message or ended.

    ``in_fragment`` leaves the script free in between: a dialog is open, and could not answer otherwise.
    """
    if in_fragment:
        with place:
            _tick(run, stored)
        return
    with place:
        view = _LiveView(run)
    for snapshot in run.follow(INTERVAL_S):
        if snapshot.state != "running" or snapshot.stored != stored:
            break
        view.show(snapshot)
    view.show_end(_stored_text(run, stored))
    st.rerun()


def _stored_text(run: Run, stored: int) -> str:
    """What the message says that was stored next; it may have come in since the last look. Empty if none was."""
    with suppress(SessionError):
        said = folder.current(run.session_id).messages
        return content.text(said[stored]) if len(said) > stored and said[stored].get("role") == "assistant" else ""
    return ""


@st.fragment(run_every=0.3)
def _tick(run: Run, stored: int) -> None:
    snapshot = run.snapshot()
    if snapshot.state != "running" or snapshot.stored != stored:
        st.rerun()
    _LiveView(run).show(snapshot)


class _LiveView:
    """The elements a growing answer is drawn into; a settled part is sent once and not again."""

    def __init__(self, run: Run) -> None:
        with st.container(key="chat-watched", gap="small"):
            self._notices = st.empty()
            self._reasoning = st.empty()
            self._settled = st.container()
            self._text = st.empty()
            self._state = st.empty()
        self._answer = GrowingMarkdown()
        began = times.parse(run.since)
        self._since = time.monotonic() - ((datetime.now(UTC) - began).total_seconds() if began else 0)
        self._version = -1

    def show(self, snapshot: Snapshot) -> None:
        if snapshot.version != self._version:
            self._version = snapshot.version
            if snapshot.notices:
                self._notices.caption(" ".join(f":material/info: {safe_label(one, 200)}" for one in snapshot.notices))
            if snapshot.reasoning and not snapshot.text:
                last = snapshot.reasoning[-300:].split("\n")[-1]
                self._reasoning.caption(f":material/psychology: {safe_label(last, 160)}")
            elif snapshot.text:
                self._reasoning.empty()
            self._show_text(snapshot.text)
        self._state.caption(f":material/pending: {self._doing(snapshot)}")

    def _doing(self, snapshot: Snapshot) -> str:
        """What the run does now, and for how long."""
        if snapshot.waiting is not None:
            left_ms = math.ceil(snapshot.waiting.left_s()) * 1000
            return f"{safe_label(snapshot.waiting.text, 160)} · {wording.duration(left_ms, 1000)} left"
        waited = time.monotonic() - self._since
        running = next((step for step in snapshot.steps if step.result is None), None)
        what = "Running a tool" if running else "Answering" if snapshot.text else "Thinking"
        return f"{what} … {wording.duration(int(waited) * 1000, 1000)}" if waited >= 2 else f"{what} …"

    def show_end(self, text: str) -> None:
        """The last words: drawn now, because to draw the page again takes longer."""
        if text and self._version >= 0:
            self._show_text(text)

    def _show_text(self, text: str) -> None:
        settled, tail = self._answer.draw(text, TAIL)
        if settled:
            self._settled.markdown(settled)
        if tail:
            self._text.markdown(tail)
        elif settled:
            self._text.empty()


@dataclass(frozen=True)
class Mark:
    """What a page shows of a session, to notice a change."""

    messages: int
    names: tuple[str, ...]


def mark_of(session: Session) -> Mark:
    """What there is to be shown of ``session`` now."""
    return Mark(len(session.messages), (session.title, *session.tags))


@st.fragment(run_every=2)
def watch_files(session_id: str, seen: Mark) -> None:
    """Rerun the page when another tab, the command line or another program changed the session, or a run began."""
    run = runs.of(folder.store(), session_id)
    try:
        now = mark_of(folder.current(session_id))
    except SessionError:
        st.rerun()
    if now != seen or (run is not None and run.is_live):
        st.rerun()
