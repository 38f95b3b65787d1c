"""A session as a Jupyter notebook (nbformat 4.5): prompts and answers are Markdown cells, tool calls folded code cells.

Nothing that was said is live. Markdown goes through the one renderer of the Markdown export, so raw HTML, pictures from
elsewhere and script links are shown as typed; formulas (``$``, ``\\begin``) and diagrams are, too. The source of a tool
call is a comment, so "run all" runs nothing; results are ``text/plain`` or a stream, with control characters as signs.
Pictures that a message holds are attachments of its cell.

Does not need ``nbformat``, which says that a notebook is valid, and never names a kernel.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from sessions_lib.export import facts, markdown
from sessions_lib.messages import content, places, tool_calls
from sessions_lib.messages.content import Message
from sessions_lib.text import visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_FOLDED = {"collapsed": True, "jupyter": {"source_hidden": True, "outputs_hidden": True}}
# Code spans, backticks that open none, and what Jupyter reads as a formula.
_MARK = re.compile(r"`+|\\*\$|(?<!\\)(?:\\\\)*\\`|\\+(?=(?:begin|end)\{|[()\[\]])")
_AFTER_FENCE = re.compile(r"^(.*?(?:`{3,}|~{3,})).*")


def document(said: Sequence[Message], meta: Mapping[str, Any]) -> dict[str, Any]:
    """The session as the JSON of a notebook."""
    cells = [
        {"id": f"cell-{number}", **cell}
        for number, cell in enumerate([_head(said, meta), *_cells(said, meta)], start=1)
    ]
    about = {"id": meta.get("id"), "title": facts.title(said, meta), "tags": facts.tags(meta)}
    return {
        "cells": cells,
        "metadata": {"forkbook": about, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _head(said: Sequence[Message], meta: Mapping[str, Any]) -> dict[str, Any]:
    blocks = [f"# {markdown.inline(facts.title(said, meta))}"]
    if listed := facts.tags(meta):
        blocks.append("Tags: " + ", ".join(markdown.inline(tag) for tag in listed))
    system = meta.get("system")
    if isinstance(system, str) and system.strip():
        blocks += ["**System prompt**", markdown.fence(system)]
    return _markdown_cell(blocks, {})


def _cells(said: Sequence[Message], meta: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    pairing = tool_calls.pair(said)
    steps: dict[int, list[tool_calls.Step]] = {}
    for step in pairing.steps:
        steps.setdefault(step.call.message, []).append(step)
    answered = {step.result_message for step in pairing.steps}
    turns, fork = places.turns_of(said), facts.fork_point(meta)
    for index, message in enumerate(said):
        if index not in answered:  # a result stands in the cell of its call
            yield from _message_cells(message, index, turns[index], meta)
        for step in steps.get(index, []):
            yield _call_cell(step)
        if fork is not None and index + 1 == fork[1]:
            yield _markdown_cell([f"*Forked from {markdown.inline(fork[0])} {places.place(said, fork[1])}.*"], {})


def _message_cells(message: Message, index: int, turn: int, meta: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    role = message.get("role")
    text = facts.said(message)
    blocks = [f"**{markdown.inline(facts.who(message))} · turn {turn}**"]
    if told := [markdown.inline(fact) for fact in facts.facts(message, meta)]:
        blocks.append(" · ".join(told))
    if text.strip():
        blocks.append(
            markdown.answer(text)
            if role == "assistant"
            else markdown.prompt(text)
            if role == "user"
            else markdown.fence(text)
        )
    attachments: dict[str, dict[str, str]] = {}
    for number, part in enumerate(content.parts(message), start=1):
        if part.kind != "text":
            name = f"message-{index + 1}-{number}"
            blocks.append(_picture(part, name, attachments))
    blocks += [f"*{markdown.inline(note)}*" for note in facts.notes(message)]
    if reasoning := content.reasoning(message):
        yield _code_cell("Reasoning", [_plain(reasoning)], "reasoning")
    if len(blocks) > 1 + bool(told) or not tool_calls.calls_of(message):
        yield _markdown_cell(blocks, attachments, is_of=str(role))


def _picture(part: content.Part, name: str, attachments: dict[str, dict[str, str]]) -> str:
    decoded = markdown.picture(part.url) if part.kind == "image" else None
    if decoded is None:
        address = f" {markdown.code(part.url[:500])}" if part.url and not part.url.startswith("data:") else ""
        return f"*\\[{markdown.inline(part.label)}\\]*{address}"
    kind = next(kind for kind, extension in markdown.IMAGE_TYPES.items() if extension == decoded[0])
    attachments[f"{name}.{decoded[0]}"] = {kind: base64.b64encode(decoded[1]).decode("ascii")}
    return f"![{markdown.inline(part.label)}](attachment:{name}.{decoded[0]})"


def _call_cell(step: tool_calls.Step) -> dict[str, Any]:
    """A call as comments, and under it what the tool returned: as an error's stream where it says that it failed."""
    outputs: list[dict[str, Any]] = []
    if step.result is not None:
        parts = [part.text if part.kind == "text" else f"[{part.label}]" for part in content.parts(step.result)]
        text = "\n".join(parts)
        outputs.append(_stream(text) if step.is_error else _plain(text))
    return _code_cell(f"{step.call.name or 'unnamed tool'}\n{step.call.arguments}".rstrip(), outputs, "tool")


