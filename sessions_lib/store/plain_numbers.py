"""The plain numbers: every sum by reading every message. What every faster answer must equal (see ``numbers``).

Does not know where sessions are kept, and keeps nothing.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from typing import Any

from sessions_lib import messages as m
from sessions_lib import prices, query, times
from sessions_lib.messages import model_calls, tool_calls, usage
from sessions_lib.messages.content import Message
from sessions_lib.messages.model_calls import ModelCall
from sessions_lib.prices import Spent
from sessions_lib.query import Query
from sessions_lib.store.numbers import COUNTS, MONEY, TOKENS, Figures, Rows
from sessions_lib.store.plain import Scanned, is_found, money
from sessions_lib.store.records import SessionInfo, newest_first, verdict
from sessions_lib.store.tagging import tag_key

_UNKNOWN: usage.Counts = (None, None, None, None, None)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class _Said:
    """A message where it stands; ``counts`` is false for a copy of one that counts elsewhere."""

    info: SessionInfo
    number: int
    message: Message
    when: datetime | None
    counts: bool

    @property
    def role(self) -> str:
        return str(self.message.get("role"))

    @property
    def model(self) -> str | None:
        """The model of an answer, ``""`` if it names none; ``None`` for what no model wrote."""
        if self.role != "assistant":
            return None
        named = self.message.get("model")
        return named if isinstance(named, str) else ""

    @property
    def tokens(self) -> usage.Counts:
        return (usage.counts(self.message.get("usage")) if self.role == "assistant" else None) or _UNKNOWN

    @property
    def calls_priced(self) -> Iterator[tuple[ModelCall, datetime | None, str]]:
        """The calls of models it took, each with its time and address."""
        host = prices.host_of(self.message, prices.settings_of(self.info.meta))
        return ((call, self.when, host) for call in model_calls.of(self.message))

    @property
    def money(self) -> Spent:
        return prices.spent(self.calls_priced)

    @property
    def calls(self) -> int:
        return len(tool_calls.calls_of(self.message)) if self.role == "assistant" else 0

    @property
    def has_failed(self) -> bool:
        return self.role == "tool" and bool(self.message.get("is_error"))

    def span(self, name: str) -> int | None:
        return times.milliseconds(self.message.get(name))


@dataclass(frozen=True, slots=True)
class _Part:
    """What a message adds for one model: ``sums`` are ``COUNTS``, then ``TOKENS``."""

    said: _Said
    model: str | None
    sums: Sequence[int | None]
    money: Spent


def _parts(said: Iterable[_Said]) -> Iterator[_Part]:
    """What each message that counts adds; the tokens of an answer that several models made are each model's own."""
    for one in said:
        if not one.counts:
            continue
        is_answer, tokens = one.role == "assistant", one.tokens
        counts = (
            *(1, int(one.role == "user"), int(is_answer), int(tokens[-1] is not None)),
            *(one.calls, int(one.role == "tool"), int(one.has_failed)),
        )
        reported = one.message.get("usage")
        if is_answer and isinstance(reported, dict) and usage.MODEL_CALLS in reported:
            yield _Part(one, one.model, (*counts, *_UNKNOWN), prices.NOTHING)
            for name, spent in model_calls.by_model(reported, one.model or ""):
                money = prices.spent(call for call in one.calls_priced if call[0].model == name)
                yield _Part(one, name, (*(0,) * len(counts), *spent), money)
        else:
            yield _Part(one, one.model, (*counts, *tokens), one.money)


def _added(parts: Sequence[_Part]) -> tuple[Any, ...]:
    """``COUNTS``, ``TOKENS`` and ``MONEY`` of ``parts`` together; ``None`` is unknown and adds nothing."""
    columns = list(zip(*(part.sums for part in parts), strict=True)) or [()] * (len(COUNTS) + len(TOKENS))
    counts = [sum(count or 0 for count in column) for column in columns[: len(COUNTS)]]
    tokens = (usage.add(*column) for column in columns[len(COUNTS) :])
    return (*counts, *tokens, *_columns(prices.add(part.money for part in parts)))


def _columns(money: Spent) -> tuple[float | None, int, int]:
    return money.cost, money.unpriced, money.unmetered


