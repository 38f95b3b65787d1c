"""Running a trial: its repeats asked some at a time, each through a run of its own; stopped, gone on with, watched.

What is asked is decided by what is on the disk: a repeat whose session has its prompts and answers is only judged, one
that was cut off goes on where it was. Of two who would run one trial, the second is told who has it.

Effects: a tool that changes the world runs for real only if that was said; else it answers from the recording of the
session that the trial starts in (``simulated``).

Does not say what a result means: ``table`` does.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from sessions_lib import prices
from sessions_lib.agent import demo_world, runs
from sessions_lib.agent.agent import Agent
from sessions_lib.agent.providers.endpoints import is_same_place, without_secrets
from sessions_lib.agent.runs import Run as LiveRun
from sessions_lib.agent.runs import Settings
from sessions_lib.agent.tools import Tool, as_tools
from sessions_lib.errors import SessionError, SessionLocked
from sessions_lib.messages import awaits_answer, tool_calls
from sessions_lib.messages.content import Message
from sessions_lib.store.session import Session
from sessions_lib.store.store import SessionStore
from sessions_lib.trials import judging
from sessions_lib.trials.trial import TAG, Result, Trial, Variant, changed

EFFECTS = ("ask", "real", "simulated")
SIMULATED = "Simulated: tools that change the world answered from the recording, and did not run."
_WAIT_S = 1.0
_SHOWN_EVERY_S = 0.1
_KEPT_EVERY_S = 1.0  # the trial's file is written at most so often while repeats end


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a trial is: ``done`` of ``total`` repeats, ``failed`` among them; ``error`` is why it ended, if so."""

    done: int
    total: int
    failed: int
    is_live: bool
    error: str | None = None


def effects_of(trial: Trial, tools: Iterable[Tool]) -> list[str]:
    """What may happen for real, a sentence a tool with effects: what a person should know before it starts."""
    repeats = len(trial.open_repeats())
    return [f"{tool.name} may run in each of {repeats} answers" for tool in tools if tool.effect]


_live: dict[tuple[str, str], TrialRun] = {}
_registry = threading.Lock()


def of(store: SessionStore, name: str) -> TrialRun | None:
    """The run of a trial in this process, the last one if it has ended; ``None`` if there was none."""
    with _registry:
        return _live.get((store.name, name))


def start(
    trial: Trial,
    parallel: int = 4,
    *,
    tools: Iterable[Any] | None = None,
    effects: str = "ask",
    api_key: str | None = None,
) -> TrialRun:
    """Ask in the background what is not answered yet, ``parallel`` repeats at a time; stored before this returns.

    ``tools`` are offered as in ``Agent``. ``effects``: ``ask`` refuses to start if a tool with effects is among them,
    ``real`` lets them run, ``simulated`` answers from the recording. ``SessionError`` if it is being run.
    """
    if effects not in EFFECTS:
        raise SessionError(f"{effects!r} is none of {', '.join(EFFECTS)}.")
    if not 1 <= parallel <= 64:
        raise SessionError(f"A trial asks 1 to 64 at a time, not {parallel}.")
    offered = None if tools is None else as_tools(tools)
    where = Agent(session=Session.open(trial.store, trial.session_id)).endpoint
    at_stake = offered if offered is not None else list(demo_world.TOOLS) if where.is_demo else []
    # What happens in the demo's village happens in its story alone.
    if effects == "ask" and offered is not None and (said := effects_of(trial, offered)):
        raise SessionError(
            f"{'; '.join(said)}. Say whether that is wanted: effects='real' (--effects real), or 'simulated' to answer "
            "from the recording."
        )
    try:
        hold = trial.store.alone(f"trial-{trial.name}", _WAIT_S)
    except SessionLocked as error:
        raise SessionError(f"The trial {trial.name!r} is being run already ({error.holder}). Look there.") from error
    try:
        trial.effects = effects
        trial.save()
        keys = {where.base_url or "": api_key} if api_key else {}
        run = TrialRun(trial, parallel, at_stake if effects == "simulated" else offered, effects, keys)
        with _registry:
            _live[trial.store.name, trial.name] = run
        threading.Thread(target=run._work, args=(hold,), name=f"trial {trial.name}", daemon=True).start()
    except BaseException:
        hold.release()
        raise
    return run


