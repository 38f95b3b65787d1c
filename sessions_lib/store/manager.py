"""Sessions that are kept together: make, find, fork, delete and restore them.

They are kept in the folder ``save_dir``, else ``$SESSIONS_DIR``, else ``~/.pi-agent/sessions``. Looking at it writes
nothing but the catalog, a cache; it is made, for its owner alone, when the first session is.

Does not read or write messages (``session`` does), and keeps no list of its own (``SessionStore.catalog`` does).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

from sessions_lib import messages, names, times
from sessions_lib.errors import SessionError, SessionExists, SessionNotFound
from sessions_lib.messages.content import Message
from sessions_lib.query import parse
from sessions_lib.store import tagging
from sessions_lib.store.family import family_of, kin
from sessions_lib.store.records import Hit, Purgeable, SessionInfo, TrashEntry
from sessions_lib.store.session import Session, fork
from sessions_lib.store.store import SessionCatalog, SessionStore, open_store

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

    def __init__(self, save_dir: str | Path | SessionStore | None = None) -> None:
        """The folder ``save_dir``, else ``$SESSIONS_DIR``, else ``~/.pi-agent/sessions``; or any store."""
        chosen = save_dir or os.environ.get("SESSIONS_DIR") or DEFAULT_FOLDER
        self.store = open_store(chosen) if isinstance(chosen, str | Path) else chosen

    @property
    def folder(self) -> Path:
        """The folder, where sessions are kept in one."""
        return Path(self.store.where)

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
            kept = tagging.with_tag(kept, tag)
        wanted_title = title if title and title.strip() else None
        base = names.random_id()
        if wanted_title:
            from sessions_lib.redaction import ids  # only an id that is made needs its rules

            base = ids.made_of(wanted_title)
        values = {"title": wanted_title, "tags": kept, "created": times.now(), **meta}
        return Session.open(self.store, self.store.create(session_id, base, values))

    def open(self, session_id: str) -> Session:
        """The session of exactly this id; ``SessionNotFound`` if there is none."""
        return Session.open(self.store, session_id)

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
        return names.is_id(session_id) and session_id.lower() in map(str.lower, self.store.ids())

    def resolve(self, text: str) -> str:
        """The id that ``text`` means: an exact id, a unique start of one, or a title; ``SessionError`` otherwise."""
        ids = self.store.ids()
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
            return next(iter(messages.identities(self.open(session_id).messages[:1])), None)
        except SessionError:
            return None

    def fork(
        self, session_id: str, new_id: str | None = None, at: int | None = None, title: str | None = None
    ) -> Session:
        """A fork of ``session_id``; see ``Session.fork``. A long session is copied without being parsed."""
        return fork(self.store, session_id, new_id, at, title)

    # ------------------------------------------------------------ the folder

    @property
    def catalog(self) -> SessionCatalog:
        """Questions about many sessions: pages of a listing, searches and numbers, always up to date."""
        return self.store.catalog

    def list(self) -> Infos:
        """Every session of the folder, newest first."""
        return self.catalog.list()

    def marked(self, name: str) -> Ids:
        """The ids of the sessions whose metadata says ``name: true``, newest first."""
        return [info.id for info in self.list() if info.meta.get(name) is True]

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
        lineage = {session: parent for session, (parent, _) in self.catalog.lineage().items()}
        by_id = self.catalog.infos(kin(lineage, session_id))
        if session_id not in by_id:
            raise SessionNotFound(names.check_id(session_id))
        return family_of(by_id, session_id)

    # ------------------------------------------------------------ trash

    def delete(self, session_id: str) -> TrashEntry:
        """Move the session to the trash; forks of it stay as they are. ``SessionLocked`` while it is being written."""
        self.open(session_id)
        with self.store.hold(session_id) as hold:
            return self.store.delete(session_id, hold)

    def trash(self) -> Entries:
        """What is in the trash, newest first."""
        return self.store.trash()

    def restore(self, session_id: str) -> Session:
        """Take the newest deleted session of this id (or the entry of this name) out of the trash again.

        ``SessionExists`` if the id was taken meanwhile.
        """
        return self.open(self.store.restore(session_id))

    def purgeable(self, session_id: str | None = None, older_than: timedelta | None = None) -> Purgeables:
        """What ``purge`` would delete for good; nothing is touched.

        The whole trash; with ``session_id`` its entries only; with ``older_than`` the sessions and deleted sessions
        whose last message is older (a session without any time is kept: its age is unknown).
        """
        bound = datetime.now(UTC) - older_than if older_than is not None else None
        listed = []
        for entry in self.trash():
            if session_id is not None and session_id not in (entry.session, entry.entry):
                continue
            last = last_message_time(self.store.trashed(entry, messages=True).messages)
            if bound is None or (last is not None and last < bound):
                listed.append(Purgeable(entry.session, entry.title, last, entry.size_bytes, entry))
        if bound is None:
            return listed
        for info in self.list():
            if session_id not in (None, info.id) or not info.last_active or info.last_active >= bound:
                continue
            last = self._last_message_time(info.id)
            if last is not None and last < bound:
                listed.append(Purgeable(info.id, info.title, last, info.size_bytes))
        return listed

    def _last_message_time(self, session_id: str) -> datetime | None:
        try:
            return last_message_time(self.open(session_id).messages)
        except SessionError:
            return None

    def purge(self, what: Iterable[Purgeable]) -> tuple[Purgeables, Sentences]:
        """Delete ``what`` for good; what was deleted, and a sentence for each that was not.

        A session that is being written, or was said something to since it was listed, is left alone.
        """
        entries: dict[TrashEntry, Purgeable] = {}
        kept = []
        for one in what:
            try:
                entries[one.entry or self._put_away(one)] = one
            except SessionError as error:
                kept.append(str(error))
        failed = self.store.purge(list(entries))
        kept += map(str, failed.values())
        return [one for entry, one in entries.items() if entry not in failed], kept

    def _put_away(self, one: Purgeable) -> TrashEntry:
        """The trash entry of a session that is to be purged, if nothing was said since it was listed."""
        with self.store.hold(one.session, 0) as hold:
            if last_message_time(self.open(one.session).messages) != one.last_active:
                raise SessionError(f"Session {one.session!r} has new messages and was kept.")
            return self.store.delete(one.session, hold)


def as_day(day: str | date) -> date:
    """``day`` as a date; ``SessionError`` if it is none."""
    if isinstance(day, date):
        return day
    try:
        return date.fromisoformat(day.strip())
    except (ValueError, AttributeError) as error:
        raise SessionError(f"{str(day)[:40]!r} is not a day. Write it as 2026-08-28.") from error


def last_message_time(said: Sequence[Message]) -> datetime | None:
    """When the last message with a time was said; never a file time, and ``None`` if no message has one."""
    return max((moment for moment in messages.effective_times(said) if moment), default=None)
