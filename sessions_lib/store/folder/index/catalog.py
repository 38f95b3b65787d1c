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
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, tzinfo
from pathlib import Path
from typing import Any, TypeVar

from sessions_lib import names, query
from sessions_lib.errors import StorageError
from sessions_lib.messages import encoding
from sessions_lib.prices import Spent
from sessions_lib.query import Query
from sessions_lib.store import family, records
from sessions_lib.store.folder import scan
from sessions_lib.store.folder.index import fulltext, pricing, schema, sums
from sessions_lib.store.folder.index import rows as catalog_rows
from sessions_lib.store.folder.index.numbers import FolderNumbers
from sessions_lib.store.folder.index.rows import INFO, INODE, Stamp, info_of, to_us
from sessions_lib.store.folder.index.schema import transaction
from sessions_lib.store.folder.watch import Watch
from sessions_lib.store.records import Hit, Page, SessionInfo

Files = dict[str, Stamp]
Infos = list[SessionInfo]  # the method ``list`` hides the type of that name inside the class
Hits = list[Hit]
Ids = list[str]
Progress = Callable[[int, int], None]

T = TypeVar("T")

RETRY_S = 60.0  # after which a catalog that had to live in memory looks for its file again
PAUSE_S = 0.02  # between batches of the text index, for others to ask in
BATCH = 64  # sessions a transaction: another process waits for one at most
SNAPSHOT_AFTER = 200  # changed sessions after which the file states are stored as one value again
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


