"""An answer as Markdown again, for a reader with a dialect of its own, so that no other reading is possible there.

``answers.read`` decides what is Markdown in it; the ``Reader`` says what its dialect would make of the rest.

Does not decide what a text may do, and does not shorten.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from sessions_lib import answers
from sessions_lib.text import visible

if TYPE_CHECKING:
    from markdown_it.token import Token

_COLUMNS = re.compile(r"(?:\|[ \t]*)?:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*(?:\|[ \t]*)?")  # |:---|:-:|
# What would begin a block at the start of a line; in the middle of a paragraph it is there only by its indentation.
_BEGINS = re.compile(r"#{1,6}(?=\s|\Z)|[-+*](?=\s|\Z)|>|(?:=+|-+)[ \t]*\Z|~{3}|\d{1,9}(?=[.)](?:\s|\Z))")
_ORDER = re.compile(r"\d{1,9}")


class Reader(Protocol):
    """Who reads what ``write`` writes, and what it would make of a text."""

    lowered: int
    """How many levels headings go down; with any, all are written with ``#``."""

    def text(self, line: str) -> str:
        """A line of text, escapes in it as they were typed, with all that this reader would interpret escaped."""

    def code(self, content: str) -> str:
        """The content of a code span."""

    def block(self, token: Token) -> str:
        """A block of code, or of text as it was typed (``token.type`` is ``"typed"``)."""

    def definition(self, content: str) -> str:
        """A link definition as a text: ``[name]: address``."""


def write(text: str, reader: Reader) -> str:
    """``text`` as Markdown for ``reader``, in which only what ``read`` allows is more than text."""
    plain = visible(text)
    return written(answers.read(plain), plain.split("\n"), reader)


def written(tokens: Sequence[Token], lines: Sequence[str], reader: Reader) -> str:
    """``tokens``, which were read from ``lines``, as Markdown for ``reader``."""
    return "\n".join(line for _, block in _blocks(tokens, lines, reader) for line in block)


def settled(tokens: Sequence[Token], lines: Sequence[str]) -> tuple[int, list[Token], list[Token]]:
    """The line from which ``lines`` have to be read again when they have grown, and the tokens before and behind it.

    A block begins there behind a blank line, or an item of a list, and the line is whole: no later word can join it to
    what stands before. Line 0, and no tokens before it, if all has to be read again.
    """
    top = next((at for at in range(len(tokens) - 1, -1, -1) if tokens[at].level == 0 and tokens[at].map), 0)
    is_list = bool(tokens) and tokens[top].type in ("bullet_list_open", "ordered_list_open")
    last = next((at for at in range(len(tokens) - 1, top, -1) if tokens[at].type == "list_item_open"
                 and tokens[at].level == 1), top) if is_list else top  # fmt: skip
    for cut in (last, top):
        start = (tokens[cut].map or [0])[0] if tokens else 0
        if not 0 < start < len(lines) - 1:
            continue
        if cut > top + 1:
            return start, [*tokens[:cut], tokens[-1]], [tokens[top], *tokens[cut:]]
        if not lines[start - 1].strip():
            return start, list(tokens[:top]), list(tokens[top:])
    return 0, [], list(tokens)


def _blocks(tokens: Sequence[Token], lines: Sequence[str], reader: Reader) -> Iterator[tuple[str, list[str]]]:
    """The type and the lines of each block, with a blank line of its own before it where it needs one."""
    before, position = "", 0
    while position < len(tokens):
        token = tokens[position]
        end = _end(tokens, position)
        block = _block(tokens[position:end], lines, reader)
        if before and _is_apart(before, token, lines):
            block = ["", *block]
        yield token.type, block
        before, position = token.type, end


def _end(tokens: Sequence[Token], start: int) -> int:
    """The position behind the block that begins at ``start``."""
    depth = 0
    for position in range(start, len(tokens)):
        depth += tokens[position].nesting
        if depth == 0:
            return position + 1
    return len(tokens)


def _is_apart(before: str, token: Token, lines: Sequence[str]) -> bool:
    """True if a blank line stands before the block of ``token``, or has to, so that the two stay two."""
    if token.map is None or token.map[0] == 0 or not lines[token.map[0] - 1].strip(" \t>"):
        return True
    if before in ("heading_open", "hr", "fence"):
        return token.type in ("code_block", "definition")
    return token.type in ("paragraph_open", "table_open", "code_block", "definition", "typed")


def _block(tokens: Sequence[Token], lines: Sequence[str], reader: Reader) -> list[str]:
    first = tokens[0]
    match first.type:
        case "paragraph_open":
            return _inline(tokens[1], reader).split("\n")
        case "heading_open":
            return _heading(first, tokens[1], lines, reader)
        case "table_open":
            return _table(tokens, lines, reader)
        case "blockquote_open":
            inside = written(tokens[1:-1], lines, reader).split("\n")
            return [f"> {line}" if line else ">" for line in inside]
        case "bullet_list_open" | "ordered_list_open":
            return list(_list(tokens[1:-1], lines, reader))
        case "hr":
            return [first.markup[0] * 3 if first.level == 0 else "___"]
        case "definition":
            return [reader.definition(line) for line in first.content.split("\n")]
        case _:
            return reader.block(first).split("\n")


