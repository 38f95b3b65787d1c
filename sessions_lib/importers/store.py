"""The folder that is imported into: what was imported there before, and how sessions are made and extended.

``imported_from`` in a session's metadata holds the tool, the file with its size and time, the conversation's key, the
first message's id and the version of what importers make of a source.

Does not decide what is new: that is for ``writing``.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sessions_lib import disk, jsonl, listing, messages, metadata, names, times
from sessions_lib.content import Message
from sessions_lib.errors import SessionError
from sessions_lib.folders import make_folder
from sessions_lib.importers.imported import Imported, common
from sessions_lib.importers.recognise import TOOLS
from sessions_lib.importers.source import Source
from sessions_lib.manager import SessionManager

VERSION = 1  # of what importers make of a source; a higher one reads unchanged files again


@dataclass(slots=True)
class Known:
    """A session that was imported before, its messages read when first needed."""

    id: str
    ids: list[str] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    is_read: bool = False

    def forget(self) -> None:
        """Let the messages go; they are read again when needed."""
        self.ids, self.messages, self.is_read = [], [], False


class Store:
    """The folder that is imported into, and which of its sessions were imported from where."""

    def __init__(self, manager: SessionManager, *, dry_run: bool = False) -> None:
        self._manager = manager
        self._dry_run = dry_run
        self._conversations: dict[str, dict[str, Known]] = {}
        self._by_key: dict[str, str] = {}
        self._by_first: dict[str, list[str]] = {}  # the first message's id -> the sessions that start with it
        self._files: dict[tuple[Any, ...], list[int]] = {}  # a file as it was imported -> the sessions it gave
        self._uncalled: dict[str, str] = {}  # a sub-agent's session -> the key of its caller, not there yet
        self._unlinked: dict[str, str] = {}  # session id -> the key of a parent that is not there yet
        self._taken: set[str] = set()
        self._next_number: dict[str, int] = {}
        for session in listing.session_ids(manager.folder):
            self._taken.add(session.lower())
            self._note(session, metadata.read(manager.folder / f"{session}{metadata.SUFFIX}").values)

    def _note(self, session: str, meta: Mapping[str, Any]) -> None:
        origin = meta.get("imported_from")
        if not isinstance(origin, dict) or not isinstance(origin.get("key"), str):
            return
        conversation = origin.get("conversation", origin["key"])
        self._conversations.setdefault(str(conversation), {})[session] = Known(session)
        self._by_key[origin["key"]] = session
        if isinstance(origin.get("first"), str):
            self._by_first.setdefault(origin["first"], []).append(session)
        parent = origin.get("parent_key")
        if isinstance(parent, str) and "forked_from" not in meta:
            self._unlinked[session] = parent
        self._note_caller(session, meta)
        stamp = (str(origin.get("path")), origin.get("size"), origin.get("modified"), origin.get("version_of_import"))
        if self._is_whole(session, origin):
            self._files.setdefault(stamp, []).append(origin.get("of", 1))

    def _is_whole(self, session: str, origin: Mapping[str, Any]) -> bool:
        """False if the program was killed between a session's metadata and its messages."""
        wanted = origin.get("bytes")
        try:
            size = os.stat(self._manager.folder / f"{session}.jsonl").st_size
        except OSError:
            return False
        return isinstance(wanted, int) and size >= wanted

    def _note_caller(self, session: str, meta: Mapping[str, Any]) -> None:
        agent = meta.get("subagent_of")
        if isinstance(agent, dict) and isinstance(agent.get("key"), str) and "session" not in agent:
            self._uncalled[session] = agent["key"]

    def is_own(self, source: Source) -> bool:
        """True for a file of the folder itself: its sessions are there already."""
        return source.path.absolute().parent.resolve() == self._manager.folder.resolve()

    def is_unchanged(self, source: Source) -> bool:
        """True if the file was imported as it is now, and every session it gave is still there, whole."""
        stamp = _stamp(source)
        found = self._files.get((str(source.label.absolute()), *stamp, VERSION), []) if stamp is not None else []
        return bool(found) and len(found) >= found[0]

    def read(self, known: Known) -> Known:
        """``known`` with its messages."""
        if not known.is_read:
            known.messages = list(self._manager.open(known.id).messages)
            known.ids = messages.identities(known.messages)
            known.is_read = True
        return known

    def parents_of(self, imported: Imported) -> list[str]:
        """The sessions that ``imported`` may have been forked from: those of the conversation it names."""
        key = imported.parent_key
        if key is None:
            return []
        found = list(self._conversations.get(key, ()))
        if key in self._by_key and self._by_key[key] not in found:
            found.append(self._by_key[key])
        if not found and key.startswith("forkbook:"):
            session = key.split(":", 2)[1]
            found = [session] if session.lower() in self._taken and self._manager.exists(session) else []
        return found

    def nearest(self, sessions: Iterable[str], line: Sequence[str]) -> tuple[str, int] | None:
        """The one of ``sessions`` that shares the longest start with ``line``, and how many messages that is."""
        shared = [(common(self.read(Known(session)).ids, line), session) for session in sessions]
        if not shared:
            return None
        longest = max(count for count, _ in shared)
        return next(session for count, session in shared if count == longest), longest

    def conversation(self, name: str) -> dict[str, Known]:
        """The sessions that came from one conversation, by id; to be added to."""
        return self._conversations.setdefault(name, {})

    def starting_with(self, message_id: str, conversation: str) -> list[str]:
        """The imported sessions whose first message is ``message_id``; not those that wait for ``conversation``."""
        found = self._by_first.get(message_id, ())
        return [one for one in found if self._unlinked.get(one) != conversation]

    def create(
        self,
        imported: Imported,
        source: Source,
        format: str,
        parent: tuple[str, int] | None,
        title: str | None,
        *,
        of: int,
    ) -> str | None:
        """A new session for ``imported``, one ``of`` several of its file; ``None`` in a dry run.

        ``parent`` is its parent's id and how many messages they share.
        """
        if self._dry_run:
            return None
        stored = [m if imported.keeps_as_is else messages.stamped(m) for m in imported.messages]
        lines = b"".join(jsonl.encode(message) + b"\n" for message in stored)
        origin = {**_origin(imported, source, format), "of": of, "bytes": len(lines)}
        values: dict[str, Any] = {"title": title, "tags": _tags(imported.tags), **_created(imported), **imported.meta}
        if parent is not None:
            values["forked_from"] = _forked_from(parent, imported.messages)
        elif imported.parent_key is not None:
            origin["parent_key"] = imported.parent_key
        session = self._claim(_base_id(imported, title), {**values, "imported_from": origin})
        disk.write_new(self._manager.folder / f"{session}.jsonl", lines)
        self._by_key[imported.key] = session
        self._note_caller(session, values)
        if isinstance(origin.get("first"), str):
            self._by_first.setdefault(origin["first"], []).append(session)
        if parent is None and imported.parent_key is not None:
            self._unlinked[session] = imported.parent_key
        return session

    def _claim(self, base: str, values: Mapping[str, Any]) -> str:
        """Make the metadata of a new session under an id nobody has, and return the id."""
        make_folder(self._manager.folder)
        while True:
            number = self._next_number.get(base, 1)
            self._next_number[base] = number + 1
            session = base if number == 1 else f"{base[: names.MAX_ID - 8]}-{number}"
            if session.lower() in self._taken:
                continue
            self._taken.add(session.lower())
            path = self._manager.folder / f"{session}{metadata.SUFFIX}"
            if os.path.lexists(path.with_name(f"{session}.jsonl")):
                continue
            try:
                disk.write_new(path, metadata.encode({"id": session, **values}))
            except FileExistsError:
                continue
            return session

    def extend(self, known: Known, added: Sequence[Message], source: Source, *, keeps_as_is: bool, of: int) -> None:
        """Append ``added`` to an imported session, under its lock."""
        if self._dry_run:
            return
        session = self._manager.open(known.id)
        hold = session.hold()
        try:
            if messages.identities(session.messages) != known.ids:
                raise SessionError(f"Session {known.id!r} changed while it was imported into. Import again.")
            stored = [message if keeps_as_is else messages.stamped(message) for message in added]
            path = self._manager.folder / f"{known.id}.jsonl"
            jsonl.append(path, stored, create=not path.exists())
        finally:
            hold.release()
        self.remember(known.id, source, of=of, has_grown=True)

    def remember(self, session: str, source: Source, *, of: int, has_grown: bool = False) -> None:
        """Note in a session's metadata that ``source`` was imported as it is now, if it came from there."""
        if self._dry_run or (stamp := _stamp(source)) is None:
            return
        opened = self._manager.open(session)
        origin = opened.meta.get("imported_from")
        if isinstance(origin, dict):
            size, modified = stamp
            path = str(source.label.absolute())
            now = {"path": path, "size": size, "modified": modified, "of": of, "version_of_import": VERSION}
            if {**origin, **now} != origin and (has_grown or path == origin.get("path")):
                opened.update_meta({"imported_from": {**origin, **now}})

    def link(self) -> None:
        """Give sessions their ``forked_from``, and sub-agents their caller, where those came later.

        One that is locked or gone is left for the next import.
        """
        if self._dry_run:
            return
        for session, key in list(self._uncalled.items()):
            with contextlib.suppress(SessionError):
                self._link_caller(session, key)
        for session, key in list(self._unlinked.items()):
            with contextlib.suppress(SessionError):
                self._link_parent(session, key)

    def _link_caller(self, session: str, key: str) -> None:
        if (caller := self._by_key.get(key)) is not None:
            child = self._manager.open(session)
            child.update_meta({"subagent_of": {**child.meta["subagent_of"], "session": caller}})
            del self._uncalled[session]

    def _link_parent(self, session: str, key: str) -> None:
        others = [one for one in self._conversations.get(key, ()) if one != session]
        child = self._manager.open(session)
        nearest = self.nearest(others, messages.identities(child.messages))
        if nearest is not None:
            if nearest[1] or "subagent_of" not in child.meta:
                child.update_meta({"forked_from": _forked_from(nearest, child.messages)})
            del self._unlinked[session]


