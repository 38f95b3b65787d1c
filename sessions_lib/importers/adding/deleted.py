"""Imported sessions that a person deleted: they stay deleted until the person asks for them, or empties the trash.

Read from the trash: its entries keep the metadata, and with it where a session came from.

Does not restore anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from sessions_lib.importers.adding import provenance
from sessions_lib.importers.imported import Imported
from sessions_lib.importers.unique_ids import known_by
from sessions_lib.messages.content import Message
from sessions_lib.store.records import TrashEntry
from sessions_lib.store.store import SessionStore


@dataclass(frozen=True, slots=True)
class Gone:
    """A deleted session: its id, its metadata, its messages when asked for."""

    session: str
    meta: Mapping[str, Any]
    said: Callable[[], Sequence[Message]]

    @property
    def key(self) -> str:
        """The key of the conversation it was imported from."""
        return str(self.meta["imported_from"]["key"])

    def holds(self, line: Sequence[str], *, keeps_as_is: bool) -> bool:
        """True if every message of ``line`` is in it, or ``line`` starts with all that was imported of it."""
        known = known_by(self.said(), keeps_as_is=keeps_as_is)
        count = self.meta["imported_from"].get("messages")
        start = known[:count] if isinstance(count, int) and count > 0 else known
        return set(line) <= set(known) or (bool(start) and start == list(line[: len(start)]))


class Deleted:
    """What lies in the trash and was imported."""

    def __init__(self, store: SessionStore) -> None:
        self._by_conversation: dict[str, list[Gone]] = {}
        self._by_file: dict[tuple[Any, ...], list[int]] = {}
        for entry in store.trash():
            if entry.is_session:
                meta = store.trashed(entry, messages=False).meta.values
                self._note(Gone(entry.session, meta, partial(_messages_of, store, entry)))

    def _note(self, gone: Gone) -> None:
        origin = gone.meta.get("imported_from")
        if isinstance(origin, dict) and isinstance(origin.get("key"), str):
            conversation = str(origin.get("conversation", origin["key"]))
            self._by_conversation.setdefault(conversation, []).append(gone)
            self._by_file.setdefault(provenance.file_of(origin), []).append(origin.get("of", 1))

    def of_conversation(self, *names: str) -> list[Gone]:
        """What was deleted of the conversation with these names, the last deleted first."""
        return [gone for name in names for gone in self._by_conversation.get(name, ())]

    def of_file(self, file: tuple[Any, ...]) -> list[int]:
        """For each deleted session that a file gave, how many sessions the file gave in all."""
        return self._by_file.get(file, [])

    def has(self, branch: Imported, line: Sequence[str]) -> bool:
        """True if ``branch``, known by ``line``, was deleted: by its key, or because its messages were.

        Where messages are kept as they are, a key is only how a conversation starts, and proves nothing.
        """
        found = self.of_conversation(*names_of(branch))
        is_named = not branch.keeps_as_is and any(gone.key == branch.key for gone in found)
        return is_named or any(gone.holds(line, keeps_as_is=branch.keeps_as_is) for gone in found)

    def forget(self, branches: Sequence[Imported] = ()) -> None:
        """Take what was deleted of the conversation of ``branches`` as not deleted; without any, what files gave."""
        if not branches:
            self._by_file.clear()
        for name in names_of(branches[0]) if branches else ():
            self._by_conversation.pop(name, None)


def names_of(imported: Imported) -> list[str]:
    """What the conversation of ``imported`` is called, and was called by earlier versions."""
    return [imported.conversation or imported.key, *([imported.formerly] if imported.formerly else [])]


def _messages_of(store: SessionStore, entry: TrashEntry) -> Sequence[Message]:
    return store.trashed(entry, messages=True).messages
