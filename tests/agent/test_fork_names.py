"""What a fork is called once it goes its own way."""

from __future__ import annotations

import pytest

from sessions_lib import Agent, SessionManager
from tests.model_server import ModelServer


@pytest.fixture
def manager(tmp_path):
    return SessionManager(tmp_path)


@pytest.fixture
def parent(manager):
    session = manager.create("The walk", session_id="walk")
    session.extend([{"role": "user", "content": "Plan a walk."}, {"role": "assistant", "content": "Coast or hills?"}])
    return session


@pytest.fixture
def ask(manager):
    with ModelServer() as server:

        def asked(session, prompt):
            return Agent(session=session, base_url=server.url, model="tiny").chat(prompt)

        yield asked


def titles(manager):
    return {info.id: info.title for info in manager.list()}


def test_a_fork_is_named_by_its_first_own_prompt_and_numbered_where_two_would_be_equal(manager, parent, ask):
    one, two = parent.fork("one"), parent.fork("two")
    assert one.title == "The walk · after turn 1"

    ask(one, "The hills, please.")
    ask(two, "The hills, please.")
    ask(one, "And then?")

    assert titles(manager) == {"walk": "The walk", "one": "The hills, please.", "two": "The hills, please. (2)"}
    assert one.fork("three").title == "The hills, please. · after turn 3"


def test_a_rerun_is_named_by_its_turn_and_model_and_a_fork_of_it_does_not_grow(manager, parent, ask):
    again = parent.fork("again", at=1)
    ask(again, None)

    assert again.title == "The walk · rerun of turn 1 · tiny"
    assert again.fork("more").title == "The walk · after turn 1"


def test_a_title_that_a_person_gave_and_a_mark_of_a_change_stay(manager, parent, ask):
    given, marked = parent.fork("given", title="My way"), parent.fork("marked", mark="answer changed in turn 1")
    ask(given, "Hills.")
    ask(marked, "Hills.")

    assert (given.title, marked.title) == ("My way", "The walk · answer changed in turn 1")
