"""Judging blind, and one answer out of several."""

from __future__ import annotations

import pytest

from pages.compare_parts import blind
from sessions_lib.agent import runs
from sessions_lib.compare import verdicts
from tests.model_server import ModelServer
from tests.pages.test_compare import family, manager, said  # noqa: F401  (fixtures)


@pytest.fixture
def served(monkeypatch):
    with ModelServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
        monkeypatch.setenv("OPENAI_MODEL", "tiny")
        yield server


def test_the_blind_view_names_nobody_and_reveals_what_was_chosen(open_page, manager, family):  # noqa: F811
    page = open_page("compare", a="walk", b="hills", blind="1")
    shown = str(said(page))

    assert "Which is better?" in shown
    for told in ("The walk", "Over the hills", "Tokens in", "hills", "walk"):
        assert told not in shown
    order = blind.order(["walk", "hills"], page.session_state["compare_blind_seed"])
    page.text_input(key="compare_blind_why").set_value("It is kinder").run()
    page.button(key="compare_blind_choose_2").click().run()

    won, lost = (verdicts.of(manager.open(one).meta) for one in (order[1], order[0]))
    assert (won["verdict"], won["blind"], won["why"], lost["verdict"]) == ("won", True, "It is kinder", "lost")
    assert "blind" not in page.query_params
    assert "judged blind: It is kinder" in str(said(page))


def test_the_order_is_of_chance_and_stays():
    orders = {tuple(blind.order(["a", "b", "c"], str(seed))) for seed in range(60)}

    assert len(orders) == 6
    assert blind.order(["c", "a", "b"], "7") == blind.order(["a", "b", "c"], "7")


def test_no_verdict_goes_back_without_one(open_page, manager, family):  # noqa: F811
    page = open_page("compare", a="walk", b="hills", blind="1")

    page.button(key="compare_blind_end").click().run()

    assert "blind" not in page.query_params
    assert verdicts.of(manager.open("walk").meta) is None


@pytest.mark.any_store
def test_synthesize_asks_what_was_shown_in_a_fork_of_the_shared_start(open_page, manager, family, served):  # noqa: F811
    page = open_page("compare", a="walk", b="hills")
    before = {one.id: one.messages for one in manager.list()}

    page.button(key="compare_synthesize").click().run()
    asked = next(box for box in page.text_area if box.label == "What is asked").value
    assert "Branch A, “The walk”" in asked
    page.button(key="compare-synthesize-go").click().run()

    (made,) = [one.id for one in manager.list() if one.id not in before]
    run = runs.of(manager.store, made)
    if run is not None:
        run.wait(30)
    session = manager.open(made)
    assert session.messages[session.inherited]["content"] == asked
    assert session.title.endswith("· synthesis")
    assert served.requests[-1]["messages"][-1]["content"] == asked
    assert {one: manager.open(one).messages and len(manager.open(one).messages) for one in before} == before
    assert [page.query_params[slot] for slot in "abc"] in ([["walk"], ["hills"], [made]], ["walk", "hills", made])
