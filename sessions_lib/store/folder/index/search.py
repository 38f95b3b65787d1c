"""Search with the catalog: the text index gives candidates, the files give the proof.

Every hit is read from the file, decoded and matched by ``query``, so nothing false is ever shown.

Sessions (or the newest of their messages) that are not in the text index yet are scanned in their files, with the same
answer. What ``prefilter`` rules out is not decoded: of 10,000 sessions (908 MB, no index yet) a word that is nowhere
takes 2.5 s instead of 8 s, and of 2,000 (193 MB) 0.5 s instead of 1.4 s.

Does not refresh the catalog.
"""

from __future__ import annotations

import itertools
import os
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sessions_lib import query, snippets
from sessions_lib.errors import SessionError
from sessions_lib.messages import content
from sessions_lib.query import Query
from sessions_lib.store import plain, records
from sessions_lib.store.folder import disk, jsonl, scan
from sessions_lib.store.folder.index import fulltext, prefilter, pricing
from sessions_lib.store.folder.index.rows import INFO, from_us, info_of, to_us
from sessions_lib.store.folder.index.sums import DAY_0_US, QUARTER_US
from sessions_lib.store.records import Hit

FREQUENT = 500  # candidates beyond which the newest few are looked for session by session
MAX_VALUES = 30_000  # that SQLite takes in one statement


def session_filter(asked: Query) -> tuple[str, tuple[Any, ...]]:
    """The part of a query that is about sessions, as a condition on ``sessions s``."""
    parts, values = ["1"], list[Any]()

    def named(kind: str, wanted: Sequence[str], negated: str = "") -> None:
        tests = []
        values.append(kind)
        for name in wanted:
            if len(name) > 1 and name.endswith("*"):
                tests.append("substr(name, 1, ?)=?")
                values.extend((len(name) - 1, name[:-1]))
            else:
                tests.append("name=?")
                values.append(name)
        parts.append(f"s.n {negated}IN (SELECT session FROM names WHERE kind=? AND ({' OR '.join(tests)}))")

    for tag in asked.tags:
        named("tag", [tag])
    for tool in asked.tools:
        named("tool", [tool])
    if asked.any_tags:
        named("tag", asked.any_tags)
    if asked.not_tags:
        named("tag", asked.not_tags, "NOT ")
    if asked.models:
        named("model", asked.models)
    if asked.verdicts:
        named("verdict", asked.verdicts)
    claims = {
        "s.tags='[]'": asked.untagged,
        "s.parent IS NOT NULL": asked.is_fork,
        "s.parent IS NULL": asked.not_fork,
        "s.errors>0": asked.has_error,
        "(s.damaged>0 OR s.fault IS NOT NULL)": asked.has_damage,
    }
    parts += [clause for clause, is_asked in claims.items() if is_asked]
    bounds, limits = pricing.condition(asked.cost)
    parts += bounds
    values += limits
    return " AND ".join(parts), tuple(values)


def active_between(since: int | None, until: int | None) -> tuple[str, tuple[Any, ...]]:
    """Sessions ``s`` with a message in the half-open time, whose ends are those of quarters of an hour."""
    low = -1 if since is None else (since + DAY_0_US) // QUARTER_US
    high = 1 << 62 if until is None else (until + DAY_0_US) // QUARTER_US
    return "EXISTS(SELECT 1 FROM activity a WHERE a.session=s.n AND a.quarter>=? AND a.quarter<?)", (low, high)


def message_filter(db: sqlite3.Connection, asked: Query) -> tuple[str, tuple[Any, ...]]:
    """The roles and days of a query as a condition on ``messages m`` and ``sessions s``."""
    parts, values = ["1"], list[Any]()
    if asked.roles:
        roles = [
            role for (role,) in db.execute("SELECT DISTINCT role FROM messages") if query.role_matches(asked, role)
        ]
        parts.append(f"m.role IN ({', '.join('?' * len(roles))})")
        values += roles
    for sign, bound in ((">=", asked.since), ("<", asked.until)):
        if bound is not None:
            parts.append(f"coalesce(m.time, s.last_active){sign}?")
            values.append(to_us(bound))
    return " AND ".join(parts), tuple(values)