def _heading(token: Token, inline: Token, lines: Sequence[str], reader: Reader) -> list[str]:
    level = min(6, int(token.tag[1]) + reader.lowered)
    said = _inline(inline, reader)
    if not token.markup.startswith("#") and not reader.lowered and token.map:
        return [*said.split("\n"), lines[token.map[1] - 1].strip(" \t>")]
    said = " ".join(line.strip() for line in said.split("\n"))
    if said.endswith("#"):  # it would be the end of the heading's mark
        said = f"{said[:-1]}\\#"
    return [f"{'#' * level} {said}".rstrip()]


def _list(tokens: Sequence[Token], lines: Sequence[str], reader: Reader) -> Iterator[str]:
    position = 0
    while position < len(tokens):
        item = tokens[position]
        end = _end(tokens, position)
        mark = f"{item.info}{item.markup} "
        if position and item.map and not lines[item.map[0] - 1].strip(" \t>"):
            yield ""
        inside = written(tokens[position + 1 : end - 1], lines, reader).split("\n")
        yield (mark + inside[0]).rstrip() if not inside[0].strip() else mark + inside[0]
        yield from (" " * len(mark) + line if line else "" for line in inside[1:])
        position = end


def _table(tokens: Sequence[Token], lines: Sequence[str], reader: Reader) -> list[str]:
    rows: list[list[str]] = []
    styles = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "th_open":
            styles.append(str(token.attrGet("style") or ""))
        elif token.type == "inline":
            rows[-1].append(re.sub(r"(?<!\\)((?:\\\\)*)\|", r"\1\\|", _inline(token, reader)))
    columns = lines[tokens[0].map[0] + 1].lstrip(" \t>") if tokens[0].map else ""
    if not _COLUMNS.fullmatch(columns) or "|" not in columns:
        columns = "".join("|" + _column(style) for style in styles) + "|"
    drawn = [f"| {' | '.join(cells)} |" for cells in rows]
    return [drawn[0], columns, *drawn[1:]]


def _column(style: str) -> str:
    return {"text-align:left": ":--", "text-align:center": ":-:", "text-align:right": "--:"}.get(style, "---")


def _inline(token: Token, reader: Reader) -> str:
    """The Markdown of a paragraph, a heading or a cell."""
    pieces: list[str] = []
    typed = ""  # since the last mark
    links: list[Token] = []
    for child in token.children or ():
        if child.type in ("text", "text_special", "softbreak"):
            typed += "\n" if child.type == "softbreak" else child.markup or child.content
            continue
        pieces.append(_text(typed, reader, is_label=bool(links), is_line=pieces[-1:] == ["  \n"]))
        if child.type == "link_open":
            links.append(child)
            if pieces[-1].endswith("!") and not pieces[-1].endswith("\\!"):  # no picture
                pieces[-1] = pieces[-1][:-1] + "&#33;"
            pieces.append("[" if child.attrGet("href") else "\\[")
        elif child.type == "link_close":
            link = links.pop()
            if link.info == "auto":
                pieces[-2:] = [f"<{typed}>"]
            else:
                pieces.append(f"]({_target(link)})" if link.attrGet("href") else "]\\()")
        elif child.type == "code_inline":
            pieces.append(_code(child, reader))
        else:
            pieces.append("  \n" if child.type == "hardbreak" else child.markup)  # or emphasis
        typed = ""
    pieces.append(_text(typed, reader, is_label=False, is_line=pieces[-1:] == ["  \n"]))
    return "".join(pieces)


def _text(typed: str, reader: Reader, *, is_label: bool, is_line: bool) -> str:
    """What was typed, as text: ``is_label`` inside the brackets of a link, ``is_line`` at the start of a line."""
    drawn = []
    for number, line in enumerate(typed.split("\n")):
        if number or is_line:
            line = line.lstrip(" \t")
        if is_label:
            line = re.sub(r"(\\.)|([\[\]])", lambda match: match.group(1) or f"\\{match.group(2)}", line)
        shown = reader.text(line)
        if (number or is_line) and shown[:1] == line[:1] and (_BEGINS.match(line) or _COLUMNS.fullmatch(line)):
            digits = _ORDER.match(line)
            at = digits.end() if digits else 0
            shown = f"{shown[:at]}\\{shown[at:]}"
        drawn.append(shown)
    return "\n".join(drawn)


def _code(token: Token, reader: Reader) -> str:
    content = reader.code(token.content)
    is_padded = content.startswith(" ") and content.endswith(" ") and content.strip(" ")
    if content.startswith("`") or content.endswith("`") or is_padded:
        content = f" {content} "
    return f"{token.markup}{content}{token.markup}"


def _target(link: Token) -> str:
    """Address and title of a link, as they stand in its brackets; as this module writes them."""
    address = str(link.attrGet("href") or "")
    if not _is_balanced(address):
        address = re.sub(r"[()]", r"\\\g<0>", address)
    title = str(link.attrGet("title") or "")
    if not title:
        return address
    quoted = re.sub(r'["\\]', r"\\\g<0>", " ".join(title.replace("&", "&amp;").split()))
    return f'{address} "{quoted}"'


def _is_balanced(address: str) -> bool:
    depth = 0
    for char in address:
        depth += (char == "(") - (char == ")")
        if depth < 0:
            return False
    return depth == 0
