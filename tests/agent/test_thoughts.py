"""Thoughts that a server leaves in the text: told from the answer, however its chunks are cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sessions_lib import Agent, Session
from sessions_lib.agent.events import ReasoningDelta, TextDelta
from sessions_lib.agent.streaming import Answer
from tests.model_server import ModelServer, Reply, chunk, say


def told(*pieces: str, finish: str | None = "stop", **more: Any) -> tuple[str | None, str | None]:
    """The text and the reasoning of an answer that came in these pieces."""
    answer = Answer()
    for piece in pieces:
        answer.add(chunk({"content": piece}))
    if more:
        answer.add(chunk(more))
    if finish:
        answer.add(chunk({}, finish))
    message = answer.message()
    return message["content"], message.get("reasoning_content")


@pytest.mark.parametrize(
    ("text", "said", "thought"),
    [
        ("<think>\nTwo and two.\n</think>\n\n4", "4", "Two and two."),
        ("\n<think>Hm.</think>4", "4", "Hm."),
        ("<think></think>\n\n4", "4", None),
        ("<think>a</think>\n<think>b</think>\n4", "4", "ab"),
        ("<thinking>Hm.</thinking>4", "4", "Hm."),
        ("<THINK>Hm.</think>4", "4", "Hm."),
        ("<Think>Hm.</Think>4", "4", "Hm."),
        ("<THINK>Hm.</THINK>\n4", "4", "Hm."),
        ("[THINK]Hm.[/THINK]4", "4", "Hm."),
        ("<reasoning>Hm.</reasoning>4", "4", "Hm."),
        ("◁think▷Hm.◁/think▷4", "4", "Hm."),
        ("<|begin_of_thought|>Hm.<|end_of_thought|>4", "4", "Hm."),
        ("<seed:think>Hm.</seed:think>4", "4", "Hm."),
        ("<think>if a < b and </thin> then</think>4", "4", "if a < b and </thin> then"),
        ("<think>Hm.</think>The tag <think> opens thoughts.", "The tag <think> opens thoughts.", "Hm."),
        ("The tag <think> opens, </think> closes.", "The tag <think> opens, </think> closes.", None),
        ("`<think>` opens thoughts", "`<think>` opens thoughts", None),
        ("<thinker>4</thinker>", "<thinker>4</thinker>", None),
        ("  4", "  4", None),
        ("<thi", "<thi", None),
        ("Two and two.\n</think>\n\n4", "4", "Two and two."),
        ("```\n</think>\n```\n4", "```\n</think>\n```\n4", None),
    ],
)
def test_thoughts_are_told_from_words_wherever_the_chunks_are_cut(text: str, said: str, thought: str | None) -> None:
    for size in range(1, len(text) + 1):
        pieces = [text[start : start + size] for start in range(0, len(text), size)]

        assert told(*pieces) == (said, thought), size


def test_thoughts_that_were_cut_stay_thoughts() -> None:
    assert told("<think>Two and", finish=None) == (None, "Two and")
    assert told("<think>Two and", finish="length") == (None, "Two and")


def test_an_answer_that_never_closes_its_thoughts_is_not_blank() -> None:
    assert told("<think>Two and two is 4.") == ("<think>Two and two is 4.", None)


def test_thoughts_before_a_call_are_reasoning_though_nothing_closed_them() -> None:
    call = {"index": 0, "id": "c1", "function": {"name": "tide", "arguments": "{}"}}

    assert told("<think>Look.", finish="tool_calls", tool_calls=[call]) == (None, "Look.")


def test_a_message_that_was_not_streamed_is_read_the_same() -> None:
    answer = Answer()
    answer.add({"choices": [{"message": {"content": "<think>Hm.</think>4"}, "finish_reason": "stop"}]})

    assert (answer.message()["content"], answer.message()["reasoning_content"]) == ("4", "Hm.")


def test_thoughts_in_the_text_are_streamed_as_reasoning_and_not_sent_again(tmp_path: Path) -> None:
    pieces = ["<th", "ink>Let me ", "think.</", "think>\n\n", "4", "2"]
    with ModelServer(Reply([*(chunk({"content": piece}) for piece in pieces), chunk({}, "stop")]), say("5")) as server:
        agent = Agent(session_id="a", base_url=server.url, model="tiny", save_dir=tmp_path)
        events = list(agent.stream("2+2?"))
        agent.chat("And?")

    assert "".join(event.text for event in events if isinstance(event, ReasoningDelta)) == "Let me think."
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["4", "2"]
    stored = Session.open(tmp_path, "a").messages[1]
    assert (stored["content"], stored["reasoning_content"]) == ("42", "Let me think.")
    assert server.sent[1][1] == {"role": "assistant", "content": "42"}
