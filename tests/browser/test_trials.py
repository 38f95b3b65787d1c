"""A trial in a real Chromium: from a turn to a table, stopped and gone on with, picked blind, opened in Compare, sent."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from sessions_lib import SessionManager
from sessions_lib.trials import Trial, Variant, checks
from tests.model_server import ModelServer, say
from tests.record import GULL, LIGHTHOUSES


def test_a_turn_is_tried_ten_times_stopped_gone_on_with_and_read(serve, tmp_path):
    with ModelServer() as model:
        model.queue += [say("Yes it is.", pause_s=0.05)] * 25
        app = serve(OPENAI_BASE_URL=model.url, OPENAI_API_KEY="sk-test", OPENAI_MODEL="tiny")
        SessionManager(app.folder).create("Lighthouses", session_id="a").extend([LIGHTHOUSES, GULL])
        page = app.open("/chat?session=a")
        page.get_by_role("button", name="Actions of turn 1").click()
        page.get_by_role("link", name="Try it 10 times").click()
        app.settle(page)
        expect(page.get_by_role("textbox", name="Prompt", exact=True)).to_have_value(LIGHTHOUSES["content"])
        assert model.requests == []
        page.get_by_role("textbox", name="Name of variant 2").fill("short")
        page.get_by_role("textbox", name="System prompt of variant 2").fill("Be short.")
        page.get_by_role("textbox", name="Value of check 1").fill("yes")
        page.get_by_role("textbox", name="Name", exact=True).fill("taller")
        page.get_by_role("textbox", name="Name", exact=True).press("Tab")
        page.get_by_role("button", name="Set up and start").click()
        page.get_by_role("button", name="Stop").click()
        go_on = page.get_by_role("button", name=re.compile("Go on"))
        expect(go_on).to_be_visible()
        asked = len(model.requests)
        assert asked < 30
        go_on.click()
        expect(page.get_by_role("button", name="10 more repeats")).to_be_visible()
        expect(page.get_by_text("are not told apart by 10 repeats")).to_be_visible()
        assert page.url.endswith("/trials?trial=taller")
        assert len(SessionManager(app.folder).list()) == 31

        with page.expect_download() as download:
            page.get_by_role("button", name="Export").click()
        file = tmp_path / "trial.html"
        download.value.save_as(file)
        text = file.read_text(encoding="utf-8")
        assert "<script" not in text
        assert text.count("<details>") == 30
        shown = page.context.new_page()
        shown.goto(file.as_uri())
        expect(shown.get_by_role("heading", name="taller")).to_be_visible()


def test_ten_are_picked_blind_by_keyboard_and_two_are_opened_in_compare(serve):
    with ModelServer() as model:
        app = serve(OPENAI_BASE_URL=model.url, OPENAI_API_KEY="sk-test", OPENAI_MODEL="tiny")
        session = SessionManager(app.folder).create("Lighthouses", session_id="a")
        session.extend([LIGHTHOUSES, GULL])
        session.update_meta({"base_url": model.url, "model": "tiny"})
        Trial(
            session,
            2,
            ["Sure?"],
            [Variant("base"), Variant("other", temperature=0.5)],
            [checks.picked()],
            4,
            name="picked",
        ).run()
        page = app.open("/trials?trial=picked")
        for left in range(6, 0, -1):
            expect(page.get_by_text(f"{left} to go")).to_be_visible()
            page.keyboard.press("1")
        expect(page.get_by_text("All picked.")).to_be_visible()
        assert len(Trial.load(session.store, "picked").picked) == 12

        table = page.locator("[data-testid=stDataFrame] canvas").first.bounding_box()
        page.mouse.click(table["x"] + 60, table["y"] + 52)
        link = page.get_by_role("link", name=re.compile("beside other")).first
        link.click()
        app.settle(page)
        expect(page).to_have_url(re.compile(r"/compare\?a=picked\.other\.\d&b=picked\.base\.\d"))