_CANDIDATE = "s.id, m.number, m.start, m.length, m.place, coalesce(m.time, s.last_active), m.turn"
_NEWEST = "coalesce(m.time, s.last_active) DESC, s.id, m.number DESC"


@dataclass(slots=True)
class Search:
    """One search on an open, fresh catalog. ``first_only`` wants the sessions only: one hit each, without snippets."""

    db: sqlite3.Connection
    folder: Path
    asked: Query
    words: fulltext.Vocabulary
    limit: int | None = None
    first_only: bool = False

    def hits(self) -> list[Hit]:
        """What is found, in the order of ``scan``, at most ``limit``."""
        found = self._titles()
        if self.asked.needles:
            found += self._said()
        elif self.asked.asks_about_messages:
            found += self._without_words()
        return records.hits_newest_first(found)[: self.limit]

    def _titles(self) -> list[Hit]:
        asked = self.asked
        if asked.roles or (asked.asks_about_messages and not asked.needles):
            return []
        clause, values = session_filter(asked)
        if asked.needles:
            # A scan of the index on titles, a hundredth of the table.
            held = " AND instr(title_text, ?)>0" * len(asked.needles)
            clause = f"{clause} AND s.n IN (SELECT n FROM sessions WHERE title_text<>''{held})"
            values = (*values, *asked.needles)
        if asked.since is not None or asked.until is not None:
            active, bounds = active_between(to_us(asked.since), to_us(asked.until))
            clause, values = f"{clause} AND {active}", (*values, *bounds)
        found = self.db.execute(
            f"SELECT {INFO} FROM sessions s WHERE {clause} ORDER BY s.last_active DESC, s.id LIMIT ?",
            (*values, -1 if self.limit is None else self.limit),
        )
        without_days = replace(asked, since=None, until=None)
        return [hit for row in found if (hit := plain.title_hit(without_days, info_of(row), ()))]

    def _without_words(self) -> list[Hit]:
        """Roles and days only: the newest message of each session that passes."""
        about_sessions, values = session_filter(self.asked)
        about_messages, more = message_filter(self.db, self.asked)
        found = self.db.execute(
            f"SELECT {_CANDIDATE}, max(m.number) FROM messages m JOIN sessions s ON s.n=m.session "
            f"WHERE {about_sessions} AND {about_messages} GROUP BY s.n ORDER BY {_NEWEST} LIMIT ?",
            (*values, *more, -1 if self.limit is None else self.limit),
        )
        with _Files(self.folder) as files:
            return [hit for row in found if (hit := self._prove(files, row[:7]))]

    def _said(self) -> list[Hit]:
        expression = self.words.expression(self.asked)
        about_sessions, values = session_filter(self.asked)
        whole = fulltext.fact(self.db, "whole_row")
        # Two small indexes know which sessions the text index does not answer for.
        waiting = "s.n IN (SELECT n FROM sessions WHERE indexed<messages UNION SELECT n FROM sessions WHERE last_row>?)"
        if expression is None:  # punctuation alone, or a part that stands in nearly every word
            return self._scanned(about_sessions, values)
        found = self._indexed(expression, f"{about_sessions} AND NOT {waiting}", (*values, whole))
        return found + self._scanned(f"{about_sessions} AND {waiting}", (*values, whole))

    def _indexed(self, expression: str, about_sessions: str, values: tuple[Any, ...]) -> list[Hit]:
        rows = [row for (row,) in self.db.execute("SELECT rowid FROM said WHERE said MATCH ?", (expression,))]
        if self.limit is not None and len(rows) > FREQUENT:
            return self._newest_of(set(rows), about_sessions, values)
        about_messages, more = message_filter(self.db, self.asked)
        found: list[Hit] = []
        seen: set[str] = set()
        with _Files(self.folder) as files:
            for part in range(0, len(rows), MAX_VALUES):
                chosen = rows[part : part + MAX_VALUES]
                candidates = self.db.execute(
                    f"SELECT {_CANDIDATE} FROM messages m JOIN sessions s ON s.n=m.session "
                    f"WHERE m.row IN ({', '.join('?' * len(chosen))}) AND {about_sessions} AND {about_messages} "
                    f"ORDER BY {_NEWEST}",
                    (*chosen, *values, *more),
                )
                for row in candidates:
                    if self.first_only and row[0] in seen:
                        continue
                    if (hit := self._prove(files, row)) is not None:
                        found.append(hit)
                        seen.add(row[0])
        return found

    def _newest_of(self, rows: set[int], about_sessions: str, values: tuple[Any, ...]) -> list[Hit]:
        """The newest hits among very many candidates: session by session, until no other can have a newer one."""
        about_messages, more = message_filter(self.db, self.asked)
        sessions = self.db.execute(
            f"SELECT s.n, s.newest FROM sessions s WHERE {about_sessions} ORDER BY s.newest DESC", values
        ).fetchall()
        found: list[Hit] = []
        with _Files(self.folder) as files:
            for session, newest in sessions:
                if self._is_enough(found, newest):
                    break
                candidates = self.db.execute(
                    f"SELECT {_CANDIDATE}, m.row FROM messages m JOIN sessions s ON s.n=m.session "
                    f"WHERE m.session=? AND {about_messages} ORDER BY {_NEWEST}",
                    (session, *more),
                )
                chosen = (row[:7] for row in candidates if row[7] in rows)
                proved = (hit for row in chosen if (hit := self._prove(files, row)))
                found += itertools.islice(proved, self.limit)
        return found

    def _is_enough(self, found: list[Hit], newest: int | None) -> bool:
        """True if the limit is reached, and a session whose newest message is of ``newest`` can have no newer hit."""
        if self.limit is None or len(found) < self.limit:
            return False
        found[:] = records.hits_newest_first(found)[: self.limit]
        last = to_us(found[-1].when) if found else None
        return last is not None and newest is not None and newest < last

    def _prove(self, files: _Files, row: Sequence[Any]) -> Hit | None:
        """The hit for a candidate, if the message in the file matches."""
        session, number, start, length, place, when, turn = row
        message = files.message(session, start, length, place)
        if message is None:
            return None
        text = content.searchable(message)
        if self.asked.needles and not query.text_matches(self.asked, text):
            return None
        piece = snippets.Snippet("") if self.first_only else snippets.snippet(text, self.asked)
        return Hit(session, number, piece.text, str(message.get("role")), from_us(when), piece.marks, max(1, turn))

    def _scanned(self, about_sessions: str, values: tuple[Any, ...]) -> list[Hit]:
        """The hits in sessions that the index does not answer for, newest sessions first."""
        sessions = self.db.execute(
            f"SELECT s.id, s.newest FROM sessions s WHERE {about_sessions} AND s.messages>0 ORDER BY s.newest DESC",
            values,
        ).fetchall()
        anchors = prefilter.anchors(self.asked.needles)
        found: list[Hit] = []
        for session, newest in sessions:
            if self._is_enough(found, newest):
                break
            if prefilter.may_hold(self.folder / f"{session}{scan.MESSAGES}", anchors):
                contents = scan.read(self.folder, session)
                found += [hit for hit in plain.hits_in(self.asked, contents) if hit.message is not None]
        return found


class _Files:
    """Messages of many sessions by their place in the file; the last few files stay open."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.open: dict[str, int] = {}

    def __enter__(self) -> _Files:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self.open.values():
            os.close(descriptor)

    def message(self, session: str, start: int, length: int, place: int) -> content.Message | None:
        """The message whose lines stand there, or ``None`` if there is none any more."""
        try:
            raw = os.pread(self._descriptor(session), length, start)
        except (OSError, SessionError):
            return None
        records: list[content.Message] = []
        for line in raw.split(b"\n"):
            parsed = jsonl.parse_line(line, 1, start)
            records += parsed.records if parsed else []
        return records[place] if place < len(records) else None

    def _descriptor(self, session: str) -> int:
        if session not in self.open:
            if len(self.open) >= 32:
                os.close(self.open.pop(next(iter(self.open))))
            self.open[session] = disk.open_to_read(self.folder / f"{session}{scan.MESSAGES}")
        return self.open[session]
