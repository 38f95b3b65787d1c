"""HTML exports: one file that shows texts as typed, loads nothing and runs nothing."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_lib.export import export
from sessions_lib.export import html as export_html
from sessions_lib.text import visible

Messages = list[dict[str, Any]]
PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@dataclass
class Member:
    id: str
    title: str
    parent: str | None = None
    place: str = ""


class Page(HTMLParser):
    """Tags, ids and the text outside the style sheet."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._style = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._style = tag == "style"

    def handle_endtag(self, tag: str) -> None:
        self._style = False

    def handle_data(self, data: str) -> None:
        self.text += "" if self._style else data

    def all(self, tag: str, name: str) -> list[str | None]:
        return [attributes.get(name) for found, attributes in self.tags if found == tag]


OURS = {
    *("html", "head", "meta", "title", "style", "body", "main", "header", "h1", "h2", "p", "ul", "li", "nav", "a"),
    *("section", "article", "div", "span", "details", "summary", "pre", "code", "h3", "h4", "h5", "h6", "ol", "em"),
    *("strong", "blockquote", "hr", "br", "table", "thead", "tbody", "tr", "th", "td", "s"),
}


def assert_nothing_live(html: str) -> Page:
    page = Page(html)
    for tag, attributes in page.tags:
        assert tag in OURS
        assert not [name for name in attributes if name.startswith("on") or name in ("style", "src", "srcset")]
        if "href" in attributes:
            assert (attributes["href"] or "").lower().startswith(("#", "http://", "https://", "mailto:"))
    assert page.all("meta", "http-equiv").count("Content-Security-Policy") == 1
    return page


CASE: Messages = [
    {"role": "user", "content": "<script>alert(1)</script> and literally &lt;b&gt;"},
    {
        "role": "assistant",
        "content": "<img src=x onerror=alert(6)> literally &lt;i&gt; [a](javascript:alert(7)) ![p](http://a.example/x.png)",
        "model": "<b>model</b>",
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
    {"role": "<i>role</i>", "content": "</pre></details></main><script>x</script>", "name": "<b>n</b>"},
]
META = {
    "title": "<b onmouseover=alert(5)>t</b>",
    "tags": ["<i>x</i>"],
    "id": '"><script>',
    "system": "</style><script>",
    "forked_from": {"session": "<script>", "messages": 1},
}


def test_everything_from_a_session_is_shown_as_typed() -> None:
    page = assert_nothing_live(
        export.export(CASE, META, "html", family=[Member("a", "<b>f</b>"), Member("b", "x")], links={"a": "https://x"})
    )

    for shown in (
        "<script>alert(1)</script> and literally &lt;b&gt;",
        "<img src=x onerror=alert(6)> literally &lt;i&gt; [a](javascript:alert(7)) !",
        '<img src=x onerror="alert(2)">',
        '{"q":"</code></pre><script>alert(3)</script>"}',
        "<svg/onload=alert(4)>",
        "<b onmouseover=alert(5)>t</b>",
        "<i>x</i>",
        "</pre></details></main><script>x</script>",
        "Forked from <script> inside turn 1",
    ):
        assert shown in page.text


def test_the_policy_allows_the_style_sheet_by_its_hash_and_nothing_else() -> None:
    html = export.export([{"role": "user", "content": "q"}], {}, "html")
    sheet = re.search(r"<style>(.*?)</style>", html, re.DOTALL)
    assert sheet is not None

    digest = base64.b64encode(hashlib.sha256(sheet.group(1).encode()).digest()).decode()

    assert (
        f"content=\"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'\""
    ) in html
    assert "prefers-color-scheme: dark" in sheet.group(1)
    assert "@media print" in sheet.group(1)
    assert "url(" not in sheet.group(1)


def test_every_message_and_turn_has_an_anchor_once() -> None:
    said: Messages = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "r"},
        {"role": "assistant", "content": "a"},
        {"role": "user", "content": "q2"},
    ]

    page = Page(export.export(said, {}, "html"))

    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert ids == ["turn-1", "message-1", "message-2", "message-3", "message-4", "turn-2", "message-5"]


