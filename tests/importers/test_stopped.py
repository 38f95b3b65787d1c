"""An import that is killed, stopped, or run twice at once: the next one ends it, and nothing is lost or doubled."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from sessions_lib import importers
from sessions_lib.store.manager import SessionManager
from tests.importers.files import claude, text, write_lines

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "sessions_lib.cli", "import"]


def conversation(number: int, size: int = 200) -> list[dict[str, Any]]:
    lines = []
    before = None
    for turn in range(4):
        asked, answered = f"{number}-u{turn}", f"{number}-a{turn}"
        lines.append(claude("user", asked, before, f"question {number} {turn} " + "x" * size))
        lines.append(claude("assistant", answered, asked, text(f"answer {number} {turn} " + "y" * size)))
        before = answered
    return [{**line, "sessionId": f"s{number}"} for line in lines]


def sources(folder: Path, count: int) -> Path:
    for number in range(count):
        write_lines(folder / f"s{number}.jsonl", *conversation(number, 2_000_000 if number == 3 else 20_000))
    return folder


def start(source: Path, target: Path) -> subprocess.Popen[str]:
    command = [*COMMAND, str(source), "--dir", str(target)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def contents(folder: Path) -> dict[str, list[str]]:
    manager = SessionManager(folder)
    found = {}
    for info in manager.list():
        assert info.damaged == 0
        key = info.meta["imported_from"]["key"]
        assert key not in found
        found[key] = [message["content"] for message in manager.open(info.id).messages]
    return found


def wait_for(folder: Path, pattern: str) -> None:
    deadline = time.monotonic() + 60
    while not any(folder.glob(pattern)) and time.monotonic() < deadline:
        time.sleep(0.001)


def test_an_import_killed_at_any_moment_is_ended_by_the_next_one(tmp_path: Path) -> None:
    source = sources(tmp_path / "projects", 150)
    whole = tmp_path / "whole"
    list(importers.import_paths(SessionManager(whole), [source]))
    chance = random.Random(8)
    unfinished = 0

    for kill in range(8):
        folder = tmp_path / f"killed-{kill}"
        for pattern in ("*.meta.json", "*.jsonl"):  # killed among the metadata, then among the messages
            running = start(source, folder)
            wait_for(folder, pattern)
            time.sleep(chance.uniform(0, 0.02))
            running.kill()
            running.communicate()
            unfinished += len(list(folder.glob("*.meta.json"))) != len(list(folder.glob("*.jsonl")))
        list(importers.import_paths(SessionManager(folder), [source]))

        assert contents(folder) == contents(whole)

    assert unfinished  # else no kill struck where it could hurt


def test_a_line_cut_by_a_kill_is_written_whole_by_the_next_import(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "c.jsonl", *conversation(1))
    manager = SessionManager(tmp_path / "sessions")
    list(importers.import_paths(manager, [source]))
    (info,) = manager.list()
    file = manager.folder / f"{info.id}.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])

    list(importers.import_paths(manager, [source]))

    assert file.read_bytes() == whole


def test_of_two_imports_at_once_one_waits_or_is_told_and_nothing_is_doubled(tmp_path: Path) -> None:
    source = sources(tmp_path / "projects", 150)
    whole = tmp_path / "whole"
    list(importers.import_paths(SessionManager(whole), [source]))

    running = [start(source, tmp_path / "sessions") for _ in range(3)]
    told = [process.communicate(timeout=120)[1] for process in running]

    assert contents(tmp_path / "sessions") == contents(whole)
    codes = [process.returncode for process in running]
    assert 0 in codes
    for code, text_told in zip(codes, told, strict=True):
        assert code == 0 or "Another import" in text_told
        assert "Traceback" not in text_told


def test_a_second_import_names_the_one_that_is_running(tmp_path: Path) -> None:
    source = sources(tmp_path / "projects", 5)
    manager = SessionManager(tmp_path / "sessions")
    first = importers.import_paths(manager, [source])
    next(first)

    second = start(source, manager.folder)
    _, told = second.communicate(timeout=60)
    first.close()

    assert second.returncode == 1
    assert f"Another import into {manager.folder} is running (process" in told
    assert "is not imported twice" in told


def test_control_c_says_what_was_done_and_the_next_import_goes_on(tmp_path: Path) -> None:
    source = sources(tmp_path / "projects", 400)
    folder = tmp_path / "sessions"
    running = start(source, folder)
    wait_for(folder, "*.jsonl")
    running.send_signal(signal.SIGINT)

    printed, told = running.communicate(timeout=60)
    before = contents(folder)
    steps = list(importers.import_paths(SessionManager(folder), [source]))

    assert running.returncode == 1
    assert "Traceback" not in told
    assert f"Imported {len(before)} sessions" in told
    assert "Stopped" in told
    assert len(printed.splitlines()) == len(before)
    assert 0 < len(before) < 400
    assert sum(step.result.added_sessions for step in steps if step.result) == 400 - len(before)
    assert len(contents(folder)) == 400
