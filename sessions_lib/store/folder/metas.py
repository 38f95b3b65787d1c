"""The metadata of every session of a folder, each read again only when its file changed.

Does not read messages.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

from sessions_lib import names
from sessions_lib.store.folder import metadata
from sessions_lib.store.records import Metadata


class Metas:
    """What the metadata of a folder's sessions says."""

    def __init__(self, folder: Path) -> None:
        """Nothing is read yet."""
        self._folder = folder
        self._folder_changed_ns = -1
        self._stamps: dict[str, tuple[int, int]] = {}
        self._metas: dict[str, Metadata] = {}
        self._mutex = threading.Lock()

    def read(self) -> dict[str, Metadata]:
        """The metadata by session; a folder that is not there has none."""
        with self._mutex:
            try:
                # Metadata is replaced by a rename, which changes the time of the folder.
                changed_ns = self._folder.stat().st_mtime_ns
            except OSError:
                return {}
            if changed_ns != self._folder_changed_ns:
                self._read_changed()
                self._folder_changed_ns = changed_ns
            return dict(self._metas)

    def _read_changed(self) -> None:
        stamps: dict[str, tuple[int, int]] = {}
        with os.scandir(self._folder) as entries:
            for entry in entries:
                session = entry.name.removesuffix(metadata.SUFFIX)
                if session != entry.name and names.is_id(session):
                    state = entry.stat(follow_symlinks=False)
                    stamps[session] = (state.st_mtime_ns, state.st_ino)
        for session in self._metas.keys() - stamps.keys():
            del self._metas[session]
        for session, stamp in stamps.items():
            if self._stamps.get(session) != stamp:
                self._metas[session] = metadata.read(self._folder / f"{session}{metadata.SUFFIX}")
        self._stamps = stamps
