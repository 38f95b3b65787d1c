"""The branch map: lanes, dots and links of families, whoever forked whom and whatever is gone."""

from __future__ import annotations

from sessions_lib.compare import branch_map, metrics, wording
from sessions_lib.compare.branch_map import Link, Stretch


def talk(turns, tokens=10):
    """``turns`` turns of two messages; each answer of ``tokens`` tokens, or of unknown ones."""
    used = {} if tokens is None else {"usage": {"prompt_tokens": 1, "completion_tokens": tokens}}
    return [
        message
        for number in range(1, turns + 1)
        for message in (
            {"role": "user", "content": f"Question {number}"},
            {"role": "assistant", "content": f"Answer {number}", **used},
        )
    ]


def branch(name, turns, parent=None, inherited=0, **more):
    return branch_map.branch(name, name.title(), talk(turns, **more), parent=parent, inherited=inherited)


def lanes(drawn):
    return [(lane.branch.id, lane.depth, lane.x, lane.end) for lane in drawn.lanes]


def test_the_shared_start_is_drawn_once_in_the_parents_lane():
    drawn = branch_map.layout([branch("a", 3), branch("b", 4, "a", 4)])

    assert lanes(drawn) == [("a", 0, 0, 2), ("b", 1, 2, 3)]
    assert [(dot.lane, dot.x, dot.turn.number) for dot in drawn.dots] == [
        (0, 0, 1),
        (0, 1, 2),
        (0, 2, 3),
        (1, 2, 3),
        (1, 3, 4),
    ]
    assert drawn.links == (Link(0, 1, 1, 2),)
    assert drawn.width == 4


def test_forks_that_left_latest_stand_nearest_so_that_no_link_crosses_a_lane():
    family = [branch("a", 5), branch("early", 3, "a", 2), branch("late", 6, "a", 8), branch("on", 7, "late", 12)]

    assert [lane.branch.id for lane in branch_map.layout(family).lanes] == ["a", "late", "on", "early"]


def test_a_fork_of_a_fork_leaves_the_lane_that_has_the_message():
    family = [branch("a", 4), branch("b", 4, "a", 6), branch("c", 2, "b", 2)]

    drawn = branch_map.layout(family)

    assert drawn.links == (Link(0, 2, 1, 3), Link(0, 0, 2, 1))


def test_a_fork_inside_a_turn_shows_the_rest_of_the_turn_below_it():
    drawn = branch_map.layout([branch("a", 2), branch("b", 2, "a", 3)])

    assert [(dot.lane, dot.x, dot.turn.is_rest) for dot in drawn.dots if dot.lane == 1] == [(1, 1, True)]
    assert drawn.links == (Link(0, 1, 1, 1),)


def test_a_fork_without_a_turn_of_its_own_has_a_lane_and_a_link():
    drawn = branch_map.layout([branch("a", 2), branch("b", 2, "a", 4)])

    assert lanes(drawn)[1] == ("b", 1, None, None)
    assert drawn.lanes[1].tokens.value == 0
    assert wording.lane(drawn.lanes[1]) == "nothing of its own yet"
    assert drawn.links == (Link(0, 1, 1, 1.6),)


def test_both_forks_of_a_deleted_parent_share_its_lane():
    drawn = branch_map.layout([branch("b", 3, "gone", 4), branch("c", 3, "gone", 2)])

    assert lanes(drawn) == [("gone", 0, 0, 1), ("b", 1, 2, 2), ("c", 1, 1, 2)]
    assert drawn.lanes[0].branch.is_missing
    assert drawn.lanes[0].branch.title == "gone (deleted)"


def test_dots_are_sized_by_tokens_and_unknown_stays_unknown():
    drawn = branch_map.layout([branch("a", 1, tokens=10), branch("b", 1, tokens=40), branch("c", 1, tokens=None)])

    assert [dot.size for dot in drawn.dots] == [0.25, 1.0, None]
    assert [lane.tokens.value for lane in drawn.lanes] == [10, 40, None]
    assert [wording.lane(lane) for lane in drawn.lanes] == [
        "own: 1 turn, 10 tokens out",
        "own: 1 turn, 40 tokens out",
        "own: 1 turn, tokens unknown",
    ]


