"""What belongs to a provider is kept with its calls and messages, and goes back to the model that made it alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import Agent, Session, SessionManager, tool
from tests.model_server import ModelServer, Reply, chunk, say

SIGNATURE = {"google": {"thought_signature": "CsMBAVKhc7kSIG=="}}
CALL = {"index": 0, "id": "function-call-123", "type": "function", "function": {"name": "tide", "arguments": '{"port":"Ember"}'}}  # fmt: skip
MADE = ("extra_content", "reasoning_details", "thinking_blocks", "provider_specific_fields", "reasoning_content")


@tool(effect=False)
def tide(port: str) -> str:
    """How high the tide is at a port."""
    return f"2.1 m at {port}"


def agent_on(server: ModelServer, folder: Path, model: str = "gemini-3", **options: Any) -> Agent:
    return Agent(session_id="a", base_url=server.url, model=model, save_dir=folder, tools=[tide], **options)


def asks(delta: dict[str, Any] | None = None, **of_call: Any) -> Reply:
    return Reply([chunk({**(delta or {}), "tool_calls": [{**CALL, **of_call}]}), chunk({}, "tool_calls")])


def answers_of(server: ModelServer, number: int) -> list[dict[str, Any]]:
    return [message for message in server.sent[number] if message["role"] == "assistant"]


def test_a_thought_signature_comes_back_with_its_call_and_stands_in_the_file(tmp_path: Path) -> None:
    with ModelServer(asks(extra_content=SIGNATURE), say("2.1 m"), say("Low."), owned=MADE) as server:
        agent_on(server, tmp_path).chat("How high?")
        agent_on(server, tmp_path).chat("And at Gull?")

    assert [answers_of(server, n)[0]["tool_calls"][0].get("extra_content") for n in (1, 2)] == [SIGNATURE] * 2
    stored = Session.open(tmp_path, "a").messages[1]
    assert stored["tool_calls"] == [{k: v for k, v in {**CALL, "extra_content": SIGNATURE}.items() if k != "index"}]
    assert stored["wire"] == {"api": "chat", "base_url": server.url, "model": "gemini-3", "keys": []}


def test_a_fork_and_a_saved_session_keep_it(tmp_path: Path) -> None:
    with ModelServer(asks(extra_content=SIGNATURE), say("2.1 m"), say("Low."), say("High."), owned=MADE) as server:
        agent = agent_on(server, tmp_path)
        agent.chat("How high?")
        agent.fork("b").chat("And at Gull?")
        agent.session.save(tmp_path / "a.json")
        loaded = Agent(base_url=server.url, model="gemini-3", save_dir=tmp_path / "other")
        loaded.session.load(tmp_path / "a.json")
        loaded.chat("Well?")

    assert [answers_of(server, n)[0]["tool_calls"][0].get("extra_content") for n in (2, 3)] == [SIGNATURE] * 2


def test_another_server_or_model_is_not_sent_it(tmp_path: Path) -> None:
    with ModelServer(
        asks({"extra_content": SIGNATURE}, extra_content=SIGNATURE), say("2.1 m"), say("x"), owned=MADE
    ) as maker:
        agent_on(maker, tmp_path).chat("How high?")
        agent_on(maker, tmp_path, "gemini-2.5").chat("And at Gull?")
        with ModelServer() as strict:
            agent_on(strict, tmp_path).chat("Well?")

    assert "extra_content" not in json.dumps(maker.requests[2])
    assert "extra_content" not in json.dumps(strict.requests[0])
    assert strict.sent[0][-1]["content"] == "Well?"


@pytest.mark.parametrize(
    ("deltas", "kept"),
    [
        ([{"extra_content": SIGNATURE}], {"extra_content": SIGNATURE}),
        ([{"extra_content": {"a": {"b": 1}}}, {"extra_content": {"a": {"c": 2}}}], {"extra_content": {"a": {"b": 1, "c": 2}}}),
        (
            [
                {"reasoning_details": [{"type": "reasoning.text", "text": "Let ", "index": 0}]},
                {"reasoning_details": [{"type": "reasoning.text", "text": "me.", "index": 0, "signature": "s1"}]},
                {"reasoning_details": [{"type": "reasoning.encrypted", "data": "QQ==", "index": 1}]},
            ],
            {
                "reasoning_details": [
                    {"type": "reasoning.text", "text": "Let me.", "index": 0, "signature": "s1"},
                    {"type": "reasoning.encrypted", "data": "QQ==", "index": 1},
                ]
            },
        ),
        ([{"thinking_blocks": [{"type": "thinking", "thinking": "Hm", "signature": "s"}]}], {"thinking_blocks": [{"type": "thinking", "thinking": "Hm", "signature": "s"}]}),
    ],
)  # fmt: skip
def test_what_belongs_to_a_message_comes_back_with_it(
    tmp_path: Path, deltas: list[dict[str, Any]], kept: dict[str, Any]
) -> None:
    reply = Reply([*(chunk(delta) for delta in deltas), chunk({"content": "2.1 m"}), chunk({}, "stop")])
    with ModelServer(reply, say("Low."), owned=MADE) as server:
        agent_on(server, tmp_path).chat("How high?")
        agent_on(server, tmp_path).chat("Sure?")

    assert answers_of(server, 1) == [{"role": "assistant", "content": "2.1 m", **kept}]
    stored = Session.open(tmp_path, "a").messages[1]
    assert {key: stored[key] for key in kept} == kept


def test_reasoning_goes_back_under_its_own_name_while_the_tools_of_a_turn_are_called(tmp_path: Path) -> None:
    first = asks({"reasoning_content": "Look first."})
    with ModelServer(
        first, asks({"reasoning_content": "Once more."}, id="c2"), say("2.1 m"), say("Low."), owned=MADE
    ) as server:
        agent_on(server, tmp_path).chat("How high?")
        agent_on(server, tmp_path).chat("And now?")

    within = [message.get("reasoning_content") for message in answers_of(server, 2)]
    assert within == ["Look first.", "Once more."]
    assert [message.get("reasoning_content") for message in answers_of(server, 3)] == [None, None, None], (
        "the turn is over"
    )


def test_reasoning_of_another_name_is_not_sent_to_who_does_not_know_it(tmp_path: Path) -> None:
    with ModelServer(asks({"reasoning": "Look first."}), say("2.1 m")) as server:
        assert agent_on(server, tmp_path).chat("How high?") == "2.1 m"

    assert Session.open(tmp_path, "a").messages[1]["reasoning_content"] == "Look first."


def test_a_file_of_another_program_gets_its_signature_back_if_the_model_is_the_same(tmp_path: Path) -> None:
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "tide", "arguments": "{}", "thought_signature": "s"},
        "extra_content": SIGNATURE,
    }
    made = {"role": "assistant", "content": None, "model": "gemini-3", "tool_calls": [call]}
    SessionManager(tmp_path).create(session_id="a").extend(
        [{"role": "user", "content": "q"}, made, {"role": "tool", "tool_call_id": "c1", "content": "2"}]
    )

    with ModelServer(strict=False) as server:
        agent_on(server, tmp_path).chat("And?")
        agent_on(server, tmp_path, "llama3.1").chat("And?")

    first, second = (answers_of(server, n)[0]["tool_calls"][0] for n in (0, 1))
    assert (first["extra_content"], first["function"]["thought_signature"]) == (SIGNATURE, "s")
    assert (set(second), set(second["function"])) == ({"id", "type", "function"}, {"name", "arguments"})


def test_what_is_nested_too_deeply_to_be_a_providers_is_left_out(tmp_path: Path) -> None:
    deep: Any = "x"
    for _ in range(500):
        deep = [deep]
    with ModelServer(
        asks({"extra_content": {"deep": deep}}, extra_content=SIGNATURE), say("2.1 m"), owned=MADE
    ) as server:
        assert agent_on(server, tmp_path).chat("How high?") == "2.1 m"

    assert "extra_content" not in Session.open(tmp_path, "a").messages[1]
