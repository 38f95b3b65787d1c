"""A request goes where the session says: arguments, then its metadata, then the environment; a key to its own place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import Agent, Session, SessionManager
from sessions_lib.agent import providers, runs
from sessions_lib.agent.providers import Endpoint
from sessions_lib.errors import ProviderError, SessionError
from sessions_lib.store.store import open_store
from tests.model_server import ModelServer, say

HERE, THERE, OPENAI = "http://127.0.0.1:11434/v1", "https://models.example/v1", "https://api.openai.com/v1"
KEY, MODEL, URL = "OPENAI_API_KEY", "OPENAI_MODEL", "OPENAI_BASE_URL"


@pytest.fixture(autouse=True)
def _no_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (KEY, MODEL, URL):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("session", "environment", "arguments", "expected"),
    [
        ({"base_url": HERE, "model": "m"}, {}, {}, Endpoint(HERE, "m")),
        ({"base_url": HERE, "model": "m"}, {KEY: "k"}, {}, Endpoint(HERE, "m")),
        ({"base_url": HERE, "model": "m"}, {KEY: "k", MODEL: "e", URL: THERE}, {}, Endpoint(HERE, "m")),
        ({"base_url": HERE}, {KEY: "k", MODEL: "e"}, {}, Endpoint(HERE, "")),
        ({"base_url": HERE}, {URL: HERE + "/", MODEL: "e", KEY: "k"}, {}, Endpoint(HERE, "e", "k")),
        ({"base_url": HERE, "model": "m"}, {URL: HERE, KEY: "k"}, {}, Endpoint(HERE, "m", "k")),
        ({"base_url": OPENAI, "model": "m"}, {URL: THERE, KEY: "k"}, {}, Endpoint(OPENAI, "m", wire="responses")),
        ({"base_url": OPENAI, "model": "m"}, {KEY: "k"}, {}, Endpoint(OPENAI, "m", "k", wire="responses")),
        ({"base_url": "https://API.OpenAI.com:443/v1/", "model": "m"}, {KEY: "k"}, {}, Endpoint("https://API.OpenAI.com:443/v1", "m", "k", wire="responses")),
        ({"base_url": "http://api.openai.com/v1", "model": "m"}, {KEY: "k"}, {}, Endpoint("http://api.openai.com/v1", "m")),
        ({"base_url": "https://api.openai.com.evil.example/v1"}, {KEY: "k"}, {}, Endpoint("https://api.openai.com.evil.example/v1")),
        ({"model": "m"}, {URL: HERE}, {}, Endpoint(HERE, "m")),
        ({"model": "m"}, {}, {}, Endpoint(OPENAI, "m", wire="responses")),
        ({"model": "demo"}, {KEY: "k", URL: HERE}, {}, Endpoint(None, "demo")),
        ({"model": "demo"}, {URL: HERE}, {"model": "m"}, Endpoint(HERE, "m")),
        ({"model": "demo"}, {}, {"base_url": HERE}, Endpoint(HERE, "")),
        ({"base_url": HERE, "model": "m"}, {}, {"model": "other"}, Endpoint(HERE, "other")),
        ({"base_url": HERE, "model": "m"}, {}, {"base_url": THERE}, Endpoint(THERE, "")),
        ({"base_url": HERE, "model": "m"}, {}, {"base_url": HERE + "/"}, Endpoint(HERE, "m")),
        ({"base_url": HERE, "model": "m"}, {}, {"model": "demo"}, Endpoint(None, "demo")),
        ({"base_url": HERE, "model": "m"}, {}, {"api_key": "k"}, Endpoint(HERE, "m", "k")),
        ({"base_url": HERE}, {URL: "http://me:pw@127.0.0.1:11434/v1"}, {}, Endpoint("http://me:pw@127.0.0.1:11434/v1")),
        ({"base_url": "", "model": ""}, {}, {}, Endpoint(None, "demo")),
        ({}, {URL: HERE, MODEL: "e"}, {}, Endpoint(HERE, "e")),
    ],
)  # fmt: skip
def test_arguments_come_before_the_session_and_the_session_before_the_environment(
    monkeypatch: pytest.MonkeyPatch,
    session: dict[str, Any],
    environment: dict[str, str],
    arguments: dict[str, str],
    expected: Endpoint,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert providers.choose(**arguments, session=session) == expected


@pytest.mark.parametrize(
    "named", [{"base_url": "llama"}, {"base_url": 7}, {"model": ["m"]}, {"base_url": "ftp://x/v1"}]
)
def test_a_session_that_names_what_is_no_endpoint_is_answered_by_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: dict[str, Any]
) -> None:
    SessionManager(tmp_path).create(session_id="a", **named)
    with ModelServer() as server:
        monkeypatch.setenv(URL, server.url)
        with pytest.raises(ProviderError):
            Agent(session_id="a", save_dir=tmp_path).chat("Hello")

    assert server.requests == []
    assert Session.open(tmp_path, "a").messages == []


def test_a_session_goes_to_its_own_server_whatever_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ModelServer() as own, ModelServer() as other:
        SessionManager(tmp_path).create(
            session_id="a", base_url=own.url, model="mine", system="Be brief.", temperature=0.5
        )
        monkeypatch.setenv(URL, other.url)
        monkeypatch.setenv(KEY, "sk-of-the-other")
        monkeypatch.setenv(MODEL, "theirs")

        Agent(session_id="a", save_dir=tmp_path).chat("Hello")
        Agent(session=SessionManager(tmp_path).open("a")).chat("Again")
        run = runs.start("a", "And again", runs.Settings(open_store(tmp_path)))
        assert run.wait(30)

    assert other.requests == []
    assert [(r["model"], r["temperature"], r["messages"][0]["content"]) for r in own.requests] == [
        ("mine", 0.5, "Be brief.")
    ] * 3
    assert own.keys == ["Bearer none"] * 3, "the key of the environment belongs to another server"


def test_a_fork_goes_where_its_parent_went(tmp_path: Path) -> None:
    with ModelServer() as server:
        SessionManager(tmp_path).create(session_id="a", base_url=server.url, model="mine").append(
            {"role": "user", "content": "1"}
        )
        SessionManager(tmp_path).open("a").fork("b")

        Agent(session_id="b", save_dir=tmp_path).chat("Hello")

    assert server.requests[0]["model"] == "mine"


def test_a_server_that_is_gone_is_said_and_nobody_else_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer() as gone:
        address = gone.url
    SessionManager(tmp_path).create(session_id="a", base_url=address, model="m")
    with ModelServer() as other:
        monkeypatch.setenv(URL, other.url)
        with pytest.raises(ProviderError, match="cannot be reached"):
            Agent(session_id="a", save_dir=tmp_path).chat("Hello")

    assert other.requests == []
    assert [m["role"] for m in Session.open(tmp_path, "a").messages] == ["user"]


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({}, "Set OPENAI_API_KEY"),
        ({URL: THERE, KEY: "sk-x"}, f"The key of the environment belongs to {THERE}"),
    ],
)
def test_without_a_key_for_openai_it_says_so_and_stores_and_sends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], words: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    SessionManager(tmp_path).create(session_id="a", base_url=OPENAI, model="gpt-5")

    with pytest.raises(ProviderError, match="wants an API key; nothing was sent") as caught:
        Agent(session_id="a", save_dir=tmp_path).chat("Hello")

    assert words in str(caught.value)
    assert Session.open(tmp_path, "a").messages == []
    Session.open(tmp_path, "a").append({"role": "user", "content": "the lock is free"})


def test_what_an_agent_was_given_comes_back_with_the_session_and_the_key_does_not(tmp_path: Path) -> None:
    with ModelServer(models=["small"]) as server:
        options: dict[str, Any] = {"base_url": server.url + "/", "api_key": "sk-secret", "save_dir": tmp_path}
        Agent(session_id="a", system="Be kind.", temperature=0.1, **options).chat("1")
        Agent(session_id="a", save_dir=tmp_path).chat("2")

    meta = json.loads((tmp_path / "a.meta.json").read_text())
    assert {key: meta.get(key) for key in ("base_url", "model", "system", "temperature")} == {
        "base_url": server.url,
        "model": "small",
        "system": "Be kind.",
        "temperature": 0.1,
    }
    assert [(r["model"], r["temperature"]) for r in server.requests] == [("small", 0.1)] * 2
    assert server.keys == ["Bearer sk-secret", "Bearer none"]
    assert b"sk-secret" not in b"".join(f.read_bytes() for f in tmp_path.rglob("*") if f.is_file())


def test_a_login_in_an_address_is_used_and_not_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer() as server:
        address = server.url.replace("//", "//me:password@")
        Agent(session_id="a", base_url=address, model="m", save_dir=tmp_path).chat("1")
        Agent(session_id="a", save_dir=tmp_path).chat("2")
        monkeypatch.setenv(URL, address)
        Agent(session_id="a", save_dir=tmp_path).chat("3")

    assert [key.split()[0] for key in server.keys] == ["Basic", "Bearer", "Basic"]
    assert b"password" not in (tmp_path / "a.meta.json").read_bytes()


def test_a_session_that_has_begun_keeps_its_metadata(tmp_path: Path) -> None:
    session = SessionManager(tmp_path).create(session_id="a")
    session.append({"role": "user", "content": "1"})
    before = (tmp_path / "a.meta.json").read_bytes()

    with ModelServer() as server:
        Agent(session_id="a", base_url=server.url, model="m", save_dir=tmp_path).chat("2")

    assert (tmp_path / "a.meta.json").read_bytes() == before


def test_a_session_that_was_loaded_is_answered_where_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SESSIONS_DIR", str(tmp_path))
    with ModelServer(say("One."), say("Two.")) as server:
        first = Agent(session_id="a", base_url=server.url, model="mine", system="Be brief.")
        first.chat("1")
        first.session.save(tmp_path / "a.json")
        second = Agent(name="tutor")
        assert second.endpoint.is_demo
        second.session.load(tmp_path / "a.json")
        second.chat("2")

    assert (server.requests[1]["model"], server.sent[1][0]["content"]) == ("mine", "Be brief.")
    assert "tools" not in server.requests[1], "the demo's tools are the demo's"


def test_a_key_that_was_given_does_not_follow_a_session_to_another_server(tmp_path: Path) -> None:
    with ModelServer() as own, ModelServer() as other:
        SessionManager(tmp_path).create(session_id="a", base_url=own.url, model="m")
        agent = Agent(session_id="a", api_key="sk-for-own", save_dir=tmp_path)
        agent.chat("1")
        SessionManager(tmp_path).open("a").update_meta({"base_url": other.url})
        agent.chat("2")
        SessionManager(tmp_path).open("a").update_meta({"base_url": own.url})
        agent.fork("b").chat("3")

    assert (own.keys, other.keys) == (["Bearer sk-for-own", "Bearer sk-for-own"], ["Bearer none"])


def test_settings_changed_while_an_agent_lives_are_those_of_its_next_prompt(tmp_path: Path) -> None:
    with ModelServer() as server:
        SessionManager(tmp_path).create(session_id="a", base_url=server.url, model="one")
        agent = Agent(session_id="a", save_dir=tmp_path)
        agent.chat("1")
        SessionManager(tmp_path).open("a").update_meta({"model": "two"})
        agent.chat("2")

    assert [request["model"] for request in server.requests] == ["one", "two"]


def test_a_wrong_address_or_key_makes_no_session(tmp_path: Path) -> None:
    for options in ({"base_url": "nope"}, {"base_url": HERE, "api_key": "a b"}):
        with pytest.raises(SessionError):
            Agent(save_dir=tmp_path / "s", **options)

    assert not (tmp_path / "s").exists()
