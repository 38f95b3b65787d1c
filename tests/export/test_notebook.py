"""Jupyter notebooks: ``nbformat`` calls them valid, calls are folded, and nothing that was said is live."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from sessions_lib import importers
from sessions_lib.errors import SessionError
from sessions_lib.export import export, notebook
from tests.export.other_side import judge
from tests.importers.files import CORPUS, DATA

Messages = list[dict[str, Any]]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "![x](https://evil.example/p.png)",
    "[x](javascript:alert(1))",
    "$\\href{javascript:alert(1)}{x}$",
    "\\begin{equation}x\\end{equation}",
    "\\\\(x\\\\)",
    '```mermaid\nclick a href "javascript:alert(1)"\n```',
    "\\`$x$\\`",
    "__import__('os').system('id')",
    "%%bash\nid",
    "!id",
    "\x1b[31mred\x1b]0;owned\x07",
    "a\r\nimport os\x0cx\u2028y\x85z",
]


def made(said: Messages, **meta: Any) -> dict[str, Any]:
    written: dict[str, Any] = json.loads(export.export(said, {"id": "a", **meta}, "ipynb"))
    nbformat = judge("nbformat")
    nbformat.validate(nbformat.from_dict(written))
    return written


def called(text: str, result: str, *, is_error: bool = False) -> Messages:
    call = {"id": "c1", "type": "function", "function": {"name": text, "arguments": text}}
    answer = {"role": "tool", "tool_call_id": "c1", "content": result, "is_error": is_error}
    return [{"role": "assistant", "content": None, "tool_calls": [call]}, answer]


def test_prompts_and_answers_are_markdown_and_calls_are_folded() -> None:
    said: Messages = [
        {"role": "user", "content": "Tide?"},
        *called("tide", "2.1 m"),
        {"role": "assistant", "content": "It is **high**.", "reasoning_content": "2.1 m is high."},
    ]

    cells = made(said, title="Tides", system="Be kind.")["cells"]

    assert [(cell["cell_type"], cell["metadata"].get("tags")) for cell in cells] == [
        ("markdown", None), ("markdown", ["user"]), ("code", ["tool"]), ("code", ["reasoning"]), ("markdown", ["assistant"]),
    ]  # fmt: skip
    assert cells[0]["source"].startswith("# Tides\n")
    assert "> Tide?" in cells[1]["source"]
    assert "It is **high**." in cells[4]["source"]
    assert cells[2]["metadata"]["jupyter"] == {"source_hidden": True, "outputs_hidden": True}
    assert cells[2]["outputs"][0]["data"] == {"text/plain": "2.1 m"}


def test_what_a_tool_says_went_wrong_is_on_the_stream_of_errors() -> None:
    cell = made(called("tide", "no such port", is_error=True))["cells"][1]

    assert cell["outputs"] == [{"output_type": "stream", "name": "stderr", "text": "no such port"}]


def test_pictures_are_attachments() -> None:
    part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}

    cell = made([{"role": "user", "content": [part]}])["cells"][1]

    assert cell["attachments"] == {"message-1-1.png": {"image/png": PIXEL}}
    assert "](attachment:message-1-1.png)" in cell["source"]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_inert_wherever_it_stands(text: str) -> None:
    said: Messages = [
        {"role": "user", "content": text, "name": text},
        {"role": "assistant", "content": text, "reasoning_content": text, "model": text},
        {"role": "assistant", "content": f"1. a\n   {text}\n\n> {text}", "finish_reason": text},
        *called(text, text),
        *called(text, text, is_error=True),
        {"role": "tool", "tool_call_id": "gone", "content": text},
        {"role": "system", "content": text},
    ]

    written = made(said, title=text, tags=[text], system=text)

    for cell in written["cells"]:
        if cell["cell_type"] == "code":
            assert ast.parse(cell["source"]).body == []  # comments alone: "run all" runs nothing
            for output in cell["outputs"]:
                shown = output.get("text", output.get("data", {}).get("text/plain"))
                assert set(output.get("data", {})) <= {"text/plain"}
                assert not set(shown) & set("\x1b\x07\r")
            continue
        tokens = MarkdownIt("commonmark").enable("table").parse(cell["source"])
        flat = [inner for token in tokens for inner in (token, *(token.children or ()))]
        assert not [one for one in flat if one.type in ("html_block", "html_inline", "image")]
        assert not [
            one for one in flat if one.type == "link_open" and not str(one.attrGet("href")).startswith("https://")
        ]
        assert not [one for one in flat if one.type == "fence" and "mermaid" in one.info]
        inline = [token for token in tokens if token.type == "inline"]
        outside = "".join(one for token in inline for one in _outside_code(token))
        assert "$" not in outside, cell["source"]
        assert "\\begin" not in outside
        assert "\\\\(" not in outside


def _outside_code(token: Any) -> list[str]:
    """The source of an inline token without its code spans."""
    source = token.content
    for child in token.children:
        if child.type == "code_inline":
            start = source.find(child.markup)
            end = source.find(child.markup, start + len(child.markup))
            source = source[:start] + source[end + len(child.markup) :]
    return [source]


def shown(text: str) -> list[str]:
    """The texts that Markdown shows for ``text``, block by block."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    return ["".join(child.content for child in token.children or ()) or token.content for token in tokens]


@given(
    st.text(alphabet="$\\`(){}[]ab 1&#36;\n", max_size=30) | st.sampled_from(["\\\\\\(x\\)", "\\\\begin{a}", "``$``$"])
)
def test_without_formulas_the_same_is_shown(text: str) -> None:
    assert shown(notebook.without_formulas(text)) == shown(text)


def test_every_importable_file_of_the_corpus_is_a_valid_notebook() -> None:
    nbformat = judge("nbformat")
    files = sorted(path for root in (DATA, CORPUS) for path in root.rglob("*") if path.is_file())
    checked = 0

    for path in files:
        try:
            found, _ = importers.read(path)
        except SessionError:
            continue  # refused by name: the importers' tests
        for session in found:
            written = json.loads(export.export(session.messages, session.meta, "ipynb", redacted=True))
            nbformat.validate(nbformat.from_dict(written))
            checked += 1
    assert checked > 20
