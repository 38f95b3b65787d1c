"""Imported sessions that a person deleted: they stay deleted until the person asks for them, or empties the trash.

Read from the trash: its entries keep the metadata, and with it where a session came from.

Does not restore anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sessions_lib.importers.adding import provenance
from sessions_lib.importers.unique_ids import known_by
from sessions_lib.store.folder import jsonl, metadata, trash


@dataclass(frozen=True, slots=True)
class Gone:
    """A deleted session: its id, its metadata, and its files' folder in the trash."""

    session: str
    meta: Mapping[str, Any]
    place: Path

    @property
    def key(self) -> str:
        """The key of the conversation it was imported from."""
        return str(self.meta["imported_from"]["key"])

    def holds(self, line: Sequence[str], *, keeps_as_is: bool) -> bool:
        """True if every message of ``line`` is in it, or ``line`` starts with all that was imported of it."""
        try:
            said = jsonl.read(self.place / f"{self.session}.jsonl").messages
        except OSError:
            return False
        known = known_by(said, keeps_as_is=keeps_as_is)
        count = self.meta["imported_from"].get("messages")
        start = known[:count] if isinstance(count, int) and count > 0 else known
        return set(line) <= set(known) or (bool(start) and start == list(line[: len(start)]))


class Deleted:
    """What lies in the trash of a folder and was imported."""

    def __init__(self, folder: Path) -> None:
        self._by_conversation: dict[str, list[Gone]] = {}
        self._by_file: dict[tuple[Any, ...], list[int]] = {}
        for entry in trash.entries(folder):
            place = folder / trash.FOLDER / entry.entry
            if entry.kind in ("deleted", trash.UNFINISHED):
                self._note(entry.session, metadata.read(place / f"{entry.session}{metadata.SUFFIX}").values, place)

    def _note(self, session: str, meta: Mapping[str, Any], place: Path) -> None:
        origin = meta.get("imported_from")
        if isinstance(origin, dict) and isinstance(origin.get("key"), str):
            conversation = str(origin.get("conversation", origin["key"]))
            self._by_conversation.setdefault(conversation, []).append(Gone(session, meta, place))
            self._by_file.setdefault(provenance.file_of(origin), []).append(origin.get("of", 1))

    def of_conversation(self, conversation: str) -> list[Gone]:
        """What was deleted of one conversation, the last deleted first."""
        return list(self._by_conversation.get(conversation, ()))

    def of_file(self, file: tuple[Any, ...]) -> list[int]:
        """For each deleted session that a file gave, how many sessions the file gave in all."""
        return self._by_file.get(file, [])

    def has(self, conversation: str, key: str, line: Sequence[str], *, keeps_as_is: bool) -> bool:
        """True if this branch of ``conversation`` was deleted: by its key, or because its messages were.

        Where messages are kept as they are, a key is only how a conversation starts, and proves nothing.
        """
        found = self._by_conversation.get(conversation, ())
        is_named = not keeps_as_is and any(gone.key == key for gone in found)
        return is_named or any(gone.holds(line, keeps_as_is=keeps_as_is) for gone in found)

    def forget(self, conversation: str | None = None) -> None:
        """Take ``conversation``, or all, as not deleted."""
        if conversation is None:
            self._by_file.clear()
        else:
            self._by_conversation.pop(conversation, None)
