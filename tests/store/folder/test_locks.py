"""One writer: whoever holds a lock, and only while it does."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from sessions_lib import SessionManager
from sessions_lib.errors import SessionLocked, StorageError
from sessions_lib.store.folder import locks
from sessions_lib.store.folder.locks import Lock


def in_a_forked_child(act) -> int:
    """The exit code of ``act()`` in a child made by ``fork()``, which shares every descriptor."""
    child = os.fork()
    if child == 0:
        os._exit(int(act()))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_released_lock_is_free_though_a_forked_child_still_has_its_descriptor(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    lock = Lock(path, "a")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(writing)
        os.read(reading, 1)  # until the parent is done
        os._exit(0)

    lock.release()

    Lock(path, "a", timeout=0).release()
    os.write(writing, b"x")
    os.waitpid(child, 0)
    os.close(reading)
    os.close(writing)


def test_a_forked_child_neither_holds_nor_gives_away_its_parents_lock(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    lock = Lock(path, "a")

    def child() -> bool:
        held = lock.is_held
        lock.release()
        return held

    assert in_a_forked_child(child) == 0
    assert lock.is_held
    with pytest.raises(SessionLocked):
        Lock(path, "a", timeout=0)


def test_a_forked_child_does_not_append_under_its_parents_hold(tmp_path: Path) -> None:
    session = SessionManager(tmp_path).create(session_id="a")
    hold = session.hold()

    def child() -> bool:
        try:
            session.append({"role": "user", "content": "from the child"})
        except SessionLocked:
            return False
        return True

    assert in_a_forked_child(child) == 0
    hold.release()
    assert in_a_forked_child(child) == 1
    session.refresh()
    assert [message["content"] for message in session.messages] == ["from the child"]


def test_a_linked_folder_of_locks_leads_nowhere(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    session = SessionManager(tmp_path / "folder").create(session_id="a")
    (tmp_path / "folder" / locks.FOLDER).symlink_to(outside)

    with pytest.raises(StorageError, match="symbolic link"):
        session.append({"role": "user", "content": "x"})

    assert list(outside.iterdir()) == []


def test_who_waits_for_a_lock_that_is_removed_takes_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "locks" / "a.lock"
    path.parent.mkdir()
    held: list[int] = []
    most: list[int] = []
    errors: list[BaseException] = []

    def take_and_give() -> None:
        try:
            for turn in range(60):
                lock = Lock(path, "a", timeout=20)
                held.append(1)
                most.append(len(held))
                held.pop()
                lock.release_for_good() if turn % 2 else lock.release()
        except BaseException as error:  # noqa: BLE001 - a thread's failure is the test's
            errors.append(error)

    threads = [threading.Thread(target=take_and_give) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    assert (len(most), max(most)) == (240, 1)


def test_a_lock_released_for_good_leaves_no_file(tmp_path: Path) -> None:
    lock = Lock(tmp_path / "a.lock", "a")

    lock.release_for_good()

    assert list(tmp_path.iterdir()) == []
    lock.release_for_good()
    Lock(tmp_path / "a.lock", "a", timeout=0).release()
