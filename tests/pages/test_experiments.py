"""Experiments on the pages: every branch asked, one tried in several ways, a verdict, and the way home."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from sessions_lib import SessionManager
from sessions_lib.agent import approval, runs
from tests.model_server import ModelServer, say, status
from tests.record import said


@pytest.fixture
def manager(folder: Path) -> SessionManager:
    manager = SessionManager(folder)
    a = manager.create("a")
    a.extend([{"role": "user", "content": "Plan a walk."}, {"role": "assistant", "content": "Coast or hills?"}])
    for name in ("b", "c"):
        manager.open("a").fork(name, title=f"Way {name}").extend(
            [{"role": "user", "content": f"{name}1"}, {"role": "assistant", "content": f"{name}1!"}]
        )
    return manager


def use(manager: SessionManager, server: ModelServer, *session_ids: str) -> None:
    for one in session_ids:
        manager.open(one).update_meta({"base_url": server.url, "model": "tiny"})


def wait(manager: SessionManager, *session_ids: str) -> None:
    for one in session_ids:
        run = runs.of(manager.store, one)
        assert run is not None
        assert run.wait(20)


def contents(manager: SessionManager, one: str) -> list[object]:
    return said(manager.open(one).messages)


@pytest.mark.any_store
def test_a_prompt_under_the_comparison_goes_to_every_branch(
    manager: SessionManager, open_page: Callable[..., AppTest]
) -> None:
    with ModelServer(say("Fine."), say("Fine."), say("Fine.")) as server:
        use(manager, server, "a", "b", "c")
        page = open_page("compare", a="a", b="b", c="c")
        page.chat_input(key="compare_prompt").set_value("And then?").run()
        wait(manager, "a", "b", "c")
        page.run()

    assert not page.exception
    for one in "abc":
        assert contents(manager, one)[-2:] == ["And then?", "Fine."]


def test_looking_at_the_comparison_asks_nobody(manager: SessionManager, open_page: Callable[..., AppTest]) -> None:
    with ModelServer() as server:
        use(manager, server, "a", "b")
        open_page("compare", a="a", b="b").run().run()

        assert server.requests == []


def test_a_branch_that_fails_or_is_locked_says_so_and_the_others_are_answered(
    manager: SessionManager, open_page: Callable[..., AppTest]
) -> None:
    with ModelServer(say("Fine.")) as good, ModelServer(status(401)) as refusing, manager.open("b").hold():
        use(manager, good, "a", "b")
        use(manager, refusing, "c")
        page = open_page("compare", a="a", b="b", c="c")
        page.chat_input(key="compare_prompt").set_value("And then?").run()
        wait(manager, "a", "c")
        page.run()

    told = " ".join(error.value for error in page.error)
    assert "B · Way b" in told
    assert "being written by process" in told
    assert "C · Way c" in told
    assert contents(manager, "a")[-1] == "Fine."
    assert contents(manager, "b")[-1] == "b1!"


def test_tools_that_change_the_world_are_asked_about_first(
    manager: SessionManager, open_page: Callable[..., AppTest]
) -> None:
    page = open_page("compare", a="a", b="b", c="c")

    page.chat_input(key="compare_prompt").set_value("Buy a torch").run()

    assert any("buy may run in 3 branches" in caption.value for caption in page.caption)
    assert contents(manager, "a")[-1] == "Coast or hills?"
    page.button(key="compare_ask_no").click().run()
    assert contents(manager, "a")[-1] == "Coast or hills?"
    page.chat_input(key="compare_prompt").set_value("Buy a torch").run()
    page.button(key="compare_ask_yes").click().run()
    wait(manager, "a", "b", "c")
    assert all("Buy a torch" in contents(manager, one) for one in "abc")


def test_a_tool_that_only_looks_is_asked_about_where_the_session_says_so(
    manager: SessionManager, open_page: Callable[..., AppTest]
) -> None:
    manager.open("a").update_meta({approval.ASK: "all"})
    page = open_page("compare", a="a", b="b", c="c")

    page.chat_input(key="compare_prompt").set_value("Who is here?").run()

    assert any("may run in 1 branch" in caption.value for caption in page.caption)
    assert contents(manager, "a")[-1] == "Coast or hills?"


@pytest.mark.any_store
def test_a_verdict_is_given_shown_and_taken_back(manager: SessionManager, open_page: Callable[..., AppTest]) -> None:
    page = open_page("compare", a="a", b="b", c="c")

    page.radio(key="compare_winner_a-b-c").set_value("b").run()
    page.text_input(key="compare_why").set_value("<b>Shorter</b>").run()
    page.button(key="compare_verdict_save").click().run()

    assert manager.open("b").meta["verdict"]["why"] == "<b>Shorter</b>"
    assert manager.open("a").meta["verdict"]["verdict"] == "lost"
    assert {hit.session for hit in manager.search("verdict:won")} == {"b"}
    assert any("Way b" in one.value and "over A, C" in one.value for one in page.markdown)
    page.button(key="compare_verdict_back_B").click().run()
    assert manager.open("b").meta.get("verdict") is None
    assert manager.open("a").meta.get("verdict") is None


@pytest.mark.any_store
def test_chosen_turns_are_brought_home_after_a_preview(
    manager: SessionManager, open_page: Callable[..., AppTest]
) -> None:
    page = open_page("compare", a="b", b="c")
    page.button(key="compare_home").click().run()

    assert any("4 of the first, 2 of the second" in caption.value for caption in page.caption)
    assert {info.id for info in manager.list()} == {"a", "b", "c"}
    page.button(key="compare_home_go").click().run()

    made = next(info for info in manager.list() if info.id not in "abc")
    assert contents(manager, made.id) == ["Plan a walk.", "Coast or hills?", "b1", "b1!", "c1", "c1!"]
    assert made.meta["merged_from"] == ["b", "c"]
    assert any("Merged into" in one.value for one in page.markdown)


def test_a_branch_with_nothing_new_is_not_brought_home(
    manager: SessionManager, open_page: Callable[..., AppTest]
) -> None:
    page = open_page("compare", a="b", b="a")

    page.button(key="compare_home").click().run()
    page.radio(key="compare_home_how").set_value("Both, interleaved by time").run()

    assert any("nothing would change" in info.value for info in page.info)
    assert not page.exception


@pytest.mark.any_store
def test_one_prompt_is_tried_in_three_ways_in_three_forks(
    manager: SessionManager, open_page: Callable[..., AppTest]
) -> None:
    with ModelServer(say("x"), say("x"), say("x"), models=("small", "large")) as server:
        use(manager, server, "b")
        page = open_page("chat", session="b")
        page.session_state["chat_dialog"] = ("try", "b", 2)
        page.run()
        page.number_input(key="try-b-2-temperature-3").set_value(0.2).run()
        page.button(key="try-b-2-go").click().run()
        forks = [info for info in manager.list() if info.parent == "b"]
        wait(manager, *(info.id for info in forks))

        assert sorted(str(request["model"]) for request in server.requests) == ["large", "large", "small"]
    assert not page.exception
    assert len(forks) == 3
    assert all(contents(manager, info.id) == ["Plan a walk.", "Coast or hills?", "b1", "x"] for info in forks)
    assert contents(manager, "b") == ["Plan a walk.", "Coast or hills?", "b1", "b1!"]
