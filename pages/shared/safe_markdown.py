"""Markdown that Streamlit may draw: a model's text with everything in it shown as typed that could load, run or vanish.

Streamlit's Markdown loads remote images, sets ``$x$`` as mathematics, colours ``:red[x]``, turns ``:smile:`` and
``:material/home:`` into pictures, a lone ``->`` or ``>=`` into a typographer's sign and a ``mermaid`` block into a
diagram. ``safe_markdown`` keeps headings, lists, tables, links, emphasis and code, and shows all of these, images and
HTML as they were typed.

How: the text is read once, from left to right, and written anew so that our reading is the only one possible. Every
fenced block is written at the margin inside a fence longer than any run of backticks in the text; every backtick that
we did not read as code is escaped. So what is taken for code here cannot be anything else in the browser.

Does not shorten, and never changes what is stored.
"""

from __future__ import annotations

import re

from sessions_lib.text import visible

_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_FENCE = re.compile(r"(`{3,})([^`]*)$|(~{3,})(.*)$")
_PREFIX = re.compile(r"[ \t]*(?:(?:>|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t]))[ \t]*)*")
_RUN = re.compile(r"`+")
_URL = re.compile(r"https?://[^\s<>\[\]()\"'`|\\!$]+")
_AUTOLINK = re.compile(r"<https?://[^\s<>`|\\]+>")
_LIST_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]")
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
_RULE = re.compile(r"[\s|:>-]*")  # a line of a table or under a heading: its hyphens are not text
# |:---|:-:|, the line under a table's head
_COLUMNS = re.compile(r"[ \t>]*(?:\|[ \t]*)?:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*(?:\|[ \t]*)?")
# Where a link leads, right behind its text, and behind the name of one that is defined: to the web or to mail.
_TARGET = re.compile(r"[(:][ \t]*(?:https?://|mailto:)", re.IGNORECASE)
_FOOTNOTE = re.compile(r"[ \t>]*\[\^[^\]\s]+\]:")
_CODE_PICTURE = re.compile(r":(?=streamlit:|material[_/])")
_COLON_PAIR = re.compile(r":[\w+-]+:")
_SHORTCODE = re.compile(r":(?!material/|streamlit:)[\w+-][\w+-]*:")


def safe_markdown(text: str) -> str:
    """``text`` as Markdown in which nothing loads, runs or disappears.

    >>> safe_markdown("costs $5 :red[now] ![x](https://example.org/x.png)")
    'costs \\\\$5 \\\\:red[now] !\\\\[x](https://example.org/x.png)'
    """
    text = visible(text)
    written = "\n".join(_blocks(text.split("\n")))
    # A colon pair in a code block loads the emoji plugin for the whole text, escaped shortcodes included.
    return re.sub(r"\\:(?=[\w+-]+(?:\\:))", "\\\\:" + _JOINER, written) if _SHORTCODE.search(written) else written


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
    return "".join("\\" + char if char in _PUNCTUATION else char for char in line)


def _blocks(lines: list[str]) -> list[str]:
    longest = max((len(match) for line in lines for match in _RUN.findall(line)), default=0)
    fence = "`" * max(3, longest + 1)
    written: list[str] = []
    in_list, was_blank = False, True
    position = 0
    while position < len(lines):
        line = lines[position]
        opener, prefix = _opener(line)
        if opener:
            code, position = _fenced(lines, position + 1, opener, prefix)
            written += ["", *_code(fence, opener.group(2) or opener.group(4) or "", code), ""]
            was_blank = False
            continue
        if line.startswith(("    ", "\t")) and was_blank and not in_list:
            code, position = _indented(lines, position)
            written += [*_code(fence, "text", code), ""]
            continue
        was_blank = not line.strip()
        if not was_blank:
            in_list = bool(_LIST_ITEM.match(line)) or (in_list and line[0] in " \t")
        written.append(_line(line))
        position += 1
    return written


def _opener(line: str) -> tuple[re.Match[str] | None, str]:
    prefix = _PREFIX.match(line)
    width = prefix.end() if prefix else 0
    return _FENCE.match(line, width), line[:width]


