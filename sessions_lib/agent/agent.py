"""An agent: one session, a model and tools; the loop that answers a prompt.

A step is one model call and the tool results it asked for. Everything is stored the moment it exists: the prompt before
the request, each answer before its tools run, each result as it arrives. So a crash at any point loses nothing, and the
next ``begin`` writes what is missing.

* **Only ``begin`` and ``stream`` write**, and only a person's act calls them. The session's lock is held for one run.
* A broken stream keeps what was said, marked ``interrupted``, and raises ``ProviderError``: a half answer never
  looks whole. An error before the first word stores nothing. Either way ``stream(None)`` answers the same prompt again
  without storing it twice; interrupted answers that are being answered again are not sent.
* A tool runs once. If storing its result fails, the error is raised and the run ends; the next run tells the model
  that the outcome is unknown, and never calls the tool on its own.

Does not know pages or threads but for ``stop`` (see ``stream``), and never stores the key.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sessions_lib import messages, names, text
from sessions_lib.agent import approval, budget, cancellation, demo_world, fork_names, providers, tools
from sessions_lib.agent.answerer import Answerer
from sessions_lib.agent.approval import Approve, Decision
from sessions_lib.agent.cancellation import Stop, Stopped
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
    UsageReported,
    Waiting,
)
from sessions_lib.agent.own_key import OwnKey, Withheld
from sessions_lib.agent.providers import Endpoint, owned, refusals
from sessions_lib.agent.providers.owned import left_for_another
from sessions_lib.agent.streaming import Answer
from sessions_lib.agent.tools import Tool, as_tools
from sessions_lib.errors import ProviderError, SessionError, StepLimitReached
from sessions_lib.messages import content, tool_calls, usage
from sessions_lib.messages.content import Message
from sessions_lib.messages.request import (
    LONGEST_RESULT,
    TAIL,
    left_out_of,
    to_send,
    user_first,
    without_superseded,
)
from sessions_lib.messages.tool_calls import Call
from sessions_lib.store.manager import SessionManager
from sessions_lib.store.session import Session
from sessions_lib.store.store import Hold

if TYPE_CHECKING:
    from openai import OpenAI

_KEPT = "What was said is saved, marked as interrupted. Ask again to have it answered anew."
_SHORT = f"the model gets the first {LONGEST_RESULT - TAIL:,} and the last {TAIL:,} characters; the session keeps all"
Events = Generator[Event, None, None]
Prompt = str | list[dict[str, Any]]  # words, or the parts of a content: text and pictures (see ``attachments``)


class Agent:
    """A session with a model and tools: ``chat`` for the answer, ``stream`` for everything on the way.

    >>> agent = Agent(session_id="quest-1", tools=[talk_to, buy])
    >>> print(agent.chat("I need to get into the Cave of Echoes."))
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        session: Session | None = None,
        session_id: str | None = None,
        tools: Iterable[Tool | Callable[..., Any]] | None = None,
        model: str | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        client: OpenAI | None = None,
        system: str | None = None,
        temperature: float | None = None,
        wire: str | None = None,
        effort: str | None = None,
        without_tools: bool = False,
        approve: Approve | None = None,
        asks_later: bool = False,
        decisions: Mapping[str, Decision] | None = None,
        save_dir: str | Path | None = None,
        auto_save: bool | None = None,
        max_steps: int = 10,
        over_budget: bool = False,
    ) -> None:
        """An agent on ``session``, on the session ``session_id`` (loaded if it exists), or on a new one.

        ``auto_save`` (on, unless ``session`` is given) writes every message through; off, everything stays in memory
        and a known session's file is never written. What is not given comes from the session's metadata, then from the
        environment (see ``providers.choose``); what is given is remembered by a session that begins with it. ``wire``
        is ``chat`` or ``responses``, ``effort`` how long a reasoning model should think. ``client`` is used as it is.
        Without ``tools`` a real endpoint is offered none, the offline demo its own. ``without_tools`` is the yes to ask
        a model that refused them (``ToolsRefused``) without, ``over_budget`` the one to go on where a budget is spent
        (see ``budget``). ``approve`` is asked before a tool that changes the world runs (see ``approval``); without it
        tools run, or with ``asks_later`` the run ends there until ``decisions`` (by call id) are given. Calls no model.
        """
        if session is not None and session_id is not None:
            raise SessionError("Give an agent a session or a session_id, not both.")
        if max_steps < 1:
            raise SessionError(f"max_steps must be at least 1, not {max_steps}.")
        self.name, self.max_steps, self.over_budget = name, max_steps, over_budget
        self._given_tools = None if tools is None else as_tools(tools)
        self._is_without_tools = without_tools
        self._approve, self._asks_later = approve, asks_later
        self._decisions = dict(decisions or {})
        self._told: set[str] = set()  # what was said in this run
        self._changes: list[str] = []  # what was changed in the request that is being answered
        self._who = Answerer(model, base_url, api_key, client, system, temperature, wire, effort)
        self.session = session if session is not None else _session(name, session_id, save_dir, auto_save)
        self._who.choose(self.session)

    @property
    def endpoint(self) -> Endpoint:
        """Where the model answers."""
        return self._who.endpoint

    @property
    def tools(self) -> list[Tool]:
        """What the model may call: what was given, else the demo's own for the demo, else nothing."""
        of_demo = list(demo_world.TOOLS) if self.endpoint.is_demo else []
        if self._is_without_tools:
            return []
        return of_demo if self._given_tools is None else self._given_tools

    @property
    def system(self) -> str | None:
        """The system prompt: the agent's own, else the session's."""
        return self._who.system(self.session)

    @property
    def temperature(self) -> float | None:
        """The temperature: the agent's own, else the session's, else the provider's default (``None``)."""
        return self._who.temperature(self.session)

    @property
    def settings(self) -> dict[str, Any]:
        """What answers here, as a session's metadata remembers it: never the key."""
        return self._who.settings(self.session)

    def check(self) -> None:
        """``ProviderError`` if the endpoint's key is missing where none gets an answer without; asks nobody."""
        self._who.check()

    # ------------------------------------------------------------ asking

    def chat(self, prompt: Prompt) -> str:
        """The answer to ``prompt``; every message of the way is stored."""
        answer = ""
        for event in self.stream(prompt):
            if isinstance(event, Finished):
                answer = event.answer
        return answer

    def begin(self, prompt: Prompt | None) -> Hold:
        """Take the session's lock, write what is missing, store ``prompt``; the lock is the caller's to pass on.

        What is missing: an error result for each unanswered call of the last assistant message. ``None`` goes on from
        what is stored: a prompt or tool results without an answer, or an interrupted answer.
        """
        if prompt is not None and not prompt:
            raise SessionError("The prompt is empty; nothing was sent. Type a prompt.")
        hold = self.session.hold()
        try:
            self._who.choose(self.session)
            self._who.check()
            budget.check(self.session, is_agreed=self.over_budget)
            if not self.session.messages:
                self._who.begin(self.session)
            waiting = approval.waiting(self.session)
            if waiting and prompt is None:
                approval.check(waiting[0], self.tools, self._decisions)
            missing = [] if waiting and prompt is None else self._missing(waiting)
            if prompt is None and not (missing or waiting) and not messages.awaits_answer(self.session.messages):
                raise SessionError(
                    f"Session {self.session.id!r} has no prompt waiting for an answer. Send a new prompt."
                )
            fork_names.name(self.session, prompt, str(self._who.settings(self.session).get("model") or ""))
            self.session.extend([*missing, *([{"role": "user", "content": prompt}] if prompt is not None else [])])
            if waiting and prompt is not None:
                approval.wait(self.session, ())
        except BaseException:
            hold.release()
            raise
        return hold

    def _missing(self, waiting: Sequence[Call]) -> list[Message]:
        """The results that are missing: those of ``waiting`` were not run, of others nobody knows."""
        found = tool_calls.settle(self.session.messages)
        by_id = {call.id: tools.result(call, approval.WENT_ON, effect=False) for call in waiting}
        return [by_id.get(str(message.get("tool_call_id")), message) for message in found]

    def stream(self, prompt: Prompt | None, *, hold: Hold | None = None, stop: Stop | None = None) -> Events:
        """Answer ``prompt`` (``None``: the one stored last) and yield what happens, each event after it is stored.

        ``hold`` is what ``begin`` returned, if it was called before; closing the iterator, from any thread, releases
        it and keeps what was said. With ``stop``, setting it ends the run within a tenth of a second, even if the
        model is silent or a tool is running (whose outcome is then unknown), with ``Finished(interrupted=True)``.

        ``ProviderError``: see the module. ``StepLimitReached`` after ``max_steps`` model calls without an answer.
        """
        hold = hold or self.begin(prompt)
        self._told.clear()
        try:
            yield from self._steps(stop or Stop.never())
        finally:
            hold.release()

    def _steps(self, stop: Stop) -> Events:
        message: Message | None = None
        if long := sum(left_out_of(stored) > 0 for stored in self.session.messages if stored.get("role") == "tool"):
            yield Notice(f"{text.count(long, 'long result')} of tools: {_SHORT}.")
        if waiting := approval.waiting(self.session):
            try:
                yield from self._run_tools(waiting, stop)
            except Stopped:
                yield _finished(None, interrupted=True)
                return
            if approval.waiting(self.session):
                return
        for step in range(self.max_steps):
            warnings = budget.check(self.session, is_agreed=self.over_budget)
            yield from (Notice(f"{warning}.") for warning in warnings if step == 0)
            try:
                message = yield from self._model_step(stop)
                made = tool_calls.calls_of(message, len(self.session.messages) - 1)
                if not made:
                    yield _finished(message, interrupted=False)
                    return
                yield from self._run_tools(made, stop)
                if approval.waiting(self.session):
                    return
            except Stopped as stopped:
                yield from () if stopped.message is None else (MessageStored(stopped.message),)
                yield _finished(stopped.message or message, interrupted=True)
                return
        raise StepLimitReached(self.max_steps)

    # ------------------------------------------------------------ one model call

    def _model_step(self, stop: Stop) -> Generator[Event, None, Message]:
        remembered = self._who.remembered(self.session)
        endpoint = self.endpoint
        if (wire := refusals.wire_in(remembered)) is not None:
            endpoint = replace(endpoint, wire=wire)
        model_call = providers.ModelCall(self._who.client, endpoint, self._request, remembered)
        self._changes = [*self._said_before(), *left_for_another(self.session.messages, endpoint)]
        for sentence in self._changes:
            yield from self._notice(sentence)
        answer, started, first_token_ms = Answer(), time.perf_counter(), None
        key = self._own_key()
        words, thoughts = Withheld(key), Withheld(key)
        chunks = cancellation.relay(key.told(model_call.chunks()), stop, abort=model_call.abort)
        try:
            for chunk in chunks:
                if isinstance(chunk, providers.Changed):
                    self._changes.append(chunk.text)
                    yield from self._notice(chunk.text)
                    continue
                if isinstance(chunk, providers.Wait):
                    yield Waiting(chunk.seconds, chunk.reason)
                    continue
                said, reasoning = answer.add(chunk)
                if first_token_ms is None and answer.says_anything:
                    first_token_ms = _ms_since(started)
                if reasoning := thoughts.add(reasoning):
                    yield ReasoningDelta(reasoning)
                if said := words.add(said):
                    yield TextDelta(said)
            if rest := words.rest():
                yield TextDelta(rest)
        except Stopped as stopped:
            stopped.message = self._keep(answer, started, first_token_ms)
            raise
        except (GeneratorExit, KeyboardInterrupt):
            self._keep(answer, started, first_token_ms)
            raise
        except ProviderError as error:
            # A connection that breaks after the provider said why it ended has broken nothing.
            if not answer.is_whole:
                if (kept := self._keep(answer, started, first_token_ms)) is None:
                    raise
                yield MessageStored(kept)
                raise ProviderError(f"{error} {_KEPT}", status=error.status) from error
        finally:
            chunks.close()
            self._who.endpoint = model_call.endpoint
        if not answer.is_whole:
            how = f" with {answer.finish_reason!r}" if answer.finish_reason else ""
            broken = f"{self.endpoint.name} stopped in the middle of its answer{how}."
            if (kept := self._keep(answer, started, first_token_ms)) is None:
                raise ProviderError(f"{broken} Nothing was said yet; ask again.")
            yield MessageStored(kept)
            raise ProviderError(f"{broken} {_KEPT}")
        message = self._store(answer, started, first_token_ms)
        self._who.has_answered(self.session)
        self._who.has_adapted(self.session, refusals.lasting({*remembered, *model_call.changes}))
        yield MessageStored(message)
        if (reported := usage.of(message)) is not None:
            yield UsageReported(reported)
        return message

    def _request(self, endpoint: Endpoint) -> dict[str, Any]:
        """What is asked of the model of ``endpoint``."""
        sent = without_superseded(to_send(self.session.messages, self.session.meta))
        said = messages.for_request(sent, self.system, is_own=owned.is_made_by(endpoint))
        request: dict[str, Any] = {"messages": user_first(said), "stream_options": {"include_usage": True}}
        if self.tools:
            request["tools"] = [item.schema for item in self.tools]
        if self.temperature is not None:
            request["temperature"] = self.temperature
        if (effort := self._who.effort(self.session)) is not None:
            request["reasoning_effort"] = effort
        return request

    def _notice(self, sentence: str) -> Events:
        """Say ``sentence``, once in a run."""
        if sentence not in self._told:
            self._told.add(sentence)
            yield Notice(sentence)

    def _said_before(self) -> list[str]:
        """What is said before the answer of a request that is asked with less than it might be."""
        return ["It is asked without its tools."] if self._is_without_tools else []

    def _keep(self, answer: Answer, started: float, first_token_ms: int | None) -> Message | None:
        """Store what was said so far, if anything; calls that came whole are answered as not run."""
        if not answer.says_anything:
            return None
        stored = self._store(answer, started, first_token_ms)
        self.session.extend(tools.of_stopped(tool_calls.calls_of(stored), is_running=False))
        return stored

    def _store(self, answer: Answer, started: float, first_token_ms: int | None) -> Message:
        message = self._own_key().cleaned(answer.message())
        message["model"] = self._own_key().cleaned(answer.model) or self.endpoint.model
        message |= {name: url for name, url in self.endpoint.settings.items() if name == "base_url"}
        if (keys := answer.owned_keys) is not None:
            message["wire"] = owned.wire(self.endpoint, keys)
        message["duration_ms"] = _ms_since(started)
        if first_token_ms is not None:
            message["first_token_ms"] = first_token_ms
        if self._changes:
            message["changed"] = list(dict.fromkeys(self._changes))
        return self.session.append(message)

    def _own_key(self) -> OwnKey:
        return OwnKey(self._who.client.api_key)

    # ------------------------------------------------------------ the tools of one step

    def _run_tools(self, made: Sequence[Call], stop: Stop) -> Events:
        """Run the calls in order, each result stored as it arrives; stopped, the rest gets a result that says so."""
        waiting = list(made)
        is_running = False
        try:
            while waiting:
                if stop.is_set:
                    raise Stopped
                called = waiting[0]
                if (decision := self._decision(called, waiting)) is None:
                    approval.wait(self.session, waiting)
                    yield ApprovalAsked(called)
                    return
                if not decision.is_allowed:
                    waiting.pop(0)
                    yield ToolCallStarted(called)
                    stored = self.session.append(tools.result(called, approval.denied(decision), effect=False))
                    yield MessageStored(stored)
                    yield ToolFinished(called, stored)
                    continue
                if approval.waiting(self.session):  # from here on it may have run
                    approval.wait(self.session, waiting[1:])
                yield ToolCallStarted(called)
                history = list(self.session.messages)
                is_running = True
                found = cancellation.one(partial(tools.call, self.tools, called, history), stop)
                is_running = False
                waiting.pop(0)
                stored = self.session.append(found)
                yield MessageStored(stored)
                yield ToolFinished(called, stored)
                if left_out_of(stored):
                    yield Notice(f"The result of {called.name} is long: {_SHORT}.")
            approval.wait(self.session, ())
        except (Stopped, GeneratorExit, KeyboardInterrupt):
            if waiting:  # else the interrupt came while the last result was stored
                self.session.extend(tools.of_stopped(waiting, is_running=is_running))
            raise

    def _decision(self, called: Call, waiting: Sequence[Call]) -> Decision | None:
        """Whether a call may run; ``None`` if a person is to be asked, and cannot be now."""
        if (given := self._decisions.get(called.id)) is not None and not given.is_allowed:
            return given  # a no holds, whatever tools there are by now
        tool = next((tool for tool in self.tools if tool.name == called.name), None)
        is_asked = self._asks_later or self._approve is not None
        if tool is None or not is_asked or self.endpoint.is_demo or not approval.must_ask(self.session, tool):
            return Decision(is_allowed=True)
        decision = self._decisions.pop(called.id, None)
        if decision is None and self._approve is not None:
            approval.wait(self.session, waiting)  # a process that ends at the question leaves it asked
            decision = approval.decided(self._approve(called, tool))
        if decision is not None and decision.is_allowed and decision.always:
            approval.allow_always(self.session, tool)
        return decision

    # ------------------------------------------------------------ forks

    def branch(self, name: str | None = None, at: int | None = None) -> Agent:
        """A new agent on a fork titled ``name``, with this agent's model and tools; this one is untouched."""
        return self._on(self.session.fork(at=at, title=name))

    def fork(self, new_session_id: str | None = None, at: int | None = None) -> Agent:
        """A new agent on a fork with the id ``new_session_id``; ``SessionExists`` if it is taken."""
        return self._on(self.session.fork(new_session_id, at=at))

    def _on(self, session: Session) -> Agent:
        twin = Agent.__new__(Agent)
        twin.__dict__.update(self.__dict__)
        twin.session, twin._who = session, replace(self._who)
        return twin


def _session(name: str | None, session_id: str | None, save_dir: str | Path | None, auto_save: bool | None) -> Session:
    manager = SessionManager(save_dir)
    if auto_save is None or auto_save:
        if session_id is not None:
            return manager.open_or_create(session_id)
        return manager.create(**({"agent": name} if name else {}))
    session = Session(names.check_id(session_id) if session_id is not None else None)
    if session_id is not None and manager.exists(session_id):
        stored = manager.open(session_id)
        session.import_from(stored)
        session.update_meta({"title": None, **stored.meta})
    return session


def _ms_since(started: float) -> int:
    return round((time.perf_counter() - started) * 1000)


def _finished(message: Message | None, *, interrupted: bool) -> Finished:
    reason = message.get("finish_reason") if message else None
    return Finished(content.text(message) if message else "", message, interrupted, reason)