def _forked_from(parent: tuple[str, int], said: Sequence[Message]) -> dict[str, Any]:
    session, shared = parent
    message_id = messages.identities(said[:shared])[-1] if shared else None
    return {"session": session, "messages": shared, "message_id": message_id}


def _tags(tags: Iterable[str]) -> list[str]:
    kept: list[str] = []
    for tag in tags:
        try:
            kept = metadata.with_tag(kept, tag)
        except SessionError:
            continue
    return kept


def _created(imported: Imported) -> dict[str, str]:
    if metadata.Metadata(imported.meta).created is not None:
        return {}
    first = imported.created or next(
        (moment for message in imported.messages if (moment := times.parse(message.get("timestamp")))), None
    )
    return {"created": times.iso(first) if first else times.now()}


def _base_id(imported: Imported, title: str | None) -> str:
    own = imported.source.get("id")
    if imported.key.startswith(("forkbook:", "astorlm:")) and names.is_id(str(own)):
        return str(own)
    said = title or names.title_from(messages.first_prompt(imported.messages))
    return names.id_from_title(said)[:64].rstrip("-._") if said else names.random_id()


def _stamp(source: Source) -> tuple[int, int] | None:
    try:
        found = os.stat(source.path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def _origin(imported: Imported, source: Source, format: str) -> dict[str, Any]:
    """``imported_from``: where a session came from, and what recognises it again."""
    origin: dict[str, Any] = {
        "tool": TOOLS.get(format, format),
        "format": format,
        "path": str(Path(source.label).absolute()),
        "key": imported.key,
        "conversation": imported.conversation or imported.key,
        "messages": len(imported.messages),
        "at": times.now(),
        "version_of_import": VERSION,
        **imported.source,
    }
    if not imported.keeps_as_is and imported.messages:
        origin["first"] = imported.messages[0]["id"]
    stamp = _stamp(source)
    if stamp is not None:
        origin["size"], origin["modified"] = stamp
    return origin
