"""Imported conversations → sessions of a folder: what is new is added, and nothing is ever overwritten.

A conversation is known again by its key in ``imported_from``, its messages by their identities:

* Every message is there already: nothing is written, whatever else the session holds.
* The source has grown, and the session holds only what was imported: the new messages are appended. Of an answer that
  was imported before it was complete, the rest is appended as a message of its own (the same id and ``+2``).
* The source has grown, and the session was continued here: nothing is interleaved. A new session holds the source's
  line, forked from the other where they part; from then on it is the one that grows.
* A branch is a session that names its parent in ``forked_from``, whichever of the two was imported first.

A file whose size and time are those of its last import is not read again. Deleted sessions come back by an import only
if no other session of their file is left, or the file changed.

Does not read sources.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sessions_lib import content, jsonl, listing, messages, metadata, names, times, usage
from sessions_lib.content import Message
from sessions_lib.errors import SessionError
from sessions_lib.importers.imported import Imported, set_usage
from sessions_lib.importers.recognise import TOOLS
from sessions_lib.importers.source import Source
from sessions_lib.manager import SessionManager

VERSION = 1  # of what importers make of a source; a higher one reads unchanged files again


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one conversation: ``change`` is ``new``, ``grown``, ``parted`` or ``unchanged``.

    ``session`` is its id (``None`` for what a dry run would make), ``added`` how many messages were written.
    """

    session: str | None
    title: str
    change: str
    added: int
    messages: int


@dataclass(slots=True)
class _Known:
    """A session that was imported before, its messages read when first needed."""

    id: str
    ids: list[str] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    is_read: bool = False


class Store:
    """The folder that is imported into, and which of its sessions were imported from where."""

    def __init__(self, manager: SessionManager, *, dry_run: bool = False) -> None:
        self._manager = manager
        self._dry_run = dry_run
        self._conversations: dict[str, dict[str, _Known]] = {}
        self._by_key: dict[str, str] = {}
        self._files: set[tuple[str, int, int, int]] = set()
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
        self._conversations.setdefault(str(conversation), {})[session] = _Known(session)
        self._by_key[origin["key"]] = session
        parent = origin.get("parent_key")
        if isinstance(parent, str) and "forked_from" not in meta:
            self._unlinked[session] = parent
        size, modified, version = origin.get("size"), origin.get("modified"), origin.get("version_of_import")
        if isinstance(size, int) and isinstance(modified, int) and isinstance(version, int):
            self._files.add((str(origin.get("path")), size, modified, version))

    def is_unchanged(self, source: Source) -> bool:
        """True if the file was imported as it is now, and a session of it is still there."""
        stamp = _stamp(source)
        return stamp is not None and (str(source.label.absolute()), *stamp, VERSION) in self._files

    def put(self, found: Sequence[Imported], source: Source, format: str) -> list[Outcome]:
        """Write what is new in ``found`` and say what became of each."""
        outcomes: list[Outcome] = []
        groups: dict[str, list[Imported]] = {}
        for imported in found:
            groups.setdefault(imported.conversation or imported.key, []).append(imported)
        for conversation, branches in groups.items():
            known = self._conversations.setdefault(conversation, {})
            outcomes += _Merge(self, known, branches, source, format).run()
        return outcomes

    # ------------------------------------------------------------ used by _Merge

    def read(self, known: _Known) -> _Known:
        """``known`` with its messages."""
        if not known.is_read:
            known.messages = list(self._manager.open(known.id).messages)
            known.ids = messages.identities(known.messages)
            known.is_read = True
        return known

    def parent_of(self, imported: Imported) -> str | None:
        """The session that ``imported`` was forked from, if it is in the folder."""
        if imported.parent_key is None:
            return None
        if (session := self._by_key.get(imported.parent_key)) is not None:
            return session
        if imported.parent_key.startswith("forkbook:"):
            session = imported.parent_key.split(":", 2)[1]
            return session if session.lower() in self._taken and self._manager.exists(session) else None
        return None

    def create(
        self, imported: Imported, source: Source, format: str, parent: tuple[str, int] | None, title: str | None
    ) -> str | None:
        """A new session for ``imported``; ``parent`` is its parent's id and how many messages they share."""
        origin = _origin(imported, source, format)
        base = _base_id(imported, title)
        if self._dry_run:
            return None
        values: dict[str, Any] = {"title": title, "tags": _tags(imported.tags), **_created(imported), **imported.meta}
        if isinstance(agent := values.get("subagent_of"), dict) and (caller := self._by_key.get(str(agent.get("key")))):
            values["subagent_of"] = {"session": caller, **agent}
        if parent is not None:
            values["forked_from"] = _forked_from(parent, imported.messages)
        elif imported.parent_key is not None:
            origin["parent_key"] = imported.parent_key
        session = self._claim(base, {**values, "imported_from": origin})
        stored = [m if imported.keeps_as_is else messages.stamped(m) for m in imported.messages]
        jsonl.write_new(
            self._manager.folder / f"{session}.jsonl", b"".join(jsonl.encode(message) + b"\n" for message in stored)
        )
        self._by_key[imported.key] = session
        if parent is None and imported.parent_key is not None:
            self._unlinked[session] = imported.parent_key
        return session

    def _claim(self, base: str, values: Mapping[str, Any]) -> str:
        """Make the metadata of a new session under an id nobody has, and return the id."""
        from sessions_lib.session import make_folder

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
                jsonl.write_new(path, metadata.encode({"id": session, **values}))
            except FileExistsError:
                continue
            return session

    def extend(self, known: _Known, added: Sequence[Message], source: Source, *, keeps_as_is: bool) -> None:
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
        self.remember(known.id, source)

    def remember(self, session: str, source: Source) -> None:
        """Note in a session's metadata that ``source`` was imported as it is now."""
        if self._dry_run or (stamp := _stamp(source)) is None:
            return
        opened = self._manager.open(session)
        origin = opened.meta.get("imported_from")
        if isinstance(origin, dict):
            size, modified = stamp
            now = {"path": str(source.label.absolute()), "size": size, "modified": modified}
            if {**origin, **now} != origin:
                opened.update_meta({"imported_from": {**origin, **now}})

    def link(self) -> None:
        """Give sessions whose parent came later their ``forked_from``."""
        if self._dry_run:
            return
        for session, parent_key in list(self._unlinked.items()):
            parent = self._by_key.get(parent_key)
            if parent is None or parent == session:
                continue
            del self._unlinked[session]
            child = self._manager.open(session)
            shared = _common(
                messages.identities(child.messages), messages.identities(self._manager.open(parent).messages)
            )
            if shared or "subagent_of" not in child.meta:
                child.update_meta({"forked_from": _forked_from((parent, shared), child.messages)})
            if isinstance(agent := child.meta.get("subagent_of"), dict):
                child.update_meta({"subagent_of": {"session": parent, **agent}})


