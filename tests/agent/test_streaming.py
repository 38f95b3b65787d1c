"""Answers put together from chunks: what real servers do to tool calls, and chunks no server should send."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_lib import messages
from sessions_lib.agent.streaming import Answer
from sessions_lib.messages import usage
from tests.model_server import USAGE, chunk, problems, usage_chunk

END = chunk({}, "tool_calls")


def delta(arguments: Any = None, name: str | None = None, call_id: str | None = None, index: Any = None) -> Any:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    found: dict[str, Any] = {"function": function}
    if index is not None:
        found["index"] = index
    if call_id is not None:
        found["id"] = call_id
    return chunk({"tool_calls": [found]})


def calls(*chunks: Any) -> list[tuple[str, str, str]]:
    answer = Answer()
    for one in chunks:
        answer.add(one)
    return [
        (call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in answer.message().get("tool_calls", [])
    ]


EMBER, GULL = '{"port":"Ember"}', '{"port":"Gull"}'


def test_the_id_may_come_in_the_first_delta_only() -> None:
    assert calls(
        delta("", "tide", "c1", 0),
        delta('{"port":', index=0),
        delta('"Ember"}', index=0),
        delta(GULL, "tide", "c2", 1),
        END,
    ) == [("c1", "tide", EMBER), ("c2", "tide", GULL)]


def test_the_deltas_of_parallel_calls_may_be_interleaved() -> None:
    assert calls(
        delta("", "tide", "c1", 0),
        delta("", "tide", "c2", 1),
        delta('{"port":', index=0),
        delta('{"port":', index=1),
        delta('"Gull"}', index=1),
        delta('"Ember"}', index=0),
        END,
    ) == [("c1", "tide", EMBER), ("c2", "tide", GULL)]


@pytest.mark.parametrize("no_id", [None, ""])
def test_calls_without_ids_get_different_ones(no_id: str | None) -> None:
    first, second = calls(delta(EMBER, "tide", no_id, 0), delta(GULL, "tide", no_id, 1), END)

    assert (first[1:], second[1:]) == (("tide", EMBER), ("tide", GULL))
    assert len({"", first[0], second[0]}) == 3


def test_calls_with_one_id_get_different_ones() -> None:
    first, second = calls(delta(EMBER, "tide", "c", 0), delta(GULL, "tide", "c", 1), END)

    assert first == ("c", "tide", EMBER)
    assert second[0] not in ("", "c")


def test_without_an_index_a_known_id_or_the_last_call_takes_the_rest() -> None:
    assert calls(
        delta('{"port":', "tide", "c1"),
        delta('"Ember"}'),
        delta('{"port":', "tide", "c2"),
        delta('"Gull"}', call_id="c2"),
        END,
    ) == [("c1", "tide", EMBER), ("c2", "tide", GULL)]


def test_one_index_for_all_with_different_ids_is_several_calls() -> None:
    assert calls(delta('{"port":', "tide", "c1", 0), delta('"Ember"}', index=0), delta(GULL, "tide", "c2", 0), END) == [
        ("c1", "tide", EMBER),
        ("c2", "tide", GULL),
    ]


def test_one_index_for_all_without_ids_is_several_calls_where_the_arguments_were_complete() -> None:
    assert [call[1:] for call in calls(delta(EMBER, "tide", index=0), delta(GULL, "tide", index=0), END)] == [
        ("tide", EMBER),
        ("tide", GULL),
    ]


def test_no_index_and_no_id_are_several_calls_where_each_is_named() -> None:
    assert [call[1:] for call in calls(delta(EMBER, "tide"), delta(GULL, "tide"), END)] == [
        ("tide", EMBER),
        ("tide", GULL),
    ]


def test_a_name_that_is_repeated_in_every_delta_is_one_call() -> None:
    assert calls(
        delta('{"port":', "tide", "c1", 0), delta('"Ember"}', "tide", "c1", 0), delta("", "tide", "c1", 0), END
    ) == [("c1", "tide", EMBER)]


def test_a_new_id_in_every_delta_without_a_name_is_one_call() -> None:
    assert calls(delta('{"port":', "tide", "c1", 0), delta('"Ember"}', None, "c9", 0), END) == [("c1", "tide", EMBER)]


def legacy(arguments: Any = None, name: str | None = None) -> Any:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return chunk({"function_call": function})


def test_a_call_of_the_legacy_form_is_a_call() -> None:
    ((call_id, name, arguments),) = calls(
        legacy("", "tide"), legacy('{"port":'), legacy('"Ember"}', "tide"), chunk({}, "function_call")
    )

    assert call_id
    assert (name, arguments) == ("tide", EMBER)


def test_an_empty_call_of_the_legacy_form_is_none() -> None:
    answer = Answer()
    for made in (chunk({"content": "2.1 m"}), legacy("", ""), chunk({}, "stop")):
        answer.add(made)

    assert answer.message() == {"role": "assistant", "content": "2.1 m", "finish_reason": "stop"}


@pytest.mark.parametrize("reason", ["length", "MAX_TOKENS", "Content_Filter"])
def test_calls_of_an_answer_that_was_cut_are_not_whole_in_whatever_case_the_reason_is(reason: str) -> None:
    answer = Answer()
    for made in (delta("{}", "tide", "c1", 0), chunk({}, reason)):
        answer.add(made)

    assert "tool_calls" not in answer.message()


def test_a_call_that_comes_in_both_forms_is_one() -> None:
    assert calls(legacy(EMBER, "tide"), delta(EMBER, "tide", "c1", 0), END) == [("c1", "tide", EMBER)]


def test_a_call_of_the_legacy_form_that_was_cut_is_not_one() -> None:
    answer = Answer()
    answer.add(legacy('{"port":"Em', "tide"))

    assert answer.message()["unfinished_calls"] == [{"name": "tide", "arguments": '{"port":"Em'}]


def test_arguments_as_an_object_become_json() -> None:
    ((_, name, arguments),) = calls(delta({"port": "Ember"}, "tide", "c1", 0), END)

    assert (name, json.loads(arguments)) == ("tide", {"port": "Ember"})


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        (
            [
                {"prompt_tokens": 30, "completion_tokens": 7, "total_tokens": 37},
                {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
            ],
            (30, 7, 37),
        ),
        (
            [{"prompt_tokens": 30, "completion_tokens": 1, "total_tokens": 31}, {"completion_tokens": 7}],
            (30, 7, 37),
        ),
        ([{"prompt_tokens": 30, "completion_tokens": n, "total_tokens": 30 + n} for n in (1, 2, 3)], (30, 3, 33)),
        ([{"prompt_tokens": 30, "completion_tokens": 7}, {"prompt_tokens": None}, {}, None, "odd"], (30, 7, 37)),
        ([{"prompt_tokens": 0, "completion_tokens": 0}, {"prompt_tokens": 30, "completion_tokens": 7}], (30, 7, 37)),
    ],
)
def test_zeros_and_parts_in_later_chunks_take_no_tokens_back(
    reported: list[Any], expected: tuple[int, int, int]
) -> None:
    answer = Answer()

    answer.add(chunk({"content": "Low."}, "stop"))
    for one in reported:
        answer.add({"choices": [], "usage": one})

    found = usage.of(answer.message())
    assert found is not None
    assert (found.input, found.output, found.total) == expected


def test_details_of_usage_are_kept_from_whichever_chunk_reported_them() -> None:
    answer = Answer()

    answer.add({"choices": [], "usage": {"prompt_tokens": 30, "prompt_tokens_details": {"cached_tokens": 20}}})
    answer.add({"choices": [], "usage": {"prompt_tokens": 30, "prompt_tokens_details": {"cached_tokens": 0}}})
    answer.add({"choices": [], "usage": {"completion_tokens": 7, "prompt_tokens_details": None}})

    assert answer.usage == {
        "prompt_tokens": 30,
        "prompt_tokens_details": {"cached_tokens": 20},
        "completion_tokens": 7,
    }


def test_nothing_said_is_nothing_to_keep() -> None:
    answer = Answer()
    answer.add(chunk({"role": "assistant", "content": ""}))
    answer.add({"choices": []})

    assert not answer.says_anything
    assert not answer.is_whole


KEYS = [
    "choices",
    "delta",
    "message",
    "content",
    "tool_calls",
    "index",
    "id",
    "function",
    "name",
    "arguments",
    "finish_reason",
    "usage",
    "model",
    "type",
    "text",
    "thinking",
    "reasoning",
    "refusal",
]
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(st.dictionaries(st.sampled_from(["choices", "usage", "model"]), ANYTHING), max_size=4), ANYTHING)
def test_no_chunk_raises_and_what_is_stored_can_be_sent(chunks: list[dict[str, Any]], inner: Any) -> None:
    answer = Answer()
    for one in [*chunks, {"choices": [{"delta": inner}]}, {"choices": [{"delta": {"tool_calls": inner}}]}, END]:
        answer.add(one)

    sent = messages.for_request([{"role": "user", "content": "x"}, answer.message(), {"role": "user", "content": "y"}])
    assert problems(sent) == []


def test_an_unusual_service_tier_stays_with_the_usage_since_the_price_depends_on_it() -> None:
    priority, usual = Answer(), Answer()
    for answer, tier in ((priority, "priority"), (usual, "default")):
        answer.add({**chunk({"content": "Yes."}, "stop"), "service_tier": tier})
        answer.add(usage_chunk())

    assert priority.message()["usage"] == {**USAGE, "service_tier": "priority"}
    assert usual.message()["usage"] == USAGE
