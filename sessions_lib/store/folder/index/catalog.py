"""The catalog of a folder: what the plain scan (``scan``) says, in the time it takes to look at file times.

One disposable SQLite file. Every question first compares the folder's files with what the catalog has seen (size, time,
inode) and reads what is new, so an answer is never older than the question. Equal to the plain scan in every answer:
with the catalog deleted, damaged, of another version, on a read-only disk or being built by another process it is made
anew or held in memory, which is slower and nothing else. A file rewritten in place with the same size, time and inode
is not noticed; ``rebuild`` reads everything again.

Several threads may share a catalog, and several processes a file. Does not write any session.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterable, Sequence
from datetime import date, tzinfo
from pathlib import Path
from typing import Any

from sessions_lib import query
from sessions_lib.prices import Spent
from sessions_lib.query import Query
from sessions_lib.store import family, tagging
from sessions_lib.store.folder.index import fulltext, pricing, search
from sessions_lib.store.folder.index.numbers import FolderNumbers
from sessions_lib.store.folder.index.rows import INFO, info_of, to_us
from sessions_lib.store.folder.index.upkeep import Progress, Upkeep
from sessions_lib.store.records import Hit, Page, SessionInfo

Infos = list[SessionInfo]  # the method ``list`` hides the type of that name inside the class
Hits = list[Hit]
Ids = list[str]

PAUSE_S = 0.02  # between batches of the text index, for others to ask in
ORDERS = {
    "last_active": "s.last_active",
    "title": "s.title COLLATE NOCASE",
    "created": "s.created",
    "turns": "s.turns",
    "messages": "s.messages",
    "tokens": "CASE WHEN s.answers THEN s.total ELSE 0 END",
    "own_tokens": "CASE WHEN s.own_answers THEN s.own_total ELSE 0 END",
    "cost": pricing.OWN_COST,
    "tool_calls": "s.calls",
    "errors": "s.errors",
    "size_bytes": "s.offset",
    "id": "s.id",
}


_shared: weakref.WeakValueDictionary[str, Catalog] = weakref.WeakValueDictionary()
_shared_lock = threading.Lock()


def of(folder: Path) -> Catalog:
    """The catalog of ``folder`` that everybody in this process shares."""
    key = os.path.abspath(folder)
    with _shared_lock:
        found = _shared.get(key)
        if found is None:
            found = _shared[key] = Catalog(Path(key))
        return found


class Catalog(Upkeep):
    """The answers about one folder's sessions; made when it is first asked."""

    def __init__(self, folder: Path) -> None:
        """The catalog of ``folder``; nothing is opened or made yet."""
        super().__init__(folder)
        self.numbers = FolderNumbers(self)
        self._vocabulary: fulltext.Vocabulary | None = None

    def close(self) -> None:
        """Close the file; the next question opens it again."""
        with self._lock:
            super().close()
            self._vocabulary = None

    # ------------------------------------------------------------ sessions

    def list(self, limit: int | None = None) -> Infos:
        """Every session, or the ``limit`` newest, newest first."""
        count = -1 if limit is None else limit
        return self.ask(lambda db: _infos(db, "ORDER BY s.last_active DESC, s.id LIMIT ?", (count,)))

    def info(self, session: str) -> SessionInfo | None:
        """One session's row, ``None`` if there is none."""
        found = self.ask(lambda db: _infos(db, "WHERE s.id=?", (session,)))
        return found[0] if found else None

    def infos(self, ids: Iterable[str]) -> dict[str, SessionInfo]:
        """The rows of the sessions ``ids`` that are there, in this order."""
        wanted = json.dumps(order := list(ids))
        rows = self.ask(lambda db: _infos(db, "WHERE s.id IN (SELECT value FROM json_each(?))", (wanted,)))
        found = {row.id: row for row in rows}
        return {session: found[session] for session in order if session in found}

    def lineage(self) -> dict[str, tuple[str, int]]:
        """Each fork's parent, and how many messages it copied."""
        wanted = "SELECT id, parent, inherited FROM sessions WHERE parent IS NOT NULL"
        rows = self.ask(lambda db: db.execute(wanted).fetchall())
        return {session: (parent, inherited) for session, parent, inherited in rows}

    def models(self) -> Ids:
        """Every model that worked on an answer, sorted."""
        wanted = "SELECT DISTINCT spelled FROM names WHERE kind='model'"
        return sorted(name for (name,) in self.ask(lambda db: db.execute(wanted).fetchall()))

    def costs(self, ids: Iterable[str]) -> dict[str, tuple[Spent, Spent]]:
        """What was spent in each of the sessions ``ids`` that are there, and what its copied start had cost."""

        def find(db: sqlite3.Connection) -> list[Any]:
            pricing.settle(db)
            chosen = "s.id IN (SELECT value FROM json_each(?))"
            tables = f"FROM sessions s LEFT JOIN activity a ON a.session=s.n WHERE {chosen} GROUP BY s.id"
            return db.execute(
                f"SELECT s.id, {pricing.OWN_MONEY}, {pricing.COPIED_MONEY} {tables}", (json.dumps(list(ids)),)
            ).fetchall()

        return {one[0]: (pricing.spent(*one[1:4]), pricing.spent(*one[4:])) for one in self.ask(find)}

    def tags(self) -> dict[str, int]:
        """How many sessions wear each tag, the most worn first; tags that differ by case only are one."""
        counted = "SELECT min(spelled), count(*) FROM names WHERE kind='label' GROUP BY name ORDER BY 2 DESC, name"
        found = self.ask(lambda db: db.execute(counted).fetchall())
        return dict(found)

    def find_by_tag(self, tag: str) -> Infos:
        """The sessions that wear ``tag``, upper and lower case alike, newest first."""
        wanted = tagging.tag_key(tag)
        tagged = "s.n IN (SELECT session FROM names WHERE kind='label' AND name=?)"
        return self.ask(lambda db: _infos(db, f"WHERE {tagged} ORDER BY s.last_active DESC, s.id", (wanted,)))

    def find_by_date(self, day: date, zone: tzinfo | None = None) -> Infos:
        """The sessions with a message of ``day`` in ``zone`` (default: this machine's), newest first."""
        since, until = query.day_bounds(day, zone)
        clause, values = _active_between(to_us(since), to_us(until))
        return self.ask(lambda db: _infos(db, f"WHERE {clause} ORDER BY s.last_active DESC, s.id", values))

    def page(
        self,
        asked: Query,
        order: str = "last_active",
        *,
        descending: bool = True,
        offset: int = 0,
        limit: int = 50,
    ) -> Page:
        """One page of the sessions that ``asked`` finds (a blank query: all), in one of ``ORDERS`` or ``family``.

        ``family`` puts forks under their parents, depth first, the family with the newest activity first.
        """

        def find(db: sqlite3.Connection) -> Page:
            clause, values = self.matching(db, asked)
            if order == "cost":
                pricing.settle(db)
            if order == "family":
                return _family_page(db, clause, values, offset, limit)
            total = db.execute(f"SELECT count(*) FROM sessions s WHERE {clause}", values).fetchone()[0]
            by = f"{ORDERS[order]} {'DESC' if descending else 'ASC'} NULLS LAST, s.id"
            rows = _infos(db, f"WHERE {clause} ORDER BY {by} LIMIT ? OFFSET ?", (*values, limit, offset))
            return Page(rows, [0] * len(rows), total)

        return self.ask(find)

    def ids(self, asked: Query) -> Ids:
        """The ids of all sessions that ``asked`` finds (a blank query: all), newest first."""

        def find(db: sqlite3.Connection) -> Ids:
            clause, values = self.matching(db, asked)
            found = db.execute(f"SELECT s.id FROM sessions s WHERE {clause} ORDER BY s.last_active DESC, s.id", values)
            return [session for (session,) in found]

        return self.ask(find)

    def matching(self, db: sqlite3.Connection, asked: Query) -> tuple[str, tuple[Any, ...]]:
        """The sessions ``asked`` finds as a condition on ``sessions s`` and its values, inside ``ask`` only."""
        if asked.cost:
            pricing.settle(db)
        if not asked.asks_about_messages:
            return search.session_filter(asked)
        if not asked.needles and not asked.roles:
            clause, values = search.session_filter(asked)
            active, bounds = _active_between(to_us(asked.since), to_us(asked.until))
            return f"{clause} AND {active}", (*values, *bounds)
        found = dict.fromkeys(hit.session for hit in self._search(db, asked, None, first_only=True))
        db.execute("CREATE TEMP TABLE IF NOT EXISTS found(id TEXT PRIMARY KEY) WITHOUT ROWID")
        db.execute("DELETE FROM temp.found")
        db.executemany("INSERT INTO temp.found VALUES(?)", [(session,) for session in found])
        return "s.id IN (SELECT id FROM temp.found)", ()

    # ------------------------------------------------------------ search

    def search(self, asked: Query, limit: int | None = None) -> Hits:
        """What ``asked`` finds, as ``listing.search`` does."""
        if asked.is_blank:
            return []
        return self.ask(lambda db: self._search(db, asked, limit))

    def _search(self, db: sqlite3.Connection, asked: Query, limit: int | None, first_only: bool = False) -> Hits:
        if asked.cost:
            pricing.settle(db)
        if asked.needles:
            self._index_some(db)
        return search.Search(db, self.folder, asked, self._words(db), limit, first_only).hits()

    def _words(self, db: sqlite3.Connection) -> fulltext.Vocabulary:
        if self._vocabulary is None or not self._vocabulary.is_current(db):
            self._vocabulary = fulltext.Vocabulary.load(db, self._vocabulary)
        return self._vocabulary

    def _index_some(self, db: sqlite3.Connection) -> None:
        """Index what is waiting if that is little, else a part of it: a search waits a second at most."""
        if self.is_in_memory or self._behind:  # who reads behind this catalog indexes, too
            return
        with contextlib.suppress(sqlite3.OperationalError):  # locked: what is not indexed is scanned
            fulltext.index(db, self.folder, seconds=1.0)

    def unindexed_bytes(self) -> int:
        """How many bytes of sessions wait for the text index: a search scans these files instead."""
        return self.ask(fulltext.unindexed_bytes)

    def index(
        self, seconds: float | None = None, on_progress: Progress | None = None, stop: threading.Event | None = None
    ) -> None:
        """Bring the text index up to date, for at most ``seconds``; ``on_progress(bytes done, bytes to do)``.

        The lock is free between batches: the pages go on answering while a thread builds the index.
        """

        def some(db: sqlite3.Connection) -> tuple[int, int]:
            if self.is_in_memory:
                return 0, 0
            before = fulltext.unindexed_bytes(db)
            fulltext.index(db, self.folder, seconds=1.0)
            return before, fulltext.unindexed_bytes(db)

        until = None if seconds is None else time.monotonic() + seconds
        total = 0
        self.refresh()
        while not (stop and stop.is_set()) and (until is None or time.monotonic() < until):
            with self._lock:
                # The folder was looked at once, above: doing so for every half second would double the work.
                is_fixed, self._is_fixed = self._is_fixed, True
                try:
                    before, left = self.ask(some)
                finally:
                    self._is_fixed = is_fixed
            total = total or before
            if on_progress and total:
                on_progress(max(0, total - left), total)
            if not left:
                return
            time.sleep(PAUSE_S)  # a lock goes to whoever asks next, not to who has waited


