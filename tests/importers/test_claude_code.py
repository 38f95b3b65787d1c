"""Claude Code's files: what was said, once, on the branch where it was said."""

from __future__ import annotations

from pathlib import Path

from sessions_lib import importers, messages
from sessions_lib.messages import usage
from tests.importers.files import call, claude, result, said, spent, text, write_lines


def test_lines_that_are_no_conversation_are_counted_and_side_chains_stay_apart(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "c.jsonl",
        {"type": "permission-mode", "permissionMode": "default", "sessionId": "s1"},
        {"type": "file-history-snapshot", "messageId": "u1", "snapshot": {"trackedFileBackups": {}}},
        claude("user", "u1", None, "How high is the tide at Ember?"),
        claude("user", "m1", "u1", "<system-reminder>be brief</system-reminder>", isMeta=True),
        claude("assistant", "x1", "u1", text("sub-agent chatter"), isSidechain=True, usage=spent(9, 9)),
        claude("assistant", "a1", "u1", text("2.1 metres."), usage=spent(30, 6), stop_reason="end_turn"),
        {"type": "ai-title", "title": "Tide at Ember"},
        {"type": "summary", "summary": "Tide question", "leafUuid": "a1"},
        {"type": "brand-new-type-2027", "x": 1},
    )

    found, report = importers.read(path)

    assert said(found[0].messages) == [("user", "How high is the tide at Ember?"), ("assistant", "2.1 metres.")]
    assert found[0].title == "Tide at Ember"
    assert report.skipped == {
        "permission-mode": 1,
        "file-history-snapshot": 1,
        "meta message": 1,
        "ai-title": 1,
        "summary": 1,
        "brand-new-type-2027": 1,
    }
    assert [(one.key, said(one.messages)) for one in found[1:]] == [
        ("claude-code:s1:agent:x1", [("assistant", "sub-agent chatter")])
    ]
    assert found[1].meta["subagent_of"] == {"key": "claude-code:s1"}
    assert usage.total(found[0].messages).total == 36
    assert usage.total(found[1].messages).total == 18


def test_one_answer_on_several_lines_is_one_message_with_its_tokens_once(tmp_path: Path) -> None:
    once = spent(4, 120, written=15000)
    path = write_lines(
        tmp_path / "c.jsonl",
        claude("user", "u1", None, "Tide at Ember?"),
        claude("assistant", "a1", "u1", [{"type": "thinking", "thinking": "look it up"}], id="msg_1", usage=once),
        claude("assistant", "a2", "a1", text("Checking."), id="msg_1", usage=once),
        claude(
            "assistant", "a3", "a2", call("t1", "tide", port="Ember"), id="msg_1", usage=once, stop_reason="tool_use"
        ),
    )

    (found,), _ = importers.read(path, "claude")

    assert len(found.messages) == 2
    assert found.messages[1] == {
        "role": "assistant",
        "content": "Checking.",
        "id": "cc_msg_1",
        "timestamp": "2026-03-01T10:00:02.000Z",
        "model": "m-1",
        "reasoning_content": "look it up",
        "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "tide", "arguments": '{"port":"Ember"}'}}],
        "finish_reason": "tool_calls",
        "usage": {
            "prompt_tokens": 15004,
            "completion_tokens": 120,
            "total_tokens": 15124,
            "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 15000},
        },
        "usage_reported": once,
    }
    assert usage.total(found.messages).total == 15124


def test_the_last_line_of_an_answer_reports_its_tokens_whole(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "c.jsonl",
        claude("user", "u1", None, "q"),
        claude("assistant", "a1", "u1", text("r"), id="msg_1", usage=spent(10, 1)),
        claude("assistant", "a2", "a1", call("t1", "tide"), id="msg_1", usage=spent(10, 80)),
    )

    (found,), _ = importers.read(path)

    assert usage.total(found.messages).total == 90


def test_cached_tokens_are_part_of_what_was_sent(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "c.jsonl",
        claude("user", "u1", None, "q"),
        claude("assistant", "a1", "u1", text("r"), usage=spent(200, 50, read=800)),
    )

    (found,), _ = importers.read(path)

    assert usage.of(found.messages[1]) == usage.Usage(input=1000, cached=800, output=50, reasoning=None, total=1050)