class TrialRun:
    """A trial being run; every method may be called from any thread."""

    def __init__(
        self, trial: Trial, parallel: int, tools: Sequence[Tool] | None, effects: str, keys: Mapping[str, str]
    ) -> None:
        self.trial = trial
        self._parallel, self._tools, self._effects, self._keys = parallel, tools, effects, keys
        self._stop = threading.Event()
        self._ended = threading.Event()
        self._mutex = threading.Lock()
        self._asked: set[LiveRun] = set()
        self._error: str | None = None
        self._saved_at = 0.0

    @property
    def is_live(self) -> bool:
        """True until all is answered, or it was stopped."""
        return not self._ended.is_set()

    def stop(self) -> None:
        """Ask nothing more, and stop what is being answered; what was said is kept, and can be gone on with."""
        self._stop.set()
        with self._mutex:
            asked = list(self._asked)
        for run in asked:
            run.stop()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it has ended; True if it has."""
        return self._ended.wait(timeout)

    def progress(self) -> Progress:
        """How far it is."""
        results = list(self.trial.results.values())
        failed = sum(result.state == "failed" for result in results)
        return Progress(len(results), len(self.trial.planned()), failed, self.is_live, self._error)

    def follow(self) -> Iterator[Progress]:
        """Its progress, several times a second; the last has ended. ``SessionError`` if it ended by an error."""
        while not self._ended.wait(_SHOWN_EVERY_S):
            yield self.progress()
        yield self.progress()
        if self._error:
            raise SessionError(self._error)

    # ------------------------------------------------------------ its threads

    def _work(self, hold: Any) -> None:
        try:
            with hold, ThreadPoolExecutor(self._parallel, thread_name_prefix=f"trial {self.trial.name}") as pool:
                list(pool.map(self._try, self.trial.open_repeats()))
                self.trial.save()
                self._judge(pool)
        except SessionError as error:
            self._error = str(error)
        except Exception as error:
            self._error = f"The trial ended unexpectedly ({type(error).__name__}: {error})."
            raise
        finally:
            self._ended.set()

    def _try(self, planned: tuple[Variant, int]) -> None:
        if self._stop.is_set():
            return
        variant, repeat = planned
        session_id = self.trial.session_of(variant, repeat)
        try:
            session = self._session(variant, repeat, session_id)
            begin = session.inherited + changed(session)
            error = self._ask(variant, session, begin)
            if self._stop.is_set() and error is None and not _is_answered(session, begin, self.trial.prompts):
                return
            self._keep(self._result(variant, repeat, session, begin, error))
        except SessionError as fault:
            self._keep(Result(variant.name, repeat, session_id, state="failed", error=str(fault)))

    def _session(self, variant: Variant, repeat: int, session_id: str) -> Session:
        """The session of a repeat: the one there is, or a fork made for it."""
        trial = self.trial
        settings = dict(variant.settings)
        if "base_url" in settings:
            settings["base_url"] = without_secrets(settings["base_url"])
        meta = {
            "trial": {"name": trial.name, "variant": variant.name, "repeat": repeat},
            "tags": [f"{TAG}{trial.name}"],
            **settings,
            **({"simulated": True} if self._effects == "simulated" else {}),
        }
        if session_id not in trial.store.ids():
            parent = Session.open(trial.store, variant.session or trial.session_id)
            begin = trial.start_of(variant, parent)
            title = f"{trial.name} · {variant.name} · {repeat}"
            session = parent.fork(session_id, begin.at, title, then=begin.then)
        else:
            session = Session.open(trial.store, session_id)
        if session.meta.get("trial") != meta["trial"]:
            session.update_meta(meta)
        return session

    def _ask(self, variant: Variant, session: Session, begin: int) -> str | None:
        """Have the session answered; why it failed, if it did."""
        while not self._stop.is_set():
            session.refresh()
            prompts = [message for message in session.messages[begin:] if message.get("role") == "user"]
            if awaits_answer(session.messages) and (prompts or len(session.messages) > begin or variant.change):
                prompt = None
            elif len(prompts) < len(self.trial.prompts):
                prompt = self.trial.prompts[len(prompts)]
            else:
                return None
            run = runs.start(session.id, prompt, self._settings(variant, session))
            self._answered(run)
            if run.state == "failed":
                session.refresh()
                return run.error
        return None

    def _settings(self, variant: Variant, session: Session) -> Settings:
        tools = self._tools
        if tools is not None and self._effects == "simulated":
            tools = [simulated(tool, session.messages[: session.inherited], self._recorded) for tool in tools]
        if variant.tools is not None:
            known = tools if tools is not None else []
            tools = [tool for tool in known if tool.name in variant.tools]
        key = variant.api_key or self._key_for(variant.base_url)
        return Settings(self.trial.store, api_key=key, tools=None if tools is None else tuple(tools))

    def _key_for(self, base_url: str | None) -> str | None:
        """The key that was given for the trial's own address; it goes to no other."""
        return next((key for own, key in self._keys.items() if not base_url or is_same_place(base_url, own)), None)

    @property
    def _recorded(self) -> Sequence[Message]:
        return Session.open(self.trial.store, self.trial.session_id).messages

    def _result(self, variant: Variant, repeat: int, session: Session, begin: int, error: str | None) -> Result:
        session.refresh()
        said = session.messages[begin:]
        if error is not None:
            return Result(variant.name, repeat, session.id, state="failed", error=error)
        return self.trial.result_of(variant, repeat, said, prices.of(session.messages, session.meta, begin))

    def _keep(self, result: Result) -> None:
        with self._mutex:
            self.trial.results[result.session] = result
            if time.monotonic() - self._saved_at > _KEPT_EVERY_S:
                self._saved_at = time.monotonic()
                self.trial.save()

    # ------------------------------------------------------------ a model as judge

    def _judge(self, pool: ThreadPoolExecutor) -> None:
        """Have a model judge what it has not judged yet, in an order that has nothing to do with the variants."""
        waiting = [
            (result, number)
            for result in self.trial.results.values()
            for number, check in enumerate(self.trial.checks)
            if "judge" in check and result.state == "done" and result.verdicts[number] is None
        ]
        random.shuffle(waiting)
        list(pool.map(self._judge_one, waiting))
        self.trial.save()

    def _judge_one(self, waiting: tuple[Result, int]) -> None:
        if self._stop.is_set():
            return
        result, number = waiting
        judged = judging.judge(self.trial, result, number, self._key_for, self._answered)
        with self._mutex:
            self.trial.judged.setdefault(result.session, {})[str(number)] = judged
            now = self.trial.results[result.session]
            verdicts = [*now.verdicts[:number], judged["verdict"], *now.verdicts[number + 1 :]]
            self.trial.results[result.session] = replace(now, verdicts=tuple(verdicts))

    def _answered(self, run: LiveRun) -> None:
        """Wait for ``run``; it ends when the trial is stopped."""
        with self._mutex:
            self._asked.add(run)
        if self._stop.is_set():  # it was set in between, and did not see this one
            run.stop()
        run.wait()
        with self._mutex:
            self._asked.discard(run)


def simulated(tool: Tool, _: Sequence[Message], recorded: Sequence[Message]) -> Tool:
    """``tool`` without its effect: what it said in ``recorded`` to the same arguments; others are what they are.

    Its results say ``simulated: true``, and that they changed nothing.
    """
    if not tool.effect:
        return tool
    known = [
        (tool_calls.arguments(step.call), step.result.get("content"))
        for step in tool_calls.pair(list(recorded)).steps
        if step.call.name == tool.name and step.result is not None and not step.is_error
    ]

    def recall(**arguments: Any) -> Any:
        for asked, said in known:
            if asked == arguments:
                return said
        raise SessionError(f"Simulated: {tool.name} was never called so in the recording, and did not run.")

    return replace(tool, function=recall, history_parameter=None, effect=False, is_simulated=True)


def _is_answered(session: Session, begin: int, prompts: Sequence[str]) -> bool:
    session.refresh()
    asked = sum(message.get("role") == "user" for message in session.messages[begin:])
    return asked >= len(prompts) and not awaits_answer(session.messages)
