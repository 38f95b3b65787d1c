"""Importing again, and again after the source grew: what is new is added, nothing is overwritten."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import importers
from sessions_lib.importers import ImportResult
from sessions_lib.messages import usage
from sessions_lib.store.manager import SessionManager
from tests.cli.terminal import Terminal
from tests.importers.files import call, claude, codex, item_text, result, said, spent, text, tokens, write_lines

ASKED = [claude("user", "u1", None, "q1"), claude("assistant", "a1", "u1", text("r1"), usage=spent(10, 5))]
MORE = [claude("user", "u2", "a1", "q2"), claude("assistant", "a2", "u2", text("r2"), usage=spent(20, 5))]


def run(manager: SessionManager, *paths: Path, **more: Any) -> list[ImportResult]:
    results = []
    for step in importers.import_paths(manager, paths, **more):
        assert step.result is not None, step.error
        results.append(step.result)
    return results


def changes(result: ImportResult) -> list[tuple[str, int]]:
    return [(outcome.change, outcome.added) for outcome in result.outcomes]


def test_importing_twice_adds_nothing(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "c.jsonl", *ASKED)
    copy = write_lines(tmp_path / "elsewhere" / "c.jsonl", *ASKED)
    manager = SessionManager(tmp_path / "sessions")

    first = run(manager, path)
    before = {file.name: file.read_bytes() for file in manager.folder.glob("q1*")}
    again = run(manager, path, copy)

    assert changes(first[0]) == [("new", 2)]
    assert [(one.is_unchanged, changes(one)) for one in again] == [(True, []), (False, [("unchanged", 0)])]
    assert {file.name: file.read_bytes() for file in manager.folder.glob("q1*")} == before
    assert first[0].summary == "1 session, 2 messages"
    assert again[1].summary == "nothing new"


def test_a_session_says_where_it_came_from(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "c.jsonl", {**ASKED[0], "cwd": "/w", "gitBranch": "main", "version": "2.1.0"}, ASKED[1]
    )
    manager = SessionManager(tmp_path / "sessions")

    run(manager, path)

    (info,) = manager.list()
    origin = info.meta["imported_from"]
    assert {key: origin[key] for key in ("tool", "path", "key", "cwd", "git_branch", "version", "messages")} == {
        "tool": "Claude Code",
        "path": str(path),
        "key": "claude-code:s1",
        "cwd": "/w",
        "git_branch": "main",
        "version": "2.1.0",
        "messages": 2,
    }
    assert info.meta["created"] == "2026-03-01T10:00:02.000Z"
    assert info.id == "q1"
    assert "title" not in info.meta


def test_a_source_that_has_grown_adds_only_what_is_new(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "c.jsonl", *ASKED)
    manager = SessionManager(tmp_path / "sessions")
    run(manager, path)
    old = manager.open("q1").path.read_bytes()
    write_lines(path, *ASKED, *MORE)

    (grown,) = run(manager, path)
    (again,) = run(manager, path)

    assert changes(grown) == [("grown", 2)]
    assert grown.summary == "1 grown, 2 messages"
    assert again.is_unchanged
    assert said(manager.open("q1").messages) == [
        ("user", "q1"),
        ("assistant", "r1"),
        ("user", "q2"),
        ("assistant", "r2"),
    ]
    assert manager.open("q1").path.read_bytes().startswith(old)
    assert len(manager.list()) == 1


def test_an_answer_that_was_not_complete_gets_its_rest(tmp_path: Path) -> None:
    begun = claude("assistant", "a1", "u1", text("Let me look."), id="msg_1", usage=spent(10, 5))
    rest = claude("assistant", "a2", "a1", call("t1", "tide"), id="msg_1", usage=spent(10, 30))
    done = claude("user", "r1", "a2", result("t1", "low"))
    path = write_lines(tmp_path / "c.jsonl", ASKED[0], begun)
    manager = SessionManager(tmp_path / "sessions")
    run(manager, path)
    write_lines(path, ASKED[0], begun, rest, done)

    (grown,) = run(manager, path)
    write_lines(path, ASKED[0], begun, rest, done, {"type": "summary", "summary": "x", "leafUuid": "none"})
    (again,) = run(manager, path)

    messages = manager.open("q1").messages
    assert said(messages) == [
        ("user", "q1"),
        ("assistant", "Let me look."),
        ("assistant", [None, "tide()"]),
        ("tool", "low"),
    ]
    assert [m["id"] for m in messages] == ["cc_u1", "cc_msg_1", "cc_msg_1+2", "cc_r1"]
    assert usage.total(messages).total == 40
    assert changes(grown) == [("grown", 2)]
    assert changes(again) == [("unchanged", 0)]


def test_a_codex_answer_that_was_not_complete_keeps_its_identity(tmp_path: Path) -> None:
    meta = codex("session_meta", id="t1")
    begun = [meta, item_text("user", "q1"), item_text("assistant", "Let me look.")]
    rest = [
        codex("response_item", type="function_call", name="ls", arguments="{}", call_id="c1"),
        tokens(100, 100),
        codex("response_item", type="function_call_output", call_id="c1", output="a"),
    ]
    path = write_lines(tmp_path / "r.jsonl", *begun)
    manager = SessionManager(tmp_path / "sessions")
    run(manager, path)
    write_lines(path, *begun, *rest)

    (grown,) = run(manager, path)

    messages = manager.open("q1").messages
    assert said(messages) == [
        ("user", "q1"),
        ("assistant", "Let me look."),
        ("assistant", [None, "ls()"]),
        ("tool", "a"),
    ]
    assert usage.total(messages).total == 100
    assert changes(grown) == [("grown", 2)]


def test_a_session_continued_here_is_never_interleaved_with_its_source(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "c.jsonl", *ASKED)
    manager = SessionManager(tmp_path / "sessions")
    run(manager, path)
    manager.open("q1").append({"role": "user", "content": "asked here"})
    here = manager.open("q1").path.read_bytes()

    write_lines(path, *ASKED, *MORE)
    (parted,) = run(manager, path)
    write_lines(path, *ASKED, *MORE, claude("user", "u3", "a2", "q3"))
    (grown,) = run(manager, path)

    assert changes(parted) == [("parted", 4)]
    assert changes(grown) == [("grown", 1)]
    assert manager.open("q1").path.read_bytes() == here
    (fork,) = [info for info in manager.list() if info.id != "q1"]
    assert (fork.parent, fork.inherited, fork.title) == ("q1", 2, "q1 · after turn 1")
    assert said(manager.open(fork.id).messages)[2:] == [("user", "q2"), ("assistant", "r2"), ("user", "q3")]


def test_a_rewind_after_an_import_becomes_a_fork_of_what_was_imported(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "c.jsonl", *ASKED, *MORE)
    manager = SessionManager(tmp_path / "sessions")
    run(manager, path)
    write_lines(path, *ASKED, *MORE, claude("user", "u3", "a1", "q3"), claude("assistant", "a3", "u3", text("r3")))

    (again,) = run(manager, path)
    (third,) = run(manager, path)

    assert sorted(changes(again)) == [("parted", 4), ("unchanged", 0)]
    assert third.is_unchanged
    (fork,) = [info for info in manager.list() if info.id != "q1"]
    assert (fork.parent, fork.inherited) == ("q1", 2)
    assert said(manager.open("q1").messages)[2:] == [("user", "q2"), ("assistant", "r2")]


def test_a_fork_in_its_own_file_is_linked_whichever_is_imported_first(tmp_path: Path) -> None:
    copied = {"sessionId": "s2", "forkedFrom": {"sessionId": "s1"}}
    fork = write_lines(
        tmp_path / "a.jsonl",
        {**ASKED[0], **copied},
        {**ASKED[1], **copied},
        claude("user", "u9", "a1", "q9", sessionId="s2"),
    )
    parent = write_lines(tmp_path / "b.jsonl", *ASKED, *MORE)
    manager = SessionManager(tmp_path / "sessions")

    run(manager, fork)
    run(manager, parent)

    by_messages = {info.messages: info for info in manager.list()}
    assert (by_messages[4].parent, by_messages[3].parent, by_messages[3].inherited) == (None, by_messages[4].id, 2)


def test_a_copy_that_names_no_parent_is_known_by_its_first_message(tmp_path: Path) -> None:
    parent = write_lines(tmp_path / "s1.jsonl", *ASKED)
    copy = write_lines(tmp_path / "s2.jsonl", *({**record, "sessionId": "s2"} for record in [*ASKED, *MORE]))
    manager = SessionManager(tmp_path / "sessions")

    run(manager, parent, copy)

    by_messages = {info.messages: info for info in manager.list()}
    assert (by_messages[4].parent, by_messages[4].inherited) == (by_messages[2].id, 2)


def test_a_sub_agent_is_linked_to_the_session_that_called_it(tmp_path: Path) -> None:
    side = {"isSidechain": True, "agentId": "7f"}
    agent = write_lines(tmp_path / "agent-7f.jsonl", claude("user", "x1", None, "Look.", **side))
    main = write_lines(tmp_path / "s1.jsonl", *ASKED)
    manager = SessionManager(tmp_path / "sessions")

    run(manager, agent)
    run(manager, main)

    (info,) = [info for info in manager.list() if "subagent_of" in info.meta]
    assert info.meta["subagent_of"] == {"key": "claude-code:s1", "session": "q1"}
    assert info.parent is None
    assert info.tags == ("sub-agent",)


def test_one_bad_file_never_stops_the_others(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    write_lines(folder / "1.jsonl", *ASKED)
    (folder / "2.json").write_text('{"mapping": {"a": 1}, "current_node": "a"}')
    (folder / "3.jsonl").write_bytes(b"\0\xff\xfe")
    write_lines(folder / "4.jsonl", *(dict(record, sessionId="s4", uuid=record["uuid"] + "x") for record in MORE))
    manager = SessionManager(tmp_path / "sessions")

    steps = list(importers.import_paths(manager, [folder]))

    assert [(step.source.name, step.was_named, step.error is None) for step in steps] == [
        ("1.jsonl", False, True),
        ("2.json", False, False),
        ("3.jsonl", False, False),
        ("4.jsonl", False, True),
    ]
    assert len(manager.list()) == 2


def test_a_folder_and_a_zip_are_searched_and_metadata_beside_sessions_is_not_a_session(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    write_lines(folder / "deep" / "c.jsonl", *ASKED)
    (folder / "deep" / "c.meta.json").write_text("{}")
    (folder / "notes.md").write_text("no session")
    (folder / ".trash").mkdir()
    write_lines(folder / ".trash" / "old.jsonl", *MORE)
    (folder / "loop").symlink_to(folder)
    conversation = {"title": "Tides", "id": "c1", "current_node": "u1"}
    node = {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["Tide?"]}}
    with zipfile.ZipFile(folder / "export.zip", "w") as archive:
        archive.writestr("out/conversations.json", json.dumps([{**conversation, "mapping": {"u1": {"message": node}}}]))
        archive.writestr("out/picture.png", b"x")
    manager = SessionManager(tmp_path / "sessions")

    steps = list(importers.import_paths(manager, [folder]))

    assert [(str(step.source.relative_to(folder)), step.error) for step in steps] == [
        ("deep/c.jsonl", None),
        ("export.zip/out/conversations.json", None),
    ]
    assert sorted(info.title for info in manager.list()) == ["Tides", "q1"]


def test_a_dry_run_says_what_would_be_done_and_writes_nothing(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "c.jsonl", *ASKED, claude("user", "u3", "u1", "other"), *MORE)
    manager = SessionManager(tmp_path / "sessions")

    (tried,) = run(manager, path, dry_run=True)

    assert [outcome.session for outcome in tried.outcomes] == [None, None]
    assert tried.added_sessions == 2
    assert not manager.folder.exists()


def test_an_import_that_was_stopped_goes_on_where_it_stopped(tmp_path: Path) -> None:
    for number in range(4):
        write_lines(
            tmp_path / "in" / f"{number}.jsonl", claude("user", f"u{number}", None, "q", sessionId=f"s{number}")
        )
    manager = SessionManager(tmp_path / "sessions")
    started = importers.import_paths(manager, [tmp_path / "in"])
    next(started)
    next(started)
    started.close()

    steps = list(importers.import_paths(manager, [tmp_path / "in"]))

    assert [step.result.is_unchanged for step in steps if step.result] == [True, True, False, False]
    assert sorted(info.id for info in manager.list()) == ["q", "q-2", "q-3", "q-4"]


def test_a_session_that_a_crash_left_empty_or_cut_is_filled_by_the_next_import(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "c.jsonl", *ASKED, *MORE)
    manager = SessionManager(tmp_path / "sessions")
    run(manager, path)
    whole = manager.open("q1").messages
    file = manager.folder / "q1.jsonl"

    for left in (0, 1, 2):
        file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:left]))
        (result,) = run(manager, path)
        assert changes(result) == [("grown", 4 - left)]
        assert manager.open("q1").messages == whole
    file.unlink()
    run(manager, path)

    assert manager.open("q1").messages == whole
    assert len(manager.list()) == 1


def test_a_locked_session_is_told_and_keeps_what_it_has(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "c.jsonl", *ASKED)
    manager = SessionManager(tmp_path / "sessions")
    run(manager, path)
    write_lines(path, *ASKED, *MORE)
    hold = manager.open("q1").hold()

    (step,) = importers.import_paths(manager, [path])
    hold.release()
    (later,) = run(manager, path)

    assert "is being written" in str(step.error)
    assert changes(later) == [("grown", 2)]


def test_the_folder_that_is_imported_into_is_no_source(tmp_path: Path) -> None:
    manager = SessionManager(tmp_path / "sessions")
    run(manager, write_lines(tmp_path / "c.jsonl", *ASKED))

    (step,) = importers.import_paths(manager, [manager.folder])

    assert "a file of the folder that is imported into" in str(step.error)
    assert len(manager.list()) == 1


def test_one_report_of_several_files_tells_warnings_with_their_file(tmp_path: Path) -> None:
    first = write_lines(tmp_path / "1.jsonl", claude("user", "u1", None, "q"), claude("user", "u2", "ghost", "q2"))
    second = write_lines(tmp_path / "2.jsonl", codex("session_meta", id="t1"), item_text("user", "q"), "{cut")

    total = importers.total_of(run(SessionManager(tmp_path / "sessions"), first, second))

    assert (total.format, total.sessions, total.messages, total.damaged_lines) == ("several", 2, 3, 1)
    assert total.warnings == ["1.jsonl: line 2: its parent is not in the file; the file's order is taken there"]


def test_files_of_a_session_are_for_its_owner_alone(tmp_path: Path) -> None:
    manager = SessionManager(tmp_path / "sessions")

    run(manager, write_lines(tmp_path / "c.jsonl", *ASKED))

    assert {file.stat().st_mode & 0o777 for file in manager.folder.glob("q1*")} == {0o600}
    assert manager.folder.stat().st_mode & 0o777 == 0o700


def test_the_places_of_this_machine_are_those_that_exist(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".codex/sessions").mkdir(parents=True)

    assert importers.places() == [tmp_path / ".codex/sessions"]


WORDLESS = {
    "codex.jsonl": [codex("session_meta", id="t1"), tokens(100, 100)],
    "claude.jsonl": [claude("assistant", "a1", None, [], usage=spent(10, 5))],
    "chat.jsonl": [{"role": "assistant", "content": ""}, {"role": "user", "content": []}],
}


@pytest.mark.parametrize("name", WORDLESS)
def test_an_import_without_a_word_of_text_is_refused_in_one_sentence(terminal: Terminal, name: str) -> None:
    write_lines(terminal.work / name, *WORDLESS[name])

    done = terminal.run("import", name)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"{name}: looks like ")
    assert done.stderr.endswith("Nothing was imported.\n")
    assert done.stderr.count("\n") == 1
    assert not list(terminal.folder.glob("*.jsonl"))
    assert not list(terminal.folder.glob("*.json"))


def test_what_is_of_an_unknown_kind_is_told(terminal: Terminal) -> None:
    write_lines(
        terminal.work / "r.jsonl",
        codex("session_meta", id="t1"),
        item_text("user", "q"),
        codex("event_msg", type="hologram", message="Land ahead."),
    )

    done = terminal.run("import", "r.jsonl")

    assert done.returncode == 0
    assert "Of an unknown kind, their texts taken in as notes: event: hologram (1)" in done.stderr
    assert "Land ahead." in terminal.run("search", "land").stdout
