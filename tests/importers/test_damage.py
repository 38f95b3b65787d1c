"""Whatever stands in a source: the rest of it is imported, and only a file without a session is refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import importers, messages
from sessions_lib.errors import ImportRefused
from sessions_lib.messages import content, encoding, usage
from tests.importers.files import call, claude, codex, item_text, result, spent, text, tokens

ODD: list[Any] = [None, -1.5, "x", [], {"a": [1]}, [{"type": None}], "\ud800", ...]
WITNESS = "the last prompt"
HEADER = {"type": "session", "version": 3, "id": "pi-1", "timestamp": "2026-03-01T10:00:00.000Z", "cwd": "/w"}

SOURCES: dict[str, list[dict[str, Any]]] = {
    "claude-code": [
        {"type": "summary", "summary": "s", "leafUuid": "a1"},
        claude("user", "u1", None, [*text("q"), {"type": "image", "source": {"type": "base64", "data": "QQ=="}}]),
        claude(
            "assistant", "a1", "u1", [{"type": "thinking", "thinking": "hm"}, *text("r")], usage=spent(3, 4, read=5)
        ),
        claude("assistant", "a2", "a1", call("t1", "tide", port="Ember"), id="msg_a1", usage=spent(3, 9, read=5)),
        claude("user", "r1", "a2", result("t1", text("low"), is_error=True), toolUseResult={"agentId": "7f"}),
        claude("user", "x1", "a2", "look", isSidechain=True, agentId="7f"),
        {
            "type": "attachment",
            "uuid": "q1",
            "parentUuid": "r1",
            "attachment": {"type": "queued_command", "prompt": "and?"},
        },
    ],
    "codex": [
        codex("session_meta", id="t1", source={"subagent": {"thread_spawn": {"parent_thread_id": "t0"}}}),
        codex("turn_context", model="m"),
        item_text("user", "q"),
        codex("response_item", type="reasoning", summary=[{"type": "summary_text", "text": "hm"}]),
        codex("response_item", type="function_call", name="ls", arguments="{}", call_id="c1"),
        codex("response_item", type="local_shell_call", action={"command": ["ls"]}, call_id="c2"),
        tokens(100, 100),
        codex("response_item", type="function_call_output", call_id="c1", output={"content": "a", "success": False}),
        codex("compacted", message="so far", replacement_history=[]),
        codex("event_msg", type="agent_message", message="r"),
        codex("event_msg", type="thread_rolled_back", num_turns=1),
    ],
    "pi": [
        HEADER,
        {"type": "message", "id": "e1", "parentId": None, "message": {"role": "user", "content": text("q")}},
        {
            "type": "message",
            "id": "e2",
            "parentId": "e1",
            "message": {
                "role": "assistant",
                "content": [*text("r"), {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"a": 1}}],
                "usage": {"input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 4, "totalTokens": 10},
                "stopReason": "toolUse",
            },
        },
        {
            "type": "message",
            "id": "e3",
            "parentId": "e2",
            "message": {"role": "toolResult", "toolCallId": "c1", "content": []},
        },
        {"type": "label", "id": "e4", "parentId": "e3", "targetId": "e1", "label": "l"},
        {"type": "branch_summary", "id": "e5", "parentId": "e1", "summary": "s", "usage": {"input": 1, "output": 1}},
    ],
}
LAST: dict[str, dict[str, Any]] = {
    "claude-code": claude("user", "w1", None, WITNESS, parentUuid="r1"),
    "codex": item_text("user", WITNESS),
    "pi": {"type": "message", "id": "w1", "parentId": "e5", "message": {"role": "user", "content": WITNESS}},
}


def places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place inside ``value``, as the keys that lead there."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*above, key)
        yield from places(inner, (*above, key))


def with_odd(records: list[dict[str, Any]], place: tuple[Any, ...], odd: Any) -> list[dict[str, Any]]:
    changed = copy.deepcopy(records)
    inner: Any = changed
    for key in place[:-1]:
        inner = inner[key]
    if odd is ...:
        del inner[place[-1]]
    else:
        inner[place[-1]] = odd
    return changed


@pytest.mark.parametrize("format", SOURCES)
def test_one_odd_value_anywhere_never_costs_the_rest_of_the_file(tmp_path: Path, format: str) -> None:
    records = SOURCES[format]
    path = tmp_path / "odd.jsonl"
    for place in places(records):
        if len(place) < 2:
            continue
        for odd in ODD:
            lines = [*with_odd(records, place, odd), LAST[format]]
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))

            found, _ = importers.read(path, format)

            said = [message for one in found for message in one.messages]
            assert any(content.text(message) == WITNESS for message in said), (place, odd)
            for one in found:
                assert one.title is None or isinstance(one.title, str)
                assert len({message["id"] for message in one.messages}) == len(one.messages)
                messages.for_request(one.messages)
                usage.total(one.messages)
                assert all(encoding.decode(encoding.encode(message)) == message for message in one.messages)


@pytest.mark.parametrize("format", SOURCES)
def test_a_file_cut_anywhere_gives_every_whole_line(tmp_path: Path, format: str) -> None:
    lines = [json.dumps(record) + "\n" for record in [*SOURCES[format], LAST[format]]]
    whole = "".join(lines).encode()
    path = tmp_path / "cut.jsonl"
    counts: dict[int, int] = {}

    for cut in range(0, len(whole), 17):
        path.write_bytes(whole[:cut])
        complete = whole[:cut].count(b"\n")
        try:
            found, report = importers.read(path)
        except ImportRefused:
            assert complete <= 2
            continue
        is_torn = not whole[:cut].endswith(b"\n") and cut + 1 < len(whole) and whole[cut : cut + 1] != b"\n"
        assert report.damaged_lines == is_torn
        told = sum(len(one.messages) for one in found)
        if is_torn:
            assert counts.setdefault(complete, told) == told


def test_an_odd_conversation_of_an_export_never_costs_the_others(tmp_path: Path) -> None:
    def one(key: str, text: str) -> dict[str, Any]:
        said = {"author": {"role": "user"}, "content": {"content_type": "text", "parts": [text]}, "create_time": 1.5}
        return {
            "title": "T",
            "id": key,
            "current_node": "n1",
            "mapping": {"n1": {"id": "n1", "message": said, "parent": None}},
        }

    path = tmp_path / "conversations.json"
    export = [one("c1", "q")]
    for place in places(export):
        for odd in ODD:
            path.write_text(json.dumps([*with_odd(export, place, odd), one("c2", WITNESS)]))

            found, _ = importers.read(path)

            assert WITNESS in [content.text(message) for other in found for message in other.messages], (place, odd)


def test_a_torn_line_is_told_though_another_holds_two_records(tmp_path: Path) -> None:
    asked, answer = (
        json.dumps(one) for one in (claude("user", "u", None, "q"), claude("assistant", "a", "u", text("r")))
    )
    torn = json.dumps(claude("user", "w", "a", WITNESS)).replace('"uuid": ', '"uuid":\n')
    path = tmp_path / "a.jsonl"
    path.write_text(f"{asked}{answer}\n{torn}\n")

    _, report = importers.read(path)

    assert [number for number, _ in next(iter(report.damaged.values()))] == [2, 3]