class _Merge:
    """One conversation of a source against the sessions that came from it before."""

    def __init__(
        self, store: Store, known: dict[str, _Known], branches: list[Imported], source: Source, format: str
    ) -> None:
        self._store, self._source, self._format = store, source, format
        self._branches = branches
        self._known = known
        self._before = [store.read(one) for one in known.values()]
        self._lines = [messages.identities(branch.messages) for branch in branches]
        self._of_source = {one for line in self._lines for one in line}
        self._used: set[str] = set()
        self._holding: dict[str, list[_Known]] = {}
        for one in self._before:
            for message_id in one.ids:
                self._holding.setdefault(message_id, []).append(one)

    def run(self) -> list[Outcome]:
        return [self._place(branch, line) for branch, line in zip(self._branches, self._lines, strict=True)]

    def _place(self, branch: Imported, line: list[str]) -> Outcome:
        title = branch.title or names.title_from(messages.first_prompt(branch.messages)) or branch.key
        covering = self._covering(branch, line)
        known = covering or self._grown_from(line)
        if known is None:
            return self._add(branch, line, title)
        self._used.add(known.id)
        added = _what_is_new(known, branch.messages, line)
        if not added:
            self._store.remember(known.id, self._source)
            return Outcome(known.id, title, "unchanged", 0, len(line))
        if covering is not None and not self._is_pure(known):
            # A rest of an answer cannot be put where it belongs behind what was said here since.
            return Outcome(known.id, title, "unchanged", 0, len(line))
        self._store.extend(known, added, self._source, keeps_as_is=branch.keeps_as_is)
        return Outcome(known.id, title, "grown", len(added), len(line))

    def _covering(self, branch: Imported, line: list[str]) -> _Known | None:
        """A session that holds every message of ``line``; where ids are only hashes, each covers one line."""
        wanted = set(line)
        found = [one for one in self._holding.get(line[-1], []) if wanted <= set(one.ids)]
        if branch.keeps_as_is:
            found = [one for one in found if one.id not in self._used]
        return min(found, key=lambda one: (one.id in self._used, len(one.ids)), default=None)

    def _is_pure(self, known: _Known) -> bool:
        return all(_whole(one) in self._of_source for one in known.ids)

    def _grown_from(self, line: list[str]) -> _Known | None:
        """The longest session that holds a start of ``line`` and nothing else."""
        found = [
            (len(plain), one)
            for one in self._before
            if one.id not in self._used
            and (plain := [i for i in one.ids if _whole(i) == i or i in self._of_source])
            and plain == line[: len(plain)]
            and self._is_pure(one)
        ]
        return max(found, key=lambda pair: pair[0])[1] if found else None

    def _add(self, branch: Imported, line: list[str], title: str) -> Outcome:
        parent: tuple[str, int] | None = None
        change = "new"
        continued = max(self._before, key=lambda one: _common(one.ids, line), default=None)
        if continued is not None and (shared := _common(continued.ids, line)) and not branch.keeps_as_is:
            parent = (continued.id, shared)
            change = "parted" if branch.parent_key is None else "new"
        session = self._store.parent_of(branch)
        if session is not None:
            # Branches of this file know their place; a parent in another file is compared message by message.
            shared = branch.shared
            if session not in self._known or not shared:
                shared = _common(self._store.read(_Known(session)).ids, line)
            if parent is None or shared >= parent[1]:
                parent = (session, shared) if shared or "subagent_of" not in branch.meta else None
        own_title = branch.title
        if (parent is not None and branch.parent_key is None) or branch.shared:
            own_title = f"{names.one_line(title)} · from message {parent[1] if parent else branch.shared}"
        made = self._store.create(branch, self._source, self._format, parent, own_title)
        if made is not None:
            self._known[made] = _Known(made, line, branch.messages, True)
        return Outcome(made, own_title or title, change, len(line), len(line))


