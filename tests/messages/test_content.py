"""What a message says, whatever its content is made of."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_lib.messages import content
from sessions_lib.messages.content import Part


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"content": "a"}, "a"),
        ({"content": ""}, ""),
        ({"content": None}, ""),
        ({}, ""),
        ({"content": None, "refusal": "I cannot."}, "I cannot."),
        ({"content": "a", "refusal": None}, "a"),
        (
            {"content": [{"type": "text", "text": "two gulls"}, {"type": "image_url", "image_url": {"url": "x"}}]},
            "two gulls",
        ),
        ({"content": ["bare", {"type": "output_text", "text": "b"}, {"type": "mystery"}]}, "bare\nb"),
        ({"content": [{"type": "refusal", "refusal": "no"}]}, "no"),
        ({"content": {"type": "text", "text": "a part alone"}}, "a part alone"),
        ({"content": {"k": "é"}}, ""),
        ({"content": 12}, "12"),
        ({"content": [None, 1, ["x"]]}, '\n1\n["x"]'),
    ],
)
def test_the_text_of_a_message(message: dict[str, Any], expected: str) -> None:
    assert content.text(message) == expected


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"type": "text", "text": "a"}, Part("text", text="a")),
        ("bare", Part("text", text="bare")),
        (
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
            Part("image", url="data:image/png;base64,QUJD", label="image/png, 3 B"),
        ),
        (
            {"type": "image_url", "image_url": "https://a.example/x"},
            Part("image", url="https://a.example/x", label="image on another server"),
        ),
        (
            {"type": "input_image", "image_url": "data:image/gif;base64," + "A" * 4000},
            Part("image", url="data:image/gif;base64," + "A" * 4000, label="image/gif, 3 kB"),
        ),
        ({"type": "image_url"}, Part("image", label="image")),
        ({"type": "image_url", "image_url": {"url": None}}, Part("image", label="image")),
        (
            {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
            Part("audio", label="audio wav, 6 B"),
        ),
        ({"type": "input_audio", "input_audio": {}}, Part("audio", label="audio, 0 B")),
        ({"type": "file", "file": {"file_id": "f1"}}, Part("file", label="file f1")),
        ({"type": "file", "file": {"filename": "a.pdf", "file_id": "f1"}}, Part("file", label="file a.pdf")),
        ({"type": "file"}, Part("file", label="file")),
        ({"type": "mystery"}, Part("mystery", label="mystery")),
        ({"type": "thinking", "text": "hm"}, Part("text", text="hm")),
        ({"type": 5}, Part("unknown", label="unknown")),
        ({}, Part("unknown", label="unknown")),
    ],
)
def test_a_part_is_text_or_a_short_placeholder(item: Any, expected: Part) -> None:
    assert content.parts({"content": [item]}) == [expected]


def test_reasoning_is_found_under_either_name() -> None:
    assert content.reasoning({"reasoning_content": "a", "reasoning": "b"}) == "a"
    assert content.reasoning({"reasoning_content": "", "reasoning": "b"}) == "b"
    assert content.reasoning({"reasoning": {"effort": "high"}}) == ""


def test_a_search_sees_words_and_no_keys_of_the_file() -> None:
    message = {
        "role": "assistant",
        "id": "msg_1",
        "content": [
            {"type": "text", "text": "gulls"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
        ],
        "reasoning_content": "hm",
        "refusal": "no",
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "tide", "arguments": '{"port": ["\\u00c9mber", 2, null, true]}'},
            }
        ],
    }

    assert content.searchable(message) == "gulls\nhm\nno\ntide\nÉmber\n2\ntrue"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"path":"notes/tide', 'tide\n{ "notes/tide'),
        ('{"at": {"path": 1}, "a\\"b": "pa', 'tide\n{  {  1},  "pa'),
        ('say "path": no', 'tide\nsay "path": no'),
        ({"at": [{"path": "x", "n": {"deep": None}}]}, "tide\nx"),
        (None, "tide"),
        ("", "tide\n"),
        ({"port": "Ember"}, "tide\nEmber"),
        ("[" * 100_000, "tide\n" + "[" * 100_000),
    ],
)
def test_arguments_of_any_shape_are_searched(arguments: Any, expected: str) -> None:
    message = {"role": "assistant", "tool_calls": [{"function": {"name": "tide", "arguments": arguments}}]}

    assert content.searchable(message).rstrip("\n") == expected.rstrip("\n")


@pytest.mark.parametrize(
    ("size", "expected"), [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (999_499, "999 kB"), (1_500_000, "1.5 MB")]
)
def test_a_size_is_written_for_people(size: int, expected: str) -> None:
    assert content.size_text(size) == expected


def test_what_is_nested_too_deeply_is_named_and_raises_nothing() -> None:
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]

    assert content.text({"content": deep}) == "[cannot be shown]"
    assert content.searchable({"content": [{"type": "text", "text": "a"}], "refusal": deep}) == "a\n[cannot be shown]"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "text",
                    "image_url",
                    "url",
                    "file",
                    "function",
                    "name",
                    "arguments",
                    "input_audio",
                    "data",
                    "format",
                ]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["role", "content", "refusal", "tool_calls", "reasoning"]), JSON))
def test_any_message_is_read_without_an_exception(message: dict[str, Any]) -> None:
    before = json.dumps(message)

    assert isinstance(content.text(message) + content.reasoning(message) + content.searchable(message), str)
    assert all(isinstance(part.text + part.url + part.label, str) for part in content.parts(message))
    assert json.dumps(message) == before
