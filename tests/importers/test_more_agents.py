"""Agents' own records: opencode in its three forms, GitHub Copilot's two, and ATIF trajectories."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from sessions_lib import importers, stats
from sessions_lib.errors import ImportRefused
from sessions_lib.export import atif
from sessions_lib.messages import content, usage
from sessions_lib.store.manager import SessionManager
from tests.importers.files import DATA, corpus, said

OPENCODE = DATA / "opencode"
STORED = OPENCODE / "storage/session/global/ses_4f1c0e7a2b3dffeA1b2C3d4E5.json"


def test_opencode_gives_prompts_steps_tokens_money_and_what_was_taken_back() -> None:
    (shown, back), report = importers.read(OPENCODE / "export.json")

    assert [role for role, _ in said(shown.messages)] == [
        *("user", "system", "assistant", "tool", "assistant"),
        *("user", "assistant", "tool", "assistant"),
    ]
    assert content.text(shown.messages[0]) == "How high is the tide at Ember?\ntables.txt:\n\nnoon 2.1"
    assert shown.messages[1]["content"] == "Called the Read tool with tables.txt"
    assert shown.messages[2]["reasoning_content"] == "Ask the agent."
    assert shown.messages[2]["usage"] == {
        "prompt_tokens": 550,
        "completion_tokens": 25,
        "total_tokens": 575,
        "prompt_tokens_details": {"cached_tokens": 400, "cache_write_tokens": 50},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    assert [m.get("cost_usd") for m in shown.messages if m["role"] == "assistant"] == [0.01, 0.002, None, None]
    assert (shown.messages[3]["duration_ms"], shown.messages[7]["is_error"]) == (900, True)
    assert shown.messages[8]["content"] == [
        {"type": "unknown kind", "kind": "beam", "text": "A beam from the lighthouse."}
    ]
    assert report.unknown == {"beam": 1}
    assert (shown.title, shown.messages[2]["model"]) == ("Tides", "claude-sonnet-5")
    assert said(back.messages[back.shared :]) == [("user", "Never mind."), ("assistant", "As you wish.")]
    assert (back.parent_key, back.shared) == (shown.key, 9)


def test_opencodes_three_forms_are_the_same_session_and_imported_once(tmp_path: Path) -> None:
    exported, _ = importers.read(OPENCODE / "export.json")
    stored, _ = importers.read(STORED)
    kept, _ = importers.read(OPENCODE / "opencode.db")
    manager = SessionManager(tmp_path / "sessions")

    steps = list(
        importers.import_paths(manager, [OPENCODE / "storage", OPENCODE / "opencode.db", OPENCODE / "export.json"])
    )

    assert [one.messages for one in exported] == [one.messages for one in stored]
    assert [one.messages for one in exported] == [one.messages for one in kept[:2]]
    assert [step.error for step in steps] == [None] * 4
    assert [step.result.added_sessions for step in steps if step.result] == [2, 1, 0, 0]
    child = next(info for info in manager.list() if "sub-agent" in info.tags)
    caller = next(info for info in manager.list() if info.title == "Tides" and not info.parent)
    assert manager.open(child.id).meta["subagent_of"] == {
        "key": "opencode:ses_4f1c0e7a2b3dffeA1b2C3d4E5",
        "tool_call_id": "toolu_01",
        "session": caller.id,
    }


def test_a_message_that_opencodes_storage_gains_is_seen_though_the_sessions_file_is_the_same(tmp_path: Path) -> None:
    shutil.copytree(OPENCODE / "storage", tmp_path / "storage")
    part = tmp_path / "storage/part/msg_b96306d83003UHECFoapZ6W4q3/prt_z.json"
    manager = SessionManager(tmp_path / "sessions")
    list(importers.import_paths(manager, [tmp_path / "storage"]))
    unchanged = list(importers.import_paths(manager, [tmp_path / "storage"]))
    message = tmp_path / f"storage/message/{STORED.stem}/msg_z.json"
    message.write_text(json.dumps({"id": "msg_z", "role": "user", "time": {"created": 1789380003500}}))
    part.parent.parent.joinpath("msg_z").mkdir()
    part.parent.parent.joinpath("msg_z/prt_z.json").write_text(
        json.dumps({"type": "text", "text": "One more lantern."})
    )

    list(importers.import_paths(manager, [tmp_path / "storage"]))

    assert all(step.result and step.result.is_unchanged for step in unchanged)
    assert manager.search("lantern")


def test_opencodes_storage_is_read_from_a_zip(tmp_path: Path) -> None:
    packed = tmp_path / "storage.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for path in sorted((OPENCODE / "storage").rglob("*.json")):
            archive.write(path, path.relative_to(OPENCODE).as_posix())
    manager = SessionManager(tmp_path / "sessions")

    list(importers.import_paths(manager, [packed]))

    assert len(manager.list()) == 3
    assert manager.search('"As you wish."')


def test_the_corpus_storage_of_opencode_is_joined_and_a_part_of_it_is_named() -> None:
    (found,), _ = importers.read(corpus("opencode/chronicle-storage/session/project-a/session-001.json"))

    assert said(found.messages)[:2] == [
        ("user", "Hello OpenCode"),
        ("assistant", ["I can help you with that task. Let me check the files.", "bash()"]),
    ]
    assert found.messages[0]["timestamp"] == "2024-01-01T00:00:00.000Z"
    with pytest.raises(ImportRefused, match="a part of opencode's storage"):
        importers.read(corpus("opencode/chronicle-storage/part/msg-001/part-001.json"))


def test_copilot_cli_gives_calls_results_sub_agents_and_the_tokens_of_the_run() -> None:
    (main, agent), report = importers.read(DATA / "copilot-cli/events.jsonl")

    assert said(main.messages) == [
        ("user", [{"type": "text", "text": "Which boats are in?"}, {"type": "file_link", "text": "File: list.txt"}]),
        ("assistant", [None, "bash()", "task()"]),
        ("tool", "permission denied"),
        ("tool", "Two boats."),
        ("assistant", "Two: a dory and a skiff."),
        ("system", "The quota is used up."),
        ("system", "A lantern was lit."),
        ("assistant", None),
    ]
    assert (main.messages[2]["is_error"], main.messages[2]["duration_ms"]) == (True, 1000)
    assert (main.messages[1]["reasoning_content"], main.messages[1]["model"]) == ("Look.", "claude-sonnet-5")
    total = usage.total([*main.messages, *agent.messages])
    assert (total.input, total.cached, total.output, total.total) == (3000, 1000, 57, 3057)
    assert said(agent.messages) == [("user", "Count the boats."), ("assistant", "Two boats.")]
    assert agent.meta == {"subagent_of": {"key": main.key, "tool_call_id": "toolu_2"}}
    assert report.unknown == {"lantern.lit": 1}


def test_a_copilot_chat_of_vs_code_gives_its_parts_in_order() -> None:
    (found,), report = importers.read(DATA / "copilot-chat/chat.json")

    assert said(found.messages)[1:5] == [
        ("assistant", ["I look at `boat.py`.", "read_file()"]),
        ("tool", "name = 'skiff'"),
        ("assistant", [None, "run_in_terminal()"]),
        ("tool", "boat.py"),
    ]
    assert found.messages[1]["reasoning_content"] == "Find the name."
    assert json.loads(found.messages[3]["tool_calls"][0]["function"]["arguments"]) == {"command": "ls"}
    assert content.text(found.messages[5]).startswith("Edited /w/boat.py\nname = 'dory'")
    assert (found.messages[5]["model"], found.messages[-1]["interrupted"]) == ("gpt-5.6-luna", True)
    assert report.unknown == {"signal": 1}


def test_the_log_of_a_copilot_chat_is_replayed() -> None:
    (found,), report = importers.read(DATA / "copilot-chat/log.jsonl")

    assert (found.title, said(found.messages)[-1]) == ("Boats renamed", ("assistant", "It is a dory."))
    assert report.skipped == {"change that leads nowhere": 1}


def test_a_trajectory_gives_its_steps_metrics_and_sub_agents(tmp_path: Path) -> None:
    (main, child), _ = importers.read(DATA / "atif/trajectory.json")
    manager = SessionManager(tmp_path)
    list(importers.import_paths(manager, [DATA / "atif/trajectory.json"]))

    assert said(main.messages) == [
        ("user", "Which boats are in?"),
        ("assistant", ["Let me see.", "boats()", "delegate()"]),
        ("tool", "dory"),
        ("tool", "sent"),
        ("assistant", "A dory."),
    ]
    assert (main.meta["system"], main.messages[1]["cost_usd"]) == ("You keep a harbour.", 0.0031)
    assert [usage.of(m).total for m in main.messages if usage.of(m)] == [135, 154]
    assert said(child.messages) == [("user", "Look out."), ("assistant", "Nothing.")]
    agent = next(manager.open(info.id).meta["subagent_of"] for info in manager.list() if "sub-agent" in info.tags)
    assert agent["tool_call_id"] == "c2"


@pytest.mark.parametrize("name", ["opencode/export.json", "copilot-cli/events.jsonl", "claude-code", "codex"])
def test_our_own_trajectories_come_back_as_what_was_said(tmp_path: Path, name: str) -> None:
    source = DATA / name
    path = next(source.glob("*.jsonl")) if source.is_dir() else source
    (first, *_), _ = importers.read(path)
    (tmp_path / "t.json").write_text(json.dumps(atif.trajectory(first.messages, {"id": "s1", "title": "T"})))

    (found,), _ = importers.read(tmp_path / "t.json")

    def heard(messages: list[dict[str, object]]) -> list[tuple[object, ...]]:
        return sorted((m["role"], content.text(m).strip()) for m in messages)  # ids that repeat are made unique

    assert heard(found.messages) == heard(first.messages)
    assert usage.total(found.messages) == usage.total(first.messages)


@pytest.mark.parametrize("name", ["copilot-cli/events.jsonl", "qwen-code", "gemini-cli", "copilot-chat/log.jsonl"])
def test_a_log_that_grows_line_by_line_is_the_same_session_in_the_end(tmp_path: Path, name: str) -> None:
    source = DATA / name
    lines = (source if source.is_file() else next(source.glob("*.jsonl"))).read_text().splitlines(keepends=True)
    path = tmp_path / "log" / "log.jsonl"
    path.parent.mkdir()
    growing, whole = SessionManager(tmp_path / "growing"), SessionManager(tmp_path / "whole")

    for end in range(1, len(lines) + 1):
        path.write_text("".join(lines[:end]))
        list(importers.import_paths(growing, [path]))
    list(importers.import_paths(whole, [path]))

    def heard(manager: SessionManager) -> set[tuple[str, str]]:
        opened = [manager.open(info.id) for info in manager.list()]
        return {(message["role"], content.text(message)) for one in opened for message in one.messages}

    assert heard(whole) <= heard(growing)  # what was replaced meanwhile may have stayed
    assert stats.figures(growing.catalog).tokens.total == stats.figures(whole.catalog).tokens.total


def test_a_field_of_the_wrong_kind_costs_no_more_than_itself(tmp_path: Path) -> None:
    asked = {"requestId": "r1", "message": {"text": "Land ho?"}, "response": [{"value": "Aye."}], "variableData": 3}
    (tmp_path / "chat.json").write_text(
        json.dumps({"requests": [{**asked, "result": {"metadata": {"toolCallRounds": 1}}}]})
    )

    (found,), _ = importers.read(tmp_path / "chat.json")

    assert said(found.messages) == [("user", "Land ho?"), ("assistant", "Aye.")]