def test_a_result_stands_with_its_call_and_an_orphan_by_itself() -> None:
    said: Messages = [
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "buy", "arguments": '{"item":"rope"}'}}]},
        {"role": "tool", "tool_call_id": "c", "content": "bought", "is_error": True, "duration_ms": 3},
        {"role": "tool", "tool_call_id": "gone", "name": "lost", "content": "orphan"},
        {"role": "assistant", "tool_calls": [{"id": "d", "function": {"name": "buy", "arguments": "{}"}}]},
    ]

    html = export.export(said, {}, "html")

    assert (
        '<details><summary>buy(item=&#34;rope&#34;) <span class="facts failed">failed · 3 ms</span></summary><div>'
        "<pre>{&#34;item&#34;:&#34;rope&#34;}</pre><pre>bought</pre>"
        '<p class="note">The tool reported an error.</p></div></details>'
    ) in html
    assert '<summary>Tool result <span class="facts">lost</span></summary><div><p class="text">orphan</p>' in html
    assert '<summary>buy() <span class="facts">no result</span></summary>' in html
    assert html.count("bought") == 1


def test_the_family_is_a_tree_with_links_where_there_are_addresses() -> None:
    family = [
        Member("p", "Parent"),
        Member("here", "Here", "p", "after turn 2"),
        Member("c", "Child", "here", "inside turn 4"),
        Member("z", "Deleted parent", "gone", "after turn 1"),
    ]

    html = export.export([], {"id": "here"}, "html", family=family, links={"p": "p.html", "c": "javascript:alert(1)"})

    assert (
        '<ul><li><a href="p.html">Parent</a><ul><li><span class="here">Here</span> <span class="facts">after turn 2</span>'
        '<ul><li>Child <span class="facts">inside turn 4</span></li></ul></li></ul></li>'
        '<li>Deleted parent <span class="facts">after turn 1</span></li></ul>'
    ) in html


def test_a_family_that_goes_round_in_circles_is_drawn_once() -> None:
    html = export.export(
        [], {}, "html", family=[Member("a", "A", "b"), Member("b", "B", "a"), Member("a", "A again", "b")]
    )

    page = Page(html)
    assert page.text.count("A") + page.text.count("B") == 2


def test_pictures_inside_are_shown_and_pictures_elsewhere_are_not_loaded() -> None:
    said: Messages = [
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": PIXEL}},
                {"type": "image_url", "image_url": {"url": "https://a.example/x.png"}},
                {"type": "image_url", "image_url": {"url": "data:image/svg+xml;base64,PHN2Zy8+"}},
                {"type": "image_url", "image_url": {"url": 'data:image/png;base64,"><script>'}},
            ],
        }
    ]

    page = Page(export.export(said, {}, "html"))

    assert page.all("img", "src") == [PIXEL]
    assert "[image on another server] https://a.example/x.png" in page.text
    assert "[image/svg+xml, 6 B]" in page.text
    assert page.all("script", "src") == []