class Catalog:
    """The catalog of one folder; made when it is first asked."""

    def __init__(self, folder: Path) -> None:
        """The catalog of ``folder``; nothing is opened or made yet."""
        self.folder = folder
        self.numbers = FolderNumbers(self)
        self._lock = threading.RLock()
        self._db: sqlite3.Connection | None = None
        self._path: Path | None = None
        self._inode = 0
        self._retry_at = 0.0
        self._is_fixed = False
        self._behind = 0  # how many ask for what is known already
        self._watch: Watch | None = None
        self._is_whole = False  # True once all files were looked at while they were watched
        self._touched: set[str] = set()
        self._known: Files = {}
        self._seen = 0  # the change up to which _known is right
        self._vocabulary: fulltext.Vocabulary | None = None

    @property
    def is_in_memory(self) -> bool:
        """True if no file can hold the catalog: it is made again in every process."""
        return self._db is not None and self._path is None

    def close(self) -> None:
        """Close the file; the next question opens it again."""
        with self._lock:
            if self._db is not None:
                self._db.close()
            self._db, self._known, self._seen, self._vocabulary = None, {}, 0, None
            self._is_whole = False

    # ------------------------------------------------------------ up to date

    def ask(self, question: Callable[[sqlite3.Connection], T], on_progress: Progress | None = None) -> T:
        """The answer of ``question`` to the database, up to date. ``question`` only reads.

        Whatever SQLite says on the way costs a new catalog, never the answer.
        """
        with self._lock:
            for _ in range(2):
                try:
                    db = self._open()
                    if not self._is_fixed and not self._behind:
                        self._refresh(db, on_progress)
                    return question(db)
                except sqlite3.OperationalError:
                    break  # locked or unwritable: its file may be fine and somebody else's
                except sqlite3.DatabaseError:
                    self._throw_away()
            self.close()
            self._db, self._path = schema.in_memory(), None
            self._retry_at = time.monotonic() + RETRY_S
            self._refresh(self._db, on_progress)
            return question(self._db)

    @contextlib.contextmanager
    def at_one_moment(self, on_progress: Progress | None = None) -> Iterator[None]:
        """Inside, every question of this thread is answered as of one look at the folder; others wait meanwhile.

        For a page that asks many: its numbers fit together, and the folder is looked at once.
        """
        with self._lock:
            self.refresh(on_progress)
            before, self._is_fixed = self._is_fixed, True
            try:
                yield
            finally:
                self._is_fixed = before

    @contextlib.contextmanager
    def as_known(self) -> Iterator[None]:
        """Until it ends, every question is answered from what was read so far, and nothing new is read.

        For a server that reads a large folder behind its pages, with another catalog of the same folder.
        """
        with self._lock:
            self._behind += 1
        try:
            yield
        finally:
            with self._lock:
                self._behind -= 1

    def watch(self) -> None:
        """From now on look only at files that the system says were touched, where it says so: for a server."""
        with self._lock:
            self._watch = self._watch or Watch(self.folder)

    def waiting(self) -> int:
        """How many sessions have files that are not as the catalog knows them; nothing is read."""
        with self._lock:
            before, self._is_fixed = self._is_fixed, True
            try:
                self.ask(self._learn)
            finally:
                self._is_fixed = before
            return len(self._differing())

    def _throw_away(self) -> None:
        path = self._path
        self.close()
        if path is not None:
            schema.remove(path)

    def _open(self) -> sqlite3.Connection:
        is_lost = self._path is not None and not schema.still_there(self._path, self._inode)
        if is_lost or (self._path is None and time.monotonic() >= self._retry_at):
            self.close()
        if self._db is None:
            if self.folder.is_dir():
                self._db, self._path = schema.open_catalog(self.folder)
                self._inode = os.lstat(self._path).st_ino if self._path else 0
                self._retry_at = time.monotonic() + RETRY_S
            else:
                self._db, self._path = schema.in_memory(), None
                self._retry_at = 0.0
        return self._db

    def refresh(self, on_progress: Progress | None = None) -> None:
        """Read what is new in the folder; ``on_progress(sessions done, sessions to do)`` on the way."""
        self.ask(lambda db: None, on_progress)

    def catch_up(self, on_progress: Progress | None = None) -> None:
        """``refresh`` beside this catalog, which is free to answer meanwhile (see ``as_known``)."""
        reader = Catalog(self.folder)
        reader.refresh(on_progress)
        reader.close()

    def mark(self) -> object:
        """What changes exactly when something in the folder does, for whoever keeps answers."""
        return self.ask(_mark)

    def rebuild(self) -> None:
        """Forget everything, down to the bytes of deleted texts in the file, and read the folder again."""
        with self._lock:
            path = self._path or self.folder / schema.NAME
            self.close()
            schema.remove(path)
            self.refresh()

    def _refresh(self, db: sqlite3.Connection, on_progress: Progress | None) -> None:
        self._learn(db)
        waiting = self._differing()
        if len(waiting) > BATCH:  # what was written last is wanted first
            written = {one: catalog_rows.stamp_of(self.folder / (one + scan.MESSAGES)) for one in waiting}
            waiting.sort(key=lambda one: (written[one] or (0, 0))[1], reverse=True)
        done, todo = 0, len(waiting)
        while waiting:
            batch, waiting = waiting[:BATCH], waiting[BATCH:]
            self._read(db, batch)
            done += len(batch)
            if on_progress:
                on_progress(done, todo)
        if todo:
            self._store_snapshot(db)

    def _read(self, db: sqlite3.Connection, sessions: Ids) -> None:
        """Bring the rows of ``sessions`` up to date, unless another process did."""
        with transaction(db), encoding.without_gc():
            self._learn(db)
            change = int(db.execute("SELECT value FROM facts WHERE name='change'").fetchone()[0]) + 1
            touched: list[int] = []
            for session in sessions:
                if self._differs(session):
                    touched += catalog_rows.update(db, self.folder, session, change)
            sums.settle(db, touched, change)
            db.execute("UPDATE facts SET value=? WHERE name='change'", (change,))
        self._learn(db)

    def _differing(self) -> list[str]:
        """The sessions whose files are not as the catalog knows them."""
        told = self._watch.changed() if self._watch else None
        if told is None or not self._is_whole:
            self._touched = {name for name, _ in scan_files(self.folder).items() ^ self._known.items()}
            self._is_whole = True
        else:
            self._touched |= told
        found = {scan.stem_of(name) for name in self._touched}
        differing = sorted(session for session in found if names.is_id(session) and self._differs(session))
        # They are looked at again at the next question, in case reading them fails.
        self._touched = {session + ending for session in differing for ending in (scan.MESSAGES, scan.METADATA)}
        return differing

    def _differs(self, session: str) -> bool:
        return any(
            catalog_rows.stamp_of(f"{self.folder}/{name}") != self._known.get(name)
            for name in (session + scan.MESSAGES, session + scan.METADATA)
        )

    def _learn(self, db: sqlite3.Connection) -> None:
        """Bring ``_known`` up to what the database has seen, by whichever process."""
        change = int(db.execute("SELECT value FROM facts WHERE name='change'").fetchone()[0])
        if change == self._seen:
            return
        if not self._seen:
            stored = db.execute("SELECT value FROM facts WHERE name='stats'").fetchone()[0]
            self._seen, self._known = unpack(stored)
        if self._seen > change:  # made anew by another process
            self._seen, self._known, self._is_whole = 0, {}, False
        for (session,) in db.execute("SELECT id FROM gone WHERE changed>?", (self._seen,)):
            self._known.pop(session + scan.MESSAGES, None)
            self._known.pop(session + scan.METADATA, None)
        found = db.execute(
            "SELECT id, size, mtime, inode, meta_size, meta_mtime, meta_inode FROM sessions WHERE changed>?",
            (self._seen,),
        )
        for session, *stamps in found:
            for name, stamp in ((scan.MESSAGES, stamps[:3]), (scan.METADATA, stamps[3:])):
                if stamp[0] is None:
                    self._known.pop(session + name, None)
                else:
                    self._known[session + name] = (stamp[0], stamp[1], stamp[2])
        self._seen = change

    def _store_snapshot(self, db: sqlite3.Connection) -> None:
        stored = db.execute("SELECT value FROM facts WHERE name='stats'").fetchone()[0]
        at = unpack(stored)[0] if len(stored) < 64 else unpack_change(stored)
        fresh = db.execute("SELECT count(*) FROM sessions WHERE changed>?", (at,)).fetchone()[0]
        fresh += db.execute("SELECT count(*) FROM gone").fetchone()[0]
        if fresh < SNAPSHOT_AFTER:
            return
        with transaction(db):
            self._learn(db)
            db.execute("UPDATE facts SET value=? WHERE name='stats'", (pack(self._seen, self._known),))
            db.execute("DELETE FROM gone WHERE changed<=?", (self._seen,))

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
        wanted = records.tag_key(tag)
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
            return fulltext.session_filter(asked)
        if not asked.needles and not asked.roles:
            clause, values = fulltext.session_filter(asked)
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
        return fulltext.Search(db, self.folder, asked, self._words(db), limit, first_only).hits()

    def _words(self, db: sqlite3.Connection) -> fulltext.Vocabulary:
        if self._vocabulary is None or not self._vocabulary.is_current(db):
            self._vocabulary = fulltext.Vocabulary.load(db, self._vocabulary)
        return self._vocabulary

    def _index_some(self, db: sqlite3.Connection) -> None:
        """Index what is waiting if that is little, else a part of it: a search waits a second at most."""
        if self.is_in_memory:
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


