"""A PostgreSQL database as a store: any number of processes, one writer a session, nothing copied by a fork.

* Appending is one statement, durable when it returns; what a cut connection leaves in doubt is looked up, not repeated.
* A merge or a repair makes a new row of the session; the old one, with its messages, goes to the trash.
* Metadata is changed under the lock of its row, read again first.
* A fork copies the places of messages in one statement.

Does not answer questions about many sessions: ``catalog`` does.
"""

from __future__ import annotations

import threading
import uuid
import weakref
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

from sessions_lib import messages as m
from sessions_lib import names
from sessions_lib.errors import Holder, NewerVersion, SessionError, SessionLocked, SessionNotFound
from sessions_lib.messages import encoding
from sessions_lib.messages.content import Message
from sessions_lib.store import checks, forks
from sessions_lib.store.postgres import forking, health, leases, sessions, trash, writing
from sessions_lib.store.postgres.catalog import PostgresCatalog
from sessions_lib.store.postgres.database import Connection, Database
from sessions_lib.store.postgres.leases import Lease
from sessions_lib.store.postgres.rows import read_lines, row_of, take_damage
from sessions_lib.store.postgres.sessions import State
from sessions_lib.store.records import (
    META_VERSION,
    Contents,
    Fault,
    Forked,
    Metadata,
    NewSession,
    Revision,
    TrashEntry,
)
from sessions_lib.store.store import Change, Hold
from sessions_lib.text import display_title

_shared: weakref.WeakValueDictionary[str, PostgresStore] = weakref.WeakValueDictionary()
_shared_lock = threading.Lock()


def of(address: str) -> PostgresStore:
    """The store at ``address`` that everybody in this process shares."""
    with _shared_lock:
        store = _shared.get(address)
        if store is None:
            store = _shared[address] = PostgresStore(Database(address))
        return store


