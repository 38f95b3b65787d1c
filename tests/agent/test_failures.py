"""What servers do wrong, and what a person then reads: redirects, refusals in every form, waits, streams that hang."""

from __future__ import annotations

import email.utils
import time
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from sessions_lib import Agent, Session, tool
from sessions_lib.agent import providers, runs
from sessions_lib.agent.cancellation import Stop
from sessions_lib.agent.events import Finished, Waiting
from sessions_lib.agent.providers import Endpoint, waiting
from sessions_lib.errors import ProviderError
from sessions_lib.store.manager import SessionManager
from sessions_lib.store.store import open_store
from tests.model_server import SILENCE, ModelServer, Reply, chunk, say, status, usage_chunk, whole


def agent_on(server: ModelServer, folder: Path, **options: Any) -> Agent:
    return Agent(session_id="a", base_url=server.url, model="tiny", save_dir=folder, **options)


def refused(server: ModelServer, folder: Path, **options: Any) -> str:
    """The sentence that a prompt ends in."""
    with pytest.raises(ProviderError) as caught:
        agent_on(server, folder, **options).chat("Tide?")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def stored(folder: Path) -> list[dict[str, Any]]:
    return Session.open(folder, "a").messages


# ------------------------------------------------------------------ redirects


def moved(target: str, code: int = 307) -> Reply:
    return Reply(status=code, kind="text/plain", body=b"", headers={"location": target})


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_to_another_server_is_refused_and_told(tmp_path: Path, code: int) -> None:
    with ModelServer() as other, ModelServer(moved(f"{other.url}/chat/completions", code)) as server:
        said = refused(server, tmp_path, api_key="sk-secret")

    assert said == (
        f"{server.url} leads to another server, {other.url}/chat/completions; nothing was sent there. "
        "If that is the one you mean, give its address."
    )
    assert (len(server.requests), other.requests) == (1, [])
    assert [m["role"] for m in stored(tmp_path)] == ["user"]


@pytest.mark.parametrize("code", [301, 302, 303])
def test_a_redirect_that_would_lose_the_question_names_the_address_to_give(tmp_path: Path, code: int) -> None:
    with ModelServer() as server:
        server.queue.insert(0, moved(f"{server.url}/2/chat/completions", code))

        assert refused(server, tmp_path) == (
            f"{server.url} leads to {server.url}/2, and the question cannot follow it there; nothing was sent. "
            "Give that address instead."
        )
    assert len(server.requests) == 1


@pytest.mark.parametrize("code", [301, 302, 307, 308])
def test_a_client_made_elsewhere_follows_no_redirect_to_another_server(tmp_path: Path, code: int) -> None:
    with ModelServer() as other, ModelServer(moved(f"{other.url}/chat/completions", code)) as server:
        made = OpenAI(base_url=server.url, api_key="sk-secret")
        with pytest.raises(ProviderError, match="leads to another server"):
            Agent(session_id="a", client=made, model="m", save_dir=tmp_path).chat("Tide?")

        assert [m.id for m in made.models.list()] == ["tiny"]  # its own requests are its own
    assert (len(server.requests), other.requests, other.keys) == (1, [], [])


def test_the_list_of_models_follows_no_redirect_either(tmp_path: Path) -> None:
    with ModelServer() as other, ModelServer() as server:
        server.get_reply = moved(f"{other.url}/models")

        assert "leads to another server" in providers.check(Endpoint(server.url, api_key="sk-secret"))
    assert other.keys == []


