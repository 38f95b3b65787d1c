"""Numbers over a folder in SQL: rows for the frames of ``stats``, each message once.

A query's words and session filters choose sessions, its days choose messages; a message whose time nobody knows is in
no day. Sums come from ``activity`` (see ``sums``), all else from the rows of messages and calls.

Does not make frames.
"""

from __future__ import annotations

import json
import sqlite3
import statistics
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta, tzinfo
from typing import TYPE_CHECKING, Any

from sessions_lib.messages import usage
from sessions_lib.query import Query
from sessions_lib.store.folder.index.rows import to_us
from sessions_lib.store.folder.index.sums import DAY_0_US, QUARTER_US
from sessions_lib.store.numbers import COUNTS, MESSAGES, SESSIONS, TOKENS, Figures, Rows
from sessions_lib.times import EPOCH

if TYPE_CHECKING:
    from sessions_lib.store.folder.index.catalog import Catalog

Condition = tuple[str, tuple[Any, ...]]

_SUMS = ", ".join(f"sum(a.{name})" for name in (*COUNTS, *TOKENS))
_COUNTS = "(a.messages>0 OR a.total IS NOT NULL)"  # a message, or tokens of a model that took part in one
_SPELLED = {"tool_calls": "calls", "size_bytes": "offset"}  # what the tables call a column
_SESSIONS = ", ".join(f"s.{_SPELLED.get(name, name)}" for name in SESSIONS)
_CALLS = (
    "SELECT c.name, count(*), sum(c.error), sum(c.result IS NULL), count(DISTINCT c.session), sum(c.duration_ms), "
    "count(c.duration_ms) FROM calls c"
)


class FolderNumbers:
    """``Numbers`` from the catalog's rows."""

    def __init__(self, catalog: Catalog) -> None:
        """The numbers of ``catalog``, always up to date."""
        self._catalog = catalog

    def figures(self, asked: Query) -> Figures:
        """The figures of what ``asked`` chooses."""

        def count(db: sqlite3.Connection) -> Figures:
            where, values = _activity(self._catalog, db, asked)
            *found, again = db.execute(f"SELECT {_SUMS}, sum(a.again) {_from(where)} WHERE {where}", values).fetchone()
            sums = dict(zip((*COUNTS, *TOKENS), found, strict=True))
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
                tool_calls=number["tool_calls"],
                tool_results=number["tool_results"],
                errors=number["errors"],
                first_token_ms=self._first_token(db, asked),
            )

        return self._catalog.ask(count)

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
            rows = db.execute(f"SELECT {_SESSIONS} FROM sessions s WHERE {where} {newest}", values)
            return [(*row[:3], json.loads(row[3]), json.loads(row[4]), *row[5:]) for row in rows]

        return self._catalog.ask(read)

    def messages(self, asked: Query) -> Rows:
        """Each message once, oldest first."""

        def read(db: sqlite3.Connection) -> Rows:
            where, values = _messages(self._catalog, db, asked)
            chosen = ", ".join(f"m.{_SPELLED.get(name, name)}" for name in MESSAGES[5:])
            return db.execute(
                f"SELECT s.id, m.number, m.role, m.model, coalesce(m.time, s.last_active) AS time, {chosen} "
                "FROM messages m JOIN sessions s ON s.n=m.session "
                f"WHERE m.counts=1 AND {where} ORDER BY time NULLS LAST, s.id, m.number",
                values,
            ).fetchall()

        return self._catalog.ask(read)

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
            tables = f"{_from(where)} {join} WHERE {where} AND a.quarter IS NOT NULL AND {_COUNTS}"
            day = _day(zone, [found for (found,) in db.execute(_DAYS)])
            return db.execute(
                f"SELECT {day}, {name}, count(DISTINCT a.session), {_SUMS} {tables} GROUP BY 1, 2 ORDER BY 1, 2", values
            ).fetchall()

        return self._catalog.ask(read)

    def by_name(self, asked: Query, split: str) -> Rows:
        """Name (see ``_split``), sessions, forks, wins, ``COUNTS`` and ``TOKENS`` of each tag or model."""

        def read(db: sqlite3.Connection) -> Rows:
            where, values = _activity(self._catalog, db, asked)
            name, join = _split(split)
            answered = " AND a.model IS NOT NULL" if split == "model" else ""
            return db.execute(
                f"SELECT {name}, count(DISTINCT s.n), count(DISTINCT CASE WHEN s.parent IS NOT NULL THEN s.n END), "
                f"count(DISTINCT CASE WHEN s.verdict='won' THEN s.n END), {_SUMS} "
                f"FROM activity a JOIN sessions s ON s.n=a.session {join} "
                f"WHERE {where} AND {_COUNTS}{answered} GROUP BY 1",
                values,
            ).fetchall()

        return self._catalog.ask(read)

    def by_session(self, asked: Query) -> Rows:
        """In no order."""

        def read(db: sqlite3.Connection) -> Rows:
            where, values = _activity(self._catalog, db, asked)
            sums = "a.session, sum(a.turns), sum(a.total), sum(a.answers)"
            once = db.execute(f"SELECT {sums} {_from(where)} WHERE {where} GROUP BY 1", values)
            spent = {session: counts for session, *counts in once}
            every, bounds = _sessions(self._catalog, db, asked)
            rows = db.execute(f"SELECT s.n, s.id, s.parent, s.title, s.total FROM sessions s WHERE {every}", bounds)
            return [(*row, *spent.get(n, (0, None, 0))) for n, *row in rows]

        return self._catalog.ask(read)

    def context(self, session: str) -> Rows:
        """Number, role, time, whether it is own, context, input, output and total of each message of one session."""
        wanted = (
            "SELECT m.number, m.role, coalesce(m.time, s.last_active), m.number>=s.inherited, m.context, m.input, "
            "m.output, m.total FROM messages m JOIN sessions s ON s.n=m.session WHERE s.id=? ORDER BY m.number"
        )
        return self._catalog.ask(lambda db: db.execute(wanted, (session,)).fetchall())


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