def test_results_and_notices_are_no_prompts_and_a_quoted_tag_is_one(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "c.jsonl",
        claude("user", "u1", None, "Tide?"),
        claude("assistant", "a1", "u1", call("t1", "tide")),
        claude("user", "r1", "a1", result("t1", "2.1")),
        claude("user", "m1", "r1", "<system-reminder>be brief</system-reminder>", isMeta=True),
        claude("assistant", "a2", "r1", text("2.1 m")),
        claude("user", "u2", "a2", "What does a <system-reminder> tag do?"),
        claude("assistant", "a3", "u2", text("It is a notice.")),
        claude("user", "u3", "a3", "<command-name> is a tag. What is it for?"),
    )

    (found,), _ = importers.read(path)

    assert [m["role"] for m in found.messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant",
        "user",
    ]
    assert messages.turn_count(found.messages) == 3
    assert found.messages[2] == {
        "role": "tool",
        "tool_call_id": "t1",
        "content": "2.1",
        "id": "cc_r1",
        "timestamp": "2026-03-01T10:00:02.000Z",
        "name": "tide",
    }


def test_a_missing_parent_is_bridged_by_the_order_of_the_file(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "c.jsonl",
        claude("user", "u1", None, "q1"),
        claude("assistant", "a1", "u1", text("r1")),
        claude("user", "u2", "ghost", "q2"),
        claude("assistant", "a2", "u2", text("r2")),
    )

    (found,), report = importers.read(path)

    assert said(found.messages) == [("user", "q1"), ("assistant", "r1"), ("user", "q2"), ("assistant", "r2")]
    assert report.warnings == ["line 3: its parent is not in the file; the file's order is taken there"]


def test_a_rewind_leaves_the_newest_line_as_the_session_and_the_other_as_its_fork(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "c.jsonl",
        claude("user", "u1", None, "q1"),
        claude("assistant", "a1", "u1", text("r1")),
        claude("user", "u2", "a1", "given up"),
        claude("assistant", "a2", "u2", text("r2")),
        claude("user", "u3", "a1", "q3"),
        claude("assistant", "a3", "u3", text("r3")),
    )

    (main, other), _ = importers.read(path)

    assert said(main.messages) == [("user", "q1"), ("assistant", "r1"), ("user", "q3"), ("assistant", "r3")]
    assert said(other.messages) == [("user", "q1"), ("assistant", "r1"), ("user", "given up"), ("assistant", "r2")]
    assert (other.key, other.parent_key, other.shared) == ("claude-code:s1#cc_u2", "claude-code:s1", 2)
    assert [m["id"] for m in main.messages[:2]] == [m["id"] for m in other.messages[:2]]


def test_an_edited_first_prompt_is_a_branch_that_shares_nothing(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "c.jsonl",
        claude("user", "u1", None, "first try"),
        claude("assistant", "a1", "u1", text("r1")),
        claude("user", "u2", None, "second try"),
        claude("assistant", "a2", "u2", text("r2")),
    )

    (main, other), _ = importers.read(path)

    assert said(main.messages) == [("user", "second try"), ("assistant", "r2")]
    assert (said(other.messages)[0], other.shared) == (("user", "first try"), 0)


def test_parallel_results_on_side_branches_belong_to_the_line(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "c.jsonl",
        claude("user", "u1", None, "q"),
        claude("assistant", "a1", "u1", call("t1", "tide"), id="msg_1"),
        claude("assistant", "a2", "a1", call("t2", "wind"), id="msg_1"),
        claude("user", "r1", "a1", result("t1", "low")),
        claude("user", "r2", "a2", result("t2", "calm", is_error=True)),
        claude("assistant", "a3", "r1", text("Low and calm.")),
    )

    (found,), _ = importers.read(path)

    assert said(found.messages) == [
        ("user", "q"),
        ("assistant", [None, "tide()", "wind()"]),
        ("tool", "low"),
        ("tool", "calm"),
        ("assistant", "Low and calm."),
    ]
    assert [m.get("is_error") for m in found.messages] == [None, None, None, True, None]


def test_what_a_resume_leaves_behind_is_no_branch(tmp_path: Path) -> None:
    caveat = "Caveat: The messages below were generated by the user while running local commands. DO NOT respond."
    path = write_lines(
        tmp_path / "c.jsonl",
        claude("user", "u1", None, "q1"),
        claude("assistant", "a1", "u1", text("r1")),
        claude("user", "c1", "a1", caveat, isMeta=True),
        claude("user", "c2", "c1", "<command-name>/exit</command-name>\n<command-message>exit</command-message>"),
        claude("user", "c3", "c2", "<local-command-stdout>Bye!</local-command-stdout>"),
        claude("assistant", "n1", "c1", text("No response requested."), model="<synthetic>", usage=spent(0, 0)),
        claude("user", "u2", "n1", "q2"),
    )

    (found,), report = importers.read(path)

    assert said(found.messages) == [("user", "q1"), ("assistant", "r1"), ("user", "q2")]
    assert report.skipped == {
        "meta message": 1,
        "command output": 1,
        "placeholder of a resume": 1,
        "local command": 1,
    }


