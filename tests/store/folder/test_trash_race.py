"""The trash while others delete, restore and purge: a sentence at most, and never a session lost on its way back."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from sessions_lib import SessionManager
from sessions_lib.errors import SessionError
from sessions_lib.store.folder import trash
from tests.record import LIGHTHOUSES


def filled(folder: Path, count: int) -> SessionManager:
    manager = SessionManager(folder)
    for number in range(count):
        manager.create(f"s{number}").append(LIGHTHOUSES)
        manager.delete(f"s{number}")
    return manager


@pytest.mark.parametrize("gone", ["before", "files"])
def test_an_entry_that_goes_while_the_trash_is_read_is_not_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    manager = filled(tmp_path, 3)
    scandir = trash.os.scandir

    def racing(path: Path) -> object:
        if "~s1" in str(path):
            if gone == "before":
                shutil.rmtree(path)
            found = list(scandir(path))
            shutil.rmtree(path)
            return found
        return scandir(path)

    monkeypatch.setattr(trash.os, "scandir", racing)

    assert {entry.session for entry in manager.trash()} == {"s0", "s2"}


def test_an_entry_that_another_purge_took_is_purged(tmp_path: Path) -> None:
    manager = filled(tmp_path, 2)
    listed = manager.purgeable()
    shutil.rmtree(tmp_path / trash.FOLDER / listed[0].entry.entry)

    done, told = manager.purge(listed)

    assert (done, told, manager.trash()) == (listed, [], [])


def test_whoever_restores_deletes_and_purges_at_once_is_told_in_words(tmp_path: Path) -> None:
    filled(tmp_path, 6)
    faults: list[BaseException] = []

    def again(act: Callable[[SessionManager, int], object]) -> Callable[[], None]:
        def run() -> None:
            for number in range(18):
                try:
                    act(SessionManager(tmp_path), number % 6)
                except SessionError:
                    continue
                except BaseException as error:  # noqa: BLE001 - what this test looks for
                    faults.append(error)

        return run

    acts: list[Callable[[SessionManager, int], object]] = [
        lambda manager, number: manager.restore(f"s{number}"),
        lambda manager, number: manager.delete(f"s{number}"),
        lambda manager, number: manager.trash(),
        lambda manager, number: number or manager.purge(manager.purgeable()),
    ]
    threads = [threading.Thread(target=again(act)) for act in [*acts, *acts[:2]]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert faults == []
    for info in SessionManager(tmp_path).list():  # whole, or not there
        assert SessionManager(tmp_path).open(info.id).messages[0]["content"] == LIGHTHOUSES["content"]
