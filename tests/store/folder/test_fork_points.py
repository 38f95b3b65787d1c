"""Where a fork may be, found from the end alone: the same points as by pairing the whole conversation."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sessions_lib.messages import tool_calls
from tests.record import call, result

IDS = st.sampled_from(["c1", "c2"])
MESSAGES = st.lists(
    st.one_of(
        st.just({"role": "user", "content": "q"}),
        st.just({"role": "assistant", "content": "r"}),
        st.lists(IDS, min_size=1, max_size=3).map(lambda ids: call(*ids)),
        IDS.map(result),
    ),
    max_size=14,
)


@given(MESSAGES)
def test_points_found_from_the_end_are_those_of_the_whole_conversation(messages: list[dict[str, Any]]) -> None:
    forbidden = tool_calls.forbidden_points(messages)
    allowed = [at for at in range(len(messages) + 1) if at not in forbidden]

    assert [at for at in range(len(messages) + 1) if tool_calls.is_fork_point(messages, at)] == allowed
    assert tool_calls.last_fork_point(messages) == allowed[-1]
