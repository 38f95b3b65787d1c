"""The Agents SDK's sessions: its own tests, and what they do not ask: kills, cancels, several processes, the app's view."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tarfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import SessionManager, messages
from tests.model_server import ModelServer, Reply

ROOT = Path(__file__).resolve().parents[2]
if find_spec("agents") is None:
    reason = "the Agents SDK is not installed: pip install 'forkbook[agents]'"
    if os.environ.get("CI"):
        raise RuntimeError(reason)
    pytest.skip(reason, allow_module_level=True)

from sessions_lib.adapters.openai_agents import ForkbookSession  # noqa: E402 - behind the question whether it is there

# Of the SDK's own tests, those that look into its SQLite: connections, locks and damaged rows of its database.
ABOUT_SQLITE = (
    "connections or connection or rejects_empty or corrupt or file_lock or write_lock or rolls_back or post_commit"
)
PROMPT = {"role": "user", "content": "How deep is the cave?"}
THOUGHT = {
    "type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Ask."}], "encrypted_content": "gAAA",
}  # fmt: skip
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "depth", "arguments": '{"of": "cave"}'}
RESULT = {"type": "function_call_output", "call_id": "call_1", "output": "40 m"}
ANSWER = {
    "type": "message", "id": "msg_a", "role": "assistant", "status": "completed",
    "content": [{"type": "output_text", "text": "Forty metres.", "annotations": []}],
}  # fmt: skip
ITEMS = [PROMPT, THOUGHT, CALL, RESULT, ANSWER]


def run(awaitable: Any) -> Any:
    return asyncio.run(awaitable)


def test_the_tests_that_the_sdk_has_for_its_own_session_pass(tmp_path: Path) -> None:
    if find_spec("pytest_asyncio") is None and not os.environ.get("CI"):
        pytest.skip("the SDK's tests need pytest-asyncio")
    download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", str(tmp_path)]
    done = subprocess.run([*download, f"openai-agents=={version('openai-agents')}"], capture_output=True, text=True)
    if done.returncode and not os.environ.get("CI"):
        pytest.skip(f"the package registry cannot be reached: {done.stderr[-200:]}")
    assert done.returncode == 0, done.stderr
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    (tests,) = tmp_path.glob("openai_agents-*/tests/memory")
    files = [f"tests/memory/{name}.py" for name in ("test_session", "test_session_limit")]
    plugin = tmp_path / "plugin"
    plugin.mkdir()
    (plugin / "sdk_tests.py").write_bytes((ROOT / "tests/adapters/sdk_tests.py").read_bytes())

    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "sdk_tests", "-q", "--noconftest", "-o", "addopts=", "-k", f"not ({ABOUT_SQLITE})", *files],
        cwd=tests.parents[1], env={**os.environ, "PYTHONPATH": f"{plugin}:{ROOT}", "OPENAI_API_KEY": "x"}, capture_output=True, text=True,
    )  # fmt: skip

    assert result.returncode == 0, result.stdout[-3000:]
    passed = int(result.stdout.rsplit(" passed", 1)[0].split()[-1])
    assert passed >= 45


def test_items_come_back_whole_and_are_messages_to_everybody_else(tmp_path: Path) -> None:
    session = ForkbookSession("cave", tmp_path)
    run(session.add_items(ITEMS))

    assert run(ForkbookSession("cave", tmp_path).get_items()) == ITEMS
    assert run(session.get_items(2)) == [RESULT, ANSWER]
    stored = SessionManager(tmp_path).open("cave").messages
    assert [message["role"] for message in stored] == ["user", "assistant", "tool", "assistant"]
    assert stored[1]["tool_calls"][0]["function"] == {"name": "depth", "arguments": '{"of": "cave"}'}
    assert stored[1]["reasoning_content"] == "Ask."
    assert stored[3]["content"] == "Forty metres."
    assert [hit.session for hit in SessionManager(tmp_path).search("metres")] == ["cave"]
    sent = messages.for_request(stored)
    assert "encrypted_content" not in str(sent)
    assert len(sent) == 4


def test_a_session_of_forkbook_goes_on_as_one_of_the_sdk(tmp_path: Path) -> None:
    session = SessionManager(tmp_path).create(session_id="cave")
    call = {"id": "call_1", "type": "function", "function": {"name": "depth", "arguments": "{}"}}
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    session.extend([
        {"role": "user", "content": [{"type": "text", "text": "How deep?"}, picture]},
        {"role": "assistant", "content": "I look.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "40 m"},
    ])  # fmt: skip

    assert run(ForkbookSession("cave", tmp_path).get_items()) == [
        {"role": "user", "content": [{"type": "input_text", "text": "How deep?"}, {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "auto"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "call_id": "call_1", "name": "depth", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "40 m"},
    ]  # fmt: skip


def test_what_is_popped_or_cleared_is_gone_for_the_agent_and_kept_in_the_trash(tmp_path: Path) -> None:
    session, manager = ForkbookSession("cave", tmp_path), SessionManager(tmp_path)
    run(session.add_items(ITEMS))

    assert run(session.pop_item()) == ANSWER
    assert run(session.pop_item()) == RESULT
    assert run(session.pop_item()) == CALL
    assert run(session.get_items()) == [PROMPT, THOUGHT]
    assert [entry.kind for entry in manager.trash()] == ["popped"] * 3
    run(session.clear_session())

    assert run(session.get_items()) == []
    assert run(session.pop_item()) is None
    run(session.add_items([PROMPT]))
    assert run(session.get_items()) == [PROMPT]
    assert sorted(entry.kind for entry in manager.trash()) == ["deleted", "popped", "popped", "popped"]


def test_a_fork_has_the_items_up_to_its_point_and_goes_its_own_way(tmp_path: Path) -> None:
    session = ForkbookSession("cave", tmp_path)
    run(session.add_items(ITEMS))
    branch = session.fork(at=3)
    run(branch.add_items([{"role": "user", "content": "And wide?"}]))

    assert run(branch.get_items()) == [PROMPT, THOUGHT, CALL, RESULT, {"role": "user", "content": "And wide?"}]
    assert run(session.get_items()) == ITEMS
    assert SessionManager(tmp_path).open(branch.session_id).parent == "cave"


@pytest.mark.parametrize("name", ["", "../up", "a/b", "Привет", "x" * 300, "support chat 42", "con"])
def test_any_name_that_the_sdk_may_use_is_a_session_the_same_every_time(tmp_path: Path, name: str) -> None:
    run(ForkbookSession(name, tmp_path / "here").add_items([PROMPT]))

    assert run(ForkbookSession(name, tmp_path / "here").get_items()) == [PROMPT]
    assert len(SessionManager(tmp_path / "here").list()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here"]


def test_a_write_that_is_cancelled_at_any_await_is_whole_or_was_not_begun(tmp_path: Path) -> None:
    session = ForkbookSession("cave", tmp_path)

    async def cancelled_after(turns_of_the_loop: int) -> None:
        task = asyncio.ensure_future(session.add_items(ITEMS))
        for _ in range(turns_of_the_loop):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    for turns_of_the_loop in range(12):
        run(cancelled_after(turns_of_the_loop))
        found = run(session.get_items())
        assert found == ITEMS * (len(found) // 5)
    assert len(found) >= 5


def test_two_processes_write_one_session_and_a_kill_loses_nothing_that_was_kept(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys\n"
        "from sessions_lib.adapters.openai_agents import ForkbookSession\n"
        "async def main():\n"
        f"    session = ForkbookSession('cave', {str(tmp_path)!r})\n"
        "    for number in range(int(sys.argv[2])):\n"
        "        await session.add_items([{'role': 'user', 'content': f'{sys.argv[1]} {number}'}])\n"
        "        print(number, flush=True)\n"
        "asyncio.run(main())\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    one, other, killed = (
        subprocess.Popen([sys.executable, "-c", program, name, count], env=env, stdout=subprocess.PIPE, text=True)
        for name, count in (("one", "30"), ("other", "30"), ("killed", "100000"))
    )
    assert killed.stdout is not None
    kept = [int(killed.stdout.readline()) for _ in range(10)][-1]
    killed.send_signal(signal.SIGKILL)
    assert one.wait(60) == other.wait(60) == 0
    killed.communicate()

    found = [item["content"] for item in run(ForkbookSession("cave", tmp_path).get_items())]
    for name, count in (("one", 30), ("other", 30), ("killed", kept + 1)):
        assert [text for text in found if text.startswith(f"{name} ")][:count] == [f"{name} {n}" for n in range(count)]
    assert SessionManager(tmp_path).open("cave").report.damaged == []


def test_the_five_lines_of_the_readme_run_against_a_server(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = next(block for block in readme.split("```python\n")[1:] if "adapters.openai_agents" in block).split("```")[
        0
    ]
    choice = {"index": 0, "message": {"role": "assistant", "content": "Forty metres."}, "finish_reason": "stop"}
    body = {"id": "x", "object": "chat.completion", "created": 0, "model": "tiny", "choices": [choice]}
    with ModelServer(Reply(body=json.dumps(body).encode(), kind="application/json")) as server:
        env = {
            **os.environ, "PYTHONPATH": str(ROOT), "SESSIONS_DIR": str(tmp_path), "OPENAI_API_KEY": "x",
            "OPENAI_BASE_URL": server.url, "OPENAI_AGENTS_DISABLE_TRACING": "1",
        }  # fmt: skip
        prelude = "from agents import set_default_openai_api; set_default_openai_api('chat_completions')\n"
        done = subprocess.run(
            [sys.executable, "-c", prelude + lines], env=env, capture_output=True, text=True, timeout=60
        )

    assert done.returncode == 0, done.stderr
    assert "Forty metres." in done.stdout
    manager = SessionManager(tmp_path)
    assert manager.open("cave").messages[-1]["content"] == "Forty metres."
    assert [info.id for info in manager.family("cave")] == ["cave", "cave-fork"]
