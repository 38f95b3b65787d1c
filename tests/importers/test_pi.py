"""Pi's files: the leaf that ends last is the session, the other branches are its forks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import SessionManager, compare, importers
from sessions_lib.compare import Branch
from sessions_lib.messages import content, usage
from tests.importers.files import corpus, said, write_lines

HEADER = {"type": "session", "version": 3, "id": "pi-1", "timestamp": "2026-03-01T10:00:00.000Z", "cwd": "/w"}
TOKENS = {"input": 10, "output": 2, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 12}


def entry(number: int, parent: int | None, kind: str = "message", **more: Any) -> dict[str, Any]:
    stamp = f"2026-03-01T10:00:{number:02d}.000Z"
    return {"type": kind, "id": f"e{number}", "parentId": parent and f"e{parent}", "timestamp": stamp, **more}


def user(number: int, parent: int | None, text: str) -> dict[str, Any]:
    return entry(number, parent, message={"role": "user", "content": text, "timestamp": 1772359200000 + number * 1000})


def answer(number: int, parent: int, text: str, **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": [{"type": "text", "text": text}], "stopReason": "stop", "usage": TOKENS}
    return entry(number, parent, message={**message, "timestamp": 1772359200000 + number * 1000, **more})


def test_an_abandoned_branch_is_a_fork_and_not_in_the_main_line(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "pi.jsonl",
        HEADER,
        user(1, None, "Name a colour."),
        answer(2, 1, "Red."),
        user(3, 2, "Another."),
        answer(4, 3, "Blue."),
        user(5, 2, "In Portuguese, please."),
        answer(6, 5, "Vermelho."),
    )

    (main, other), _ = importers.read(path, "pi")

    assert said(main.messages) == [
        ("user", "Name a colour."),
        ("assistant", "Red."),
        ("user", "In Portuguese, please."),
        ("assistant", "Vermelho."),
    ]
    assert said(other.messages)[2:] == [("user", "Another."), ("assistant", "Blue.")]
    assert (main.key, other.parent_key, other.shared) == ("pi:pi-1", "pi:pi-1", 2)
    assert usage.total(main.messages).total == 24


def test_labels_are_tags_and_bookmarks_and_a_cleared_one_is_neither(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "pi.jsonl",
        HEADER,
        user(1, None, "q"),
        answer(2, 1, "r"),
        entry(3, 2, "label", targetId="e1", label="start"),
        entry(4, 3, "label", targetId="e2", label="good"),
        entry(5, 4, "label", targetId="e1"),
        entry(6, 5, "session_info", name="Colours"),
    )

    (found,), _ = importers.read(path)

    assert (found.title, found.tags) == ("Colours", ("good",))
    assert found.meta == {"bookmarks": [{"message_id": found.messages[1]["id"], "label": "good"}]}


def test_tokens_spent_beside_answers_count(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "pi.jsonl",
        HEADER,
        user(1, None, "q"),
        answer(2, 1, "r"),
        entry(3, 2, "compaction", summary="They asked q.", firstKeptEntryId="e2", tokensBefore=9, usage=TOKENS),
        entry(4, 3, "usage", usage=TOKENS),
        entry(5, 4, message={"role": "toolResult", "toolCallId": "c1", "content": [], "usage": TOKENS}),
        entry(6, 5, "context_edit", omit=["e1"]),
    )

    (found,), _ = importers.read(path)

    assert usage.total(found.messages).total == 48
    assert said(found.messages)[2] == ("assistant", "They asked q.")
    assert found.messages[2]["source"] == {"kind": "compaction", "firstKeptEntryId": "e2", "tokensBefore": 9}
    assert found.meta["context_edits"][0]["omit"] == ["e1"]
    assert said(found.messages)[0] == ("user", "q")


def test_a_header_names_the_session_it_was_copied_from(tmp_path: Path) -> None:
    parent = "/home/ana/sessions/2026-03-01T09-00-00-000Z_01a228e1-6df7.jsonl"
    path = write_lines(tmp_path / "pi.jsonl", {**HEADER, "parentSession": parent}, user(1, None, "q"))

    (found,), _ = importers.read(path)

    assert found.parent_key == "pi:01a228e1-6df7"


def test_a_first_version_file_is_a_list_and_keeps_its_identities_when_pi_rewrites_it(tmp_path: Path) -> None:
    entries = [user(1, None, "q"), answer(2, 1, "r", stopReason="aborted", content=[])]
    bare = [{key: value for key, value in one.items() if key not in ("id", "parentId")} for one in entries]
    first = write_lines(tmp_path / "v1.jsonl", {**HEADER, "version": 1}, *bare)
    third = write_lines(tmp_path / "v3.jsonl", HEADER, *entries)

    (old,), _ = importers.read(first)
    (new,), _ = importers.read(third)

    assert said(old.messages) == [("user", "q"), ("assistant", None)]
    assert old.messages[1]["interrupted"] is True
    assert [m["id"] for m in old.messages] == [m["id"] for m in new.messages]


def test_why_an_answer_failed_is_shown_and_found(tmp_path: Path) -> None:
    failed = {"stopReason": "error", "errorMessage": "529 overloaded_error: the harbour is full", "content": []}
    cut = {"stopReason": "aborted", "errorMessage": "Request was aborted."}
    path = write_lines(
        tmp_path / "pi.jsonl", HEADER, user(1, None, "q"), answer(2, 1, "", **failed), answer(3, 2, "It is", **cut)
    )
    manager = SessionManager(tmp_path / "sessions")

    list(importers.import_paths(manager, [path]))

    (hit,) = manager.search("overloaded harbour")
    stored = manager.open(hit.session).messages
    assert said(stored)[1:] == [
        ("assistant", "529 overloaded_error: the harbour is full"),
        ("assistant", "It is\n\nRequest was aborted."),
    ]
    assert (stored[1]["finish_reason"], stored[2]["interrupted"]) == ("error", True)
    assert "the harbour is full" in manager.open(hit.session).export(tmp_path / "a.md").read_text()


@pytest.mark.parametrize("format", ["markdown", "html"])
def test_what_a_person_ran_is_called_so_and_no_system_prompt(tmp_path: Path, format: str) -> None:
    ran = {"role": "bashExecution", "command": "ls", "output": "none", "exitCode": 2}
    path = write_lines(tmp_path / "pi.jsonl", HEADER, user(1, None, "q"), entry(2, 1, message=ran), answer(3, 2, "r"))
    manager = SessionManager(tmp_path / "sessions")
    list(importers.import_paths(manager, [path]))
    session = manager.open(manager.list()[0].id)

    written = session.export(tmp_path / "out", format).read_text()

    assert session.messages[1]["content"] == "Ran `ls` (exit code 2)\n```\nnone\n```"
    assert "Run by the person" in written
    assert "System" not in written.rpartition("</style>")[2]
    other = Branch("b", "b", [{**message, "id": f"{message['id']}b"} for message in session.messages[1:]], {})
    rows = compare.compare([Branch.of(session), other]).rows
    assert {line.kind for row in rows for line in row.lines} == {"prompt", "note", "answer"}


def test_what_a_person_ran_and_an_extension_said_are_notes_with_their_record(tmp_path: Path) -> None:
    ran = {"role": "bashExecution", "command": "ls", "output": "a.txt", "exitCode": 0}
    path = write_lines(
        tmp_path / "pi.jsonl",
        HEADER,
        user(1, None, "q"),
        entry(2, 1, message=ran),
        entry(3, 2, "custom_message", customType="git", content="2 files changed", display=True),
    )

    (found,), _ = importers.read(path)

    assert said(found.messages)[1:] == [("system", "Ran `ls`\n```\na.txt\n```"), ("system", "2 files changed")]
    assert found.messages[1]["source"] == {"kind": "bashExecution", "command": "ls", "exitCode": 0}
    assert found.messages[2]["source"]["customType"] == "git"


@pytest.mark.parametrize("name", ["v3-branches-labels", "v3-fork-of-branch"])
def test_the_main_line_is_the_context_that_pi_builds(name: str) -> None:
    expected = json.loads(corpus("pi/gen-expected-dev.json").read_text())[name]

    found, _ = importers.read(corpus(f"pi/gen-{name}.jsonl"))

    roles = {"branchSummary": "assistant", "toolResult": "tool"}
    assert [m["role"] for m in found[0].messages] == [roles.get(role, role) for role in expected["contextRoles"]]
    for message, text in zip(found[0].messages, expected["contextTexts"], strict=True):
        said_here = "toolCall" if message.get("tool_calls") else content.text(message)
        assert said_here == text.removeprefix("thinking|")
        assert ("reasoning_content" in message) == text.startswith("thinking|")
    assert found[0].title == expected.get("sessionName")


def test_a_large_old_file_gives_every_message_of_its_context() -> None:
    expected = json.loads(corpus("pi/gen-expected-dev.json").read_text())["migrated-large-session"]

    (old,), _ = importers.read(corpus("pi/pi-v1-large-session.jsonl"))
    (new,), _ = importers.read(corpus("pi/migrated-v3-large-session.jsonl"))

    assert len(old.messages) == len(new.messages) == expected["contextMessages"]
    assert [m["id"] for m in old.messages] == [m["id"] for m in new.messages]
