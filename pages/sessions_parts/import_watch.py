"""The watch over other tools' sessions that the server keeps while it is switched on: one for each folder of sessions.

It belongs to the server, as an import does: it goes on when the browser is closed, and ends with the server.

Does not draw.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime

from sessions_lib.errors import SessionError
from sessions_lib.importers.watcher import Watcher
from sessions_lib.store.manager import SessionManager


class ImportWatch:
    """One watch: how much it brought ``since`` when, and ``error``, what keeps it from going on, if anything does."""

    def __init__(self, manager: SessionManager) -> None:
        """Start following the places where this machine's tools keep sessions."""
        self.since = datetime.now(UTC)
        self.sessions = self.messages = 0
        self.error: SessionError | None = None
        self._watcher = Watcher(manager)
        # A daemon: a server that ends may stop an import anywhere, and the next one goes on from there.
        self._thread = threading.Thread(target=self._work, name="import watch", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        for made in self._watcher.rounds():
            self.sessions += made.added_sessions
            self.messages += made.added_messages
            self.error = made.error

    @property
    def is_running(self) -> bool:
        """True until it is stopped."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """End it after the file in hand; what was brought stays."""
        self._watcher.stop()


_watches: dict[str, ImportWatch] = {}
_mutex = threading.Lock()


def running(manager: SessionManager) -> ImportWatch | None:
    """The watch that imports into the sessions of ``manager``, if one is on."""
    watch = _watches.get(manager.store.name)
    return watch if watch is not None and watch.is_running else None


def switch(manager: SessionManager, *, is_on: bool) -> None:
    """Begin the watch, or end it; beginning one that runs changes nothing."""
    with _mutex:
        watch = running(manager)
        if is_on and watch is None:
            _watches[manager.store.name] = ImportWatch(manager)
        elif watch is not None and not is_on:
            _watches.pop(manager.store.name).stop()
