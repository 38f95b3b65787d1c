"""Search with the catalog: the text index gives candidates, the files give the proof.

The index is SQLite's FTS5 without stored text and without positions. It knows whole words; a query means parts of words
too, so the list of all words is kept beside it and a part is looked for as every word that holds it. Chinese, Japanese
and Korean runs, which have no blanks, are indexed as overlapping pairs of characters. What the index says is only
"perhaps here": every hit is read from the file, decoded and matched by ``query``, so nothing false is ever shown; and
because both sides are folded and cut by the same functions, nothing true is missed.

Sessions (or the newest of their messages) that are not in the index yet are scanned in their files, with the same
answer. Deleted texts leave no trace a search could find; their words stay in the index until a fifth of it is dead or
the catalog is rebuilt.

Does not refresh the catalog.
"""

from __future__ import annotations

import itertools
import os
import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import add
from pathlib import Path
from typing import Any

from sessions_lib import query
from sessions_lib.errors import SessionError
from sessions_lib.messages import content
from sessions_lib.query import Query
from sessions_lib.store import plain, records
from sessions_lib.store.folder import disk, jsonl, scan
from sessions_lib.store.folder.index import prefilter, pricing
from sessions_lib.store.folder.index.rows import INFO, from_us, info_of, to_us
from sessions_lib.store.folder.index.schema import transaction
from sessions_lib.store.folder.index.sums import DAY_0_US, QUARTER_US
from sessions_lib.store.records import Hit

SMALL_BYTES = 4_000_000  # up to here new words are collected in Python, beyond it they are read back from the index
BATCH_BYTES = 32_000_000
MAX_TERMS = 1_000  # a part of a word that more words hold says nothing
FREQUENT = 500  # candidates beyond which the newest few are looked for session by session
MAX_VALUES = 30_000  # that SQLite takes in one statement
MAX_LISTS = 200  # of words, which few messages added each
REBUILD_FROM_DEAD = 20_000

_CJK = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3040-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_BETWEEN = "\u0080-\u00bf\u1680\u2000-\u206f\u3000-\u3004\u3008-\u3020\u3030"
_RUN = re.compile(f"[{_CJK}]+")
_NOT_ASCII = re.compile(f"[{_CJK}]+|[{_BETWEEN}]+")
_PIECE = re.compile(f"(?P<cjk>[{_CJK}]+)|(?P<word>[^\x00-/:-@\\[-`{{-\x7f{_BETWEEN}{_CJK}]+)")
_TOKEN = re.compile(f"[^\x00-/:-@\\[-`{{-\x7f{_BETWEEN}]+")


def index_text(folded: str) -> str:
    """Folded text as it goes into the index: CJK runs as pairs, blanks for punctuation beyond ASCII."""
    if folded.isascii():
        return folded.replace("\0", " ")
    return _NOT_ASCII.sub(_spaced, folded).replace("\0", " ")


def _spaced(found: re.Match[str]) -> str:
    run = found[0]
    if not _RUN.match(run):
        return " "
    return f" {' '.join(map(add, run, run[1:]))} {run[-1]} "


