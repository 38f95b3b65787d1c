"""Lists lined up: what belongs together side by side, order kept, gaps where there is nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sessions_lib.compare import alignment


def keys(text):
    """Items with two keys: the letter as written, and in lower case."""
    return [(char, char.lower()) for char in text]


def by_place(*lists, alike=None):
    return alignment.by_likeness([keys(text) for text in lists], alike, then_by_place=True)


def test_what_nothing_lines_up_stands_by_its_place():
    assert by_place("abc", "x") == [(0, 0), (1, None), (2, None)]
    assert by_place("ab", "xyz") == [(0, 0), (1, 1), (None, 2)]


def test_places_are_counted_between_what_is_lined_up():
    assert by_place("ac", "xyc") == [(0, 0), (None, 1), (1, 2)]
    assert by_place("axcy", "acz") == [(0, 0), (1, None), (2, 1), (3, 2)]


def test_in_a_gap_with_one_more_on_one_side_likeness_decides_before_the_place():
    assert by_place("ab", "xyz", alike=lambda _a, i, _b, j: float((i, j) == (1, 2))) == [(0, 0), (None, 1), (1, 2)]
    assert by_place("ab", "xy", alike=lambda _a, i, _b, j: float((i, j) == (0, 1))) == [(0, 0), (1, 1)]


def test_equal_items_stand_side_by_side_around_a_gap():
    assert alignment.by_keys([keys("abc"), keys("ac")]) == [(0, 0), (1, None), (2, 1)]


def test_items_of_one_list_only_stand_alone_those_of_the_first_list_first():
    assert alignment.by_keys([keys("axc"), keys("ayc")]) == [(0, 0), (1, None), (None, 1), (2, 2)]


def test_a_weaker_key_lines_up_what_the_stronger_left():
    assert alignment.by_keys([keys("aBc"), keys("abc")]) == [(0, 0), (1, 1), (2, 2)]


def test_a_third_list_lines_up_with_whichever_has_the_item():
    assert alignment.by_keys([keys("ac"), keys("abc"), keys("bc")]) == [(0, 0, None), (None, 1, 0), (1, 2, 1)]


def test_an_empty_list_is_gaps_all_through():
    assert alignment.by_keys([keys(""), keys("ab")]) == [(None, 0), (None, 1)]
    assert alignment.by_keys([keys(""), keys("")]) == []


def test_what_no_key_lines_up_is_paired_by_likeness():
    rows = alignment.by_likeness([keys("ax"), keys("azy")], lambda _a, i, _b, j: 1.0 if (i, j) == (1, 2) else 0.0)

    assert rows == [(0, 0), (None, 1), (1, 2)]


def test_likeness_takes_the_largest_sum_not_the_first_match():
    alike = {(0, 0): 0.5, (0, 1): 0.6, (1, 1): 0.9}

    rows = alignment.by_likeness([keys("ab"), keys("cd")], lambda _a, i, _b, j: alike.get((i, j), 0.0))

    assert rows == [(0, 0), (1, 1)]


def test_a_long_gap_is_lined_up_near_its_diagonal_with_few_guesses():
    asked = []

    def alike(_a, i, _b, j):
        asked.append((i, j))
        return 1.0 if i == j else 0.0

    rows = alignment.by_likeness([[(f"a{n}",) for n in range(400)], [(f"b{n}",) for n in range(400)]], alike)

    assert rows == [(n, n) for n in range(400)]
    assert len(asked) < 4000


texts = st.text("abAB", max_size=12)


@given(st.lists(texts, min_size=2, max_size=4))
def test_every_item_stands_once_and_in_order(lists):
    rows = alignment.by_keys([keys(text) for text in lists])

    for column, text in enumerate(lists):
        assert [row[column] for row in rows if row[column] is not None] == list(range(len(text)))
    assert all(any(item is not None for item in row) for row in rows)


@given(st.lists(texts, min_size=2, max_size=4))
def test_by_place_too_every_item_stands_once_and_in_order(lists):
    rows = by_place(*lists, alike=lambda _a, i, _b, j: float((i + j) % 3 == 0))

    for column, text in enumerate(lists):
        assert [row[column] for row in rows if row[column] is not None] == list(range(len(text)))