def test_a_redirect_on_the_same_server_is_followed(tmp_path: Path) -> None:
    with ModelServer(say("Yes.")) as server:
        server.queue.insert(0, moved(f"{server.url}/chat/completions"))

        assert agent_on(server, tmp_path).chat("Hm?") == "Yes."


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        ([{"error": {"code": 400, "message": "Unknown name"}}], "application/json", "Unknown name"),
        ({"detail": "Not allowed here"}, "application/json", "Not allowed here"),
        (
            {"detail": [{"loc": ["body", "messages"], "msg": "Field required"}]},
            "application/json",
            "body.messages: Field required",
        ),
        ({"message": "no such deployment"}, "application/json", "no such deployment"),
        ('{"error": "in a text"}', "text/plain", "in a text"),
        ("the model is not loaded", "text/plain", "the model is not loaded"),
        ("<html><head><title>Bad Request</title></head><body>nginx</body></html>", "text/html", "Bad Request · nginx"),
    ],
)
def test_the_words_of_a_refusal_are_shown_whatever_their_form(tmp_path: Path, body: Any, kind: str, words: str) -> None:
    with ModelServer(whole(body, kind, 400), whole(body, kind, 200)) as server:
        assert refused(server, tmp_path) == f"{server.url} refused the request (400): {words}."
        assert words in refused(server, tmp_path)


def test_an_error_in_the_middle_of_an_answer_gives_its_words_and_keeps_what_was_said(tmp_path: Path) -> None:
    for number, error in enumerate(
        [
            {"error": {"code": 502, "message": "Provider died"}, "choices": [{"delta": {}, "finish_reason": "error"}]},
            {"choices": [{"delta": {}, "finish_reason": "error", "error": {"message": "Provider died"}}]},
            [{"error": {"message": "Provider died"}}],
            {"object": "error", "message": "Provider died"},
        ]
    ):
        folder = tmp_path / str(number)
        with ModelServer(Reply([chunk({"content": "At "}), error])) as server:
            assert "Provider died" in refused(server, folder)

        assert (stored(folder)[1]["content"], stored(folder)[1]["interrupted"]) == ("At ", True)


@pytest.mark.parametrize("code", [400, 413, 422, 500])
def test_a_conversation_that_is_too_long_is_known_under_any_status(tmp_path: Path, code: int) -> None:
    with ModelServer(*[status(code, "prompt is too long: 213462 tokens > 200000 maximum")] * 3) as server:
        assert refused(server, tmp_path) == (
            f"The conversation is too long for this model ({code}). Fork from an earlier message: "
            "prompt is too long: 213462 tokens > 200000 maximum."
        )


def test_a_conversation_that_is_too_long_is_known_inside_a_stream(tmp_path: Path) -> None:
    with ModelServer(Reply(['{"error": {"message": "Context size has been exceeded."}}'])) as server:
        assert refused(server, tmp_path).startswith("The conversation is too long for this model. Fork from")


# ------------------------------------------------------------------ answers that failed


@pytest.mark.parametrize(
    "reason",
    [
        "error",
        "ERROR",
        "abort",
        "insufficient_system_resource",
        "network_error",
        "server_error",
        "engine_overloaded",
        "failure",
        "timeout",
        "user_cancelled",
        "interrupted",
    ],
)
def test_an_answer_that_ended_in_an_error_is_interrupted(tmp_path: Path, reason: str) -> None:
    with ModelServer(say("The tide", finish=reason), say("At noon.")) as server:
        said = refused(server, tmp_path)
        list(agent_on(server, tmp_path).stream(None))

    assert said == (
        f"{server.url} stopped in the middle of its answer with {reason!r}. "
        "What was said is saved, marked as interrupted. Ask again to have it answered anew."
    )
    first, second = stored(tmp_path)[1:]
    assert (first["content"], first["finish_reason"], first["interrupted"]) == ("The tide", reason, True)
    assert (second["content"], second.get("interrupted")) == ("At noon.", None)
    assert [m["content"] for m in server.sent[1]] == ["Tide?"]


def test_calls_of_an_answer_that_ended_in_an_error_are_not_run(tmp_path: Path) -> None:
    ran = []

    @tool
    def look() -> str:
        """Looks."""
        ran.append(1)
        return "ok"

    call = {"index": 0, "id": "c1", "function": {"name": "look", "arguments": "{}"}}
    with ModelServer(Reply([chunk({"tool_calls": [call]}), chunk({}, "error")])) as server:
        refused(server, tmp_path, tools=[look])

    assert ran == []
    assert stored(tmp_path)[1]["unfinished_calls"] == [{"name": "look", "arguments": "{}"}]


