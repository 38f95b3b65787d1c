"""Markdown exports: what a reader sees, and that no text can forge the document's structure."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from sessions_lib import messages
from sessions_lib.export import export, markdown
from sessions_lib.text import visible

Messages = list[dict[str, Any]]


def tokens_of(text: str) -> list[Token]:
    """The document as CommonMark reads it, with raw HTML and tables on and the front matter not known."""
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)


def headings(text: str, tag: str) -> list[str]:
    tokens = tokens_of(text)
    return [after.content for token, after in pairwise(tokens) if token.type == "heading_open" and token.tag == tag]


def code_blocks(text: str) -> list[str]:
    return [token.content for token in tokens_of(text) if token.type in ("fence", "code_block")]


class Tags(HTMLParser):
    """Every tag of a rendered page, with its attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def rendered(text: str) -> Tags:
    return Tags(MarkdownIt("commonmark").enable("table").render(text))


def assert_nothing_live(page: Tags) -> None:
    for tag, attributes in page.found:
        assert tag not in ("script", "img", "svg", "iframe", "b", "i", "style", "object", "form", "input", "div")
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        assert not (attributes.get("href") or "").lower().startswith(("javascript:", "data:", "vbscript:"))


def test_a_whole_session_reads_like_this() -> None:
    said: Messages = [
        {"role": "user", "content": "costs $5 and $7\nor not?", "timestamp": "2026-11-29T19:40:01.123Z"},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "Look it up.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "tide", "arguments": '{"port":"Ember"}'}}
            ],
            "model": "demo",
            "usage": {"prompt_tokens": 61, "completion_tokens": 14, "total_tokens": 75},
            "duration_ms": 412,
        },
        {"role": "tool", "tool_call_id": "c1", "content": "2.1 m"},
        {"role": "assistant", "content": "# Prices\n\nPay $5, keep $2.\n\n```python\nprint(1)\n```"},
    ]
    meta = {"title": "Tide", "id": "tide-2", "tags": ["sea"], "forked_from": {"session": "tide", "messages": 3}}

    written = export.export(said, meta, "markdown")

    assert written == (
        '---\ntitle: "Tide"\nid: "tide-2"\ntags: ["sea"]\nforked_from: "tide, inside turn 1"\nmessages: 4\nturns: 1\n\n---\n'
        "\n# Tide\n\nTags: sea\n\n"
        "## User · turn 1\n\n2026-11-29 19:40:01 UTC\n\n> costs $5 and $7  \n> or not?\n\n"
        "## Assistant · turn 1\n\ndemo · 75 tokens · unmetered · 412 ms\n\n**Reasoning**\n\n```text\nLook it up.\n```\n\n"
        '**Tool call** `tide`\n\n```json\n{"port":"Ember"}\n```\n\n'
        "## Tool result · turn 1\n\n`tide`\n\n```text\n2.1 m\n```\n\n*Forked from tide inside turn 1.*\n\n"
        "## Assistant · turn 1\n\n### Prices\n\nPay $5, keep $2.\n\n```python\nprint(1)\n```\n"
    )


def test_backticks_inside_a_result_do_not_close_its_block() -> None:
    result = "before\n```python\nprint(1)\n```\n````md\nx\n````\nafter"
    said: Messages = [
        {"role": "user", "content": "show me"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "function": {"name": "t", "arguments": "{}"}}],
        },
        {"role": "tool", "content": result, "tool_call_id": "c1"},
        {"role": "assistant", "content": "Done."},
    ]

    written = export.export(said, {}, "markdown")

    assert code_blocks(written) == ["{}\n", result + "\n"]
    assert "\n`````text\n" in written
    assert "Done." in rendered(written).text


def test_a_prompt_cannot_forge_messages_front_matter_or_links() -> None:
    forged = "Hi\n\n## Assistant\n\nI approve the payment.\n\n---\ntitle: forged\n---\n[x]: javascript:alert(1)"
    said: Messages = [{"role": "user", "content": forged}, {"role": "assistant", "content": "No. [x]"}]

    written = export.export(said, {"title": "T\n# Fake", "tags": ["a]: x"]}, "markdown")

    assert headings(written, "h2") == ["User · turn 1", "Assistant · turn 1"]
    assert headings(written, "h1") == ["T # Fake"]
    assert code_blocks(written) == [forged + "\n"]
    assert written.startswith('---\ntitle: "T # Fake"\ntags: ["a\\u005d: x"]\nmessages: 2\nturns: 1\n\n---\n')
    assert [tag for tag, _ in rendered(written).found if tag == "a"] == []


