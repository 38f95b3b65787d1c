"""Numbers over a folder in SQL: rows for the frames of ``stats``, each message once.

A query's words and session filters choose sessions, its days choose messages; a message whose time nobody knows is in
no day. Sums come from ``activity`` (see ``sums``), all else from the rows of messages and calls.

Does not make frames.
"""

from __future__ import annotations

import itertools
import json
import sqlite3
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta, tzinfo
from typing import TYPE_CHECKING, Any, TypeVar

from sessions_lib import prices
from sessions_lib.messages import usage
from sessions_lib.prices import Spent
from sessions_lib.query import Query
from sessions_lib.store.folder.index import pricing
from sessions_lib.store.folder.index.pricing import MONEY, OWN_MONEY, of_call, parts
from sessions_lib.store.folder.index.rows import to_us
from sessions_lib.store.folder.index.sums import DAY_0_US, QUARTER, QUARTER_US
from sessions_lib.store.numbers import COUNTS, MESSAGES, NO_MONEY, SESSIONS, TOKENS, Figures, Rows
from sessions_lib.store.numbers import MONEY as MONEY_COLUMNS
from sessions_lib.times import EPOCH

if TYPE_CHECKING:
    from sessions_lib.store.folder.index.catalog import Catalog

T = TypeVar("T")
Condition = tuple[str, tuple[Any, ...]]

_SUMS = ", ".join([*(f"sum(a.{name})" for name in (*COUNTS, *TOKENS)), MONEY])
_SPELLED = {"tool_calls": "calls", "size_bytes": "offset"}  # what the tables call a column
_SESSIONS = ", ".join(f"s.{_SPELLED.get(name, name)}" for name in SESSIONS if not name.endswith(MONEY_COLUMNS))
_CALLS = (
    "SELECT c.name, count(*), sum(c.error), sum(c.result IS NULL), count(DISTINCT c.session), sum(c.duration_ms), "
    "count(c.duration_ms) FROM calls c"
)
# What each message cost: that of its one call, or of all that it took.
_BY_MESSAGE = f"""
SELECT c.session, c.message, {parts("c.money", "c.total")} FROM (
  SELECT m.session, m.number AS message, m.total, {of_call("m", QUARTER)} AS money
  FROM messages m JOIN sessions s ON s.n=m.session WHERE m.role='assistant' AND NOT m.several AND {{where}}
  UNION ALL SELECT c.session, c.message, c.total, {of_call("c", QUARTER)}
  FROM model_calls c JOIN messages m ON m.session=c.session AND m.number=c.message JOIN sessions s ON s.n=m.session
  WHERE {{where}}) c GROUP BY c.session, c.message"""


