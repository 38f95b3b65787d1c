"""What a file is, judged by its content; and the files that are refused by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sessions_lib import importers
from sessions_lib.errors import ImportRefused, SessionError
from sessions_lib.store.manager import SessionManager
from tests.importers.files import claude, write_lines


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("empty.jsonl", "", "an empty file"),
        ("blank.jsonl", " \n\n", "an empty file"),
        (
            "array.json",
            '[{"title":"x","mapping":{}}]',
            "looks like ChatGPT export, but holds no conversation (conversation without messages: 1)",
        ),
        ("text.txt", "hello\n", "a text file, not JSON"),
        ("list.json", "[]", "an empty JSON list"),
        ("numbers.jsonl", "1\n2\n", "JSON without any object"),
        ("cut.json", '{"messages": [', "JSON that is cut off or damaged"),
        ("package.json", '{"name": "x", "version": "1"}', "JSON of an unknown kind"),
    ],
)
def test_a_file_without_a_session_is_refused_by_what_it_is(tmp_path: Path, name: str, content: str, found: str) -> None:
    path = tmp_path / name
    path.write_text(content)

    with pytest.raises(ImportRefused) as refused:
        importers.read(path)

    assert refused.value.found == found
    assert str(path) in str(refused.value)


def test_a_wrong_format_says_what_it_looked_like(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "claude.jsonl", claude("user", "u1", None, "q"))

    with pytest.raises(ImportRefused, match="looks like Claude Code, not like Codex"):
        importers.read(path, "codex")


def test_an_unknown_format_name_lists_the_known_ones() -> None:
    with pytest.raises(SessionError, match="Choose one of: claude-code, pi, codex"):
        importers.format_name("emacs")


def test_nothing_is_left_behind_by_files_that_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "folder").mkdir()
    write_lines(tmp_path / "claude.jsonl", claude("user", "u1", None, "q"))
    asked = ["claude.jsonl", "empty.jsonl", "folder", "missing.jsonl"]
    manager = SessionManager(tmp_path / "sessions")

    steps = list(importers.import_paths(manager, [tmp_path / name for name in asked], "codex"))

    assert [(step.done, step.total, step.error is not None) for step in steps] == [(n, 4, True) for n in (1, 2, 3, 4)]
    assert [str(step.error).split(": ", 1)[1] for step in steps[2:]] == [
        "a folder without a .jsonl, .json or .zip file. Nothing was imported.",
        "there is no such file or folder. Nothing was imported.",
    ]
    assert manager.list() == []
    assert not [path for path in manager.folder.iterdir() if not path.name.startswith(".")]


@pytest.mark.parametrize(
    ("content", "tool"),
    [
        ([{"conversations": [{"from": "human", "value": "q"}]}], "ShareGPT"),
        ({"version": 4, "history": [{"messages": []}], "folders": []}, "ChatbotUI"),
        ({"id": "p1", "sessionID": "s1", "messageID": "m1", "type": "text"}, "opencode"),
        ({"role": "user", "content": "q", "message_id": "m1"}, "Mistral Vibe"),
        ({"role": "system", "content": "You are gptme", "pinned": True}, "gptme"),
    ],
)
def test_known_formats_that_cannot_be_imported_yet_are_named_with_what_they_need(
    tmp_path: Path, content: object, tool: str
) -> None:
    path = tmp_path / "any-name.json"
    path.write_text(json.dumps(content))

    with pytest.raises(ImportRefused) as refused:
        importers.read(path)

    assert tool in refused.value.found
    assert "cannot be imported yet (" in refused.value.found


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ({"display": "q", "pastedContents": {}, "timestamp": 1, "project": "/w"}, "a prompt history of Claude Code"),
        ({"session_id": "t1", "ts": 1, "text": "q"}, "a prompt history of Codex"),
        ({"version": 1, "entries": [{"sessionId": "s1"}]}, "Claude Code's index of sessions"),
        ([{"sessionId": "s1", "messageId": 0, "type": "user", "message": "q"}], "a prompt log of Gemini CLI"),
    ],
)
def test_what_lies_beside_sessions_is_named_and_is_none(tmp_path: Path, content: object, found: str) -> None:
    path = tmp_path / "any-name.json"
    path.write_text(json.dumps(content))

    with pytest.raises(ImportRefused) as refused:
        importers.read(path)

    assert refused.value.found == f"{found}, not a session"


def test_an_aider_history_is_named(tmp_path: Path) -> None:
    history = tmp_path / "history.md"
    history.write_text("# aider chat started at 2024-08-05 19:33:02\n\n> Aider v0.47\n\n#### hello\n")

    with pytest.raises(ImportRefused, match="aider chat history"):
        importers.read(history)


def test_a_name_decides_nothing(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "rollout-2026.txt", claude("user", "u1", None, "q"))

    _, report = importers.read(path)

    assert report.format == "claude-code"


def test_a_compressed_file_says_to_unpack_it(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd\x04\x00")

    with pytest.raises(ImportRefused, match="unpack it first"):
        importers.read(path)


def test_a_file_saved_as_utf_16_is_read(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_bytes((json.dumps(claude("user", "u1", None, "maré")) + "\r\n").encode("utf-16"))

    (found,), _ = importers.read(path)

    assert found.messages[0]["content"] == "maré"


def test_a_source_nested_too_deeply_is_refused_not_a_crash(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text('{"messages":' + "[" * 100_000 + "]" * 100_000 + "}")

    with pytest.raises(ImportRefused):
        importers.read(path)