def scan_files(folder: Path) -> Files:
    """Name → state of everything in ``folder`` that is named like a session's file; a folder not there has none.

    Names are looked up from the open folder: a third faster than ``scandir``, which spells out each path.
    """
    found: Files = {}
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _unreadable(folder, error) from error
    try:
        for name in os.listdir(opened):
            if name.endswith((".jsonl", ".meta.json")):
                try:
                    state = os.stat(name, dir_fd=opened, follow_symlinks=False)
                except OSError:
                    continue  # gone since
                found[name] = (state.st_size, state.st_mtime_ns, state.st_ino & INODE)
    except OSError as error:
        raise _unreadable(folder, error) from error
    finally:
        os.close(opened)
    return found


def _unreadable(folder: Path, error: OSError) -> StorageError:
    return StorageError(folder, f"cannot be read as a folder of sessions ({error.strerror or error})")


def _mark(db: sqlite3.Connection) -> object:
    # A catalog that was made anew counts its changes from the start, but through another connection.
    return db, db.execute("SELECT value FROM facts WHERE name='change'").fetchone()[0]


def pack(change: int, files: Files) -> bytes:
    """File states as one value that is read in a few milliseconds: change, numbers, names."""
    numbers = array("q", [change, len(files)])
    for column in range(3):
        numbers.extend([stamp[column] for stamp in files.values()])
    return numbers.tobytes() + "\n".join(files).encode()


def unpack(stored: bytes) -> tuple[int, Files]:
    """What ``pack`` was given; nothing for an empty value."""
    if not stored:
        return 0, {}
    count = array("q", stored[:16])[1]
    numbers = array("q", stored[: 16 + 24 * count])
    columns = [numbers[2 + count * place : 2 + count * (place + 1)] for place in range(3)]
    written = stored[16 + 24 * count :].decode().split("\n")
    return numbers[0], dict(zip(written, zip(*columns, strict=True), strict=False))


def unpack_change(stored: bytes) -> int:
    """The change a stored snapshot stands at."""
    return array("q", stored[:8])[0] if stored else 0


def _infos(db: sqlite3.Connection, rest: str, values: Sequence[Any] = ()) -> list[SessionInfo]:
    return [info_of(found) for found in db.execute(f"SELECT {INFO} FROM sessions s {rest}", values)]


def _active_between(since: int | None, until: int | None) -> tuple[str, tuple[Any, ...]]:
    """Sessions with a message in the half-open time, or, without messages, last active in it."""
    low = -(1 << 62) if since is None else since
    high = 1 << 62 if until is None else until
    active, bounds = fulltext.active_between(since, until)
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