class PostgresStore:
    """The sessions of one database."""

    def __init__(self, database: Database) -> None:
        """The sessions of ``database``; nothing is connected yet."""
        self.database = database
        self.name = self.where = database.where
        self.catalog = PostgresCatalog(database)

    def path(self, session_id: str) -> None:
        """There is no file."""

    def is_own(self, path: Path) -> bool:
        """No file is."""
        return False

    # ------------------------------------------------------------ reading

    def ids(self) -> set[str]:
        """The ids of all sessions."""
        asked = "select id from forkbook.session where kind is null"
        return {session for (session,) in self.database.rows(asked)}

    def metas(self) -> Mapping[str, Metadata]:
        """The metadata of all sessions."""
        asked = "select id, meta from forkbook.session where kind is null"
        rows = self.database.rows(asked)
        return {session: sessions.metadata(session, meta) for session, meta in rows}

    def _state(self, session_id: str) -> State | None:
        return self.database.run(lambda db: sessions.state(db, session_id))

    def open(self, session_id: str) -> Contents:
        """What is known without reading its messages; ``SessionNotFound`` if there is no such session."""
        state = self._state(names.check_id(session_id))
        if state is None:
            raise SessionNotFound(session_id)
        return Contents(sessions.metadata(session_id, state[3]), _revision(state), session_id)

    def revision(self, session_id: str) -> Revision | None:
        """The versions of its rows; ``None`` if there is no such session."""
        state = self._state(session_id)
        return None if state is None else _revision(state)

    def size_bytes(self, session_id: str) -> int | None:
        """How many bytes its lines take; ``None`` without any."""
        asked = "select bytes, lines from forkbook.session where kind is null and id = %s"
        found = self.database.row(asked, (session_id,))
        if found is None:
            raise SessionNotFound(session_id)
        return found[0] if found[1] else None

    def read(self, session_id: str, known: Contents, *, messages: bool) -> bool:
        """Read what is new since ``known``; True if anything was. ``SessionNotFound`` if it was deleted since."""
        state = self._state(session_id)
        if state is None:
            raise sessions.gone(session_id)
        before, now = known.revision, _revision(state)
        if messages and not (known.is_read and before.messages == now.messages):
            self._read_messages(session_id, known, state)
        elif known.is_read:
            now = Revision(before.messages, now.meta)  # what was not read is still to be
        meta = known.meta if now.meta == before.meta else sessions.metadata(session_id, state[3])
        is_new = meta != known.meta or now.messages != before.messages
        known.meta, known.revision = meta, now
        return is_new

    def _read_messages(self, session_id: str, known: Contents, state: State) -> None:
        n, count, *_, lines = state
        start = len(known.messages) if known.is_read and known.places == n else 0
        found = self.database.run(lambda db: sessions.lines_of(db, n, start, count))
        if len(found) != count - start:  # purged while it was read
            raise sessions.gone(session_id)
        with encoding.without_gc():
            known.messages[start:] = read_lines(found)
        is_odd = lines != count or known.damaged or known.glued
        take_damage(known, self.database.run(lambda db: sessions.damage_of(db, n)) if is_odd else [])
        known.places, known.is_read = n, True

    # ------------------------------------------------------------ writing

    def create(self, wanted: str | None, base: str, meta: Mapping[str, Any]) -> str:
        """Make an empty session and return its id: exactly ``wanted``, else one made of ``base``."""
        made = uuid.uuid4()
        return self.database.in_transaction(lambda db: sessions.create(db, wanted, base, meta, made)[1])

    def create_many(self, new: Sequence[NewSession]) -> None:
        """Make sessions whole: all of them or none."""

        def make(db: Connection) -> None:
            for session, mark in zip(new, made, strict=True):
                n, _, is_new = sessions.create(db, session.id, session.id, session.meta, mark)
                lines = session.lines.splitlines()
                if is_new and lines:
                    rows = [row_of(encoding.decode(line), line) for line in lines]
                    writing.put(db, n, rows, range(len(rows)))
                    writing.put_counts(db, n, messages=len(rows), lines=len(rows), size=len(session.lines))

        made = [uuid.uuid4() for _ in new]
        self.database.in_transaction(make)

    def hold(self, session_id: str, timeout_s: float = 1.0) -> Lease:
        """The session's lease; ``SessionLocked`` if another writer has it for ``timeout_s``."""
        return Lease(self.database, names.check_id(session_id), session_id, timeout_s)

    def holder(self, session_id: str) -> Holder | None:
        """Who is writing the session now."""
        return leases.holder(self.database, session_id)

    def alone(self, what: str, timeout_s: float) -> Lease:
        """The lease of ``what`` only one may do at a time."""
        return Lease(self.database, f".{what}", what, timeout_s)

    def append(
        self, session_id: str, messages: Sequence[Message], known: Contents, hold: Hold, *, again: bool = False
    ) -> list[Message]:
        """Add ``messages`` and return them as they are kept.

        If the connection is cut, what the server did is looked up: nothing is lost, and nothing stands there twice.
        """
        rows = [row_of(message) for message in messages]
        lease = cast(Lease, hold)
        at = known.revision.messages
        n, first = cast("tuple[int, int]", at) if at is not None else self._begin(session_id)
        tried = again

        def add(db: Connection) -> tuple[int, int]:
            nonlocal n, first, tried
            while True:
                if tried and (stored := sessions.end_if_stored(db, n, rows, first)):
                    return n, stored
                tried = True
                if writing.append(db, session_id, n, first, rows, (lease.name, lease.token)):
                    return n, first + len(rows)
                state = sessions.state(db, session_id)
                if state is None:
                    raise sessions.gone(session_id)
                if not lease.renew():
                    raise SessionLocked(session_id, self.holder(session_id) or Holder())
                if n != state[0]:
                    raise SessionError(f"Session {session_id!r} was changed meanwhile; nothing was written. Try again.")
                first = max(first, state[1])

        n, end = self.database.run(add)
        stored = read_lines([row.line for row in rows])
        if known.is_read and end - len(rows) == len(known.messages):
            known.messages += stored
        known.revision = Revision((n, end), known.revision.meta)
        return stored

    def _begin(self, session_id: str) -> tuple[int, int]:
        state = self._state(session_id)
        if state is None:
            raise sessions.gone(session_id)
        return state[0], state[1]

    def replace(
        self, session_id: str, messages: Sequence[Message], known: Contents, hold: Hold, *, kept_as: str
    ) -> None:
        """Put ``messages`` in place of those there are, which go to the trash as ``kept_as``."""
        lines = [encoding.encode(message).decode() for message in messages]
        mark = uuid.uuid4()
        self.database.in_transaction(lambda db: trash.replace(db, session_id, lines, [], kept_as, mark))
        self.read(session_id, known, messages=True)

    @contextmanager
    def changing_meta(self, session_id: str, change: Change, known: Contents) -> Iterator[None]:
        """Store what ``change`` makes of the metadata, read again under the row's lock, when what is inside is done."""
        state = self._state(session_id)
        if state is None:
            raise sessions.gone(session_id)
        _changed(session_id, state[3], change)  # what cannot be changed is said before anything is done
        yield
        mark: list[tuple[int, str]] = []

        def store(db: Connection) -> tuple[str, int]:
            locked = sessions.state(db, session_id, lock=True)
            if locked is None:
                raise sessions.gone(session_id)
            if (locked[2], locked[3]) in mark:  # the connection was cut behind the commit
                return locked[3], locked[2]
            text = _changed(session_id, locked[3], change)
            mark[:] = [(locked[2] + 1, text)]
            db.execute(
                "update forkbook.session set meta = %s, meta_version = meta_version + 1, "
                "changed = nextval('forkbook.change') where n = %s",
                (text, locked[0]),
            )
            writing.announce(db, session_id)
            return text, locked[2] + 1

        text, version = self.database.in_transaction(store)
        known.meta, known.revision = sessions.metadata(session_id, text), Revision(known.revision.messages, version)

    def fork(
        self,
        session_id: str,
        new_id: str | None,
        at: int | None,
        title: str | None,
        *,
        mark: str = "",
        known: Contents | None = None,
        then: Sequence[Message] = (),
    ) -> Forked:
        """Copy the places of the first ``at`` messages; without ``known`` a long session is not read for it."""
        point = None if known is not None or then else self._point(session_id, at)
        known = known or self.open(session_id)
        if point is None:
            self.read(session_id, known, messages=True)
            shown = display_title(known.meta.title, m.first_prompt(known.messages), session_id)
            point = forks.point(session_id, shown, known.messages, at, then)
        parent = session_id, cast("tuple[int, int]", known.revision.meta)[0]
        meta = forks.meta(session_id, known.meta, point, title, mark)
        copy = partial(forking.copy, made=uuid.uuid4(), number_title=title is None)
        child = self.database.in_transaction(lambda db: copy(db, parent, new_id, point.at, meta, then))
        return Forked(child, point.left_out)

    def _point(self, session_id: str, at: int | None) -> forks.ForkPoint | None:
        def find(db: Connection) -> forks.ForkPoint | None:
            state = sessions.state(db, names.check_id(session_id))
            if state is None:
                raise SessionNotFound(session_id)
            n, count, _, meta, _ = state
            prompt = m.first_prompt(forking.first_prompts(db, n, count))
            title = sessions.metadata(session_id, meta).title
            return forking.point(db, n, count, at, display_title(title, prompt, session_id)) if prompt else None

        return self.database.run(find)

    # ------------------------------------------------------------ trials

    def trials(self) -> list[str]:
        """The names of the trials, sorted."""
        asked = 'select name from forkbook.trial order by name collate "C"'
        return [name for (name,) in self.database.rows(asked)]

    def trial(self, name: str) -> dict[str, Any] | None:
        """The trial ``name`` as it was put; ``None`` if there is none."""
        asked = "select kept from forkbook.trial where name = %s"
        found = self.database.row(asked, (names.check_id(name),))
        return None if found is None else encoding.decode(found[0])

    def put_trial(self, name: str, values: Mapping[str, Any] | None) -> None:
        """Keep ``values`` under ``name`` in place of what was there; ``None`` takes them away."""
        kept = None if values is None else encoding.encode(values).decode()
        put = (
            "insert into forkbook.trial(name, kept) values(%(name)s, %(kept)s) "
            "on conflict (name) do update set kept = excluded.kept"
        )
        taken = "delete from forkbook.trial where name = %(name)s"
        wanted = {"name": names.check_id(name), "kept": kept}
        self.database.run(lambda db: db.execute(taken if kept is None else put, wanted))

    # ------------------------------------------------------------ trash

    def delete(self, session_id: str, hold: Hold) -> TrashEntry:
        """Move the session to the trash."""
        return self.database.in_transaction(lambda db: trash.delete(db, session_id))

    def trash(self) -> list[TrashEntry]:
        """What is in the trash, newest first."""
        return self.database.run(trash.entries)

    def trashed(self, entry: TrashEntry, *, messages: bool) -> Contents:
        """What lies in the trash as ``entry``."""
        n, count, meta = self.database.run(lambda db: trash.find(db, entry.entry))
        known = Contents(sessions.metadata(entry.session, meta), Revision(), entry.entry)
        if messages:
            lines = self.database.run(lambda db: sessions.lines_of(db, n, 0, count))
            known.messages, known.is_read = read_lines(lines), True
        return known

    def restore(self, name: str) -> str:
        """Bring back the newest deleted session of this id, or the entry of this name; ``SessionExists``."""
        return self.database.in_transaction(lambda db: trash.restore(db, name))

    def purge(self, entries: Sequence[TrashEntry]) -> dict[TrashEntry, SessionError]:
        """Delete ``entries`` for good, with the texts that no other session holds; why, for those that could not be."""
        failed: dict[TrashEntry, SessionError] = {}
        for entry in entries:
            try:
                self.database.in_transaction(lambda db, entry=entry: trash.purge(db, entry))  # type: ignore[misc]  # the default binds it
            except SessionError as error:
                failed[entry] = error
        return failed

    # ------------------------------------------------------------ health

    def faults(self, session_id: str) -> list[Fault]:
        """Every fault of the session."""
        known = self.open(session_id)
        self.read(session_id, known, messages=True)
        damaged = self.database.run(lambda db: sessions.damage_of(db, known.places))
        return health.faults(session_id, known, damaged, is_running=self.holder(session_id) is not None)

    def repair(self, session_id: str) -> list[Fault]:
        """Mend what can be mended, which is returned; ``SessionLocked`` while the session is being written."""
        known = self.open(session_id)
        with self.hold(session_id):
            self.read(session_id, known, messages=True)
            damaged = self.database.run(lambda db: sessions.damage_of(db, known.places))
            faults = [
                fault for fault in health.faults(session_id, known, damaged, is_running=False) if fault.can_be_repaired
            ]
            if any(fault.line is not None for fault in faults):
                lines = self.database.run(lambda db: sessions.lines_of(db, known.places, 0, len(known.messages)))
                mended, left = health.mended(known.messages, lines, damaged)
                mark = uuid.uuid4()
                self.database.in_transaction(lambda db: trash.replace(db, session_id, mended, left, "repaired", mark))
        if any(fault.line is None for fault in faults):
            self.read(session_id, known, messages=True)
            changes = checks.mended_meta(session_id, known.meta, known.messages)
            with self.changing_meta(session_id, lambda values: {**values, **changes}, known):
                pass
        return faults

    def line_count(self, session_id: str) -> int:
        """How many lines there are."""
        state = self._state(session_id)
        return state[4] if state else 0

    def lines(self, session_id: str, numbers: Collection[int]) -> dict[int, str]:
        """The lines ``numbers`` (from 1) as they are kept; bytes that are no text are lone surrogates."""
        state = self._state(session_id)
        return self.database.run(lambda db: health.lines(db, state[0], state[1], numbers)) if state else {}

    def put_lines(self, session_id: str, lines: Sequence[str]) -> None:
        """Store ``lines`` as the lines of a session that has none yet, damage and all."""
        n, _ = self._begin(session_id)
        self.database.in_transaction(lambda db: health.put_lines(db, n, lines))

    def why_read_only(self, session_id: str | None) -> str:
        """Why nothing can be written now, in a sentence; empty if it can."""
        try:
            found = self.database.run(lambda db: db.execute("show transaction_read_only").fetchone())
        except SessionError as error:
            return str(error)
        return f"Read only: {self.where} is a copy that cannot be written." if found == ("on",) else ""

    def readable_by_others(self) -> list[str]:
        """The database knows who may read."""
        return []


def _revision(state: State) -> Revision:
    n, messages, meta_version, _, lines = state
    return Revision((n, messages) if lines else None, (n, meta_version))


def _changed(session_id: str, text: str, change: Change) -> str:
    """The metadata ``text`` as ``change`` makes it; ``NewerVersion`` if a newer Forkbook wrote it."""
    values = dict(sessions.metadata(session_id, text).values)
    version = values.get("version")
    if isinstance(version, int | float) and version > META_VERSION:
        raise NewerVersion(session_id, version)
    return sessions.encoded(change(values))
