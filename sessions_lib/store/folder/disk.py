"""Bytes on disk: files that only their owner can read, written whole or not at all, links never followed.

What returns is on disk (``fdatasync``, and the folder where an entry is new). What the disk refuses is a
``StorageError``, and the file is as it was.

Does not know lines or JSON.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sessions_lib.errors import SessionError, StorageError

BLOCK = 1 << 20
SYNCED_AT_ONCE = 8


def open_to_read(path: Path) -> int:
    """A descriptor of the regular file ``path``; a symbolic link is refused, so nothing outside is ever read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise StorageError(path, "a symbolic link, which is never followed", "Replace it by the file.") from error
        if error.errno == errno.ENXIO:  # a socket
            raise StorageError(path, "not a regular file", "Move it out of the folder.") from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StorageError(path, "not a regular file", "Move it out of the folder.")
    return descriptor


def append(path: Path, payload: bytes, *, create: bool) -> int:
    """Add ``payload`` to ``path`` in one write and return the new size; an unfinished last line is ended first.

    ``create`` makes a missing file, else ``FileNotFoundError``.
    """
    try:
        descriptor, is_new = _open_to_append(path, create)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _refused(path, error) from error
    try:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            payload = b"\n" + payload
        try:
            _write_all(descriptor, payload)
            _sync(descriptor)
            if is_new:
                sync_folder(path.parent)
        except OSError as error:
            _cut_back(descriptor, size, len(payload))
            raise _refused(path, error) from error
        return size + len(payload)
    finally:
        os.close(descriptor)


def _open_to_append(path: Path, create: bool) -> tuple[int, bool]:
    flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor, is_new = os.open(path, flags), False
    except FileNotFoundError:
        if not create:
            raise
        descriptor, is_new = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600), True
        os.fchmod(descriptor, 0o600)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file")
    if mode & 0o077:  # written by a program that does not mind who reads it
        with suppress(OSError):  # another account's file: its owner decides
            os.fchmod(descriptor, 0o600)
    return descriptor, is_new


def _write_all(descriptor: int, payload: bytes) -> None:
    written = os.write(descriptor, payload)
    while written < len(payload):  # a nearly full disk takes a part; the next write says why
        written += os.write(descriptor, payload[written:])


_sync = getattr(os, "fdatasync", os.fsync)


def _cut_back(descriptor: int, size: int, added: int) -> None:
    try:
        # A program that knows no lock may have written behind us: then its bytes stay, and the next append ends ours.
        if os.fstat(descriptor).st_size <= size + added:
            os.ftruncate(descriptor, size)
    except OSError:
        return  # the half line stays torn; reading reports it and the next append ends it


def _refused(path: Path, error: OSError) -> SessionError:
    if path.name.startswith(".") and path.name.endswith(".tmp"):  # a person is told of the file that it is to become
        path = path.with_name(path.name[1:].rsplit(".", 3)[0])
    if error.errno == errno.ELOOP:
        return StorageError(path, "a symbolic link, which is never followed", "Replace it by the file.")
    return StorageError(path, f"cannot be written ({error.strerror or error})")


def cut_torn_start(path: Path, line: bytes) -> None:
    """Cut the unfinished last line off ``path`` if it is the start of ``line``, which is to be written again."""
    with suppress(FileNotFoundError), path.open("r+b") as file:
        raw = file.read()
        torn = raw[raw.rfind(b"\n") + 1 :]
        if torn and line.startswith(torn):
            file.truncate(len(raw) - len(torn))


def make_private_folder(folder: Path) -> None:
    """Make ``folder``, and the folders above it that are not there, for their owner alone (0700), whatever the umask.

    One that is there stays as it is; ``FileExistsError`` if it is no folder.
    """
    if folder.is_dir():
        return
    make_private_folder(folder.parent)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if not folder.is_dir():  # not made by another process this moment
            raise
    else:
        folder.chmod(0o700)


def make_private(path: Path) -> None:
    """Let nobody but its owner read the file ``path``, if it is there and ours."""
    with suppress(OSError):  # another account's file: its owner decides
        state = os.lstat(path)
        if stat.S_ISREG(state.st_mode) and state.st_mode & 0o077:
            os.chmod(path, 0o600)


