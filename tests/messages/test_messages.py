"""Messages: identity, turns, and the view that any provider accepts."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from sessions_lib import messages
from sessions_lib.messages import tool_calls
from tests.record import GULL, LIGHTHOUSES, METRES, TALLER, call, is_valid_request, result, said

ROLE = st.sampled_from(["user", "assistant", "tool", "system", "odd"])
CALL_ID = st.sampled_from(["c1", "c2", "", None, 7])
ANY_CALL = st.fixed_dictionaries(
    {},
    optional={
        "id": CALL_ID,
        "type": st.just("function"),
        "function": st.none()
        | st.fixed_dictionaries(
            {},
            optional={
                "name": st.none() | st.text(max_size=4),
                "arguments": st.none() | st.text(max_size=6) | st.just("{}"),
            },
        ),
    },
)
CONTENT = (
    st.none()
    | st.text(max_size=8)
    | st.lists(
        st.text(max_size=3)
        | st.none()
        | st.fixed_dictionaries(
            {"type": st.sampled_from(["text", "image_url", "file", "mystery"])}, optional={"text": st.text(max_size=3)}
        ),
        max_size=3,
    )
)
ANY_MESSAGE = st.fixed_dictionaries(
    {"role": ROLE},
    optional={
        "content": CONTENT,
        "tool_calls": st.none() | st.lists(ANY_CALL | st.none(), max_size=3),
        "tool_call_id": CALL_ID,
    },
)


@given(st.lists(ANY_MESSAGE, max_size=12))
def test_whatever_was_stored_the_request_is_valid(stored: list[dict[str, object]]) -> None:
    before = json.dumps(stored)

    request = messages.for_request(stored)

    assert is_valid_request(request)
    json.dumps(request, ensure_ascii=False).encode("utf-8")
    assert json.dumps(stored) == before
    assert messages.for_request(stored) == request


@given(st.lists(ANY_MESSAGE, max_size=12), st.integers(0, 12))
def test_a_window_of_the_end_is_valid_too(stored: list[dict[str, object]], last: int) -> None:
    assert is_valid_request(messages.for_request(stored[-last:]))


def test_an_unanswered_call_is_answered_by_an_error_that_says_the_outcome_is_unknown() -> None:
    request = messages.for_request([LIGHTHOUSES, call("c1"), TALLER])

    assert [m["role"] for m in request] == ["user", "assistant", "tool", "user"]
    assert "unknown" in request[2]["content"]


def test_of_parallel_calls_the_answered_ones_keep_their_answers() -> None:
    request = messages.for_request([LIGHTHOUSES, call("c1", "c2", "c3"), result("c2", "2.4 m")])

    assert said(request[2:]) == [tool_calls.UNKNOWN_OUTCOME, "2.4 m", tool_calls.UNKNOWN_OUTCOME]
    assert [m["tool_call_id"] for m in request[2:]] == [made["id"] for made in request[1]["tool_calls"]]


def test_a_result_without_a_call_and_a_second_result_are_not_sent() -> None:
    assert said(messages.for_request([LIGHTHOUSES, result("c9", "left over"), GULL])) == said([LIGHTHOUSES, GULL])
    twice = [LIGHTHOUSES, call("c1"), result("c1", "42 boats"), result("c1", "42 boats"), GULL]
    assert said(messages.for_request(twice)) == [LIGHTHOUSES["content"], None, "42 boats", GULL["content"]]


def test_a_result_that_came_late_stands_behind_its_call() -> None:
    request = messages.for_request([LIGHTHOUSES, call("c1"), TALLER, result("c1", "late")])

    assert [m["role"] for m in request] == ["user", "assistant", "tool", "user"]
    assert request[2]["content"] == "late"


def test_a_reused_id_is_answered_in_the_latest_message_that_waits() -> None:
    stored = [call("c1"), result("c1", "first"), call("c1"), result("c1", "second")]

    assert said(messages.for_request(stored)) == [None, "first", None, "second"]
    assert said(messages.for_request([call("c1"), call("c1"), result("c1", "late")])) == [
        None,
        tool_calls.UNKNOWN_OUTCOME,
        None,
        "late",
    ]


def test_calls_of_one_message_that_share_an_id_are_told_apart() -> None:
    request = messages.for_request([call("c1", "c1"), result("c1", "one"), result("c1", "two")])

    assert is_valid_request(request)
    assert said(request)[1:] == ["one", "two"]


def test_arguments_that_are_no_json_object_are_sent_as_an_empty_one() -> None:
    for broken in ('{"path":"notes/tide', "[1]", "NaN", "", "null", '{"x":NaN}'):
        request = messages.for_request([call("c1", arguments=broken), result("c1")])

        assert request[0]["tool_calls"][0]["function"]["arguments"] == "{}", broken


def test_good_arguments_are_sent_as_they_were_written() -> None:
    written = '{ "port" : "Ember" }'

    assert messages.for_request([call("c1", arguments=written)])[0]["tool_calls"][0]["function"]["arguments"] == written


def test_only_the_keys_of_the_provider_are_sent() -> None:
    stored = {
        "role": "user",
        "content": "q",
        "name": "ana",
        "id": "m1",
        "timestamp": "2026-01-01",
        "x_vendor": 1,
        "usage": {},
    }

    assert messages.for_request([stored]) == [{"role": "user", "content": "q", "name": "ana"}]


def test_null_content_beside_calls_stays_null_and_an_empty_answer_is_left_out() -> None:
    request = messages.for_request([LIGHTHOUSES, call("c1"), result("c1"), {"role": "assistant", "content": ""}])

    assert request[1]["content"] is None
    assert len(request) == 3


def test_a_refusal_is_sent_and_reasoning_is_not() -> None:
    stored = [{"role": "assistant", "content": None, "refusal": "I cannot.", "reasoning_content": "hm"}]

    assert messages.for_request(stored) == [{"role": "assistant", "content": "I cannot."}]


def test_the_system_prompt_goes_first() -> None:
    assert messages.for_request([LIGHTHOUSES], system="Be brief.")[0] == {"role": "system", "content": "Be brief."}
    assert messages.for_request([LIGHTHOUSES], system="  ") == [LIGHTHOUSES]


def test_parts_no_provider_knows_become_a_placeholder() -> None:
    parts = [
        {"type": "text", "text": "What?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
        {"type": "mystery"},
        "bare",
    ]

    sent = messages.for_request([{"role": "user", "content": parts}])[0]["content"]

    assert sent == [parts[0], parts[1], {"type": "text", "text": "[mystery]"}, {"type": "text", "text": "bare"}]


def test_a_result_made_of_parts_is_sent_as_text() -> None:
    parts = [
        {"type": "text", "text": "two gulls"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
    ]

    assert messages.for_request([call("c1"), result("c1", parts)])[1]["content"] == "two gulls\n[image/png, 9 B]"


def test_a_turn_starts_at_each_prompt_and_nothing_is_left_over() -> None:
    system = {"role": "system", "content": "s"}
    stored = [system, LIGHTHOUSES, call("c1"), result("c1"), GULL, TALLER]

    assert messages.turns(stored) == [stored[:5], stored[5:]]
    assert messages.turns([GULL]) == [[GULL]]
    assert messages.turns([]) == []
    assert messages.turn_count(stored) == 2


def test_a_message_without_a_time_stays_with_its_turn() -> None:
    stored = [
        {**LIGHTHOUSES, "timestamp": "2026-03-01T10:00:00Z"},
        GULL,
        TALLER,
        {**METRES, "timestamp": "2026-03-01T10:05:00Z"},
        {"role": "user", "content": "never"},
    ]

    found = [moment and moment.strftime("%H:%M") for moment in messages.effective_times(stored)]

    assert found == ["10:00", "10:00", "10:05", "10:05", None]


def test_a_fork_is_forbidden_only_where_it_would_end_in_an_unanswered_call() -> None:
    stored = [LIGHTHOUSES, call("c1", "c2"), result("c1"), result("c2"), GULL, call("c3"), TALLER, METRES]

    assert sorted(tool_calls.forbidden_points(stored)) == [2, 3, 6]
    assert tool_calls.last_fork_point(stored) == 8
    assert tool_calls.last_fork_point(stored[:6]) == 5
    assert tool_calls.nearest_fork_points(stored, 3) == [1, 4]
    assert not tool_calls.is_fork_point(stored, 9)
    assert not tool_calls.is_fork_point(stored, -1)


def test_a_tool_that_says_nothing_counts_as_having_changed_the_world() -> None:
    stored = [call("c1", "c2", "c3"), result("c1", effect=False), result("c2", effect=True), result("c3")]

    assert [step.call.id for step in tool_calls.effects(stored)] == ["c2", "c3"]


def test_a_call_is_told_in_one_line() -> None:
    assert (
        tool_calls.label(tool_calls.calls_of(call("c1", name="buy", arguments='{"item":"a\\nb","n":2}'))[0])
        == 'buy(item="a\\nb", n=2)'
    )
    assert (
        tool_calls.label(tool_calls.calls_of(call("c1", arguments='{"path":"notes/tide'))[0])
        == 'tide({"path":"notes/tide)'
    )


def test_tool_names_from_elsewhere_are_sent_in_the_form_openai_takes() -> None:
    long_id = "call_" + "0" * 36
    call = {"id": long_id, "type": "function", "function": {"name": "dalle.text2im " + "x" * 80, "arguments": "{}"}}
    history = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": long_id, "content": "ok"}]

    assistant, result = messages.for_request(history)

    sent = assistant["tool_calls"][0]
    assert sent["function"]["name"] == "dalle_text2im_" + "x" * 50
    assert result["tool_call_id"] == sent["id"]
