"""Plain ``openai`` code is written down: what was sent, what was answered, and where it parted."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from openai import APIStatusError, AsyncOpenAI, OpenAI

from sessions_lib import SessionManager
from sessions_lib.adapters.recording import record
from tests.model_server import USAGE, ModelServer, Reply, ask, say, status

ROOT = Path(__file__).resolve().parents[2]
ASKED: Any = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "How deep is the cave?"}]
RESPONSE = {
    "id": "resp_1", "object": "response", "created_at": 0, "model": "served", "status": "completed", "parallel_tool_calls": True,
    "tool_choice": "auto", "tools": [], "usage": {"input_tokens": 9, "output_tokens": 3, "total_tokens": 12, "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 1}},
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Ask."}], "encrypted_content": "gAAA"},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "Forty metres.", "annotations": []}]},
    ],
}  # fmt: skip


@pytest.fixture
def session(tmp_path):
    return SessionManager(tmp_path).create(session_id="cave")


def client(server: ModelServer) -> OpenAI:
    return OpenAI(base_url=server.url, api_key="x", max_retries=0)


def whole(text: str) -> Reply:
    message = {"role": "assistant", "content": text}
    body = {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": "served",
        "usage": USAGE,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }
    return Reply(body=json.dumps(body).encode(), kind="application/json")


def said(session: Any) -> list[tuple[str, str]]:
    session.refresh()
    return [(message["role"], message["content"]) for message in session.messages]


def test_a_conversation_is_written_as_it_goes(session) -> None:
    with (
        ModelServer(whole("Forty metres."), say("Ten."), strict=False) as server,
        record(client(server), session) as recorded,
    ):
        first = recorded.chat.completions.create(model="tiny", messages=ASKED)
        history = [*ASKED, first.choices[0].message, {"role": "user", "content": "And wide?"}]
        for _ in recorded.chat.completions.create(
            model="tiny", messages=history, stream=True, stream_options={"include_usage": True}
        ):
            assert said(session)[-1] == ("user", "And wide?")

    assert said(session) == [
        ("user", "How deep is the cave?"), ("assistant", "Forty metres."), ("user", "And wide?"), ("assistant", "Ten."),
    ]  # fmt: skip
    assert (session.meta["system"], session.meta["model"], session.meta["base_url"]) == (
        "Be short.",
        "tiny",
        server.url,
    )
    for message in (session.messages[1], session.messages[3]):
        assert (message["model"], message["finish_reason"], message["usage"]) == ("served", "stop", USAGE)
        assert message["duration_ms"] >= 0


def test_the_client_that_was_given_writes_nothing_down(session) -> None:
    with ModelServer(whole("Yes."), strict=False) as server:
        plain = client(server)
        with record(plain, session):
            plain.chat.completions.create(model="tiny", messages=ASKED)

    assert said(session) == []


def test_a_tool_call_and_its_result_are_one_conversation(session) -> None:
    with (
        ModelServer(ask(("call_1", "depth", {"of": "cave"})), say("Forty."), strict=False) as server,
        record(client(server), session) as recorded,
    ):
        parts = [
            event.choices[0].delta
            for event in recorded.chat.completions.create(model="tiny", messages=ASKED, stream=True)
            if event.choices
        ]
        call = next(delta.tool_calls[0] for delta in parts if delta.tool_calls)
        called = {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": call.id, "type": "function", "function": {"name": "depth", "arguments": call.function.arguments}}
            ],
        }
        result = {"role": "tool", "tool_call_id": call.id, "content": "40 m"}
        list(recorded.chat.completions.create(model="tiny", messages=[*ASKED, called, result], stream=True))

    assert [role for role, _ in said(session)] == ["user", "assistant", "tool", "assistant"]
    assert session.report.unanswered == []


def test_a_history_that_parts_goes_on_in_a_fork(session, tmp_path) -> None:
    with (
        ModelServer(whole("Forty metres."), whole("Ten."), whole("No."), strict=False) as server,
        record(client(server), session) as recorded,
    ):
        for question in ("And wide?", "And high?"):
            history = [*ASKED, {"role": "assistant", "content": "Forty metres."}, {"role": "user", "content": question}]
            recorded.chat.completions.create(model="tiny", messages=ASKED if question == "And wide?" else history)
        recorded.chat.completions.create(
            model="tiny",
            messages=[
                *ASKED,
                {"role": "assistant", "content": "Forty metres."},
                {"role": "user", "content": "And old?"},
            ],
        )

    assert said(session)[-2:] == [("user", "And high?"), ("assistant", "Ten.")]
    (fork,) = [info.id for info in SessionManager(tmp_path).list() if info.id != "cave"]
    branch = SessionManager(tmp_path).open(fork)
    assert (branch.parent, branch.inherited) == ("cave", 2)
    assert said(branch)[-2:] == [("user", "And old?"), ("assistant", "No.")]


def test_a_window_that_slides_over_the_history_is_no_other_conversation(session, tmp_path) -> None:
    with (
        ModelServer(whole("Forty metres."), whole("Ten."), strict=False) as server,
        record(client(server), session) as recorded,
    ):
        recorded.chat.completions.create(model="tiny", messages=ASKED)
        recorded.chat.completions.create(
            model="tiny",
            messages=[{"role": "assistant", "content": "Forty metres."}, {"role": "user", "content": "And wide?"}],
        )

    assert len(SessionManager(tmp_path).list()) == 1
    assert [text for _, text in said(session)] == ["How deep is the cave?", "Forty metres.", "And wide?", "Ten."]


def test_what_was_asked_is_kept_when_it_is_refused_and_asked_again(session) -> None:
    with (
        ModelServer(status(400, "no"), whole("<think>Hm.</think>Forty."), whole("Ten."), strict=False) as server,
        record(client(server), session) as recorded,
    ):
        with pytest.raises(APIStatusError):
            recorded.chat.completions.create(model="tiny", messages=ASKED)
        assert said(session) == [("user", "How deep is the cave?")]
        answer = recorded.chat.completions.create(model="tiny", messages=ASKED).choices[0].message
        recorded.chat.completions.create(
            model="tiny", messages=[*ASKED, answer, {"role": "user", "content": "And wide?"}]
        )

    assert [text for _, text in said(session)] == ["How deep is the cave?", "Forty.", "And wide?", "Ten."]
    assert session.messages[1]["reasoning_content"] == "Hm."


def test_a_stream_that_is_left_is_kept_as_interrupted(session) -> None:
    with (
        ModelServer(say("Forty metres and more.", pause_s=0.01), strict=False) as server,
        record(client(server), session) as recorded,
    ):
        stream = recorded.chat.completions.create(model="tiny", messages=ASKED, stream=True)
        for event in stream:
            if event.choices and event.choices[0].delta.content:
                break

    assert said(session)[-1] == ("assistant", "Forty ")
    assert session.messages[-1]["interrupted"] is True


def test_async_code_and_the_helpers_of_the_client_are_written_too(session) -> None:
    async def main() -> None:
        with (
            ModelServer(whole("Forty."), say("Ten."), strict=False) as server,
            record(AsyncOpenAI(base_url=server.url, api_key="x"), session) as recorded,
        ):
            await recorded.chat.completions.create(model="tiny", messages=ASKED)
            history = [*ASKED, {"role": "assistant", "content": "Forty."}, {"role": "user", "content": "And wide?"}]
            async with recorded.chat.completions.stream(model="tiny", messages=history) as stream:
                async for _ in stream:
                    pass

    asyncio.run(main())

    assert [text for _, text in said(session)] == ["How deep is the cave?", "Forty.", "And wide?", "Ten."]


def test_responses_keep_their_items_and_go_on_from_the_one_before(session) -> None:
    second = {
        **RESPONSE,
        "id": "resp_2",
        "output": [{**RESPONSE["output"][1], "content": [{"type": "output_text", "text": "Ten.", "annotations": []}]}],
    }
    events = [
        {"type": "response.created", "sequence_number": 0, "response": {**RESPONSE, "status": "in_progress", "output": []}},
        *({"type": "response.output_item.done", "sequence_number": n, "output_index": n, "item": item} for n, item in enumerate(RESPONSE["output"])),
        {"type": "response.completed", "sequence_number": 9, "response": RESPONSE},
    ]  # fmt: skip
    replies = [Reply(events), Reply(body=json.dumps(second).encode(), kind="application/json")]
    with ModelServer(*replies, strict=False) as server, record(client(server), session) as recorded:
        list(recorded.responses.create(model="tiny", instructions="Be short.", input="How deep?", stream=True))
        recorded.responses.create(model="tiny", input="And wide?", previous_response_id="resp_1")

    assert said(session) == [
        ("user", "How deep?"),
        ("assistant", "Forty metres."),
        ("user", "And wide?"),
        ("assistant", "Ten."),
    ]
    assert session.messages[1]["items"] == RESPONSE["output"]
    assert session.messages[1]["reasoning_content"] == "Ask."
    assert session.meta["system"] == "Be short."


def test_the_lines_of_the_readme_run_against_a_server(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = next(block for block in readme.split("```python\n")[1:] if "adapters.recording" in block).split("```")[0]
    with ModelServer(whole("Forty metres."), strict=False) as server:
        env = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "SESSIONS_DIR": str(tmp_path),
            "OPENAI_API_KEY": "x",
            "OPENAI_BASE_URL": server.url,
        }
        done = subprocess.run([sys.executable, "-c", lines], env=env, capture_output=True, text=True, timeout=60)

    assert done.returncode == 0, done.stderr
    assert said(SessionManager(tmp_path).open("cave"))[-1] == ("assistant", "Forty metres.")
