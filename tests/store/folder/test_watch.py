"""Watching a folder: whatever is touched is told at the next look, and what cannot be told is never guessed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sessions_lib.store.folder import watch as watching
from sessions_lib.store.folder.watch import Watch

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")


@pytest.fixture
def watch(tmp_path):
    if not watching.is_told_of(tmp_path):
        pytest.skip("the temporary folder is on no disk of this machine")
    (tmp_path / "old.jsonl").write_bytes(b"{}\n")
    made = Watch(tmp_path)
    assert made.changed() is None
    yield made
    made.close()


def test_nothing_touched_is_nothing_to_look_at(watch):
    assert watch.changed() == set()
    (watch.folder / "old.jsonl").read_bytes()
    assert watch.changed() == set()


def test_whatever_touches_a_file_is_told_once(watch):
    folder = watch.folder
    opened = (folder / "old.jsonl").open("ab", buffering=0)

    def told(act):
        act()
        return watch.changed()

    assert told(lambda: opened.write(b"{}\n")) == {"old.jsonl"}
    assert watch.changed() == set()
    assert told(lambda: opened.truncate(2)) == {"old.jsonl"}
    assert told(lambda: os.utime(folder / "old.jsonl", (1, 1))) == {"old.jsonl"}
    assert told(lambda: (folder / "new.jsonl").touch()) == {"new.jsonl"}
    assert told(lambda: (folder / "new.jsonl").rename(folder / "é 文.jsonl")) == {"new.jsonl", "é 文.jsonl"}
    assert told(lambda: (folder / "é 文.jsonl").unlink()) == {"é 文.jsonl"}
    opened.close()


def test_what_another_process_wrote_is_told_when_its_write_has_returned(watch):
    said = "import sys; open(sys.argv[1], 'a').write('{}\\n')"

    subprocess.run([sys.executable, "-c", said, str(watch.folder / "old.jsonl")], check=True)

    assert watch.changed() == {"old.jsonl"}


def test_a_file_with_a_second_name_is_looked_at_every_time(watch, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "second.jsonl"
    elsewhere.write_bytes(b"{}\n")
    os.link(elsewhere, watch.folder / "first.jsonl")

    assert watch.changed() == {"first.jsonl"}
    with elsewhere.open("ab") as file:
        file.write(b"{}\n")
    assert watch.changed() == {"first.jsonl"}
    elsewhere.unlink()
    assert watch.changed() == {"first.jsonl"}
    assert watch.changed() == set()


def test_more_than_the_kernel_remembers_means_look_at_everything(watch):
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if limit > 50_000:
        pytest.skip("this kernel remembers too much")
    for number in range(limit + 10):
        os.utime(watch.folder / "old.jsonl", (number, number))
        os.utime(watch.folder, (number, number))  # equal events behind each other are one

    assert watch.changed() is None
    assert watch.changed() == set()


def test_another_folder_under_the_same_name_is_looked_at_as_a_whole(watch):
    moved = watch.folder.with_name("moved")
    watch.folder.rename(moved)
    assert watch.changed() is None
    watch.folder.mkdir()
    assert watch.changed() is None
    (watch.folder / "a.jsonl").touch()
    (moved / "b.jsonl").touch()

    assert watch.changed() == {"a.jsonl"}


def test_after_some_minutes_everything_is_looked_at_again(watch, monkeypatch):
    later = time.monotonic() + watching.LOOK_AGAIN_S + 1
    monkeypatch.setattr(time, "monotonic", lambda: later)

    assert watch.changed() is None


def test_what_other_machines_may_write_to_is_never_trusted(tmp_path, monkeypatch):
    monkeypatch.setattr(watching, "LOCAL", frozenset())
    watch = Watch(tmp_path)

    assert watch.changed() is None
    assert watch.changed() is None


def test_a_watch_that_is_dropped_gives_its_descriptor_back(tmp_path):
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        Watch(tmp_path).changed()

    assert len(os.listdir("/proc/self/fd")) == before
