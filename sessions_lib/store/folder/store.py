"""A folder of JSONL files as a store: two files a session, a lock for each, a trash, a catalog beside them.

``ID.jsonl`` holds the messages, one a line (see ``jsonl``); ``ID.meta.json`` holds title, tags, lineage and settings
(see ``metadata``). A session exists if either file does. The messages are the truth: metadata that is missing, damaged
or old never hides or changes them.

* Appending: one write, on disk when it returns. The file only grows; merge and repair go by sibling and rename and keep
  the original in ``.trash``.
* A fork is a copy of the prefix's bytes under a new id; the parent is untouched.
* Metadata has a lock of its own, so that a running session can be tagged; each change reads the file again first.

Does not answer questions about many sessions: the catalog does (see ``index``).
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sessions_lib import messages as m
from sessions_lib import names, times
from sessions_lib.errors import Holder, SessionError, SessionExists, SessionNotFound, StorageError
from sessions_lib.messages import encoding
from sessions_lib.messages.content import Message
from sessions_lib.store import checks, forks
from sessions_lib.store.folder import (
    bulk,
    disk,
    fork_points,
    forking,
    jsonl,
    locks,
    metadata,
    metas,
    repair,
    trash,
)
from sessions_lib.store.folder.folder import SUFFIX, claim, clear_unfinished, files_of_others, ids_in, make_folder
from sessions_lib.store.folder.index import catalog
from sessions_lib.store.records import (
    UNFINISHED,
    Contents,
    Fault,
    Forked,
    Metadata,
    NewSession,
    Revision,
    TrashEntry,
)
from sessions_lib.text import display_title

if TYPE_CHECKING:
    from sessions_lib.store.store import Change, Hold

TRIAL = ".trial.json"
META_WAIT_S = 20.0  # nobody holds this lock for longer than a write, but many may want it at once

_shared: weakref.WeakValueDictionary[str, FolderStore] = weakref.WeakValueDictionary()
_shared_lock = threading.Lock()


def of(folder: Path) -> FolderStore:
    """The store of ``folder`` that everybody in this process shares; ``SessionError`` for the home of nobody."""
    try:
        key = os.path.abspath(folder.expanduser())
    except RuntimeError as error:
        raise StorageError(folder, "there is no user of that name here", "Name another folder.") from error
    with _shared_lock:
        store = _shared.get(key)
        if store is None:
            store = _shared[key] = FolderStore(Path(key))
        return store


class FolderStore:
    """The sessions of one folder; nothing is made before the first is."""

    def __init__(self, folder: Path) -> None:
        """The store of ``folder``, which need not be there yet."""
        self.folder = folder
        self.where, self.name = str(folder), os.path.realpath(folder)
        self.catalog = catalog.of(folder)
        self._metas = metas.Metas(folder)

    def path(self, session_id: str) -> Path:
        """The file of the messages; it need not exist before the first message."""
        return self.folder / (session_id + SUFFIX)

    def _meta_path(self, session_id: str) -> Path:
        return self.folder / (session_id + metadata.SUFFIX)

    def _files(self, session_id: str) -> list[Path]:
        return [path for path in (self.path(session_id), self._meta_path(session_id)) if os.path.lexists(path)]

    # ------------------------------------------------------------ reading

    def ids(self) -> set[str]:
        """The ids of all sessions."""
        return ids_in(self.folder)

    def metas(self) -> Mapping[str, Metadata]:
        """The metadata of all sessions that have any."""
        return self._metas.read()

    def open(self, session_id: str) -> Contents:
        """What is known without reading its messages; ``SessionNotFound`` if neither of its files is there."""
        path = self._meta_path(names.check_id(session_id))
        revision = self.revision(session_id)
        if revision is None:
            ids_in(self.folder)  # a folder that cannot be read says so: nobody knows what is in it
            raise SessionNotFound(session_id)
        return Contents(metadata.read(path), revision, session_id + SUFFIX)

    def revision(self, session_id: str) -> Revision | None:
        """Inode, size and time of both files; ``None`` if neither is there."""
        revision = Revision(self._stamp(session_id, SUFFIX), self._stamp(session_id, metadata.SUFFIX))
        return None if revision == Revision() else revision

    def _stamp(self, session_id: str, suffix: str) -> tuple[int, int, int] | None:
        try:
            state = os.stat(f"{self.folder}/{session_id}{suffix}", follow_symlinks=False)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(self.folder / (session_id + suffix), error) from error
        return state.st_ino, state.st_size, state.st_mtime_ns

    def size_bytes(self, session_id: str) -> int | None:
        """How many bytes the messages take; ``None`` without any."""
        stamp = self._stamp(session_id, SUFFIX)
        return None if stamp is None else stamp[1]

    def read(self, session_id: str, known: Contents, *, messages: bool) -> bool:
        """Read what is new since ``known``; True if anything was. ``SessionNotFound`` if it was deleted since."""
        before, now = known.revision, self.revision(session_id)
        if now is None or (now.messages is None and before.messages is not None):
            raise self._gone(session_id)
        is_new = False
        if now.meta != before.meta or known.meta.fault:
            meta = metadata.read(self._meta_path(session_id))
            is_new, known.meta = meta != known.meta, meta
        if messages and not (known.is_read and now.messages == before.messages):
            self._read_messages(session_id, known, now)
        elif known.is_read:
            now = Revision(before.messages, now.meta)  # what was not read is still to be
        known.revision = now
        return is_new or now.messages != before.messages

    def _read_messages(self, session_id: str, known: Contents, now: Revision) -> None:
        path, lines = self.path(session_id), known.places
        try:
            if lines is not None and _has_grown(path, lines, known.revision.messages, now.messages):
                lines.extend(jsonl.read(path, lines.size, lines.line_count + 1))
            else:
                _take(known, jsonl.read(path) if now.messages else jsonl.Lines())
        except FileNotFoundError as error:
            raise self._gone(session_id) from error
        except OSError as error:
            raise _unreadable(path, error) from error

    def _gone(self, session_id: str) -> SessionError:
        if not self.folder.is_dir():
            return StorageError(self.folder, "the folder is not there any more", "Bring it back, then retry.")
        return SessionNotFound(
            session_id,
            f"Session {session_id!r} was deleted while it was open; nothing was written. "
            f"See: forkbook restore {session_id}",
        )

    # ------------------------------------------------------------ writing

    def create(self, wanted: str | None, base: str, meta: Mapping[str, Any]) -> str:
        """Make an empty session and return its id: exactly ``wanted``, else one made of ``base`` (see ``claim``)."""
        return claim(self.folder, wanted, base, meta)

    def create_many(self, new: Sequence[NewSession]) -> None:
        """Make sessions whole, with few waits for the disk; see ``bulk``."""
        bulk.write(self.folder, new)

    def alone(self, what: str, timeout_s: float) -> Hold:
        """The lock of ``what`` only one may do at a time; ``SessionLocked`` names who has it."""
        make_folder(self.folder)
        return locks.Lock(locks.lock_path(self.folder, "", f".{what}"), what, timeout_s)

    def hold(self, session_id: str, timeout_s: float = 1.0) -> locks.Lock:
        """The session's lock; ``SessionLocked`` if another writer has it for ``timeout_s``."""
        return locks.Lock(locks.lock_path(self.folder, names.check_id(session_id)), session_id, timeout_s)

    def holder(self, session_id: str) -> Holder | None:
        """Who is writing the session now."""
        return locks.holder(self.folder, session_id)

    def _meta_hold(self, session_id: str, timeout_s: float = META_WAIT_S) -> locks.Lock:
        return locks.Lock(locks.lock_path(self.folder, session_id, ".meta"), session_id, timeout_s)

    def append(
        self, session_id: str, messages: Sequence[Message], known: Contents, hold: Hold, *, again: bool = False
    ) -> list[Message]:
        """Add ``messages`` in one write and return them as a reader of the file sees them.

        ``again`` cuts a torn end off that is the start of the first of them: a write that was killed is done again.
        """
        path = self.path(session_id)
        written = [encoding.encode(message) + b"\n" for message in messages]
        if again:
            disk.cut_torn_start(path, written[0])
        try:
            size = disk.append(path, b"".join(written), create=known.revision.messages is None)
        except FileNotFoundError as error:
            raise self._gone(session_id) from error
        stored: list[Message] = [encoding.decode(line) for line in written]
        if known.is_read:
            known.places.add(stored, list(map(len, written)), size)
        known.revision = Revision(self._stamp(session_id, SUFFIX), known.revision.meta)
        return stored

    def replace(
        self, session_id: str, messages: Sequence[Message], known: Contents, hold: Hold, *, kept_as: str
    ) -> None:
        """Put a file of ``messages`` in place of the one there is, which goes to the trash as ``kept_as``."""
        path, content = self.path(session_id), encoding.encode_lines(messages)
        if known.revision.messages is None:
            disk.write_new(path, content)
        else:
            trash.put(self.folder, session_id, kept_as, [path], keep=True)
            disk.replace(path, content)
        self.read(session_id, known, messages=True)

    @contextmanager
    def changing_meta(self, session_id: str, change: Change, known: Contents) -> Iterator[None]:
        """Store what ``change`` makes of the metadata, read again first, when what is done inside is done.

        A damaged file of metadata goes to the trash.
        """
        path = self._meta_path(session_id)
        with self._meta_hold(session_id):
            now = self.revision(session_id)
            if now is None or (now.messages is None and known.revision.messages is not None):
                raise self._gone(session_id)
            current = metadata.read(path)
            metadata.check_writable(path, current)
            content = metadata.encode(change(dict(current.values or {"id": session_id, "created": times.now()})))
            yield
            if current.fault:
                trash.put(self.folder, session_id, "metadata", [path])
            disk.replace(path, content)
            disk.make_private(self.path(session_id))  # written by another program, perhaps, and now one of ours
            known.meta = metadata.read(path)
            known.revision = Revision(known.revision.messages, self._stamp(session_id, metadata.SUFFIX))

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
        """Copy the bytes of the prefix under a new id; without ``known`` a long session is not read for it."""
        found = None if known is not None or then else fork_points.find(self.catalog, session_id, at)
        known = known or self.open(session_id)
        if found is None:
            self.read(session_id, known, messages=True)
            shown = display_title(known.meta.title, m.first_prompt(known.messages), session_id)
            point = forks.point(session_id, shown, known.messages, at, then)
            found = point, known.places.ends[point.at - 1] if point.at else 0
        point, size = found
        meta = forks.meta(session_id, known.meta, point, title, mark)
        try:
            own = encoding.encode_lines(then)
            child = forking.copy(self.path(session_id), size, new_id, meta, number_title=title is None, then=own)
        except FileNotFoundError as error:
            raise self._gone(session_id) from error
        return Forked(child, point.left_out)

    # ------------------------------------------------------------ trash

    # ------------------------------------------------------------ trials

    def _trial_path(self, name: str) -> Path:
        return self.folder / (names.check_id(name) + TRIAL)

    def trials(self) -> list[str]:
        """The names of all trials, sorted."""
        return sorted(path.name.removesuffix(TRIAL) for path in self.folder.glob(f"*{TRIAL}"))

    def trial(self, name: str) -> dict[str, Any] | None:
        """The trial ``name``, ``None`` if there is none; ``StorageError`` if its file cannot be read."""
        path = self._trial_path(name)
        try:
            values = encoding.decode(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise StorageError(path, f"cannot be read ({error})", "Mend it, or move it away.") from error
        if not isinstance(values, dict):
            raise StorageError(path, "holds no trial", "Mend it, or move it away.")
        return values

    def put_trial(self, name: str, values: Mapping[str, Any] | None) -> None:
        """Write the file of the trial ``name``, whole or not at all; ``None`` removes it."""
        path = self._trial_path(name)
        if values is None:
            path.unlink(missing_ok=True)
            return
        make_folder(self.folder)
        disk.replace(path, encoding.encode(values))

    def delete(self, session_id: str, hold: Hold) -> TrashEntry:
        """Move both files to the trash."""
        with self._meta_hold(session_id, 1.0):
            return trash.find(self.folder, trash.put(self.folder, session_id, "deleted", self._files(session_id)))

    def trash(self) -> list[TrashEntry]:
        """What is in the trash, newest first."""
        return trash.entries(self.folder)

    def trashed(self, entry: TrashEntry, *, messages: bool) -> Contents:
        """What lies in the trash as ``entry``."""
        return trash.read(self.folder, entry, messages=messages)

    def restore(self, name: str) -> str:
        """Bring back the newest deleted session of this id, or the entry of this name; ``SessionExists``."""
        entry = trash.find(self.folder, name)
        # Half of a session whose move was killed may be back already; no file is ever put over another.
        if entry.kind != UNFINISHED and entry.session.lower() in ids_in(self.folder, lower=True):
            raise SessionExists(entry.session)
        with self.hold(entry.session), self._meta_hold(entry.session, 1.0):
            trash.restore(self.folder, trash.find(self.folder, entry.entry))  # while it waited, another may have
        return entry.session

    def purge(self, entries: Sequence[TrashEntry]) -> dict[TrashEntry, SessionError]:
        """Delete ``entries`` for good, and their words from the catalog; why, for those that could not be.

        Neither a lock file nor what a killed writer left keeps their titles or texts.
        """
        failed: dict[TrashEntry, SessionError] = {}
        for entry in entries:
            try:
                self._purge(entry)
            except SessionError as error:
                failed[entry] = error
        clear_unfinished(self.folder, at_once=True)
        with suppress(SessionError), self.alone("import", 0):  # one that runs clears what others left itself
            bulk.clear_unfinished(self.folder)
        if len(failed) < len(entries):
            self.catalog.rebuild()
        return failed

    def _purge(self, entry: TrashEntry) -> None:
        with self.hold(entry.session, 0) as hold, self._meta_hold(entry.session, 0) as meta_hold:
            trash.purge(self.folder, entry)
            others = {other.session.lower() for other in trash.entries(self.folder)}
            if entry.session.lower() not in others | ids_in(self.folder, lower=True):
                meta_hold.release_for_good()
                hold.release_for_good()

    # ------------------------------------------------------------ health

    def faults(self, session_id: str) -> list[Fault]:
        """Every fault of the session's files; ``SessionNotFound`` if there is none. Any bytes at all are read."""
        self.open(session_id)
        return repair.faults(self.folder, session_id, is_running=self.holder(session_id) is not None)

    def repair(self, session_id: str) -> list[Fault]:
        """Mend what can be mended, which is returned; ``SessionLocked`` while the session is being written."""
        known = self.open(session_id)
        with self.hold(session_id):
            self.read(session_id, known, messages=True)  # what cannot be read is not repaired
            found = repair.faults(self.folder, session_id, is_running=False)
            faults = [fault for fault in found if fault.can_be_repaired]
            in_messages = [fault for fault in faults if fault.file == known.where]
            if in_messages:
                repair.rewrite(self.folder, session_id)
        if len(in_messages) < len(faults):
            self.read(session_id, known, messages=True)
            changes = checks.mended_meta(session_id, known.meta, known.messages)
            with self.changing_meta(session_id, lambda values: {**values, **changes}, known):
                pass
        return faults

    def line_count(self, session_id: str) -> int:
        """How many lines the file has, an unfinished last one included; none without a file."""
        try:
            return jsonl.line_count(self.path(session_id))
        except FileNotFoundError:
            return 0

    def lines(self, session_id: str, numbers: Collection[int]) -> dict[int, str]:
        """The lines ``numbers`` (from 1) as they stand; bytes that are no text are lone surrogates."""
        return jsonl.raw_lines(self.path(session_id), numbers)

    def put_lines(self, session_id: str, lines: Sequence[str]) -> None:
        """Write ``lines`` as the file of a session that has none yet."""
        disk.write_new(self.path(session_id), "\n".join(lines).encode())

    def why_read_only(self, session_id: str | None) -> str:
        """Why nothing can be written here now, in one sentence with what to do; empty if it can."""
        if not self.folder.is_dir():
            return ""  # it is made when the first session is
        for path in [self.folder] if session_id is None else [self.folder, self.path(session_id)]:
            if path.exists() and not os.access(path, os.W_OK):
                return f"Read only: {path} cannot be written. Fix its permissions, then reload."
        state = os.statvfs(self.folder)
        if state.f_flag & os.ST_RDONLY:
            return f"Read only: {self.folder} is on a disk that is mounted read-only."
        return f"Read only: the disk of {self.folder} is full. Free space, then reload." if state.f_bavail == 0 else ""

    def readable_by_others(self) -> list[str]:
        """The files of sessions that others can read, sorted; none in a folder that only its owner may enter."""
        return files_of_others(self.folder)

    def is_own(self, path: Path) -> bool:
        """True if ``path`` is a file of this folder."""
        return path.parent.resolve() == self.folder.resolve()


def _take(known: Contents, lines: jsonl.Lines) -> None:
    known.messages[:] = lines.messages
    lines.messages, known.damaged, known.glued = known.messages, lines.damaged, lines.glued
    known.places, known.is_read = lines, True


def _has_grown(path: Path, lines: jsonl.Lines, before: Any, now: Any) -> bool:
    """True if the file is the one that was read, with whole lines behind what was read."""
    if not (before and now and before[0] == now[0] and now[1] > before[1] == lines.size):
        return False
    return jsonl.ends_line(path, lines.size)


def _unreadable(path: Path, error: OSError) -> StorageError:
    return StorageError(path, f"cannot be read ({error.strerror or error})")
