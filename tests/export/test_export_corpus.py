"""Real sessions of other tools, exported: the structure holds and nothing is lost."""

from __future__ import annotations

import json

import pytest
from markdown_it import MarkdownIt

from sessions_lib import importers
from sessions_lib.errors import SessionError
from sessions_lib.export import export
from tests.importers.files import CORPUS, DATA

KINDS = ["claude-code", "codex", "pi", "chatgpt-export", "openai-chat", "openai-finetune"]
MOST_FILES, MOST_SESSIONS = 12, 4  # of each kind, the smallest


@pytest.mark.parametrize("kind", KINDS)
def test_real_sessions_keep_their_structure_in_every_export(kind: str) -> None:
    own, real = DATA / kind, CORPUS / kind
    files = sorted(
        (path for path in [*own.rglob("*"), *real.rglob("*")] if path.is_file()), key=lambda p: p.stat().st_size
    )
    files = files[:MOST_FILES]

    checked = 0
    for path in files:
        try:
            found, _ = importers.read(path)
        except SessionError:
            continue  # a file that is refused by name has its test with the importers
        for session in found[:MOST_SESSIONS]:
            markdown = export.export(session.messages, session.meta, "markdown")
            tokens = MarkdownIt("commonmark").parse(markdown)
            flat = [inner for token in tokens for inner in (token, *(token.children or ()))]
            headings = [token for token in tokens if token.type == "heading_open" and token.tag == "h2"]
            assert len(headings) == len(session.messages), path
            assert not [token for token in flat if token.type in ("html_block", "html_inline", "image")], path
            document = json.loads(export.export(session.messages, session.meta, "json"))
            assert document["messages"] == session.messages, path
            html = export.export(session.messages, session.meta, "html", redacted=True)
            assert html.count("<script") == 0, path
            assert html.count('id="message-') == len(session.messages), path
            checked += 1
    assert checked > 0
