"""A session as Markdown that reads well raw and rendered, and whose structure no text in it can forge.

The shape, parsed as CommonMark: front matter, one ``#`` heading with the title, one ``##`` heading a message, and no
other heading of these two levels. Prompts are a blockquote if they are plain text, else a fenced block; tool calls and
results are fenced blocks; fences are longer than any run of backticks inside. Answers stay Markdown: their headings
move down two levels; raw HTML, entities and images in them are shown as typed; and the result is parsed once more: an
answer that could still reach outside its place (a link definition, an open fence, a script link) becomes a fenced block
instead. So nothing from a message is live even where raw HTML is, and no number of backticks ends anything early.

Images are short placeholders, or links to files beside the document; never base64.

Does not change a word of the texts, but control characters, which become visible signs.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from sessions_lib import answer_markdown, answers, messages
from sessions_lib.export import facts as export_facts
from sessions_lib.messages import content, places, tool_calls
from sessions_lib.messages.content import Message, Part
from sessions_lib.text import visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

IMAGE_TYPES = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}

_END = "\n\n## end\n"  # read after an answer, it must still be a heading of its own
_SPECIAL = re.compile(r"[\\`*_\[\]<>#|~=+-]|!\[|^\d{1,9}[.)]", re.MULTILINE)  # without these, text is only text
_INDENTED = re.compile(r"^[ \t]+\S", re.MULTILINE)
_ENTITY = re.compile(r"&(#[0-9]{1,7};|#[xX][0-9a-fA-F]{1,6};|[A-Za-z][A-Za-z0-9]{1,40};)")


@dataclass(slots=True)
class Images:
    """Where images go: ``folder`` is the name written into links, ``files`` collects file name → bytes."""

    folder: str
    files: dict[str, bytes] = field(default_factory=dict)


def document(said: Sequence[Message], meta: Mapping[str, Any], images: Images | None = None) -> str:
    """The whole session as one Markdown document; ``images`` collects the pictures it then links to."""
    blocks = [_front_matter(said, meta), f"# {inline(export_facts.title(said, meta))}"]
    if listed := export_facts.tags(meta):
        blocks.append("Tags: " + ", ".join(inline(tag) for tag in listed))
    system = meta.get("system")
    if isinstance(system, str) and system.strip():
        blocks += ["**System prompt**", fence(system)]
    blocks += _sections(said, meta, export_facts.fork_point(meta), images)
    return "\n\n".join(blocks) + "\n"


def sections(said: Sequence[Message], meta: Mapping[str, Any], images: Images | None = None) -> str:
    """The messages of one turn, as ``document`` writes them, without its number: for "copy as Markdown"."""
    return "\n\n".join(_sections(said, meta, None, images, is_alone=True)) + "\n" if said else ""


def _sections(
    said: Sequence[Message],
    meta: Mapping[str, Any],
    fork: tuple[str, int] | None,
    images: Images | None,
    *,
    is_alone: bool = False,
) -> Iterator[str]:
    pairing = tool_calls.pair(said)
    made: dict[int, list[tool_calls.Step]] = {}
    tool_names: dict[int, str] = {}
    for step in pairing.steps:
        made.setdefault(step.call.message, []).append(step)
        if step.result_message is not None:
            tool_names[step.result_message] = step.call.name
    turns = places.turns_of(said)
    for index, message in enumerate(said):
        yield f"## {inline(export_facts.who(message))}" + ("" if is_alone else f" · turn {turns[index]}")
        facts = [inline(fact) for fact in export_facts.facts(message, meta)]
        if message.get("role") == "tool":
            name = content.as_text(message.get("name")) or tool_names.get(index, "")
            facts[:0] = [code(name)] if name else []
        if facts:
            yield " · ".join(facts)
        yield from _body(message, index, made.get(index, []), images)
        if fork is not None and index + 1 == fork[1]:
            yield f"*Forked from {inline(fork[0])} {places.place(said, fork[1])}.*"


def _body(message: Message, index: int, steps: Sequence[tool_calls.Step], images: Images | None) -> Iterator[str]:
    if reasoning := content.reasoning(message):
        yield "**Reasoning**"
        yield fence(reasoning)
    if (said := export_facts.said(message)).strip():
        yield _text(message, said)
    yield from _other_parts(message, index, images)
    for step in steps:
        yield f"**Tool call** {code(step.call.name or 'unnamed tool')}"
        yield fence(_arguments(step.call), "json")
        if step.result is None:
            yield "*No result was recorded.*"
    if not said.strip() and not steps and not content.parts(message):
        yield "*Empty result.*" if message.get("role") == "tool" else "*No text.*"
    for note in export_facts.notes(message):
        yield f"*{inline(note)}*"


def _text(message: Message, said: str) -> str:
    if message.get("role") == "assistant":
        return answer(said)
    return prompt(said) if message.get("role") == "user" else fence(said)


def _arguments(call: tool_calls.Call) -> str:
    """Short arguments as the model wrote them, long ones one to a line; what is no JSON as it is."""
    given = tool_calls.arguments(call) if len(call.arguments) > 100 else None
    return json.dumps(given, ensure_ascii=False, indent=2) if given else call.arguments


def _other_parts(message: Message, index: int, images: Images | None) -> Iterator[str]:
    for number, part in enumerate(content.parts(message), start=1):
        if part.kind == "text":
            continue
        saved = _saved(part, f"message-{index + 1}-{number}", images) if part.kind == "image" else ""
        address = f" {code(part.url[:500])}" if part.url and not part.url.startswith("data:") else ""
        yield saved or f"*\\[{inline(part.label)}\\]*{address}"


def _saved(part: Part, name: str, images: Images | None) -> str:
    """A link to the picture as a file of its own, or ``""`` where it cannot or shall not be one."""
    decoded = picture(part.url) if images is not None else None
    if images is None or decoded is None:
        return ""
    file_name = f"{name}.{decoded[0]}"
    images.files[file_name] = decoded[1]
    folder = re.sub(
        r"[^\w./-]", lambda match: "".join(f"%{byte:02X}" for byte in match.group().encode()), images.folder
    )
    return f"![{inline(part.label)}]({folder}/{file_name})"


def picture(url: str) -> tuple[str, bytes] | None:
    """File extension and bytes of a data URL that holds a PNG, JPEG, GIF or WebP picture, else ``None``."""
    head, comma, data = url.partition(",")
    kind, _, encoding = head.removeprefix("data:").lower().partition(";")
    if not head.startswith("data:") or not comma or kind not in IMAGE_TYPES or not encoding.endswith("base64"):
        return None
    try:
        return IMAGE_TYPES[kind], base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None


def _front_matter(said: Sequence[Message], meta: Mapping[str, Any]) -> str:
    """YAML, each value a JSON string on its line; the blank line keeps CommonMark from seeing a heading."""
    origin = export_facts.fork_point(meta)
    values = {
        "title": export_facts.title(said, meta),
        "id": meta.get("id"),
        "tags": export_facts.tags(meta),
        "created": meta.get("created"),
        "forked_from": f"{origin[0]}, {places.place(said, origin[1])}" if origin else None,
        "model": meta.get("model"),
        "messages": len(said),
        "turns": messages.turn_count(said),
    }
    lines = [f"{key}: {_yaml(value)}" for key, value in values.items() if value is not None and value != []]
    return "\n".join(["---", *lines, "", "---"])


def _yaml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_yaml(item) for item in value)}]"
    if isinstance(value, int):
        return str(value)
    # Escaped as JSON and YAML allow it, so that a renderer without front matter shows no link, picture or tag.
    quoted = json.dumps(visible(content.as_text(value)), ensure_ascii=False)
    return re.sub(r"[<>&`\[\]\x7f-\x9f\u2028\u2029\ufeff]", lambda match: f"\\u{ord(match.group()):04x}", quoted)


def inline(text: str) -> str:
    """``text`` on one line, to be read by Markdown as exactly these characters, also at the start of a line.

    >>> inline("1. a_b <i> *x*")
    '1\\\\. a_b &lt;i> \\\\*x\\\\*'
    """
    line = " ".join(visible(text).split())
    line = re.sub(r"[\\`*\[\]]|~(?=~)|(?<=~)~|(?<![^\W_])_|_(?![^\W_])|#+\Z", r"\\\g<0>", line)
    line = re.sub(r"\A(?:[-+>#=]|\d{1,9}(?=[.)](?:\s|\Z)))", lambda match: _at_line_start(match.group()), line)
    return _ENTITY.sub(r"&amp;\g<1>", line).replace("<", "&lt;")


def _at_line_start(marker: str) -> str:
    return f"{marker}\\" if marker.isdigit() else f"\\{marker}"


def code(text: str) -> str:
    """``text`` on one line as a code span."""
    line = " ".join(visible(text).split())
    ticks = "`" * (_longest_run(line) + 1)
    pad = " " if line[:1] == "`" or line[-1:] == "`" or not line else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def fence(text: str, language: str = "text") -> str:
    """``text`` as a fenced block that nothing inside can close; parsed, it is ``text`` and a line break."""
    plain = visible(text)
    run = _longest_run(plain)
    # A document of backticks alone would need a fence as long as itself.
    mark = "~" * (max(3, _longest_run(plain, "~") + 1)) if run > 100 else "`" * max(3, run + 1)
    return f"{mark}{language}\n{plain}\n{mark}"


def _longest_run(text: str, char: str = "`") -> int:
    return max((len(run) for run in re.findall(f"{char}+", text)), default=0)


def prompt(text: str) -> str:
    """What a person typed: a blockquote, line by line as typed, if Markdown reads nothing into it; else a fence."""
    plain = visible(text)
    if not _is_plain(plain):
        return fence(text)
    lines = [line.rstrip(" \t") for line in plain.strip("\n").split("\n")]
    quoted = []
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        ending = "  " if line and following else ""  # two blanks: a line break
        quoted.append(f"> {line}{ending}" if line else ">")
    return "\n".join(quoted)


def _is_plain(text: str) -> bool:
    if not text.strip() or len(text) > answers.LONGEST or _INDENTED.search(text):
        return False
    if _ENTITY.search(text):
        return False
    if not _SPECIAL.search(text):
        return True
    tokens, has_definitions = _read(text)
    for token in tokens:
        if token.type == "inline":
            if any(child.type not in ("text", "softbreak", "hardbreak") for child in token.children or ()):
                return False
            if re.search(r"\\[!-/:-@\[-`{-~\n]", token.content):
                return False
        elif token.type not in ("paragraph_open", "paragraph_close"):
            return False
    return not has_definitions


def answer(text: str) -> str:
    """A model's Markdown with its headings two levels down, or a fenced block where it could reach out of its place."""
    plain = visible(text).strip("\n")
    if len(plain) > answers.LONGEST:
        return fence(text, "markdown")
    if not _SPECIAL.search(plain) and not _INDENTED.search(plain) and "&" not in plain:
        return plain  # there is no mark in it that Markdown could read
    tokens = answers.read(plain)
    if any(token.type in ("typed", "definition") for token in tokens):
        return fence(text, "markdown")
    written = answer_markdown.written(tokens, plain.split("\n"), _Document())
    return written if _stays_inside(written) else fence(text, "markdown")


