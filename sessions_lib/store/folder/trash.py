"""The trash of a folder: deleted sessions, and the originals of merges and repairs, until they are purged.

``.trash/20261129T194001123Z~deleted~quest-1/`` holds the files under their own names: an entry can be read, and put
back by hand, with ``cat`` and ``mv``. Moving is renaming: nothing is copied, and nothing is lost half-way. While two
files are on their way, in or out, the entry's kind is ``unfinished``: what a kill left there, the next delete or
restore of the session ends.

Does not lock and does not decide who may delete: the manager does.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from sessions_lib import names
from sessions_lib.errors import SessionError, SessionExists, StorageError
from sessions_lib.store.folder import disk, jsonl, metadata
from sessions_lib.store.records import UNFINISHED, Contents, Revision, TrashEntry

FOLDER = ".trash"
KINDS = ("deleted", "merged", "popped", "repaired", "metadata", UNFINISHED)
_NAME = re.compile(r"(\d{8}T\d{9}Z)(?:\.\d+)?~([a-z]+)~(.+)\Z")


def put(folder: Path, session: str, kind: str, files: Sequence[Path], *, keep: bool = False) -> str:
    """Move ``files`` into a new entry and return its name; with ``keep`` the originals stay (a second link to them)."""
    try:
        begun = None if keep else _begun(folder, session, files)
        place = begun or _new_entry(folder, session, UNFINISHED if len(files) > 1 else kind)
        for file in files:
            if keep:
                _link(file, place / file.name)
            else:
                os.rename(file, place / file.name)
        disk.sync_folder(place)
        place = _of_kind(place, kind)
        disk.sync_folder(folder)
    except OSError as error:
        raise StorageError(folder / FOLDER, f"cannot be written ({error.strerror or error})") from error
    return place.name


def _new_entry(folder: Path, session: str, kind: str) -> Path:
    trash = folder / FOLDER
    if trash.is_symlink():
        raise OSError(errno.ELOOP, "a symbolic link, which is never followed")
    disk.make_private_folder(trash)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")[:-3] + "Z"
    for number in range(1000):
        place = trash / (f"{stamp}.{number}~{kind}~{session}" if number else f"{stamp}~{kind}~{session}")
        try:
            place.mkdir(mode=0o700)
        except FileExistsError:
            continue
        place.chmod(0o700)
        return place
    raise OSError(errno.EEXIST, "too many entries at one moment")


def _begun(folder: Path, session: str, files: Sequence[Path]) -> Path | None:
    """The entry where an earlier move of the session was killed, if ``files`` are what it lacks."""
    for entry in entries(folder):
        place = folder / FOLDER / entry.entry
        if entry.session == session and entry.kind == UNFINISHED:
            return None if any(os.path.lexists(place / file.name) for file in files) else place
    return None


def _of_kind(place: Path, kind: str) -> Path:
    """The entry ``place`` under the name that says ``kind``."""
    when, _, session = place.name.split("~")
    renamed = place.with_name(f"{when}~{kind}~{session}")
    if renamed != place:
        os.rename(place, renamed)
    return renamed


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # a file system without hard links
        disk.copy_prefix(source, target, source.stat().st_size)


def entries(folder: Path) -> list[TrashEntry]:
    """What is in the trash, newest first."""
    try:
        places = list(os.scandir(folder / FOLDER))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise StorageError(folder / FOLDER, f"cannot be read ({error.strerror or error})") from error
    found = [entry for place in places if place.is_dir(follow_symlinks=False) and (entry := _entry(Path(place)))]
    return sorted(found, key=lambda entry: entry.entry, reverse=True)


def _entry(place: Path) -> TrashEntry | None:
    match = _NAME.match(place.name)
    if match is None or not names.is_id(match[3]):
        return None
    when = datetime.strptime(match[1][:-4] + match[1][-4:-1] + "000", "%Y%m%dT%H%M%S%f").replace(tzinfo=UTC)
    session = match[3]
    try:
        size = sum(file.stat(follow_symlinks=False).st_size for file in os.scandir(place))
    except FileNotFoundError:
        return None  # restored or purged by somebody else while the trash was read
    except OSError as error:
        raise StorageError(place, f"cannot be read ({error.strerror or error})") from error
    return TrashEntry(
        place.name, session, match[2], when, metadata.read(place / (session + metadata.SUFFIX)).title, size
    )


def find(folder: Path, session: str) -> TrashEntry:
    """The newest deleted entry of ``session``, or the entry of exactly that name; ``SessionError`` if there is none."""
    for entry in entries(folder):
        if entry.entry == session or (entry.session == session and entry.is_session):
            return entry
    raise SessionError(f"There is no deleted session {session!r} in the trash. See: forkbook list --trash")


def read(folder: Path, entry: TrashEntry, *, messages: bool) -> Contents:
    """What lies in ``entry``: its metadata and, if asked for, its messages (none if they cannot be read)."""
    place = folder / FOLDER / entry.entry
    meta = metadata.read(place / (entry.session + metadata.SUFFIX))
    known = Contents(meta, Revision(), entry.entry)
    if messages:
        with suppress(OSError, SessionError):
            known.messages = jsonl.read(place / f"{entry.session}.jsonl").messages
            known.is_read = True
    return known


def restore(folder: Path, entry: TrashEntry) -> None:
    """Put the files of ``entry`` back; ``SessionExists`` if the id was taken meanwhile."""
    place = folder / FOLDER / entry.entry
    try:
        files = os.listdir(place)
        if any(os.path.lexists(folder / file) for file in files):
            raise SessionExists(entry.session)
        if len(files) > 1:
            place = _of_kind(place, UNFINISHED)
        for file in files:
            os.rename(place / file, folder / file)
        place.rmdir()
        disk.sync_folder(folder)
    except OSError as error:
        raise StorageError(place, f"cannot be restored ({error.strerror or error})") from error


def purge(folder: Path, entry: TrashEntry) -> None:
    """Delete ``entry`` for good."""
    place = folder / FOLDER / entry.entry
    try:
        shutil.rmtree(place)
    except OSError as error:
        if not os.path.lexists(place):
            return  # somebody else did
        raise StorageError(place, f"cannot be purged ({error.strerror or error})") from error
