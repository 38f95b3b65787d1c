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


def info(name, parent=None, day=1):
    return SessionInfo(name, name, parent=parent, created=datetime(2026, 1, day, tzinfo=UTC))


def test_the_newest_fork_is_compared_with_its_parent():
    assert family.newest_pair([info("a", day=9), info("b", "a", 2), info("c", "a", 3)]) == ("a", "c")


def test_forks_of_a_deleted_parent_are_compared_with_each_other():
    assert family.newest_pair([info("b", "gone", 2), info("c", "gone", 3), info("x", day=9)]) == ("b", "c")


def test_without_a_fork_there_is_no_pair():
    assert family.newest_pair([info("a"), info("b"), info("c", "gone")]) is None
    assert family.newest_pair([info("a", "a")]) is None