def sync_folder(folder: Path) -> None:
    """Put the folder's entries on disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems have no such call
            raise
    finally:
        os.close(descriptor)


def copy_prefix(source: Path, target: Path, size: int) -> None:
    """Copy the first ``size`` bytes of ``source`` to the new file ``target`` (0600), on disk when it returns.

    A reflink where the file system has them. ``FileExistsError`` if there is a ``target``; ``StorageError``, and no
    target, if the disk refuses or the source is shorter than ``size``.
    """
    reading = open_to_read(source)
    try:
        with _new_file(target) as writing:
            _copy(reading, writing, size)
    finally:
        os.close(reading)


@contextmanager
def _new_file(path: Path, *, waits: bool = True) -> Iterator[int]:
    """A descriptor of the new file ``path`` (0600), put on disk at the end; there is no file if the disk refuses."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        raise
    except OSError as error:
        raise _refused(path, error) from error
    try:
        os.fchmod(descriptor, 0o600)
        yield descriptor
        if waits:
            _sync(descriptor)
            sync_folder(path.parent)
    except OSError as error:
        os.unlink(path)
        raise _refused(path, error) from error
    finally:
        os.close(descriptor)


def _copy(reading: int, writing: int, size: int) -> None:
    left = size
    use_range = hasattr(os, "copy_file_range")
    while left:
        if use_range:
            try:
                done = os.copy_file_range(reading, writing, left)
            except OSError as error:
                if error.errno not in (errno.EXDEV, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL):
                    raise
                use_range = False
                continue
        else:
            block = os.read(reading, min(BLOCK, left))
            _write_all(writing, block) if block else None
            done = len(block)
        if not done:
            raise OSError(errno.EIO, "the source became shorter while it was copied")
        left -= done


def write_new(path: Path, content: bytes, *, waits: bool = True) -> None:
    """Write the new file ``path`` (0600), on disk when it returns; ``FileExistsError`` if there is one.

    Without ``waits`` it is on disk only after ``sync_all``.
    """
    with _new_file(path, waits=waits) as descriptor:
        _write_all(descriptor, content)


def sync_all(folder: Path, paths: Iterable[Path]) -> None:
    """Put the new files ``paths`` of ``folder`` on disk together; ``StorageError`` if the disk refuses one."""
    # Imported here: most programs never write many files at once, and these modules take 10 ms to load.
    from concurrent.futures import ThreadPoolExecutor

    paths = list(paths)
    try:
        # Waits that overlap share one commit of the file system's journal.
        with ThreadPoolExecutor(SYNCED_AT_ONCE) as pool:
            try:
                list(pool.map(_sync_path, paths))
            except RuntimeError:  # the program is ending, and starts no thread any more
                list(map(_sync_path, paths))
        sync_folder(folder)
    except OSError as error:
        raise _refused(folder, error) from error


def _sync_path(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        _sync(descriptor)
    finally:
        os.close(descriptor)


def sibling(path: Path) -> Path:
    """A new hidden name beside ``path``, for what is renamed into place once it is whole; never taken for a session."""
    return path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")


def rename_new(whole: Path, target: Path) -> None:
    """Give the finished file ``whole`` the name ``target``; ``FileExistsError`` if something has that name already."""
    try:
        os.link(whole, target, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        os.rename(whole, target)
    else:
        os.unlink(whole)


def put_in_place(whole: Path, target: Path) -> None:
    """``rename_new``, on disk when it returns; ``StorageError`` if it cannot be."""
    try:
        rename_new(whole, target)
        sync_folder(target.parent)
    except OSError as error:
        raise _refused(target, error) from error


def replace(path: Path, content: bytes) -> None:
    """Put ``content`` in place of ``path`` in one step, through a sibling and a rename; readers see old or new."""
    beside = sibling(path)
    try:
        write_new(beside, content)
        os.replace(beside, path)
        sync_folder(path.parent)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise _refused(path, error) from error