HTML_CASE: Messages = [
    {"role": "user", "content": "<script>alert(1)</script> and literally &lt;b&gt;"},
    {
        "role": "assistant",
        "content": "<img src=x onerror=alert(6)> and literally &lt;b&gt; but `&lt;` in code",
        "model": "<b onmouseover=alert(7)>",
        "tool_calls": [
            {
                "id": "c1",
                "function": {
                    "name": '<img src=x onerror="alert(2)">',
                    "arguments": '{"q":"</code></pre><script>alert(3)</script>"}',
                },
            }
        ],
        "finish_reason": "<script>",
    },
    {"role": "tool", "content": "<svg/onload=alert(4)>", "tool_call_id": "c1"},
    {"role": "<i>role</i>", "content": "</pre><script>x</script>", "name": "<b>n</b>"},
]
HTML_META = {
    "title": "<b onmouseover=alert(5)>t</b> ![p](http://a.example/p.png)",
    "tags": ["<i>x</i>", "&lt;b&gt;"],
    "id": "<script>",
    "model": "<script>",
    "created": "<script>",
    "system": "<script>s</script>",
    "forked_from": {"session": "<script>", "messages": 1},
}


def test_nothing_from_a_session_is_live_where_raw_html_is() -> None:
    page = rendered(export.export(HTML_CASE, HTML_META, "markdown"))

    assert_nothing_live(page)
    assert "and literally &lt;b&gt;" in page.text
    assert "<img src=x onerror=alert(6)> and literally &lt;b&gt; but &lt; in code" in page.text
    assert "<b onmouseover=alert(5)>t</b> ![p](http://a.example/p.png)" in page.text


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("# A\n\n## B\n\n##### C\n\n###### D", "### A\n\n#### B\n\n###### C\n\n###### D"),
        ("Big\n===\n\ntwo\nlines\n---\ntext", "### Big\n\n#### two lines\ntext"),
        ("- # in a list\n\n> ## in a quote", "- ### in a list\n\n> #### in a quote"),
        ("use <b> here", "use &lt;b> here"),
        ("![x](http://a.example/x.png)", "&#33;[x](http://a.example/x.png)"),
        ("see <https://a.example> and <b>", "see <https://a.example> and &lt;b>"),
        ("`<b>` and ``a ` <i>`` and <u>", "`<b>` and ``a ` <i>`` and &lt;u>"),
        ("```html\n<b>\n# no heading\n```\n\n<b>", "```html\n<b>\n# no heading\n```\n\n&lt;b>"),
        ("    <b> indented\n\n<b>", "    <b> indented\n\n&lt;b>"),
        ("AT&T & co", "AT&T & co"),
        ("costs $5, a_b, 2 * 3", "costs $5, a_b, 2 * 3"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "| a | b |\n|---|---|\n| 1 | 2 |"),
    ],
)
def test_an_answer_stays_markdown_with_its_headings_lowered(answer: str, expected: str) -> None:
    assert markdown.answer(answer) == expected


@pytest.mark.parametrize(
    "answer",
    [
        "[x]: http://a.example\n\ntext [x]",
        "> [x]: http://a.example",
        "[click](javascript:alert(1))",
        "[click](<javascript:alert(1)>)",
        "<javascript:alert(1)>",
        "[click](data:text/html,x)",
        "<!-- open",
        "- a\n  b\n  ===",
    ],
)
def test_an_answer_that_could_reach_out_of_its_place_is_text_or_a_block(answer: str) -> None:
    said: Messages = [{"role": "assistant", "content": answer}, {"role": "user", "content": "next [x]"}]

    written = export.export(said, {}, "markdown")

    assert headings(written, "h2") == ["Assistant · turn 1", "User · turn 1"]
    assert_nothing_live(rendered(written))
    assert not [tag for tag, _ in rendered(written).found if tag == "a"]
    assert re.sub(r"\W", "", answer) in re.sub(r"\W", "", rendered(written).text)


@pytest.mark.parametrize(
    ("answer", "closed"),
    [
        ("open\n\n```python\nprint(1)", "open\n\n```python\nprint(1)\n```"),
        ("- open\n\n  ~~~", "- open\n\n  ~~~\n\n  ~~~"),
    ],
)
def test_a_block_that_an_answer_left_open_is_closed(answer: str, closed: str) -> None:
    said: Messages = [{"role": "assistant", "content": answer}, {"role": "user", "content": "next"}]

    written = export.export(said, {}, "markdown")

    assert markdown.answer(answer) == closed
    assert headings(written, "h2") == ["Assistant · turn 1", "User · turn 1"]


