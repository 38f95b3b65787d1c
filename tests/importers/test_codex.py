"""Codex's files: each text once, tokens as the last cumulative count says, forks that share what they copied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sessions_lib import importers, messages
from sessions_lib.messages import usage
from sessions_lib.store.manager import SessionManager
from tests.importers.files import codex, item_text, said, tokens, write_lines

META = codex("session_meta", id="t1", cwd="/w", cli_version="0.140.0")


def shell(call_id: str, command: str) -> dict[str, Any]:
    arguments = f'{{"command":["{command}"]}}'
    return codex("response_item", type="function_call", name="shell", arguments=arguments, call_id=call_id)


def output(call_id: str, what: Any) -> dict[str, Any]:
    return codex("response_item", type="function_call_output", call_id=call_id, output=what)


def shown(role: str, text: str) -> dict[str, Any]:
    return codex("event_msg", type=f"{'user' if role == 'user' else 'agent'}_message", message=text)


def test_texts_stored_twice_are_taken_once_and_injected_items_are_no_prompts(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "r.jsonl",
        META,
        item_text("developer", "rules"),
        item_text("user", "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>"),
        item_text("user", "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nBe kind.\n</INSTRUCTIONS>"),
        item_text("user", "List the ferries."),
        shown("user", "List the ferries."),
        codex("response_item", type="reasoning", summary=[], encrypted_content="xx"),
        shell("call_1", "ls"),
        output("call_1", "north\nsouth"),
        shown("assistant", "Two: north and south."),
        item_text("assistant", "Two: north and south."),
        codex("event_msg", type="token_count", info=None),
    )

    (found,), report = importers.read(path, "codex")

    assert said(found.messages) == [
        ("user", "List the ferries."),
        ("assistant", [None, "shell()"]),
        ("tool", "north\nsouth"),
        ("assistant", "Two: north and south."),
    ]
    assert found.messages[1]["tool_calls"][0]["id"] == found.messages[2]["tool_call_id"] == "call_1"
    assert messages.turn_count(found.messages) == 1
    assert report.skipped == {
        "session_meta": 1,
        "injected: developer": 1,
        "injected: user": 2,
        "encrypted reasoning": 1,
        "token_count without numbers": 1,
    }


def test_texts_stored_only_as_shown_are_taken_too(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "r.jsonl",
        META,
        shown("user", "yes"),
        shown("assistant", "Done."),
        shown("user", "yes"),
        item_text("assistant", "Done."),
    )

    (found,), _ = importers.read(path)

    assert said(found.messages) == [("user", "yes"), ("assistant", "Done."), ("user", "yes"), ("assistant", "Done.")]
    assert len({message["id"] for message in found.messages}) == 4


def test_a_prompt_that_quotes_an_injected_tag_is_a_prompt(tmp_path: Path) -> None:
    typed = "<environment_context>\nis a tag. Who writes </environment_context>?"
    whole = "<environment_context>typed by hand</environment_context>"
    path = write_lines(
        tmp_path / "r.jsonl", META, item_text("user", typed), shown("user", whole), item_text("user", whole)
    )

    (found,), _ = importers.read(path)

    assert said(found.messages) == [("user", typed), ("user", whole)]


def test_cumulative_counts_add_up_to_the_last_one(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "r.jsonl",
        META,
        tokens(100, 100),
        tokens(100, 100),
        codex("event_msg", type="token_count", info=None),
        tokens(180, 80, cached=60),
    )

    (found,), report = importers.read(path)

    totals = usage.total(found.messages)
    assert (totals.total, totals.input, totals.cached, totals.output) == (180, 170, 60, 10)
    assert messages.for_request(found.messages) == []
    assert report.skipped["token_count repeated"] == 1


def test_each_answer_gets_the_tokens_that_were_added(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "r.jsonl",
        META,
        item_text("user", "q"),
        item_text("assistant", "Let me look."),
        shell("c1", "ls"),
        tokens(100, 100),
        output("c1", "a"),
        tokens(100, 100),
        item_text("assistant", "One file."),
        tokens(250, 150),
    )

    (found,), _ = importers.read(path)

    assert [(m["role"], m.get("usage", {}).get("total_tokens")) for m in found.messages] == [
        ("user", None),
        ("assistant", 100),
        ("tool", None),
        ("assistant", 150),
    ]
    assert found.messages[1]["content"] == "Let me look."


def test_a_count_written_before_its_answer_is_that_answers(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "r.jsonl",
        META,
        item_text("user", "q"),
        shown("assistant", "Let me look."),
        tokens(100, 100),
        item_text("assistant", "Let me look."),
        shell("c1", "ls"),
        output("c1", "a"),
        tokens(250, 150),
        shell("c2", "pwd"),
        output("c2", "/w"),
        tokens(450, 200),
        item_text("assistant", "One file."),
    )

    (found,), _ = importers.read(path)

    assert said(found.messages)[1] == ("assistant", ["Let me look.", "shell()"])
    assert [m["usage"]["total_tokens"] for m in found.messages if m["role"] == "assistant"] == [100, 150, 200]


def test_a_compaction_keeps_the_history_and_its_summary_is_no_prompt(tmp_path: Path) -> None:
    replacement = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "q1"}]}]
    path = write_lines(
        tmp_path / "r.jsonl",
        META,
        item_text("user", "q1"),
        item_text("assistant", "r1"),
        codex("compacted", message="They asked q1.", replacement_history=replacement),
        codex("event_msg", type="context_compacted"),
        item_text("user", "q2"),
        item_text("assistant", "r2"),
    )

    (found,), report = importers.read(path)

    assert said(found.messages) == [
        ("user", "q1"),
        ("assistant", "r1"),
        ("assistant", "They asked q1."),
        ("user", "q2"),
        ("assistant", "r2"),
    ]
    assert found.messages[2]["source"] == {"kind": "compaction"}
    assert messages.turn_count(found.messages) == 2
    assert (report.skipped["compaction"], report.skipped["event: context_compacted"]) == (1, 1)


def test_a_fork_by_copy_shares_identities_although_its_times_are_new(tmp_path: Path) -> None:
    history = [item_text("user", "q1"), item_text("assistant", "r1"), tokens(100, 100)]
    parent = write_lines(tmp_path / "p.jsonl", META, *history, item_text("user", "q2"))
    stamped = [{**record, "timestamp": "2026-04-01T00:00:00.000Z"} for record in history]
    fork = write_lines(
        tmp_path / "f.jsonl",
        codex("session_meta", id="t2", forked_from_id="t1"),
        META,
        *stamped,
        item_text("user", "q3"),
        item_text("assistant", "r3"),
        tokens(150, 50),
    )

    (first,), _ = importers.read(parent)
    (second,), _ = importers.read(fork)

    assert (second.key, second.parent_key) == ("codex:t2", "codex:t1")
    assert [m["id"] for m in first.messages[:2]] == [m["id"] for m in second.messages[:2]]
    assert first.messages[2]["id"] not in {m["id"] for m in second.messages}
    assert [m["usage"]["total_tokens"] for m in second.messages if "usage" in m] == [100, 50]


def numbered(*records: dict[str, Any], start: int = 0) -> list[dict[str, Any]]:
    return [{**record, "ordinal": start + index} for index, record in enumerate(records)]


@pytest.mark.parametrize(
    "named",
    [
        {"history_base": {"thread_id": "t1", "end_ordinal_exclusive": 4, "end_byte_offset": 900}},
        {"forked_from_id": "t1", "forked_from_ordinal_exclusive": 4},
    ],
)
def test_a_fork_by_reference_starts_with_what_it_refers_to(tmp_path: Path, named: dict[str, Any]) -> None:
    history = [META, item_text("user", "q1"), item_text("assistant", "r1"), tokens(100, 100)]
    parent = write_lines(
        tmp_path / "any.jsonl", *numbered(*history, item_text("user", "q2"), item_text("assistant", "r2"))
    )
    own = [
        codex("session_meta", id="t2", **named),
        item_text("user", "q3"),
        item_text("assistant", "r3"),
        tokens(150, 50),
    ]
    fork = write_lines(tmp_path / "other.jsonl", *numbered(*own, start=4))
    manager = SessionManager(tmp_path / "sessions")

    list(importers.import_paths(manager, [fork, parent]))

    (first,), _ = importers.read(parent)
    (second,), _ = importers.read(fork)
    assert said(second.messages) == [("user", "q1"), ("assistant", "r1"), ("user", "q3"), ("assistant", "r3")]
    assert [m["id"] for m in second.messages[:2]] == [m["id"] for m in first.messages[:2]]
    assert [m["usage"]["total_tokens"] for m in second.messages if "usage" in m] == [100, 50]
    by_parent = {info.parent is None: info for info in manager.list()}
    assert (by_parent[False].parent, by_parent[False].inherited) == (by_parent[True].id, 2)


def test_a_fork_of_a_fork_by_reference_is_found_in_the_folder_of_codex(tmp_path: Path) -> None:
    home = tmp_path / "sessions" / "2026"
    base = {"end_ordinal_exclusive": 3}
    first = [META, item_text("user", "q1"), item_text("assistant", "r1")]
    second = [codex("session_meta", id="t2", history_base={**base, "thread_id": "t1"}), item_text("user", "q2")]
    third = [codex("session_meta", id="t3", history_base={"thread_id": "t2", "end_ordinal_exclusive": 5})]
    write_lines(home / "01" / "rollout-t1.jsonl", *numbered(*first))
    write_lines(home / "02" / "rollout-t2.jsonl", *numbered(*second, start=3))
    path = write_lines(home / "03" / "rollout-t3.jsonl", *numbered(*third, item_text("user", "q3"), start=5))

    (found,), _ = importers.read(path)

    assert said(found.messages) == [("user", "q1"), ("assistant", "r1"), ("user", "q2"), ("user", "q3")]
    assert found.parent_key == "codex:t2"


def test_a_fork_by_reference_whose_parent_is_gone_keeps_its_own_part_and_says_so(tmp_path: Path) -> None:
    base = {"thread_id": "t1", "end_ordinal_exclusive": 3}
    path = write_lines(tmp_path / "f.jsonl", codex("session_meta", id="t2", history_base=base), item_text("user", "q"))

    (found,), report = importers.read(path)

    assert said(found.messages) == [("user", "q")]
    assert report.warnings == ["it goes on from thread t1, whose file is not there: only its own part was imported"]


def test_a_fork_by_reference_names_its_parent_and_counts_only_its_own_tokens(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "f.jsonl",
        codex("session_meta", id="t2", forked_from_id="t1"),
        tokens(500, 60),
        item_text("user", "q"),
        item_text("assistant", "r"),
        tokens(580, 80),
    )

    (found,), _ = importers.read(path)

    assert found.parent_key == "codex:t1"
    assert usage.total(found.messages).total == 140


def test_turns_that_were_rolled_back_are_a_branch(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "r.jsonl",
        META,
        item_text("user", "q1"),
        item_text("assistant", "r1"),
        item_text("user", "given up"),
        item_text("assistant", "r2"),
        codex("event_msg", type="thread_rolled_back", num_turns=1),
        item_text("user", "q3"),
        item_text("assistant", "r3"),
    )

    (main, other), _ = importers.read(path)

    assert said(main.messages) == [("user", "q1"), ("assistant", "r1"), ("user", "q3"), ("assistant", "r3")]
    assert said(other.messages) == [("user", "q1"), ("assistant", "r1"), ("user", "given up"), ("assistant", "r2")]
    assert (other.parent_key, other.shared) == ("codex:t1", 2)


def test_a_sub_agent_names_the_thread_that_called_it(tmp_path: Path) -> None:
    spawn = {"parent_thread_id": "t1", "agent_nickname": "Scout", "agent_role": "worker"}
    path = write_lines(
        tmp_path / "s.jsonl",
        codex("session_meta", id="t3", source={"subagent": {"thread_spawn": spawn}}),
        item_text("user", "Count the boats."),
        item_text("assistant", "Two."),
    )

    (found,), _ = importers.read(path)

    assert (found.title, found.meta) == ("Sub-agent: Scout", {"subagent_of": {"key": "codex:t1"}})


def test_calls_of_every_kind_become_calls_with_json_arguments(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "r.jsonl",
        META,
        item_text("user", "q"),
        codex("response_item", type="custom_tool_call", name="apply_patch", input="*** Begin\n", call_id="c1"),
        codex("response_item", type="local_shell_call", action={"type": "exec", "command": ["ls"]}, call_id="c2"),
        codex(
            "response_item",
            type="custom_tool_call_output",
            call_id="c1",
            output='{"output":"x","metadata":{"exit_code":1}}',
        ),
        output("c2", {"content": "a", "success": True}),
        codex("response_item", type="web_search_call", status="completed", action={"type": "search", "query": "tide"}),
        output("c9", [{"type": "output_text", "text": "a list"}]),
    )

    (found,), report = importers.read(path)

    calls = [call["function"] for call in found.messages[1]["tool_calls"]]
    assert calls == [
        {"name": "apply_patch", "arguments": '{"input":"*** Begin\\n"}'},
        {"name": "local_shell", "arguments": '{"type":"exec","command":["ls"]}'},
    ]
    assert [(m["content"], m.get("is_error")) for m in found.messages if m["role"] == "tool"] == [
        ('{"output":"x","metadata":{"exit_code":1}}', True),
        ("a", None),
        ("a list", None),
    ]
    assert report.skipped["item kept as it is: web_search_call"] == 1


def test_the_first_generation_has_bare_items_behind_a_header(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "r.jsonl",
        {"id": "t0", "timestamp": "2025-06-01T10:00:00.000Z", "instructions": None},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "q"}]},
        {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c1"},
        {"type": "function_call_output", "call_id": "c1", "output": "ok"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "r"}]},
    )

    (found,), _ = importers.read(path)

    assert found.key == "codex:t0"
    assert [m["role"] for m in found.messages] == ["user", "assistant", "tool", "assistant"]
    assert {m["timestamp"] for m in found.messages} == {"2025-06-01T10:00:00.000Z"}


def test_a_prompt_with_an_image_keeps_it_whichever_view_came_first(tmp_path: Path) -> None:
    parts = [
        {"type": "input_text", "text": "<image name=[Image #1]>"},
        {"type": "input_image", "image_url": "data:image/png;base64,QUJD"},
        {"type": "input_text", "text": "</image>"},
        {"type": "input_text", "text": "What is this?"},
    ]
    item = codex("response_item", type="message", role="user", content=parts)
    first = write_lines(tmp_path / "a.jsonl", META, item, shown("user", "What is this?"))
    second = write_lines(tmp_path / "b.jsonl", META, shown("user", "What is this?"), item)

    (one,), _ = importers.read(first)
    (other,), _ = importers.read(second)

    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
    assert said(one.messages) == [("user", [{"type": "text", "text": "What is this?"}, image])]
    assert one.messages == other.messages


def test_an_aborted_turn_marks_its_answer(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "r.jsonl",
        META,
        item_text("user", "q"),
        item_text("assistant", "Well"),
        codex("event_msg", type="turn_aborted", reason="interrupted"),
    )

    (found,), _ = importers.read(path)

    assert found.messages[1]["interrupted"] is True
