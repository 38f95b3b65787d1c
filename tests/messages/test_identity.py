"""Which message is which: its id together with what it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import SessionManager, messages, stats
from sessions_lib.store import merge
from sessions_lib.store.folder import jsonl, message_heads, scan
from sessions_lib.store.folder.index.catalog import Catalog
from sessions_lib.store.store import open_store
from tests.record import GULL, LIGHTHOUSES, METRES, TALLER, call

# Three conversations of a tool that numbers its messages within each: they have nothing in common but the numbers.
TIDE = [
    {"id": "m1", "role": "user", "content": "What is the tide in Ember?"},
    {"id": "m2", "role": "assistant", "content": "2.1 m"},
]
BOAT = [{"id": "m1", "role": "user", "content": "Name a boat."}, {"id": "m2", "role": "assistant", "content": "Gull"}]
COUNT = [
    {"id": "m1", "role": "user", "content": "Count."},
    {"id": "m2", "role": "assistant", "content": "One."},
    {"id": "m3", "role": "user", "content": "More."},
    {"id": "m4", "role": "assistant", "content": "Two."},
]


def test_one_id_with_two_texts_is_two_messages() -> None:
    one, other = messages.identities(TIDE), messages.identities(BOAT)

    assert messages.ids(TIDE) == messages.ids(BOAT) == ["m1", "m2"]
    assert not set(one) & set(other)
    assert messages.identities([dict(reversed(TIDE[0].items()))]) == one[:1]


@pytest.mark.parametrize(
    "change",
    [
        {"role": "developer"},
        {"content": [{"type": "text", "text": "What is the tide in Ember?"}]},
        {"content": None},
        {"content": ""},
        {"content": None, "refusal": "No."},
        {"tool_call_id": "c1"},
    ],
)
def test_whatever_is_said_otherwise_makes_another_message(change: dict[str, Any]) -> None:
    assert messages.identities([{**TIDE[0], **change}]) != messages.identities(TIDE[:1])


def test_two_answers_of_one_id_that_call_differently_are_two() -> None:
    east, west = ({**call(call_id), "id": "m2"} for call_id in ("c1", "c2"))

    assert messages.identities([east]) != messages.identities([west])


def test_times_and_tokens_make_no_other_message() -> None:
    told = {**TIDE[1], "timestamp": "2026-03-01T10:00:00Z", "usage": {"total_tokens": 9}, "model": "m", "x": 1}

    assert messages.identities([told]) == messages.identities(TIDE[1:])


def test_a_message_without_an_id_is_known_by_what_stands_before_it() -> None:
    one = messages.identities([LIGHTHOUSES, GULL, TALLER])
    copy = messages.identities([dict(reversed(LIGHTHOUSES.items())), GULL, METRES])

    assert one[:2] == copy[:2]
    assert one[2] != copy[2]
    assert messages.identities([GULL])[0] != one[1]
    assert len(set(messages.identities([LIGHTHOUSES, LIGHTHOUSES, LIGHTHOUSES]))) == 3


def test_an_id_anchors_what_follows_and_a_written_one_makes_no_other_message() -> None:
    with_id = {**LIGHTHOUSES, "id": "m1", "timestamp": "2026-01-01"}
    other = {"role": "user", "content": "?", "id": "m1"}

    assert messages.ids([with_id, GULL])[1] == messages.ids([other, GULL])[1]
    written = merge.with_ids([with_id, GULL, TALLER])
    assert messages.identities(written) == messages.identities([with_id, GULL, TALLER])


@pytest.mark.parametrize("owned", ["", "0", "1", "2", "02", "012"])
def test_the_last_id_is_the_last_of_all_ids(owned: str) -> None:
    said = [
        {**message, "id": f"m{at}"} if str(at) in owned else message
        for at, message in enumerate([LIGHTHOUSES, GULL, TALLER])
    ]

    assert messages.last_id(said) == messages.ids(said)[-1]


def test_content_is_equal_whatever_id_time_and_order_of_keys() -> None:
    restamped = {"content": LIGHTHOUSES["content"], "role": "user", "id": "n1", "timestamp": "2026-02-01T00:00:00Z"}

    assert messages.content_key(restamped) == messages.content_key(LIGHTHOUSES)
    assert messages.content_key(TALLER) != messages.content_key(LIGHTHOUSES)


def test_a_message_deeper_than_json_goes_has_an_identity_all_the_same() -> None:
    deep: list[object] = ["leaf"]
    for _ in range(3000):
        deep = [deep]

    one, same, other = (messages.identities([{"role": "user", "content": c}])[0] for c in (deep, [*deep], [deep]))

    assert one == same != other


LINES = [
    '{"role":"user","content":"caf\\u00e9 \\/ \\"q\\" \\ud83d\\ude00","id":"a"}',
    '{ "id" : "b", "role" : "assistant", "content" : null, "refusal" : "No." }',
    '{"role":"assistant","content":"","tool_calls":[{"id":"c1","function":{"arguments":"{\\"a\\": \\"\\\\u00e9\\"}",'
    '"name":"tide"}},{"id":"c2","type":"custom","custom":{"name":"raw","input":"x\\ty"}}]}',
    '{"role":"assistant","tool_calls":[{"id":7,"function":{"name":"tide","arguments":{"b":1,"a":[2]}}},{"id":"c4"}]}',
    '{"role":"tool","tool_call_id":"c1","content":[{"text":"\\u0041","type":"text"},{"type":"image_url"}]}',
    '{"role":"user","content":"h\u00e9\u2028","tool_calls":[{"id":"c9"}]}',
    '{"role":"user","content":12345678901234567890123}',
    '{"role":"tool","tool_call_id":null,"content":""}',
]


@pytest.mark.parametrize("end", ["", '{"role":"user","content":"\\ud83d"}\n', "torn"])
def test_a_listing_knows_the_same_messages_as_a_reader(tmp_path: Path, end: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(LINES) + "\n" + end, encoding="utf-8")

    heads = [identity for chunk in message_heads.read(path) for identity in chunk.identities]

    assert heads == messages.identities(jsonl.read(path).messages)


def numbered(folder: Path) -> SessionManager:
    manager = SessionManager(folder)
    for name, said in {"tide": TIDE, "boat": BOAT, "count": COUNT}.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(message) + "\n" for message in said))
    return manager


def test_every_message_of_numbered_conversations_is_counted(tmp_path: Path) -> None:
    manager = numbered(tmp_path)

    assert [info.messages for info in manager.list()] == [info.messages for info in scan.plain(tmp_path).list()]
    found = Catalog(tmp_path)
    counted = stats.figures(found)
    assert (counted.messages, counted.turns, counted.sessions, counted.sent_again) == (8, 4, 3, None)
    manager.fork("count", "recount", at=2)
    assert stats.figures(found).messages == 8


def test_numbered_conversations_are_merged_whole_and_once(tmp_path: Path) -> None:
    merged = merge.merge(COUNT, TIDE)

    assert sorted(m["content"] for m in merged) == sorted(m["content"] for m in [*COUNT, *TIDE])
    assert merge.merge(merged, TIDE) == merged
    assert merge.merge(merged, COUNT) == merged
    assert [m["content"] for m in merge.graft(TIDE, COUNT, [2], "count")[2:]] == ["More.", "Two."]
    assert merge.shared_start(TIDE, BOAT) == 0


def test_a_session_takes_in_what_another_numbered_alike_says(tmp_path: Path) -> None:
    manager = numbered(tmp_path)
    tide = manager.open("tide")

    assert tide.import_from(manager.open("count")) == 4
    assert tide.import_from(manager.open("count")) == 0
    assert [m["content"] for m in tide.messages] == [
        "What is the tide in Ember?",
        "2.1 m",
        "Count.",
        "One.",
        "More.",
        "Two.",
    ]
    told = [fault.text for fault in open_store(tmp_path).faults("tide") if fault.kind == "duplicate id"]
    assert told == [
        f"the id m{number} stands on an earlier line; it says something else there: both are counted"
        for number in (1, 2)
    ]
