"""Numbers over a folder as pandas frames, straight from the catalog: each message once.

A message that stands in several files (a fork's copied start) counts once, in the session that wrote it; what forks
send again is told beside it (``Figures.sent_again``) and never added. So a tag's, a model's or a day's tokens are those
of messages written in its sessions, on it, by it; ``own_…`` and whole columns of ``sessions`` are per file.

Tokens have one meaning for all providers (``usage``): ``input`` is everything sent with the ``cached`` part inside it,
``output`` everything generated with ``reasoning`` inside it, ``total`` their sum. They are ``Int64``: ``<NA>`` is
unknown, never 0. ``reported`` of ``answers`` say how many answers reported usage. The dict as reported stays in the
file. Times are UTC; days are those of ``zone`` (default: this machine's). Durations are milliseconds.

Every function takes a ``Query`` (``query.parse``): its words and session filters choose sessions, its days choose
messages. A blank query is the whole folder.

Does not draw, and never reads a session's file itself.
"""

from __future__ import annotations

import json
import sqlite3
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, tzinfo
from typing import Any

import pandas as pd

from sessions_lib import query, times
from sessions_lib.messages import usage
from sessions_lib.query import Query
from sessions_lib.store import records
from sessions_lib.store.folder.index.catalog import Catalog
from sessions_lib.store.folder.index.fold import QUARTER_US
from sessions_lib.store.folder.index.rows import to_us
from sessions_lib.times import EPOCH

ALL = Query()
TOKENS = usage.SUMS
COUNTS = ("messages", "turns", "answers", "reported", "tool_calls", "tool_results", "errors")
UNIX_DAY = date(1970, 1, 1).toordinal()
NO_TAG = "untagged"
NO_MODEL = "unknown model"

