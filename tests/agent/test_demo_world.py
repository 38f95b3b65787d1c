"""The offline demo: the seeds' quest in any order, resumed, forked, and everything it does not know."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_lib import Agent, SessionManager
from sessions_lib.agent import demo_model, demo_world, tools
from sessions_lib.agent.tools import History
from sessions_lib.messages.content import as_text
from sessions_lib.messages.tool_calls import Call

DAY_1 = "I need to get into the Cave of Echoes. Find out what it takes, and get what you can."
DAY_2 = "I got the Silver Key from the mayor’s daughter. What now?"
FORK = "Suppose the key doesn’t fit. Is there another way in?"


@pytest.fixture(autouse=True)
def _no_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL"):
        monkeypatch.delenv(name, raising=False)


def player(folder: Path, session_id: str = "quest-1") -> Agent:
    return Agent(session_id=session_id, model="demo", client=demo_model.client(pause_s=0), save_dir=folder)


def tool_steps(agent: Agent) -> list[tuple[str, str]]:
    return [
        (call["function"]["name"], call["function"]["arguments"])
        for message in agent.session.messages
        for call in message.get("tool_calls", [])
    ]


def test_with_no_endpoint_the_village_answers_and_says_that_it_is_the_demo(tmp_path: Path) -> None:
    agent = Agent(session_id="a", save_dir=tmp_path)
    answer = agent.chat("What is the capital of France?")

    assert "I am the offline demo" in answer
    assert "Cave of Echoes" in answer
    assert agent.session.messages[1]["model"] == "demo"


def test_the_seeds_quest_plays(tmp_path: Path) -> None:
    first = player(tmp_path)
    day_1 = first.chat(DAY_1)

    assert [m["role"] for m in first.session.messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]
    assert tool_steps(first) == [("talk_to", '{"npc": "elder"}'), ("buy", '{"item": "torch"}')]
    assert first.session.messages[4]["content"] == "Bought a torch for 8 gold. 12 gold left."
    assert "12 gold left" in day_1

    second = player(tmp_path)
    assert len(second.session.messages) == 6
    day_2 = second.chat(DAY_2)
    assert "You have everything" in day_2
    assert tool_steps(second)[2:] == [("talk_to", '{"npc": "guard"}')]

    west = second.fork("quest-2")
    other = west.chat(FORK)
    assert "the old well behind the mill" in other
    assert "you have 12" in other
    assert "Your torch will do" in other
    assert len(second.session.messages) == 10


def test_a_fork_inherits_what_was_spent_and_then_spends_its_own(tmp_path: Path) -> None:
    quest = player(tmp_path)
    quest.chat(DAY_1)
    fork = quest.fork("quest-2")
    fork.chat("Buy the rope")

    assert "6 of 20 gold are left" in fork.chat("How much gold is left?")
    assert "12 of 20 gold are left" in quest.chat("How much gold is left?")


def test_a_purse_that_is_too_light_buys_nothing(tmp_path: Path) -> None:
    history: list[dict[str, Any]] = []
    for number in range(3):
        said = demo_world.buy("torch", History(history)) if number < 2 else None
        call = {"id": f"c{number}", "type": "function", "function": {"name": "buy", "arguments": '{"item": "torch"}'}}
        history.append({"role": "assistant", "content": None, "tool_calls": [call]})
        if said:
            history.append({"role": "tool", "tool_call_id": f"c{number}", "content": said})

    assert demo_world.purse(history) == 4
    with pytest.raises(demo_world.Refusal, match="A torch is 8 gold, and only 4 gold is left"):
        demo_world.buy("torch", History(history))


def test_people_and_things_that_are_not_there_are_refused_with_what_is() -> None:
    with pytest.raises(demo_world.Refusal, match="elder, guard, shop, mayor's daughter"):
        demo_world.talk_to("dragon")
    with pytest.raises(demo_world.Refusal, match="torch, rope"):
        demo_world.buy("sword")
    assert demo_world.talk_to("The Mayor’s Daughter") == demo_world.talk_to("mayor's daughter")


def test_tools_say_whether_they_change_the_world() -> None:
    assert [(item.name, item.effect) for item in demo_world.TOOLS] == [("talk_to", False), ("buy", True)]
    assert list(demo_world.buy.parameters["properties"]) == ["item"]


@pytest.mark.parametrize("order", list(itertools.permutations([DAY_1, DAY_2, FORK])))
def test_prompts_in_any_order_each_get_their_own_sensible_answer(tmp_path: Path, order: tuple[str, ...]) -> None:
    agent = player(tmp_path)
    answers = {prompt: agent.chat(prompt) for prompt in order}

    assert "takes two things" in answers[DAY_1]
    assert "Turn the key **to the left**" in answers[DAY_2]
    assert "the old well behind the mill" in answers[FORK]
    has_torch = order.index(DAY_1) < order.index(DAY_2)
    assert ("You have everything" in answers[DAY_2]) is has_torch
    assert ("no light" in answers[DAY_2]) is not has_torch
    assert tool_steps(agent).count(("buy", '{"item": "torch"}')) == 1


def test_the_same_prompt_twice_buys_once(tmp_path: Path) -> None:
    agent = player(tmp_path)
    first, second = agent.chat(DAY_1), agent.chat(DAY_1)

    assert first == second
    assert len(tool_steps(agent)) == 2


@pytest.mark.parametrize(
    "prompt",
    [
        "Design a user authentication system architecture",
        "Redesign using OAuth2",
        "How to handle token refresh in JWT?",
        "Teach me Python decorators",
        "Como entro na caverna?",
        "Review main.py",
        "   ",
        "<script>alert(1)</script>",
    ],
)
def test_what_it_does_not_know_it_says_so_and_what_to_try(tmp_path: Path, prompt: str) -> None:
    agent = player(tmp_path)
    answer = agent.chat(prompt)

    assert "I am the offline demo" in answer
    assert DAY_1 in answer
    assert tool_steps(agent) == []


def test_other_questions_about_the_village_are_played_too(tmp_path: Path) -> None:
    agent = player(tmp_path)

    assert "opens at dusk" in agent.chat("Talk to the guard")
    assert "Nobody called 'miller' lives here" in agent.chat("Ask the miller")
    assert "The shop has no 'sword'" in agent.chat("Buy a sword")
    assert "Bought a rope for 6 gold. 14 gold left." in agent.chat("Please buy a rope")
    assert "a second one" not in agent.chat("Is it dark in the cave?")
    assert "You carry a rope and a torch" in agent.chat("What do I carry?")


def test_without_tools_it_says_so_instead_of_pretending(tmp_path: Path) -> None:
    agent = Agent(session_id="a", model="demo", client=demo_model.client(pause_s=0), tools=[], save_dir=tmp_path)

    assert "no tool" in agent.chat(DAY_1)
    assert "no tool" in agent.chat("Buy a rope")
    assert tool_steps(agent) == []


PROMPTS = st.sampled_from(
    [DAY_1, DAY_2, FORK, "Buy a rope", "Buy a torch", "Buy a boat", "Ask the elder", "How much gold?", "Hello", "key"]
) | st.text(max_size=30)


@given(st.lists(PROMPTS, max_size=6))
def test_any_prompts_end_in_an_answer_and_depend_on_nothing_else(prompts: list[str]) -> None:
    history: list[dict[str, Any]] = []
    offered = ["talk_to", "buy"]
    for prompt in prompts:
        history.append({"role": "user", "content": prompt})
        for _ in range(4):
            reply = demo_model.reply(history, offered)
            assert demo_model.reply(list(history), offered) == reply
            if not reply.tool:
                break
            call_id = f"c{len(history)}"
            arguments = as_text(dict(reply.arguments or {}))
            function = {"name": reply.tool, "arguments": arguments}
            call = {"id": call_id, "type": "function", "function": function}
            history.append({"role": "assistant", "content": None, "tool_calls": [call]})
            called = Call(0, 0, call_id, reply.tool, arguments)
            history.append(tools.call(demo_world.TOOLS, called, history))
        assert reply.text
        history.append({"role": "assistant", "content": reply.text})
    assert 0 <= demo_world.purse(history) <= demo_world.GOLD


def test_the_answer_streams_in_pieces_and_reports_what_it_counted(tmp_path: Path) -> None:
    asked = {"model": "demo", "messages": [{"role": "user", "content": "Hello"}], "tools": []}
    chunks = list(demo_model.chunks(asked))
    texts = [choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"]]

    assert len(chunks) > 20
    assert "".join(texts) == demo_model.reply(asked["messages"], []).text
    assert chunks[-1]["usage"]["total_tokens"] == (
        chunks[-1]["usage"]["prompt_tokens"] + chunks[-1]["usage"]["completion_tokens"]
    )


def test_sessions_side_by_side_do_not_share_a_purse(tmp_path: Path) -> None:
    agents = [player(tmp_path, f"q{number}") for number in range(3)]
    prompts = [(agent, prompt) for agent in agents for prompt in (DAY_1, "How much gold is left?")]
    random.Random(1).shuffle(prompts)
    for agent, prompt in prompts:
        agent.chat(prompt)

    for agent in agents:
        assert demo_world.purse(SessionManager(tmp_path).open(agent.session.id).messages) == 12
