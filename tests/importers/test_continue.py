"""An imported session goes on with any provider: what is sent is what a strict one accepts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sessions_lib import Agent, importers
from sessions_lib.store.manager import SessionManager
from tests.importers.files import call, claude, codex, corpus, item_text, result, said, text, write_lines
from tests.model_server import ModelServer, problems, say

DANGLING: dict[str, list[dict[str, Any]]] = {
    "claude-code": [
        claude(
            "user",
            "u1",
            None,
            [*text("What is this?"), {"type": "image", "source": {"type": "base64", "data": "QQ=="}}],
        ),
        claude("assistant", "a1", "u1", call("t1", "look"), id="msg_1"),
        claude("assistant", "a2", "a1", call("t2", "look"), id="msg_1"),
        claude("user", "r1", "a1", result("t1", [{"type": "image", "source": {"type": "base64", "data": "QQ=="}}])),
    ],
    "codex": [
        codex("session_meta", id="t1"),
        item_text("user", "What is this?"),
        codex("response_item", type="custom_tool_call", name="apply_patch", input="*** Begin", call_id="t1"),
        codex("response_item", type="function_call", name="shell", arguments="{not json", call_id="t2"),
        codex("response_item", type="function_call_output", call_id="t1", output="ok"),
    ],
}


@pytest.mark.parametrize("tool", DANGLING)
def test_an_imported_session_with_an_open_call_is_continued_on_a_strict_server(tmp_path: Path, tool: str) -> None:
    manager = SessionManager(tmp_path / "sessions")
    path = write_lines(tmp_path / "in.jsonl", *DANGLING[tool])
    (step,) = importers.import_paths(manager, [path])
    assert step.result is not None
    (outcome,) = step.result.outcomes

    with ModelServer(say("A boat.")) as server:
        agent = Agent(
            name="a",
            session_id=outcome.session,
            base_url=server.url,
            api_key="k",
            model="m",
            save_dir=manager.folder,
        )
        answer = agent.chat("And now?")

    assert answer == "A boat."
    assert problems(server.requests[0]["messages"]) == []
    assert [message["role"] for message in server.requests[0]["messages"]] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "user",
    ]
    assert said(manager.open(str(outcome.session)).messages)[-2:] == [("user", "And now?"), ("assistant", "A boat.")]


def test_a_long_real_session_is_continued_on_a_strict_server(tmp_path: Path) -> None:
    manager = SessionManager(tmp_path / "sessions")
    (step,) = importers.import_paths(manager, [corpus("claude-code/entire-user-image.jsonl")])
    assert step.result is not None
    session = step.result.outcomes[0].session

    with ModelServer(say("Done.")) as server:
        agent = Agent(
            name="a", session_id=session, base_url=server.url, api_key="k", model="m", save_dir=manager.folder
        )
        agent.chat("Is anything left?")

    assert problems(server.requests[0]["messages"]) == []
    assert len(server.requests[0]["messages"]) == 183, "two prompts behind each other are joined"
