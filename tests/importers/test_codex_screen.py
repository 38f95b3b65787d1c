"""Codex 0.147 and later: each text once, in however many views it stands; what was typed, and what was injected."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import importers
from sessions_lib.messages import content, usage
from sessions_lib.store.manager import SessionManager
from tests.importers.files import codex, item_text, said, screen, screen_text, tokens, write_lines

META = codex("session_meta", id="t1", cwd="/w", cli_version="0.171.0", originator="Codex Desktop")
Q, R = "Is the ferry running?", "Yes, every hour."
PLUGINS = "<recommended_plugins>\nHere is a list.\n- tides\n</recommended_plugins>"
AGENTS = "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>"
ENVIRONMENT = "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>"


def shown(role: str, text: str) -> dict[str, Any]:
    return codex("event_msg", type=f"{'user' if role == 'user' else 'agent'}_message", message=text)


def of_parts(*texts: str) -> dict[str, Any]:
    parts = [{"type": "input_text", "text": text} for text in texts]
    return codex("response_item", type="message", role="user", content=parts)


def read(path: Path, *records: dict[str, Any]) -> list[dict[str, Any]]:
    (found,), _ = importers.read(write_lines(path / "r.jsonl", META, *records))
    return found.messages


def test_a_session_that_only_the_screen_tells_is_whole(tmp_path: Path) -> None:
    ran = {"id": "c1", "command": ["ferry", "status"], "exit_code": 0, "aggregated_output": "running"}

    messages = read(
        tmp_path,
        screen_text("user", Q),
        screen("Reasoning", summary_text=["Look it up."], raw_content=[]),
        screen("CommandExecution", **ran),
        screen_text("assistant", R),
        tokens(110, 110),
        screen_text("user", "And at night?"),
        screen_text("assistant", "Not after ten."),
        tokens(245, 135),
    )

    assert said(messages) == [("user", Q), ("assistant", R), ("user", "And at night?"), ("assistant", "Not after ten.")]
    assert [m["usage"]["total_tokens"] for m in messages if "usage" in m] == [110, 135]
    assert messages[1]["reasoning_content"] == "Look it up."
    assert messages[1]["source"] == {"items": [{"type": "CommandExecution", **ran}]}


VIEWS = {"item": item_text, "event": shown, "screen": screen_text}


@pytest.mark.parametrize("views", [order for count in (1, 2, 3) for order in permutations(VIEWS, count)])
def test_a_text_is_taken_once_in_however_many_views_it_stands(tmp_path: Path, views: tuple[str, ...]) -> None:
    turns = [("user", "yes"), ("assistant", "Done."), ("user", "yes"), ("assistant", "Done.")]

    messages = read(tmp_path, *(VIEWS[view](role, text) for role, text in turns for view in views))

    assert said(messages) == turns


def test_a_prompt_that_each_time_stands_in_another_view_is_taken_each_time(tmp_path: Path) -> None:
    messages = read(
        tmp_path,
        shown("user", "go on"),
        shown("assistant", "One."),
        item_text("user", "and?"),
        item_text("assistant", "Two."),
        item_text("user", "go on"),
        item_text("assistant", "Three."),
    )

    assert [m["content"] for m in messages if m["role"] == "user"] == ["go on", "and?", "go on"]


def test_the_start_block_of_the_desktop_is_no_prompt(tmp_path: Path) -> None:
    for start in (
        [of_parts(PLUGINS, AGENTS, ENVIRONMENT)],
        [of_parts(PLUGINS), of_parts(ENVIRONMENT)],
        [of_parts("<dock_hints>\nUse the dock.\n</dock_hints>")],
        [of_parts("<dock_hints>x</dock_hints>", ENVIRONMENT)],
        [of_parts(f"{AGENTS}\n\n{ENVIRONMENT}")],
    ):
        for typed in ([item_text("user", Q), screen_text("user", Q)], [item_text("user", Q)], [screen_text("user", Q)]):
            messages = read(tmp_path, *start, codex("turn_context", model="m"), *typed, item_text("assistant", R))

            assert said(messages) == [("user", Q), ("assistant", R)]


def test_what_was_typed_beside_an_injected_block_is_the_prompt(tmp_path: Path) -> None:
    messages = read(tmp_path, of_parts(ENVIRONMENT, Q), screen_text("user", Q), item_text("assistant", R))

    assert said(messages) == [("user", Q), ("assistant", R)]


def test_tags_are_a_prompt_if_the_screen_says_they_were_typed_or_keeps_no_record(tmp_path: Path) -> None:
    tag = "<nav>\n<a>Home</a>\n</nav>"

    alone = read(tmp_path, of_parts(tag), item_text("assistant", R))
    typed = read(tmp_path, of_parts(tag), screen_text("user", tag), item_text("assistant", R))
    known = read(tmp_path, of_parts(ENVIRONMENT), screen_text("user", ENVIRONMENT), item_text("assistant", R))
    injected = read(tmp_path, item_text("user", Q), shown("user", Q), of_parts(tag), item_text("assistant", R))

    assert said(alone) == said(typed) == [("user", tag), ("assistant", R)]
    assert said(known) == [("user", ENVIRONMENT), ("assistant", R)]
    assert said(injected) == [("user", Q), ("assistant", R)]


def test_what_a_person_ran_in_the_shell_is_kept_as_a_note(tmp_path: Path) -> None:
    command = "<user_shell_command>\n<command>\nls\n</command>\n<result>\nExit code: 0\nOutput:\na\n</result>\n</user_shell_command>"

    messages = read(tmp_path, item_text("user", Q), item_text("assistant", R), item_text("user", command))

    assert messages[2]["content"] == "Ran `ls`\n```\nExit code: 0\nOutput:\na\n```"
    assert (messages[2]["role"], messages[2]["source"]) == ("system", {"kind": "user_shell_command"})


def test_an_image_that_only_the_screen_holds_comes_with_its_prompt(tmp_path: Path) -> None:
    url = "data:image/png;base64,QUJD"
    parts = [{"type": "text", "text": "What is this?"}, {"type": "image", "image_url": url}]

    messages = read(tmp_path, screen("UserMessage", content=parts))
    event = read(tmp_path, codex("event_msg", type="user_message", message="What is this?", images=[url]))

    image = {"type": "image_url", "image_url": {"url": url}}
    assert messages[0]["content"] == event[0]["content"] == [{"type": "text", "text": "What is this?"}, image]


def test_an_answer_in_parts_is_taken_once_from_views_that_cut_it_differently(tmp_path: Path) -> None:
    parts = [{"type": "output_text", "text": text} for text in ("One.", "Two.")]
    item = codex("response_item", type="message", role="assistant", content=parts)

    for records in (
        [item, shown("assistant", "One."), shown("assistant", "Two.")],
        [screen_text("assistant", "One.Two."), item],
    ):
        messages = read(tmp_path, item_text("user", Q), *records)

        assert "".join(content.text(messages[1]).split()) == "One.Two."
        assert len(messages) == 2


def test_the_last_answer_is_taken_from_the_end_of_the_task_if_it_stands_nowhere_else(tmp_path: Path) -> None:
    end = codex("event_msg", type="task_complete", last_agent_message=R)

    assert said(read(tmp_path, item_text("user", Q), end)) == [("user", Q), ("assistant", R)]
    assert said(read(tmp_path, item_text("user", Q), item_text("assistant", R), end)) == [("user", Q), ("assistant", R)]


def test_what_the_person_was_told_instead_of_an_answer_is_kept(tmp_path: Path) -> None:
    error = codex("event_msg", type="error", message="You have hit your usage limit.", codex_error_info="usage_limit")
    end = codex("event_msg", type="task_complete", last_agent_message=None)

    messages = read(tmp_path, item_text("user", Q), shown("user", Q), error, end, item_text("user", "Now?"))

    assert said(messages) == [("user", Q), ("assistant", "You have hit your usage limit."), ("user", "Now?")]
    assert messages[1]["finish_reason"] == "error"
    assert messages[1]["source"] == {"kind": "API error", "codex_error_info": "usage_limit"}


# ---------------------------------------------------------------- agents


def agent_message(author: str, recipient: str, text: str) -> dict[str, Any]:
    parts = [{"type": "input_text", "text": text}, {"type": "encrypted_content", "encrypted_content": "xx"}]
    return codex("response_item", type="agent_message", author=author, recipient=recipient, content=parts)


def test_what_a_sub_agent_reports_is_a_note_and_no_prompt(tmp_path: Path) -> None:
    messages = read(
        tmp_path, item_text("user", Q), agent_message("/root/scout", "/root", "It runs."), item_text("assistant", R)
    )

    assert said(messages) == [("user", Q), ("system", "It runs."), ("assistant", R)]
    assert messages[1]["source"] == {"kind": "agent message", "author": "/root/scout", "recipient": "/root"}


def test_what_a_sub_agent_is_told_to_do_is_its_prompt(tmp_path: Path) -> None:
    spawn = {"parent_thread_id": "t1", "agent_path": "/root/scout"}
    path = write_lines(
        tmp_path / "s.jsonl",
        codex("session_meta", id="t2", source={"subagent": {"thread_spawn": spawn}}),
        agent_message("/root", "/root/scout", "Look at the quay."),
        item_text("assistant", "It is full."),
        agent_message("/root/scout/eye", "/root/scout", "Very full."),
    )

    (found,), _ = importers.read(path)

    assert said(found.messages) == [
        ("user", "Look at the quay."),
        ("assistant", "It is full."),
        ("system", "Very full."),
    ]
    assert found.title == "Sub-agent: Look at the quay."


def test_an_agent_message_of_nobody_is_the_answer(tmp_path: Path) -> None:
    item = codex("response_item", type="agent_message", content=[{"type": "output_text", "text": R}])

    assert said(read(tmp_path, item_text("user", Q), item)) == [("user", Q), ("assistant", R)]


# ---------------------------------------------------------------- unknown kinds


@pytest.mark.parametrize(
    ("record", "label"),
    [
        (screen("Hologram", id="h1", text="Land ahead."), "item_completed: Hologram"),
        (screen("Hologram", content=[{"type": "Text", "text": "Land ahead."}]), "item_completed: Hologram"),
        (codex("response_item", type="hologram", content=[{"text": "Land ahead."}]), "item: hologram"),
        (codex("event_msg", type="hologram", message="Land ahead."), "event: hologram"),
        (codex("hologram", body={"markdown": "Land ahead."}), "hologram"),
    ],
)
def test_a_text_of_an_unknown_kind_comes_in_and_is_counted(tmp_path: Path, record: dict[str, Any], label: str) -> None:
    path = write_lines(tmp_path / "r.jsonl", META, item_text("user", Q), record, item_text("assistant", R))

    (found,), report = importers.read(path)

    assert said(found.messages) == [("user", Q), ("system", "Land ahead."), ("assistant", R)]
    assert found.messages[1]["source"]["kind"] == "unknown kind"
    assert found.messages[1]["source"]["record"] == record["payload"].get("item", record["payload"])
    assert (report.unknown, report.skipped) == ({label: 1}, {"session_meta": 1})


def test_an_unknown_kind_that_tells_again_what_is_known_adds_nothing(tmp_path: Path) -> None:
    mirror = screen("SpokenText", text=R)

    behind = read(tmp_path, item_text("user", Q), item_text("assistant", R), mirror)
    before = read(tmp_path, item_text("user", Q), mirror, item_text("assistant", R))

    assert said(behind) == said(before) == [("user", Q), ("assistant", R)]


def test_an_unknown_kind_without_a_text_is_only_counted(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "r.jsonl", META, item_text("user", Q), codex("pulse", beats=[1, 2], id="some id"))

    (found,), report = importers.read(path)

    assert said(found.messages) == [("user", Q)]
    assert (report.skipped["pulse"], report.unknown) == (1, {})


# ---------------------------------------------------------------- counts and compactions


def record(response: str, total: int, used: int) -> dict[str, Any]:
    def numbers(count: int) -> dict[str, int]:
        return {"input_tokens": count - 10, "output_tokens": 10, "total_tokens": count}

    return codex("token_usage_record", response_id=response, usage=numbers(used), thread_token_usage=numbers(total))


@pytest.mark.parametrize(
    "counted",
    [
        [[record("r1", 110, 110)], [record("r2", 245, 135)]],
        [[tokens(110, 110)], [tokens(245, 135)]],
        [[record("r1", 110, 110), tokens(110, 110)], [record("r2", 245, 135), tokens(245, 135)]],
        [[tokens(110, 110), record("r1", 110, 110)], [tokens(245, 135), record("r2", 245, 135)]],
        [
            [record("r1", 110, 110), record("r1", 110, 110)],
            [record("r2", 245, 135), tokens(245, 135), tokens(245, 135)],
        ],
    ],
)
def test_a_call_is_counted_once_whether_a_record_tells_of_it_or_a_count(
    tmp_path: Path, counted: list[list[dict[str, Any]]]
) -> None:
    first, second = counted

    messages = read(
        tmp_path,
        item_text("user", Q),
        item_text("assistant", R),
        *first,
        item_text("user", "And at night?"),
        item_text("assistant", "No."),
        *second,
    )

    assert [m["usage"]["total_tokens"] for m in messages if "usage" in m] == [110, 135]
    assert len(messages) == 4


def test_what_a_compaction_cost_stands_on_its_summary(tmp_path: Path) -> None:
    messages = read(
        tmp_path,
        item_text("user", Q),
        item_text("assistant", R),
        record("r1", 110, 110),
        tokens(110, 110),
        record("r2", 310, 200),
        codex("compacted", message="They asked about the ferry.", replacement_history=[]),
        tokens(110, 0),
        item_text("user", "And at night?"),
        item_text("assistant", "No."),
        record("r3", 445, 135),
    )

    assert [(m["content"], m["usage"]["total_tokens"]) for m in messages if "usage" in m] == [
        (R, 110),
        ("They asked about the ferry.", 200),
        ("No.", 135),
    ]
    assert usage.total(messages).total == 445


def test_the_summary_of_a_compaction_is_no_prompt_wherever_it_stands(tmp_path: Path) -> None:
    prefix = (
        "Another language model started to solve this problem and produced a summary of its thinking process. You also "
        "have access to the state of the tools that were used by that language model. Here is the summary produced by "
        "the other language model, use the information in this summary to assist with your own analysis:\n"
    )
    summary = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": prefix + "They asked."}]}
    start = [item_text("user", Q), item_text("assistant", R)]

    told = read(tmp_path, *start, codex("compacted", message="They asked."), item_text("user", prefix + "They asked."))
    inside = read(tmp_path, *start, codex("compacted", message="", replacement_history=[summary]))
    alone = read(tmp_path, item_text("user", prefix + "They asked."), item_text("user", Q))
    sealed = read(tmp_path, *start, codex("compacted", message="", replacement_history=[{"type": "compaction"}]))

    assert said(told) == said(inside) == [("user", Q), ("assistant", R), ("assistant", "They asked.")]
    assert said(alone) == [("assistant", "They asked."), ("user", Q)]
    assert said(sealed) == [("user", Q), ("assistant", R)]


def test_a_session_of_the_screen_grows_to_what_one_import_gives(tmp_path: Path) -> None:
    records = [
        META,
        of_parts("<dock_hints>x</dock_hints>"),
        codex("turn_context", model="m"),
        item_text("user", Q),
        screen_text("user", Q),
        screen("Reasoning", summary_text=["Look."], raw_content=[]),
        codex("response_item", type="custom_tool_call", name="exec", input="ferry()", call_id="x1"),
        screen("CommandExecution", id="c1", command=["ferry"], exit_code=1, aggregated_output="no"),
        codex("response_item", type="custom_tool_call_output", call_id="x1", output="Script failed\nOutput:\nno"),
        screen_text("assistant", R),
        item_text("assistant", R),
        record("r1", 110, 110),
        tokens(110, 110),
        codex("event_msg", type="task_complete", last_agent_message=R),
    ]
    path = tmp_path / "r.jsonl"
    once, steps = SessionManager(tmp_path / "once"), SessionManager(tmp_path / "steps")

    for count in range(1, len(records) + 1):
        write_lines(path, *records[:count])
        list(importers.import_paths(steps, [path]))
    list(importers.import_paths(once, [path]))

    (first,), (second,) = once.list(), steps.list()
    told = [[one for one in said(m.open(i.id).messages) if one[1]] for m, i in ((once, first), (steps, second))]
    assert told[0] == told[1]
    assert (first.errors, first.tokens.total) == (second.errors, second.tokens.total) == (1, 110)
