"""What a person deleted stays deleted when its source is imported again, until it is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sessions_lib import importers
from sessions_lib.importers import ImportResult
from sessions_lib.store.manager import SessionManager
from tests.cli.terminal import Terminal
from tests.importers.files import claude, text, write_lines

ASKED = [claude("user", "u1", None, "q1"), claude("assistant", "a1", "u1", text("r1"))]
MORE = [claude("user", "u2", "a1", "q2"), claude("assistant", "a2", "u2", text("r2"))]
REWOUND = [claude("user", "u3", "a1", "q3")]


def run(manager: SessionManager, path: Path, **more: Any) -> ImportResult:
    (step,) = importers.import_paths(manager, [path], **more)
    assert step.result is not None, step.error
    return step.result


def changes(result: ImportResult) -> list[tuple[str, int]]:
    return sorted((outcome.change, outcome.added) for outcome in result.outcomes)


def test_a_deleted_session_stays_deleted_and_is_counted_even_when_its_source_grows(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "c.jsonl", *ASKED)
    manager = SessionManager(tmp_path / "sessions")
    run(manager, path)
    manager.delete("q1")

    unchanged = run(manager, path)
    write_lines(path, *ASKED, *MORE)
    grown = run(manager, path)

    assert (unchanged.is_unchanged, unchanged.left_deleted, unchanged.summary) == (
        True,
        1,
        "nothing new, 1 deleted before",
    )
    assert (changes(grown), grown.left_deleted) == ([("deleted", 0)], 1)
    assert manager.list() == []


def test_a_deleted_branch_stays_deleted_and_the_others_grow(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "c.jsonl", *ASKED, *MORE, *REWOUND)
    manager = SessionManager(tmp_path / "sessions")
    run(manager, path)
    (fork,) = [info.id for info in manager.list() if info.parent]
    manager.delete(fork)

    again = run(manager, path)
    write_lines(path, *ASKED, *MORE, *REWOUND, claude("assistant", "a3", "u3", text("r3")))
    grown = run(manager, path)

    assert again.left_deleted == 1
    assert changes(grown) == [("deleted", 0), ("grown", 1)]
    assert len(manager.list()) == 1


def test_asked_for_again_it_comes_back_with_what_was_changed_here_and_what_is_new(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "c.jsonl", *ASKED)
    manager = SessionManager(tmp_path / "sessions")
    run(manager, path)
    manager.open("q1").add_tag("mine")
    manager.delete("q1")
    same = run(manager, path, again=True)
    manager.delete("q1")
    write_lines(path, *ASKED, *MORE)

    grown = run(manager, path, again=True)

    assert (changes(same), same.summary) == ([("restored", 0)], "1 session")
    assert changes(grown) == [("grown", 2)]
    assert [message["content"] for message in manager.open("q1").messages] == ["q1", "r1", "q2", "r2"]
    assert manager.open("q1").tags == ["mine"]
    assert manager.trash() == []


def test_what_was_purged_is_as_if_it_had_never_been_imported(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "c.jsonl", *ASKED)
    manager = SessionManager(tmp_path / "sessions")
    run(manager, path)
    manager.delete("q1")
    manager.purge(manager.purgeable("q1"))

    assert changes(run(manager, path)) == [("new", 2)]


def test_a_restored_session_is_known_again(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "c.jsonl", *ASKED)
    manager = SessionManager(tmp_path / "sessions")
    run(manager, path)
    manager.delete("q1")
    manager.restore("q1")

    result = run(manager, path)

    assert (result.is_unchanged, result.left_deleted) == (True, 0)


def test_the_command_line_says_how_deleted_sessions_come_back(terminal: Terminal) -> None:
    write_lines(terminal.work / "in" / "c.jsonl", *ASKED)
    terminal.ok("import", "in")
    terminal.ok("delete", "q1", "--yes")

    left = terminal.run("import", "in")
    back = terminal.run("import", "in", "--again")

    assert (left.returncode, back.returncode) == (0, 0)
    assert "1 session that you deleted before left out; --again brings them back." in left.stderr
    assert "Imported 1 session" in back.stderr
    assert [row["id"] for row in terminal.records("list")] == ["q1"]