def test_a_slash_command_that_was_answered_is_a_prompt(tmp_path: Path) -> None:
    typed = "<command-message>review</command-message>\n<command-name>/review</command-name>\n<command-args>12</command-args>"
    path = write_lines(
        tmp_path / "c.jsonl",
        claude("user", "u1", None, typed),
        claude("user", "m1", "u1", text("Review pull request 12 thoroughly."), isMeta=True),
        claude("assistant", "a1", "m1", text("Looks good.")),
    )

    (found,), _ = importers.read(path)

    assert said(found.messages) == [("user", "/review 12"), ("assistant", "Looks good.")]


def test_an_interruption_marks_the_answer_and_is_no_prompt(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "c.jsonl",
        claude("user", "u1", None, "q"),
        claude("assistant", "a1", "u1", text("Well, th")),
        claude("user", "i1", "a1", text("[Request interrupted by user]")),
        claude("user", "u2", "i1", "Shorter."),
    )

    (found,), _ = importers.read(path)

    assert said(found.messages) == [("user", "q"), ("assistant", "Well, th"), ("user", "Shorter.")]
    assert found.messages[1]["interrupted"] is True


def test_a_compaction_keeps_what_was_said_before_it_and_its_summary_is_no_prompt(tmp_path: Path) -> None:
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "b1", "parentUuid": None}
    path = write_lines(
        tmp_path / "c.jsonl",
        claude("user", "u1", None, "q1"),
        claude("assistant", "a1", "u1", text("r1")),
        {**boundary, "logicalParentUuid": "a1", "sessionId": "s1", "timestamp": "2026-03-01T10:00:03.000Z"},
        claude("user", "k1", "b1", "They asked q1.", isCompactSummary=True),
        claude("user", "u2", "k1", "q2"),
    )

    (found,), report = importers.read(path)

    assert said(found.messages) == [
        ("user", "q1"),
        ("assistant", "r1"),
        ("assistant", "They asked q1."),
        ("user", "q2"),
    ]
    assert found.messages[2]["source"] == {"kind": "compaction"}
    assert messages.turn_count(found.messages) == 2
    assert report.skipped == {"system: compact_boundary": 1}


def test_a_fork_in_its_own_file_names_its_parent_and_shares_its_identities(tmp_path: Path) -> None:
    parent = write_lines(
        tmp_path / "s1.jsonl", claude("user", "u1", None, "q1"), claude("assistant", "a1", "u1", text("r1"))
    )
    origin = {"sessionId": "s1"}
    fork = write_lines(
        tmp_path / "s2.jsonl",
        claude("user", "v1", None, "q1", sessionId="s2", forkedFrom={**origin, "messageUuid": "u1"}),
        claude(
            "assistant", "v2", "v1", text("r1"), id="msg_a1", sessionId="s2", forkedFrom={**origin, "messageUuid": "a1"}
        ),
        claude("user", "u2", "v2", "q2", sessionId="s2"),
    )

    (first,), _ = importers.read(parent)
    (second,), _ = importers.read(fork)

    assert (second.key, second.parent_key) == ("claude-code:s2", "claude-code:s1")
    assert [m["id"] for m in second.messages] == [*(m["id"] for m in first.messages), "cc_u2"]


def test_images_become_parts_and_a_document_a_file(tmp_path: Path) -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}
    paper = {
        "type": "document",
        "title": "a.pdf",
        "source": {"type": "base64", "media_type": "application/pdf", "data": "QQ=="},
    }
    path = write_lines(
        tmp_path / "c.jsonl",
        claude("user", "u1", None, [*text("What is this?"), picture, paper]),
        claude("assistant", "a1", "u1", call("t1", "shot")),
        claude("user", "r1", "a1", result("t1", [picture])),
    )

    (found,), _ = importers.read(path)

    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
    assert found.messages[0]["content"] == [
        {"type": "text", "text": "What is this?"},
        image,
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,QQ=="}},
    ]
    assert found.messages[2]["content"] == [image]