# ---------------------------------------------------------------- parts


def _whole(message_id: str) -> str:
    """The id of the answer that ``message_id`` is a later part of, or itself."""
    base, plus, number = message_id.rpartition("+")
    return base if plus and number.isdigit() else message_id


def _what_is_new(known: _Known, source: Sequence[Message], line: Sequence[str]) -> list[Message]:
    """The messages of the source that ``known`` lacks, the rest of a grown answer first."""
    have = set(known.ids)
    added: list[Message] = []
    last = next((m for m in reversed(source) if m.get("role") == "assistant" and m.get("id") in have), None)
    if last is not None:
        parts = [
            m for m, i in zip(known.messages, known.ids, strict=True) if _whole(i) == last["id"] or i == last["id"]
        ]
        rest = _rest_of(last, parts)
        if rest is not None:
            added.append(rest)
    return [*added, *(message for message, message_id in zip(source, line, strict=True) if message_id not in have)]


def _rest_of(whole: Message, parts: Sequence[Message]) -> Message | None:
    """What ``whole`` says beyond its stored ``parts``, as a message of its own; ``None`` if nothing."""
    if not messages.has_id(whole) or not parts:
        return None
    have = {call.get("id") for part in parts for call in part.get("tool_calls") or [] if isinstance(call, dict)}
    calls = [call for call in whole.get("tool_calls") or [] if isinstance(call, dict) and call.get("id") not in have]
    text = content.text(whole)
    for part in parts:
        said = content.text(part)
        text = text[len(said) :].lstrip("\n") if text.startswith(said) else ""
    if not calls and not text:
        return None
    kept = ("timestamp", "model", "finish_reason", "source")
    rest: Message = {"role": "assistant", "content": text or None, **{k: whole[k] for k in kept if k in whole}}
    if calls:
        rest["tool_calls"] = calls
    rest["id"] = f"{whole['id']}+{len(parts) + 1}"
    set_usage(rest, _beyond(whole, parts))
    return rest


def _beyond(whole: Message, parts: Sequence[Message]) -> dict[str, int] | None:
    now, before = usage.of(whole), usage.total(parts)
    if now is None:
        return None
    more = {
        "prompt_tokens": (now.input or 0) - (before.input or 0),
        "completion_tokens": (now.output or 0) - (before.output or 0),
    }
    return {key: max(0, count) for key, count in more.items()} if any(count > 0 for count in more.values()) else None


def _common(first: Sequence[str], second: Sequence[str]) -> int:
    count = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        count += 1
    return count


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
    if imported.key.startswith("forkbook:") and names.is_id(str(own)):
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
    stamp = _stamp(source)
    if stamp is not None:
        origin["size"], origin["modified"] = stamp
    return origin
