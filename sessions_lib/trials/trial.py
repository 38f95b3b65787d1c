"""A trial: prompts answered by each of several variants, each several times, and judged by checks.

It is one object beside the sessions (``store.trial``): where it starts, what is asked, the variants, the checks, and
the results so far. A repeat is a session of its own, forked where the trial starts, with an id made of the trial's
name, the variant and its number: so nothing is asked twice, whatever ended the process in between.

The first variant is always tried a second time under another name: two rows of the same show how much is noise.

Does not run: ``running`` does. Does not draw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from sessions_lib import names, times
from sessions_lib.errors import SessionError
from sessions_lib.messages import content
from sessions_lib.messages.content import Message
from sessions_lib.prices import Spent
from sessions_lib.redaction import ids
from sessions_lib.store import forks
from sessions_lib.store.session import Session
from sessions_lib.store.store import SessionStore
from sessions_lib.trials import checks as checking
from sessions_lib.trials.checks import Check, Run, Verdict
from sessions_lib.trials.variant import Variant as Variant
from sessions_lib.trials.variant import slug, with_noise

if TYPE_CHECKING:
    from sessions_lib.trials.running import Progress

VERSION = 1
TAG = "trial:"  # of the sessions of a trial, with its name: kept out of ordinary lists
MOST = 10_000  # repeats in all


@dataclass(frozen=True, slots=True)
class Result:
    """One repeat: ``state`` is ``done``, or ``failed`` with its ``error``; ``verdicts`` as the checks stand.

    ``dollars`` are ``None`` where a part has no price; ``unpriced`` and ``unmetered`` are the tokens that have none.
    """

    variant: str
    repeat: int
    session: str
    state: str = "done"
    verdicts: tuple[Verdict, ...] = ()
    tokens: int | None = None
    seconds: float | None = None
    dollars: float | None = None
    failures: int = 0
    error: str | None = None
    unpriced: int = 0
    unmetered: int = 0

    @property
    def passed(self) -> bool | None:
        """True if all checks passed; ``None`` while one is not known.

        Also if another failed: a rate over those that are known by failing would be too low.
        """
        found = [checking.passes(verdict) for verdict in self.verdicts]
        return None if self.state != "done" or None in found else all(found)


class Trial:
    """A trial that starts in ``session`` after ``at`` messages (default: its last point); stored with ``save``."""

    def __init__(
        self,
        session: Session | str,
        at: int | None = None,
        prompts: Sequence[str] = (),
        variants: Sequence[Variant] = (),
        checks: Sequence[Check | Callable[[Run], Any]] = (),
        repeats: int = 10,
        *,
        name: str | None = None,
        store: SessionStore | None = None,
    ) -> None:
        """``checks`` are made by ``trials.checks``, or functions of a ``Run``; ``SessionError`` says what is wrong."""
        if isinstance(session, str):
            if store is None:
                raise SessionError("Give a trial its session, not the id alone; or the store as well.")
            session = Session.open(store, session)
        self.store = store if store is not None else session.store
        self.session_id = session.id
        self.at = len(session.messages) if at is None else at
        self.prompts = [prompt for prompt in prompts if prompt.strip()]
        self.functions: dict[str, Callable[[Run], Any]] = {}
        self.checks = [self._check(check) for check in checks]
        self.variants = with_noise(variants or [Variant("as it is")])
        self.repeats = _repeats(repeats, len(self.variants))
        self.created = times.now()
        self.results: dict[str, Result] = {}
        self.judged: dict[str, dict[str, Any]] = {}
        self.picked: dict[str, bool] = {}
        self.effects = "ask"  # what was said of tools that change the world, when it was started
        self.name = names.check_id(name) if name else _free_name(self.store, session)
        self._see_where_it_starts(session)

    def _check(self, check: Check | Callable[[Run], Any]) -> Check:
        if not callable(check):
            return checking.checked(check)
        name = getattr(check, "__name__", "check")
        self.functions[name] = check
        return {"python": name}

    def _see_where_it_starts(self, session: Session) -> None:
        if not self.prompts and not any(variant.change for variant in self.variants):
            raise SessionError("A trial asks something: give it a prompt, or a variant that changes what was said.")
        for variant in self.variants:
            parent = session if variant.session is None else Session.open(self.store, variant.session)
            self.start_of(variant, parent)

    # ------------------------------------------------------------ kept

    @classmethod
    def load(cls, store: SessionStore, name: str) -> Trial:
        """The trial ``name`` of ``store``; ``SessionError`` if there is none, or a newer program wrote it."""
        values = store.trial(name)
        if values is None:
            raise SessionError(f"There is no trial {name!r}. See: forkbook trial list")
        if values.get("version") != VERSION:
            raise SessionError(f"The trial {name!r} was written by a newer Forkbook. Update Forkbook to open it.")
        trial = cls.__new__(cls)
        trial.store, trial.functions, trial.name = store, {}, name
        try:
            trial.session_id, trial.at = str(values["session"]), int(values["at"])
            trial.prompts, trial.repeats = list(values["prompts"]), int(values["repeats"])
            trial.created = str(values.get("created") or "")
            trial.checks = [checking.checked(check) for check in values["checks"]]
            trial.variants = [Variant.of(one) for one in values["variants"]]
            results = [Result(**{**one, "verdicts": tuple(one["verdicts"])}) for one in values["results"]]
        except (KeyError, TypeError, ValueError) as error:
            raise SessionError(f"The trial {name!r} is damaged ({type(error).__name__}: {error}).") from error
        trial.results = {result.session: result for result in results}
        trial.effects = str(values.get("effects") or "ask")
        trial.judged, trial.picked = dict(values.get("judged") or {}), dict(values.get("picked") or {})
        return trial

    def save(self) -> None:
        """Keep it as it is now."""
        self.store.put_trial(
            self.name,
            {
                "version": VERSION,
                "created": self.created,
                "session": self.session_id,
                "at": self.at,
                "prompts": self.prompts,
                "repeats": self.repeats,
                "effects": self.effects,
                "checks": self.checks,
                "variants": [variant.stored() for variant in self.variants],
                "results": [asdict(result) for result in self.results.values()],
                "judged": self.judged,
                "picked": self.picked,
            },
        )

    def copy(self, name: str) -> Trial:
        """The same trial under another name, with no result yet."""
        if self.store.trial(names.check_id(name)) is not None:
            raise SessionError(f"There is a trial {name!r} already. Choose another name.")
        twin = Trial.__new__(Trial)
        twin.__dict__.update(self.__dict__)
        twin.name, twin.created = name, times.now()
        twin.results, twin.judged, twin.picked = {}, {}, {}
        return twin

    def extend(self, repeats: int) -> None:
        """Have ``repeats`` of each variant, more than there were."""
        if repeats < self.repeats:
            raise SessionError(f"The trial has {self.repeats} repeats already; fewer would throw answers away.")
        self.repeats = _repeats(repeats, len(self.variants))

    # ------------------------------------------------------------ its repeats

    def session_of(self, variant: Variant, repeat: int) -> str:
        """The id of the session of one repeat (from 1)."""
        return f"{self.name[:80]}.{slug(variant.name)[:30]}.{repeat}"

    def planned(self) -> list[tuple[Variant, int]]:
        """Every repeat, the variants in turn: what the server does meanwhile is shared by all."""
        return [(variant, repeat) for repeat in range(1, self.repeats + 1) for variant in self.variants]

    @property
    def is_left(self) -> bool:
        """True while the session it starts in, or one of its repeats, is there."""
        there = self.store.ids()
        return self.session_id in there or not there.isdisjoint(self.results)

    def open_repeats(self) -> list[tuple[Variant, int]]:
        """Those that have no result yet, or failed."""
        done = {session for session, result in self.results.items() if result.state == "done"}
        return [(variant, repeat) for variant, repeat in self.planned() if self.session_of(variant, repeat) not in done]

    def requests(self) -> int:
        """How many model calls are to come at least: a tool call makes more."""
        judges = sum("judge" in check for check in self.checks)
        return len(self.open_repeats()) * (max(1, len(self.prompts)) + judges)

    def start_of(self, variant: Variant, parent: Session) -> forks.Change:
        """Where ``variant`` begins in ``parent``; ``SessionError`` if nothing can."""
        said = parent.messages
        if variant.change is not None:
            index, words = variant.change
            if not 0 <= index < len(said):
                raise SessionError(f"The variant {variant.name!r} changes message {index}; there are {len(said)}.")
            return forks.change(said, index, words)
        at = variant.at if variant.at is not None else self.at if variant.session is None else len(said)
        forks.point(parent.id, parent.title, said, at)
        return forks.Change(at, [], "")

    def result_of(self, variant: Variant, repeat: int, said: Sequence[Message], money: Spent) -> Result:
        """What came of a repeat that added the messages ``said``, for so much ``money``."""
        session_id = self.session_of(variant, repeat)
        run = checking.run_of(said, None if money.unpriced else money.cost)  # of a part is not of the whole
        return Result(
            variant.name,
            repeat,
            session_id,
            verdicts=self.look(session_id, run),
            tokens=run.tokens,
            seconds=run.seconds,
            dollars=run.dollars,
            failures=run.failures,
            unpriced=money.unpriced,
            unmetered=money.unmetered,
        )

    def look(self, session_id: str, run: Run) -> tuple[Verdict, ...]:
        """What each check says of a repeat."""
        return tuple(self._look(number, check, session_id, run) for number, check in enumerate(self.checks))

    def _look(self, number: int, check: Check, session_id: str, run: Run) -> Verdict:
        kind, value = next(iter(check.items()))
        if kind == "pick":
            return self.picked.get(session_id)
        if kind == "judge":
            judged = self.judged.get(session_id, {}).get(str(number))
            return judged["verdict"] if isinstance(judged, Mapping) else None
        if kind == "python" and value in self.functions:
            verdict = self.functions[value](run)
            return verdict if isinstance(verdict, bool | int | float | str) else None
        return checking.look(check, run)

    def pick(self, session_id: str, is_good: bool) -> None:
        """A person says whether the answer of a repeat is good; kept at once."""
        if session_id not in self.results:
            raise SessionError(f"{session_id!r} is no repeat of the trial {self.name!r} that has ended.")
        self.picked[session_id] = is_good
        result = self.results[session_id]
        verdicts = tuple(
            is_good if "pick" in check else verdict for check, verdict in zip(self.checks, result.verdicts, strict=True)
        )
        self.results[session_id] = replace(result, verdicts=verdicts)
        self.save()

    # ------------------------------------------------------------ running and reading

    def run(
        self,
        parallel: int = 4,
        *,
        tools: Iterable[Any] | None = None,
        effects: str = "ask",
        api_key: str | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Trial:
        """Ask what is not answered yet, ``parallel`` at a time, and wait for it; see ``running.start``."""
        from sessions_lib.trials import running

        run = running.start(self, parallel, tools=tools, effects=effects, api_key=api_key)
        for progress in run.follow():
            if on_progress is not None:
                on_progress(progress)
        return self

    def frame(self) -> Any:
        """A pandas frame with a row a repeat: see ``stats.trial``."""
        from sessions_lib import stats

        return stats.trial(self.results.values(), [checking.name_of(check) for check in self.checks])


def changed(session: Session) -> int:
    """How many of the session's own messages stood there before anything was asked: what a variant changed."""
    own = session.messages[session.inherited :]
    if not own or "edited" not in own[0]:
        return 0
    return next((at for at, message in enumerate(own) if at and message.get("role") != "tool"), len(own))


def _repeats(repeats: int, variants: int) -> int:
    if not 1 <= repeats * variants <= MOST:
        raise SessionError(f"A trial has 1 to {MOST:,} answers; {repeats} repeats of {variants} variants are not.")
    return repeats


def _free_name(store: SessionStore, session: Session) -> str:
    base = f"{ids.made_of(session.title, content.text(session.messages[0]) if session.messages else '')[:60]}-trial"
    taken = set(store.trials())
    return next(
        one for number in range(1, len(taken) + 2) if (one := base if number == 1 else f"{base}-{number}") not in taken
    )
