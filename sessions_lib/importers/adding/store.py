"""The folder that is imported into: what was imported there before, and how sessions are made and extended.

New sessions are put on disk many at a time (``batch``); whoever asks for one that waits has it written first.

Does not decide what is new: that is for ``writing``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from sessions_lib import messages, names
from sessions_lib.errors import NewerVersion, SessionError
from sessions_lib.importers import callers
from sessions_lib.importers.adding import provenance
from sessions_lib.importers.adding.batch import Batch
from sessions_lib.importers.adding.deleted import Deleted, names_of
from sessions_lib.importers.imported import Imported, common
from sessions_lib.importers.source import Source
from sessions_lib.importers.unique_ids import known_by
from sessions_lib.messages import encoding
from sessions_lib.messages.content import Message
from sessions_lib.store.manager import SessionManager
from sessions_lib.store.records import NewSession
from sessions_lib.store.session import Session


@dataclass(slots=True)
class Known:
    """A session that was imported before, its messages read when first needed."""

    id: str
    ids: list[str] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    is_read: bool = False

    def forget(self, *, keeps_ids: bool = False) -> None:
        """Let the messages go; they are read again when needed."""
        self.ids, self.messages, self.is_read = (self.ids if keeps_ids else []), [], False

    def may_hold(self, line: Sequence[str]) -> bool:
        """False if it is known that the session neither holds all of ``line`` nor is a start of it."""
        return not self.ids or line[-1] in self.ids or self.ids == line[: len(self.ids)]


class Store:
    """The folder that is imported into, and which of its sessions were imported from where."""

    def __init__(self, manager: SessionManager, *, dry_run: bool = False) -> None:
        self.deleted = Deleted(manager.store)
        self._manager = manager
        self._dry_run = dry_run
        self._batch = Batch(manager.store)
        self._conversations: dict[str, dict[str, Known]] = {}
        self._by_key: dict[str, str] = {}
        self._by_first: dict[str, list[str]] = {}  # the first message's id -> the sessions that start with it
        self._files: dict[tuple[Any, ...], list[int]] = {}  # a file as it was imported -> the sessions it gave
        self._by_path: dict[str, list[str]] = {}  # a file, whatever it was then -> the sessions it gave
        self._uncalled: dict[str, str] = {}  # a sub-agent's session -> the key of its caller, not found yet
        self._families: dict[str, list[str]] = {}  # the key of a conversation -> its sessions and its sub-agents'
        self._changed: set[str] = set()  # the keys of the conversations that this import brought something of
        self._calls: dict[str, callers.Calls] = {}  # of the sessions that may have called a sub-agent
        self._unlinked: dict[str, str] = {}  # session id -> the key of a parent that is not there yet
        self._named: dict[str, str] = {}  # session id -> the key of the parent that its source names
        self._taken: set[str] = set()
        self._next_number: dict[str, int] = {}
        self._own: dict[Path, bool] = {}  # folders of sources -> whether they are the folder itself
        for session in sorted(manager.store.ids()):
            self._taken.add(session.lower())
        for session, meta in sorted(manager.store.metas().items()):
            self._note(session, meta.values)

    def _note(self, session: str, meta: Mapping[str, Any]) -> None:
        origin = meta.get("imported_from")
        if not isinstance(origin, dict) or not isinstance(origin.get("key"), str):
            return
        conversation = origin.get("conversation", origin["key"])
        self._conversations.setdefault(str(conversation), {})[session] = Known(session)
        self._by_key[origin["key"]] = session
        self._by_path.setdefault(str(origin.get("path")), []).append(session)
        self._families.setdefault(callers.root_of(origin["key"]), []).append(session)
        if isinstance(origin.get("first"), str):
            self._by_first.setdefault(origin["first"], []).append(session)
        parent = origin.get("parent_key")
        if isinstance(parent, str):
            self._named[session] = parent
            if "forked_from" not in meta:
                self._unlinked[session] = parent
        self._note_caller(session, meta)
        if self._is_whole(session, origin):
            self._files.setdefault(provenance.file_of(origin), []).append(origin.get("of", 1))

    def _is_whole(self, session: str, origin: Mapping[str, Any]) -> bool:
        """False if the program was killed between a session's metadata and its messages."""
        wanted, size = origin.get("bytes"), self._manager.store.size_bytes(session)
        return size is not None and isinstance(wanted, int) and size >= wanted

    def _note_caller(self, session: str, meta: Mapping[str, Any]) -> None:
        agent = meta.get("subagent_of")
        if isinstance(agent, dict) and isinstance(agent.get("key"), str) and "session" not in agent:
            self._uncalled[session] = agent["key"]

    def is_own(self, source: Source) -> bool:
        """True for a file of the folder itself: its sessions are there already."""
        beside = source.path.parent
        if beside not in self._own:
            self._own[beside] = self._manager.store.is_own(source.path)
        return self._own[beside]

    def is_unchanged(self, source: Source) -> bool:
        """True if the file was imported as it is now, and every session it gave is still there, whole, or deleted."""
        file = provenance.file_now(source)
        if file is None or not (found := [*self._files.get(file, ()), *self.deleted.of_file(file)]):
            return False
        return len(found) >= int(found[0])

    def deleted_of(self, source: Source) -> int:
        """How many sessions that ``source`` gave were deleted here."""
        file = provenance.file_now(source)
        return len(self.deleted.of_file(file)) if file is not None else 0

    def read(self, known: Known, *, keeps_as_is: bool) -> Known:
        """``known`` with its messages, and what they are known by."""
        if not known.is_read:
            known.messages = list(self._open(known.id).messages)
            known.ids = known_by(known.messages, keeps_as_is=keeps_as_is)
            known.is_read = True
        return known

    def _open(self, session: str) -> Session:
        if session in self._batch:
            self._batch.write()
        return self._manager.open(session)

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

    def nearest(self, sessions: Iterable[str], line: Sequence[str], *, keeps_as_is: bool) -> tuple[str, int] | None:
        """The one of ``sessions`` that shares the longest start with ``line``, and how many messages that is."""
        shared = [
            (common(self.read(Known(session), keeps_as_is=keeps_as_is).ids, line), session) for session in sessions
        ]
        if not shared:
            return None
        longest = max(count for count, _ in shared)
        return next(session for count, session in shared if count == longest), longest

    def conversation(self, name: str) -> dict[str, Known]:
        """The sessions that came from one conversation, by id; to be added to."""
        return self._conversations.setdefault(name, {})

    def given_by(self, source: Source) -> list[str]:
        """The sessions that were made of ``source``, whatever it held then."""
        return list(self._by_path.get(str(source.label.absolute()), ()))

    def starting_with(self, message_id: str) -> list[str]:
        """The imported sessions whose first message is ``message_id``."""
        return list(self._by_first.get(message_id, ()))

    def comes_from(self, session: str, conversation: str) -> bool:
        """True if ``session`` names ``conversation`` as its parent, or its parent's; or one that is not there yet."""
        seen: set[str] = set()
        while (key := self._named.get(session)) is not None and session not in seen:
            seen.add(session)
            above = self._by_key.get(key) or next(iter(self._conversations.get(key, ())), None)
            if key == conversation or above is None:
                return True
            session = above
        return False

    def bring_back(self, branches: Sequence[Imported]) -> set[str]:
        """Restore what was deleted of the conversation of ``branches``, as far as ids are free; what came back."""
        restored: set[str] = set()
        as_is = branches[0].keeps_as_is
        lines = [known_by(branch.messages, keeps_as_is=True) for branch in branches] if as_is else []
        for gone in self.deleted.of_conversation(*names_of(branches[0])):
            if self._dry_run or (as_is and not any(gone.holds(line, keeps_as_is=True) for line in lines)):
                continue
            with contextlib.suppress(SessionError):
                self._manager.restore(gone.session)
                restored.add(gone.session)
                self._taken.add(gone.session.lower())
                self._note(gone.session, gone.meta)
        self.deleted.forget(branches)
        return restored

    # ------------------------------------------------------------ writing

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

        ``parent`` is its parent's id and how many messages they share. It is on disk after ``finish``.
        """
        if self._dry_run:
            return None
        lines = encoding.encode_lines(_stored(imported.messages, keeps_as_is=imported.keeps_as_is))
        origin = {**provenance.origin_of(imported, source, format), "of": of, "bytes": len(lines)}
        values: dict[str, Any] = {
            "title": title,
            "tags": provenance.tags_of(imported.tags),
            **provenance.created_of(imported),
            **imported.meta,
        }
        if parent is not None:
            values["forked_from"] = provenance.forked_from(parent, imported.messages)
        if imported.parent_key is not None:
            origin["parent_key"] = imported.parent_key
        session = self._new_id(provenance.base_id(imported, title))
        self._batch.add(NewSession(session, {"id": session, **values, "imported_from": origin}, lines))
        self._by_key[imported.key] = session
        self._families.setdefault(callers.root_of(imported.key), []).append(session)
        self._changed.add(callers.root_of(imported.key))
        self._note_caller(session, values)
        if session in self._uncalled:
            self._changed.add(callers.root_of(self._uncalled[session]))
        if isinstance(origin.get("first"), str):
            self._by_first.setdefault(origin["first"], []).append(session)
        if imported.parent_key is not None:
            self._named[session] = imported.parent_key
            if parent is None:
                self._unlinked[session] = imported.parent_key
        return session

    def _new_id(self, base: str) -> str:
        """An id made of ``base`` that no session of the folder had when this import began, nor got since from it."""
        while True:
            number = self._next_number.get(base, 1)
            self._next_number[base] = number + 1
            session = base if number == 1 else f"{base[: names.MAX_ID - 8]}-{number}"
            if session.lower() not in self._taken:
                self._taken.add(session.lower())
                return session

    def extend(self, known: Known, added: Sequence[Message], source: Source, *, keeps_as_is: bool, of: int) -> None:
        """Append ``added`` to an imported session, under its lock."""
        if self._dry_run:
            return
        self._open(known.id)
        store = self._manager.store
        with store.hold(known.id) as hold:
            contents = store.open(known.id)
            store.read(known.id, contents, messages=True)
            if list(contents.messages) != known.messages:
                raise SessionError(f"Session {known.id!r} changed while it was imported into. Import again.")
            stored = _stored(added, keeps_as_is=keeps_as_is)
            change = partial(provenance.imported_now, source=source, of=of, has_grown=True)
            with store.changing_meta(known.id, change, contents):
                store.append(known.id, stored, contents, hold, again=bool(contents.damaged))

    def remember(self, session: str, source: Source, *, of: int) -> None:
        """Note in a session's metadata that ``source`` was imported as it is now, if it came from there."""
        if self._dry_run:
            return
        opened = self._open(session)
        change = partial(provenance.imported_now, source=source, of=of)
        if (changed := change(opened.meta)) != opened.meta:
            with contextlib.suppress(NewerVersion):  # what a newer Forkbook wrote is looked at again next time
                opened.update_meta({"imported_from": changed["imported_from"]})

    def finish(self) -> None:
        """Write what waits; then give sessions their ``forked_from``, and sub-agents their caller, that came later.

        One that is locked or gone is left for the next import.
        """
        if self._dry_run:
            return
        self._batch.write()
        for session, key in list(self._uncalled.items()):
            if callers.root_of(key) in self._changed:
                with contextlib.suppress(SessionError):
                    self._link_caller(session, key)
        self._calls.clear()
        for session, key in list(self._unlinked.items()):
            with contextlib.suppress(SessionError):
                self._link_parent(session, key)

    def _link_caller(self, session: str, key: str) -> None:
        """Name the session whose call made this sub-agent, and the call; a call that is named but not there waits."""
        child = self._manager.open(session)
        agent, origin = child.meta["subagent_of"], child.meta["imported_from"]
        prompt = messages.first_prompt(child.messages)
        root = self._by_key.get(key)
        family = dict.fromkeys([*([root] if root else []), *self._families.get(callers.root_of(key), ())])
        for one in family:
            if one != session and (call := callers.call_of(agent, origin, prompt, self._calls_of(one))) is not None:
                caller = self._manager.open(one).meta["imported_from"]["key"]
                child.update_meta({"subagent_of": {**agent, "key": caller, "tool_call_id": call, "session": one}})
                del self._uncalled[session]
                return
        if root is not None and "tool_call_id" not in agent:
            child.update_meta({"subagent_of": {**agent, "session": root}})
            del self._uncalled[session]

    def _calls_of(self, session: str) -> callers.Calls:
        if session not in self._calls:
            self._calls[session] = callers.calls_in(self._manager.open(session).messages)
        return self._calls[session]

    def _link_parent(self, session: str, key: str) -> None:
        others = [one for one in self._conversations.get(key, ()) if one != session]
        child = self._manager.open(session)
        as_is = "first" not in child.meta["imported_from"]
        nearest = self.nearest(others, known_by(child.messages, keeps_as_is=as_is), keeps_as_is=as_is)
        if nearest is not None:
            if nearest[1] or "subagent_of" not in child.meta:
                child.update_meta({"forked_from": provenance.forked_from(nearest, child.messages)})
            del self._unlinked[session]


def _stored(said: Sequence[Message], *, keeps_as_is: bool) -> Sequence[Message]:
    if keeps_as_is:
        return said
    return [m if "id" in m else {**m, "id": messages.new_id()} for m in said]