# Rows of ``activity`` with something that counts: a message, or tokens of a model that took part in one.
_COUNTS = "(a.messages>0 OR a.total IS NOT NULL)"
_SUMS = ", ".join(f"sum(a.{name})" for name in (*COUNTS, *TOKENS))
_TIME_COLUMNS = ("created", "last_active", "time")


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a range, each message once.

    ``sessions`` have a message in the range, ``forks`` are those of them that are forks. ``sent_again`` are tokens of
    copies: beside ``tokens``, never part of them. ``first_token_ms`` is the median over answers that recorded it.
    """

    sessions: int
    forks: int
    messages: int
    turns: int
    tokens: usage.Totals
    sent_again: int | None
    tool_calls: int
    tool_results: int
    errors: int
    first_token_ms: float | None

    @property
    def error_rate(self) -> float | None:
        """The share of tool results that say the tool failed; ``None`` without results."""
        return self.errors / self.tool_results if self.tool_results else None


def figures(catalog: Catalog, asked: Query = ALL) -> Figures:
    """The figures of what ``asked`` chooses."""

    def count(db: sqlite3.Connection) -> Figures:
        where, values = _spent(catalog, db, asked)
        *found, again = db.execute(
            f"SELECT {_SUMS}, sum(a.again) {_from(where, asked)} WHERE {where}", values
        ).fetchone()
        counts = dict(zip((*COUNTS, *TOKENS), found, strict=True))
        every, values = _sessions(catalog, db, asked)
        present = db.execute(
            f"SELECT count(*), total(s.parent IS NOT NULL) FROM sessions s WHERE {every}", values
        ).fetchone()
        number = {name: int(counts[name] or 0) for name in COUNTS}
        return Figures(
            sessions=present[0],
            forks=int(present[1]),
            messages=number["messages"],
            turns=number["turns"],
            tokens=usage.Totals(
                **{name: counts[name] for name in TOKENS}, reported=number["reported"], answers=number["answers"]
            ),
            sent_again=again,
            tool_calls=number["tool_calls"],
            tool_results=number["tool_results"],
            errors=number["errors"],
            first_token_ms=_first_token(catalog, db, asked),
        )

    return catalog.ask(count)


def _first_token(catalog: Catalog, db: sqlite3.Connection, asked: Query) -> float | None:
    """The median wait for a first token."""
    about, bounds = _said(catalog, db, asked)
    joined = " JOIN sessions s ON s.n=m.session" if "s." in about else ""
    waits = f"FROM messages m{joined} WHERE m.first_token_ms IS NOT NULL AND m.counts=1 AND {about}"
    (count,) = db.execute(f"SELECT count(*) {waits}", bounds).fetchone()
    if not count:
        return None
    middle = (2 - count % 2, (count - 1) // 2)  # how many, behind how many
    found = db.execute(f"SELECT m.first_token_ms {waits} ORDER BY 1 LIMIT ? OFFSET ?", (*bounds, *middle))
    return float(statistics.mean(wait for (wait,) in found))


def period_before(asked: Query, zone: tzinfo | None = None, now: datetime | None = None) -> Query | None:
    """The same query for the period of equal length, in days, before its range; ``None`` for one without a start,
    or without days before it.

    A range without an end lasts until the end of today (or of the day of ``now``) in ``zone``.
    """
    if asked.since is None:
        return None
    first = times.local_day(asked.since, zone)
    moment = now or times.parse(times.now())
    assert moment is not None  # the clock's own text is a time
    today = times.local_day(moment, zone)
    until = times.local_day(asked.until, zone) if asked.until else today + timedelta(days=1)
    days = max(1, (until - first).days)
    if days >= first.toordinal():
        return None  # it would begin before the calendar does
    return replace(asked, since=query.midnight(first - timedelta(days=days), zone), until=query.midnight(first, zone))


# ---------------------------------------------------------------- frames


def sessions(catalog: Catalog, asked: Query = ALL) -> pd.DataFrame:
    """A row a session, newest first.

    ``id``, ``title``, ``parent`` (string), ``tags``, ``models`` (lists of str); ``created``, ``last_active``
    (datetime, UTC); ``messages``, ``turns``, ``inherited``, ``tool_calls``, ``errors``, ``damaged``, ``unanswered``,
    ``size_bytes`` (int64); ``input`` … ``total`` of the whole file and ``own_input`` … ``own_total`` of what was
    written in it (Int64); ``reported``, ``answers``, ``own_reported``, ``own_answers`` (int64). Never sum the
    whole-file columns over sessions: forks repeat their start.
    """
    texts, lists = ("id", "title", "parent"), ("tags", "models")
    numbers = ("messages", "turns", "inherited", "calls", "errors", "damaged", "unanswered", "offset")
    answers = ("reported", "answers", "own_reported", "own_answers")
    tokens = (*TOKENS, *(f"own_{name}" for name in TOKENS))
    columns = (*texts, *lists, "created", "last_active", *numbers, *tokens, *answers)

    def read(db: sqlite3.Connection) -> list[Any]:
        where, values = _sessions(catalog, db, asked)
        chosen = ", ".join(f"s.{name}" for name in columns)
        return db.execute(
            f"SELECT {chosen} FROM sessions s WHERE {where} ORDER BY s.last_active DESC, s.id", values
        ).fetchall()

    frame = _frame(catalog.ask(read), columns, whole=numbers + answers, maybe=tokens, texts=texts)
    for name in lists:
        frame[name] = pd.Series([json.loads(value) for value in frame[name]], dtype=object, index=frame.index)
    return frame.rename(columns={"calls": "tool_calls", "offset": "size_bytes"})


def messages(catalog: Catalog, asked: Query = ALL) -> pd.DataFrame:
    """A row a message, each once, oldest first; messages without a time have that of their session.

    ``session``, ``role``, ``model`` (string, ``<NA>`` where not known); ``number`` (index in its session, int64);
    ``time`` (datetime, UTC); ``input`` … ``total``, ``duration_ms``, ``first_token_ms`` (Int64); ``tool_calls`` (made
    by it), ``error`` (1 for a failed tool's result) (int64).
    """
    columns = ("session", "number", "role", "model", "time", *TOKENS, "calls", "error", "duration_ms", "first_token_ms")

    def read(db: sqlite3.Connection) -> list[Any]:
        where, values = _said(catalog, db, asked)
        chosen = ", ".join(f"m.{name}" for name in columns[5:])
        return db.execute(
            f"SELECT s.id, m.number, m.role, m.model, coalesce(m.time, s.last_active) AS time, {chosen} "
            "FROM messages m JOIN sessions s ON s.n=m.session "
            f"WHERE m.counts=1 AND {where} ORDER BY time NULLS LAST, s.id, m.number",
            values,
        ).fetchall()

    maybe = (*TOKENS, "duration_ms", "first_token_ms")
    frame = _frame(
        catalog.ask(read),
        columns,
        whole=("number", "calls", "error"),
        maybe=maybe,
        texts=("session", "role", "model"),
    )
    return frame.rename(columns={"calls": "tool_calls"})


def tools(catalog: Catalog, asked: Query = ALL) -> pd.DataFrame:
    """A row a tool, the most called first; each call once.

    ``tool`` (string); ``calls``, ``failures`` (results that say so), ``unanswered``, ``sessions`` (int64);
    ``duration_ms`` (sum over the ``timed`` calls that recorded it, Int64), ``timed`` (int64).
    """
    columns = ("tool", "calls", "failures", "unanswered", "sessions", "duration_ms", "timed")

    def read(db: sqlite3.Connection) -> list[Any]:
        if not (asked.since or asked.until):  # over all days each session has its sums
            where, values = _sessions(catalog, db, asked)
            joined = " JOIN sessions s ON s.n=c.session" if where != "1" else ""
            return db.execute(
                "SELECT c.name, sum(c.calls), sum(c.failures), sum(c.unanswered), count(*), sum(c.duration_ms), "
                f"sum(c.timed) FROM tools c{joined} WHERE c.calls>0 AND {where} GROUP BY c.name ORDER BY 2 DESC, 1",
                values,
            ).fetchall()
        where, values = _said(catalog, db, asked)
        return db.execute(
            "SELECT c.name, count(*), sum(c.error), sum(c.result IS NULL), count(DISTINCT c.session), "
            "sum(c.duration_ms), count(c.duration_ms) FROM calls c "
            "JOIN messages m ON m.session=c.session AND m.number=c.message JOIN sessions s ON s.n=m.session "
            f"WHERE m.counts=1 AND {where} GROUP BY c.name ORDER BY 2 DESC, 1",
            values,
        ).fetchall()

    return _frame(
        catalog.ask(read),
        columns,
        whole=("calls", "failures", "unanswered", "sessions", "timed"),
        maybe=("duration_ms",),
        texts=("tool",),
    )


def by_day(catalog: Catalog, asked: Query = ALL, zone: tzinfo | None = None, split: str | None = None) -> pd.DataFrame:
    """A row a day with messages, oldest first; ``split`` by ``"tag"`` or ``"model"`` gives a row a day and name.

    ``day`` (datetime.date in ``zone``), ``name`` if split; ``sessions`` (active that day), ``messages``, ``turns``,
    ``answers``, ``reported``, ``tool_calls``, ``tool_results``, ``errors`` (int64); ``input`` … ``total`` (Int64). A
    session with two tags stands under both: do not sum over tags.
    """

    def read(db: sqlite3.Connection) -> list[Any]:
        day = _day_number(zone, found) if (found := _days(db)) else "0"
        where, values = _without_days(catalog, db, asked)
        name, join = _split(split)
        joined = f"{_sessions_join(where)} {join} WHERE {where} AND {_COUNTS}"
        low, high = _quarters(asked)
        inside = "a.quarter>=? AND a.quarter<?"
        if split == "model":
            sums = f"SELECT {day}, {name}, count(DISTINCT a.session), {_SUMS} FROM activity a {joined} AND {inside}"
            return db.execute(f"{sums} GROUP BY 1, 2", (*values, low, high)).fetchall()
        # Most sessions lie in one day, and have one row of sums; only the others are looked at by the quarter.
        first, last = (day.replace("a.quarter", column) for column in ("a.first", "a.last"))
        whole = f"a.first>=? AND a.last<? AND {first}={last}"
        short = f"SELECT {first}, {name}, count(*), {_SUMS} FROM once a {joined} AND {whole} GROUP BY 1, 2"
        parts = db.execute(short, (*values, low, high)).fetchall()
        others = f"a.session IN (SELECT a.session FROM once a WHERE a.last>=? AND a.first<? AND NOT ({whole}))"
        sums = f"SELECT {day}, {name}, count(DISTINCT a.session), {_SUMS} FROM activity a {joined} AND {inside}"
        parts += db.execute(f"{sums} AND {others} GROUP BY 1, 2", (*values, *(low, high) * 3)).fetchall()
        return _added(parts)

    said = _spelling(catalog) if split == "tag" else {}
    rows = [(date.fromordinal(row[0]), said.get(row[1], row[1]), *row[2:]) for row in catalog.ask(read)]
    rows.sort(key=lambda row: row[:2])
    columns = ("day", "name", "sessions", *COUNTS, *TOKENS)
    frame = _frame(rows, columns, whole=("sessions", *COUNTS), maybe=TOKENS, texts=("name",))
    return frame if split else frame.drop(columns="name")


def by_tag(catalog: Catalog, asked: Query = ALL) -> pd.DataFrame:
    """A row a tag (and one for sessions without any), most sessions first.

    ``tag`` (string); ``sessions``, ``forks``, ``wins`` (sessions that won by verdict), ``messages``, ``turns``, …
    (int64); ``input`` … ``total`` (Int64). A session with two tags stands under both: do not sum over tags.
    """
    return _by_name(catalog, asked, "tag")


def by_model(catalog: Catalog, asked: Query = ALL) -> pd.DataFrame:
    """A row a model, most tokens first: what it answered and spent. Columns as in ``by_tag``, with ``model``.

    Messages no model wrote (prompts, tool results) are not in it; answers that name none are ``unknown model``. A model
    that only took part in the answers of another (an advisor) has its tokens here, and no answers.
    """
    return _by_name(catalog, asked, "model")


def _by_name(catalog: Catalog, asked: Query, split: str) -> pd.DataFrame:
    name, join = _split(split)

    def read(db: sqlite3.Connection) -> list[Any]:
        where, values = _activity(catalog, db, asked)
        if split == "tag" and not (asked.since or asked.until):
            return _whole_by_tag(db, where, values)
        answered = " AND (a.answers>0 OR a.total IS NOT NULL)" if split == "model" else ""
        return db.execute(
            f"SELECT {name} AS name, count(DISTINCT s.n), "
            "count(DISTINCT CASE WHEN s.parent IS NOT NULL THEN s.n END), "
            f"count(DISTINCT CASE WHEN s.verdict='won' THEN s.n END), {_SUMS} "
            f"FROM activity a JOIN sessions s ON s.n=a.session {join} WHERE {where}{answered} GROUP BY 1",
            values,
        ).fetchall()

    columns = (split, "sessions", "forks", "wins", *COUNTS, *TOKENS)
    said = _spelling(catalog) if split == "tag" else {}
    rows = [(said.get(row[0], row[0]), *row[1:]) for row in catalog.ask(read)]
    frame = _frame(rows, columns, whole=("sessions", "forks", "wins", *COUNTS), maybe=TOKENS, texts=(split,))
    order = ["sessions", "messages"] if split == "tag" else ["total", "answers"]
    return frame.sort_values([*order, split], ascending=[False, False, True], na_position="last", ignore_index=True)


def _whole_by_tag(db: sqlite3.Connection, where: str, values: tuple[Any, ...]) -> list[Any]:
    """Over all days: a session has one row of sums, and the tags stand in order already."""
    counted = f"count(*), sum(s.parent IS NOT NULL), sum(s.verdict='won'), {_SUMS}"
    tables = "JOIN once a ON a.session=s.n"
    tagged = f"FROM names t JOIN sessions s ON s.n=t.session {tables} WHERE t.kind='label' AND {where} GROUP BY t.name"
    untagged = f"FROM sessions s {tables} WHERE s.tags='[]' AND {where}"
    found = db.execute(f"SELECT t.name, {counted} {tagged}", values).fetchall()
    rest = db.execute(f"SELECT '', {counted} {untagged}", values).fetchone()
    return [*found, rest] if rest[1] else found


def families(catalog: Catalog, asked: Query = ALL) -> pd.DataFrame:
    """A row a family (a session and everything forked from it), most tokens first; each message once.

    ``root`` (the id of the oldest ancestor that is there), ``title`` (its title) (string); ``sessions`` (int64),
    ``turns`` (int64), ``total`` and ``sent_again`` (tokens of copies, beside ``total``) (Int64).
    """

    def read(db: sqlite3.Connection) -> tuple[list[Any], list[Any]]:
        where, values = _activity(catalog, db, asked)
        table = "once" if asked.since is None and asked.until is None else "activity"
        spent = db.execute(
            f"SELECT s.id, sum(a.turns), sum(a.total), sum(a.answers) FROM {table} a JOIN sessions s ON s.n=a.session "
            f"WHERE {where} GROUP BY s.n",
            values,
        ).fetchall()
        every, bounds = _sessions(catalog, db, asked)
        rows = db.execute(f"SELECT s.id, s.parent, s.title, s.total FROM sessions s WHERE {every}", bounds).fetchall()
        return spent, rows

    spent, rows = catalog.ask(read)
    parents = {session: parent for session, parent, _, _ in rows}
    titles = {session: title for session, _, title, _ in rows}
    whole = {session: total for session, _, _, total in rows}
    once = {session: counts for session, *counts in spent}
    members: dict[str, list[str]] = {}
    for session in parents:
        members.setdefault(_root(session, parents), []).append(session)
    columns = ("root", "title", "sessions", "turns", "total", "sent_again")
    made = []
    for root, kin in members.items():
        turns = sum(int(once[one][0] or 0) for one in kin if one in once)
        totals = [once[one][1] for one in kin if one in once and once[one][1] is not None]
        files = [whole[one] for one in kin if whole[one] is not None]
        answers = sum(once[one][2] for one in kin if one in once)  # without any, nothing was spent: known, and 0
        total = sum(totals) if totals or not answers else None
        again = sum(files) - (total or 0) if files and not (asked.since or asked.until) else None
        made.append((root, titles[root], len(kin), turns, total, again))
    frame = _frame(made, columns, whole=("sessions", "turns"), maybe=("total", "sent_again"), texts=("root", "title"))
    return frame.sort_values(["total", "root"], ascending=[False, True], na_position="last", ignore_index=True)


def context(catalog: Catalog, session: str) -> pd.DataFrame:
    """A row a turn of one session: why a resumed session costs more every day.

    ``turn`` (from 1), ``message`` (the prompt's index) (int64); ``time`` (datetime, UTC); ``inherited`` (bool);
    ``answers`` (int64); ``context`` (input of the turn's last answer: how long the conversation is by now), ``input``,
    ``output``, ``total`` (spent in the turn), ``so_far`` (``total`` of all turns up to here) (Int64).
    """

    def read(db: sqlite3.Connection) -> list[Any]:
        catalog.add_rows(db, session)
        return db.execute(
            "SELECT m.number, m.role, coalesce(m.time, s.last_active), m.number>=s.inherited, "
            "m.context, m.input, m.output, m.total "
            "FROM messages m JOIN sessions s ON s.n=m.session WHERE s.id=? ORDER BY m.number",
            (session,),
        ).fetchall()

    turns: list[list[Any]] = []
    prompts = 0
    for number, role, time, own, length, *tokens in catalog.ask(read):
        prompts += role == "user"
        if not turns or (role == "user" and prompts > 1):
            turns.append([len(turns) + 1, number, time, not own, 0, None, None, None, None, None])
        if role == "assistant":
            turn = turns[-1]
            turn[4] += 1
            turn[5] = length if length is not None else turn[5]
            for place, value in zip((6, 7, 8), tokens, strict=True):
                if value is not None:
                    turn[place] = (turn[place] or 0) + value
    so_far = None
    for turn in turns:
        spent = turn[8] if turn[4] else 0
        so_far = turn[9] = so_far if spent is None else (so_far or 0) + spent
    columns = ("turn", "message", "time", "inherited", "answers", "context", "input", "output", "total", "so_far")
    maybe = ("context", "input", "output", "total", "so_far")
    frame = _frame(turns, columns, whole=("turn", "message", "answers"), maybe=maybe)
    return frame.astype({"inherited": bool})


# ---------------------------------------------------------------- pieces


def _sessions(catalog: Catalog, db: sqlite3.Connection, asked: Query) -> tuple[str, tuple[Any, ...]]:
    """Sessions that ``asked`` finds, as a condition on ``sessions s``."""
    return catalog.matching(db, asked) if not asked.is_blank else ("1", ())


def _without_days(catalog: Catalog, db: sqlite3.Connection, asked: Query) -> tuple[str, tuple[Any, ...]]:
    return _sessions(catalog, db, replace(asked, since=None, until=None))


def _quarters(asked: Query) -> tuple[int, int]:
    """The half-open range of ``asked`` in quarters of an hour since 1970."""
    low, high = to_us(asked.since), to_us(asked.until)
    return (-(1 << 62) if low is None else low // QUARTER_US), (1 << 62 if high is None else high // QUARTER_US)


def _spent(catalog: Catalog, db: sqlite3.Connection, asked: Query) -> tuple[str, tuple[Any, ...]]:
    """What ``asked`` chooses as a condition on ``activity a`` and ``sessions s``, copies among it."""
    where, values = _without_days(catalog, db, asked)
    if asked.since or asked.until:
        where, values = f"{where} AND a.quarter>=? AND a.quarter<?", (*values, *_quarters(asked))
    return where, values


def _activity(catalog: Catalog, db: sqlite3.Connection, asked: Query) -> tuple[str, tuple[Any, ...]]:
    """What ``asked`` chooses as a condition on ``activity a`` and ``sessions s``, each message once."""
    where, values = _spent(catalog, db, asked)
    return f"{where} AND {_COUNTS}", values


def _from(where: str, asked: Query) -> str:
    """The tables behind ``where``: over all days one row a session is enough."""
    return f"FROM {'activity' if asked.since or asked.until else 'once'} a{_sessions_join(where)}"


def _sessions_join(where: str) -> str:
    """The sessions, where ``where`` is about them."""
    return " JOIN sessions s ON s.n=a.session" if "s." in where else ""


def _said(catalog: Catalog, db: sqlite3.Connection, asked: Query) -> tuple[str, tuple[Any, ...]]:
    """What ``asked`` chooses as a condition on ``messages m`` and ``sessions s``."""
    catalog.add_rows(db)
    where, values = _without_days(catalog, db, asked)
    for sign, bound in ((">=", to_us(asked.since)), ("<", to_us(asked.until))):
        if bound is not None:
            where, values = f"{where} AND coalesce(m.time, s.last_active){sign}?", (*values, bound)
    return where, values


def _split(split: str | None) -> tuple[str, str]:
    """The column to split by, and the join it needs; tags by their folded names, ``""`` for none."""
    if split == "model":
        return f"CASE WHEN a.model='' THEN '{NO_MODEL}' ELSE a.model END", ""
    if split == "tag":
        tags = "LEFT JOIN names t ON t.kind='label' AND t.session=a.session"
        return "coalesce(t.name, '')", tags
    return "''", ""


def _spelling(catalog: Catalog) -> dict[str, str]:
    """Folded tag → the spelling a person sees; ``""`` → no tag."""
    return {**{records.tag_key(tag): tag for tag in catalog.tags()}, "": NO_TAG}


def _added(parts: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Rows of the same day and name as one; ``None`` is unknown and adds nothing."""
    found: dict[tuple[Any, Any], list[Any]] = {}
    for day, name, *sums in parts:
        if (known := found.get((day, name))) is not None:
            sums = list(map(usage.add, known, sums))
        found[day, name] = sums
    return [(*key, *sums) for key, sums in found.items()]


def _day_number(zone: tzinfo | None, days: Sequence[int]) -> str:
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
    cases = "".join(f"WHEN a.quarter>={quarter} THEN {offset} " for quarter, offset in reversed(changes))
    # Counted from the year 1, so that SQLite's division, which rounds towards zero, always rounds down.
    return f"(a.quarter + CASE {cases}ELSE {changes[0][1]} END + {96 * UNIX_DAY}) / 96"


def _days(db: sqlite3.Connection) -> list[int]:
    """The days since 1970 (UTC) with a message, and perhaps a few more."""
    day = f"(a.quarter + {96 * UNIX_DAY}) / 96"
    first, last = (day.replace("a.quarter", column) for column in ("first", "last"))
    found = db.execute(
        f"SELECT DISTINCT {first} FROM once WHERE first IS NOT NULL UNION "
        f"SELECT DISTINCT {last} FROM once WHERE last IS NOT NULL "
        f"UNION SELECT DISTINCT {day} FROM activity a WHERE session IN "
        f"(SELECT session FROM once WHERE {last}-{first}>1) ORDER BY 1"
    )
    return [number - UNIX_DAY for (number,) in found]


def _offset(zone: tzinfo | None, quarter: int) -> int:
    try:
        offset = (EPOCH + timedelta(microseconds=quarter * QUARTER_US)).astimezone(zone).utcoffset()
    except (OverflowError, ValueError):  # the first or the last day of the calendar
        return 0
    return 0 if offset is None else round(offset / timedelta(minutes=15))


def _root(session: str, parents: dict[str, str | None]) -> str:
    seen = {session}
    while (parent := parents.get(session)) is not None and parent in parents and parent not in seen:
        session = parent
        seen.add(parent)
    return session


def _frame(
    rows: Sequence[Sequence[Any]],
    columns: Sequence[str],
    *,
    whole: Sequence[str] = (),
    maybe: Sequence[str] = (),
    texts: Sequence[str] = (),
) -> pd.DataFrame:
    """``rows`` with the documented dtypes, also when there are none."""
    values = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    made: dict[str, Any] = {}
    for name, column in zip(columns, values, strict=True):
        if name in _TIME_COLUMNS:
            made[name] = pd.to_datetime(pd.array(column, dtype="Int64"), unit="us", utc=True)
        elif name in whole:
            made[name] = pd.array(column, dtype="int64")
        elif name in maybe:
            made[name] = pd.array(column, dtype="Int64")
        elif name in texts:
            made[name] = pd.array(column, dtype="string")
        else:
            made[name] = pd.Series(column, dtype=object)
    for prefix in ("", "own_"):  # where there was no answer, nothing was spent: known, and 0 (see ``usage.Totals``)
        if prefix + "answers" in made:
            nothing = (made[prefix + "answers"] == 0) & pd.isna(made[prefix + "total"])
            for name in filter(made.__contains__, (prefix + token for token in TOKENS)):
                made[name][pd.isna(made[name]) & nothing] = 0
    return pd.DataFrame(made, columns=list(columns))
