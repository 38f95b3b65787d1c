"""Agents' own records: Gemini CLI, Qwen Code, Responses items and the OpenAI Agents SDK's database."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from sessions_lib import importers, stats
from sessions_lib.errors import ImportRefused
from sessions_lib.messages import usage
from sessions_lib.store.folder.index.catalog import Catalog
from sessions_lib.store.manager import SessionManager
from tests.importers.files import DATA, corpus, said, write_lines

GEMINI = DATA / "gemini-cli/session-2026-09-14T10-00-ab12.jsonl"
QWEN = DATA / "qwen-code/5e6f7a8b-1111-4222-8333-944455556666.jsonl"
AGENTS = DATA / "agents-sdk/sessions.db"


def test_gemini_cli_takes_the_last_record_of_an_id_and_keeps_what_was_taken_back_as_a_branch() -> None:
    (shown, back), report = importers.read(GEMINI)

    assert said(shown.messages) == [
        ("user", "How high is the tide at Ember?"),
        ("assistant", [None, "tide()"]),
        ("tool", "2.1 m"),
        ("assistant", "It is 2.1 m."),
        ("user", "And at Cape Ember?"),
        ("system", "The model is overloaded."),
        ("system", "A light at the cape."),
    ]
    assert shown.messages[1]["reasoning_content"] == "Tide\nLook it up."
    assert shown.messages[1]["usage"] == {
        "prompt_tokens": 905,
        "completion_tokens": 50,
        "total_tokens": 955,
        "prompt_tokens_details": {"cached_tokens": 300},
        "completion_tokens_details": {"reasoning_tokens": 30},
    }
    assert (shown.messages[1]["model"], shown.title) == ("gemini-3-pro", "Tides")
    assert report.unknown == {"beacon": 1}
    assert shown.messages[-1]["source"]["kind"] == "unknown kind"
    assert said(back.messages[back.shared :]) == [("user", "And at Gull Point?"), ("assistant", "1.9 m.")]
    assert (back.parent_key, back.shared) == (shown.key, 4)


def test_gemini_cli_messages_that_a_compression_sets_take_nothing_away(tmp_path: Path) -> None:
    first = {"id": "u1", "type": "user", "content": "A long story."}
    told = {"id": "g9", "type": "gemini", "content": "In short: a story."}
    path = write_lines(
        tmp_path / "s.jsonl",
        {"sessionId": "s1", "projectHash": "p", "startTime": "2026-09-14T10:00:00Z"},
        first,
        {"id": "g1", "type": "gemini", "content": "Heard."},
        {"$set": {"messages": [{**first, "id": "u8"}, told]}},
        {"id": "u2", "type": "user", "content": "Go on."},
    )

    (found,), _ = importers.read(path)

    assert [m["content"] for m in found.messages] == ["A long story.", "Heard.", "In short: a story.", "Go on."]


@pytest.mark.parametrize(
    "name", ["codemie-file-ops", "entire-gemini-small", "entire-gemini-mid", "agentsview-standard-session"]
)
def test_gemini_cli_texts_calls_and_tokens_of_the_corpus_are_those_of_the_file(name: str) -> None:
    path = corpus(f"gemini/{name}.json")
    listed = json.loads(path.read_text())["messages"]

    (found,), _ = importers.read(path)

    texts = [m["content"] for m in listed if isinstance(m["content"], str) and m["content"].strip()]
    assert [m["content"] for m in found.messages if m["content"] and m["role"] != "tool"] == texts
    calls = [call["id"] for m in listed for call in m.get("toolCalls") or ()]
    assert [call["id"] for m in found.messages for call in m.get("tool_calls", ())] == calls
    assert [m["tool_call_id"] for m in found.messages if m["role"] == "tool"] == calls
    told = [m["tokens"] for m in listed if m.get("tokens")]
    names = ("input", "output", "thoughts", "tool")
    assert usage.total(found.messages).total == sum(one.get(name) or 0 for one in told for name in names)
    assert usage.total(found.messages).cached == sum(one["cached"] for one in told)


def test_a_sub_agent_of_gemini_cli_names_its_caller(tmp_path: Path) -> None:
    header = {"sessionId": "child", "projectHash": "p", "startTime": "2026-09-14T10:00:00Z", "kind": "subagent"}
    path = write_lines(tmp_path / "parent-1/child.jsonl", header, {"id": "u1", "type": "user", "content": "Dig."})

    (found,), _ = importers.read(path)

    assert (found.meta, found.tags) == ({"subagent_of": {"key": "gemini-cli:parent-1"}}, ("sub-agent",))


def test_qwen_code_is_no_claude_code_and_gives_calls_results_and_tokens() -> None:
    (found,), report = importers.read(QWEN)

    assert report.format == "qwen-code"
    assert said(found.messages) == [
        ("user", "List the boats."),
        ("assistant", [None, "list_directory()"]),
        ("tool", "dory\nskiff"),
        ("assistant", "A dory and a skiff."),
    ]
    assert found.messages[1]["reasoning_content"] == "I look."
    assert found.messages[1]["model"] == "qwen3-coder-plus"
    assert usage.total(found.messages).total == 520 + 569
    assert [m["id"][:4] for m in found.messages] == ["qw_a"] * 4
    assert report.skipped == {"ui_telemetry": 1}


def test_responses_items_become_messages_and_are_kept_whole() -> None:
    (found,), _ = importers.read(DATA / "responses/items.json")

    assert said(found.messages) == [
        ("user", "How deep is the cave?"),
        ("assistant", [None, "sonar()"]),
        ("tool", "31 m"),
        ("assistant", "31 metres."),
    ]
    assert found.messages[1]["reasoning_content"] == "Ask the sonar."
    assert found.messages[1]["items"][0]["encrypted_content"] == "opaque"
    assert found.messages[2]["name"] == "sonar"


def test_a_response_has_its_model_tokens_time_and_instructions() -> None:
    (found,), _ = importers.read(DATA / "responses/response.json")

    assert said(found.messages) == [("user", "Name a cape."), ("assistant", "Cape Ember.")]
    assert found.messages[1]["model"] == "gpt-5.6-luna"
    assert usage.total(found.messages).total == 17
    assert found.messages[0]["timestamp"].startswith("2026-09-14T")
    assert found.meta == {"system": "Be short."}


def test_the_agents_sdk_gives_each_branch_with_its_tokens() -> None:
    (main, branch), _ = importers.read(AGENTS)

    assert said(main.messages) == [
        ("user", "Which boats are in?"),
        ("assistant", [None, "boats()"]),
        ("tool", "dory, skiff"),
        ("assistant", "A dory and a skiff."),
        ("user", "And the yawl?"),
        ("assistant", "At sea."),
    ]
    assert [m["usage"]["total_tokens"] for m in main.messages if "usage" in m] == [330, 355]
    assert (main.title, main.messages[0]["timestamp"]) == ("harbour", "2026-09-14T10:00:01.000Z")
    assert said(branch.messages[branch.shared :]) == [("user", "And the ferry?"), ("assistant", "At noon.")]
    assert (branch.parent_key, branch.shared) == (main.key, 4)


def test_an_agents_sdk_database_that_is_open_is_read_with_its_log_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "live.db"
    shutil.copy(AGENTS, path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    manager = SessionManager(tmp_path / "sessions")
    list(importers.import_paths(manager, [path]))
    item = json.dumps({"role": "user", "content": "And the barge?"})
    connection.execute("INSERT INTO agent_messages (session_id, message_data) VALUES ('harbour', ?)", (item,))
    connection.execute(
        "INSERT INTO message_structure (session_id, message_id, branch_id, message_type, sequence_number) "
        "VALUES ('harbour', last_insert_rowid(), 'main', 'x', 99)"
    )
    connection.commit()
    before = path.read_bytes()

    (step,) = importers.import_paths(manager, [path])

    assert step.result
    assert step.result.added_messages == 1
    assert [hit.snippet for hit in manager.search("barge")]
    assert path.read_bytes() == before
    connection.close()


def test_the_corpus_database_is_imported_whole() -> None:
    found, _ = importers.read(corpus("openai-agents-sqlite/sqlite_session.db"))

    assert [said(one.messages)[0] for one in found] == [("user", "What is the weather in Paris?"), ("user", "hi")]
    assert said(found[0].messages)[2:4] == [("tool", "18C, rain"), ("assistant", "18C with rain.")]


def test_another_database_is_refused_and_a_broken_one_too(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE boats (name TEXT)")
    broken = tmp_path / "broken.db"
    broken.write_bytes(AGENTS.read_bytes()[:1500])

    with pytest.raises(ImportRefused, match="looks like an SQLite database, which cannot be imported yet"):
        importers.read(other)
    with pytest.raises(ImportRefused, match=r"cannot be read|could not be understood"):
        importers.read(broken)


def test_tokens_of_a_branch_are_counted_once(tmp_path: Path) -> None:
    manager = SessionManager(tmp_path / "sessions")

    list(importers.import_paths(manager, [AGENTS, GEMINI]))
    list(importers.import_paths(manager, [AGENTS, GEMINI]))

    assert stats.figures(Catalog(manager.folder)).tokens.total == 330 + 355 + 357 + 955 + 1010 + 1108
