"""A server that echoes the API key: it is neither stored nor shown, in whatever form it comes back."""

from __future__ import annotations

import base64
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import OpenAI

from sessions_lib import Agent
from sessions_lib.agent import providers
from sessions_lib.agent.events import ReasoningDelta, TextDelta
from sessions_lib.agent.own_key import OwnKey, Withheld
from sessions_lib.errors import ProviderError
from tests.model_server import DROP, ModelServer, Reply, ask, chunk, status, whole

KEY = "sk-live/+Key=42-geheim"


@pytest.mark.parametrize(
    "echo",
    [
        KEY,
        KEY.upper(),
        quote(KEY, safe=""),
        quote(KEY, safe="").lower(),
        "".join(f"%{ord(char):02X}" for char in KEY),
        KEY.encode().hex(),
        quote(KEY),
        quote(quote(KEY, safe=""), safe=""),
        KEY.replace("/", "\\/"),
        "".join(f"\\u{ord(char):04x}" for char in KEY),
        "".join(f"&#{ord(char)};" for char in KEY),
        "".join(f"&#x{ord(char):X};" for char in KEY),
        base64.b64encode(base64.b64encode(KEY.encode())).decode(),
        *(
            base64.b64encode(f"{before}{KEY}{after}".encode()).decode()
            for before in ("", "a", "ab", ":")
            for after in ("", "x")
        ),
        base64.urlsafe_b64encode(f"Bearer {KEY}".encode()).decode(),
        base64.b64encode(f"user:{KEY}".encode()).decode().rstrip("="),
    ],
)
def test_the_key_is_found_in_every_form(echo: str) -> None:
    shown = OwnKey(KEY).without(f"You sent {echo}.")

    assert "(the key)" in shown
    assert KEY not in shown
    assert base64.b64encode(KEY[6:15].encode()).decode() not in shown
    assert len(shown) < len("You sent (the key).") + 13  # what is left of base64 beside it


def test_every_text_of_a_message_is_without_the_key() -> None:
    message = {
        "role": "assistant",
        "content": f"Your key is {KEY}.",
        "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": f'{{"k":"{KEY}"}}'}}],
        KEY: [1, None, True, {"deep": KEY}],
    }

    assert OwnKey(KEY).cleaned(message) == {
        "role": "assistant",
        "content": "Your key is (the key).",
        "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": '{"k":"(the key)"}'}}],
        "(the key)": [1, None, True, {"deep": "(the key)"}],
    }


def test_a_key_that_was_cut_off_within_a_text_is_not_shown_as_it_arrives() -> None:
    shown = Withheld(OwnKey(KEY))

    assert "".join([*map(shown.add, f"You sent {KEY[:15]}… today."), shown.rest()]) == "You sent (the key)… today."


def test_a_key_is_found_as_html_escapes_it() -> None:
    assert OwnKey("sk-a&b<c>12345").without("bad sk-a&amp;b&lt;c&gt;12345") == "bad (the key)"


def test_a_key_that_was_cut_off_at_the_end_is_not_kept_either() -> None:
    assert OwnKey(KEY).without("Your key is sk-live/+Key=42-g") == "Your key is (the key)"
    assert OwnKey(KEY).without("a task: ask") == "a task: ask"


@pytest.mark.parametrize("key", [None, "", "none", "ollama", "LM-Studio", "EMPTY", "x", "sk-no-key-required"])
def test_a_placeholder_is_no_key(key: str | None) -> None:
    text = "none of ollama, lm-studio, EMPTY or x is sk-no-key-required"

    assert OwnKey(key).without(text) == text


@given(st.lists(st.integers(0, 60), max_size=8))
def test_a_key_that_arrives_in_pieces_is_never_shown(cuts: list[int]) -> None:
    text = f"The key is {KEY}, and {KEY.encode().hex()}; sk-live it is."
    edges = [0, *sorted(cuts), len(text)]
    arriving = Withheld(OwnKey(KEY))

    shown = [arriving.add(text[start:end]) for start, end in pairwise(edges)]

    assert "".join([*shown, arriving.rest()]) == "The key is (the key), and (the key); sk-live it is."