def test_cut_refused_and_empty_answers_say_so() -> None:
    said: Messages = [
        {"role": "assistant", "content": "1, 2,", "finish_reason": "length"},
        {"role": "assistant", "content": None, "refusal": "I cannot."},
        {"role": "assistant", "content": ""},
    ]

    text = Page(export.export(said, {}, "html")).text

    assert "1, 2,\nCut off at the length limit (length)." in text
    assert "I cannot.\nThe model refused." in text
    assert "No text." in text


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        ([{"role": "user", "content": "q"}], "1 message · 1 turn"),
        ([{"role": "user"}, {"role": "assistant", "content": "a"}], "2 messages · 1 turn · tokens unknown"),
        (
            [
                {"role": "assistant", "content": "a", "usage": {"total_tokens": 1075}},
                {"role": "assistant", "content": "b"},
            ],
            "2 messages · 0 turns · 1,075 tokens (known for 1 of 2 answers) · unpriced",
        ),
    ],
)
def test_the_head_counts_and_leaves_unknown_unknown(said: Messages, facts: str) -> None:
    assert f'<p class="facts">{facts}</p>' in export.export(said, {"title": "T"}, "html")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("# A\n\ntext **b** `c<d>`", "<h3>A</h3>\n<p>text <strong>b</strong> <code>c&lt;d&gt;</code></p>\n"),
        ("[x]: http://a.example", "<p>[x]: http://a.example</p>\n"),
        ("&lt;b&gt;", "<p>&amp;lt;b&amp;gt;</p>\n"),
        (
            "[a](https://a.example)",
            '<p><a href="https://a.example" rel="noopener noreferrer nofollow">a</a></p>\n',
        ),
        ("[a](java&#115;cript:x)", "<p>[a](java&amp;#115;cript:x)</p>\n"),
        ("[a]()", '<p><a rel="noopener noreferrer nofollow">a</a></p>\n'),
        ("[a](/etc/passwd)", "<p>[a](/etc/passwd)</p>\n"),
        (
            "|a|\n|:-:|\n|b|",
            "<table>\n<thead>\n<tr>\n<th>a</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td>b</td>\n</tr>\n</tbody>\n</table>\n",
        ),
        ("|a|\n|-|\n|0|1|", '<p class="text">|a|\n|-|\n|0|1|</p>'),
        ("> " * 30 + "deep", f'<p class="text">{"&gt; " * 30}deep</p>'),
    ],
)
def test_an_answer_is_drawn_as_markdown_without_what_could_load_hide_or_run(answer: str, expected: str) -> None:
    assert export_html.answer(answer) == expected


def test_a_table_with_fewer_cells_than_its_head_and_pipes_in_cells_is_a_table() -> None:
    assert "<td>c|d</td>" in export_html.answer("1. |a|b|\n   |-|-|\n   |c\\|d|")


PIECE = st.one_of(
    st.text(max_size=6),
    st.sampled_from(
        [
            *(
                "<script>",
                "</p>",
                "&lt;",
                "&#60;",
                '"',
                "'",
                "`",
                "```\n",
                "[a](",
                "javascript:",
                ")",
                "![a](http://a)",
                "\n",
            ),
            *(
                "# ",
                "> ",
                "- ",
                "|a|\n|-|\n",
                "<!--",
                "onload=",
                "[x]: ",
                "<http://a>",
                "\x00",
                "\ud800",
                "\\",
                "</style>",
            ),
        ]
    ),
)
TEXT = st.lists(PIECE, max_size=12).map("".join)


@settings(max_examples=150)
@given(TEXT, TEXT, TEXT)
def test_no_text_becomes_a_tag_or_an_attribute(said: str, name: str, title: str) -> None:
    messages: Messages = [
        {"role": "user", "content": said, "name": name},
        {
            "role": "assistant",
            "content": said,
            "model": name,
            "finish_reason": name,
            "tool_calls": [{"id": "c", "function": {"name": name, "arguments": said}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": said},
        {"role": name, "content": said},
    ]

    html = export.export(messages, {"title": title, "tags": [name], "id": said, "system": title}, "html")

    html.encode()
    assert_nothing_live(html)


@settings(max_examples=100)
@given(TEXT)
def test_no_word_of_an_answer_is_lost(said: str) -> None:
    words = re.findall(r"[^\W_]+", re.sub(r"```.*", "", visible(said)))

    shown = export_html.answer(said)

    assert [word for word in words if word not in Page(shown).text + shown] == []


def test_each_block_of_a_right_to_left_answer_has_its_own_direction() -> None:
    assert export_html.answer("שלום\n\n- א\n- b\n\nHi") == (
        '<p dir="auto">שלום</p>\n<ul dir="auto">\n<li>א</li>\n<li>b</li>\n</ul>\n<p dir="auto">Hi</p>\n'
    )
    assert export_html.answer("Hi") == "<p>Hi</p>\n"
