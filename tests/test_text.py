"""Numbers, time spans, places and made titles: written in one way wherever they stand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_lib import text

MILLISECONDS = st.one_of(st.integers(0, 3_000), st.integers(0, 10_000_000))


# --- numbers ---------------------------------------------------------------------------------------------------------


def test_counts_have_their_plural_and_thousands_marked():
    assert [text.count(n, "message") for n in (0, 1, 1204)] == ["0 messages", "1 message", "1,204 messages"]
    assert text.count(2, "entry", "entries") == "2 entries"


def test_an_unknown_number_is_unknown_never_nothing():
    assert (text.number(None), text.number(0), text.duration(None)) == ("unknown", "0", "unknown")


def test_inherited_tokens_stand_beside_the_own_ones_not_in_them():
    assert text.tokens(1388, 529) == "1,388 own and 529 inherited tokens"
    assert text.tokens(1388) == "1,388 tokens"
    assert text.tokens(1) == "1 token"
    assert text.tokens(None) == "tokens unknown"
    assert text.tokens(None, 529) == "unknown own and 529 inherited tokens"
    assert text.tokens(1388, None) == "1,388 tokens of its own, inherited ones unknown"


def test_lists_are_joined_as_they_are_spoken():
    assert [text.listed("ABC"[:n]) for n in range(4)] == ["", "A", "A and B", "A, B and C"]


# --- time spans ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("milliseconds", "written"),
    [
        (0, "0 ms"),
        (412, "412 ms"),
        (999, "999 ms"),
        (999.6, "1.0 s"),
        (1_249, "1.2 s"),
        (1_250, "1.3 s"),
        (59_949, "59.9 s"),
        (59_950, "1 min 0 s"),
        (65_432, "1 min 5 s"),
        (119_999, "2 min 0 s"),
        (3_605_000, "1 h 0 min 5 s"),
    ],
)
def test_a_time_span_is_written_in_the_units_a_person_reads(milliseconds, written):
    assert text.duration(milliseconds) == written


@pytest.mark.parametrize(
    ("base", "other", "written"),
    [
        (740, 1_170, ("740 ms", "1.17 s", "+430 ms")),
        (1_170, 740, ("1.17 s", "740 ms", "−430 ms")),
        (412, 3_487, ("412 ms", "3.487 s", "+3.075 s")),
        (3_000, 65_000, ("3.0 s", "1 min 5 s", "+1 min 2 s")),
        (61_111, 65_432, ("1 min 1 s", "1 min 5 s", "+4 s")),
        (412, 412, ("412 ms", "412 ms", "=")),
    ],
)
def test_time_is_subtracted_before_it_is_rounded(base, other, written):
    assert difference(base, other) == written


def difference(base, other):
    step = text.shared_step(base, [other])
    size = text.duration(abs(other - base), step)
    return text.duration(base, step), text.duration(other, step), text.signed(other - base, size)


def written_ms(written):
    """A written time span as milliseconds."""
    units = {"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000}
    words = written.lstrip("+−=").replace(",", "").split()
    size = sum(round(float(value) * units[unit]) for value, unit in zip(words[::2], words[1::2], strict=True))
    return -size if written.startswith("−") else size


@given(st.lists(MILLISECONDS, min_size=2, max_size=4))
def test_times_and_their_differences_agree_as_they_are_written(times):
    step = text.shared_step(times[0], times[1:])
    written = [text.duration(ms, step) for ms in times]

    for ms, one in zip(times[1:], written[1:], strict=True):
        change = text.signed(ms - times[0], text.duration(abs(ms - times[0]), step))
        assert written_ms(one) - written_ms(written[0]) == written_ms(change)


@given(MILLISECONDS, st.sampled_from([None, 1, 10, 100, 1000]))
def test_what_is_written_is_what_was_rounded(milliseconds, step):
    assert written_ms(text.duration(milliseconds, step)) == text.shown_ms(milliseconds, step)


@given(MILLISECONDS)
def test_a_time_is_written_no_further_off_than_its_last_digit(milliseconds):
    off = abs(written_ms(text.duration(milliseconds)) - milliseconds)

    assert off <= (0 if milliseconds < 999.5 else 50 if milliseconds < 59_950 else 500)


# --- places and names ------------------------------------------------------------------------------------------------


def test_a_place_is_a_turn():
    assert text.place(3, is_inside=False) == "after turn 3"
    assert text.place(3, is_inside=True) == "inside turn 3"
    assert text.place(0, is_inside=False) == "before turn 1"


def test_a_session_is_called_by_its_title_its_prompt_or_its_id():
    assert text.display_title("Tides", "Why?", "quest-1") == "Tides"
    assert text.display_title(" ", "Why is it so?\nSay.", "quest-1") == "Why is it so?"
    assert text.display_title(None, " ", "quest-1") == "quest-1"


@pytest.mark.parametrize(
    ("title", "made"),
    [
        ("Refactor auth", "Refactor auth · inside turn 2"),
        ("Refactor auth · after turn 1", "Refactor auth · inside turn 2"),
        ("Refactor auth · inside turn 7 (3)", "Refactor auth · inside turn 2"),
        ("Refactor auth · from message 4 (2)", "Refactor auth · inside turn 2"),
        ("Refactor auth · from message 4 · from message 6", "Refactor auth · inside turn 2"),
        ("Refactor auth · from the start", "Refactor auth · inside turn 2"),
        ("Refactor auth · merged with Cave", "Refactor auth · inside turn 2"),
        ("Tea · after turn 1 of the wheel", "Tea · after turn 1 of the wheel · inside turn 2"),
        (" · after turn 1", "Session · inside turn 2"),
    ],
)
def test_a_fork_of_a_fork_is_one_name_with_one_mark(title, made):
    assert text.fork_title(title, "inside turn 2") == made


def test_a_long_name_is_cut_before_its_mark_not_with_it():
    made = text.fork_title("I need to get into the Cave of Echoes. Find out what it takes, and get it.", "after turn 1")

    assert made == "I need to get into the Cave of Echoes. Find out… · after turn 1"
    assert text.fork_title(made, "after turn 2") == made.replace("turn 1", "turn 2")


def test_a_fork_from_before_the_first_turn_starts_anew():
    assert text.fork_title("Tides", text.place(0, is_inside=False)) == "Tides · from the start"


def test_a_merge_of_merges_is_one_name_with_one_mark():
    assert text.merge_title("Tides", "Cave") == "Tides · merged with Cave"
    assert text.merge_title("Tides · merged with Cave", "Boats · after turn 2") == "Tides · merged with Boats"
    assert text.merge_title("Tides", "Tides · after turn 2") == "Tides · merged"


@given(st.text(max_size=20), st.lists(st.integers(0, 9), max_size=6))
def test_made_titles_never_grow(title, turns):
    made = once = text.fork_title(title, text.place(1, is_inside=True))
    for turn in turns:
        made = text.fork_title(made, text.place(turn, is_inside=True))

    assert len(made) <= len(once) + len("from the start")


@pytest.mark.parametrize(
    ("dollars", "written"),
    [
        (None, "unknown"),
        (0.0, "$0"),
        (0.000000013, "$0.000000013"),
        (0.000042, "$0.000042"),
        (0.00423, "$0.0042"),
        (0.0099, "$0.01"),
        (0.014, "$0.014"),
        (0.1, "$0.10"),
        (0.9996, "$1.00"),
        (1.1, "$1.10"),
        (1234.567, "$1,234.57"),
    ],
)
def test_money_is_written_to_the_cent_and_less_with_two_figures(dollars: float | None, written: str) -> None:
    assert text.money(dollars) == written


@pytest.mark.parametrize(
    ("cost", "unpriced", "unmetered", "is_partial", "written"),
    [
        (1.1, 0, 0, False, "$1.10"),
        (1.1, 0, 300, False, "$1.10"),
        (1.1, 300, 0, False, "≥ $1.10"),
        (1.1, 0, 0, True, "≥ $1.10"),
        (None, 300, 300, False, "unpriced"),
        (None, 0, 300, False, "unmetered"),
        (None, 0, 0, False, "unknown"),
    ],
)
def test_what_has_no_price_is_said_and_never_zero(
    cost: float | None, unpriced: int, unmetered: int, is_partial: bool, written: str
) -> None:
    assert text.spent(cost, unpriced, unmetered, is_partial=is_partial) == written
