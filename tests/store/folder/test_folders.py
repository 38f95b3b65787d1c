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

    manager.purge(manager.purgeable("a"))

    assert not [file for file in tmp_path.rglob("*") if file.is_file() and b"Gull Point" in file.read_bytes()]
