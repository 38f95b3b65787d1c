"""Token counts as providers report them, with one meaning: known, or unknown, never a guess."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_lib.messages import usage
from sessions_lib.messages.usage import Totals, Usage


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        (  # OpenAI: cached is inside the prompt, reasoning inside the completion
            {
                "prompt_tokens": 1000,
                "completion_tokens": 50,
                "total_tokens": 1050,
                "prompt_tokens_details": {"cached_tokens": 800},
                "completion_tokens_details": {"reasoning_tokens": 30},
            },
            Usage(1000, 800, 50, 30, 1050),
        ),
        (  # Anthropic: cached is beside the input
            {
                "input_tokens": 200,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 800,
                "output_tokens": 50,
            },
            Usage(1000, 800, 50, None, 1050),
        ),
        (
            {
                "input_tokens": 4,
                "cache_creation_input_tokens": 15000,
                "cache_read_input_tokens": 0,
                "output_tokens": 120,
            },
            Usage(15004, 0, 120, None, 15124),
        ),
        (  # a proxy that adds Anthropic's counts to OpenAI's
            {"prompt_tokens": 1000, "cache_read_input_tokens": 800, "completion_tokens": 50, "total_tokens": 1050},
            Usage(1000, 800, 50, None, 1050),
        ),
        ({"prompt_tokens": 9, "prompt_cache_hit_tokens": 5, "completion_tokens": 1}, Usage(9, 5, 1, None, 10)),
        (  # Codex
            {"input_tokens": 70, "cached_input_tokens": 60, "output_tokens": 10, "reasoning_output_tokens": 5},
            Usage(70, 60, 10, 5, 80),
        ),
        (  # OpenAI Responses
            {
                "input_tokens": 70,
                "input_tokens_details": {"cached_tokens": 60},
                "output_tokens": 10,
                "output_tokens_details": {"reasoning_tokens": 5},
                "total_tokens": 80,
            },
            Usage(70, 60, 10, 5, 80),
        ),
        ({"input": 5, "output": 3, "cacheRead": 10, "cacheWrite": 2, "totalTokens": 20}, Usage(17, 10, 3, None, 20)),
        ({"prompt_tokens": 10}, Usage(10, None, None, None, 10)),
        (
            {
                "promptTokenCount": 10,
                "cachedContentTokenCount": 8,
                "candidatesTokenCount": 5,
                "thoughtsTokenCount": 3,
                "totalTokenCount": 18,
            },
            Usage(10, 8, 8, 3, 18),
        ),
        ({"prompt_token_count": 10, "candidates_token_count": 5}, Usage(10, None, 5, None, 15)),
        ({"prompt_eval_count": 10, "eval_count": 5}, Usage(10, None, 5, None, 15)),
        ({"promptTokens": 10, "completionTokens": 5, "totalTokens": 15}, Usage(10, None, 5, None, 15)),
        (
            {"inputTokens": 10, "cachedInputTokens": 8, "outputTokens": 5, "reasoningTokens": 3, "totalTokens": 15},
            Usage(10, 8, 5, 3, 15),
        ),
        (
            {"inputTokens": 10, "cacheReadInputTokens": 800, "cacheWriteInputTokens": 20, "outputTokens": 5},
            Usage(830, 800, 5, None, 835),
        ),
        ({"promptTokens": 9, "promptTokensDetails": {"cachedTokens": 5}}, Usage(9, 5, None, None, 9)),
        ({"prompt_tokens": 9, "promptTokens": None, 5: 6}, Usage(9, None, None, None, 9)),
        ({"prompt_tokens": "12", "completion_tokens": "3"}, Usage(12, None, 3, None, 15)),
        ({"prompt_tokens": None, "completion_tokens": 7, "total_tokens": None}, Usage(None, None, 7, None, 7)),
        ({"prompt_tokens": 12.0, "completion_tokens": 0}, Usage(12, None, 0, None, 12)),
        ({"prompt_tokens": 3, "prompt_tokens_details": None}, Usage(3, None, None, None, 3)),
        ({"prompt_tokens": 3, "prompt_tokens_details": {"cached_tokens": None}}, Usage(3, None, None, None, 3)),
        ({"total_tokens": 9}, Usage(None, None, None, None, 9)),
        # a total that is less than its own parts is none
        ({"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 0}, Usage(9, None, 2, None, 11)),
        ({"input_tokens": 9, "output_tokens": 2, "total_tokens": 0}, Usage(9, None, 2, None, 11)),
        ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, Usage(0, None, 0, None, 0)),
    ],
)
def test_what_a_provider_reports_has_one_meaning(reported: dict[str, Any], expected: Usage) -> None:
    assert usage.parse(reported) == expected


@pytest.mark.parametrize(
    "reported",
    [
        *(None, {}, [], "12", 12, True, {"prompt_tokens": None}, {"prompt_tokens": -5}, {"prompt_tokens": True}),
        *({"prompt_tokens": 1.5}, {"prompt_tokens": "many"}, {"prompt_tokens": "1_0"}, {"prompt_tokens": "٣"}),
        *({"prompt_tokens": float("nan")}, {"prompt_tokens": float("inf")}, {"prompt_tokens": 10**400}, {"x": 1}),
    ],
)
def test_what_reports_nothing_usable_is_unknown(reported: Any) -> None:
    assert usage.parse(reported) is None


def test_totals_add_what_is_known_and_count_the_answers_that_said_nothing() -> None:
    said = [
        {"role": "user", "content": "q", "usage": {"total_tokens": 1000}},
        {"role": "assistant", "content": "1"},
        {"role": "assistant", "content": "2", "usage": None},
        {"role": "assistant", "content": "3", "usage": {}},
        {"role": "assistant", "content": "4", "usage": {"prompt_tokens": 10}},
        {"role": "assistant", "content": "5", "usage": {"prompt_tokens": "12", "completion_tokens": "3"}},
        {
            "role": "assistant",
            "content": "6",
            "usage": {"prompt_tokens": None, "completion_tokens": 7, "total_tokens": None},
        },
        {
            "role": "assistant",
            "content": "7",
            "usage": {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10},
        },
    ]

    assert usage.total(said) == Totals(
        input=27, cached=None, output=15, reasoning=None, total=42, reported=4, answers=7
    )


def test_where_nothing_was_answered_nothing_was_spent() -> None:
    assert usage.total([]) == Totals(0, 0, 0, 0, 0, 0, 0)
    assert usage.total([{"role": "user"}, {"role": "tool"}]) == Totals(0, 0, 0, 0, 0, 0, 0)
    assert Totals(None, None, None, None, None, 0, 0) == Totals()


def test_without_any_report_the_totals_are_unknown_and_not_zero() -> None:
    assert usage.total([{"role": "assistant"}]).total is None
    assert usage.total([{"role": "assistant"}, {"role": "user"}]) == Totals(answers=1)


def test_only_an_answer_has_usage() -> None:
    assert usage.of({"role": "tool", "usage": {"total_tokens": 5}}) is None
    assert usage.of({"role": "assistant", "usage": {"total_tokens": 5}}) == Usage(total=5)


def test_of_two_reports_about_one_answer_each_count_is_the_larger() -> None:
    first = {
        "input_tokens": 10,
        "output_tokens": 1,
        "cache_creation": {"ephemeral_1h_input_tokens": 7},
        "service_tier": "batch",
    }
    zeros = {
        "input_tokens": 0,
        "output_tokens": 0,
        "cache_creation": {"ephemeral_1h_input_tokens": 0},
        "service_tier": None,
    }
    last = {"input_tokens": None, "output_tokens": 80, "iterations": [{"input_tokens": 10, "output_tokens": 80}]}

    whole = usage.fuller(usage.fuller(usage.fuller(None, first), zeros), last)

    assert whole == {**first, "output_tokens": 80, "iterations": [{"input_tokens": 10, "output_tokens": 80}]}
    assert usage.fuller(whole, zeros) == whole


VALUE = st.one_of(
    st.none(), st.integers(), st.floats(), st.text(max_size=5), st.dictionaries(st.just("cached_tokens"), st.integers())
)
KEYS = [
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "input",
    "prompt_tokens_details",
]


@given(st.dictionaries(st.sampled_from(KEYS), VALUE))
def test_any_report_is_read_without_an_exception_and_never_below_zero(reported: dict[str, Any]) -> None:
    found = usage.parse(reported)

    assert found is None or (found.total is not None and found.total >= 0)
    assert usage.counts(usage.fuller(reported, reported)) == usage.counts(reported)


@pytest.mark.parametrize(
    ("reported", "reasoning"),
    [(6, 6), ("6", 6), (6.0, 6), (6.5, None), (True, None), (-1, None), ([6], None), (None, None), (2**70, None)],
)
def test_reasoning_is_a_count_or_unknown_whatever_stands_there(reported: object, reasoning: int | None) -> None:
    told = {"prompt_tokens": 5, "completion_tokens": 7, "completion_tokens_details": {"reasoning_tokens": reported}}

    assert usage.counts(told) == (5, None, 7, reasoning, 12)