def _infos(db: sqlite3.Connection, rest: str, values: Sequence[Any] = ()) -> list[SessionInfo]:
    return [info_of(found) for found in db.execute(f"SELECT {INFO} FROM sessions s {rest}", values)]


def _active_between(since: int | None, until: int | None) -> tuple[str, tuple[Any, ...]]:
    """Sessions with a message in the half-open time, or, without messages, last active in it."""
    low = -(1 << 62) if since is None else since
    high = 1 << 62 if until is None else until
    active, bounds = search.active_between(since, until)
    return f"(CASE WHEN s.messages=0 THEN s.last_active>=? AND s.last_active<? ELSE {active} END)", (low, high, *bounds)


def _family_page(db: sqlite3.Connection, clause: str, values: Sequence[Any], offset: int, limit: int) -> Page:
    total = db.execute(f"SELECT count(*) FROM sessions s WHERE {clause}", values).fetchone()[0]
    newest = "ORDER BY s.last_active DESC, s.id"
    lineage = db.execute(
        f"SELECT s.id, s.parent FROM sessions s WHERE {clause} AND s.parent IS NOT NULL {newest}", values
    ).fetchall()
    parents = json.dumps(sorted({parent for _, parent in lineage}))
    wanted = f"SELECT s.id FROM sessions s WHERE {clause} AND s.id IN (SELECT value FROM json_each(?))"
    here = {parent for (parent,) in db.execute(wanted, (*values, parents))}
    # Nearly all sessions are no family: the listing is walked only as far as the page reaches.
    listed = (session for (session,) in db.execute(f"SELECT s.id FROM sessions s WHERE {clause} {newest}", values))
    ordered = family.tree(listed, [pair for pair in lineage if pair[1] in here])
    shown = list(itertools.islice(ordered, offset, offset + limit))
    marks = ", ".join("?" * len(shown))
    rows = {row.id: row for row in _infos(db, f"WHERE s.id IN ({marks})", [session for session, _ in shown])}
    return Page([rows[session] for session, _ in shown], [depth for _, depth in shown], total)
