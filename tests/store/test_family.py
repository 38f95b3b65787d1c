"""Parents and children: relatives, and the pair that Compare opens on."""

from __future__ import annotations

from datetime import UTC, datetime

from sessions_lib.store import family
from sessions_lib.store.records import SessionInfo


def test_relatives_share_an_ancestor_even_one_that_is_gone():
    parents = {"a": None, "b": "a", "c": "gone", "d": "gone", "e": None}

    assert family.relatives(parents, ["b"]) == ["a", "b"]
    assert family.relatives(parents, ["c"]) == ["c", "d"]
    assert family.relatives(parents, ["b", "e"]) == ["a", "b", "e"]


def test_relatives_of_a_ring_end():
    assert family.relatives({"a": "b", "b": "a", "c": "a"}, ["c"]) == ["a", "b", "c"]


def test_a_line_of_parents_ends_at_one_that_is_gone_and_in_a_ring():
    parents = {"a": None, "b": "a", "c": "gone", "d": "e", "e": "f", "f": "e", "0": "e"}

    assert family.line("b", parents) == ["b", "a"]
    assert family.line("c", parents) == ["c", "gone"]
    assert family.line("d", parents) == ["d", "e", "f"]
    assert family.ring("d", parents) == ["e", "f"]
    assert family.ring("b", parents) == []
    assert family.relatives(parents, ["d"]) == ["d", "e", "f", "0"]


def test_a_tree_has_forks_under_their_parents_and_is_read_as_far_as_asked():
    listed = iter(["d", "a", "b", "c", "never read"])
    walk = family.tree(listed, [("d", "b"), ("b", "a")])

    assert [next(walk) for _ in range(4)] == [("a", 0), ("b", 1), ("d", 2), ("c", 0)]
    assert next(listed) == "never read"


def test_kin_are_found_over_parents_that_are_gone():
    lineage = {"b": "gone", "c": "gone", "d": "c", "x": "y"}

    assert sorted(family.kin(lineage, "b")) == ["b", "c", "d", "gone"]
    assert family.kin(lineage, "alone") == ["alone"]


def info(name, parent=None, day=1):
    return SessionInfo(name, name, parent=parent, created=datetime(2026, 1, day, tzinfo=UTC))


def test_the_newest_fork_is_compared_with_its_parent():
    assert family.newest_pair([info("a", day=9), info("b", "a", 2), info("c", "a", 3)]) == ("a", "c")


def test_forks_of_a_deleted_parent_are_compared_with_each_other():
    assert family.newest_pair([info("b", "gone", 2), info("c", "gone", 3), info("x", day=9)]) == ("b", "c")


def test_without_a_fork_there_is_no_pair():
    assert family.newest_pair([info("a"), info("b"), info("c", "gone")]) is None
    assert family.newest_pair([info("a", "a")]) is None
