"""The calls of models behind an answer: which model, how many tokens, and what a price depends on."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_lib.messages import model_calls, usage
from sessions_lib.messages.model_calls import ModelCall
from sessions_lib.messages.usage import Usage
from tests.messages.test_usage import KEYS, VALUE

SEVERAL = {  # of one answer: a first look, an advisor of another model, the answer
    "prompt_tokens": 160,
    "completion_tokens": 21,
    "total_tokens": 181,
    "model_calls": [
        {"model": "small", "prompt_tokens": 40, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 30}},
        {"model": "large", "prompt_tokens": 70, "completion_tokens": 9, "service_tier": "batch"},
        {
            "prompt_tokens": 50,
            "completion_tokens": 8,
            "prompt_tokens_details": {"cache_write_tokens": 10, "cache_write_1h_tokens": 6},
        },
    ],
}


def test_a_usage_of_several_model_calls_is_their_sum_and_each_model_has_its_own() -> None:
    answer = {"role": "assistant", "model": "small", "usage": SEVERAL}

    assert usage.of(answer) == Usage(160, 30, 21, None, 181)
    assert model_calls.by_model(SEVERAL, "small") == [
        ("small", (90, 30, 12, None, 102)),
        ("large", (70, None, 9, None, 79)),
    ]
    assert model_calls.of(answer) == [
        ModelCall("small", Usage(40, 30, 4, None, 44)),
        ModelCall("large", Usage(70, None, 9, None, 79), tier="batch"),
        ModelCall("small", Usage(50, None, 8, None, 58), written=10, written_1h=6),
    ]


def test_a_usage_without_a_list_is_one_call_of_the_messages_model() -> None:
    reported = {"prompt_tokens": 9, "completion_tokens": 2, "service_tier": "priority"}

    assert model_calls.by_model(reported, "m") == [("m", (9, None, 2, None, 11))]
    assert model_calls.of({"role": "assistant", "model": "m", "usage": reported}) == [
        ModelCall("m", Usage(9, None, 2, None, 11), tier="priority")
    ]
    assert model_calls.of({"role": "assistant", "usage": reported})[0].model == ""
    assert model_calls.by_model(None, "m") == model_calls.of({"role": "assistant"}) == []


@pytest.mark.parametrize("odd", [None, [], {}, "x", [None, 5], [{"model": "x"}], [{"prompt_tokens": "many"}]])
def test_a_list_without_a_call_in_it_hides_nothing(odd: Any) -> None:
    reported = {"prompt_tokens": 9, "completion_tokens": 2, "model_calls": odd}

    assert model_calls.by_model(reported, "m") == [("m", (9, None, 2, None, 11))]


def test_what_anthropic_and_pi_report_of_cache_writes_is_told_by_how_long_they_stay() -> None:
    anthropic = {
        "input_tokens": 4,
        "cache_creation_input_tokens": 100,
        "cache_read_input_tokens": 0,
        "cache_creation": {"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 70},
        "output_tokens": 5,
        "service_tier": "standard",
    }

    (call,) = model_calls.of({"role": "assistant", "model": "m", "usage": anthropic})
    (pi,) = model_calls.of({"role": "assistant", "usage": {"input": 5, "cacheWrite": 2, "cacheRead": 0, "output": 1}})

    assert (call.tokens, call.written, call.written_1h, call.tier) == (Usage(104, 0, 5, None, 109), 100, 70, "")
    assert (pi.written, pi.written_1h) == (2, None)


@given(st.lists(st.dictionaries(st.sampled_from([*KEYS, "model"]), VALUE), max_size=4), st.sampled_from(["", "m"]))
def test_the_models_parts_of_any_usage_add_up_to_it(calls: list[dict[str, Any]], model: str) -> None:
    reported = {"prompt_tokens": 5, "model_calls": calls}

    parts = model_calls.by_model(reported, model)

    assert sum(counts[4] or 0 for _, counts in parts) == (usage.counts(reported) or [0] * 5)[4]
    assert sum(call.tokens.total or 0 for call in model_calls.of({"role": "assistant", "usage": reported})) == sum(
        counts[4] or 0 for _, counts in parts
    )
