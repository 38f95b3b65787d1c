"""What a model's text may do on a page: be read as Markdown, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from pages.shared.safe_markdown import GrowingMarkdown, safe_label, safe_markdown
from sessions_lib import answers
from sessions_lib.text import visible

READER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
READER.validateLink = lambda url: True  # no scheme is refused by the reader itself


def tokens(text):
    found = []
    for token in READER.parse(text):
        found += [token, *(token.children or [])]
    return found


def shown(text):
    """The text a reader sees, code included, one entry a block."""
    return [
        "".join(child.content or ("\n" if child.type == "softbreak" else "") for child in token.children)
        if token.type == "inline"
        else token.content.rstrip("\n")
        for token in READER.parse(safe_markdown(text))
        if token.type in ("inline", "fence", "code_block")
    ]


@pytest.mark.parametrize(
    "text",
    [
        "costs $5 and $7",
        "Pay $5, keep $2.",
        "$$x^2$$ and \\$ kept",
        ":red[boo] :smile: :material/home: 1:30",
        "email:example@host.org",
        "a::b :::note :100: 12:30:45",
        "![cat](https://example.org/cat.png)",
        "![cat][ref]",
        "<b>bold</b> <img src=x onerror=alert(1)> <!-- note --> <script>alert(2)</script>",
        "x < y and a <- b",
        "an odd ` backtick and ``two",
    ],
)
def test_what_streamlit_would_interpret_is_shown_as_typed(text):
    assert [one.replace("\u2060", "") for one in shown(text)] == [text.replace("\\$", "$")]


def test_headings_lists_links_and_emphasis_stay_markdown():
    kinds = {token.type for token in tokens(safe_markdown("# A\n\n- **b** *c*\n- [d](https://example.org)\n\n> e"))}

    assert {"heading_open", "bullet_list_open", "strong_open", "em_open", "link_open", "blockquote_open"} <= kinds


def test_a_table_stays_a_table():
    assert "table_open" in {token.type for token in tokens(safe_markdown("| a | b |\n| - | - |\n| $1 | `c` |"))}


@pytest.mark.parametrize(
    "table",
    [
        "| a | b | c |\n|:---|:---:|---:|\n| 1 | 2 | 3 |",
        "| a |\n|:-:|\n| 1 |",
        "a | b\n:-: | :-\n1 | 2",
        "| time |\n| :-: |\n| 12:30 |\n\n:smile: and `:tada:`",
        "> | a | b |\n> |:-:|:-:|\n> | 1 | 2 |",
        "- x\n\n  | a | b |\n  |:--|--:|\n  | 1 | 2 |",
    ],
)
def test_a_table_with_aligned_columns_is_a_table(table):
    assert "table_open" in {token.type for token in tokens(safe_markdown(table))}


ODD = [
    "data:text/html,hello", "ftp://a.example/x", "file:///etc/passwd", "javascript:alert(1)", "vbscript:x", "tel:123",
    "blob:https://a.example/x", "DATA:text/html,x", " data:text/html,x", "<data:text/html,x>", "data&colon;text/html,x",
    "d&#97;ta:text/html,x", "data\\:text/html,x", "/chat?session=a", "#top", "../x", "x.md", "//a.example/x", "`data:x`",
    "ms-settings:privacy", "vscode://file/x", "urn:isbn:1", "about:blank", "\tdata:x", "httpx://a.example", "http:x",
]  # fmt: skip


@pytest.mark.parametrize("address", ODD)
@pytest.mark.parametrize(
    "form", ["[a]({})", '[a]({} "title")', "[a][r]\n\n[r]: {}", "[r]\n\n[r]: {}", "<{}>", "[a](\n{})"]
)
def test_an_address_that_leads_elsewhere_is_shown_and_no_link(form, address):
    text = form.format(address)

    assert "link_open" not in {token.type for token in tokens(safe_markdown(text))}


@pytest.mark.parametrize("address", ["https://a.example/x_(y)", "HTTP://a.example:80/?q=1", "mailto:ann@a.example"])
@pytest.mark.parametrize("form", ["[a]({})", '[a]( {} "title")', "[a][r]\n\n[r]: {}"])
def test_an_address_of_the_web_or_of_mail_is_a_link(form, address):
    links = [token.attrs["href"] for token in tokens(safe_markdown(form.format(address))) if token.type == "link_open"]

    assert links == [address]


@given(
    st.lists(
        st.sampled_from([*ODD, "[a](", "[r]: ", "[a][r]", ")", "](", "]:", "[", "`", "\n", "\\", "<", ">", "(", "!["])
    ).map("".join)
)
def test_no_text_makes_a_link_to_anywhere_but_web_and_mail(text):
    links = [str(token.attrs["href"]) for token in tokens(safe_markdown(text)) if token.type == "link_open"]

    assert [link for link in links if not link.lower().startswith(("http://", "https://", "mailto:"))] == []


def test_a_footnote_stays_a_footnote():
    assert safe_markdown("so[^1]\n\n[^1]: a note") == "so[^1]\n\n[^1]: a note"


def test_an_address_stays_a_link_with_its_colon():
    assert safe_markdown("see http://localhost:8000/a:b?c=1") == "see http://localhost:8000/a:b?c=1"
    assert safe_markdown("<https://example.org/a>") == "<https://example.org/a>"


def test_code_is_shown_without_added_characters():
    code = 'let v = vec![1];\necho "$HOME" $x$ :red[a]\n<b>'

    assert shown(f"```rust\n{code}\n```") == [code]
    assert shown("run `echo $HOME :smile: <b>` now") == ["run echo $HOME :smile: <b> now"]


def test_a_code_block_of_a_list_item_is_code_and_the_next_item_keeps_its_number():
    assert safe_markdown("1. do\n   ```sh\n   ls $x\n   ```\n2. then") == "1. do\n   ````sh\n   ls $x\n   ````\n2. then"


def test_a_block_that_is_not_closed_is_code_to_its_end():
    assert shown("```py\nx = '$1'\n![a](b)") == ["x = '$1'\n![a](b)"]


def test_a_fence_inside_a_longer_fence_is_code():
    assert shown("````md\n```py\nx\n```\n````") == ["```py\nx\n```"]


def test_a_diagram_is_shown_as_its_source():
    assert safe_markdown("```mermaid\ngraph TD\n```") == "````text\ngraph TD\n````"
    assert safe_markdown("~~~ Mermaid {x}\ngraph TD\n~~~") == "```text\ngraph TD\n```"


@pytest.mark.parametrize(
    "text",
    [
        "- a\n  ```\n![x](https://evil.example/)",
        "    ```\n![x](https://evil.example/)",
        "foo\n14. bar\n    ```\n    ![x](https://evil.example/)",
        "`open\n\n![x](https://evil.example/) `",
        "a | b\n-|-\n` | ![x](https://evil.example/) `",
        "- ```\n  code\n  ```\n  ![x](https://evil.example/)",
        "> ```\n![x](https://evil.example/)",
        "[![x](https://evil.example/)](https://evil.example/)",
        "\\\\![x](https://evil.example/)",
        "\\`![x](https://evil.example/)`",
        "<div>\n![x](https://evil.example/)",
        "```a`b\n![x](https://evil.example/)\n```",
    ],
)
def test_no_place_for_an_image_lets_it_load(text):
    assert "image" not in {token.type for token in tokens(safe_markdown(text))}


MARKS = [
    "`",
    "``",
    "```",
    "~~~",
    "|",
    "\\",
    "!",
    "[",
    "]",
    "(",
    ")",
    "*",
    "#",
    "$",
    "a",
    "<b>",
    "<!--",
    "$x$",
    ":red[a]",
]
SPACE = ["\n", "\n\n", "\t", " ", "  ", "    ", "- ", "> ", "1. ", "14. ", "-|-\n"]
PIECES = st.sampled_from([*MARKS, *SPACE, ":smile:", "![x](https://e.example/)"])


@given(st.lists(PIECES, max_size=30).map("".join))
@example("![x](https://e.example/)```")
def test_no_text_makes_an_image_or_html(text):
    kinds = {token.type for token in tokens(safe_markdown(text))}

    assert not kinds & {"image", "html_block", "html_inline"}


@given(st.text())
def test_any_text_can_be_sent_to_a_browser(text):
    safe_markdown(text).encode("utf-8")
    visible(text).encode("utf-8")
    assert "\n" not in safe_label(text)


def test_half_an_emoji_and_control_characters_are_named():
    assert visible("a\ud83d b\x1b[2J c\u202ed") == "a\ufffd b␛[2J c⟦U+202E⟧d"


def test_a_label_is_one_line_with_every_mark_escaped():
    assert safe_label("<b>t</b>\n :red[x] $y$") == "\\<b\\>t\\<\\/b\\> \\:red\\[x\\] \\$y\\$"
    assert safe_label("12. one two three", limit=9) == "12\\. one…"


def test_a_picture_code_in_a_label_is_parted():
    assert safe_label(":streamlit:") == "\\:\u2060streamlit\\:"


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("a -> b", "a -\u2060> b"),
        ("-> b", "-\u2060> b"),
        ("a <- b <-> c", "a &lt;\u2060- b &lt;\u2060-> c"),
        ("a -- b", "a -\u2060- b"),
        (">= 5 and <= 7", "\\>\u2060= 5 and &lt;\u2060= 7"),
        ("a ~= b", "a \\~\u2060= b"),
        ("a **->** b", "a **-\u2060>** b"),
        ("a -\\> b \\-> c", "a -\u2060\\> b \\-\u2060> c"),
        ("a -&gt; b", "a -\u2060&gt; b"),
        ("x->y i-- --flag a --- b => c", "x->y i-- --flag a --- b => c"),
        ("`a -> b`", "`a -> b`"),
        ("| a | b |\n| -- | -- |\n| -> | x |", "| a | b |\n| -- | -- |\n| -\u2060> | x |"),
        ("Title\n--", "Title\n--"),
        ("H~2~O and ~~gone~~", "H\\~2\\~O and ~~gone~~"),
    ],
)
def test_signs_that_would_become_another_sign_are_parted(typed, written):
    assert safe_markdown(typed) == written


def test_signs_in_a_label_are_parted():
    assert safe_label("a -> b >= c x->y") == "a \\-\u2060\\> b \\>\u2060\\= c x\\-\\>y"


@given(st.lists(PIECES, max_size=30), st.integers(0, 6))
@example(["a\n\n", "#", "#", " b\n", "c"], 0)
@example(["1. a\n\n", "2", ". b"], 0)
@example(["a\n", "b|c\n", "-|-", "x"], 0)
@example(["- a\n", "- b\n", "  c\n", "- d"], 0)
@example(["1. a\r\n\r\n", "2. b\r", "\nc\n\nd"], 0)
def test_a_text_that_grows_is_drawn_as_the_whole(pieces, enough):
    growing, text, settled = GrowingMarkdown(), "", []
    tail = ""

    for piece in pieces:
        text += piece
        done, tail = growing.draw(text, enough)
        settled += [done] if done else []

    blocks = [*settled, tail]
    assert [(token.type, token.content) for block in blocks for token in tokens(block)] == [
        (token.type, token.content) for token in tokens(safe_markdown(text))
    ]


def test_what_has_settled_of_a_growing_text_is_read_once(monkeypatch):
    read = []
    monkeypatch.setattr(
        "sessions_lib.answers.read", lambda text, plain=answers.read: read.append(len(text)) or plain(text)
    )
    growing = GrowingMarkdown()
    paragraph = "A **bold** word about the tide. " * 10 + "\n\n"

    for count in range(1, 301):
        growing.draw(paragraph * count, 1200)

    assert max(read) <= 3 * len(paragraph)