# ------------------------------------------------------------------ a stream that says it ended, and stays open


@pytest.mark.parametrize("tail", [[], [usage_chunk()]])
@pytest.mark.parametrize("has_stop", [True, False])
def test_a_stream_that_has_ended_is_over_though_the_connection_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tail: list[Any], has_stop: bool
) -> None:
    monkeypatch.setattr(providers.chat, "LINGER_S", 0.2)
    with ModelServer(Reply([chunk({"content": "Yes."}), chunk({}, "stop"), *tail, SILENCE])) as server:
        *_, last = agent_on(server, tmp_path).stream("Hm?", stop=Stop() if has_stop else None)
        assert server.wait_aborted()

    assert isinstance(last, Finished)
    assert (last.answer, last.interrupted) == ("Yes.", False)
    assert stored(tmp_path)[1].get("usage", {}).get("total_tokens") == (15 if tail else None)


def test_a_server_that_says_why_it_ended_with_every_word_is_heard_to_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(providers.chat, "LINGER_S", 0.4)
    words = [chunk({"content": f"{number} "}, "stop") for number in range(12)]
    with ModelServer(Reply(words, pause_s=0.1)) as server:
        assert agent_on(server, tmp_path).chat("Count") == "0 1 2 3 4 5 6 7 8 9 10 11 "


# ------------------------------------------------------------------ waiting


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "40"}, 40.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "40"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "-3"}, None),
        ({}, None),
    ],
)
def test_what_a_server_asks_to_wait_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert waiting.asked_for(headers) == seconds


def test_a_date_to_wait_for_is_read_too() -> None:
    in_a_while = email.utils.formatdate(time.time() + 100, usegmt=True)

    assert 95 <= (waiting.asked_for({"retry-after": in_a_while}) or 0) <= 100
    assert waiting.asked_for({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0.0


def busy(after: str, code: int = 429) -> Reply:
    return Reply(
        status=code, kind="application/json", body=b'{"error":{"message":"slow down"}}', headers={"retry-after": after}
    )


def test_a_wait_that_was_asked_for_is_told_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(providers.chat, "SHOWN_FROM_S", 0.1)
    with ModelServer(busy("0.3"), say("2.1 m")) as server:
        events = list(agent_on(server, tmp_path).stream("Tide?"))

    (told,) = [event for event in events if isinstance(event, Waiting)]
    assert told == Waiting(0.3, f"{server.url} asks to wait 1 s (429)")
    assert [m.get("content") for m in stored(tmp_path)] == ["Tide?", "2.1 m"]


@pytest.mark.parametrize("code", [429, 503])
def test_nobody_waits_longer_than_a_minute_without_being_asked(tmp_path: Path, code: int) -> None:
    with ModelServer(busy("120", code)) as server:
        said = refused(server, tmp_path)

    assert said == f"{server.url} asks to wait 2 min 0 s ({code}). Ask again then: slow down."
    assert len(server.requests) == 1


def test_several_waits_are_a_minute_together() -> None:
    class Refused(Exception):
        status_code = 429

        class response:
            headers = {"retry-after": "40"}

    assert waiting.before_next_try(Refused(), 1, 0.0) == 40.0
    assert waiting.before_next_try(Refused(), 2, 40.0) is None


def test_a_wait_can_be_stopped_and_the_run_says_that_it_waits(tmp_path: Path) -> None:
    SessionManager(tmp_path).create(session_id="a")
    with ModelServer(busy("50")) as server:
        run = runs.start("a", "Tide?", runs.Settings(open_store(tmp_path), base_url=server.url, model="tiny"))
        shown = next(snapshot for snapshot in run.follow() if snapshot.waiting or snapshot.state != "running")
        run.stop()
        assert run.wait(10)

    assert shown.waiting is not None
    assert shown.waiting.text == f"{server.url} asks to wait 50 s (429)"
    assert 0 < shown.waiting.left_s() <= 50
    assert (run.state, run.snapshot().waiting) == ("stopped", None)
    assert [m["role"] for m in stored(tmp_path)] == ["user"]
