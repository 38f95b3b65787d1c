"""The strictest server there is accepts the next prompt of every session, whoever wrote it, and no file changes by it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import Agent, importers
from sessions_lib.store.manager import SessionManager
from tests.importers.files import CORPUS
from tests.model_server import ModelServer

CASES = CORPUS.parent / "cases" / "cases.jsonl"


def go_on_with_all(manager: SessionManager) -> int:
    """Ask every session of the folder one more thing; how many there were."""
    ids = [info.id for info in manager.list()]
    with ModelServer() as server:
        for session_id in ids:
            path = manager.folder / f"{session_id}.jsonl"
            before = path.read_bytes() if path.exists() else b""
            agent = Agent(session_id=session_id, base_url=server.url, model="tiny", save_dir=manager.folder)

            assert agent.chat("And now?") == "Yes.", session_id
            assert path.read_bytes().startswith(before.rstrip(b"\n")), session_id
            sent = server.requests[-1]["messages"]
            assert sent[-1]["role"] == "user"
            assert str(sent[-1]["content"]).endswith("And now?") or sent[-1]["content"][-1]["text"] == "And now?"
            over = Agent(
                session_id=session_id, base_url=server.url, model="tiny", wire="responses", save_dir=manager.folder
            )
            assert over.chat("And then?") == "Yes.", session_id
            assert server.paths[-1] == "responses"
            assert "changed" not in over.session.messages[-1]
    return len(ids)


def tools() -> list[Any]:
    if not CORPUS.exists():
        return [pytest.param("", id="none", marks=pytest.mark.skip(reason="the corpus is not beside the project"))]
    return sorted(path.name for path in CORPUS.iterdir() if path.is_dir())


@pytest.mark.parametrize("tool", tools())
def test_the_next_prompt_of_every_real_session_is_accepted(tmp_path: Path, tool: str) -> None:
    manager = SessionManager(tmp_path / "sessions")

    list(importers.import_paths(manager, [CORPUS / tool]))

    assert go_on_with_all(manager) >= (tool in ("claude-code", "codex", "pi", "chatgpt-export", "openai-chat"))


def cases() -> list[Any]:
    if not CASES.exists():
        return [pytest.param({}, id="none")]
    read = [json.loads(line) for line in CASES.read_text(encoding="utf-8").split("\n") if line]
    return [pytest.param(case, id=case["id"]) for case in read if isinstance(case["input"].get("files"), list)]


@pytest.mark.parametrize("case", cases())
def test_the_next_prompt_of_every_case_is_accepted(tmp_path: Path, case: dict[str, Any]) -> None:
    """Files of ours are put into the folder, those of other tools imported."""
    manager = SessionManager(tmp_path / "sessions")
    manager.folder.mkdir()
    others = []
    for file in case.get("input", {}).get("files", []):
        text = file.get("text")
        if not isinstance(text, str) or Path(file["path"]).name != Path(file["path"]).name.strip("."):
            continue
        is_ours = "/" not in file["path"] and file["path"].endswith((".jsonl", ".meta.json"))
        path = (manager.folder if is_ours else tmp_path / "in") / file["path"]
        if ".." in path.parts:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        others += [] if is_ours else [path]
    list(importers.import_paths(manager, others))

    go_on_with_all(manager)