def test_branches_without_any_tokens_are_drawn():
    assert [dot.size for dot in branch_map.layout([branch("a", 1, tokens=0)]).dots] == [0.0]


def test_a_long_family_has_its_uneventful_stretches_shortened():
    drawn = branch_map.layout([branch("a", 300), branch("b", 202, "a", 400)])

    assert drawn.width < 20
    assert {dot.turn.number for dot in drawn.dots if dot.lane == 1} == {201, 202}
    assert [stretch for stretch in drawn.stretches if stretch.lane == 0] == [
        Stretch(0, 1.5, 3.5, 197),
        Stretch(0, 7.5, 9.5, 95),
    ]


def test_a_ring_of_parents_is_drawn_as_lanes_of_their_own():
    drawn = branch_map.layout([branch("a", 2, "b", 2), branch("b", 2, "a", 2), branch("c", 2, "c", 2)])

    assert sorted(lane.branch.id for lane in drawn.lanes) == ["a", "b", "c"]
    assert len({lane.branch.id for lane in drawn.lanes}) == 3


def test_of_too_many_branches_those_compared_and_their_ancestors_stay():
    family = [branch("root", 1), *(branch(f"f{n}", 2, "root", 2) for n in range(9)), branch("deep", 3, "f8", 4)]

    drawn = branch_map.layout(family, keep=["deep"], most=4)

    assert {lane.branch.id for lane in drawn.lanes} == {"root", "f8", "deep", "f0"}
    assert drawn.left_out == 7


def test_branches_that_were_never_read_count_among_those_left_out():
    parents = {"root": None, **{f"f{number}": "root" for number in range(500)}}

    chosen = branch_map.choose(parents, ["f499"], branch_map.FEW_LANES)
    drawn = branch_map.layout([branch(one, 2, parents[one], 2) for one in chosen], keep=["f499"], unread=495)

    assert chosen == ["root", "f0", "f1", "f2", "f3", "f499"]
    assert drawn.left_out == 495


def test_failures_and_verdicts_are_told():
    said = [*talk(1), {"role": "tool", "tool_call_id": "x", "content": "no", "is_error": True}, *talk(1)]

    drawn = branch_map.layout([branch_map.branch("a", "A", said, verdict="won"), branch("b", 1)])

    assert [dot.turn.failed for dot in drawn.dots if dot.lane == 0] == [1, 0]
    assert wording.turn_mark(drawn.dots[0].turn) == "10 tokens out · 1 call failed"
    assert [wording.lane(lane) for lane in drawn.lanes] == [
        "won · own: 2 turns, 20 tokens out",
        "own: 1 turn, 10 tokens out",
    ]


def test_an_empty_session_is_a_lane_without_dots():
    drawn = branch_map.layout([branch("a", 0)])

    assert lanes(drawn) == [("a", 0, None, None)]
    assert drawn.dots == ()


def test_a_turn_that_the_fork_cut_counts_in_each_lane_what_was_said_there():
    used = {"usage": {"prompt_tokens": 1, "completion_tokens": 3}}
    said = [
        {"role": "user", "content": "Which way?"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"name": "look"}}], **used},
        {"role": "tool", "tool_call_id": "c", "content": "north"},
        {"role": "assistant", "content": "North.", **used},
    ]

    drawn = branch_map.layout(
        [
            branch_map.branch("rerun", "Rerun", said, parent="gone", inherited=1),
            branch_map.branch("rest", "Rest", said, parent="gone", inherited=3),
        ]
    )

    assert [(lane.branch.id, lane.turns, lane.tokens.value) for lane in drawn.lanes] == [
        ("gone", 1, 3),
        ("rest", 1, 3),
        ("rerun", 1, 6),
    ]
    assert [metrics.of(said, at).tokens_out.value for at in (1, 3)] == [6, 3]


def test_tokens_that_some_answers_did_not_report_are_a_lower_bound():
    half = [*talk(1, tokens=10), *talk(1, tokens=None)]

    drawn = branch_map.layout([branch_map.branch("a", "A", half)])

    assert wording.lane(drawn.lanes[0]) == "own: 2 turns, ≥ 10 tokens out"