class _Document:
    """Any reader of Markdown, raw HTML on: what it shows of an answer stays text."""

    lowered = 2

    def text(self, line: str) -> str:
        return _AS_TYPED.sub(lambda match: _TYPED.get(match.group(), match.group()), line)

    def code(self, content: str) -> str:
        return content

    def block(self, token: Token) -> str:
        content = token.content.removesuffix("\n")
        if token.type == "code_block":
            return "\n".join(f"    {line}" if line else "" for line in content.split("\n"))
        mark = token.markup[0] * max(len(token.markup), 3)
        if _longest_run(content, mark[0]) >= len(mark):
            mark = mark[0] * (_longest_run(content, mark[0]) + 1)
        info = re.sub(r"[\\&`~<]", lambda match: f"&#{ord(match.group())};", " ".join(token.info.split()))
        return f"{mark}{info}\n{content}\n{mark}"

    def definition(self, content: str) -> str:
        return f"\\{self.text(content)}"


# What a text could still become: behind a backslash it stands as it was typed.
_AS_TYPED = re.compile(
    r"\\[!-/:-@\[-`{-~]|`|<|&(?=#?[A-Za-z0-9]{1,41};)|!(?=\[)|^>(?==)|(?<=\])[(:](?![ \t]*(?:https?://|mailto:))"
)
_TYPED = {
    "`": "\\`",
    "<": "&lt;",
    "&": "&amp;",
    "!": "&#33;",
    ">": "\\>",
    "(": "\\(",
    ":": "\\:",
}


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # imported when first used: listing sessions needs no Markdown

    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable(["entity"])
    parser.validateLink = lambda url: True  # type: ignore[method-assign]  # links are judged below, none may hide
    return parser


def _read(text: str) -> tuple[list[Token], bool]:
    """The tokens of ``text`` as others read it, and whether it defines link references."""
    env: dict[str, Any] = {}
    tokens = _parser().parse(text, env)
    return tokens, bool(env.get("references"))


def _stays_inside(text: str) -> bool:
    """True if the blocks of ``text`` leave nothing open and hold nothing that another place could feel."""
    tokens, has_definitions = _read(text + _END)
    if has_definitions or [token.type for token in tokens[-3:]] != ["heading_open", "inline", "heading_close"]:
        return False
    last = tokens[-3]
    if last.level != 0 or last.tag != "h2" or last.markup != "##" or tokens[-2].content != "end":
        return False
    return all(_is_harmless(token) for token in tokens[:-3])


def _is_harmless(token: Token) -> bool:
    if token.type in ("html_block", "html_inline", "image") or token.tag in ("h1", "h2"):
        return False
    if token.type == "link_open" and not answers.leads_out(str(token.attrGet("href") or "")):
        return False
    return all(_is_harmless(child) for child in token.children or ())
