"""One way to make a stored text harmless to show."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_lib import names
from sessions_lib.text import escaped, visible


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b]0;owned\x07\x1b[2Jhello \x9b31m", "␛]0;owned␇␛[2Jhello ⟦U+009B⟧31m"),
        ("\u202etxt.exe \x7f \ud83d \x00", "⟦U+202E⟧txt.exe ␡ \ufffd ␀"),
        ("a\u2066b\u2069 \u200fc\u061cd", "a⟦U+2066⟧b⟦U+2069⟧ ⟦U+200F⟧c⟦U+061C⟧d"),
        ("pass\u200bword \ufeffx\u2060y \u3164", "pass⟦U+200B⟧word ⟦U+FEFF⟧x⟦U+2060⟧y ⟦U+3164⟧"),
        ("\U000e0068\U000e0069", "⟦U+E0068⟧⟦U+E0069⟧"),
        ("a\r\nb\rc\u2028d\u2029e\x85f\ng\th", "a\nb\nc\nd\ne\nf\ng\th"),
        ("\x0b\x0c", "␋␌"),
        ("a\r\nb", "a\nb"),
    ],
)
def test_what_cannot_be_seen_is_named(text: str, expected: str) -> None:
    assert visible(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "plain\ttext\nof two lines",
        "👩\u200d💻 می\u200cخواهم ❤\ufe0f",
        "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "maré 北 ⟦U+202E⟧",
    ],
)
def test_scripts_and_emoji_stay_whole(text: str) -> None:
    assert visible(text) == text


@given(st.text(alphabet=st.characters()))
def test_nothing_that_steers_or_hides_is_left(text: str) -> None:
    shown = visible(text)

    shown.encode("utf-8")
    assert visible(shown) == shown
    assert {unicodedata.category(char) for char in shown if char not in "\n\t"} & {"Cc", "Cs", "Zl", "Zp"} == set()
    assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u200b\ufeff")


@given(st.text())
def test_a_line_that_was_made_visible_needs_nothing_more(text: str) -> None:
    line = names.one_line(text)

    assert visible(line) == line


@pytest.mark.parametrize("text", ["\u202etxt.exe", "a\u2028b\x85c\x7f\x9b\ufeff", "\U000e0068 👩\u200d💻 é"])
def test_json_says_the_same_with_nothing_unseen_in_it(text: str) -> None:
    written = escaped(json.dumps({"a": text}, ensure_ascii=False))

    assert json.loads(written) == {"a": text}
    assert visible(written) == written


def test_json_keeps_what_can_be_seen_as_it_is() -> None:
    assert escaped('{\n  "a": "maré \u202e 👩\u200d💻"\n}') == '{\n  "a": "maré \\u202e 👩\u200d💻"\n}'