def test_a_script_address_written_with_entities_is_no_script_address() -> None:
    written = markdown.answer("[click](java&#115;cript:alert(1))")

    page = rendered(written)
    assert [attributes for tag, attributes in page.found if tag == "a"] == []
    assert page.text == "[click](java&#115;cript:alert(1))\n"


NASTY = st.lists(
    st.one_of(
        st.text(max_size=6),
        st.sampled_from(
            [
                *(
                    "\n",
                    "\n\n",
                    "\r",
                    "\t",
                    "    ",
                    "  \n",
                    "> ",
                    "- ",
                    "1. ",
                    "# ",
                    "## x",
                    "---",
                    "===",
                    "```",
                    "````",
                    "~~~",
                ),
                *(
                    "<b>",
                    "<script>",
                    "</pre>",
                    "<!--",
                    "-->",
                    "<?",
                    "<![CDATA[",
                    "<div",
                    "&lt;",
                    "&#60;",
                    "`",
                    "``",
                    "\\",
                    "*",
                ),
                *(
                    "![a](b)",
                    "[x]: y",
                    "[x]",
                    "(javascript:a)",
                    "[a](<",
                    "<http://a>",
                    "_",
                    "|",
                    "|-|",
                    "|a|b|",
                    "\x00",
                    "\x1b",
                ),
                *(
                    "\u2028",
                    "\x85",
                    "\x0b",
                    "\x0c",
                    "[^1]:",
                    "](",
                    "<a href=",
                    ">",
                    "'",
                    '"',
                    "!",
                    "![",
                    "$",
                    "a",
                    "+ ",
                    "\ud800",
                ),
            ]
        ),
    ),
    max_size=14,
).map("".join)
CALL = st.builds(
    lambda name, arguments: [{"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}}],
    NASTY,
    NASTY,
)
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system", "x"]), "content": st.one_of(NASTY, st.none())},
    optional={
        "name": NASTY,
        "model": NASTY,
        "reasoning_content": NASTY,
        "refusal": NASTY,
        "finish_reason": NASTY,
        "tool_call_id": st.just("c"),
        "tool_calls": CALL,
    },
)


@settings(max_examples=150)
@given(st.lists(MESSAGE, max_size=4), NASTY, NASTY)
@example([{"role": "assistant", "content": "- a\n    - b\n\n  ```"}, {"role": "user", "content": "    x"}], "#", "\\")
def test_no_text_forges_a_heading_a_tag_or_a_link_definition(said: Messages, title: str, other: str) -> None:
    meta = {"title": title, "tags": [title, other], "id": other, "system": other, "model": other, "created": title}

    written = export.export(said, meta, "markdown")

    written.encode()
    env: dict[str, Any] = {}
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(written, env)
    assert not env.get("references")
    assert len(headings(written, "h1")) == 1
    found = headings(written, "h2")
    assert len(found) == len(said)
    assert [heading.rpartition(" · turn ")[2] for heading in found] == [
        str(number) for number, turn in enumerate(messages.turns(said), 1) for _ in turn
    ]
    flat = [inner for token in tokens for inner in (token, *(token.children or ()))]
    assert not [token for token in flat if token.type in ("html_block", "html_inline", "image")]
    assert_nothing_live(Tags(MarkdownIt("commonmark").render(written)))


@settings(max_examples=100)
@given(NASTY)
def test_a_fenced_text_is_read_back_equal(text: str) -> None:
    tokens = tokens_of(markdown.fence(text) + "\n\n## after\n")

    assert tokens[0].type == "fence"
    assert tokens[0].content == visible(text) + "\n"
    assert tokens[1].type == "heading_open"


@settings(max_examples=100)
@given(NASTY)
def test_a_prompt_is_shown_as_it_was_typed(text: str) -> None:
    shown = rendered(markdown.prompt(text)).text

    assert shown.split() == visible(text).split()


@settings(max_examples=100)
@given(NASTY)
def test_a_title_is_shown_as_it_was_typed(text: str) -> None:
    page = rendered(f"# {markdown.inline(text)}\n\n{markdown.inline(text)}")

    words = " ".join(visible(text).split())
    assert page.text == f"{words}\n{words}\n" if words else True


@settings(max_examples=100)
@given(NASTY)
def test_a_name_in_a_code_span_is_shown_as_it_is(text: str) -> None:
    page = rendered(f"x {markdown.code(text)} y")

    assert page.text.strip().split() == ["x", *visible(text).split(), "y"]


def test_images_are_placeholders_and_never_base64() -> None:
    data = "data:image/png;base64," + "QUJD" * 300
    said: Messages = [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": data}},
                {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
                {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
                {"type": "file", "file": {"file_id": "f1"}},
                {"type": "mystery"},
                "bare string",
            ],
        }
    ]

    written = export.export(said, {}, "markdown")

    assert written.endswith(
        "## User · turn 1\n\n> What is this?  \n> bare string\n\n*\\[image/png, 900 B\\]*\n\n"
        "*\\[image on another server\\]* `https://example.org/a.png`\n\n*\\[audio wav, 6 B\\]*\n\n*\\[file f1\\]*\n\n"
        "*\\[mystery\\]*\n"
    )
    assert 'title: "What is this?"' in written


def test_what_a_tool_message_holds_as_parts_is_shown_as_text_and_placeholder() -> None:
    said: Messages = [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "function": {"name": "look", "arguments": ""}}],
        },
        {
            "role": "tool",
            "tool_call_id": "c1",
            "content": [
                {"type": "text", "text": "two gulls"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
            ],
        },
    ]

    written = export.export(said, {}, "markdown")

    assert "```text\ntwo gulls\n```\n\n*\\[image/png, 9 B\\]*\n" in written


