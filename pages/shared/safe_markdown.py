"""Markdown that Streamlit may draw: a model's text with everything in it shown as typed that could load, run or vanish.

What an answer may be is decided in ``sessions_lib.answers``, for the exports, too. Here stands what Streamlit would
make of the rest: it sets ``$x$`` as mathematics, colours ``:red[x]``, turns ``:smile:`` and ``:material/home:`` into
pictures, a lone ``->`` or ``>=`` into a typographer's sign and a ``mermaid`` block into a diagram. All of these are
shown as they were typed.

Does not shorten, and never changes what is stored.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from sessions_lib import answer_markdown, answers
from sessions_lib.answers import PUNCTUATION, TARGET
from sessions_lib.text import visible

if TYPE_CHECKING:
    from markdown_it.token import Token

_LINE_END = re.compile("\r\n?|[\n\x85\u2028\u2029]")
_RUN = re.compile(r"`+")
_URL = re.compile(r"https?://[^\s<>\[\]()\"'`|\\!$]+")
_LANGUAGE = re.compile(r"[A-Za-z0-9+#._-]{1,30}")
# The two pictures that are put in after Markdown was read, where no escape holds; a word joiner (no width) parts them.
_PICTURE = re.compile(r":(?=streamlit:|material_\w+:)")
_JOINER = "\u2060"
# What becomes another sign where it stands alone, after Markdown was read too: -> <- <-> -- >= <= ~=
_TYPOGRAPHY = re.compile(
    r"(?<![^\s*_`~\[|])"
    r"(?:(\\?<|&lt;)(?:\\?-(?:\\?>|&gt;)?|\\?=)|(\\?-)(?:\\?>|&gt;|\\?-)|(\\?>|&gt;|\\?~)\\?=)"
    r"(?![^\s*_`~\]|])"
)
_FOOTNOTE = re.compile(r"[ \t>]*\[\^[^\]\s]+\]:")
_CODE_PICTURE = re.compile(r":(?=streamlit:|material[_/])")
_COLON_PAIR = re.compile(r":[\w+-]+:")
_SHORTCODE = re.compile(r":(?!material/|streamlit:)[\w+-][\w+-]*:")


@lru_cache(maxsize=512)  # a page draws the same thirty answers at each of its runs
def safe_markdown(text: str) -> str:
    """``text`` as Markdown in which nothing loads, runs or disappears.

    >>> safe_markdown("costs $5 :red[now] ![x](https://example.org/x.png)")
    'costs \\\\$5 \\\\:red[now] !\\\\[x](https://example.org/x.png)'
    """
    return _parted(answer_markdown.write(text, _Streamlit(visible(text))))


def _parted(written: str) -> str:
    """A colon pair in a code block loads the emoji plugin for the whole text, escaped shortcodes included."""
    return re.sub(r"\\:(?=[\w+-]+(?:\\:))", "\\\\:" + _JOINER, written) if _SHORTCODE.search(written) else written


class GrowingMarkdown:
    """A text that grows, as ``safe_markdown`` draws it; what has settled is read once and handed out once."""

    def __init__(self) -> None:
        self._read = 0  # characters that need not be read again
        self._settled = ""  # those of them that were not handed out, as Markdown

    def draw(self, text: str, enough: int) -> tuple[str, str]:
        """What can be drawn once for all, if that is more than ``enough`` characters, and all that stands behind it.

        ``text`` starts with the text of the call before.
        """
        plain = visible(text[self._read :])
        lines = plain.split("\n")
        reader = _Streamlit(plain)
        start, done, tokens = answer_markdown.settled(answers.read(plain), lines)
        settled = ""
        if start:
            self._settled += answer_markdown.written(done, lines, reader) + (
                "\n" if lines[start - 1].strip() else "\n\n"
            )
            *_, end = islice(_LINE_END.finditer(text, self._read), start)
            self._read = end.end()
            if len(self._settled) > enough and tokens[0].map and tokens[0].map[0] == start:  # not inside a list
                settled, self._settled = _parted(self._settled.rstrip("\n")), ""
        return settled, _parted(self._settled + answer_markdown.written(tokens, lines, reader))


def safe_label(text: str, limit: int | None = None) -> str:
    """``text`` on one line with every mark escaped: titles, tags, names and labels, which Streamlit reads as Markdown.

    With a ``limit``, longer text is cut and ends in ``…``.
    """
    line = " ".join(visible(text).split())
    if limit is not None and len(line) > limit:
        line = line[: limit - 1].rstrip() + "…"
    line = _PICTURE.sub(":" + _JOINER, line)
    joints = _joints(line, 0, len(line))
    line = "".join(_JOINER + char if at in joints else char for at, char in enumerate(line)) if joints else line
    return "".join("\\" + char if char in PUNCTUATION else char for char in line)


class _Streamlit:
    """Streamlit as the reader of a text."""

    lowered = 0

    def __init__(self, text: str) -> None:
        # Longer than any run of backticks in the text: no fence ends early, whatever a browser reads differently.
        self._fence = "`" * max(3, 1 + max((len(run) for run in _RUN.findall(text)), default=0))

    def text(self, line: str) -> str:
        return _plain(line)

    def code(self, content: str) -> str:
        return _CODE_PICTURE.sub(":" + _JOINER, content.replace("![", "!\u200b["))

    def block(self, token: Token) -> str:
        word = next(iter(token.info.split()), "")
        language = word if _LANGUAGE.fullmatch(word) and word.lower() != "mermaid" else "text"
        content = _CODE_PICTURE.sub(":" + _JOINER, token.content.removesuffix("\n"))
        return f"{self._fence}{language}\n{content}\n{self._fence}"

    def definition(self, content: str) -> str:
        return "\\" + _plain(content)


def _plain(line: str) -> str:
    """A line that is no code, with all that Streamlit would interpret escaped."""
    written = []
    position, end = 0, len(line)
    joints = _joints(line, 0, end)
    while position < end:
        if position in joints:
            written.append(_JOINER)
        char = line[position]
        following = line[position + 1 : position + 2]
        if char == "\\" and following in PUNCTUATION:
            written.append("\\" + ("&lt;" if following == "<" else following))
            position += 2
            continue
        if char == "h" and (url := _URL.match(line, position, end)) and not line[position - 1 : position].isalnum():
            written.append(url.group())
            position = url.end()
            continue
        written.append(_escaped(char, following, line, position))
        position += 1
    return "".join(written)


def _joints(line: str, start: int, end: int) -> set[int]:
    """Where a joiner goes, so that no two signs of ``line`` become one."""
    return {found.end(found.lastindex or 0) for found in _TYPOGRAPHY.finditer(line, start, end)}


def _escaped(char: str, following: str, line: str, position: int) -> str:
    if char in "$`":
        return "\\" + char
    if char == "<":
        return "&lt;"
    if char == ">" and following == "=":  # at the start of a line it would be a quotation
        return "\\>"
    if char == "~" and following != "~" and line[position - 1 : position] != "~":  # one alone is no mark
        return "\\~"
    if char == "[" and line[position - 1 : position] == "!":
        return "\\["
    if char in "(:" and line[position - 1 : position] == "]" and not _leads_out(line, position):
        return "\\" + char
    if char == "/" and line[max(0, position - 9) : position] == ":material":
        return "\\/"
    if char != ":":
        return char
    if _PICTURE.match(line, position):
        return "\\:" + _JOINER
    opens = following.isalpha() or following == ":" or _COLON_PAIR.match(line, position)
    return "\\:" if opens or _closes_pair(line, position) else ":"


def _leads_out(line: str, position: int) -> bool:
    """True if what stands behind a ``]`` makes a link to the web or to mail, or a footnote; no other is made one."""
    if TARGET.match(line, position):
        return True
    footnote = _FOOTNOTE.match(line)
    return footnote is not None and footnote.end() == position + 1


def _closes_pair(line: str, position: int) -> bool:
    """True if the colon at ``position`` ends a ``:shortcode:``."""
    start = position
    while start > 0 and (line[start - 1].isalnum() or line[start - 1] in "_+-"):
        start -= 1
    return 0 < start < position and line[start - 1] == ":"
