"""A folder of sessions keeps what is somebody's, and nothing of what a killed writer left."""

from __future__ import annotations

import os
import time
from pathlib import Path

from sessions_lib import SessionManager
from tests.record import GULL, LIGHTHOUSES, write

HOUR = 3600


def left(folder: Path, name: str, age_s: float, content: bytes = b"half") -> Path:
    """A file that a writer left ``age_s`` seconds ago."""
    file = folder / name
    file.write_bytes(content)
    os.utime(file, (time.time() - age_s,) * 2)
    return file


def test_what_killed_writers_left_is_cleared_an_hour_later_by_whoever_makes_a_session(tmp_path: Path) -> None:
    old = [left(tmp_path, name, 2 * HOUR) for name in (".a.jsonl.7.0123abcd.tmp", ".a.meta.json.7.0123abcd.tmp")]
    young = left(tmp_path, ".b.jsonl.8.0123abcd.tmp", HOUR / 2)
    foreign = [
        left(tmp_path, name, 2 * HOUR) for name in (".a.jsonl.tmp", ".x.7.0123abcd.tmp", "a.jsonl.7.0123abcd.tmp")
    ]
    link = tmp_path / ".c.jsonl.9.0123abcd.tmp"
    link.symlink_to(foreign[0])
    manager = SessionManager(tmp_path)

    manager.list()
    assert all(file.exists() for file in old)
    manager.create("new")

    assert [file.exists() for file in old] == [False, False]
    assert young.exists()
    assert all(file.exists() for file in foreign)
    assert link.is_symlink()


def test_what_was_purged_is_in_no_file_a_killed_writer_left(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", LIGHTHOUSES, GULL)
    manager = SessionManager(tmp_path)
    manager.delete("a")
    left(tmp_path, ".a.jsonl.7.0123abcd.tmp", 2 * HOUR, b"Gull Point")
    left(tmp_path, ".b.jsonl.999999999.0123abcd.tmp", 0, b"Gull Point")  # a fork that was killed just now
    left(tmp_path, ".a.meta.json.import", 0, b"Gull Point")
    living = left(tmp_path, f".c.jsonl.{os.getpid()}.0123abcd.tmp", 0, b"another writer's")

    manager.purge(manager.purgeable("a"))

    assert living.exists()
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and b"Gull Point" in file.read_bytes()]


def test_what_was_purged_is_in_no_file_name(tmp_path: Path) -> None:
    manager = SessionManager(tmp_path)
    secret = manager.create("The Merger with Ember")
    secret.append(LIGHTHOUSES)
    secret.add_tag("x")
    kept = manager.create("kept")
    kept.append(GULL)
    named = [secret.id, kept.id]
    assert all(any(name in path.name for path in (tmp_path / ".locks").iterdir()) for name in named)

    manager.delete(secret.id)
    manager.purge(manager.purgeable(secret.id))

    names = [path.name for path in tmp_path.rglob("*")]
    assert not [name for name in names if "merger" in name.lower()]
    assert f"{kept.id}.lock" in names


def test_the_locks_of_a_session_stay_while_anything_of_it_does(tmp_path: Path) -> None:
    manager = SessionManager(tmp_path)
    manager.create("a").append(LIGHTHOUSES)
    manager.create("b").append(GULL)
    manager.open("a").merge(manager.open("b"))  # its original is in the trash

    manager.purge(manager.purgeable("a"))

    assert (tmp_path / ".locks" / "a.lock").exists()
    assert len(manager.open("a").messages) == 2


def test_a_session_that_is_being_written_keeps_what_lies_in_the_trash(tmp_path: Path) -> None:
    manager = SessionManager(tmp_path)
    manager.create("a").append(LIGHTHOUSES)
    manager.create("b").append(GULL)
    manager.open("a").merge(manager.open("b"))

    with manager.open("a").hold():
        done, told = manager.purge(manager.purgeable("a"))

    assert (done, len(manager.trash())) == ([], 1)
    assert "is being written" in told[0] or "in use" in told[0] or "locked" in told[0].lower(), told
