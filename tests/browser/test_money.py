"""Money in Chromium: a budget is asked about before the next request; what a table shows; no sum of the unknown."""

from __future__ import annotations

from playwright.sync_api import expect

from sessions_lib import SessionManager
from tests import money
from tests.browser.conftest import is_red
from tests.model_server import ModelServer


def ask(app, page, prompt):
    page.get_by_test_id("stChatInputTextArea").fill(prompt)
    page.get_by_test_id("stChatInputTextArea").press("Enter")
    app.settle(page)


def test_a_spent_budget_is_asked_about_before_the_next_request(serve, tmp_path):
    own = tmp_path / "own.toml"
    own.write_text("[model.served]\ninput = 100_000\noutput = 100_000\n")
    with ModelServer() as server:
        app = serve(FORKBOOK_PRICES=str(own))
        settings = {"base_url": server.url, "model": "served", "budget_usd": 1.5}
        SessionManager(app.folder).create(session_id="a", **settings)
        page = app.open("/chat?session=a")

        ask(app, page, "one")
        expect(page.get_by_text("$1.50 of a budget of $1.50")).to_be_visible()
        ask(app, page, "two")
        expect(page.get_by_text("nothing was sent")).to_be_visible()
        assert len(server.requests) == 1
        page.get_by_role("button", name="Go on all the same").click()
        expect(page.get_by_text("$3.00 of a budget of $1.50")).to_be_visible()

        assert len(server.requests) == 2
        expect(page.get_by_text("nothing was sent")).to_have_count(0)


def test_a_reported_cost_that_is_not_the_computed_one_is_red(app):
    manager = SessionManager(app.folder)
    money.fill(manager)
    told = manager.create(session_id="told")
    told.extend(money.turn("told", 1, "gpt-5", money.usage(100_000, 10_000), usage_reported={"cost": 0.3}))

    page = app.open("/chat?session=told")

    differing = page.get_by_text("$0.30 reported, more than the $0.225 computed").last
    expect(differing).to_be_visible()
    assert is_red(differing)


def test_stats_shows_money_by_day_and_the_models_without_a_price(app):
    page = app.open("/stats?when=all")

    expect(page.get_by_text("mystery-9000 have no price")).to_be_visible()
    expect(page.get_by_test_id("stMetric").filter(has_text="Cost")).to_contain_text("≥ $2.03")
    for measure in ("stats_tags_measure", "stats_models_measure", "stats_tools_measure"):
        page.locator(f".st-key-{measure}").get_by_role("radio", name="Cost").click()
        app.settle(page)
