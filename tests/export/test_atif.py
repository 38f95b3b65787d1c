"""ATIF: the models of the package ``atif`` say that it is one, and what was copied is marked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sessions_lib import SessionManager, importers
from sessions_lib.errors import SessionError
from sessions_lib.export import export
from sessions_lib.messages import usage
from tests.cli.terminal import Terminal
from tests.export.other_side import judge
from tests.importers.files import CORPUS, DATA

Messages = list[dict[str, Any]]


def trajectory(said: Messages, **meta: Any) -> dict[str, Any]:
    written: dict[str, Any] = json.loads(export.export(said, {"id": "a", **meta}, "atif"))
    judge("atif").Trajectory.model_validate(written)
    return written


def call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_an_answer_is_one_step_with_its_calls_results_and_metrics() -> None:
    calls = [call("c1", "tide", '{"port":"Ember"}'), call("c1", "wind", "not JSON")]
    tokens = {"prompt_tokens": 1_000_000, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 2}}
    said: Messages = [
        {"role": "user", "content": "Tide?", "id": "m1", "timestamp": 1772355600},
        {
            "role": "assistant", "content": None, "tool_calls": calls, "id": "m2", "model": "gpt-5", "usage": tokens,
            "reasoning_content": "Ask both.", "timestamp": "2026-03-01T09:00:01Z", "base_url": "https://api.openai.com/v1",
        },
        {"role": "tool", "tool_call_id": "c1", "content": "2.1 m"},
        {"role": "tool", "tool_call_id": "c1", "content": "no such port", "is_error": True},
        {"role": "tool", "tool_call_id": "gone", "content": "orphan"},
    ]  # fmt: skip

    written = trajectory(said, system="Be kind.", title="Tides", model="gpt-5")

    system, prompt, answer, orphan = written["steps"]
    assert (system["source"], system["message"]) == ("system", "Be kind.")
    assert prompt == {
        "step_id": 2,
        "source": "user",
        "message": "Tide?",
        "timestamp": "2026-03-01T09:00:00.000Z",
        "extra": {"id": "m1"},
    }
    assert answer["tool_calls"] == [
        {"tool_call_id": "c1", "function_name": "tide", "arguments": {"port": "Ember"}},
        {"tool_call_id": "c1-2", "function_name": "wind", "arguments": {}, "extra": {"arguments": "not JSON"}},
    ]
    assert answer["observation"]["results"] == [
        {"source_call_id": "c1", "content": "2.1 m"},
        {"source_call_id": "c1-2", "content": "no such port", "extra": {"is_error": True}},
    ]
    assert (answer["reasoning_content"], answer["message"], answer["model_name"]) == ("Ask both.", "", "gpt-5")
    assert answer["metrics"].items() >= {"prompt_tokens": 1_000_000, "completion_tokens": 7, "cached_tokens": 2}.items()
    assert answer["metrics"]["cost_usd"] == pytest.approx(1.25, abs=0.001)
    assert orphan["observation"] == {"results": [{"content": "orphan"}]}
    assert written["final_metrics"]["total_prompt_tokens"] == 1_000_000
    assert written["extra"] == {"title": "Tides", "system": "Be kind.", "model": "gpt-5"}


def test_what_nobody_reported_is_left_out() -> None:
    written = trajectory([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a", "model": "no-such"}])

    assert "metrics" not in written["steps"][1]
    assert "total_cost_usd" not in written["final_metrics"]
    assert "total_prompt_tokens" not in written["final_metrics"]


def test_pictures_and_sounds_are_parts_and_what_has_no_type_is_named() -> None:
    parts = [
        {"type": "text", "text": "See:"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
        {"type": "file", "file": {"filename": "a.pdf"}},
    ]

    message = trajectory([{"role": "user", "content": parts}])["steps"][0]["message"]

    assert message == [
        {"type": "text", "text": "See:"},
        {"type": "image", "source": {"media_type": "image/png", "path": "data:image/png;base64,AAAA"}},
        {"type": "text", "text": "[image on another server] https://example.org/a"},
        {"type": "audio", "source": {"media_type": "audio/mpeg", "path": "data:audio/mpeg;base64,AAAA"}},
        {"type": "text", "text": "[file a.pdf]"},
    ]


def test_the_steps_that_a_fork_copied_say_so(terminal: Terminal) -> None:
    terminal.ok("demo")
    manager = SessionManager(terminal.folder)
    forks = [info for info in manager.list() if info.inherited]

    for info in forks:
        written = json.loads(terminal.ok("export", info.id, "--format", "atif", "-o", "-"))

        judge("atif").Trajectory.model_validate(written)
        session = manager.open(info.id)
        results = sum(message["role"] == "tool" for message in session.messages[: info.inherited])
        copied = [step for step in written["steps"] if step.get("is_copied_context")]
        assert len(copied) == info.inherited - results
        assert written["final_metrics"]["total_completion_tokens"] == usage.total(session.messages).output
        own = usage.total(session.messages[info.inherited :])
        assert written["final_metrics"]["extra"]["own"]["total_completion_tokens"] == own.output
    assert forks


def test_every_importable_file_of_the_corpus_is_a_trajectory() -> None:
    model = judge("atif").Trajectory
    files = sorted(path for root in (DATA, CORPUS) for path in root.rglob("*") if path.is_file())
    kinds = set()

    for path in files:
        try:
            found, _ = importers.read(path)
        except SessionError:
            continue  # refused by name: the importers' tests
        for session in found:
            written = json.loads(export.export(session.messages, session.meta, "atif", redacted=True))
            model.model_validate(written)
            calls = [one for step in written["steps"] for one in step.get("tool_calls", ())]
            assert len(calls) == sum(len(message.get("tool_calls") or ()) for message in session.messages), path
        kinds.add(path.relative_to(DATA if path.is_relative_to(DATA) else CORPUS).parts[0])
    assert len(kinds) >= 10
