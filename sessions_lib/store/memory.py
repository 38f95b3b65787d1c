"""Sessions that are not saved: a store whose sessions end with the process.

It answers as a folder does, by reading all (``plain``); what is stored goes through JSON, so that memory holds exactly
what a reader of a file would see.

Does not read or write files.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sessions_lib import messages as m
from sessions_lib import names, times
from sessions_lib.errors import Holder, NewerVersion, SessionError, SessionExists, SessionLocked, SessionNotFound
from sessions_lib.messages import encoding
from sessions_lib.messages.content import Message
from sessions_lib.store import checks, forks
from sessions_lib.store.plain import Scanned, scanned
from sessions_lib.store.plain_catalog import PlainCatalog
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

_numbers = itertools.count(1)


@dataclass(slots=True)
class _Kept:
    """A session: its messages, its metadata, and how often each was changed."""

    meta: dict[str, Any]
    messages: list[Message] = field(default_factory=list)
    version: int | None = None  # ``None`` before the first message
    meta_version: int = 0
    written: datetime | None = None


class _MemoryHold:
    """A hold on one session of this process."""

    def __init__(self, lock: threading.Lock, session: str, timeout_s: float) -> None:
        self._lock: threading.Lock | None = None
        self.since = times.now()
        if not lock.acquire(timeout=max(0.0, timeout_s)):
            raise SessionLocked(session, Holder())
        self._lock = lock

    @property
    def is_held(self) -> bool:
        """True until ``release``."""
        return self._lock is not None

    def release(self) -> None:
        """Let the next writer in; twice does nothing."""
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def __del__(self) -> None:
        self.release()


class MemoryStore:
    """Sessions of this process alone."""

    where = "memory"

    def __init__(self) -> None:
        """No session yet."""
        self.name = f"memory {next(_numbers)}"
        self.catalog = PlainCatalog(self._read_all)
        self._sessions: dict[str, _Kept] = {}
        self._trash: dict[TrashEntry, _Kept] = {}
        self._trials: dict[str, bytes] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._mutex = threading.RLock()
        self._changes = itertools.count(1)

    def path(self, session_id: str) -> None:
        """There is no file."""

    # ------------------------------------------------------------ reading

    def ids(self) -> set[str]:
        """The ids of all sessions."""
        return set(self._sessions)

    def metas(self) -> Mapping[str, Metadata]:
        """The metadata of all sessions."""
        return {session: _metadata(kept) for session, kept in self._sessions.items()}

    def _kept(self, session_id: str) -> _Kept:
        try:
            return self._sessions[names.check_id(session_id)]
        except KeyError:
            raise SessionNotFound(session_id) from None

    def open(self, session_id: str) -> Contents:
        """What is known without reading its messages; ``SessionNotFound`` if there is no such session."""
        kept = self._kept(session_id)
        return Contents(_metadata(kept), _revision(kept), session_id)

    def revision(self, session_id: str) -> Revision | None:
        """How often it was changed; ``None`` if there is no such session."""
        kept = self._sessions.get(session_id)
        return None if kept is None else _revision(kept)

    def size_bytes(self, session_id: str) -> int | None:
        """How many bytes the messages would take; ``None`` without any."""
        kept = self._kept(session_id)
        return None if kept.version is None else len(encoding.encode_lines(kept.messages))

    def read(self, session_id: str, known: Contents, *, messages: bool) -> bool:
        """Read what is new since ``known``; True if anything was. ``SessionNotFound`` if it was deleted since."""
        kept = self._still(session_id)
        before, now = known.revision, _revision(kept)
        if messages and not (known.is_read and before.messages == now.messages):
            known.messages[:], known.is_read = kept.messages, True
        elif known.is_read:
            now = Revision(before.messages, now.meta)
        is_new = known.meta != _metadata(kept) or now.messages != before.messages
        known.meta, known.revision = _metadata(kept), now
        return is_new

    def _still(self, session_id: str) -> _Kept:
        kept = self._sessions.get(session_id)
        if kept is None:
            raise SessionNotFound(
                session_id, f"Session {session_id!r} was deleted while it was open; nothing was written."
            )
        return kept

    def _read_all(self) -> Iterator[Scanned]:
        for session, kept in sorted(self._sessions.items()):
            size = self.size_bytes(session) or 0
            yield scanned(session, _metadata(kept), kept.messages, size_bytes=size, written=kept.written)

    # ------------------------------------------------------------ writing

    def create(self, wanted: str | None, base: str, meta: Mapping[str, Any]) -> str:
        """Make an empty session and return its id: exactly ``wanted``, else one made of ``base``."""
        with self._mutex:
            taken = {session.lower() for session in self._sessions}
            if wanted is not None and names.check_id(wanted).lower() in taken:
                raise SessionExists(wanted)
            new_id = wanted or names.unique_id(base, taken)
            self._sessions[new_id] = _Kept(_stored_meta({"id": new_id, **meta}), meta_version=next(self._changes))
        return new_id

    def create_many(self, new: Sequence[NewSession]) -> None:
        """Make sessions whole."""
        with self._mutex:
            for session in new:
                self.create(session.id, session.id, session.meta)
                kept = self._sessions[session.id]
                kept.messages = [encoding.decode(line) for line in session.lines.splitlines()]
                kept.version, kept.written = next(self._changes), datetime.now(UTC)

    def alone(self, what: str, timeout_s: float) -> Hold:
        """The right to do ``what`` only one may do at a time."""
        return self.hold(f".{what}", timeout_s)

    def hold(self, session_id: str, timeout_s: float = 1.0) -> Hold:
        """The session's lock; ``SessionLocked`` if another writer has it for ``timeout_s``."""
        with self._mutex:
            lock = self._locks.setdefault(session_id.lower(), threading.Lock())
        return _MemoryHold(lock, session_id, timeout_s)

    def holder(self, session_id: str) -> Holder | None:
        """Who is writing the session now."""
        lock = self._locks.get(session_id.lower())
        return Holder() if lock is not None and lock.locked() else None

    def append(
        self, session_id: str, messages: Sequence[Message], known: Contents, hold: Hold, *, again: bool = False
    ) -> list[Message]:
        """Add ``messages`` and return them as they are kept."""
        stored: list[Message] = [encoding.decode(encoding.encode(message)) for message in messages]
        with self._mutex:
            kept = self._still(session_id)
            kept.messages += stored
            kept.version, kept.written = next(self._changes), datetime.now(UTC)
            if known.is_read:
                known.messages += stored
            known.revision = _revision(kept)
        return stored

    def replace(
        self, session_id: str, messages: Sequence[Message], known: Contents, hold: Hold, *, kept_as: str
    ) -> None:
        """Put ``messages`` in place of those there are, which go to the trash as ``kept_as``."""
        stored: list[Message] = [encoding.decode(encoding.encode(message)) for message in messages]
        with self._mutex:
            kept = self._still(session_id)
            if kept.version is not None:
                self._put(session_id, _Kept({}, kept.messages, kept.version), kept_as)
            kept.messages, kept.version, kept.written = stored, next(self._changes), datetime.now(UTC)
            self.read(session_id, known, messages=True)

    @contextmanager
    def changing_meta(self, session_id: str, change: Change, known: Contents) -> Iterator[None]:
        """Store what ``change`` makes of the metadata as it is now, when what is done inside is done."""
        with self._mutex:
            kept = self._still(session_id)
            version = kept.meta.get("version")
            if isinstance(version, int | float) and version > META_VERSION:
                raise NewerVersion(session_id, version)
            changed = _stored_meta(change(dict(kept.meta)))
            yield
            kept.meta, kept.meta_version = changed, next(self._changes)
            known.meta, known.revision = _metadata(kept), Revision(known.revision.messages, kept.meta_version)

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
        """Copy the first ``at`` messages as a new session."""
        with self._mutex:
            kept = self._still(session_id)
            shown = display_title(_metadata(kept).title, m.first_prompt(kept.messages), session_id)
            point = forks.point(session_id, shown, kept.messages, at, then)
            meta = forks.meta(session_id, _metadata(kept), point, title, mark)
            base = forks.base_id(session_id, meta)
            if title is None:
                siblings = [one for one in self._sessions if one.lower().startswith(base.lower())]
                meta["title"] = forks.numbered(
                    meta["title"], {_metadata(self._sessions[one]).title for one in siblings}
                )
            child = self.create(new_id, base, meta)
            if point.at or then:
                fork = self._sessions[child]
                own = [encoding.decode(encoding.encode(message)) for message in then]
                fork.messages, fork.version = [*kept.messages[: point.at], *own], next(self._changes)
                fork.written = datetime.now(UTC)
        return Forked(child, point.left_out)

    # ------------------------------------------------------------ trash

    def _put(self, session_id: str, kept: _Kept, kind: str) -> TrashEntry:
        now = datetime.now(UTC)
        size = len(encoding.encode_lines(kept.messages))
        name = f"{now:%Y%m%dT%H%M%S%f}.{next(self._changes)}~{kind}~{session_id}"
        entry = TrashEntry(name, session_id, kind, now, _metadata(kept).title, size)
        self._trash[entry] = kept
        return entry

    def trials(self) -> list[str]:
        """The names of all trials, sorted."""
        return sorted(self._trials)

    def trial(self, name: str) -> dict[str, Any] | None:
        """The trial ``name``, ``None`` if there is none."""
        kept = self._trials.get(names.check_id(name))
        return None if kept is None else encoding.decode(kept)

    def put_trial(self, name: str, values: Mapping[str, Any] | None) -> None:
        """Keep ``values`` as the trial ``name``; ``None`` takes it away."""
        if values is None:
            self._trials.pop(names.check_id(name), None)
        else:
            self._trials[names.check_id(name)] = encoding.encode(values)

    def delete(self, session_id: str, hold: Hold) -> TrashEntry:
        """Move the session to the trash."""
        with self._mutex:
            kept = self._kept(session_id)
            del self._sessions[session_id]
            return self._put(session_id, kept, "deleted")

    def trash(self) -> list[TrashEntry]:
        """What is in the trash, newest first."""
        return list(reversed(self._trash))

    def trashed(self, entry: TrashEntry, *, messages: bool) -> Contents:
        """What lies in the trash as ``entry``."""
        kept = self._trash[entry]
        return Contents(_metadata(kept), Revision(), entry.entry, list(kept.messages), is_read=True)

    def restore(self, name: str) -> str:
        """Bring back the newest deleted session of this id, or the entry of this name; ``SessionExists``."""
        with self._mutex:
            for entry in self.trash():
                if name == entry.entry or (name == entry.session and entry.is_session):
                    if entry.session.lower() in {session.lower() for session in self._sessions}:
                        raise SessionExists(entry.session)
                    self._sessions[entry.session] = self._trash.pop(entry)
                    return entry.session
        raise SessionError(f"There is no deleted session {name!r} in the trash. See: forkbook list --trash")

    def purge(self, entries: Sequence[TrashEntry]) -> dict[TrashEntry, SessionError]:
        """Forget ``entries``."""
        for entry in entries:
            self._trash.pop(entry, None)
        return {}

    # ------------------------------------------------------------ health

    def faults(self, session_id: str) -> list[Fault]:
        """Every fault of the session."""
        return self._faults(session_id, is_running=self.holder(session_id) is not None)

    def _faults(self, session_id: str, *, is_running: bool) -> list[Fault]:
        kept = self._kept(session_id)
        lines = range(1, len(kept.messages) + 1)
        is_open = is_running or _metadata(kept).waits
        found = checks.faults_of(session_id, session_id, kept.messages, lines, is_running=is_open)
        meta = checks.metadata_faults(session_id, _metadata(kept), kept.messages, is_there=True)
        return sorted(found, key=lambda fault: fault.line or 0) + meta

    def repair(self, session_id: str) -> list[Fault]:
        """Mend what can be mended, which is returned."""
        known = self.open(session_id)
        with self.hold(session_id) as hold:
            self.read(session_id, known, messages=True)
            missing = checks.missing_results(known.messages)
            faults = [fault for fault in self._faults(session_id, is_running=False) if fault.can_be_repaired]
            if missing:
                mended = [one for i, said in enumerate(known.messages) for one in (said, *missing.get(i, ()))]
                self.replace(session_id, mended, known, hold, kept_as="repaired")
        if any(fault.line is None for fault in faults):
            changes = checks.mended_meta(session_id, known.meta, known.messages)
            with self.changing_meta(session_id, lambda values: {**values, **changes}, known):
                pass
        return faults

    def line_count(self, session_id: str) -> int:
        """How many messages there are."""
        return len(self._kept(session_id).messages)

    def lines(self, session_id: str, numbers: Collection[int]) -> dict[int, str]:
        """The messages ``numbers`` (from 1) as JSON."""
        said = self._kept(session_id).messages
        return {number: encoding.encode(said[number - 1]).decode() for number in numbers if 0 < number <= len(said)}

    def put_lines(self, session_id: str, lines: Sequence[str]) -> None:
        """Store the messages in ``lines``; memory keeps no damage."""
        kept = self._still(session_id)
        for line in lines:
            with suppress(ValueError):
                kept.messages.append(encoding.decode(line))
        kept.version, kept.written = next(self._changes), datetime.now(UTC)

    def why_read_only(self, session_id: str | None) -> str:
        """Memory can always be written."""
        return ""

    def readable_by_others(self) -> list[str]:
        """Memory is this process's own."""
        return []

    def is_own(self, path: Path) -> bool:
        """No file is."""
        return False


def _metadata(kept: _Kept) -> Metadata:
    return Metadata(dict(kept.meta), where=str(kept.meta.get("id", "")))


def _stored_meta(values: Mapping[str, Any]) -> dict[str, Any]:
    stored: dict[str, Any] = encoding.decode(encoding.encode({k: v for k, v in values.items() if v is not None}))
    return stored


def _revision(kept: _Kept) -> Revision:
    return Revision(kept.version, kept.meta_version)
