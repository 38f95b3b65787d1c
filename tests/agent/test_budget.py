"""Budgets: warned at 80 %, nothing sent once it is spent, unless somebody agrees; what has no price is said."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sessions_lib import Agent, SessionManager, tool
from sessions_lib.agent import budget
from sessions_lib.agent.events import Notice
from sessions_lib.errors import BudgetReached
from tests.model_server import ModelServer, ask, say

# The server's answers take 11 + 4 tokens: $1.50 each at this price.
PRICES = "[model.served]\ninput = 100_000\noutput = 100_000\n"


@tool(effect=False)
def tide(port: str) -> str:
    """How high the tide is at a port."""
    return f"2.1 m at {port}"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ModelServer]:
    (tmp_path / "own.toml").write_text(PRICES)
    monkeypatch.setenv("FORKBOOK_PRICES", str(tmp_path / "own.toml"))
    with ModelServer() as running:
        yield running


def agent_on(server: ModelServer, folder: Path, limit: float | None = None, **options: object) -> Agent:
    manager = SessionManager(folder)
    session = manager.create(session_id="a", **({} if limit is None else {budget.KEY: limit}))
    return Agent(session=session, model="served", base_url=server.url, **options)  # type: ignore[arg-type]


def test_nothing_is_sent_or_stored_once_the_budget_of_a_session_is_spent(server: ModelServer, tmp_path: Path) -> None:
    agent = agent_on(server, tmp_path / "s", 3.0)
    agent.chat("one")
    agent.chat("two")

    with pytest.raises(BudgetReached, match=r"This session spent \$3\.00 of a budget of \$3\.00; nothing was sent"):
        agent.chat("three")

    assert len(server.requests) == 2
    assert len(SessionManager(tmp_path / "s").open("a").messages) == 4
    agent.session.hold().release()  # nobody holds it


def test_a_run_is_warned_from_four_fifths_on_and_goes_on_over_it_where_somebody_agrees(
    server: ModelServer, tmp_path: Path
) -> None:
    agent = agent_on(server, tmp_path / "s", 1.8)
    told = []
    for prompt in ("one", "two"):
        told.append([event.text for event in agent.stream(prompt) if isinstance(event, Notice)])
    agent.over_budget = True

    assert agent.chat("three") == "Yes."
    assert told == [[], ["This session spent $1.50 of a budget of $1.80."]]


def test_a_run_stops_between_its_steps(server: ModelServer, tmp_path: Path) -> None:
    server.queue.append(ask(("c1", "tide", {"port": "Ember"})))
    agent = agent_on(server, tmp_path / "s", 1.0, tools=[tide])

    with pytest.raises(BudgetReached):
        agent.chat("How high?")

    assert len(server.requests) == 1
    roles = [message["role"] for message in SessionManager(tmp_path / "s").open("a").messages]
    assert roles == ["user", "assistant", "tool"]  # the tool's result is kept, and the run can go on from it


def test_a_folder_carries_a_budget_that_counts_each_message_once(server: ModelServer, tmp_path: Path) -> None:
    folder = tmp_path / "s"
    (tmp_path / "own.toml").write_text(f'{PRICES}[budget]\nfolder."{folder}" = 4.5\n')
    agent = agent_on(server, folder)
    agent.chat("one")
    fork = agent.branch("fork")
    fork.chat("two")
    fork.chat("three")

    with pytest.raises(BudgetReached, match=r"The sessions in .+ spent \$4\.50 of a budget of \$4\.50"):
        agent.chat("four")


def test_a_budget_for_every_session_counts_what_was_spent_in_it_alone(server: ModelServer, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(f"{PRICES}[budget]\nsession = 1.5\n")
    agent = agent_on(server, tmp_path / "s")
    agent.chat("one")

    with pytest.raises(BudgetReached):
        agent.chat("two")
    assert agent.branch("fork").chat("two") == "Yes."


def test_tokens_without_a_price_are_said_beside_a_budget(server: ModelServer, tmp_path: Path) -> None:
    agent = agent_on(server, tmp_path / "s", 1.0)
    server.queue.append(say("Yes."))
    agent.session.append({"role": "assistant", "model": "mystery", "usage": {"prompt_tokens": 7}, "content": "a"})

    (found,) = budget.of(agent.session)

    assert str(found) == "This session spent $0 of a budget of $1.00, beside 7 tokens without a price"
    assert found.share == 0.0


def test_an_answer_says_where_it_came_from_so_that_its_price_stays(server: ModelServer, tmp_path: Path) -> None:
    agent = agent_on(server, tmp_path / "s")
    agent.chat("one")
    agent.chat("two")

    (_, answer, *_) = SessionManager(tmp_path / "s").open("a").messages

    assert answer["base_url"] == server.url
    assert "base_url" not in str(server.requests[-1])
