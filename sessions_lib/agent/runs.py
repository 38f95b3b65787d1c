"""Runs: a prompt being answered in the background of this process, for any number of watchers.

``start`` takes the session's lock and stores the prompt before it returns; then a thread answers. Pages come and go:
``of`` finds the run of a session again, ``snapshot`` is what is to be seen now, ``follow`` waits for more. Nothing
starts by being looked at.

A watcher draws the messages of the file, then ``text`` below them: the part of the answer that is not stored yet. Take
the snapshot first and read the file after it; if the file has more messages than ``snapshot.stored``, the text is
among them.

Memory is bounded: what was said goes to the file when its message ends, a finished run keeps its end, the process keeps
the last ``KEPT`` of them. Settings and key live in the run's own agent and go with it.

Does not survive the process: a server that dies leaves what was stored. One that ends properly stops its runs first,
and so keeps what they had said.
"""

from __future__ import annotations

import atexit
import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from sessions_lib import times
from sessions_lib.agent.agent import Agent, Prompt
from sessions_lib.agent.approval import Decision
from sessions_lib.agent.cancellation import Stop
from sessions_lib.agent.events import (
    ApprovalAsked,
    Event,
    Finished,
    MessageStored,
    Notice,
    ReasoningDelta,
    TextDelta,
    ToolCallStarted,
    ToolFinished,
    Waiting,
)
from sessions_lib.agent.tools import Tool
from sessions_lib.errors import ConversationTooLong, Holder, SessionError, SessionLocked, ToolsRefused
from sessions_lib.messages.content import Message
from sessions_lib.messages.tool_calls import Call
from sessions_lib.store.session import Session
from sessions_lib.store.store import Hold, SessionStore

KEPT = 50  # finished runs a process remembers
UPDATES_PER_S = 12
_IDLE_S = 1.0  # a watcher is woken this often even when nothing happens, so that it can notice it is not wanted

State = Literal["running", "done", "stopped", "failed", "waiting"]


@dataclass(frozen=True, slots=True)
class Settings:
    """How a run answers: what a visitor chooses of an ``Agent``. ``tools=None``: none, but the demo's own."""

    store: SessionStore
    model: str | None = None
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    system: str | None = None
    temperature: float | None = None
    tools: tuple[Tool, ...] | None = None
    max_steps: int = 10
    over_budget: bool = False  # the person agreed to go on where a budget is spent
    wire: str | None = None
    effort: str | None = None
    without_tools: bool = False  # a person said yes to that
    asks_later: bool = False  # a tool that changes the world waits for a person's yes
    decisions: Mapping[str, Decision] = field(default_factory=dict)  # what a person said, by the call's id

    def agent(self, session_id: str) -> Agent:
        """An agent with these settings on an existing session; ``SessionNotFound`` if there is none."""
        return Agent(
            session=Session.open(self.store, session_id),
            model=self.model,
            base_url=self.base_url,
            api_key=self.api_key,
            system=self.system,
            temperature=self.temperature,
            tools=self.tools,
            max_steps=self.max_steps,
            over_budget=self.over_budget,
            wire=self.wire,
            effort=self.effort,
            without_tools=self.without_tools,
            asks_later=self.asks_later,
            decisions=self.decisions,
        )


