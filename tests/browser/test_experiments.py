"""Experiments in a real browser: branches answered side by side, one stopped, one failing; and the way home."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from sessions_lib import SessionManager
from tests.browser.conftest import App
from tests.model_server import SILENCE, ModelServer, Reply, chunk, say, status
from tests.record import said


def branches(app: App, *names: str) -> SessionManager:
    manager = SessionManager(app.folder)
    manager.create("a").extend(
        [{"role": "user", "content": "Plan a walk."}, {"role": "assistant", "content": "Coast?"}]
    )
    for name in names:
        manager.open("a").fork(name, title=f"Way {name}").append({"role": "user", "content": f"{name}1"})
        manager.open(name).append({"role": "assistant", "content": f"{name}1!"})
    return manager


def ask(page: Page, prompt: str) -> None:
    box = page.locator(".st-key-compare_prompt textarea")
    box.fill(prompt)
    box.press("Enter")


def test_four_branches_are_asked_one_is_stopped_one_fails(serve: Callable[..., App]) -> None:
    app = serve()
    manager = branches(app, "b", "c", "d")
    silent = Reply([chunk({"role": "assistant", "content": "Half an answer"}), SILENCE])
    with (
        ModelServer(say("Whole.", pause_s=0.2), say("Whole.")) as good,
        ModelServer(silent) as slow,
        ModelServer(status(401)) as refusing,
    ):
        for one, server in (("a", good), ("b", slow), ("c", refusing), ("d", good)):
            manager.open(one).update_meta({"base_url": server.url, "model": "tiny"})
        page = app.open("/compare?a=a&b=b&c=c&d=d")

        ask(page, "And then?")
        expect(page.locator(".st-key-compare_live_B")).to_contain_text("Half an answer", timeout=20_000)
        page.locator(".st-key-compare_stop_B button").click()

        expect(page.locator(".st-key-compare_grid")).to_contain_text("Half an answer", timeout=20_000)
        expect(page.get_by_test_id("stAlertContentError").get_by_text("C · Way c")).to_be_visible(timeout=20_000)
        app.settle(page)
    assert said(manager.open("a").messages)[-2:] == ["And then?", "Whole."]
    assert manager.open("b").messages[-1]["interrupted"] is True
    assert said(manager.open("c").messages)[-1] == "And then?"
    assert said(manager.open("d").messages)[-2:] == ["And then?", "Whole."]
    for one in "abcd":
        assert said(manager.open(one).messages).count("And then?") == 1
    app.check()


def test_three_models_are_tried_from_one_cell(serve: Callable[..., App]) -> None:
    app = serve()
    manager = branches(app)
    with ModelServer(say("One."), say("Two."), say("Three."), models=("small", "middle", "large")) as server:
        manager.open("a").update_meta({"base_url": server.url, "model": "small"})
        page = app.open("/chat?session=a")
        page.get_by_role("button", name="Actions of turn 1").first.click()
        page.locator(".st-key-cell-act-a-0-try button").click()
        page.locator(".st-key-try-a-0-go button").click()

        page.wait_for_url("**/compare?a=*", timeout=20_000)
        for answer in ("One.", "Two.", "Three."):
            expect(page.locator(".st-key-compare_grid")).to_contain_text(answer, timeout=20_000)
        app.settle(page)
        assert sorted(str(request["model"]) for request in server.requests) == ["large", "middle", "small"]
    assert len([info for info in manager.list() if info.parent == "a"]) == 3
    app.check()


def test_a_merge_is_previewed_and_made_and_a_verdict_is_found_again(serve: Callable[..., App]) -> None:
    app = serve()
    manager = branches(app, "b", "c")
    page = app.open("/compare?a=b&b=c")

    page.locator(".st-key-compare_home button").first.click()
    expect(page.get_by_text("4 of the first, 2 of the second")).to_be_visible(timeout=20_000)
    page.locator(".st-key-compare_home_go button").click()
    expect(page.get_by_text("Merged into")).to_be_visible(timeout=20_000)
    page.locator(".st-key-compare_verdict button").first.click()
    page.get_by_text("B · Way c").last.click()
    page.locator(".st-key-compare_verdict_save button").click()
    expect(page.locator(".st-key-compare_won_B")).to_contain_text("won over A", timeout=20_000)
    app.go(page, "/sessions?q=verdict:won")

    assert manager.open("c").meta["verdict"]["verdict"] == "won"
    made = next(info for info in manager.list() if info.meta.get("merged_from"))
    assert said(manager.open(made.id).messages) == ["Plan a walk.", "Coast?", "b1", "b1!", "c1", "c1!"]
    app.check()
