"""Merging: the shared start once, whole turns by time, and nothing twice."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sessions_lib import messages
from sessions_lib.messages.content import Message
from sessions_lib.store import merge
from tests.record import call, is_valid_request, result, said


def user(content: str, at: Any = None, **more: Any) -> Message:
    return {"role": "user", "content": content, **({"timestamp": at} if at is not None else {}), **more}


def answer(content: str, at: Any = None, **more: Any) -> Message:
    return {**user(content, at, **more), "role": "assistant"}


def day(clock: str) -> str:
    return f"2026-03-01T{clock}Z"


def test_times_in_any_zone_or_none_are_compared_as_moments() -> None:
    a = [user("A1", "2026-03-01T09:00:00+08:00"), user("A2", "2026-03-01T03:00:00Z")]
    b = [user("B1", "2026-03-01T02:30:00+00:00"), user("B2", "2026-02-28T23:45:00-03:00")]
    c = [user("C1", "2026-03-01T02:00:00")]

    assert said(merge.merge(merge.merge(a, b), c)) == ["A1", "C1", "B1", "B2", "A2"]


def test_numeric_times_are_seconds_or_milliseconds() -> None:
    a = [user("S", 1772355600), user("MS", 1772355602000), user("F", 1772355604.5), user("STR", "1772355606")]
    b = [user("B", "2026-03-01T09:00:03Z")]

    assert said(merge.merge(a, b)) == ["S", "MS", "B", "F", "STR"]


def test_a_message_without_a_time_stays_with_its_turn() -> None:
    a = [user("A1", day("10:00:00")), answer("A2"), user("A3", day("10:10:00"))]

    assert said(merge.merge(a, [user("B1", day("10:05:00"))])) == ["A1", "A2", "B1", "A3"]


def test_a_session_without_times_keeps_its_place() -> None:
    a = [user("A1", day("10:00:00")), answer("A2")]
    n = [user("N1"), answer("N2")]

    assert said(merge.merge(a, n)) == ["A1", "A2", "N1", "N2"]
    assert said(merge.merge(n, a)) == ["N1", "N2", "A1", "A2"]


def test_the_shared_start_of_a_fork_is_there_once() -> None:
    shared = [user("Plan a walk.", day("10:00:00")), answer("Coast or hills?", day("10:00:01"))]
    a = [*shared, user("Coast.", day("10:00:02")), answer("Ten kilometres.", day("10:00:03"))]
    b = [*shared, user("Hills.", day("11:00:00")), answer("Bring boots.", day("11:00:02"))]

    merged = merge.merge(a, b)

    assert said(merged) == said(a) + said(b[2:])
    assert merge.merge(merged, b) == merged
    assert said(merge.merge(merge.merge(b, a), a)) == said(merged)


def test_a_clock_that_steps_back_turns_nothing_round() -> None:
    a = [user("A1", day("10:00:05")), answer("A2", day("10:00:03")), user("A3", day("10:00:20"))]

    assert said(merge.merge(a, [user("B1", day("10:00:10"))])) == ["A1", "A2", "B1", "A3"]


def test_a_turn_is_never_earlier_than_the_one_before_it() -> None:
    a = [user("A1", day("12:00:00")), user("A2", day("09:00:00"))]

    assert said(merge.merge(a, [user("B1", day("11:00:00"))])) == ["B1", "A1", "A2"]


def test_at_equal_times_the_first_session_goes_first() -> None:
    assert said(merge.merge([user("A", day("10:00:00"), id="a")], [user("B", day("10:00:00"), id="b")])) == ["A", "B"]


def test_calls_stay_with_their_results() -> None:
    a = [user("A", day("10:00:00")), call("c1"), result("c1", "a"), answer("A!", day("10:09:00"))]
    b = [user("B", day("10:05:00")), call("c1"), result("c1", "b"), answer("B!", day("10:06:00"))]

    assert said(merge.merge(a, b)) == ["A", None, "a", "A!", "B", None, "b", "B!"]


def test_a_turn_the_fork_cut_keeps_its_rest_behind_the_shared_start() -> None:
    a = [user("Q", day("10:00:00"), id="q"), answer("one", id="a1"), user("Later", day("10:01:00"), id="l")]
    b = [user("Q", day("10:00:00"), id="q"), answer("two", id="b1"), user("Early", day("10:00:30"), id="e")]

    assert said(merge.merge(a, b)) == ["Q", "one", "two", "Early", "Later"]


def test_a_turn_that_grew_since_receives_its_new_messages_in_place() -> None:
    b = [user("B", day("10:05:00"), id="b1")]
    merged = merge.merge([user("A1", day("10:00:00"), id="a1"), user("A2", day("10:10:00"), id="a2")], b)

    again = merge.merge(merged, [*b, answer("B!", id="b2")])

    assert said(again) == ["A1", "B", "B!", "A2"]


def test_new_messages_behind_a_call_stand_behind_all_of_its_results() -> None:
    asked = {**call("c1", "c2"), "id": "x1"}
    results = [{**result("c1", "one"), "id": "x2"}, {**result("c2", "two"), "id": "x3"}]
    mine = [user("Q", day("10:00:00"), id="q"), asked, *results, answer("Mine.", id="m")]
    theirs = [user("Q", day("10:00:00"), id="q"), asked, results[0], answer("Theirs.", id="t"), results[1]]

    merged = merge.merge(mine, theirs)

    assert [message["id"] for message in merged] == ["q", "x1", "x2", "x3", "t", "m"]


def test_ids_are_written_where_they_lack() -> None:
    merged = merge.merge([user("A", day("10:00:00"))], [user("B", day("11:00:00"))])

    assert [m["id"][:2] for m in merged] == ["h_", "h_"]


TURNS = st.lists(
    st.tuples(st.integers(0, 50) | st.none(), st.booleans(), st.sampled_from(["m1", "m2", None])),
    min_size=0,
    max_size=6,
)


def session(turns: list[tuple[int | None, bool, str | None]], name: str) -> list[Message]:
    made: list[Message] = []
    for number, (minute, has_call, shared) in enumerate(turns):
        at = None if minute is None else f"2026-03-01T10:{minute:02d}:00Z"
        made.append(user(f"{name}{number}", at, **({"id": f"{name}-{number}"} if shared is None else {})))
        if has_call:
            made += [call(f"c{number}"), result(f"c{number}", name)]
        made.append(answer(f"{name}{number}!"))
    return made


@given(TURNS, TURNS, st.integers(0, 4))
def test_merging_loses_nothing_doubles_nothing_and_is_done_once(one: Any, other: Any, shared: int) -> None:
    start = session([(1, True, None)] * shared, "s")
    a, b = start + session(one, "a"), start + session(other, "b")

    merged = merge.merge(a, b)

    ids = [m["id"] for m in merged]
    assert sorted(ids) == sorted({m["id"] for m in merge.with_ids(a) + merge.with_ids(b)})
    for source in (a, b):
        kept = [m["id"] for m in merge.with_ids(source)]
        assert [i for i in ids if i in set(kept)] == kept
    assert merge.merge(merged, b) == merged
    assert merge.merge(merged, a) == merged
    assert is_valid_request(messages.for_request(merged))
