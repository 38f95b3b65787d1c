"""A session: one conversation, in memory or as two files of a folder.

The format, version 1. ``ID.jsonl`` holds the messages, one a line (see ``jsonl``); ``ID.meta.json`` holds title, tags,
lineage and settings (see ``metadata``). A session exists if either file does. The messages are the truth: metadata that
is missing, damaged or old never hides or changes them. Ids are those of ``names.check_id``.

* Appending: under the session's lock, one write, on disk when it returns; then memory, never before. The file only
  grows; merge and repair go by sibling and rename and keep the original in ``.trash``.
* Reading and forking never wait and never write. ``refresh`` reads what others added.
* A fork is a copy of the prefix's bytes under a new id; ids are kept, the parent is untouched.
* Metadata has a lock of its own, so that a running session can be tagged; each change reads the file again first.

Does not call a model, list a folder or search: that is for ``agent``, ``scan`` and ``manager``.
"""

from __future__ import annotations

import contextlib
import os
import threading
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sessions_lib import messages, names, text, times
from sessions_lib.errors import (
    InvalidMessage,
    SessionError,
    SessionNotFound,
    StorageError,
)
from sessions_lib.messages import encoding, tool_calls
from sessions_lib.messages.content import Message
from sessions_lib.store import documents, records
from sessions_lib.store import merge as merging
from sessions_lib.store.folder import disk, forking, jsonl, locks, metadata, trash
from sessions_lib.store.folder.folder import SUFFIX, ids_in
from sessions_lib.store.folder.forking import ForkPoint
from sessions_lib.store.records import DamagedLine, as_told

_META_WAIT_S = 20.0  # nobody holds this lock for longer than a write, but many may want it at once


@dataclass(frozen=True, slots=True)
class Report:
    """What reading found: damaged lines, unanswered calls, lines read in spite of a fault, what a fork left out.

    ``left_out`` counts the parent's messages behind the fork point; ``metadata`` says why metadata could not be read.
    """

    damaged: list[DamagedLine] = field(default_factory=list)
    unanswered: list[tool_calls.Call] = field(default_factory=list)
    repaired: list[DamagedLine] = field(default_factory=list)
    left_out: int = 0
    metadata: str | None = None


