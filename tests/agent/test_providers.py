"""Endpoints: which one is meant, which key goes where, what is wrong with it in one sentence."""

from __future__ import annotations

import contextlib
import json
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessions_lib import Agent, Session
from sessions_lib.agent import providers
from sessions_lib.agent.providers import Endpoint
from sessions_lib.errors import ProviderError
from tests.model_server import ModelServer, Reply, chunk, say, whole

NAMES = ("OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL")


@pytest.fixture(autouse=True)
def _no_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


HERE = "http://127.0.0.1:11434/v1"


@pytest.mark.parametrize(
    ("environment", "arguments", "expected"),
    [
        ({}, {}, Endpoint(None, "demo")),
        ({"OPENAI_API_KEY": "k"}, {"model": "demo"}, Endpoint(None, "demo")),
        ({"OPENAI_API_KEY": "k"}, {}, Endpoint("https://api.openai.com/v1", "gpt-5.6-luna", "k", wire="responses")),
        (
            {"OPENAI_API_KEY": "k", "OPENAI_MODEL": "m"},
            {},
            Endpoint("https://api.openai.com/v1", "m", "k", wire="responses"),
        ),
        ({"OPENAI_BASE_URL": HERE + "/"}, {}, Endpoint(HERE, "")),
        ({"OPENAI_BASE_URL": HERE, "OPENAI_MODEL": "m", "OPENAI_API_KEY": "k"}, {}, Endpoint(HERE, "m", "k")),
        ({}, {"model": "m", "base_url": HERE, "api_key": "k"}, Endpoint(HERE, "m", "k")),
        ({"OPENAI_API_KEY": "k", "OPENAI_MODEL": "m"}, {"base_url": HERE}, Endpoint(HERE, "")),
        ({"OPENAI_BASE_URL": HERE, "OPENAI_API_KEY": "k"}, {"base_url": HERE}, Endpoint(HERE, "", "k")),
        ({}, {"model": "m"}, Endpoint("https://api.openai.com/v1", "m", wire="responses")),
        ({"OPENAI_BASE_URL": "", "OPENAI_API_KEY": "", "OPENAI_MODEL": ""}, {}, Endpoint(None, "demo")),
    ],
)
def test_arguments_come_before_the_environment_and_a_key_goes_only_where_it_belongs(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], arguments: dict[str, str], expected: Endpoint
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    found = providers.choose(**arguments)

    assert found == expected
    assert "'k'" not in repr(found)


@pytest.mark.parametrize("url", ["localhost:11434", "ftp://x/v1", "http://", "http://a b/v1", "http://x:99999/", "x"])
def test_what_is_no_address_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(ProviderError, match="It looks like http://127"):
        providers.choose(base_url=url)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://localhost:1/v1", True),
        ("http://127.0.0.1/v1", True),
        ("http://127.9.9.9/v1", True),
        ("http://[::1]:1/v1", True),
        ("http://0.0.0.0:1/v1", True),
        ("http://model.localhost/v1", True),
        ("http://192.168.0.2/v1", False),
        ("https://localhost.example.com/v1", False),
    ],
)
def test_this_machine_is_told_from_others(url: str, expected: bool) -> None:
    assert providers.is_loopback(url) is expected


def test_the_name_of_an_endpoint_hides_what_is_secret_in_its_address() -> None:
    assert Endpoint("https://user:secret@example.com/v1?key=secret").name == "https://example.com/v1"


def test_the_models_are_listed_in_the_servers_order() -> None:
    with ModelServer(models=["small", "large", "small"]) as server:
        assert providers.list_models(Endpoint(server.url)) == ["small", "large"]
    assert providers.list_models(Endpoint()) == ["demo"]


def test_the_context_of_a_model_is_known_where_the_server_says_it() -> None:
    vllm = {"id": "vllm", "object": "model", "max_model_len": 8192}
    llama = {"id": "llama", "object": "model", "meta": {"n_ctx_train": 2048}}
    wrong = {"id": "wrong", "object": "model", "context_length": "many", "meta": 7}
    with ModelServer(models=[vllm, llama, wrong, "silent"]) as server:
        assert providers.context_sizes(Endpoint(server.url)) == {"vllm": 8192, "llama": 2048}
    assert providers.context_sizes(Endpoint()) == {}


def test_a_check_says_in_one_sentence_what_is_wrong() -> None:
    with ModelServer(models=["small", "large"]) as server:
        assert providers.check(Endpoint(server.url, "small")) == f"{server.url} answers and offers 2 models."
        assert providers.check(Endpoint(server.url, "big")) == (
            f"{server.url} answers, but lists no model 'big'. It has: small, large."
        )
        assert "usually ends with /v1" in providers.check(Endpoint(server.url.removesuffix("/v1")))
        server.models = []
        assert "lists no model" in providers.check(Endpoint(server.url))
        assert server.requests == []
    assert "cannot be reached" in providers.check(Endpoint(f"http://127.0.0.1:{free_port()}/v1"))
    assert "The offline demo is ready" in providers.check(Endpoint())


def test_a_silent_server_is_given_up_with_a_sentence(tmp_path: Path) -> None:
    with ModelServer(*[Reply(is_silent=True)] * 3) as server:
        endpoint = Endpoint(server.url, "tiny", timeout_s=0.05)
        agent = Agent(session_id="a", client=providers.client(endpoint), model="tiny", save_dir=tmp_path)
        with pytest.raises(ProviderError, match="did not answer in time"):
            agent.chat("When?")

    assert [m["role"] for m in Session.open(tmp_path, "a").messages] == ["user"]


def test_a_client_made_elsewhere_is_used_as_it_is(tmp_path: Path) -> None:
    from openai import OpenAI

    with ModelServer() as server:
        client = OpenAI(base_url=server.url, api_key="own")
        Agent(session_id="a", client=client, model="mine", save_dir=tmp_path).chat("Hello")

    assert (server.keys, server.requests[0]["model"]) == (["Bearer own"], "mine")


KEYS = [
    "choices",
    "delta",
    "content",
    "tool_calls",
    "function",
    "index",
    "id",
    "name",
    "arguments",
    "usage",
    "model",
    "finish_reason",
    "object",
    "error",
    "message",
]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 10**20) | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(VALUES | st.dictionaries(st.just("choices"), VALUES), max_size=3), st.booleans(), st.booleans())
def test_whatever_a_server_streams_ends_in_an_answer_or_in_one_sentence(
    tmp_path: Path, odd: list[Any], is_ended: bool, is_whole_body: bool
) -> None:
    ending = [chunk({"content": "."}), chunk({}, "stop")] if is_ended else []
    first = whole(odd[0] if odd else "") if is_whole_body else Reply([json.dumps(one) for one in odd] + ending)
    session = Session()
    with ModelServer(first, say("Fine.")) as server:
        agent = Agent(session=session, base_url=server.url, model="tiny", save_dir=tmp_path)
        with contextlib.suppress(ProviderError):  # anything else fails the test
            agent.chat("Hm?")
        if session.messages[-1].get("role") != "tool":
            assert agent.chat("And now?") == "Fine."


def test_certificates_are_read_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    import httpx2

    from sessions_lib.agent.providers.client import _certificates, client

    read: list[bool] = []
    made = httpx2.create_ssl_context
    monkeypatch.setattr(httpx2, "create_ssl_context", lambda **given: read.append(True) or made(**given))
    _certificates.cache_clear()

    for number in range(3):
        client(Endpoint(base_url=f"http://127.0.0.1:{9000 + number}/v1", model="tiny"))

    assert len(read) == 1
