"""Answers kept between runs: equal to fresh ones, and asked again when anything in the folder changed."""

from __future__ import annotations

import pytest

from pages.shared import session_queries
from sessions_lib import SessionManager, stats
from sessions_lib.query import parse
from tests.record import GULL, LIGHTHOUSES, write


@pytest.fixture
def asked(folder):
    """Counts how often the folder is really asked for its sessions."""
    folder.mkdir()
    write(folder / "a.jsonl", LIGHTHOUSES, GULL)
    session_queries._answers.clear()
    times = []

    def sessions(catalog, query):
        times.append(query)
        return stats.sessions(catalog, query)

    return lambda words="": (session_queries.once(sessions, parse(words))["messages"].tolist(), len(times))


@pytest.mark.any_store
def test_a_question_is_asked_again_only_after_a_change(asked, folder):
    manager = SessionManager(folder)

    assert asked() == ([2], 1)
    assert asked() == ([2], 1)
    assert asked("tag:north") == ([], 2)
    manager.open("a").append({"role": "user", "content": "Which one is taller?"})
    assert asked() == ([3], 3)
    assert asked() == ([3], 3)
    manager.open("a").add_tag("north")
    assert asked("tag:north") == ([3], 4)
    manager.delete("a")
    assert asked("tag:north") == ([], 5)


def test_a_catalog_made_anew_is_asked_again(asked, folder):
    assert asked() == ([2], 1)

    SessionManager(folder).catalog.rebuild()

    assert asked() == ([2], 2)


def test_what_a_page_does_to_its_answer_is_its_own(folder):
    folder.mkdir()
    write(folder / "a.jsonl", LIGHTHOUSES)
    session_queries._answers.clear()

    session_queries.once(stats.sessions, parse("")).pop("messages")

    assert session_queries.once(stats.sessions, parse(""))["messages"].tolist() == [1]


def test_no_more_answers_are_kept_than_a_few(folder):
    folder.mkdir()
    for number in range(session_queries.MOST + 10):
        session_queries.once(stats.figures, parse(f"tag:t{number}"))

    assert len(session_queries._answers) <= session_queries.MOST
