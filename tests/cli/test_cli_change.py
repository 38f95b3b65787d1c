"""Commands that make, fork, mark, join and remove sessions."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import pytest

from sessions_lib.store.manager import SessionManager
from tests.cli.terminal import Terminal
from tests.record import GULL, LIGHTHOUSES, call

# --- making, forking, deleting ---------------------------------------------------------------------------------------


def test_new_and_fork_print_the_id_alone(terminal: Terminal) -> None:
    assert terminal.ok("new", "Sessão de maré") == "sessao-de-mare\n"
    terminal.session("quest-1")
    assert terminal.ok("fork", "quest-1", "--id", "quest-2", "--title", "West") == "quest-2\n"
    assert SessionManager(terminal.folder).open("quest-2").title == "West"
    assert "quest-2" in terminal.told("fork", "quest-1", "--id", "quest-2")
    assert (terminal.folder / "quest-2.jsonl").read_bytes() == (terminal.folder / "quest-1.jsonl").read_bytes()


@pytest.mark.any_store
def test_a_forbidden_fork_point_names_the_allowed_ones(terminal: Terminal) -> None:
    terminal.session("a", LIGHTHOUSES, call("c1"), {"role": "tool", "tool_call_id": "c1", "content": "2.1 m"}, GULL)

    assert "after message 1 or 3" in terminal.told("fork", "a", "--at", "2")


@pytest.mark.any_store
def test_tags_are_added_taken_away_and_printed(terminal: Terminal) -> None:
    terminal.session("a")

    assert terminal.ok("tag", "a", "  Python ", "python", "résumé, café #1") == "Python\nrésumé, café #1\n"
    assert terminal.ok("tag", "a", "-r", "PYTHON") == "résumé, café #1\n"
    assert "empty" in terminal.told("tag", "a", " ")


def test_a_tag_written_in_another_case_is_there_in_the_new_spelling(terminal: Terminal) -> None:
    terminal.session("a")
    terminal.ok("tag", "a", "Important", "draft")

    assert terminal.ok("tag", "a", "important", "--remove", "Important") == "draft\nimportant\n"
    assert "empty" in terminal.told("tag", "a", " ", "--remove", "draft")
    assert terminal.ok("tag", "a") == "draft\nimportant\n"


@pytest.mark.any_store
def test_delete_wants_the_exact_id_and_an_answer(terminal: Terminal) -> None:
    terminal.session("old_session")
    before = terminal.files()

    assert "perhaps old_session" in terminal.told("delete", "old", "--yes")
    assert "--yes" in terminal.told("delete", "old_session")
    assert "not deleted" in terminal.told("delete", "old_session", stdin="n\n")
    assert {k: v for k, v in terminal.files().items() if ".locks" not in k} == before

    terminal.ok("delete", "old_session", stdin="y\n")
    assert terminal.ok("list") == ""
    assert [entry["session"] for entry in terminal.records("list", "--trash")] == ["old_session"]
    assert terminal.ok("restore", "old_session") == "old_session\n"
    assert len(terminal.records("list")) == 1
    terminal.ok("delete", "old_session", "--yes")
    assert terminal.ok("list") == ""


def test_nothing_is_erased_for_its_file_time_or_without_an_answer(terminal: Terminal) -> None:
    old = terminal.session("old", {"role": "user", "content": "keep", "timestamp": "2020-01-01T00:00:00Z"})
    now = datetime.now(UTC).isoformat()
    young = terminal.session("young", {"role": "user", "content": "new", "timestamp": now})
    for file in (old, young):
        os.utime(file, (1_577_836_800, 1_577_836_800))
    for arguments in (["list"], ["search", "keep"], ["show", "old"], ["list", "--trash"]):
        terminal.ok(*arguments)

    assert [row["session"] for row in terminal.records("purge", "--older-than", "30d", "--dry-run")] == ["old"]
    asked = terminal.run("purge", "--older-than", "30d")
    assert (asked.returncode, "old" in asked.stdout, "young" in asked.stdout) == (1, True, False)
    os.utime(old)
    assert [row["session"] for row in terminal.records("purge", "--older-than", "30d", "--dry-run")] == ["old"]
    assert old.exists()

    terminal.ok("purge", "--older-than", "30d", "--yes")
    assert (old.exists(), young.exists()) == (False, True)


@pytest.mark.any_store
def test_purge_takes_the_trash_only_and_one_entry_if_told(terminal: Terminal) -> None:
    for name in ("a", "b", "c"):
        terminal.session(name)
    for name in ("a", "b"):
        terminal.ok("delete", name, "--yes")

    assert "nothing of 'nope' in the trash" in terminal.told("purge", "nope", "--yes")
    terminal.ok("purge", "a", "--yes")
    assert [entry["session"] for entry in terminal.records("list", "--trash")] == ["b"]
    terminal.ok("purge", "--yes")
    assert terminal.records("list", "--trash") == []
    assert [row["id"] for row in terminal.records("list")] == ["c"]


# --- merge and verdict -----------------------------------------------------------------------------------------------


def branches(terminal: Terminal) -> None:
    """``b`` and ``c`` are forks of ``a`` after its 2 messages, with a turn of their own each."""
    terminal.session(
        "a",
        {**LIGHTHOUSES, "timestamp": "2026-01-01T00:00:00Z"},
        {**GULL, "timestamp": "2026-01-01T00:00:01Z"},
    )
    for minute, name in enumerate(("b", "c"), 1):
        terminal.ok("fork", "a", "--id", name)
        fork = SessionManager(terminal.folder).open(name)
        fork.append({"role": "user", "content": f"in {name}?", "timestamp": f"2026-01-01T00:0{minute}:00Z"})
        fork.append({"role": "assistant", "content": f"yes, {name}", "timestamp": f"2026-01-01T00:0{minute}:01Z"})


def test_a_merge_makes_a_new_session_and_a_dry_run_none(terminal: Terminal) -> None:
    branches(terminal)
    before = terminal.files()

    assert terminal.ok("merge", "b", "c", "--by-time", "--dry-run") == "turn 3: in c?\n"
    assert terminal.files() == before

    assert terminal.ok("merge", "b", "c", "--by-time", "--id", "both") == "both\n"
    shown = [message["content"] for message in terminal.records("show", "both")]
    assert shown == [LIGHTHOUSES["content"], GULL["content"], "in b?", "yes, b", "in c?", "yes, c"]
    assert {name: data for name, data in terminal.files().items() if "/both." not in name} == before
    assert "nothing would change" in terminal.told("merge", "both", "c", "--by-time")
    assert "itself" in terminal.told("merge", "b", "b", "--by-time")


def test_chosen_turns_are_copied_behind_the_last(terminal: Terminal) -> None:
    branches(terminal)

    (made,) = terminal.records("merge", "c", "b", "--turns", "2", "--title", "Home")

    assert (made["title"], [message["content"] for message in made["added"]]) == ("Home", ["in b?", "yes, b"])
    assert [m["content"] for m in terminal.records("show", made["id"])][-2:] == ["in b?", "yes, b"]
    for wrong in (["--turns", "x"], [], ["--turns", "2", "--by-time"]):
        assert terminal.run("merge", "c", "b", *wrong).returncode == 2
    assert "9" in terminal.told("merge", "c", "b", "--turns", "9")


def test_a_verdict_is_found_again(terminal: Terminal) -> None:
    branches(terminal)

    terminal.ok("verdict", "b", "c", "--why", "shorter", "--tag", "best")

    assert {hit["session"] for hit in terminal.records("search", "verdict:won")} == {"b"}
    assert [row["tags"] for row in terminal.records("list", "--tag", "best")] == [["best"]]
    assert "won" in next(line for line in terminal.ok("list").splitlines() if line.startswith("b "))
    assert "at least one other" in terminal.told("verdict", "b", "b")


def test_a_fork_may_end_with_a_message_that_says_something_else(terminal: Terminal) -> None:
    file = terminal.session("a")
    before = file.read_bytes()

    child = terminal.ok("fork", "a", "--change", "2", "A gull, and no lighthouse.").strip()

    said = terminal.records("show", child)
    assert [one["content"] for one in said] == [LIGHTHOUSES["content"], "A gull, and no lighthouse."]
    assert said[1]["edited"]["by"] == "person"
    assert "Changed by a person" in terminal.ok("show", child)
    assert file.read_bytes()[: len(before)] == before
    assert "there is no message 9 to change" in terminal.told("fork", "a", "--change", "9", "x")
    assert terminal.run("fork", "a", "--at", "1", "--change", "2", "x").returncode == 2
