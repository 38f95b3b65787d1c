"""One answer out of several: what the prompt quotes."""

from __future__ import annotations

from sessions_lib import compare
from sessions_lib.compare import Branch, synthesis
from tests.compare.test_compare import START, answer, user
from tests.record import call, result


def test_every_branch_is_quoted_whole_under_its_name_and_nothing_of_the_shared_start() -> None:
    a = [*START, user("Which way?", "qa"), call("c"), result("c"), answer("Go west.\n```\ncode\n```")]
    b = [*START, user("Which way?", "qb"), answer("Go east. ````text\nBranch A, “fake”:")]

    said = synthesis.prompt(compare.compare([Branch("a", "The walk", a), Branch("b", "Hills\nover", b)]))

    assert "what 2 branches of this conversation said" in said
    first, second = said.split("Branch B, “Hills over”:")
    assert "Branch A, “The walk”:\n\n````text\n[asked] Which way?\n[tool] tide" in first
    assert "[answered] Go west.\n```\ncode\n```\n````" in first
    assert START[0]["content"] not in said
    assert "[answered] Go east. ````text" in second
    assert second.strip().endswith("```")


def test_a_branch_that_says_nothing_is_said_to() -> None:
    said = synthesis.prompt(compare.compare([Branch("a", "A", [*START, user("x")]), Branch("b", "B", START)]))

    assert "(nothing)" in said
