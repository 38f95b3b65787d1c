"""One writer: an operating-system lock per session, gone when its process dies, however it dies.

A lock is a file in ``.locks/`` that holds, as one line of JSON, who took it last. Whoever has to wait too long gets
``SessionLocked`` naming that holder. It stays when it is released: its name is removed only with its session, by
``release_for_good``, and whoever then gets a file that has no name any more takes the new one, so that two writers
never hold one lock.

``flock`` is called directly. The library ``filelock`` makes the same system call, but its bookkeeping took 50 times as
long (370 µs against 6 µs, two busy cores): more than putting an append on disk.

Does not know what is written, and does not make one object's lock re-entrant: holding it twice waits for itself.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import stat
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from sessions_lib import times
from sessions_lib.errors import Holder, SessionLocked, StorageError

FOLDER = ".locks"
_PAUSE_S = 0.004
_HOST = socket.gethostname()


class Lock:
    """A lock that is held from its creation until ``release``; a context manager; releasing twice does nothing."""

    def __init__(self, path: Path, session: str, timeout: float = 1.0) -> None:
        """Take the lock file ``path``, waiting at most ``timeout`` seconds; ``SessionLocked`` after that."""
        self.path, self.session = path, session
        self._descriptor: int | None = None
        self._owner = os.getpid()
        try:
            if not path.parent.is_dir():
                path.parent.mkdir(mode=0o700, exist_ok=True)
                path.parent.chmod(0o700)
            if path.parent.is_symlink():
                raise OSError(errno.ELOOP, "its folder is a symbolic link, which is never followed")
            self._take(timeout)
        except FileNotFoundError as error:
            raise StorageError(
                path.parent.parent, "the folder is not there any more", "Bring it back, then retry."
            ) from error
        except OSError as error:
            raise StorageError(path, f"cannot be locked ({error.strerror or error})") from error

    def _take(self, timeout: float) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self.path, flags, 0o600)
        deadline = time.monotonic() + timeout
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._is_named(descriptor):
                    break
                os.close(descriptor)
                descriptor = os.open(self.path, flags, 0o600)
            except BlockingIOError as error:
                if time.monotonic() >= deadline:
                    holder = read_holder(self.path)
                    os.close(descriptor)
                    raise SessionLocked(self.session, holder) from error
                time.sleep(_PAUSE_S)
            except OSError:
                os.close(descriptor)
                raise
        self._descriptor = descriptor
        line = json.dumps({"pid": os.getpid(), "host": _HOST, "since": times.now()})
        try:
            os.pwrite(descriptor, line.encode().ljust(199) + b"\n", 0)
        except OSError:
            # A full disk must not stop a lock: the holder stays unnamed.
            return

    def _is_named(self, descriptor: int) -> bool:
        """True if the open lock file is the one that has the name now; it is private then, whatever the umask."""
        state = os.fstat(descriptor)
        try:
            is_named = os.path.samestat(state, os.stat(self.path, follow_symlinks=False))
        except FileNotFoundError:
            return False
        if stat.S_IMODE(state.st_mode) != 0o600:
            with suppress(OSError):  # another account's file
                os.fchmod(descriptor, 0o600)
        return is_named

    def release_for_good(self) -> None:
        """Let the next writer in, and remove the lock file: its session is gone."""
        if self.is_held:
            with suppress(OSError):  # it is empty of what was said, and only a name
                os.unlink(self.path)
        self.release()

    def release(self) -> None:
        """Let the next writer in; from any thread."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            if self._owner == os.getpid():
                # Closing alone would not do while a child made by fork() still has the descriptor, and the child's
                # own copy of this object must not let anybody in.
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)

    @property
    def is_held(self) -> bool:
        """True until ``release``; never in a child made by ``fork()``: the lock is its parent's."""
        return self._owner == os.getpid() and self._descriptor is not None

    def __enter__(self) -> Lock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def __del__(self) -> None:
        self.release()


def lock_path(folder: Path, session: str, what: str = "") -> Path:
    """The lock file of a session; ids that differ by case share one, as some file systems would."""
    return folder / FOLDER / f"{session.lower()}{what}.lock"


def read_holder(path: Path) -> Holder:
    """Who took the lock file ``path`` last, as far as it says."""
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(400))
        return Holder(int(found["pid"]), str(found["host"])[:80], str(found["since"])[:40])
    except (OSError, ValueError, KeyError, TypeError):
        return Holder()


def holder(folder: Path, session: str) -> Holder | None:
    """Who is writing ``session`` at this moment, or ``None``; asks without waiting and changes nothing."""
    path = lock_path(folder, session)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return read_holder(path)
    except OSError:
        return None
    else:
        return None
    finally:
        os.close(descriptor)