class FolderNumbers:
    """``Numbers`` from the catalog's rows."""

    def __init__(self, catalog: Catalog) -> None:
        """The numbers of ``catalog``, always up to date."""
        self._catalog = catalog

    def figures(self, asked: Query) -> Figures:
        """The figures of what ``asked`` chooses."""

        def count(db: sqlite3.Connection) -> Figures:
            where, values = _activity(self._catalog, db, asked)
            wanted = f"SELECT {_SUMS} {_from(where)} WHERE a.counts AND {where}"
            found = db.execute(wanted, values).fetchone()
            sums = dict(zip((*COUNTS, *TOKENS), found, strict=False))
            copies = f"SELECT sum(a.total), {MONEY} {_from(where)} WHERE NOT a.counts AND {where}"
            again, *money_again = db.execute(copies, values).fetchone()
            number = {name: int(sums[name] or 0) for name in COUNTS}
            every, values = _sessions(self._catalog, db, asked)
            present = f"SELECT count(*), total(s.parent IS NOT NULL) FROM sessions s WHERE {every}"
            sessions, forks = db.execute(present, values).fetchone()
            return Figures(
                sessions=sessions,
                forks=int(forks),
                messages=number["messages"],
                turns=number["turns"],
                tokens=usage.Totals(
                    **{name: sums[name] for name in TOKENS}, reported=number["reported"], answers=number["answers"]
                ),
                sent_again=again,
                money=pricing.spent(*found[-len(MONEY_COLUMNS) :]),
                money_again=pricing.spent(*money_again),
                tool_calls=number["tool_calls"],
                tool_results=number["tool_results"],
                errors=number["errors"],
                first_token_ms=self._first_token(db, asked),
            )

        return self._ask(count)

    def _ask(self, question: Callable[[sqlite3.Connection], T]) -> T:
        """The answer of ``question``, which is about money too."""

        def priced(db: sqlite3.Connection) -> T:
            pricing.settle(db)
            return question(db)

        return self._catalog.ask(priced)

    def _first_token(self, db: sqlite3.Connection, asked: Query) -> float | None:
        """The median wait for a first token."""
        about, bounds = _messages(self._catalog, db, asked)
        joined = " JOIN sessions s ON s.n=m.session" if "s." in about else ""
        waits = f"FROM messages m{joined} WHERE m.first_token_ms IS NOT NULL AND m.counts=1 AND {about}"
        (count,) = db.execute(f"SELECT count(*) {waits}", bounds).fetchone()
        if not count:
            return None
        middle = (2 - count % 2, (count - 1) // 2)  # how many, behind how many
        found = db.execute(f"SELECT m.first_token_ms {waits} ORDER BY 1 LIMIT ? OFFSET ?", (*bounds, *middle))
        return float(statistics.mean(wait for (wait,) in found))

    def sessions(self, asked: Query) -> Rows:
        """Whole sessions, newest first."""

        def read(db: sqlite3.Connection) -> Rows:
            where, values = _sessions(self._catalog, db, asked)
            newest = "ORDER BY s.last_active DESC, s.id"
            rows = db.execute(f"SELECT s.n, {_SESSIONS} FROM sessions s WHERE {where} {newest}", values)
            spent = {
                n: sums for n, *sums in db.execute(f"SELECT a.session, {MONEY}, {OWN_MONEY} FROM activity a GROUP BY 1")
            }
            unknown = (None,) * 2 * len(MONEY_COLUMNS)
            return [
                (*row[:3], json.loads(row[3]), json.loads(row[4]), *row[5:], *_money(spent.get(n, unknown)))
                for n, *row in rows
            ]

        return self._ask(read)

    def messages(self, asked: Query) -> Rows:
        """Each message once, oldest first."""

        def read(db: sqlite3.Connection) -> Rows:
            where, values = _messages(self._catalog, db, asked)
            chosen = ", ".join(f"m.{_SPELLED.get(name, name)}" for name in MESSAGES[5:] if name not in MONEY_COLUMNS)
            spent = _by_message(db, f"m.counts=1 AND {where}", values)
            rows = db.execute(
                f"SELECT m.session, s.id, m.number, m.role, m.model, coalesce(m.time, s.last_active) AS time, {chosen} "
                "FROM messages m JOIN sessions s ON s.n=m.session "
                f"WHERE m.counts=1 AND {where} ORDER BY time NULLS LAST, s.id, m.number",
                values,
            )
            end = 5 + len(TOKENS)  # where the money stands
            return [(*row[:end], *spent.get((n, row[1]), NO_MONEY), *row[end:]) for n, *row in rows]

        return self._ask(read)

    def tools(self, asked: Query) -> Rows:
        """The most called first."""

        def read(db: sqlite3.Connection) -> Rows:
            if asked.since or asked.until:
                where, values = _messages(self._catalog, db, asked)
                rows = " JOIN messages m ON m.session=c.session AND m.number=c.message JOIN sessions s ON s.n=m.session"
                where = f"m.counts=1 AND {where}"
            else:  # the few copies are looked up, not the many messages that count
                where, values = _sessions(self._catalog, db, asked)
                rows = " JOIN sessions s ON s.n=c.session" if where != "1" else ""
                copy = "SELECT 1 FROM messages m WHERE m.session=c.session AND m.number=c.message AND m.counts=0"
                where = f"NOT EXISTS({copy}) AND {where}"
            return db.execute(f"{_CALLS}{rows} WHERE {where} GROUP BY c.name ORDER BY 2 DESC, 1", values).fetchall()

        return self._catalog.ask(read)

    def by_day(self, asked: Query, zone: tzinfo | None, split: str | None) -> Rows:
        """Oldest first; see ``_split`` for the names."""

        def read(db: sqlite3.Connection) -> Rows:
            where, values = _activity(self._catalog, db, asked)
            name, join = _split(split)
            tables = f"{_from(where)} {join} WHERE {where} AND a.quarter IS NOT NULL AND a.counts"
            day = _day(zone, [found for (found,) in db.execute(_DAYS)])
            rows = db.execute(
                f"SELECT {day}, {name}, count(DISTINCT a.session), {_SUMS} {tables} GROUP BY 1, 2 ORDER BY 1, 2", values
            )
            return [_priced(row) for row in rows]

        return self._ask(read)

    def by_name(self, asked: Query, split: str) -> Rows:
        """The columns ``BY_NAME`` of each tag, model (see ``_split``) or tool."""

        def read(db: sqlite3.Connection) -> Rows:
            where, values = _activity(self._catalog, db, asked)
            name, join = _split(split)
            answered = " AND a.model IS NOT NULL" if split == "model" else ""
            if split == "tool":
                return self._by_tool(db, asked)
            rows = db.execute(
                f"SELECT {name}, count(DISTINCT s.n), count(DISTINCT CASE WHEN s.parent IS NOT NULL THEN s.n END), "
                f"count(DISTINCT CASE WHEN s.verdict='won' THEN s.n END), {_SUMS} "
                f"FROM activity a JOIN sessions s ON s.n=a.session {join} "
                f"WHERE {where} AND a.counts{answered} GROUP BY 1",
                values,
            )
            return [_priced(row) for row in rows]

        return self._ask(read)

    def _by_tool(self, db: sqlite3.Connection, asked: Query) -> Rows:
        """The answers that called each tool."""
        where, values = _messages(self._catalog, db, asked)
        where = f"m.counts=1 AND m.calls>0 AND {where}"
        spent = _by_message(db, where, values)
        wanted = (
            "SELECT DISTINCT m.session, m.number, c.name, s.parent IS NOT NULL, s.verdict='won', m.total IS NOT NULL, "
            f"m.calls, {', '.join(f'm.{token}' for token in TOKENS)} FROM calls c JOIN messages m ON "
            f"m.session=c.session AND m.number=c.message JOIN sessions s ON s.n=m.session WHERE {where}"
        )
        tools: dict[str, list[Any]] = {}
        for row in db.execute(wanted, values):
            tools.setdefault(row[2], []).append(row)
        return [_of_tool(name, rows, spent) for name, rows in tools.items()]

    def by_session(self, asked: Query) -> Rows:
        """In no order."""

        def read(db: sqlite3.Connection) -> Rows:
            where, values = _activity(self._catalog, db, asked)
            sums = f"a.session, sum(a.turns), sum(a.total), sum(a.answers), {MONEY}"
            once = db.execute(f"SELECT {sums} {_from(where)} WHERE a.counts AND {where} GROUP BY 1", values)
            spent = {session: _priced(counts) for session, *counts in once}
            every, bounds = _sessions(self._catalog, db, asked)
            rows = db.execute(f"SELECT s.n, s.id, s.parent, s.title, s.total FROM sessions s WHERE {every}", bounds)
            return [(*row, *spent.get(n, (0, None, 0, *NO_MONEY))) for n, *row in rows]

        return self._ask(read)

    def context(self, session: str) -> Rows:
        """Number, role, time, whether it is own, context, input, output and total of each message of one session."""
        wanted = (
            "SELECT m.number, m.role, coalesce(m.time, s.last_active), m.number>=s.inherited, m.context, m.input, "
            "m.output, m.total FROM messages m JOIN sessions s ON s.n=m.session WHERE s.id=? ORDER BY m.number"
        )

        def read(db: sqlite3.Connection) -> Rows:
            spent = {number: sums for (_, number), sums in _by_message(db, "s.id=?", (session,)).items()}
            return [(*row, *spent.get(row[0], NO_MONEY)) for row in db.execute(wanted, (session,))]

        return self._catalog.ask(read)


# ---------------------------------------------------------------- money


def _priced(row: Sequence[Any]) -> tuple[Any, ...]:
    """A row that ends in the sums ``MONEY`` with its columns ``numbers.MONEY``."""
    return (*row[: -len(MONEY_COLUMNS)], *_money(row[-len(MONEY_COLUMNS) :]))


def _money(sums: Sequence[Any]) -> tuple[Any, ...]:
    """The columns ``numbers.MONEY``, once or more, of as many sums."""
    width = len(MONEY_COLUMNS)
    return tuple(
        itertools.chain.from_iterable(pricing.row(*sums[at : at + width]) for at in range(0, len(sums), width))
    )


def _by_message(db: sqlite3.Connection, where: str, values: Sequence[Any]) -> dict[tuple[int, int], tuple[Any, ...]]:
    """The columns ``numbers.MONEY`` of each answer that ``where`` chooses among ``messages m`` and ``sessions s``."""
    pricing.offer(db)
    rows = db.execute(_BY_MESSAGE.format(where=where), (*values, *values))
    return {(session, number): pricing.row(*sums) for session, number, *sums in rows}


def _of_tool(name: str, rows: Sequence[Any], spent: Mapping[tuple[int, int], tuple[Any, ...]]) -> tuple[Any, ...]:
    """A row of ``numbers.BY_NAME`` of the answers ``rows`` that called a tool."""
    sessions = {row[0]: row[3:5] for row in rows}
    counts = (len(rows), 0, len(rows), sum(row[5] for row in rows), sum(row[6] for row in rows), 0, 0)
    tokens = (usage.add(*column) for column in zip(*(row[7:] for row in rows), strict=True))
    money = prices.add(Spent(*spent.get((row[0], row[1]), NO_MONEY)) for row in rows)
    forks, wins = (sum(map(bool, column)) for column in zip(*sessions.values(), strict=True))
    return name, len(sessions), forks, wins, *counts, *tokens, money.cost, money.unpriced, money.unmetered


# ---------------------------------------------------------------- conditions


def _sessions(catalog: Catalog, db: sqlite3.Connection, asked: Query) -> Condition:
    """Sessions that ``asked`` finds, as a condition on ``sessions s``."""
    return catalog.matching(db, asked) if not asked.is_blank else ("1", ())


def _activity(catalog: Catalog, db: sqlite3.Connection, asked: Query) -> Condition:
    """What ``asked`` chooses as a condition on ``activity a`` and ``sessions s``."""
    where, values = _sessions(catalog, db, replace(asked, since=None, until=None))
    for sign, bound in ((">=", to_us(asked.since)), ("<", to_us(asked.until))):
        if bound is not None:
            where, values = f"{where} AND a.quarter{sign}?", (*values, (bound + DAY_0_US) // QUARTER_US)
    return where, values


def _messages(catalog: Catalog, db: sqlite3.Connection, asked: Query) -> Condition:
    """What ``asked`` chooses as a condition on ``messages m`` and ``sessions s``."""
    where, values = _sessions(catalog, db, replace(asked, since=None, until=None))
    for sign, bound in ((">=", to_us(asked.since)), ("<", to_us(asked.until))):
        if bound is not None:
            where, values = f"{where} AND coalesce(m.time, s.last_active){sign}?", (*values, bound)
    return where, values


def _from(where: str) -> str:
    """The sums, and the sessions where ``where`` is about them."""
    return "FROM activity a" + (" JOIN sessions s ON s.n=a.session" if "s." in where else "")


def _split(split: str | None) -> tuple[str, str]:
    """The column to split by, and the join it needs: a model, or a tag by its folded name; ``""`` for none."""
    if split == "model":
        return "coalesce(a.model, '')", ""
    if split == "tag":
        return "coalesce(t.name, '')", "LEFT JOIN names t ON t.kind='label' AND t.session=a.session"
    return "''", ""


# ---------------------------------------------------------------- days

_DAYS = "SELECT DISTINCT quarter / 96 FROM activity WHERE quarter IS NOT NULL ORDER BY 1"  # of UTC


def _day(zone: tzinfo | None, days: Sequence[int]) -> str:
    """The ordinal of the day in ``zone`` as SQL over ``a.quarter``, which lies in one of ``days`` (UTC, ascending)."""
    changes: list[tuple[int, int]] = []  # the quarter an offset starts at, and the offset in quarters
    for day in days:
        low, high = day * 96, day * 96 + 95
        for quarter in (low, high):
            offset = _offset(zone, quarter)
            if changes and changes[-1][1] != offset and quarter == high:
                while high - low > 1:
                    middle = (low + high) // 2
                    low, high = (low, middle) if _offset(zone, middle) == offset else (middle, high)
                changes.append((high, offset))
            elif not changes or changes[-1][1] != offset:
                changes.append((quarter, offset))
    if not changes:
        return "0"
    cases = "".join(f"WHEN a.quarter>={quarter} THEN {offset} " for quarter, offset in reversed(changes))
    return f"(a.quarter + CASE {cases}ELSE {changes[0][1]} END) / 96"


def _offset(zone: tzinfo | None, quarter: int) -> int:
    try:
        offset = (EPOCH + timedelta(microseconds=quarter * QUARTER_US - DAY_0_US)).astimezone(zone).utcoffset()
    except (OverflowError, ValueError):  # the first or the last day of the calendar
        return 0
    return 0 if offset is None else round(offset / timedelta(minutes=15))
