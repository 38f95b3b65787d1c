"""A session: one conversation, kept in a store or in memory.

* Appending: under the session's lock, kept for good when it returns; then memory, never before.
* Reading and forking never wait and never write. ``refresh`` reads what others added.
* A fork is a copy of the first messages under a new id; ids are kept, the parent is untouched.
* A running session can be tagged; each change of the metadata reads it again first.

Does not know how a store keeps sessions, and does not call a model, list or search: that is for ``agent`` and
``manager``.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from sessions_lib import messages, names, text, times
from sessions_lib.errors import InvalidMessage, SessionError
from sessions_lib.messages import tool_calls
from sessions_lib.messages.content import Message
from sessions_lib.store import documents, records, tagging
from sessions_lib.store import merge as merging
from sessions_lib.store.memory import MemoryStore
from sessions_lib.store.records import Contents, DamagedLine, as_told
from sessions_lib.store.store import Change, Hold, SessionStore, open_store


@dataclass(frozen=True, slots=True)
class Report:
    """What reading found: damaged lines, unanswered calls, lines read in spite of a fault, what a fork left out.

    ``left_out`` counts the parent's messages behind the fork point; ``metadata`` says why metadata could not be read.
    ``where`` and ``metadata_where`` are what a person calls the places of messages and metadata.
    """

    damaged: list[DamagedLine] = field(default_factory=list)
    unanswered: list[tool_calls.Call] = field(default_factory=list)
    repaired: list[DamagedLine] = field(default_factory=list)
    left_out: int = 0
    metadata: str | None = None
    where: str = ""
    metadata_where: str = ""


class Session:
    """One conversation. ``Session(name="…")`` is in memory until saved; one of a manager writes through."""

    def __init__(self, name: str | None = None) -> None:
        """A new, empty session in memory, titled ``name``."""
        from sessions_lib.redaction import ids  # only a new session needs its rules

        store, meta = MemoryStore(), {"title": name, "created": times.now()}
        self._keep(store, store.create(ids.made_of(name) if name else names.random_id(), "", meta))

    @classmethod
    def open(cls, where: SessionStore | str | Path, session_id: str) -> Session:
        """The session ``session_id`` of a store, or of the one at ``where``; ``SessionNotFound`` if it is not there."""
        session = cls.__new__(cls)
        session._keep(open_store(where) if isinstance(where, str | Path) else where, session_id)
        return session

    def _keep(self, store: SessionStore, session_id: str, left_out: int = 0) -> None:
        self._store, self._id = store, session_id
        self._known: Contents = store.open(session_id)
        self._left_out = left_out
        self._hold: Hold | None = None
        self._mutex = threading.Lock()

    # ------------------------------------------------------------ what it is

    @property
    def id(self) -> str:
        """The session's id."""
        return self._id

    @property
    def title(self) -> str:
        """The title a person gave, else the first prompt on one line, else the id."""
        return text.display_title(self._known.meta.title, messages.first_prompt(self.messages), self._id)

    @property
    def tags(self) -> list[str]:
        """The tags, in the order they were added."""
        return self._known.meta.tags

    @property
    def meta(self) -> dict[str, Any]:
        """A copy of the metadata, unknown keys included."""
        return dict(self._known.meta.values)

    @property
    def parent(self) -> str | None:
        """The id of the session this one was forked from, or ``None``."""
        return self._known.meta.parent

    @property
    def inherited(self) -> int:
        """How many of the messages were copied from the parent."""
        return min(self._known.meta.inherited, len(self.messages))

    @property
    def store(self) -> SessionStore:
        """The store that keeps it."""
        return self._store

    @property
    def path(self) -> Path | None:
        """The file of the messages, or ``None`` in memory; it need not exist before the first message."""
        return self._store.path(self._id)

    @property
    def messages(self) -> list[Message]:
        """The messages in order, as last read or written; ``refresh`` reads what others added."""
        return self._read().messages

    @property
    def turns(self) -> list[list[Message]]:
        """The messages cut into turns: a prompt and all that answers it."""
        return messages.turns(self.messages)

    @property
    def report(self) -> Report:
        """What was found when the session was read."""
        known = self._read()
        unanswered = tool_calls.pair(known.messages).unanswered
        told, meta = as_told(known.damaged), known.meta
        return Report(told, unanswered, known.glued, self._left_out, meta.fault, known.where, meta.where)

    def __repr__(self) -> str:
        return f"<Session {self._id!r} in {self._store.where}>"

    # ------------------------------------------------------------ reading

    def _read(self) -> Contents:
        if not self._known.is_read:
            with self._mutex:
                if not self._known.is_read:
                    self._store.read(self._id, self._known, messages=True)
        return self._known

    def refresh(self) -> bool:
        """Read what others added since; True if there was anything. ``SessionNotFound`` if it was deleted."""
        with self._mutex:
            return self._refresh()

    def _refresh(self) -> bool:
        return self._store.read(self._id, self._known, messages=self._known.is_read)

    # ------------------------------------------------------------ writing

    def hold(self, timeout: float = 1.0) -> Hold:
        """Take the session's lock for a run; ``SessionLocked`` if another writer has it for ``timeout`` seconds.

        Until it is released, from any thread, this object appends under it. What others had added is read first.
        """
        hold = self._store.hold(self._id, timeout)
        try:
            self.refresh()
        except SessionError:
            hold.release()
            raise
        self._hold = hold
        return hold

    @contextmanager
    def _held(self) -> Iterator[Hold]:
        """The hold of the run, or one for as long as the block lasts."""
        if self._hold is not None and self._hold.is_held:
            yield self._hold
            return
        with self._store.hold(self._id) as hold:
            yield hold

    def append(self, message: Mapping[str, Any]) -> Message:
        """Add ``message`` and return it as stored, with ``id`` and ``timestamp`` where it had none.

        Kept for good when it returns. ``InvalidMessage``, ``SessionLocked``, ``SessionNotFound`` (deleted while open)
        and ``StorageError`` leave store and memory as they were.
        """
        return self.extend([message])[0]

    def extend(self, added: Iterable[Mapping[str, Any]]) -> list[Message]:
        """Add several messages in one write: all of them or, with the errors of ``append``, none."""
        stamped = [_stamped(message) for message in added]
        if not stamped:
            return []
        with self._mutex, self._held() as hold:
            self._refresh()
            return self._store.append(self._id, stamped, self._known, hold)

    def update_meta(self, changes: Mapping[str, Any]) -> None:
        """Set the given keys of the metadata; ``None`` removes one. What other windows changed meanwhile stays."""
        self._change_meta(lambda values: {**values, **changes})

    def rename(self, title: str) -> None:
        """Give the session a title; a blank one takes the title away, and the first prompt is shown again."""
        self.update_meta({"title": str(messages.clean(title)) if title.strip() else None})

    def add_tag(self, tag: str) -> None:
        """Add ``tag``; one that differs only by case or blanks is the same tag."""
        self._change_meta(lambda values: {**values, "tags": tagging.with_tag(records.Metadata(values).tags, tag)})

    def remove_tag(self, tag: str) -> None:
        """Take ``tag`` away, in whatever case it is written."""
        self._change_meta(lambda values: {**values, "tags": tagging.without_tag(records.Metadata(values).tags, tag)})

    def change_tags(self, add: Iterable[str] = (), remove: Iterable[str] = ()) -> None:
        """Take tags away, then add some: all at once, or nothing (``SessionError`` for a tag that cannot be one).

        A tag that is added in another spelling than it is taken away in is there, in the new spelling.
        """
        self._change_meta(lambda values: {**values, "tags": tagging.changed_tags(values, list(add), list(remove))})

    def _change_meta(self, change: Change) -> None:
        with self._store.changing_meta(self._id, change, self._known):
            pass

    # ------------------------------------------------------------ forks

    def fork(
        self,
        new_id: str | None = None,
        at: int | None = None,
        title: str | None = None,
        *,
        mark: str = "",
        then: Sequence[Message] = (),
    ) -> Session:
        """A new session that starts as a copy of the first ``at`` messages (default: the last allowed point).

        Ids and times are kept, the parent untouched. Tags and settings are taken over. Without a ``title`` it is called
        as this session and, behind a dot, where it was forked, or ``mark``: what it does otherwise.
        ``then`` are its first own messages (see ``forks.change``).
        ``ForkPointForbidden`` names the nearest allowed points; ``SessionExists`` if ``new_id`` is taken. The new
        session's ``report`` says what was left out. Never waits: a running session can be forked.
        """
        with self._mutex:
            return fork(self._store, self._id, new_id, at, title, mark=mark, known=self._known, then=then)

    # ------------------------------------------------------------ joining

    def merge(self, other: Session) -> None:
        """Take in what only ``other`` has: the shared start once, then whole turns by time (see ``merge``).

        Changes this session, never ``other``; a second merge changes nothing. The original goes to the trash.
        """
        if other.id == self.id and other._store.name == self._store.name:
            return
        other.refresh()
        with self._held() as hold:
            self.refresh()
            merged = merging.merge(self.messages, other.messages)
            with self._store.changing_meta(self._id, partial(merging.with_source, source=other.id), self._known):
                if len(merged) != len(self.messages):
                    with self._mutex:
                        self._store.replace(self._id, merged, self._known, hold, kept_as="merged")

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
        """Write the session to ``path`` (0600) in one of the formats of ``export``; tables go into a folder.

        ``markdown``, ``html``, ``atif``, ``ipynb`` and ``parquet`` are redacted unless told otherwise
        (``redacted=False``); ``json``, ``jsonl``, ``request`` and ``finetune`` only if told so.
        """
        from sessions_lib.export import export  # loaded when first used: listing and chatting need none of it

        kind = export.FORMATS[export.format_name(format)]
        options = {"redacted": kind.is_redacted, **options}
        meta = {**self.meta, "id": self.id}
        if kind.tables is not None:
            export.save(Path(path), self.messages, meta, format, **options)
            return Path(path)
        return export.write(Path(path), export.export(self.messages, meta, format, **options))

    def save(self, path: str | Path) -> Path:
        """Write the session to ``path`` as one JSON document; one without a title takes the file's name as title."""
        if self._known.meta.title is None:
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
        kept = {key: value for key, value in meta.items() if key not in ("id", "version", "forked_from")}
        own = {"title": self._known.meta.title} if self._known.meta.title else {}
        changes = {"title": Path(path).stem, **kept, **own}
        with (
            self._held() as hold,
            self._store.changing_meta(self._id, lambda values: {**values, **changes}, self._known),
            self._mutex,
        ):
            self._store.append(self._id, [_stamped(message) for message in found], self._known, hold)


def fork(
    store: SessionStore,
    parent: str,
    new_id: str | None = None,
    at: int | None = None,
    title: str | None = None,
    *,
    mark: str = "",
    known: Contents | None = None,
    then: Sequence[Message] = (),
) -> Session:
    """A fork of the session ``parent`` of ``store``; see ``Session.fork``."""
    forked = store.fork(parent, new_id, at, title, mark=mark, known=known, then=then)
    child = Session.__new__(Session)
    child._keep(store, forked.id, forked.left_out)
    return child


def _stamped(message: Mapping[str, Any]) -> Message:
    if not messages.is_message(message):
        raise InvalidMessage("A message is a dict with a string 'role'; this is none. Nothing was stored.")
    return messages.stamped(message)
