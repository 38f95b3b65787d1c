"""The Claude Agent SDK's session store: its own conformance suite, and sessions that one can look at."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import SessionManager
from sessions_lib.adapters.claude_agent import ForkbookStore

ROOT = Path(__file__).resolve().parents[2]
KEY = {"project_key": "-home-ana-harbour", "session_id": "5f0c9a4e-3333-4333-8333-333333333333"}


def line(number: int, kind: str, text: str, **more: Any) -> dict[str, Any]:
    """An entry as Claude Code writes it."""
    said = text if kind == "user" else [{"type": "text", "text": text}]
    message: dict[str, Any] = {"role": kind, "content": said}
    if kind == "assistant":
        message |= {
            "id": f"msg_{number}",
            "model": "claude-test",
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 5, "output_tokens": 2},
        }
    return {
        "type": kind, "uuid": f"00000000-0000-4000-8000-{number:012d}", "parentUuid": f"00000000-0000-4000-8000-{number - 1:012d}" if number > 1 else None,
        "sessionId": KEY["session_id"], "timestamp": f"2026-11-03T09:00:{number:02d}.000Z", "cwd": "/home/ana/harbour", "version": "2.1.0", "message": message, **more,
    }  # fmt: skip


EVENING = [line(1, "user", "When is high tide?"), line(2, "assistant", "At nine."), line(3, "user", "And low?")]


def test_the_sdks_own_conformance_suite_passes(tmp_path: Path) -> None:
    if find_spec("claude_agent_sdk") is None:
        reason = "the Claude Agent SDK is not installed: pip install 'forkbook[claude]'"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    from claude_agent_sdk.testing import run_session_store_conformance

    asyncio.run(run_session_store_conformance(lambda: ForkbookStore(tempfile.mkdtemp(dir=tmp_path))))


def test_what_is_mirrored_is_a_session_that_grows(tmp_path: Path) -> None:
    store = ForkbookStore(tmp_path)
    asyncio.run(store.append(KEY, EVENING[:2]))
    store.flush()
    asyncio.run(store.append(KEY, EVENING[1:]))  # a batch that is tried again holds what is kept already
    store.flush()

    (info,) = SessionManager(tmp_path).list()
    said = [message["content"] for message in SessionManager(tmp_path).open(info.id).messages]
    assert said == ["When is high tide?", "At nine.", "And low?"]
    assert asyncio.run(store.load(KEY)) == EVENING
    assert [one["session_id"] for one in asyncio.run(store.list_sessions(KEY["project_key"]))] == [KEY["session_id"]]


def test_a_program_that_ends_or_is_killed_leaves_its_sessions(tmp_path: Path) -> None:
    program = (
        "import asyncio, os, sys\n"
        "from sessions_lib.adapters.claude_agent import ForkbookStore\n"
        "from tests.adapters.test_claude_agent import KEY, EVENING\n"
        f"asyncio.run(ForkbookStore({str(tmp_path)!r}).append({{**KEY, 'session_id': sys.argv[1]}}, [{{**one, 'sessionId': sys.argv[1]}} for one in EVENING]))\n"
        "if sys.argv[1] == 'killed': os.kill(os.getpid(), 9)\n"
    )
    for name in ("ended", "killed"):
        subprocess.run(
            [sys.executable, "-c", program, name], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=name == "ended"
        )
    assert len(SessionManager(tmp_path).list()) == 1

    ForkbookStore(tmp_path).flush()

    assert len(SessionManager(tmp_path).list()) == 2


def test_what_the_sdk_deletes_can_be_brought_back(tmp_path: Path) -> None:
    store = ForkbookStore(tmp_path)
    asyncio.run(store.append(KEY, EVENING))
    asyncio.run(store.delete(KEY))

    manager = SessionManager(tmp_path)
    assert asyncio.run(store.load(KEY)) is None
    assert manager.list() == []
    (entry,) = manager.trash()
    assert manager.restore(entry.session).messages[1]["content"] == "At nine."


@pytest.mark.parametrize("name", ["../../up", ".hidden", "a/b", "Привет", "%2E"])
def test_any_key_stays_in_its_folder_and_is_for_its_owner_alone(tmp_path: Path, name: str) -> None:
    store = ForkbookStore(tmp_path / "sessions")
    key = {"project_key": name, "session_id": name, "subpath": f"subagents/{name}"}
    asyncio.run(store.append(key, [{"type": "x"}]))

    assert asyncio.run(store.load(key)) == [{"type": "x"}]
    assert asyncio.run(store.list_subkeys({"project_key": name, "session_id": name})) == [f"subagents/{name}"]
    assert [path.name for path in tmp_path.iterdir()] == ["sessions"]
    for path in (tmp_path / "sessions" / ".claude-agent").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_a_line_that_a_kill_cut_off_costs_no_other(tmp_path: Path) -> None:
    store = ForkbookStore(tmp_path)
    asyncio.run(store.append(KEY, EVENING[:1]))
    (path,) = (tmp_path / ".claude-agent").rglob("*.jsonl")
    path.write_bytes(path.read_bytes() + b'{"type":"assis')
    asyncio.run(ForkbookStore(tmp_path).append(KEY, EVENING[1:]))

    assert asyncio.run(store.load(KEY)) == EVENING
