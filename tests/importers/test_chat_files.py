"""Chat messages as files: ours, other programs', training examples, astorlm's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import importers
from sessions_lib.export import export
from sessions_lib.store.manager import SessionManager
from tests.importers.files import said, write_lines

EVERYTHING: list[dict[str, Any]] = [
    {"role": "system", "content": "s"},
    {"role": "user", "content": "q", "name": "ana", "timestamp": "2026-03-01T10:00:00Z"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "tide", "arguments": '{"port":"Ember"}'}}],
        "reasoning_content": "hm",
        "x_vendor": {"k": [1, 2.5, None, True]},
    },
    {"role": "tool", "content": "", "tool_call_id": "c1"},
    {
        "role": "assistant",
        "tool_calls": [{"id": "c2", "type": "function", "function": {"name": "tide", "arguments": '{"port":"Ember"}'}}],
    },
    {"role": "tool", "content": "ok", "tool_call_id": "c2"},
    {
        "role": "assistant",
        "content": "",
        "refusal": "I cannot.",
        "annotations": [],
        "usage": {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10},
    },
]
META = {"title": "T", "tags": ["maré", "a b"], "created_at": "2026-03-01T10:00:00Z", "x": {"y": 1}}


def test_an_export_comes_back_equal_message_by_message(tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    write_lines(folder / "a.jsonl", *EVERYTHING)
    (folder / "a.meta.json").write_text(json.dumps(META), encoding="utf-8")
    manager = SessionManager(folder)
    document = manager.open("a").export(tmp_path / "a.json", "json")

    (step,) = importers.import_paths(manager, [document])

    assert step.result is not None
    (outcome,) = step.result.outcomes
    assert (outcome.change, outcome.added) == ("new", 7)
    copy = manager.open(str(outcome.session))
    assert copy.id != "a"
    assert copy.messages == EVERYTHING
    assert {key: copy.meta[key] for key in META} == META
    again = json.loads(copy.export(tmp_path / "b.json", "json").read_text(encoding="utf-8"))
    assert again["messages"] == EVERYTHING


def test_an_export_keeps_its_id_where_it_is_free_and_its_lineage(tmp_path: Path) -> None:
    home = SessionManager(tmp_path / "home")
    quest = home.create("quest-1")
    quest.extend([{"role": "user", "content": "q"}, {"role": "assistant", "content": "r"}])
    west = quest.fork("quest-2")
    west.append({"role": "user", "content": "west?"})
    paths = [quest.export(tmp_path / "1.json", "json"), west.export(tmp_path / "2.json", "json")]
    away = SessionManager(tmp_path / "away")

    steps = list(importers.import_paths(away, reversed(paths)))

    assert all(step.error is None for step in steps)
    assert {info.id: (info.parent, info.inherited) for info in away.list()} == {
        "quest-1": (None, 0),
        "quest-2": ("quest-1", 2),
    }
    assert away.open("quest-2").messages == west.messages


def test_our_own_lines_are_read_with_the_metadata_beside_them(tmp_path: Path) -> None:
    stored = {"role": "user", "content": "q", "id": "msg_1", "timestamp": "2026-03-01T10:00:00.000Z"}
    path = write_lines(tmp_path / "quest-1.jsonl", stored)
    (tmp_path / "quest-1.meta.json").write_text('{"version":1,"id":"quest-1","title":"Quest","tags":["cave"]}')

    (found,), report = importers.read(path)

    assert report.format == "forkbook"
    assert (found.title, found.tags, found.messages) == ("Quest", ("cave",), [stored])


@pytest.mark.parametrize(
    "wrap", [lambda m: m, lambda m: {"messages": m}, lambda m: [{"messages": m}], lambda m: [{"traj": m}]]
)
def test_messages_in_any_common_wrapping_are_one_session(tmp_path: Path, wrap: Any) -> None:
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(wrap(EVERYTHING)))

    (found,), report = importers.read(path)

    assert found.messages == EVERYTHING
    assert report.format == "openai-chat"


def test_each_training_example_is_a_session_and_keeps_its_other_keys(tmp_path: Path) -> None:
    example = {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "r", "weight": 0}]}
    path = write_lines(tmp_path / "train.jsonl", {**example, "tools": []}, example, {"messages": "none"})
    manager = SessionManager(tmp_path / "sessions")

    (step,) = importers.import_paths(manager, [path])
    (again,) = importers.import_paths(manager, [path], "fine-tuning")

    assert step.result is not None
    assert again.result is not None
    assert step.result.report.format == "openai-finetune"
    assert step.result.report.skipped == {"entry without messages": 1}
    assert [outcome.change for outcome in step.result.outcomes] == ["new", "new"]
    assert [outcome.change for outcome in again.result.outcomes] == ["unchanged", "unchanged"]
    infos = sorted(manager.list(), key=lambda info: len(info.meta))
    assert [info.meta.get("example") for info in infos] == [None, {"tools": []}]
    assert manager.open(infos[0].id).messages == example["messages"]


def test_what_our_training_export_writes_can_be_imported(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "r", "finish_reason": "stop"}]
    path = tmp_path / "train.jsonl"
    path.write_text(export.export(messages, {}, "finetune"), encoding="utf-8")

    (found,), _ = importers.read(path)

    assert said(found.messages) == [("user", "q"), ("assistant", "r")]


def test_astorlm_blocks_become_calls_and_results_and_its_parent_is_named(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "quest-2.jsonl",
        {"id": "m1", "role": "user", "content": [{"type": "text", "text": "Ask the elder."}]},
        {
            "id": "m2",
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm"},
                {"type": "text", "text": "I will."},
                {"type": "tool_use", "id": "c1", "name": "talk_to", "input": {"npc": "elder"}},
            ],
        },
        {"id": "m3", "role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "A torch."}]},
    )
    meta = {"id": "quest-2", "parentId": "quest-1", "metadata": {"title": "West"}, "createdAt": 1772359200000}
    (tmp_path / "quest-2.meta.json").write_text(json.dumps(meta))

    (found,), report = importers.read(path)

    assert report.format == "astorlm"
    assert (found.key, found.parent_key, found.title) == ("astorlm:quest-2", "astorlm:quest-1", "West")
    assert said(found.messages) == [
        ("user", "Ask the elder."),
        ("assistant", ["I will.", "talk_to()"]),
        ("tool", "A torch."),
    ]
    assert found.messages[2]["name"] == "talk_to"
    assert {message["timestamp"] for message in found.messages} == {"2026-03-01T10:00:00.000Z"}


def test_an_astorlm_fork_is_linked_to_its_parent_whichever_comes_first(tmp_path: Path) -> None:
    first = {"id": "m1", "role": "user", "content": [{"type": "text", "text": "q"}]}
    more = {"id": "m2", "role": "user", "content": [{"type": "text", "text": "west?"}]}
    child = write_lines(tmp_path / "a-fork.jsonl", first, more)
    parent = write_lines(tmp_path / "b-quest.jsonl", first)
    (tmp_path / "a-fork.meta.json").write_text('{"id":"a-fork","parentId":"b-quest","createdAt":1772359200000}')
    (tmp_path / "b-quest.meta.json").write_text('{"id":"b-quest","createdAt":1772359200000}')
    manager = SessionManager(tmp_path / "sessions")

    list(importers.import_paths(manager, [child, parent]))

    assert {info.id: (info.parent, info.inherited, info.messages) for info in manager.list()} == {
        "a-fork": ("b-quest", 1, 2),
        "b-quest": (None, 0, 1),
    }