@dataclass(frozen=True, slots=True)
class LiveStep:
    """A tool call of this run, with its result once there is one."""

    call: Call
    result: Message | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """The server asked to wait, and ``text`` says so; ``until`` is on ``time.monotonic``."""

    text: str
    until: float

    def left_s(self) -> float:
        """The seconds that are left of it, at least 0."""
        return max(0.0, self.until - time.monotonic())


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What is to be seen of a run at one moment; ``version`` grows with every change.

    ``text`` and ``reasoning`` belong to the message that is not stored yet; ``stored`` is how many messages the session
    had. ``waiting`` is there while the server asked to wait. ``error`` is one sentence, for ``failed`` only.
    """

    version: int
    state: State
    text: str
    reasoning: str
    steps: tuple[LiveStep, ...]
    notices: tuple[str, ...]
    stored: int
    error: str | None
    waiting: Wait | None = None


class Run:
    """One prompt being answered. Every property may be read from any thread."""

    def __init__(self, session_id: str, store: str, stored: int) -> None:
        """A run that has not begun; ``start`` makes them."""
        self.session_id, self.store, self.since = session_id, store, times.now()
        self.answer = ""  # the whole answer, once done or stopped
        self._changed = threading.Condition()
        self._ended = threading.Event()
        self._stop = Stop()
        self._version = 0
        self._state: State = "running"
        self._error: str | None = None
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._steps: list[LiveStep] = []
        self._notices: list[str] = []
        self._waiting: Wait | None = None
        self._stored = stored
        self.was_too_long = False  # it failed because the history does not fit into the model's context
        self.refused_tools = False  # it failed because the model takes no tools: a person may have it asked without

    @property
    def state(self) -> State:
        """``running``, ``done``, ``stopped`` (by a person), ``failed`` (see ``error``) or ``waiting`` (for a yes)."""
        return self._state

    @property
    def is_live(self) -> bool:
        """True while it is being answered."""
        return self._state == "running"

    @property
    def error(self) -> str | None:
        """Why it failed, in one sentence with what to do; ``None`` unless it did."""
        return self._error

    @property
    def text(self) -> str:
        """What was said of the message that is not stored yet."""
        return self.snapshot().text

    @property
    def reasoning(self) -> str:
        """The reasoning of the message that is not stored yet."""
        return self.snapshot().reasoning

    @property
    def steps(self) -> tuple[LiveStep, ...]:
        """The tool calls of this run so far."""
        return self.snapshot().steps

    def stop(self) -> None:
        """Ask it to stop; it ends within a second and keeps what was said. Does nothing once it has ended."""
        self._stop.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it has ended, at most ``timeout`` seconds; True if it has."""
        return self._ended.wait(timeout)

    def snapshot(self) -> Snapshot:
        """What is to be seen now."""
        with self._changed:
            return Snapshot(
                self._version,
                self._state,
                _joined(self._text),
                _joined(self._reasoning),
                tuple(self._steps),
                tuple(self._notices),
                self._stored,
                self._error,
                self._waiting,
            )

    def follow(self, interval: float = 1 / UPDATES_PER_S) -> Iterator[Snapshot]:
        """Snapshots as it goes on, at most one in ``interval`` seconds, at least one a second; the last has ended."""
        seen = -1
        while True:
            with self._changed:
                if self._version == seen and self._state == "running":
                    self._changed.wait(_IDLE_S)
            snapshot = self.snapshot()
            yield snapshot
            if snapshot.state != "running":
                return
            seen = snapshot.version
            self._ended.wait(interval)

    # ------------------------------------------------------------ its thread

    def _answer(self, agent: Agent, hold: Hold) -> None:
        ended: tuple[State, str | None] = (
            "failed",
            "The run ended unexpectedly; the server's log says why. Ask again.",
        )
        try:
            for event in agent.stream(None, hold=hold, stop=self._stop):
                with self._changed:
                    self._see(event, agent)
                    self._version += 1
                    self._changed.notify_all()
                if isinstance(event, ApprovalAsked):
                    ended = ("waiting", None)
                if isinstance(event, Finished):
                    ended = ("stopped" if event.interrupted else "done", None)
        except SessionError as error:
            ended = ("failed", str(error))
            self.refused_tools = isinstance(error, ToolsRefused)
            self.was_too_long = isinstance(error, ConversationTooLong)
        finally:
            hold.release()
            with self._changed:
                self._state, self._error = ended
                self._steps.clear()
                self._waiting = None
                self._version += 1
                self._ended.set()
                self._changed.notify_all()

    def _see(self, event: Event, agent: Agent) -> None:
        self._waiting = Wait(event.text, time.monotonic() + event.seconds) if isinstance(event, Waiting) else None
        if isinstance(event, TextDelta):
            self._text.append(event.text)
        elif isinstance(event, ReasoningDelta):
            self._reasoning.append(event.text)
        elif isinstance(event, MessageStored):
            self._stored = len(agent.session.messages)
            self._text.clear()
            self._reasoning.clear()
        elif isinstance(event, ToolCallStarted):
            self._steps.append(LiveStep(event.call))
        elif isinstance(event, ToolFinished):
            self._steps[-1] = LiveStep(event.call, event.message)
        elif isinstance(event, Notice):
            self._notices.append(event.text)
        elif isinstance(event, Finished):
            self.answer = event.answer
            self._text.clear()
            self._reasoning.clear()


def _joined(pieces: list[str]) -> str:
    """The text of ``pieces``, which become one piece: the next call has only what is new to join."""
    if len(pieces) > 1:
        pieces[:] = ["".join(pieces)]
    return pieces[0] if pieces else ""


_runs: dict[tuple[str, str], Run] = {}  # in the order they were started
_registry = threading.Lock()


def start(session_id: str, prompt: Prompt | None, settings: Settings) -> Run:
    """Answer ``prompt`` in the background (``None``: the one stored last); it is stored when this returns.

    ``SessionLocked`` if this session is being answered already, here or by another process; then, and with any other
    error, nothing was stored.
    """
    key = settings.store.name, session_id
    with _registry:
        live = _runs.get(key)
    if live is not None and live.is_live:
        raise SessionLocked(session_id, Holder(os.getpid(), socket.gethostname(), live.since))
    agent = settings.agent(session_id)
    hold = agent.begin(prompt)
    run = Run(session_id, settings.store.name, len(agent.session.messages))
    try:
        thread = threading.Thread(target=run._answer, args=(agent, hold), name=f"run {session_id}", daemon=True)
        with _registry:
            _runs.pop(key, None)  # the newest run goes to the end
            _runs[key] = run
            _forget()
        thread.start()
    except BaseException:
        hold.release()
        with _registry:
            _runs.pop(key, None)
        raise
    return run


def of(store: SessionStore, session_id: str) -> Run | None:
    """The run of a session that this process is answering, or answered last; ``None`` if it knows of none."""
    with _registry:
        return _runs.get((store.name, session_id))


def live(store: SessionStore) -> list[Run]:
    """The runs of ``store`` that are being answered now, oldest first."""
    with _registry:
        return [run for (where, _), run in _runs.items() if where == store.name and run.is_live]


def _forget() -> None:
    finished = [key for key, run in _runs.items() if not run.is_live]
    for key in finished[: max(0, len(finished) - KEPT)]:
        del _runs[key]


def _stop_all() -> None:
    """At the end of the process: what was said so far is stored, as with a stop by a person."""
    with _registry:
        running = [run for run in _runs.values() if run.is_live]
    for run in running:
        run.stop()
    for run in running:
        run.wait(1.0)


atexit.register(_stop_all)
