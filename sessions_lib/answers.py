"""What a model's Markdown may be, decided once for the app and the exports: an answer as tokens.

``read`` decides: headings, lists, quotes, tables, code, emphasis and links to web and mail addresses are what they
are. All else is text as it was typed: HTML, pictures, links to anywhere else, the definitions of links, a table whose
rows have more cells than its head (Markdown would drop them), and a text that is too long or nested too deep.

HTML is drawn from the tokens (``export.html``), Markdown is written from them (``answer_markdown``).

Does not shorten, and never changes what is stored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

LONGEST = 60_000  # characters; parsing hostile Markdown takes more than linear time
DEEPEST = 12  # levels of lists and quotes; parsers stop at 20 and drop the rest

PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
# Where a link leads, right behind its text, and behind the name of one that is defined: to the web or to mail.
TARGET = re.compile(r"[(:][ \t]*(?:https?://|mailto:)", re.IGNORECASE)


def read(text: str) -> list[Token]:
    """The tokens of ``text``, of which none can load, run, or lead anywhere but to web and mail addresses.

    Beside markdown-it's own there are ``typed`` and ``definition`` (blocks whose ``content`` is shown as it is) and
    ``text_special`` (an inline text; ``markup`` is how it was typed).
    """
    if len(text) > LONGEST:
        return [_typed(text, 0, None)]
    tokens = _parser().parse(text)
    if any(token.level > DEEPEST for token in tokens):
        return [_typed(text, 0, None)]
    return _without_dropped_cells(tokens, text.split("\n"))


def leads_out(address: str) -> bool:
    """True if a link to ``address`` may be one: it leads to the web or to mail, and says so."""
    return address.lower().startswith(("https://", "http://", "mailto:"))


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt, rules_block, rules_inline  # when first used: listing sessions needs no Markdown

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.disable(["entity", "html_block", "html_inline", "text_join"])
    parser.validateLink = lambda url: leads_out(url)  # type: ignore[method-assign]  # narrower than its own

    def definition(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        if not rules_block.reference(state, start, end, silent):
            return False
        if not silent:
            token = state.push("definition", "", 0)
            token.map = [start, state.line]
            token.content = state.getLines(start, state.line, state.blkIndent, False).strip()
        return True

    def picture(state: StateInline, silent: bool) -> bool:
        start = state.pos
        if not rules_inline.image(state, silent):
            return False
        if not silent:
            token = state.tokens[-1]
            token.type, token.tag, token.children = "text_special", "", None
            token.content = token.markup = state.src[start : state.pos]
        return True

    def quote(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        is_sign = state.src.startswith(">=", state.bMarks[start] + state.tShift[start])  # "greater or equal"
        return not is_sign and rules_block.blockquote(state, start, end, silent)

    parser.block.ruler.at("reference", definition)
    parser.block.ruler.at("blockquote", quote, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    parser.inline.ruler.at("image", picture)
    return parser


def _typed(content: str, level: int, lines: list[int] | None) -> Token:
    from markdown_it.token import Token

    return Token("typed", "", 0, content=content, level=level, map=lines, block=True)


def _without_dropped_cells(tokens: list[Token], lines: Sequence[str]) -> list[Token]:
    """``tokens`` with each table that Markdown would shorten as it was typed: a record must not lose a cell."""
    kept: list[Token] = []
    table: list[Token] | None = None
    for token in tokens:
        if token.type == "table_open":
            table = []
        if table is None:
            kept.append(token)
            continue
        table.append(token)
        if token.type == "table_close":
            start, end = table[0].map or [0, 0]
            if _drops_cells(table, lines):
                content = "\n".join(line.lstrip(" \t>") for line in lines[start:end])
                table = [_typed(content, table[0].level, [start, end])]
            kept += table
            table = None
    return kept


def _drops_cells(tokens: Sequence[Token], lines: Sequence[str]) -> bool:
    cells: list[str] = []
    row = ""
    for before, token in pairwise(tokens):
        if token.type == "tr_open":
            cells = []
        elif token.type == "inline" and before.type == "td_open" and token.map:
            cells.append(token.content)
            row = lines[token.map[0]]
        elif token.type == "tr_close" and cells and _words(row) != _words(" ".join(cells)):
            return True
    return False


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text)
