"""What was touched in a folder since the last look, told by the kernel, so that a server need not look at every file.

Linux's inotify, on file systems of this machine only: what another machine writes into a shared folder is told to
nobody. Everywhere else, and whenever something may have been missed, the answer is "look at everything". A file with
several names may be written through another of them, which is not told either: such files always count as touched,
and everything is looked at again after a few minutes.

Does not read or look at any file of the folder by itself, but for counting names of hard links.
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
import threading
import time
import weakref
from pathlib import Path

LOOK_AGAIN_S = 300.0
LOCAL = {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "ramfs", "tmpfs", "xfs", "zfs"}

_EVENT = struct.Struct("iIII")  # watch, mask, cookie, length of the name
_MODIFY, _ATTRIB, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x2, 0x4, 0x40, 0x80, 0x100, 0x200
_TOUCHES = _MODIFY | _ATTRIB | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_ENDS = 0x400 | 0x800  # the folder itself was deleted or moved
_LOST = _ENDS | 0x2000 | 0x4000 | 0x8000  # its disk was unmounted, events overflowed, the watch ended
_BLOCK = 65_536


class Watch:
    """A watch over one folder; it begins with the first ``changed()``."""

    def __init__(self, folder: Path) -> None:
        """A watch over ``folder``, which need not be there yet."""
        self.folder = folder
        self._lock = threading.Lock()
        self._descriptor = -1
        self._close: weakref.finalize[..., Watch] | None = None
        self._identity = (0, 0)
        self._until = 0.0
        self._linked: set[str] = set()  # names of files that have other names too

    def changed(self) -> set[str] | None:
        """The names of the files touched since the last call; ``None``: unknown, look at everything.

        What is touched while the answer is used is in the next one.
        """
        with self._lock:
            try:
                state = os.stat(self.folder)
            except OSError:
                self._stop()
                return None
            is_same = (state.st_dev, state.st_ino) == self._identity
            if self._descriptor >= 0 and is_same and time.monotonic() < self._until:
                names = self._read()
                if names is not None:
                    return self._note_links(names)
            self._start((state.st_dev, state.st_ino))
            return None

    def close(self) -> None:
        """End the watch; the next ``changed()`` begins another."""
        with self._lock:
            self._stop()

    def _start(self, identity: tuple[int, int]) -> None:
        self._stop()
        if not is_told_of(self.folder):
            return
        descriptor = _watch(self.folder)
        if descriptor < 0:
            return
        self._descriptor, self._identity = descriptor, identity
        self._close = weakref.finalize(self, os.close, descriptor)
        self._until = time.monotonic() + LOOK_AGAIN_S
        with contextlib.suppress(OSError), os.scandir(self.folder) as entries:
            self._note_links({entry.name for entry in entries})

    def _stop(self) -> None:
        if self._close is not None:
            self._close()
        self._descriptor, self._close, self._identity = -1, None, (0, 0)
        self._linked = set()

    def _read(self) -> set[str] | None:
        """The names in the events that wait; ``None`` if some may be missing."""
        names: set[str] = set()
        while True:
            try:
                block = os.read(self._descriptor, _BLOCK)
            except BlockingIOError:
                return names
            except OSError:
                return None
            at = 0
            while at < len(block):
                _, mask, _, length = _EVENT.unpack_from(block, at)
                at += _EVENT.size + length
                if mask & _LOST:
                    return None
                names.add(os.fsdecode(block[at - length : at].rstrip(b"\0")))

    def _note_links(self, names: set[str]) -> set[str]:
        """``names`` and those of all files that had other names too."""
        found = names | self._linked
        for name in found:
            self._linked.discard(name)
            with contextlib.suppress(OSError):
                if os.lstat(self.folder / name).st_nlink > 1:
                    self._linked.add(name)
        return found


def _watch(folder: Path) -> int:
    """The descriptor of an inotify watch over ``folder``; -1 if the system gives none."""
    import ctypes  # only a server needs it

    try:
        library = ctypes.CDLL(None, use_errno=True)
        descriptor = int(library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
    except (OSError, AttributeError):
        return -1
    if descriptor >= 0 and library.inotify_add_watch(descriptor, os.fsencode(folder), _TOUCHES | _ENDS) < 0:
        os.close(descriptor)
        return -1
    return descriptor


def is_told_of(folder: Path) -> bool:
    """True if this system tells of everything that is written in ``folder``: Linux, and a disk of this machine."""
    return sys.platform == "linux" and _file_system(folder) in LOCAL


def _file_system(folder: Path) -> str:
    """The kind of file system ``folder`` is on; "" if that cannot be said."""
    try:
        device = os.stat(folder).st_dev
        lines = Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines()
    except OSError:
        return ""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    # "36 35 98:0 /root /mount/point options - ext4 /dev/root rw": the kind stands behind the dash.
    found = {fields[2]: line.split(" - ", 1)[1].split()[0] for line in lines if len(fields := line.split()) > 6}
    return found.get(wanted, "")
