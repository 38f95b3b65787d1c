"""A history that does not fit: the refusal is recognised, and the newest turns that fit can be sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from sessions_lib import Agent, Session
from sessions_lib.errors import ConversationTooLong
from sessions_lib.messages.request import newest_that_fit, to_send
from tests.model_server import ModelServer, status

LONG = [
    message
    for turn in range(50)
    for message in (
        {"role": "user", "content": f"{turn} " + "x" * 300, "id": f"u{turn}"},
        {"role": "assistant", "content": f"{turn}.", "id": f"a{turn}"},
    )
]


def test_a_refusal_of_the_length_is_one_and_nothing_is_lost(tmp_path: Path) -> None:
    with ModelServer(
        status(
            400, "This model's maximum context length is 1024 tokens. However, your messages resulted in 9000 tokens."
        )
    ) as server:
        agent = Agent(session_id="a", base_url=server.url, model="m", save_dir=tmp_path)
        with pytest.raises(ConversationTooLong, match="too long for this model"):
            agent.chat("Hm?")
    assert [message["content"] for message in Session.open(tmp_path, "a").messages] == ["Hm?"]


def test_the_newest_turns_that_fit_are_whole_turns_and_never_none() -> None:
    start = newest_that_fit(LONG, 1024)

    assert LONG[start]["role"] == "user"
    assert 2 <= (len(LONG) - start) // 2 <= 6
    assert newest_that_fit(LONG, 10) == 98
    assert 40 <= newest_that_fit(LONG, None) <= 60
    assert newest_that_fit([], 1024) == 0


def test_what_a_session_says_is_sent_is_sent_and_its_file_keeps_all(tmp_path: Path) -> None:
    with ModelServer() as server:
        agent = Agent(session_id="a", base_url=server.url, model="m", save_dir=tmp_path)
        agent.session.extend(LONG)
        agent.session.update_meta({"send_from": "u48"})
        agent.chat("Hm?")

    assert [message["content"][:2] for message in server.requests[0]["messages"]] == ["48", "48", "49", "49", "Hm"]
    assert len(Session.open(tmp_path, "a").messages) == 102
    assert to_send(LONG, {"send_from": "u48", "send_everything": True}) == LONG