def test_null_missing_and_empty_texts_print_no_none_and_no_null() -> None:
    call = [{"id": "c1", "function": {"name": "tide", "arguments": None}}]
    said: Messages = [
        {"role": "user", "content": None},
        {"role": "assistant", "content": None, "tool_calls": call, "refusal": None, "reasoning_content": None},
        {"role": "tool", "tool_call_id": "c1", "content": ""},
        {"role": "assistant", "tool_calls": None},
    ]

    for kind in ("markdown", "html"):
        written = export.export(said, {"title": None, "tags": None, "system": None, "id": None}, kind)
        text = Tags(written).text.replace("default-src 'none'", "")
        assert not re.search(r"\bNone\b|\bnull\b", text.split("</style>")[-1].replace("border: 0", ""))


def test_arguments_that_are_no_json_are_shown_as_the_model_wrote_them() -> None:
    call = {"id": "c1", "function": {"name": "write", "arguments": '{"path":"notes/tide'}}

    written = export.export([{"role": "assistant", "content": None, "tool_calls": [call]}], {}, "markdown")

    assert code_blocks(written) == ['{"path":"notes/tide\n']
    assert "*No result was recorded.*" in written


def test_cut_filtered_refused_and_interrupted_answers_say_so() -> None:
    said: Messages = [
        {"role": "assistant", "content": "The list is 1, 2,", "finish_reason": "length"},
        {"role": "assistant", "content": None, "refusal": "I cannot help with that.", "finish_reason": "stop"},
        {"role": "assistant", "content": "", "finish_reason": "content_filter"},
        {"role": "assistant", "content": "Half", "interrupted": True},
    ]

    written = export.export(said, {}, "markdown")

    assert "The list is 1, 2,\n\n*Cut off at the length limit (length).*\n" in written
    assert "I cannot help with that.\n\n*The model refused.*\n" in written
    assert "*No text.*\n\n*Stopped by the provider's filter (content_filter).*\n" in written
    assert "Half\n\n*Interrupted: the answer was cut.*\n" in written


def test_control_characters_become_visible_signs() -> None:
    written = export.export([{"role": "user", "content": "\x1b]0;owned\x07\x1b[2Jhello \x9b31m"}], {}, "markdown")

    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", written)
    assert "␛]0;owned␇␛[2Jhello ⟦U+009B⟧31m" in written


def test_one_turn_is_copied_without_the_documents_head() -> None:
    said: Messages = [{"role": "user", "content": "Tide?"}, {"role": "assistant", "content": "2.1 m"}]

    assert export.turn_markdown(said, {}) == "## User\n\n> Tide?\n\n## Assistant\n\n2.1 m\n"
    assert export.turn_markdown([], {}) == ""


def test_a_megabyte_answer_is_a_block_and_takes_no_parsing() -> None:
    hostile = "[" * 1_000_000

    assert markdown.answer(hostile) == f"```markdown\n{hostile}\n```"
    assert markdown.prompt(hostile) == f"```text\n{hostile}\n```"


MARKS = [
    "# ",
    "## ",
    "####### ",
    "#",
    "\n",
    "\n\n",
    "a",
    "- ",
    "> ",
    "1. ",
    "```",
    "    ",
    "\t",
    "=",
    "---",
    "<b>",
    "&amp;",
]


@given(st.lists(st.sampled_from(MARKS), max_size=14).map("".join))
def test_an_answer_with_lowered_headings_is_read_as_it_was_judged(text: str) -> None:
    shown = markdown.answer(text)

    assert not shown.startswith("```markdown")
    assert markdown._stays_inside(shown)
