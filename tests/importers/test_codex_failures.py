"""A Codex command that failed is an error, by whatever its output, or the screen, says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sessions_lib import importers
from sessions_lib.store.manager import SessionManager
from tests.importers.files import codex, corpus, item_text, screen, write_lines

META = codex("session_meta", id="t1")
HEAD = "Chunk ID: a6\nWall time: 0.1 seconds\n{}\nOriginal token count: 3\nOutput:\n{}"


def call(**more: Any) -> list[dict[str, Any]]:
    ran = codex("response_item", type="function_call", name="exec_command", arguments='{"cmd":"x"}', call_id="c1")
    return [
        META,
        item_text("user", "q"),
        ran,
        codex("response_item", type="function_call_output", call_id="c1", **more),
    ]


FAILED: list[Any] = [
    HEAD.format("Process exited with code 1", ""),
    HEAD.format("Process exited with code -1", "Killed"),
    "Exit code: 127\nWall time: 0.1 seconds\nOutput:\nferry: not found",
    "Exit code: 2",
    '{"output":"no such file","metadata":{"exit_code":1,"duration_seconds":0.1}}',
    '{"exit_code": 1, "output": ""}',
    '{"success": false, "message": "no quay"}',
    '{"isError":true,"content":[]}',
    {"content": "no such file", "success": False},
    {"output": "no", "metadata": {"exit_code": 3}},
    [{"type": "input_text", "text": "Script failed\nWall time 0.1 seconds\nOutput:\nboom"}],
    "failed in sandbox MacosSeatbelt with execution error: denied",
    "exec_command failed in sandbox: denied",
    "tool call error: tool call failed for `tides/today`",
    "error: Failed to find expected lines in /w/a.txt:\nold",
    "patch rejected: empty patch",
    "apply_patch verification failed: Failed to find expected lines in a.txt",
    "write_stdin failed: stdin is closed for this session",
    "failed to parse function arguments: EOF while parsing",
    "unsupported call: fly",
]
FINE: list[Any] = [
    HEAD.format("Process exited with code 0", "error: Failed to find expected lines"),
    HEAD.format("Process exited with code 0", "Process exited with code 1"),
    HEAD.format("Process running with session ID 7", ""),
    "Exit code: 0\nWall time: 0.1 seconds\nOutput:\nExit code: 1",
    '{"output":"tool call error: was in the log","metadata":{"exit_code":0}}',
    '{"success": true}',
    {"content": "a", "success": True},
    "Plan updated",
    "the log says: Exit code: 1",
    "README.md:3:patch rejected",
    "",
]


@pytest.mark.parametrize("output", FAILED)
def test_an_output_that_says_so_is_an_error(tmp_path: Path, output: Any) -> None:
    (found,), _ = importers.read(write_lines(tmp_path / "r.jsonl", *call(output=output)))

    assert found.messages[2]["is_error"] is True


@pytest.mark.parametrize("output", FINE)
def test_what_a_command_printed_does_not_make_it_an_error(tmp_path: Path, output: Any) -> None:
    (found,), _ = importers.read(write_lines(tmp_path / "r.jsonl", *call(output=output)))

    assert "is_error" not in found.messages[2]


def test_a_result_whose_own_record_says_it_failed_is_an_error(tmp_path: Path) -> None:
    (found,), _ = importers.read(write_lines(tmp_path / "r.jsonl", *call(output="no quay", success=False)))

    assert found.messages[2]["is_error"] is True


@pytest.mark.parametrize(
    "event",
    [
        codex("event_msg", type="exec_command_end", call_id="c1", exit_code=1),
        codex("event_msg", type="patch_apply_end", call_id="c1", success=False),
        codex("event_msg", type="mcp_tool_call_end", call_id="c1", result={"Err": "no quay"}),
        codex("event_msg", type="mcp_tool_call_end", call_id="c1", result={"Ok": {"content": [], "isError": True}}),
        screen("CommandExecution", id="c1", exit_code=1, status="completed"),
        screen("McpToolCall", id="c1", status="failed", error={"message": "no quay"}),
        screen("FileChange", id="c1", status="declined"),
    ],
)
def test_the_screen_says_whether_a_call_failed_where_its_output_does_not(tmp_path: Path, event: dict[str, Any]) -> None:
    *start, result = call(output="no quay")
    says_itself = call(output=HEAD.format("Process exited with code 0", "fine"))[-1]

    (before,), _ = importers.read(write_lines(tmp_path / "a.jsonl", *start, event, result))
    (behind,), _ = importers.read(write_lines(tmp_path / "b.jsonl", *start, result, event))
    (itself,), _ = importers.read(write_lines(tmp_path / "c.jsonl", *start, event, says_itself))

    assert before.messages[2]["is_error"] is behind.messages[2]["is_error"] is True
    assert "is_error" not in itself.messages[2]
    assert "source" not in before.messages[1]


def test_the_failed_commands_of_a_real_session_are_counted(tmp_path: Path) -> None:
    path = corpus("codex/codemie-rollout-2026-05-11a.jsonl")
    raw = path.read_text()
    failed = sum(raw.count(f"\\nProcess exited with code {code}\\n") for code in (1, 2)) + raw.count(
        '"output":"write_stdin failed'
    )
    manager = SessionManager(tmp_path)

    list(importers.import_paths(manager, [path]))

    (info,) = manager.list()
    assert info.errors == failed == 5