def _plain(text: str) -> dict[str, Any]:
    return {"output_type": "display_data", "data": {"text/plain": visible(text)}, "metadata": {}}


def _stream(text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stderr", "text": visible(text)}


def _code_cell(text: str, outputs: list[dict[str, Any]], tag: str) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {**_FOLDED, "tags": [tag]},
        "outputs": outputs,
        "source": "\n".join(f"# {line}" for line in visible(text).split("\n")),
    }


def _markdown_cell(blocks: Sequence[str], attachments: dict[str, dict[str, str]], is_of: str = "") -> dict[str, Any]:
    tags = {"tags": [is_of]} if is_of in ("user", "assistant", "system", "developer", "tool") else {}
    source = without_formulas("\n\n".join(blocks))
    return {
        "cell_type": "markdown",
        "metadata": tags,
        "source": source,
        **({"attachments": attachments} if attachments else {}),
    }


def without_formulas(text: str) -> str:
    """Markdown that says the same, with formulas outside code shown as typed, and diagrams as the code they are.

    >>> without_formulas("It is $5, `$HOME`")
    'It is &#36;5, `$HOME`'
    """
    lines, block, made = text.split("\n"), list[str](), list[str]()
    coded: set[int] = set()
    for token in _parser().parse(text):
        if token.type in ("fence", "code_block") and token.map:
            first = token.map[0]
            coded |= set(range(*token.map))
            if token.type == "fence" and token.info.strip().lower().startswith("mermaid"):
                lines[first] = _AFTER_FENCE.sub(r"\1text", lines[first])
    for number, line in enumerate([*lines, ""]):
        if number in coded or not line.strip():
            made += _block_without_formulas("\n".join(block)).split("\n") if block else []
            block = []
            made += [line] if number < len(lines) else []
        else:
            block.append(line)
    return "\n".join(made)


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # when first used: no other format of this file's kind needs it

    return MarkdownIt("commonmark").enable("table")


def _block_without_formulas(text: str) -> str:
    pieces, position = [], 0
    while match := _MARK.search(text, position):
        pieces.append(text[position : match.start()])
        found, position = match.group(), match.end()
        if found.startswith("`"):
            if closing := re.compile(rf"(?<!`){found}(?!`)").search(text, position):
                found, position = text[match.start() : closing.end()], closing.end()
        elif found.endswith("$"):
            slashes = len(found) - 1
            found = "\\" * (slashes - slashes % 2) + "&#36;"  # an odd one escapes the sign
        elif not found.endswith("`"):
            found = _backslashes(len(found), is_command=text.startswith(("begin{", "end{"), position))
        pieces.append(found)
    return "".join([*pieces, text[position:]])


def _backslashes(count: int, *, is_command: bool) -> str:
    """What Markdown shows for ``count`` backslashes before a bracket or a command, in entities."""
    if is_command:
        return "&#92;" * ((count + 1) // 2)
    return "&#92;" * (count // 2) + "\\" * (count % 2)  # an odd one escapes the bracket
