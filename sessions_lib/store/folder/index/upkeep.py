"""The catalog's database, brought up to date with the folder's files before each question.

It is remembered which state of which file was read (``file_states``), by whichever process. A database that is gone,
damaged, of another version or unwritable is made anew or held in memory, which is slower and nothing else.

Does not answer questions about sessions (see ``catalog``), and does not write any session.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from sessions_lib import names
from sessions_lib.messages import encoding
from sessions_lib.store.folder import scan
from sessions_lib.store.folder.index import rows as catalog_rows
from sessions_lib.store.folder.index import schema, sums
from sessions_lib.store.folder.index.file_states import Files, pack, scan_files, unpack, unpack_change
from sessions_lib.store.folder.index.schema import transaction
from sessions_lib.store.folder.watch import Watch

Progress = Callable[[int, int], None]

T = TypeVar("T")

RETRY_S = 60.0  # after which a catalog that had to live in memory looks for its file again
BATCH = 64  # sessions a transaction: another process waits for one at most
FIRST_BATCH = 20  # a person who waits sees the newest at once
SNAPSHOT_AFTER = 200  # changed sessions after which the file states are stored as one value again


class Upkeep:
    """The database of one folder, up to date at every question; made when it is first asked."""

    def __init__(self, folder: Path) -> None:
        """The database of ``folder``; nothing is opened or made yet."""
        self.folder = folder
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

    @property
    def is_in_memory(self) -> bool:
        """True if no file can hold the catalog: it is made again in every process."""
        return self._db is not None and self._path is None

    def close(self) -> None:
        """Close the file; the next question opens it again."""
        with self._lock:
            if self._db is not None:
                self._db.close()
            self._db, self._known, self._seen = None, {}, 0
            self._is_whole = False

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
        reader = type(self)(self.folder)
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
        done, todo = 0, len(waiting)
        while done < todo:
            batch = waiting[done : done + (BATCH if done else FIRST_BATCH)]
            self._read(db, batch)
            done += len(batch)
            if on_progress:
                on_progress(done, todo)
        if todo:
            self._store_snapshot(db)

    def _read(self, db: sqlite3.Connection, sessions: list[str]) -> None:
        """Bring the rows of ``sessions`` up to date, unless another process did."""
        with transaction(db), encoding.without_gc():
            self._learn(db)
            change = _change(db) + 1
            touched: list[int] = []
            for session in sessions:
                if self._differs(session):
                    touched += catalog_rows.update(db, self.folder, session, change)
            sums.settle(db, touched, change)
            db.execute("UPDATE facts SET value=? WHERE name='change'", (change,))
        self._learn(db)

    def _differing(self) -> list[str]:
        """The sessions whose files are not as the catalog knows them, the newest files first."""
        told = self._watch.changed() if self._watch else None
        if told is None or not self._is_whole:
            files = scan_files(self.folder)
            self._touched = {name for name, _ in files.items() ^ self._known.items()}
            self._is_whole = True
        else:
            self._touched |= told
            files = {name: state for name in self._touched if (state := catalog_rows.stamp_of(self.folder / name))}
        found = {scan.stem_of(name) for name in self._touched if files.get(name) != self._known.get(name)}
        unread = (0, 0, 0)
        differing = sorted(
            filter(names.is_id, found),
            key=lambda session: (-files.get(session + scan.MESSAGES, unread)[1], session),
        )
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
        change = _change(db)
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


def _mark(db: sqlite3.Connection) -> object:
    # A catalog that was made anew counts its changes from the start, but through another connection.
    return db, _change(db)


def _change(db: sqlite3.Connection) -> int:
    """The number of the last change; a database without it is damaged."""
    row = db.execute("SELECT value FROM facts WHERE name='change'").fetchone()
    if row is None:
        raise sqlite3.DatabaseError("the catalog has lost its facts")
    return int(row[0])
