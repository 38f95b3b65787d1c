"""Following other tools' folders: nothing is lost, stored twice or taken away, however it ends and whoever else follows."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import SessionManager
from sessions_lib.importers import watcher
from sessions_lib.importers.belonging import source_of
from sessions_lib.importers.watcher import Round, Watcher
from tests.cli.terminal import Terminal
from tests.importers.files import claude, write_lines

PATIENCE_S = 60


def eventually(holds: Callable[[], Any]) -> None:
    """Wait until it ``holds``."""
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until, "it never came to be"
        time.sleep(0.05)


def lines(session: str, count: int, start: int = 0) -> list[dict[str, Any]]:
    """Prompts of a Claude Code session, each of them one word: ``a0``, ``a1``."""
    records = []
    for number in range(start, start + count):
        parent = f"{session}-{number - 1}" if number else None
        record = claude("user", f"{session}-{number}", parent, f"{session}{number}", sessionId=session)
        records.append(record | {"timestamp": f"2026-03-01T10:{number // 60:02d}:{number % 60:02d}.000Z"})
    return records


def append(path: Path, *records: dict[str, Any]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(json.dumps(record) + "\n" for record in records))


def said(folder: Path) -> dict[str, list[str]]:
    """The texts of every session, by the file it came from."""
    manager = SessionManager(folder)
    found: dict[str, list[str]] = {}
    for info in manager.list():
        name = Path(info.meta["imported_from"]["path"]).stem
        assert name not in found, "a file became two sessions"
        found[name] = [message["content"] for message in manager.open(info.id).messages]
    return found


@contextmanager
def following(folder: Path, *paths: Path) -> Iterator[list[Round]]:
    """A watch in a thread, and its rounds so far."""
    rounds: list[Round] = []
    watch = Watcher(SessionManager(folder), paths or None)
    thread = threading.Thread(target=_collect, args=(watch, rounds))
    thread.start()
    try:
        eventually(lambda: rounds)
        yield rounds
    finally:
        watch.stop()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def _collect(watch: Watcher, rounds: list[Round]) -> None:
    for made in watch.rounds():
        rounds.append(made)


def test_what_is_there_and_what_is_written_afterwards_is_taken_in(tmp_path: Path) -> None:
    place, folder = tmp_path / "projects", tmp_path / "sessions"
    write_lines(place / "p" / "a.jsonl", *lines("a", 2))

    with following(folder, place):
        assert said(folder) == {"a": ["a0", "a1"]}
        append(place / "p" / "a.jsonl", *lines("a", 1, 2))
        eventually(lambda: said(folder)["a"] == ["a0", "a1", "a2"])
        write_lines(place / "new" / "deep" / "b.jsonl", *lines("b", 1))  # a folder that was not there
        eventually(lambda: said(folder).get("b") == ["b0"])
        (tmp_path / "c.tmp").write_text(json.dumps(lines("c", 1)[0]) + "\n")
        (tmp_path / "c.tmp").rename(place / "c.jsonl")
        eventually(lambda: said(folder).get("c") == ["c0"])
        assert [hit.snippet for hit in SessionManager(folder).search("a2")] == ["a2"]


def test_a_source_that_shrinks_or_goes_takes_nothing_away(tmp_path: Path) -> None:
    place, folder = tmp_path / "projects", tmp_path / "sessions"
    for name in ("a", "b", "c"):
        write_lines(place / f"{name}.jsonl", *lines(name, 3))

    with following(folder, place):
        before = said(folder)
        write_lines(place / "a.jsonl", *lines("a", 1))
        (place / "b.jsonl").unlink()
        (place / "c.jsonl").write_text("")
        write_lines(place / "d.jsonl", *lines("d", 1))
        eventually(lambda: "d" in said(folder))

    assert said(folder) == {**before, "d": ["d0"]}


def test_a_line_that_is_written_in_two_halves_is_taken_in_once_and_whole(tmp_path: Path) -> None:
    place, folder = tmp_path / "projects", tmp_path / "sessions"
    write_lines(place / "a.jsonl", *lines("a", 1))
    whole = json.dumps(lines("a", 1, 1)[0]) + "\n"

    with following(folder, place) as rounds:
        with (place / "a.jsonl").open("a") as file:
            file.write(whole[:40])
        eventually(lambda: len(rounds) > 1)
        with (place / "a.jsonl").open("a") as file:
            file.write(whole[40:])
        eventually(lambda: said(folder)["a"] == ["a0", "a1"])


def test_a_file_is_followed_alone_also_when_it_is_replaced(tmp_path: Path) -> None:
    path, folder = tmp_path / "place" / "a.jsonl", tmp_path / "sessions"
    write_lines(path, *lines("a", 1))
    write_lines(path.with_name("b.jsonl"), *lines("b", 1))

    with following(folder, path):
        append(path.with_name("b.jsonl"), *lines("b", 1, 1))
        write_lines(path.with_suffix(".tmp"), *lines("a", 2)).rename(path)
        eventually(lambda: said(folder) == {"a": ["a0", "a1"]})


def test_a_database_is_followed_while_its_tool_has_it_open(tmp_path: Path) -> None:
    path, folder = tmp_path / "place" / "agents.db", tmp_path / "sessions"
    path.parent.mkdir()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(
        "PRAGMA journal_mode = wal; PRAGMA wal_autocheckpoint = 0;"
        "CREATE TABLE agent_sessions (session_id TEXT PRIMARY KEY, created_at TIMESTAMP, updated_at TIMESTAMP);"
        "CREATE TABLE agent_messages (id INTEGER PRIMARY KEY, session_id TEXT, message_data TEXT, created_at TIMESTAMP);"
        "INSERT INTO agent_sessions VALUES ('s1', '2026-03-01 10:00:00', '2026-03-01 10:00:00');"
    )

    def say(text: str) -> None:
        item = json.dumps({"role": "user", "content": text})
        connection.execute("INSERT INTO agent_messages VALUES (NULL, 's1', ?, '2026-03-01 10:00:00')", (item,))

    say("first")
    with following(folder, path) as rounds:
        assert said(folder) == {"agents": ["first"]}
        say("second")
        eventually(lambda: said(folder) == {"agents": ["first", "second"]})
        time.sleep(1)
        settled = len(rounds)
        time.sleep(3)
    assert len(rounds) == settled  # reading it wakes nobody
    connection.close()


def test_a_part_of_a_storage_is_no_source_of_its_own(tmp_path: Path) -> None:
    for folder in ("session/p", "message/s1", "part/m1"):
        (tmp_path / folder).mkdir(parents=True)

    assert source_of(tmp_path / "part" / "m1" / "p1.json") == tmp_path
    assert source_of(tmp_path / "message" / "s1" / "m1.json") == tmp_path
    assert source_of(tmp_path / "a.db-wal") == tmp_path / "a.db"
    assert source_of(tmp_path / "other" / "part" / "a.jsonl") == tmp_path / "other" / "part" / "a.jsonl"


def test_a_place_that_goes_and_comes_again_is_followed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher, "PLACES_S", 0.1)
    place, folder = tmp_path / "projects", tmp_path / "sessions"
    write_lines(place / "a.jsonl", *lines("a", 1))

    with following(folder, place):
        (place / "a.jsonl").unlink()
        place.rmdir()
        place.mkdir()
        time.sleep(0.5)
        write_lines(place / "b.jsonl", *lines("b", 1))
        eventually(lambda: said(folder) == {"a": ["a0"], "b": ["b0"]})


def test_the_tools_of_this_machine_are_followed_also_when_they_come_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "PLACES_S", 0.1)
    monkeypatch.setenv("HOME", str(tmp_path))

    with following(tmp_path / "sessions"):
        write_lines(tmp_path / ".claude" / "projects" / "p" / "a.jsonl", *lines("a", 1))
        time.sleep(0.5)
        append(tmp_path / ".claude" / "projects" / "p" / "a.jsonl", *lines("a", 1, 1))
        eventually(lambda: said(tmp_path / "sessions").get("a") == ["a0", "a1"])


def test_sessions_kept_inside_a_followed_folder_are_no_news(tmp_path: Path) -> None:
    place = tmp_path / "place"
    write_lines(place / "a.jsonl", *lines("a", 1))

    with following(place / "sessions", place) as rounds:
        append(place / "a.jsonl", *lines("a", 1, 1))
        eventually(lambda: said(place / "sessions")["a"] == ["a0", "a1"])
        time.sleep(1.5)
        settled = len(rounds)
        time.sleep(3)

    assert len(rounds) == settled  # what is written there wakes nobody


def test_where_the_system_gives_no_watches_everything_is_looked_at_in_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from watchdog.observers import Observer

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Observer, "schedule", refuse)
    place, folder = tmp_path / "projects", tmp_path / "sessions"
    write_lines(place / "a.jsonl", *lines("a", 1))

    with following(folder, place):
        append(place / "a.jsonl", *lines("a", 1, 1))
        eventually(lambda: said(folder)["a"] == ["a0", "a1"])


# ------------------------------------------------------------------------------------------ the command


def start(terminal: Terminal, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "sessions_lib.cli", "import", "--watch", *arguments]
    return subprocess.Popen(
        command, env=terminal.env(), cwd=terminal.work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_control_c_ends_it_with_a_sentence(terminal: Terminal) -> None:
    path = write_lines(terminal.work / "projects" / "a.jsonl", *lines("a", 1))
    running = start(terminal, "projects")
    eventually(lambda: terminal.folder.is_dir() and said(terminal.folder))
    append(path, *lines("a", 1, 1))
    eventually(lambda: said(terminal.folder)["a"] == ["a0", "a1"])

    running.send_signal(signal.SIGINT)
    out, talk = running.communicate(timeout=PATIENCE_S)

    assert running.returncode == 0
    assert out == "projects/a.jsonl: 1 session, 1 message\nprojects/a.jsonl: 1 grown, 1 message\n".replace(
        "projects", str(terminal.work / "projects")
    )
    assert talk == (
        f"Following projects into {terminal.folder}. Ctrl-C ends it.\n"
        "Stopped following; 1 session and 2 messages were brought. Started again, it goes on from there.\n"
    )


def test_two_watches_killed_and_started_again_store_everything_once(terminal: Terminal) -> None:
    place = terminal.work / "projects"
    names = [f"s{number}" for number in range(6)]
    for name in names:
        write_lines(place / f"{name}.jsonl", *lines(name, 1))
    running = [start(terminal, "projects"), start(terminal, "projects")]

    for number in range(1, 25):
        for name in names:
            append(place / f"{name}.jsonl", *lines(name, 1, number))
        time.sleep(0.15)
        if number in (8, 16):  # one of them dies in the middle, and is started again
            os.kill(running[0].pid, signal.SIGKILL)
            running[0].wait()
            running = [running[1], start(terminal, "projects")]

    wanted = {name: [f"{name}{number}" for number in range(25)] for name in names}
    eventually(lambda: said(terminal.folder) == wanted)
    for one in running:
        assert one.stderr is not None
        assert one.stderr.readline().startswith("Following")  # from then on an interrupt ends it well
        one.send_signal(signal.SIGINT)
    assert [one.wait(PATIENCE_S) for one in running] == [0, 0]
    assert said(terminal.folder) == wanted
    assert terminal.ok("check") == ""


def test_a_watch_says_what_it_cannot_do(terminal: Terminal) -> None:
    assert "gone: there is no such file or folder." in terminal.told("import", "--watch", "gone")
    assert terminal.run("import", "--watch", "--dry-run", ".").returncode == 2
