"""New sessions, put on disk many at a time: two waits for the disk for a hundred sessions, not four for each.

The metadata of a session, which names how many bytes its messages take, is on disk before a byte of its messages is.
So whatever stops an import, what is left is a session that is whole, or one that the next import of the same source
recognises as unfinished and ends.

Does not choose ids and does not know sources.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from sessions_lib.errors import SessionError, StorageError
from sessions_lib.store.folder import disk, metadata
from sessions_lib.store.folder.folder import SUFFIX
from sessions_lib.store.records import NewSession

_BESIDE = ".import"  # metadata until it is whole and on disk, under a hidden name


def write(folder: Path, new: Sequence[NewSession]) -> None:
    """Put ``new`` on disk; ``SessionError`` if the disk refuses, or a file of that name is there.

    Nobody else may be doing so: what is found half-done was left by an import that was killed, and is cleared.
    """
    clear_unfinished(folder)
    metas = {folder / (session.id + metadata.SUFFIX): metadata.encode(session.meta) for session in new}
    beside = {path.with_name(f".{path.name}{_BESIDE}"): data for path, data in metas.items()}
    _write_files(folder, beside)
    for path, hidden in zip(metas, beside, strict=True):
        with _told(path):
            disk.rename_new(hidden, path)
    _write_files(folder, {folder / (session.id + SUFFIX): session.lines for session in new})


def clear_unfinished(folder: Path) -> None:
    """Delete what an import left that was killed; nobody else may be importing."""
    for left in folder.glob(f".*{_BESIDE}"):
        left.unlink(missing_ok=True)


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
