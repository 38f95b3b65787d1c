"""What differs, first: a sentence from the numbers, and the settings that differ."""

from __future__ import annotations

from typing import Any

import pytest

from sessions_lib import compare
from sessions_lib.compare import Branch, Comparison, summary
from sessions_lib.export import comparison as compare_export
from tests.compare.test_compare import START, answer, user
from tests.record import call, result

ASKED = user("Which way?", "q")


def compared(*branches: list[Any], metas: tuple[dict[str, Any], ...] = ({}, {}, {}, {})) -> Comparison:
    return compare.compare(
        [Branch(name, name, [*START, *said], meta) for name, said, meta in zip("abcd", branches, metas, strict=False)]
    )


def used(sent: int, wrote: int) -> dict[str, int]:
    return {"prompt_tokens": sent, "completion_tokens": wrote}


def test_the_sentence_says_calls_tokens_failures_and_words() -> None:
    a = [ASKED, answer("Go west at dawn and take a lamp along.", usage=used(100, 9))]
    b = [
        ASKED,
        {**call("c"), "usage": used(300, 9)},
        result("c", "no", is_error=True),
        {**call("d"), "usage": used(420, 9)},
        result("d"),
        answer("Go west.", usage=used(100, 9)),
    ]

    assert summary.differs(compared(a, b)) == [
        "B made 2 more tool calls and took 720 more tokens in; one call failed; its answer is 7 words shorter."
    ]
    assert summary.differs(compared(b, a)) == [
        "B made 2 fewer tool calls and took 720 fewer tokens in; none of its calls failed, 1 of A’s did; "
        "its answer is 7 words longer."
    ]


def test_each_other_branch_has_its_sentence_and_equal_ones_say_so() -> None:
    a, b = [ASKED, answer("West.", usage=used(1, 1))], [ASKED, answer("East.", usage=used(1, 1))]

    assert summary.differs(compared(a, b, [*a, user("And then?"), answer("Home.", usage=used(9, 1))])) == [
        "B took as much as A, as far as is known.",
        "C has 1 more turn and took 9 more tokens in; its answers are 1 word longer.",
    ]


def test_what_only_some_answers_reported_is_about() -> None:
    a = [ASKED, answer("West.", usage=used(10, 1)), user("And?"), answer("Home.", usage=used(10, 1))]
    b = [ASKED, answer("East.", usage=used(50, 1)), user("And?"), answer("Home.")]

    assert summary.differs(compared(a, b)) == ["B took about 30 more tokens in."]


def test_a_branch_without_messages_of_its_own_differs_in_nothing() -> None:
    assert summary.differs(compared([ASKED, answer("West.")], [])) == []


def test_settings_that_differ_are_what_was_said_before_what_the_session_names() -> None:
    a = [
        ASKED,
        answer("West.", model="llama3.1", base_url="http://localhost:11434/v1", timestamp="2026-11-30T10:00:00Z"),
    ]
    b = [ASKED, answer("East.", model="gpt-6", timestamp="2026-12-01T10:00:00Z")]
    found = compared(
        a,
        b,
        metas=(
            {"system": "Be brief and kind.", "model": "old"},
            {"system": "Be brief and honest.", "base_url": "https://api.openai.com/v1", "temperature": 0.2},
        ),
    )

    assert [(setting.name, setting.values) for setting in found.settings] == [
        ("Model", ("llama3.1", "gpt-6")),
        ("Endpoint", ("http://localhost:11434/v1", "https://api.openai.com/v1")),
        ("System prompt", ("Be brief and kind.", "Be brief and honest.")),
        ("Temperature", ("the model’s own", "0.2")),
        ("Date", ("2026-11-30", "2026-12-01")),
    ]
    marked = found.settings[2].words
    assert [segment.text for words in marked if words for segment in words if segment.changed] == ["kind", "honest"]


def test_what_is_unknown_or_equal_is_no_difference() -> None:
    a, b = [ASKED, answer("West.", model="m")], [ASKED, answer("East.")]

    assert compared(a, b).settings == ()


@pytest.mark.parametrize("form", ["html", "markdown", "terminal", "as_json"])
def test_every_form_begins_with_what_differs(form: str) -> None:
    a, b = [ASKED, answer("West.", model="llama3.1")], [ASKED, answer("Go east.", model="gpt-6")]
    found = compared(a, b, metas=({}, {"verdict": {"verdict": "won", "against": ["a"], "why": "It says go"}}))

    text = str(getattr(compare_export, form)(found))

    for said in ("its answer is 1 word longer", "llama3.1", "gpt-6", "B won over A: It says go"):
        assert said in text
    assert text.index("llama3.1") < text.index("1 difference" if form != "as_json" else "figures")


def test_the_same_verdict_is_told_once_with_who_and_when() -> None:
    given = {"verdict": "won", "against": ["a"], "who": "Ada", "when": "2026-12-01T08:00:00Z"}
    found = compared(
        [ASKED, answer("West.")], [ASKED, answer("East.")], metas=({"verdict": "lost"}, {"verdict": given})
    )

    assert summary.verdict(found) == "B won over A (Ada, 2026-12-01)"
