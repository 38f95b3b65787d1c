"""Models are found on this machine when asked for, and those that end soon say when."""

from __future__ import annotations

import importlib
import re
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from sessions_lib.agent import providers
from sessions_lib.agent.providers import endpoints
from sessions_lib.agent.providers.end_dates import END_DATES
from tests.model_server import ModelServer, status

README = Path(__file__).resolve().parents[2] / "README.md"


def test_servers_on_this_machine_are_found_and_those_that_are_not_there_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with ModelServer(models=["llama3.1", "qwen3"]) as server:
        client = importlib.import_module("sessions_lib.agent.providers.client")
        monkeypatch.setattr(
            client, "PRESETS", {"OpenAI": endpoints.OPENAI_URL, "Ollama": server.url, "vLLM": "http://127.0.0.1:9/v1"}
        )
        assert providers.find_local() == {server.url: ["llama3.1", "qwen3"]}


@pytest.mark.parametrize(
    ("model", "facts", "day"),
    [
        ("gpt-4o-mini", {}, date(2027, 1, 14)),
        ("gpt-4o-2024-08-06", {}, date(2027, 1, 14)),
        ("openai/gpt-4o", {}, date(2027, 1, 14)),
        ("gpt-4o-mini", {"shutdown_date": "2027-03-01"}, date(2027, 3, 1)),
        ("x", {"shutdown_date": 1800000000}, date(2027, 1, 15)),
        ("gpt-5.6-luna", {}, None),
        ("llama3.1", {"shutdown_date": None}, None),
    ],
)  # fmt: skip
def test_a_model_that_ends_says_when(model: str, facts: dict[str, Any], day: date | None) -> None:
    assert providers.ends_on(model, facts) == day


def test_a_test_of_the_endpoint_says_what_its_server_says_of_the_model() -> None:
    facts = {
        "id": "m",
        "object": "model",
        "owned_by": "vllm",
        "context_length": 8192,
        "shutdown_date": "2027-01-31",
        "architecture": {"input_modalities": ["text", "image"]},
        "supported_parameters": ["tools"],
    }
    gone = {"chat/completions": 400, "responses": 404}
    with ModelServer(models=[facts, "n"], refuse=lambda path, _: status(gone[path])) as server:
        said = providers.tested(providers.choose(model="m", base_url=server.url))
        silent = providers.tested(providers.choose(model="n", base_url=server.url))

    assert "Whether it takes pictures and tools, its server does not say." in silent
    assert said == (
        f"{server.url} answers and offers 2 models. It is vLLM. It speaks Chat Completions. Its context holds 8,192 tokens. It takes pictures. It takes tools. "
        "m ends on 2027-01-31: choose another before. It is asked over Chat Completions."
    )


def test_no_example_of_ours_names_a_model_that_ends_within_a_year() -> None:
    named = {
        endpoints.OPENAI_MODEL,
        *re.findall(r"`(gpt-[\w.-]+|o\d[\w.-]*)`|model=\"([\w.-]+)\"", README.read_text(encoding="utf-8"))[0],
    }
    soon = date.today() + timedelta(days=365)

    assert [name for name in named if name and (day := providers.ends_on(name)) is not None and day < soon] == []
    assert END_DATES