def test_a_prompt_typed_while_an_answer_ran_is_kept(tmp_path: Path) -> None:
    queued = {"type": "queued_command", "prompt": "And the wind?", "commandMode": "prompt"}
    path = write_lines(
        tmp_path / "c.jsonl",
        claude("user", "u1", None, "Tide?"),
        claude("assistant", "a1", "u1", call("t1", "tide")),
        claude("user", "r1", "a1", result("t1", "low")),
        {"type": "attachment", "uuid": "q1", "parentUuid": "r1", "sessionId": "s1", "attachment": queued},
        claude("assistant", "a2", "q1", text("Low, calm.")),
    )

    (found,), _ = importers.read(path)

    assert said(found.messages)[3:] == [("user", "And the wind?"), ("assistant", "Low, calm.")]
    assert found.messages[3]["timestamp"] == found.messages[2]["timestamp"]


def test_a_byte_order_mark_lone_surrogates_and_glued_objects_are_read(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    first = (
        '{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s1","message":{"role":"user","content":"a\\ud800b"}}'
    )
    second = '{"type":"assistant","uuid":"a1","parentUuid":"u1","message":{"role":"assistant","content":[{"type":"text","text":"r"}]}}'
    path.write_bytes(b"\xef\xbb\xbf" + first.encode() + second.encode() + b'\n{"type":"user","uu')

    (found,), report = importers.read(path)

    assert said(found.messages) == [("user", "a�b"), ("assistant", "r")]
    assert report.damaged == {str(path): [(2, "the last line is unfinished")]}


def test_records_without_ids_keep_the_order_of_the_file(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "c.jsonl",
        {"type": "user", "timestamp": "2024-01-01T10:00:00Z", "message": {"content": "hello"}, "cwd": "/w"},
        {"type": "assistant", "timestamp": "2024-01-01T10:00:05Z", "message": {"model": "m", "content": text("Hi")}},
    )

    (found,), _ = importers.read(path)

    assert said(found.messages) == [("user", "hello"), ("assistant", "Hi")]
    assert len({m["id"] for m in found.messages}) == 2
    assert found.source["cwd"] == "/w"


def test_a_circle_of_parents_is_cut(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "c.jsonl",
        claude("user", "u1", "a1", "q"),
        claude("assistant", "a1", "u1", text("r")),
    )

    (found,), report = importers.read(path)

    assert said(found.messages) == [("user", "q"), ("assistant", "r")]
    assert len(report.warnings) == 1


def test_a_sub_agent_in_its_own_file_is_a_session_that_names_its_caller(tmp_path: Path) -> None:
    side = {"isSidechain": True, "agentId": "7f", "sessionId": "s1"}
    path = write_lines(
        tmp_path / "agent-7f.jsonl",
        claude("user", "x1", None, "Look at the harbour.", **side),
        claude("assistant", "x2", "x1", text("Two boats."), usage=spent(5, 5), **side),
    )

    (found,), _ = importers.read(path)

    assert (found.key, found.title) == ("claude-code:s1:agent:7f", "Sub-agent: Look at the harbour.")
    assert found.meta == {"subagent_of": {"key": "claude-code:s1"}}
    assert said(found.messages) == [("user", "Look at the harbour."), ("assistant", "Two boats.")]


def test_notices_of_claude_code_are_no_prompts_and_quoting_one_is(tmp_path: Path) -> None:
    reminder = "<system-reminder>be brief</system-reminder>"
    opened = "<ide_opened_file>The user opened tide.py</ide_opened_file>"
    path = write_lines(
        tmp_path / "c.jsonl",
        claude("user", "u1", None, [*text(opened), *text("Tide?")]),
        claude("user", "u2", "u1", f"{reminder}\n{reminder}"),
        claude("assistant", "a1", "u2", text("Low.")),
        claude("assistant", "a2", "a1", call("t1", "tide")),
        claude("user", "r1", "a2", [*result("t1", "2.1"), *text(reminder)]),
        claude("user", "u3", "r1", f"What is {reminder}?"),
        claude("user", "u4", "u3", "<system-reminder> is a tag"),
    )

    (found,), report = importers.read(path)

    assert said(found.messages) == [
        ("user", "Tide?"),
        ("assistant", "Low."),
        ("assistant", [None, "tide()"]),
        ("tool", "2.1"),
        ("user", f"What is {reminder}?"),
        ("user", "<system-reminder> is a tag"),
    ]
    assert found.messages[0]["source"] == {"notices": [opened]}
    assert report.skipped == {"notice inside a prompt": 2, "meta message": 1}