@dataclass(slots=True)
class Vocabulary:
    """All words in the index, as texts with a line a word, to find those that hold a part."""

    lists: list[str]
    last: int  # the newest of the stored lists that is in it
    made: int  # how often the stored lists were made anew
    state: tuple[Any, ...]

    @classmethod
    def load(cls, db: sqlite3.Connection, before: Vocabulary | None = None) -> Vocabulary:
        """The words as the catalog has them now; of ``before`` what is still right is taken over."""
        made = int(_fact(db, "terms_made"))
        kept = before if before and before.made == made else cls([], 0, made, ())
        found = db.execute("SELECT list, terms FROM terms WHERE list>? ORDER BY list", (kept.last,)).fetchall()
        lists = [*kept.lists, *(f"\n{terms}\n" for _, terms in found)]
        return cls(lists, found[-1][0] if found else kept.last, made, _state(db))

    def is_current(self, db: sqlite3.Connection) -> bool:
        """True if nothing was indexed since."""
        return self.state == _state(db)

    def holding(self, part: str, *, at_end: bool) -> list[str] | None:
        """The words that hold ``part`` (``at_end``: end with it); ``None`` if they are too many."""
        wanted, found = part + ("\n" if at_end else ""), set()
        for terms in self.lists:
            at = 0
            while (at := terms.find(wanted, at)) >= 0:
                start, end = terms.rfind("\n", 0, at) + 1, terms.find("\n", at)
                found.add(terms[start:end])
                if len(found) > MAX_TERMS:
                    return None
                at = end
        return sorted(found)

    def expression(self, asked: Query) -> str | None:
        """The FTS5 expression that every matching message satisfies; ``None`` if the words say nothing."""
        parts = [part for needle in asked.needles for part in self._parts(needle)]
        return " AND ".join(dict.fromkeys(parts)) or None

    def _parts(self, needle: str) -> Iterator[str]:
        for found in _PIECE.finditer(needle):
            piece = found[0]
            starts, ends = found.start() == 0, found.end() == len(needle)
            if found["cjk"]:
                yield from (
                    (quoted(a + b) for a, b in itertools.pairwise(piece)) if len(piece) > 1 else [quoted(piece) + "*"]
                )
            elif not starts:
                yield quoted(piece) + ("*" if ends else "")
            elif (terms := self.holding(piece, at_end=not ends)) is not None:
                # No word holds it: an expression that nothing satisfies.
                yield f"({' OR '.join(map(quoted, terms))})" if terms else quoted(piece)


def quoted(term: str) -> str:
    """``term`` as a string of FTS5."""
    return '"' + term.replace('"', '""') + '"'


def _fact(db: sqlite3.Connection, name: str) -> Any:
    found = db.execute("SELECT value FROM facts WHERE name=?", (name,)).fetchone()
    return found[0]


def _state(db: sqlite3.Connection) -> tuple[Any, ...]:
    return tuple(
        db.execute("SELECT name, value FROM facts WHERE name IN ('whole_row', 'bulk', 'indexings') ORDER BY name")
    )


# ---------------------------------------------------------------- indexing


# SQLite would rather walk all sessions by time.
_WAITING = "FROM sessions INDEXED BY sessions_waiting WHERE indexed < messages"


def unindexed_bytes(db: sqlite3.Connection) -> int:
    """About how many bytes of messages wait to be indexed; at least 1 while anything does."""
    waiting = db.execute(f"SELECT count(*), total(offset * (messages - indexed) / messages) {_WAITING}").fetchone()
    return max(int(waiting[1]), int(waiting[0]), int(bool(_fact(db, "bulk"))))


def index(db: sqlite3.Connection, folder: Path, *, seconds: float) -> None:
    """Index what is waiting, newest sessions first, and stop after about ``seconds``."""
    until = time.monotonic() + seconds
    if (waiting := unindexed_bytes(db)) == 0:
        return
    _clear_if_dead(db)
    is_bulk = bool(_fact(db, "bulk")) or waiting > SMALL_BYTES
    while time.monotonic() < until:
        with transaction(db):
            if is_bulk and not _fact(db, "bulk"):
                db.execute("UPDATE facts SET value=1 WHERE name='bulk'")
                _merge_as_it_grows(db, False)
            count, terms = _index_batch(db, folder, until, is_bulk)
            # What could not be read now goes on waiting: a search scans it.
            is_done = not count or not db.execute(f"SELECT 1 {_WAITING} LIMIT 1").fetchone()
            if not is_bulk:
                _add_terms(db, terms)
            elif is_done:
                _read_terms(db)
        if is_done:
            return


def _clear_if_dead(db: sqlite3.Connection) -> None:
    dead, made = _fact(db, "dead_rows"), _fact(db, "next_row")
    if dead < REBUILD_FROM_DEAD or dead * 5 < made:
        return
    with transaction(db):
        db.execute("INSERT INTO said(said) VALUES('delete-all')")
        _merge_as_it_grows(db, True)
        db.execute("UPDATE sessions SET indexed=0")
        db.execute("UPDATE facts SET value=0 WHERE name IN ('dead_rows', 'whole_row', 'bulk')")
        _store_terms(db, set())


