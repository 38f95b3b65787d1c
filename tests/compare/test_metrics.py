"""The figures of a stretch: sums that say how much of them is known."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sessions_lib.compare import metrics
from sessions_lib.compare.metrics import Difference, Figure


def answer(text="ok", **keys):
    return {"role": "assistant", "content": text, **keys}


USED = {"prompt_tokens": 10, "completion_tokens": 4}


def test_a_stretch_is_counted_from_its_start_only():
    said = [
        {"role": "user", "content": "before"},
        answer("before", usage=USED, duration_ms=5),
        {"role": "user", "content": "Find the way."},
        answer(
            None,
            usage=USED,
            duration_ms=100,
            tool_calls=[{"id": "c", "function": {"name": "look", "arguments": "{}"}}],
        ),
        {"role": "tool", "tool_call_id": "c", "content": "no", "is_error": True, "duration_ms": 7},
        answer("There is no way.", usage=USED, duration_ms=200),
    ]

    assert dict(metrics.of(said, 2).items()) == {
        "turns": Figure(1, 0, 0),
        "steps": Figure(2, 0, 0),
        "tokens_in": Figure(20, 2, 2),
        "tokens_out": Figure(8, 2, 2),
        "time_ms": Figure(307, 2, 2),
        "tool_calls": Figure(1, 0, 0),
        "errors": Figure(1, 0, 0),
        "answer_words": Figure(4, 0, 0),
    }


def test_what_no_answer_reported_is_unknown():
    found = metrics.of([{"role": "user", "content": "q"}, answer()])

    assert found.tokens_in == Figure(None, 0, 1)
    assert found.time_ms == Figure(None, 0, 1)


def test_what_some_answers_reported_is_a_lower_bound():
    found = metrics.of([answer(usage=USED), answer()])

    assert found.tokens_out == Figure(4, 1, 2)
    assert found.tokens_out.is_partial


def test_a_stretch_without_answers_took_nothing():
    assert metrics.of([]).tokens_out == Figure(0, 0, 0)


def test_a_turn_that_ends_in_a_call_has_no_answer():
    said = [
        {"role": "user", "content": "q"},
        answer("I look", tool_calls=[{"id": "c", "function": {"name": "look", "arguments": "{}"}}]),
    ]

    assert metrics.of(said).answer_words.value == 0


def test_times_that_are_no_times_are_unknown():
    for value in ("5", True, -1, float("nan"), float("inf"), None):
        assert metrics.of([answer(duration_ms=value)]).time_ms.value is None


def test_a_difference_to_an_unknown_figure_is_unknown():
    assert metrics.difference(Figure(5, 1, 1), Figure(None, 0, 1)) is None
    assert metrics.difference(Figure(None, 0, 1), Figure(5, 1, 1)) is None


def test_a_difference_of_a_lower_bound_is_not_exact():
    assert metrics.difference(Figure(5, 1, 1), Figure(3, 1, 1)) == Difference(2, True)
    assert metrics.difference(Figure(5, 1, 2), Figure(3, 1, 1)) == Difference(2, False)


def test_every_figure_has_a_title_and_a_meaning():
    assert [name for name, _ in metrics.of([]).items()] == list(metrics.TITLES) == list(metrics.MEANINGS)


def test_the_rest_of_a_turn_is_a_turn_with_its_own_answer():
    said = [
        {"role": "user", "content": "q"},
        answer("one two three"),
        {"role": "user", "content": "r"},
        answer("four five"),
    ]

    found = metrics.of(said, 1)

    assert (found.turns.value, found.answer_words.value) == (2, 5)


def test_answers_that_follow_one_another_all_count():
    said = [
        {"role": "user", "content": "q"},
        answer("I look", tool_calls=[{"id": "c", "function": {"name": "look", "arguments": "{}"}}]),
        {"role": "tool", "tool_call_id": "c", "content": "north"},
        answer("Go nor", interrupted=True),
        answer("Go north now."),
    ]

    assert metrics.of(said).answer_words.value == 5


messages = st.lists(
    st.one_of(
        st.just({"role": "user", "content": "q"}),
        st.builds(
            lambda text, used, took, call: answer(
                text,
                usage=USED if used else None,
                duration_ms=took,
                tool_calls=[{"id": "c", "function": {"name": "look", "arguments": "{}"}}] if call else None,
            ),
            st.sampled_from(["", "one", "one two three"]),
            st.booleans(),
            st.sampled_from([None, 0, 412]),
            st.booleans(),
        ),
        st.builds(lambda bad: {"role": "tool", "tool_call_id": "c", "content": "", "is_error": bad}, st.booleans()),
        st.just({"role": "system", "content": "s"}),
    ),
    max_size=12,
)


@given(messages, st.integers(0, 12))
def test_what_two_stretches_took_adds_up_to_the_whole_wherever_the_fork_is(said, at):
    at = min(at, len(said))
    start, own, whole = (dict(metrics.of(said, *ends).items()) for ends in ((0, at), (at, None), (0, None)))

    for name in metrics.TITLES:
        cut = name == "turns" and at < len(said) and said[at]["role"] != "user" and start["turns"].value
        assert (start[name].value or 0) + (own[name].value or 0) == (whole[name].value or 0) + bool(cut)
        assert start[name].of + own[name].of == whole[name].of
