"""New sessions, put on disk many at a time: two waits for the disk for a hundred sessions, not four for each.

The metadata of a session, which names its source and how many bytes its messages take, is on disk before a byte of its
messages is. So whatever stops an import, what is left is a session that is whole, or one that the next import of the
same source recognises as unfinished and ends.

One import into a folder at a time: two would not see what the other one makes.

Does not choose ids and does not know sources.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sessions_lib.errors import SessionError, SessionLocked, StorageError
from sessions_lib.store.folder import disk, locks, metadata
from sessions_lib.store.folder.folder import make_folder

_MAX_SESSIONS = 128
_MAX_BYTES = 16_000_000
_WAIT_S = 2.0
_BESIDE = ".import"  # metadata until it is whole and on disk, under a hidden name


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """The lock of imports into ``folder``; ``SessionError`` names who has it, if another import is running."""
    make_folder(folder)
    try:
        lock = locks.Lock(locks.lock_path(folder, "", ".import"), "import", _WAIT_S)
    except SessionLocked as error:
        raise SessionError(
            f"Another import into {folder} is running ({error.holder}). Import again when it has ended: "
            "what it brought is not imported twice."
        ) from error
    with lock:
        for left in folder.glob(f".*{_BESIDE}"):  # by an import that was killed
            left.unlink(missing_ok=True)
        yield


class Batch:
    """The new sessions of a folder that are still to be written."""

    def __init__(self, folder: Path) -> None:
        """Nothing waits at first."""
        self._folder = folder
        self._waiting: dict[str, tuple[bytes, bytes]] = {}
        self._size = 0

    def __contains__(self, session: str) -> bool:
        return session in self._waiting

    def add(self, session: str, meta: bytes, lines: bytes) -> None:
        """Let ``session`` be written, with others when there are enough."""
        self._waiting[session] = (meta, lines)
        self._size += len(lines)
        if len(self._waiting) >= _MAX_SESSIONS or self._size >= _MAX_BYTES:
            self.write()

    def write(self) -> None:
        """Put everything that waits on disk; ``SessionError`` if the disk refuses."""
        waiting, self._waiting, self._size = self._waiting, {}, 0
        if waiting:
            _write(self._folder, waiting)


def _write(folder: Path, sessions: Mapping[str, tuple[bytes, bytes]]) -> None:
    whole = {folder / f"{session}{metadata.SUFFIX}": meta for session, (meta, _) in sessions.items()}
    beside = {path.with_name(f".{path.name}{_BESIDE}"): data for path, data in whole.items()}
    _write_files(folder, beside)
    for path, hidden in zip(whole, beside, strict=True):
        with _told(path):
            disk.rename_new(hidden, path)
    _write_files(folder, {folder / f"{session}.jsonl": lines for session, (_, lines) in sessions.items()})


def _write_files(folder: Path, files: Mapping[Path, bytes]) -> None:
    for path, data in files.items():
        with _told(path):
            disk.write_new(path, data, waits=False)
    disk.sync_all(folder, files)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError as error:  # made by another program since this import began
        raise SessionError(f"{path} appeared while it was imported. Import again.") from error
    except OSError as error:
        raise StorageError(path, f"cannot be written ({error.strerror or error})") from error