ECHOES = [KEY, quote(KEY, safe=""), base64.b64encode(f"Bearer {KEY}".encode()).decode(), KEY.encode().hex()]


def agent_on(server: ModelServer, folder: Path) -> Agent:
    return Agent(session_id="a", base_url=server.url, model="tiny", api_key=KEY, save_dir=folder, tools=[])


def stored(folder: Path) -> str:
    return (folder / "a.jsonl").read_text()


@pytest.mark.parametrize("echo", ECHOES)
@pytest.mark.parametrize("size", [1, 5, 100])
def test_an_echo_in_an_answer_is_neither_stored_nor_shown(tmp_path: Path, echo: str, size: int) -> None:
    text = f"You sent {echo} to me."
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    chunks = [chunk({"reasoning_content": piece}) for piece in pieces] + [chunk({"content": piece}) for piece in pieces]
    with ModelServer(Reply([*chunks, chunk({}, "stop")])) as server:
        events = list(agent_on(server, tmp_path).stream("Tide?"))

    answered = "".join(event.text for event in events if isinstance(event, TextDelta))
    thought = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
    for shown in (answered, thought, stored(tmp_path)):
        assert "(the key)" in shown
        assert echo not in shown
    assert answered.endswith(" to me.")
    assert server.keys == [f"Bearer {KEY}"]


@pytest.mark.parametrize("echo", ECHOES)
def test_an_echo_in_the_arguments_of_a_call_or_in_the_model_is_not_stored(tmp_path: Path, echo: str) -> None:
    called = ask(("c1", "tide", {"port": echo}))
    for one in called.chunks:
        one["model"] = f"served-for-{echo}"
    with (
        ModelServer(called, status(500, echo), status(500, echo), status(500, echo)) as server,
        pytest.raises(ProviderError) as caught,
    ):
        agent_on(server, tmp_path).chat("Tide?")

    assert stored(tmp_path).count("(the key)") == 2
    assert echo not in stored(tmp_path) + str(caught.value)


@pytest.mark.parametrize("echo", ECHOES)
@pytest.mark.parametrize(
    "reply",
    [
        lambda echo: status(401, f"Incorrect API key provided: {echo}"),
        lambda echo: status(400, "x" * (280 - len(echo) // 2) + " " + echo),
        lambda echo: whole({"error": {"message": f"no model for {echo}"}}),
        lambda echo: whole(f"<html>{echo}</html>", "text/html"),
        lambda echo: Reply([{"error": {"message": f"bad key {echo}"}}]),
        lambda echo: Reply([chunk({"content": "Half "}), {"error": {"message": f"bad key {echo}"}}]),
        lambda echo: Reply([chunk({"content": f"Half {echo[:22]}"}), DROP]),
    ],
)
def test_an_echo_in_an_error_is_neither_stored_nor_shown(
    tmp_path: Path, echo: str, reply: Callable[[str], Reply]
) -> None:
    with ModelServer(*[reply(echo)] * 3, strict=False) as server, pytest.raises(ProviderError) as caught:
        agent_on(server, tmp_path).chat("Tide?")

    for shown in (str(caught.value), stored(tmp_path)):
        assert echo[:22] not in shown


def test_an_echo_in_an_error_of_the_list_of_models_is_not_shown() -> None:
    refusal = httpx2.MockTransport(lambda request: httpx2.Response(403, json={"error": {"message": f"no {KEY}"}}))
    endpoint = providers.Endpoint("http://127.0.0.1:1/v1", "", KEY)
    client = OpenAI(api_key=KEY, base_url=endpoint.base_url, http_client=httpx2.Client(transport=refusal))

    with pytest.raises(ProviderError, match=r"\(the key\)") as caught:
        providers.list_models(endpoint, client)

    assert KEY not in str(caught.value)
