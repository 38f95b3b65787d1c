"""A folder of sessions: make, find, fork, delete and restore them.

The folder is ``save_dir``, else ``$SESSIONS_DIR``, else ``~/.pi-agent/sessions``. Looking at it writes nothing but
the catalog, a cache; it is made, for its owner alone, when the first session is.

Does not read or write messages (``session`` does), and keeps no list of its own (``catalog`` does).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from datetime import UTC, date, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

from sessions_lib import messages, names, times
from sessions_lib.errors import SessionError, SessionExists, SessionNotFound
from sessions_lib.query import parse
from sessions_lib.store import records
from sessions_lib.store.family import family_of
from sessions_lib.store.folder import fork_points, jsonl, locks, metadata, trash
from sessions_lib.store.folder.folder import SUFFIX, claim, clear_unfinished, ids_in
from sessions_lib.store.folder.index import catalog
from sessions_lib.store.records import Hit, Purgeable, SessionInfo, TrashEntry
from sessions_lib.store.session import Session

DEFAULT_FOLDER = "~/.pi-agent/sessions"


# The method ``list`` hides the type of that name inside the class.
Infos = list[SessionInfo]
Hits = list[Hit]
Ids = list[str]
Entries = list[TrashEntry]
Purgeables = list[Purgeable]
Sentences = list[str]


class SessionManager:
    """A folder of sessions; ``SessionManager()`` is the default folder."""

    def __init__(self, save_dir: str | Path | None = None) -> None:
        """The folder ``save_dir``, else ``$SESSIONS_DIR``, else ``~/.pi-agent/sessions``; nothing is made yet."""
        chosen = save_dir or os.environ.get("SESSIONS_DIR") or DEFAULT_FOLDER
        self.folder = Path(os.path.abspath(Path(chosen).expanduser()))
        self._catalog = catalog.of(self.folder)

    # ------------------------------------------------------------ one session

    def create(
        self, title: str | None = None, tags: Iterable[str] = (), session_id: str | None = None, **meta: Any
    ) -> Session:
        """A new, empty session. Its id is ``session_id`` exactly, else made from ``title``, without its
        secrets, and made unique.

        ``SessionExists`` if ``session_id`` is taken; a title taken by nobody stays a title, whatever its characters.
        """
        kept: list[str] = []
        for tag in tags:
            kept = records.with_tag(kept, tag)
        wanted_title = title if title and title.strip() else None
        from sessions_lib.redaction import ids  # only a new session needs its rules

        base = ids.made_of(wanted_title) if wanted_title else names.random_id()
        values = {"title": wanted_title, "tags": kept, "created": times.now(), **meta}
        return Session.open(self.folder, claim(self.folder, session_id, base, values))

    def open(self, session_id: str) -> Session:
        """The session of exactly this id; ``SessionNotFound`` if there is none."""
        return Session.open(self.folder, session_id)

    def open_or_create(self, session_id: str) -> Session:
        """The session of exactly this id; a new one where there was none, whoever asks first."""
        try:
            return self.open(session_id)
        except SessionNotFound:
            try:
                return self.create(session_id=session_id)
            except SessionExists:
                return self.open(session_id)

    def exists(self, session_id: str) -> bool:
        """True if the id belongs to a session of the folder, upper and lower case alike."""
        return names.is_id(session_id) and session_id.lower() in ids_in(self.folder, lower=True)

    def resolve(self, text: str) -> str:
        """The id that ``text`` means: an exact id, a unique start of one, or a title; ``SessionError`` otherwise."""
        ids = ids_in(self.folder)
        if text in ids:
            return text
        found = sorted(one for one in ids if text and one.startswith(text))
        if not found and text.strip():
            wanted = text.strip().casefold()
            found = [info.id for info in self.list() if info.title.casefold() == wanted]
            if len(found) > 1 and len(begun := {self._beginning(one) for one in found}) == 1 and None not in begun:
                return found[0]  # one conversation, saved and loaded again: the newest goes on from the others
        if len(found) == 1:
            return found[0]
        if found:
            few = ", ".join(found[:5]) + (" …" if len(found) > 5 else "")
            raise SessionError(f"{names.one_line(text)!r} could be {len(found)} sessions: {few}. Give more of the id.")
        if not names.is_id(text):
            names.check_id(text)
        raise SessionNotFound(text)

    def _beginning(self, session_id: str) -> str | None:
        """The identity of the first message, ``None`` if there is none."""
        try:
            for line in jsonl.iterate(self.folder / (session_id + SUFFIX)):
                if line.records:
                    return messages.identities(line.records[:1])[0]
        except (OSError, SessionError):
            return None
        return None

    def fork(
        self, session_id: str, new_id: str | None = None, at: int | None = None, title: str | None = None
    ) -> Session:
        """A fork of ``session_id``; see ``Session.fork``. A long session is copied without being parsed."""
        session = self.open(session_id)
        point = fork_points.find(self.catalog, session_id, at)
        return session.fork(new_id, at, title) if point is None else session.fork_at(point, new_id, title)

    # ------------------------------------------------------------ the folder

    @property
    def catalog(self) -> catalog.Catalog:
        """The catalog of the folder: pages of a listing, searches and numbers, always up to date."""
        return self._catalog

    def list(self) -> Infos:
        """Every session of the folder, newest first."""
        return self.catalog.list()

    def marked(self, name: str) -> Ids:
        """The ids of the sessions whose metadata says ``name: true``, newest first."""
        wanted = "SELECT id, meta FROM sessions WHERE instr(meta, ?) ORDER BY last_active DESC, id"
        found = self.catalog.ask(lambda db: db.execute(wanted, (f'"{name}"',)).fetchall())
        return [session for session, meta in found if json.loads(meta).get(name) is True]

    def info(self, session_id: str) -> SessionInfo:
        """One session's row; ``SessionNotFound`` if there is none."""
        found = self.catalog.info(names.check_id(session_id))
        if found is None:
            raise SessionNotFound(session_id)
        return found

    def tags(self) -> dict[str, int]:
        """Every tag in use with its number of sessions, upper and lower case alike, most used first."""
        return self.catalog.tags()

    def find_by_tag(self, tag: str) -> Infos:
        """The sessions that carry ``tag``, in whatever case, newest first."""
        return self.catalog.find_by_tag(tag)

    def find_by_date(self, day: str | date, zone: tzinfo | None = None) -> Infos:
        """The sessions with a message on that day in ``zone`` (default: this machine's), newest first."""
        return self.catalog.find_by_date(as_day(day), zone)

    def search(self, query: str, limit: int | None = None) -> Hits:
        """Where ``query`` is found, newest first; nothing for a blank query. The language is that of ``query``."""
        return self.catalog.search(parse(query), None if limit is None else min(limit, sys.maxsize))

    def family(self, session_id: str) -> Infos:
        """The session and all it shares an ancestor with, even one that is gone; parents before children."""
        by_id = {info.id: info for info in self.list()}
        if session_id not in by_id:
            raise SessionNotFound(names.check_id(session_id))
        return family_of(by_id, session_id)

    # ------------------------------------------------------------ trash

    def delete(self, session_id: str) -> TrashEntry:
        """Move the session to the trash; forks of it stay as they are. ``SessionLocked`` while it is being written."""
        session = self.open(session_id)
        with self._both_locks(session_id):
            files = [self.folder / (session_id + suffix) for suffix in (SUFFIX, metadata.SUFFIX)]
            entry = trash.put(self.folder, session.id, "deleted", [file for file in files if os.path.lexists(file)])
        return trash.find(self.folder, entry)

    def trash(self) -> Entries:
        """What is in the trash, newest first."""
        return trash.entries(self.folder)

    def restore(self, session_id: str) -> Session:
        """Take the newest deleted session of this id (or the entry of this name) out of the trash again.

        ``SessionExists`` if the id was taken meanwhile.
        """
        entry = trash.find(self.folder, session_id)
        # Half of a session whose move was killed may be back already; no file is ever put over another.
        if entry.kind != trash.UNFINISHED and self.exists(entry.session):
            raise SessionExists(entry.session)
        with self._both_locks(entry.session):
            trash.restore(self.folder, entry)
        return self.open(entry.session)

    def purgeable(self, session_id: str | None = None, older_than: timedelta | None = None) -> Purgeables:
        """What ``purge`` would delete for good; nothing is touched.

        The whole trash; with ``session_id`` its entries only; with ``older_than`` the sessions and deleted sessions
        whose last message is older (a session without any time is kept: its age is unknown).
        """
        bound = datetime.now(UTC) - older_than if older_than is not None else None
        found = []
        for entry in self.trash():
            if session_id is not None and session_id not in (entry.session, entry.entry):
                continue
            last = last_message_time(self.folder / trash.FOLDER / entry.entry, entry.session)
            if bound is None or (last is not None and last < bound):
                found.append(Purgeable(entry.session, entry.title, last, entry.size_bytes, entry))
        if bound is not None:
            for info in self.list():
                if session_id not in (None, info.id) or not info.last_active or info.last_active >= bound:
                    continue
                last = last_message_time(self.folder, info.id)
                if last is not None and last < bound:
                    found.append(Purgeable(info.id, info.title, last, info.size_bytes))
        return found

    def purge(self, what: Iterable[Purgeable]) -> tuple[Purgeables, Sentences]:
        """Delete ``what`` for good; what was deleted, and a sentence for each that was not.

        A session that is being written, or was said something to since it was listed, is left alone.
        """
        done, kept = [], []
        for one in what:
            try:
                self._purge_one(one)
            except SessionError as error:
                kept.append(str(error))
            else:
                done.append(one)
        clear_unfinished(self.folder)
        if done:
            self.catalog.rebuild()  # its index still holds the words of what was deleted
        return done, kept

    def _purge_one(self, one: Purgeable) -> None:
        if one.entry is not None:
            trash.purge(self.folder, one.entry)
            return
        with self._both_locks(one.session, timeout=0):
            self.open(one.session)
            if last_message_time(self.folder, one.session) != one.last_active:
                raise SessionError(f"Session {one.session!r} has new messages and was kept.")
            files = [self.folder / (one.session + suffix) for suffix in (SUFFIX, metadata.SUFFIX)]
            entry = trash.put(self.folder, one.session, "deleted", [file for file in files if os.path.lexists(file)])
        trash.purge(self.folder, trash.find(self.folder, entry))

    def _both_locks(self, session_id: str, timeout: float = 1.0) -> ExitStack:
        with ExitStack() as stack:
            for what in ("", ".meta"):
                path = locks.lock_path(self.folder, names.check_id(session_id), what)
                stack.enter_context(locks.Lock(path, session_id, timeout))
            return stack.pop_all()


def as_day(day: str | date) -> date:
    """``day`` as a date; ``SessionError`` if it is none."""
    if isinstance(day, date):
        return day
    try:
        return date.fromisoformat(day.strip())
    except (ValueError, AttributeError) as error:
        raise SessionError(f"{str(day)[:40]!r} is not a day. Write it as 2026-08-28.") from error


def last_message_time(folder: Path, session_id: str) -> datetime | None:
    """When the last message with a time was said; never a file time, and ``None`` if no message has one."""
    try:
        found = jsonl.read(folder / (session_id + SUFFIX)).messages
    except (OSError, SessionError):
        return None
    return max((moment for moment in messages.effective_times(found) if moment), default=None)