def _index_batch(db: sqlite3.Connection, folder: Path, until: float, is_bulk: bool) -> tuple[int, set[str]]:
    """Index sessions until the batch is full or the time is up: how many, and the new words unless read back later."""
    terms: set[str] = set()
    size = done = 0
    waiting = db.execute(f"SELECT n, id, messages, indexed, offset {_WAITING} ORDER BY last_active DESC, id").fetchall()
    for n, session, count, indexed, offset in waiting:
        texts = _texts(db, folder, n, session, indexed)
        if texts is None:
            continue
        db.executemany("INSERT INTO said(rowid, text) VALUES(?, ?)", texts)
        db.execute("UPDATE sessions SET indexed=? WHERE n=?", (count, n))
        if not is_bulk:
            terms.update(term for _, text in texts for term in _TOKEN.findall(text))
        size, done = size + offset * (count - indexed) // count, done + 1
        if size > BATCH_BYTES or time.monotonic() > until:
            break
    return done, terms


def _texts(db: sqlite3.Connection, folder: Path, n: int, session: str, indexed: int) -> list[tuple[int, str]] | None:
    """(row, text) of the messages of a session from number ``indexed`` on; ``None`` if they cannot be read now."""
    rows = db.execute(
        "SELECT row, number, start, place FROM messages WHERE session=? AND number>=? ORDER BY number", (n, indexed)
    ).fetchall()
    if not rows:
        return None
    try:
        said = jsonl.read(folder / f"{session}{scan.MESSAGES}", rows[0][2]).messages[rows[0][3] :]
    except (OSError, SessionError):
        return None
    return [
        (row[0], index_text(query.fold(text)))
        for row, message in zip(rows, said, strict=False)
        if (text := content.searchable(message))
    ]


def _add_terms(db: sqlite3.Connection, terms: set[str]) -> None:
    """Keep the words of a few messages as a list of their own, and all rows indexed so far become searchable."""
    if terms := terms - {""}:
        db.execute("INSERT INTO terms(terms) VALUES(?)", ("\n".join(sorted(terms)),))
        first, last = db.execute("SELECT min(list), max(list) FROM terms").fetchone()
        if last - first > MAX_LISTS:
            _join_terms(db, first)
    _now_searchable(db)


def _join_terms(db: sqlite3.Connection, first: int) -> None:
    """Make one list of the short ones; of all, once the short ones are no longer short beside the first."""
    lists = dict(db.execute("SELECT list, terms FROM terms"))
    long = lists.pop(first)
    words = {word for terms in lists.values() for word in terms.split("\n")}
    if sum(map(len, words)) * 4 > len(long):
        _store_terms(db, words | set(long.split("\n")))
    else:
        _store_terms(db, set(long.split("\n")), words)


def _read_terms(db: sqlite3.Connection) -> None:
    """Store the list of all words as the index has them, after making it as small as it gets."""
    db.execute("INSERT INTO said(said) VALUES('optimize')")
    _merge_as_it_grows(db, True)
    _store_terms(db, {term for (term,) in db.execute("SELECT term FROM said_terms")})
    db.execute("UPDATE facts SET value=0 WHERE name='bulk'")
    _now_searchable(db)


def _merge_as_it_grows(db: sqlite3.Connection, does: bool) -> None:
    """While very much is indexed, merging the index again and again costs more than doing it once, at the end."""
    db.execute("INSERT INTO said(said, rank) VALUES('automerge', ?)", (4 if does else 0,))
    db.execute("INSERT INTO said(said, rank) VALUES('crisismerge', ?)", (16 if does else 1_000,))


def _store_terms(db: sqlite3.Connection, *lists: set[str]) -> None:
    db.execute("DELETE FROM terms")
    for words in lists:
        db.execute("INSERT INTO terms(terms) VALUES(?)", ("\n".join(sorted(words - {""})),))
    db.execute("UPDATE facts SET value=value+1 WHERE name='terms_made'")


def _now_searchable(db: sqlite3.Connection) -> None:
    db.execute("UPDATE facts SET value=(SELECT value - 1 FROM facts WHERE name='next_row') WHERE name='whole_row'")
    db.execute("UPDATE facts SET value=value+1 WHERE name='indexings'")


# ---------------------------------------------------------------- searching


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
    words: Vocabulary
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
        whole = _fact(self.db, "whole_row")
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
        piece = query.Snippet("") if self.first_only else query.snippet(text, self.asked)
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
