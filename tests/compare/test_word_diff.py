"""Words that differ: found, joined as an editor would, and left alone where texts are not alike."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_lib.compare import word_diff, word_diff_words
from sessions_lib.compare.word_diff import difference
from sessions_lib.compare.word_diff_marks import Segment


def marked(segments):
    """Segments as one text, the changed ones in brackets."""
    return "".join(f"[{text}]" if changed else text for text, changed in segments)


def both(a, b, alike=word_diff.ALIKE):
    found = difference(a, b, alike=alike)
    return marked(found.a), marked(found.b)


def test_changed_words_are_marked_on_both_sides():
    assert both("Go west at dawn.", "Go east at dawn.") == ("Go [west] at dawn.", "Go [east] at dawn.")


def test_equal_texts_have_no_mark():
    assert difference("Go west.", "Go west.") == word_diff.Difference(
        1.0, (Segment("Go west.", False),), (Segment("Go west.", False),)
    )


def test_two_empty_texts_are_the_same():
    assert difference("", "") == word_diff.Difference(1.0, (), ())


def test_texts_with_few_words_in_common_are_different_texts():
    found = difference("I got the Silver Key. What now?", "Suppose the lock is stuck. Is there another way in?")

    assert (found.a, found.b) == (None, None)
    assert found.likeness < word_diff.ALIKE


@pytest.mark.parametrize(("a", "b"), [("", "words"), ("words", ""), ("!!!", "???"), ("…", "words")])
def test_a_text_without_words_is_like_no_other(a, b):
    assert difference(a, b) == word_diff.Difference(0.0)


def test_scraps_of_common_words_between_changes_belong_to_the_change():
    a = "Go to the gate, show the key to the guard and light the torch. Follow the water to the gallery."
    b = "Go to the well behind the shop, climb down and light the torch. Follow the water to the gallery."

    assert both(a, b) == (
        "Go to the [gate, show the key to the guard] and light the torch. Follow the water to the gallery.",
        "Go to the [well behind the shop, climb down] and light the torch. Follow the water to the gallery.",
    )


def test_a_common_stretch_of_three_words_stands_between_changes():
    assert both("one two same same same three four", "five six same same same seven eight") == (
        "[one two] same same same [three four]",
        "[five six] same same same [seven eight]",
    )


def test_two_common_words_between_longer_changes_belong_to_the_change_and_three_stand():
    assert both(
        "start one two three same same four five six start",
        "start nine eight seven same same ten zero none start",
        alike=0.2,
    ) == (
        "start [one two three same same four five six] start",
        "start [nine eight seven same same ten zero none] start",
    )
    assert both(
        "start one two three four it all stays five six seven eight", "start z y x w it all stays v u t s", alike=0.2
    ) == (
        "start [one two three four] it all stays [five six seven eight]",
        "start [z y x w] it all stays [v u t s]",
    )
    assert both("start one same same two start go on", "start nine same same ten start go on") == (
        "start [one] same same [two] start go on",
        "start [nine] same same [ten] start go on",
    )


def test_a_new_sentence_is_marked_from_its_first_word():
    assert both("One is here. Two is there.", "One is here. New one here. Two is there.")[1] == (
        "One is here. [New one here.] Two is there."
    )


def test_white_space_is_kept_on_each_side_and_never_a_change():
    assert both("a  b\nc d", "a b c\td e") == ("a  b\nc d", "a b c\td [e]")


def test_a_character_is_a_word_where_a_script_has_no_spaces():
    assert both("数据库迁移完成", "数据库备份完成") == ("数据库[迁移]完成", "数据库[备份]完成")


def test_a_letter_is_not_parted_from_its_accent_nor_a_picture_from_its_colour():
    assert both("the cafe\u0301 is 👩‍💻 open", "the cafe is 👩 open") == (
        "the [cafe\u0301] is [👩‍💻] open",
        "the [cafe] is [👩] open",
    )


def test_an_apostrophe_does_not_part_a_word():
    assert both("the key doesn’t fit", "the key didn’t fit")[0] == "the key [doesn’t] fit"


def test_texts_too_long_for_words_are_compared_by_lines_first(monkeypatch):
    monkeypatch.setattr(word_diff, "_MOST_PAIRS", 2000)
    same = "\n".join(f"line {n} stays as it is" for n in range(20))

    found = difference(f"{same}\nthe old end\n{same}", f"{same}\nthe new end\n{same}")

    assert marked(found.a) == f"{same}\nthe [old] end\n{same}"
    assert marked(found.b) == f"{same}\nthe [new] end\n{same}"


def test_a_megabyte_is_compared_in_bounded_memory():
    a = "".join(f"word{n % 7919} goes on line {n}\n" for n in range(40_000))

    found = difference(a, a.replace("on line 20000\n", "to the end\n"))

    assert found.likeness > 0.99
    assert [segment.text for segment in found.b if segment.changed] == ["to the end"]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [("a b", "a  b", True), ("a\n\nb", "a b", True), ("a b", "a b.", False), ("a b", "a c", False)],
)
def test_texts_that_differ_in_white_space_only_are_known(a, b, expected):
    assert difference(a, b).is_spacing_only is expected


def test_union_marks_what_either_reading_marks():
    first = (Segment("one ", False), Segment("two", True), Segment(" three", False))
    second = (Segment("one two ", False), Segment("three", True))

    assert marked(word_diff.union(first, second)) == "one [two] [three]"


@given(st.text(max_size=80), st.text(max_size=80))
def test_each_side_joined_is_its_whole_text(a, b):
    found = difference(a, b, alike=0.0)

    if found.a is not None:
        assert "".join(segment.text for segment in found.a) == a
        assert "".join(segment.text for segment in found.b) == b


words = st.lists(st.sampled_from(["a", "b", "c", "d", "e", ".", ",", "x", "y"]), max_size=30).map(" ".join)


def test_changes_that_come_to_touch_are_one_and_their_signs_are_told_once():
    found = difference(". a c b", ". c c b a", alike=0.0)

    assert (marked(found.a), marked(found.b)) == (". [a] c b", ". [c] c b [a]")


@given(words, words)
def test_what_is_not_marked_is_the_same_on_both_sides(a, b):
    found = difference(a, b, alike=0.0)

    if found.a is not None:
        common = [" ".join(s.text for s in side if not s.changed).split() for side in (found.a, found.b)]
        assert "".join(common[0]) == "".join(common[1])


@given(words, words)
def test_segments_alternate_and_are_never_empty(a, b):
    found = difference(a, b, alike=0.0)

    for side in (found.a or (), found.b or ()):
        assert all(segment.text for segment in side)
        assert all(x.changed != y.changed for x, y in itertools.pairwise(side))


def test_a_marked_text_is_the_sequence_of_its_segments():
    marked_text = difference("Go west at dawn.", "Go east at dawn.").b

    assert marked_text == (Segment("Go ", False), Segment("east", True), Segment(" at dawn.", False))
    assert (len(marked_text), marked_text[1], marked_text[-1:]) == (3, ("east", True), ((" at dawn.", False),))
    assert marked_text.is_changed
    assert marked_text.text == "Go east at dawn."


@pytest.mark.parametrize(
    "text", ["", "  ", ".!", "one", " one.", "a/b (c)", "one two  three…", "don’t", "数据 ok", "日本"]
)
def test_words_are_counted_without_being_cut_as_they_are_cut(text):
    assert word_diff.word_count(text) == len(word_diff_words.Words(text).words) == len(word_diff_words.split(text))


def test_signs_that_differ_in_a_long_common_stretch_are_marked_alone():
    assert both("one two, three four. five six", "one two three four! five six") == (
        "one two[,] three four[.] five six",
        "one two three four[!] five six",
    )
