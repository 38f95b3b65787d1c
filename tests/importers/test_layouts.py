"""Layouts of the same tools that are rarer: read as well, or named; what else an export holds stops nothing."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import importers
from sessions_lib.errors import ImportRefused
from tests.cli.terminal import Terminal
from tests.importers.files import call, result, said, text, write_lines


def document(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_the_first_codex_kept_a_session_in_one_json_document(tmp_path: Path) -> None:
    items = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "List the ferries."}]},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "call_id": "c1", "name": "shell", "arguments": '{"command":["ls"]}'},
        {"type": "function_call_output", "call_id": "c1", "output": "north"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "One: north."}]},
    ]
    header = {"timestamp": "2025-04-20T10:00:00.000Z", "id": "old-1", "instructions": "Be brief."}

    path = document(tmp_path / "rollout-2025-04-20-old-1.json", {"session": header, "items": items})
    (found,), report = importers.read(path)

    assert (report.format, found.key) == ("codex", "codex:old-1")
    assert said(found.messages) == [
        ("user", "List the ferries."),
        ("assistant", [None, "shell()"]),
        ("tool", "north"),
        ("assistant", "One: north."),
    ]
    assert found.messages[0]["timestamp"] == "2025-04-20T10:00:00.000Z"


def printed(kind: str, said_as: Any, parent: str | None = None, **more: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"role": kind, "content": said_as}
    if kind == "assistant":
        message |= {"id": more.pop("id"), "model": "m-1"}
    return {"type": kind, "message": message, "parent_tool_use_id": parent, "session_id": "s1", **more}


def test_what_claude_code_prints_as_a_stream_is_read_with_its_sub_agents_apart(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "out.jsonl",
        {"type": "system", "subtype": "init", "session_id": "s1", "cwd": "/w", "tools": ["Task"]},
        printed("assistant", call("t1", "Task", prompt="Look."), id="m1"),
        printed("user", "Look.", "t1"),
        printed("assistant", text("Seen."), "t1", id="m2"),
        printed("user", result("t1", "Seen.")),
        printed("assistant", text("Done."), id="m3"),
        {"type": "result", "subtype": "success", "session_id": "s1", "result": "Done."},
    )

    (main, agent), report = importers.read(path)

    assert said(main.messages) == [("assistant", [None, "Task()"]), ("tool", "Seen."), ("assistant", "Done.")]
    assert said(agent.messages) == [("user", "Look."), ("assistant", "Seen.")]
    assert (main.key, agent.meta["subagent_of"]["tool_call_id"]) == ("claude-code:s1", "t1")
    assert report.skipped == {"system: init": 1, "result": 1}


@pytest.mark.parametrize("key", ["messages", "history", "conversation", "trajectory", "dialog", "traj"])
def test_a_list_of_messages_is_found_under_any_of_its_names(tmp_path: Path, key: str) -> None:
    asked = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "r"}]

    (found,), _ = importers.read(document(tmp_path / "c.json", {"model": "m", key: asked}))

    assert found.messages == asked
    assert found.meta["example"] == {"model": "m"}


@pytest.mark.parametrize(
    ("record", "named"),
    [
        ({"custom_id": "1", "method": "POST", "body": {"messages": []}}, "an OpenAI batch file"),
        ({"input": {"messages": []}, "preferred_output": [], "non_preferred_output": []}, "OpenAI preference data"),
        ({"prompt": "p", "completion": "c"}, "old fine-tuning data"),
        ({"id": "x", "thread_name": "Tides", "updated_at": "2026-03-01"}, "Codex's list of threads"),
        ({"object": "chat.completion", "choices": []}, "a Chat Completions response"),
    ],
)
def test_what_is_no_session_is_refused_by_name(tmp_path: Path, record: dict[str, Any], named: str) -> None:
    with pytest.raises(ImportRefused, match=named):
        importers.read(write_lines(tmp_path / "c.jsonl", record, record))


def test_a_file_without_a_conversation_says_what_it_holds_instead(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "c.jsonl", {"type": "file-history-snapshot", "messageId": "m"}, {"type": "summary", "leafUuid": "x"}
    )

    with pytest.raises(ImportRefused) as refused:
        importers.read(path)

    assert refused.value.found == (
        "looks like Claude Code, but holds no conversation (file-history-snapshot: 1, summary: 1)"
    )


def test_what_else_a_chatgpt_export_holds_is_named_and_makes_no_failure_of_it(terminal: Terminal) -> None:
    node: dict[str, Any] = {"id": "u1", "parent": None, "children": [], "message": None}
    asked = {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["Tide?"]}, "recipient": "all"}
    conversation = {"title": "Tides", "conversation_id": "c1", "mapping": {"u1": {**node, "message": asked}}}
    others = {
        "user.json": {"id": "user-1", "email": "ana@example.org", "chatgpt_plus_user": True},
        "shared_conversations.json": [{"id": "s", "conversation_id": "c1", "is_anonymous": True}],
        "message_feedback.json": [{"id": "f", "conversation_id": "c1", "rating": "thumbs_up"}],
        "conversation_asset_file_names.json": {"file-AbC.dat": "tides.png"},
        "user_settings.json": {"user_settings": {}},
    }
    with zipfile.ZipFile(terminal.work / "export.zip", "w") as file:
        for name, value in {"conversations-000.json": [conversation], **others}.items():
            file.writestr(name, json.dumps(value))

    done = terminal.run("import", "export.zip")

    assert done.returncode == 0, done.stderr
    assert "Imported 1 session and 1 message from 1 file." in done.stderr
    named = "a part of a ChatGPT export without conversations"
    assert f"export.zip: 5 files, user.json the first: {named}. Nothing was imported of them." in done.stderr


def test_a_zip_that_gives_nothing_is_a_failure(terminal: Terminal) -> None:
    with zipfile.ZipFile(terminal.work / "export.zip", "w") as file:
        file.writestr("user.json", json.dumps({"id": "user-1", "chatgpt_plus_user": True}))

    assert "Not everything that was named could be imported" in terminal.told("import", "export.zip")
