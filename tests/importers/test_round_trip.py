"""Export → import is the identity: every session of the corpus comes back as it was, through our own JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sessions_lib import SessionManager, importers
from tests.importers.test_corpus import files

ALL = [
    one
    for tool in ("claude-code", "codex", "pi", "chatgpt-export", "openai-chat", "openai-finetune")
    for one in files(tool)
]
CHANGED = {"id", "imported_from", "version", "forked_from"}  # a new session; its parent is not in that folder


def kept(meta: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in meta.items() if key not in CHANGED and value is not None}


@pytest.mark.parametrize("path", ALL)
def test_an_export_imported_again_is_the_same_session(tmp_path: Path, path: Path) -> None:
    first, second = SessionManager(tmp_path / "first"), SessionManager(tmp_path / "second")
    list(importers.import_paths(first, [path]))

    for info in first.list():
        session = first.open(info.id)
        if not session.messages:
            continue
        document = session.export(tmp_path / f"{info.id}.json", "json")
        list(importers.import_paths(second, [document]))

        copy = second.open(second.list()[0].id)
        assert copy.messages == session.messages
        assert kept(copy.meta) == kept(session.meta)
        second.delete(copy.id)
