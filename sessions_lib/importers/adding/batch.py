"""New sessions that wait to be written together: waits for the disk are shared.

Does not choose ids and does not know sources.
"""

from __future__ import annotations

from sessions_lib.store.records import NewSession
from sessions_lib.store.store import SessionStore

_MAX_SESSIONS = 128
_MAX_BYTES = 16_000_000


class Batch:
    """The new sessions that are still to be written."""

    def __init__(self, store: SessionStore) -> None:
        """Nothing waits at first."""
        self._store = store
        self._waiting: dict[str, NewSession] = {}
        self._size = 0

    def __contains__(self, session: str) -> bool:
        return session in self._waiting

    def add(self, session: NewSession) -> None:
        """Let ``session`` be written, with others when there are enough."""
        self._waiting[session.id] = session
        self._size += len(session.lines)
        if len(self._waiting) >= _MAX_SESSIONS or self._size >= _MAX_BYTES:
            self.write()

    def write(self) -> None:
        """Store everything that waits; ``SessionError`` if that is refused."""
        waiting, self._waiting, self._size = self._waiting, {}, 0
        if waiting:
            self._store.create_many(list(waiting.values()))