class PlainNumbers:
    """``Numbers`` that reads every session at every question."""

    def __init__(self, read_all: Callable[[], Iterable[Scanned]]) -> None:
        """Over the sessions that ``read_all`` reads."""
        self._read_all = read_all

    def _found(self, asked: Query) -> list[SessionInfo]:
        return newest_first([session.info for session in self._read_all() if is_found(asked, session)])

    def _said(self, asked: Query) -> list[_Said]:
        """The messages of the sessions that ``asked`` finds, of the days it asks for, copies too."""
        every = list(self._read_all())
        standing: dict[str, list[tuple[bool, str, int]]] = {}
        identities = {session.info.id: m.identities(session.messages) for session in every}
        for session in every:
            for number, identity in enumerate(identities[session.info.id]):
                place = (number < session.info.inherited, session.info.id, number)
                standing.setdefault(identity, []).append(place)
        first = {identity: min(places) for identity, places in standing.items()}
        said = []
        for session in every:
            if not is_found(replace(asked, since=None, until=None), session):
                continue
            info = session.info
            for number, message in enumerate(session.messages):
                when = session.times[number] or info.last_active
                counts = first[identities[info.id][number]][1:] == (info.id, number)
                if (asked.since is None and asked.until is None) or query.time_matches(asked, when):
                    said.append(_Said(info, number, message, when, counts))
        return said

    def figures(self, asked: Query) -> Figures:
        """The figures of what ``asked`` chooses."""
        sessions, said = self._found(asked), self._said(asked)
        sums = dict(zip((*COUNTS, *TOKENS, *MONEY), _added(list(_parts(said))), strict=True))
        waits = [wait for one in said if one.counts and (wait := one.span("first_token_ms")) is not None]
        return Figures(
            sessions=len(sessions),
            forks=sum(info.parent is not None for info in sessions),
            messages=sums["messages"],
            turns=sums["turns"],
            tokens=usage.Totals(**{name: sums[name] for name in (*TOKENS, "reported", "answers")}),
            sent_again=usage.add(*(one.tokens[-1] for one in said if not one.counts)),
            money=Spent(*(sums[name] for name in MONEY)),
            money_again=prices.add(one.money for one in said if not one.counts),
            tool_calls=sums["tool_calls"],
            tool_results=sums["tool_results"],
            errors=sums["errors"],
            first_token_ms=float(statistics.median(waits)) if waits else None,
        )

    def sessions(self, asked: Query) -> Rows:
        """Whole sessions, newest first."""
        found = [session for session in self._read_all() if is_found(asked, session)]
        read = {session.info.id: session for session in found}
        return [
            (
                *(info.id, info.title, info.parent, list(info.tags), list(info.models)),
                *(microseconds(info.created), microseconds(info.last_active)),
                *(info.messages, info.turns, info.inherited, info.tool_calls, info.errors, info.damaged),
                *(info.unanswered, info.size_bytes),
                *_reported(info.tokens),
                *_reported(info.own_tokens),
                *(info.tokens.reported, info.tokens.answers, info.own_tokens.reported, info.own_tokens.answers),
                *_columns(money(read[info.id])),
                *_columns(money(read[info.id], info.inherited)),
            )
            for info in newest_first([session.info for session in found])
        ]

    def messages(self, asked: Query) -> Rows:
        """Each message once, oldest first."""
        rows: Rows = [
            (
                *(one.info.id, one.number, one.role, one.model or None, microseconds(one.when), *one.tokens),
                *_columns(one.money),
                *(one.calls, int(one.has_failed), one.span("duration_ms"), one.span("first_token_ms")),
            )
            for one in self._said(asked)
            if one.counts
        ]
        return sorted(rows, key=lambda row: (row[4] is None, row[4] or 0, row[0], row[1]))

    def tools(self, asked: Query) -> Rows:
        """The most called first."""
        chosen = {(one.info.id, one.number) for one in self._said(asked) if one.counts}
        calls: dict[str, list[tuple[str, Message | None]]] = {}
        for session in self._read_all():
            for step in tool_calls.pair(session.messages).steps:
                if (session.info.id, step.call.message) in chosen:
                    result = None if step.result_message is None else session.messages[step.result_message]
                    calls.setdefault(step.call.name, []).append((session.info.id, result))
        rows: Rows = []
        for name, called in calls.items():
            results = [result for _, result in called if result is not None]
            took = [ms for result in results if (ms := times.milliseconds(result.get("duration_ms"))) is not None]
            failures, sessions = sum(bool(result.get("is_error")) for result in results), {one for one, _ in called}
            waiting = len(called) - len(results)
            rows.append((name, len(called), failures, waiting, len(sessions), usage.add(*took), len(took)))
        return sorted(rows, key=lambda row: (-row[1], row[0]))

    def by_day(self, asked: Query, zone: tzinfo | None, split: str | None) -> Rows:
        """Oldest first."""
        days: dict[tuple[int, str], list[_Part]] = {}
        for part in _parts(self._said(asked)):
            if part.said.when is not None:
                day = times.local_day(part.said.when, zone).toordinal()
                for name in _names(part, split):
                    days.setdefault((day, name or ""), []).append(part)
        return [(*key, len({part.said.info.id for part in days[key]}), *_added(days[key])) for key in sorted(days)]

    def by_name(self, asked: Query, split: str) -> Rows:
        """In no order."""
        if split == "tool":
            return self._by_tool(asked)
        named: dict[str, list[_Part]] = {}
        for part in _parts(self._said(asked)):
            for name in _names(part, split):
                if name is not None:
                    named.setdefault(name, []).append(part)
        rows: Rows = []
        for name, parts in named.items():
            infos = {part.said.info.id: part.said.info for part in parts}.values()
            wins = sum(query.fold_name(verdict(info.meta)) == "won" for info in infos)
            rows.append((name, len(infos), sum(info.parent is not None for info in infos), wins, *_added(parts)))
        return rows

    def _by_tool(self, asked: Query) -> Rows:
        tools: dict[str, list[_Said]] = {}
        for one in self._said(asked):
            if one.counts and one.role == "assistant":
                for name in dict.fromkeys(call.name for call in tool_calls.calls_of(one.message)):
                    tools.setdefault(name, []).append(one)
        rows: Rows = []
        for name, answers in tools.items():
            infos = {one.info.id: one.info for one in answers}.values()
            reported, calls = sum(one.tokens[-1] is not None for one in answers), sum(one.calls for one in answers)
            tokens = (usage.add(*column) for column in zip(*(one.tokens for one in answers), strict=True))
            forks = sum(info.parent is not None for info in infos)
            wins = sum(query.fold_name(verdict(info.meta)) == "won" for info in infos)
            counts = (len(answers), 0, len(answers), reported, calls, 0, 0)
            spent = _columns(prices.add(one.money for one in answers))
            rows.append((name, len(infos), forks, wins, *counts, *tokens, *spent))
        return rows

    def by_session(self, asked: Query) -> Rows:
        """In no order."""
        parts: dict[str, list[_Part]] = {}
        for part in _parts(self._said(asked)):
            parts.setdefault(part.said.info.id, []).append(part)
        rows: Rows = []
        for info in self._found(asked):
            sums = dict(zip((*COUNTS, *TOKENS, *MONEY), _added(parts.get(info.id, [])), strict=True))
            spent = (sums["turns"], sums["total"], sums["answers"], *(sums[name] for name in MONEY))
            rows.append((info.id, info.parent, info.title, _reported(info.tokens)[-1], *spent))
        return rows

    def context(self, session: str) -> Rows:
        """Every message of one session."""
        rows: Rows = []
        for one in self._read_all():
            for number, message in enumerate(one.messages if one.info.id == session else ()):
                said = _Said(one.info, number, message, one.times[number] or one.info.last_active, counts=True)
                last = model_calls.last(message)
                tokens = (said.tokens[0], said.tokens[2], said.tokens[4])
                is_own = int(number >= one.info.inherited)
                length = last.input if last is not None else None
                rows.append(
                    (number, said.role, microseconds(said.when), is_own, length, *tokens, *_columns(said.money))
                )
        return rows


def _names(part: _Part, split: str | None) -> list[str | None]:
    """The names a part stands under: its model, or each tag of its session (``""``: none)."""
    if split == "model":
        return [part.model]
    if split == "tag":
        return list({tag_key(tag): None for tag in part.said.info.tags}) or [""]
    return [""]


def _reported(tokens: usage.Totals) -> list[int | None]:
    """The sums of a session; where nothing was answered, nobody reported any."""
    return [getattr(tokens, name) if tokens.answers else None for name in TOKENS]


def microseconds(moment: datetime | None) -> int | None:
    """Microseconds since 1970."""
    return None if moment is None else (moment - times.EPOCH) // _MICROSECOND