def _fenced(lines: list[str], start: int, opener: re.Match[str], prefix: str) -> tuple[list[str], int]:
    """The lines of a fenced block that opened before ``start``, and the position behind its end."""
    mark = opener.group(1) or opener.group(3)
    quoted = ">" in prefix
    code: list[str] = []
    for position in range(start, len(lines)):
        line = lines[position]
        if quoted:
            if not line.lstrip().startswith(">"):
                return code, position
            line = line.lstrip()[1:].removeprefix(" ")
        bare = line.strip()
        if len(bare) >= len(mark) and not bare.strip(mark[0]):
            return code, position + 1
        shift = 0 if quoted else min(len(prefix), len(line) - len(line.lstrip(" ")))
        code.append(line[shift:])
    return code, len(lines)


def _indented(lines: list[str], start: int) -> tuple[list[str], int]:
    position = start
    while position < len(lines) and (lines[position].startswith(("    ", "\t")) or not lines[position].strip()):
        position += 1
    code = [line[1:] if line.startswith("\t") else line[4:] for line in lines[start:position]]
    while code and not code[-1].strip():
        code.pop()
    return code, position


def _code(fence: str, info: str, code: list[str]) -> list[str]:
    word = info.split()[0] if info.split() else ""
    language = word if _LANGUAGE.fullmatch(word) and word.lower() != "mermaid" else "text"
    return [fence + language, *(_CODE_PICTURE.sub(":" + _JOINER, line) for line in code), fence]


def _line(line: str) -> str:
    """One line of text with its code spans; a span that does not end on its line is no code."""
    runs = list(_RUN.finditer(line))
    closers: dict[int, list[int]] = {}
    for number in range(len(runs) - 1, -1, -1):
        closers.setdefault(len(runs[number].group()), []).append(number)
    written, position, number = [], 0, 0
    while number < len(runs):
        run = runs[number]
        written.append(_plain(line, position, run.start()))
        waiting = closers[len(run.group())]
        while waiting and waiting[-1] <= number:
            waiting.pop()
        escaped = _backslashes(line, position, run.start()) % 2
        if waiting and not escaped:
            end = runs[waiting[-1]]
            inside = line[run.end() : end.start()].replace("![", "!\u200b[")
            written.append(run.group() + _CODE_PICTURE.sub(":" + _JOINER, inside) + end.group())
            number, position = waiting[-1] + 1, end.end()
        else:
            # Behind a backslash the first backtick is escaped already: the pair is written as it stands.
            written.append("`" * escaped + "\\`" * (len(run.group()) - escaped))
            number, position = number + 1, run.end()
    written.append(_plain(line, position, len(line)))
    return "".join(written)


def _backslashes(line: str, start: int, end: int) -> int:
    """How many backslashes stand right before ``end``, back to ``start`` at most."""
    position = end
    while position > start and line[position - 1] == "\\":
        position -= 1
    return end - position


def _plain(line: str, start: int, end: int) -> str:
    """The part of ``line`` that is no code, with all that Streamlit would interpret escaped."""
    written = []
    if _COLUMNS.fullmatch(line):
        return line[start:end]
    position = start
    joints = set() if _RULE.fullmatch(line) else _joints(line, start, end)
    while position < end:
        if position in joints:
            written.append(_JOINER)
        char = line[position]
        following = line[position + 1] if position + 1 < end else ""
        if char == "\\" and following in _PUNCTUATION:
            written.append("\\" + ("&lt;" if following == "<" else following))
            position += 2
            continue
        if char == "h" and (url := _URL.match(line, position, end)) and not line[position - 1 : position].isalnum():
            written.append(url.group())
            position = url.end()
            continue
        if char == "<" and (link := _AUTOLINK.match(line, position, end)):
            written.append(link.group())
            position = link.end()
            continue
        written.append(_escaped(char, following, line, position))
        position += 1
    return "".join(written)


def _joints(line: str, start: int, end: int) -> set[int]:
    """Where a joiner goes, so that no two signs of ``line`` become one."""
    return {found.end(found.lastindex or 0) for found in _TYPOGRAPHY.finditer(line, start, end)}


def _escaped(char: str, following: str, line: str, position: int) -> str:
    if char == "$":
        return "\\$"
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
    if _TARGET.match(line, position):
        return True
    footnote = _FOOTNOTE.match(line)
    return footnote is not None and footnote.end() == position + 1


def _closes_pair(line: str, position: int) -> bool:
    """True if the colon at ``position`` ends a ``:shortcode:``."""
    start = position
    while start > 0 and (line[start - 1].isalnum() or line[start - 1] in "_+-"):
        start -= 1
    return 0 < start < position and line[start - 1] == ":"