class Session:
    """One conversation. ``Session(name="…")`` is in memory until saved; one of a manager writes through."""

    def __init__(self, name: str | None = None) -> None:
        """A new, empty session in memory, titled ``name``."""
        from sessions_lib.redaction import ids  # only a new session needs its rules

        self._id = ids.made_of(name) if name else names.random_id()
        self._folder: Path | None = None
        self._meta = records.Metadata({"title": name, "created": times.now()} if name else {"created": times.now()})
        self._lines: jsonl.Lines | None = jsonl.Lines()
        self._stamp: tuple[int, int, int] | None = None  # inode, size, mtime_ns of the file as it was read
        self._meta_stamp: tuple[int, int, int] | None = None  # and of the metadata's
        self._left_out = 0
        self._lock: locks.Lock | None = None
        self._mutex = threading.Lock()

    @classmethod
    def open(cls, folder: Path, session_id: str) -> Session:
        """The session ``session_id`` of ``folder``; ``SessionNotFound`` if neither of its files is there."""
        session = cls.__new__(cls)
        session._id, session._folder = names.check_id(session_id), Path(folder)
        session._lines, session._stamp, session._meta_stamp, session._left_out = None, None, None, 0
        session._lock, session._mutex = None, threading.Lock()
        if not os.path.lexists(session._file) and not os.path.lexists(session._meta_file):
            ids_in(session._folder)  # a folder that cannot be read says so: nobody knows what is in it
            raise SessionNotFound(session_id)
        session._meta = metadata.read(session._meta_file)
        session._stamp = session._file_stamp()
        return session

    # ------------------------------------------------------------ what it is

    @property
    def id(self) -> str:
        """The session's id."""
        return self._id

    @property
    def title(self) -> str:
        """The title a person gave, else the first prompt on one line, else the id."""
        return text.display_title(self._meta.title, messages.first_prompt(self.messages), self._id)

    @property
    def tags(self) -> list[str]:
        """The tags, in the order they were added."""
        return self._meta.tags

    @property
    def meta(self) -> dict[str, Any]:
        """A copy of the metadata, unknown keys included."""
        return dict(self._meta.values)

    @property
    def parent(self) -> str | None:
        """The id of the session this one was forked from, or ``None``."""
        return self._meta.parent

    @property
    def inherited(self) -> int:
        """How many of the messages were copied from the parent."""
        return min(self._meta.inherited, len(self.messages))

    @property
    def path(self) -> Path | None:
        """The file of the messages, or ``None`` in memory; it need not exist before the first message."""
        return self._file if self._folder else None

    @property
    def messages(self) -> list[Message]:
        """The messages in order, as last read or written; ``refresh`` reads what others added."""
        return self._loaded.messages

    @property
    def turns(self) -> list[list[Message]]:
        """The messages cut into turns: a prompt and all that answers it."""
        return messages.turns(self.messages)

    @property
    def report(self) -> Report:
        """What was found when the session was read."""
        lines = self._loaded
        unanswered = tool_calls.pair(lines.messages).unanswered
        return Report(as_told(lines.damaged), unanswered, lines.glued, self._left_out, self._meta.fault)

    def __repr__(self) -> str:
        return f"<Session {self._id!r} {'in memory' if self._folder is None else self._folder}>"

    # ------------------------------------------------------------ reading

    @property
    def _file(self) -> Path:
        assert self._folder is not None
        return self._folder / (self._id + SUFFIX)

    @property
    def _meta_file(self) -> Path:
        assert self._folder is not None
        return self._folder / (self._id + metadata.SUFFIX)

    def _file_stamp(self) -> tuple[int, int, int] | None:
        try:
            return _stamp_of(f"{self._folder}/{self._id}{SUFFIX}")
        except OSError as error:
            raise StorageError(self._file, f"cannot be read ({error.strerror or error})") from error

    @property
    def _loaded(self) -> jsonl.Lines:
        if self._lines is None:
            with self._mutex:
                if self._lines is None:
                    self._lines = self._read()
        return self._lines

    def _read(self, start: int = 0, line_number: int = 1) -> jsonl.Lines:
        self._stamp = stamp = self._file_stamp()
        if stamp is None:
            return jsonl.Lines()
        try:
            return jsonl.read(self._file, start, line_number)
        except FileNotFoundError as error:
            raise self._gone() from error
        except OSError as error:
            raise StorageError(self._file, f"cannot be read ({error.strerror or error})") from error

    def refresh(self) -> bool:
        """Read what others added since; True if there was anything. ``SessionNotFound`` if it was deleted."""
        if self._folder is None:
            return False
        with self._mutex:
            return self._refresh()

    def _refresh(self) -> bool:
        was, now = self._stamp, self._file_stamp()
        self._check_exists(was, now)
        changed = self._refresh_meta()
        if self._lines is None or was == now:
            return changed
        lines = self._lines
        grew = was and now and was[0] == now[0] and now[1] > was[1] == lines.size
        if grew and self._ends_in_newline(lines.size):
            added = self._read(lines.size, lines.line_count + 1)
            lines.messages += added.messages
            lines.damaged += added.damaged
            lines.glued += added.glued
            lines.ends.extend(added.ends)
            lines.line_numbers.extend(added.line_numbers)
            lines.size, lines.line_count = added.size, added.line_count
        else:
            again = self._read()
            lines.messages[:] = again.messages
            lines.damaged, lines.glued, lines.ends = again.damaged, again.glued, again.ends
            lines.line_numbers, lines.size, lines.line_count = again.line_numbers, again.size, again.line_count
        return True

    def _refresh_meta(self) -> bool:
        """Read the metadata if its file is not as it was; True if it says something else."""
        before, stamp = self._meta, None
        with contextlib.suppress(OSError):
            stamp = _stamp_of(f"{self._folder}/{self._id}{metadata.SUFFIX}")
        if stamp is None or stamp != self._meta_stamp or before.fault:
            self._meta, self._meta_stamp = metadata.read(self._meta_file), stamp
        return self._meta != before

    def _ends_in_newline(self, size: int) -> bool:
        if not size:
            return True
        try:
            with self._file.open("rb") as file:
                file.seek(size - 1)
                return file.read(1) == b"\n"
        except OSError:
            return False

    def _check_exists(self, was: tuple[int, int, int] | None, now: tuple[int, int, int] | None) -> None:
        if now is None and (was is not None or not os.path.lexists(self._meta_file)):
            raise self._gone()

    def _gone(self) -> SessionError:
        if self._folder is not None and not self._folder.is_dir():
            return StorageError(self._folder, "the folder is not there any more", "Bring it back, then retry.")
        return SessionNotFound(
            self._id,
            f"Session {self._id!r} was deleted while it was open; nothing was written. "
            f"See: forkbook restore {self._id}",
        )

    # ------------------------------------------------------------ writing

    def hold(self, timeout: float = 1.0) -> locks.Lock:
        """Take the session's lock for a run; ``SessionLocked`` if another writer has it for ``timeout`` seconds.

        Until it is released, from any thread, this object appends under it. What others had added is read first.
        In memory there is nobody to lock out: a lock of no file is returned.
        """
        if self._folder is None:
            return locks.NoLock(self._id)
        lock = locks.Lock(locks.lock_path(self._folder, self._id), self._id, timeout)
        try:
            self.refresh()
        except SessionError:
            lock.release()
            raise
        self._lock = lock
        return lock

    def append(self, message: Mapping[str, Any]) -> Message:
        """Add ``message`` and return it as stored, with ``id`` and ``timestamp`` where it had none.

        On disk when it returns. ``InvalidMessage``, ``SessionLocked``, ``SessionNotFound`` (deleted while open) and
        ``StorageError`` leave file and memory as they were.
        """
        return self.extend([message])[0]

    def extend(self, added: Iterable[Mapping[str, Any]]) -> list[Message]:
        """Add several messages in one write: all of them or, with the errors of ``append``, none."""
        stored = [_as_stored(message) for message in added]
        if not stored:
            return []
        with self._mutex:
            if self._folder is None:
                self._remember(stored, 0)
                return stored
            if self._lock is not None and self._lock.is_held:
                self._write(stored)
            else:
                with locks.Lock(locks.lock_path(self._folder, self._id), self._id):
                    self._write(stored)
        return stored

    def _write(self, stored: list[Message]) -> None:
        self._refresh()
        try:
            size = jsonl.append(self._file, stored, create=self._stamp is None)
        except FileNotFoundError as error:
            raise self._gone() from error
        self._remember(stored, size)

    def _remember(self, stored: list[Message], size: int) -> None:
        lines = self._lines
        if lines is not None:
            if lines.is_torn:  # the write has ended that line: it is damaged for good
                torn = lines.damaged[-1]
                lines.damaged[-1] = DamagedLine(torn.line, "not JSON, perhaps cut off", "not JSON")
            widths = [len(encoding.encode(message)) + 1 for message in stored] if self._folder else [0] * len(stored)
            end = size - sum(widths)
            for width in widths:
                end += width
                lines.line_count += 1
                lines.ends.append(end)
                lines.line_numbers.append(lines.line_count)
            lines.messages += stored
            lines.size = size
        if self._folder is not None:
            self._stamp = self._file_stamp()

    def update_meta(self, changes: Mapping[str, Any]) -> None:
        """Set the given keys of the metadata; ``None`` removes one. What other windows changed meanwhile stays."""
        self._change_meta(lambda values: {**values, **changes})

    def rename(self, title: str) -> None:
        """Give the session a title; a blank one takes the title away, and the first prompt is shown again."""
        self.update_meta({"title": str(messages.clean(title)) if title.strip() else None})

    def add_tag(self, tag: str) -> None:
        """Add ``tag``; one that differs only by case or blanks is the same tag."""
        self._change_meta(lambda values: {**values, "tags": records.with_tag(records.Metadata(values).tags, tag)})

    def remove_tag(self, tag: str) -> None:
        """Take ``tag`` away, in whatever case it is written."""
        self._change_meta(lambda values: {**values, "tags": records.without_tag(records.Metadata(values).tags, tag)})

    def change_tags(self, add: Iterable[str] = (), remove: Iterable[str] = ()) -> None:
        """Take tags away, then add some: all at once, or nothing (``SessionError`` for a tag that cannot be one).

        A tag that is added in another spelling than it is taken away in is there, in the new spelling.
        """
        self._change_meta(lambda values: {**values, "tags": records.changed_tags(values, list(add), list(remove))})

    def _change_meta(self, change: Any) -> None:
        if self._folder is None:
            self._meta = records.Metadata(change(dict(self._meta.values)))
            return
        with locks.Lock(locks.lock_path(self._folder, self._id, ".meta"), self._id, _META_WAIT_S):
            self._check_exists(self._stamp, self._file_stamp())
            current = metadata.read(self._meta_file)
            metadata.check_writable(self._meta_file, current)
            values = change({"id": self._id, "created": times.now()} if not current.values else dict(current.values))
            content = metadata.encode(values)
            if current.fault:
                trash.put(self._folder, self._id, "metadata", [self._meta_file])
            disk.replace(self._meta_file, content)
            self._meta = metadata.read(self._meta_file)

    # ------------------------------------------------------------ forks

    def fork(
        self, new_id: str | None = None, at: int | None = None, title: str | None = None, *, mark: str = ""
    ) -> Session:
        """A new session that starts as a copy of the first ``at`` messages (default: the last allowed point).

        The prefix's bytes are copied, ids and times kept, the parent untouched. Tags and settings are taken over.
        Without a ``title`` it is called as this session and, behind a dot, where it was forked, or ``mark``: what it
        does otherwise. ``ForkPointForbidden`` names the nearest allowed points; ``SessionExists`` if ``new_id`` is
        taken. The new session's ``report`` says what was left out. Never waits: a running session can be forked.
        """
        self.refresh()
        return self.fork_at(forking.point(self._id, self.title, self._loaded, at), new_id, title, mark=mark)

    def fork_at(
        self, point: ForkPoint, new_id: str | None = None, title: str | None = None, *, mark: str = ""
    ) -> Session:
        """``fork`` at a point that is known to be allowed: nothing of the file is parsed, its bytes are copied."""
        meta = forking.meta(self._id, self._meta, point, title, mark)
        if self._folder is None:
            child = Session()
            child._id = names.check_id(new_id) if new_id else forking.base_id(self._id, meta)
            child._meta = records.Metadata(meta)
            child._remember([encoding.decode(encoding.encode(message)) for message in self.messages[: point.at]], 0)
        else:
            try:
                child_id = forking.copy(self._file, point.size, new_id, meta, number_title=title is None)
            except FileNotFoundError as error:
                raise self._gone() from error
            child = Session.open(self._folder, child_id)
        child._left_out = point.left_out
        return child

    # ------------------------------------------------------------ joining

    def merge(self, other: Session) -> None:
        """Take in what only ``other`` has: the shared start once, then whole turns by time (see ``merge``).

        Changes this session, never ``other``; a second merge changes nothing. The original goes to ``.trash``.
        """
        if other._folder is not None and other.id == self.id and other._folder == self._folder:
            return
        other.refresh()
        if self._folder is None:
            with self._mutex:
                self._lines = _as_lines(merging.merge(self.messages, other.messages))
        else:
            self._merge_file(other)
        sources = [*self.meta.get("merged_from", []), other.id]
        self.update_meta({"merged_from": list(dict.fromkeys(sources))})

    def _merge_file(self, other: Session) -> None:
        was_held = self._lock is not None and self._lock.is_held
        lock = self._lock if was_held else self.hold()
        assert lock is not None
        try:
            self.refresh()
            merged = merging.merge(self.messages, other.messages)
            if len(merged) != len(self.messages):
                self._replace_file(merged, "merged")
        finally:
            if not was_held:
                lock.release()

    def _replace_file(self, new: Sequence[Message], kind: str) -> None:
        assert self._folder is not None
        content = b"".join(encoding.encode(message) + b"\n" for message in new)
        if self._stamp is None:
            disk.write_new(self._file, content)
        else:
            trash.put(self._folder, self._id, kind, [self._file], keep=True)
            disk.replace(self._file, content)
        with self._mutex:
            self._lines = self._read()

    def import_from(self, other: Session) -> int:
        """Append the messages of ``other`` that this session does not have, ids kept; how many there were."""
        other.refresh()
        known = set(messages.identities(self.messages))
        theirs = merging.with_ids(other.messages)
        identities = messages.identities(theirs)
        missing = [message for message, own in zip(theirs, identities, strict=True) if own not in known]
        self.extend(missing)
        return len(missing)

    # ------------------------------------------------------------ files to give away

    def export(self, path: str | Path, format: str = "markdown", **options: Any) -> Path:
        """Write the session to ``path`` (0600) as ``markdown``, ``json``, ``jsonl``, ``html`` or ``finetune``."""
        from sessions_lib.export import export  # loaded when first used: listing and chatting need none of it

        return export.write(Path(path), export.export(self.messages, {**self.meta, "id": self.id}, format, **options))

    def save(self, path: str | Path) -> Path:
        """Write the session to ``path`` as one JSON document; one without a title takes the file's name as title."""
        if self._meta.title is None:
            self.rename(Path(path).stem)
        return self.export(path, "json")

    def load(self, path: str | Path) -> None:
        """Read ``path`` into this empty session: a JSON document of ours, or any ``.jsonl`` of messages.

        ``SessionError`` if this session has messages already or the file holds none; nothing is changed then.
        """
        if self.messages:
            raise SessionError(
                f"Session {self._id!r} has {len(self.messages)} messages; loading would mix two conversations. "
                "Load into a new session, or use import_from."
            )
        found, meta = documents.read(Path(path))
        self.extend(found)
        kept = {key: value for key, value in meta.items() if key not in ("id", "version", "forked_from")}
        self.update_meta(
            {"title": Path(path).stem, **kept, **({"title": self._meta.title} if self._meta.title else {})}
        )


def _stamp_of(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _as_stored(message: Mapping[str, Any]) -> Message:
    if not messages.is_message(message):
        raise InvalidMessage("A message is a dict with a string 'role'; this is none. Nothing was stored.")
    # Through bytes and back: memory holds exactly what a reader of the file will see.
    stored: Message = encoding.decode(encoding.encode(messages.stamped(message)))
    return stored


def _as_lines(found: Sequence[Message]) -> jsonl.Lines:
    numbers = array("q", range(1, len(found) + 1))
    return jsonl.Lines(messages=list(found), ends=array("q", [0] * len(found)), line_numbers=numbers)
