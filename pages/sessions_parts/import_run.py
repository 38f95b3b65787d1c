"""An import in the background: how far it is, and a way to stop it that any later run of the page can use.

It belongs to the server, not to the page: closing the dialog or the browser does not stop it.

Does not draw.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from sessions_lib import importers
from sessions_lib.errors import SessionError
from sessions_lib.importers import Progress
from sessions_lib.store.manager import SessionManager


class ImportRun:
    """One import: ``done`` grows file by file; ``error`` says why it ended early, if it did."""

    def __init__(
        self,
        manager: SessionManager,
        paths: Sequence[Path],
        *,
        again: bool = False,
        held: tempfile.TemporaryDirectory[str] | None = None,
    ) -> None:
        """Start importing ``paths``; ``held`` is removed at the end. ``again`` brings back what was deleted."""
        self.done: list[Progress] = []
        self.error: SessionError | None = None
        self.is_stopped = False
        self._manager, self._paths, self._again, self._held = manager, paths, again, held
        # A daemon: a server that ends may stop an import anywhere, and the next import ends it.
        self._thread = threading.Thread(target=self._work, name="import", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            with closing(importers.import_paths(self._manager, self._paths, again=self._again)) as steps:
                for step in steps:
                    self.done.append(step)
                    if self.is_stopped:
                        break
        except SessionError as error:
            self.error = error
        finally:
            if self._held is not None:
                self._held.cleanup()

    @property
    def is_running(self) -> bool:
        """True until the last file is done, or it is stopped."""
        return self._thread.is_alive()

    def wait(self, seconds: float) -> None:
        """Wait until it has ended, at most ``seconds``."""
        self._thread.join(seconds)

    def stop(self) -> None:
        """End it after the file in hand; what was imported stays, and importing again goes on from there."""
        self.is_stopped = True
