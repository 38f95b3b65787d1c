"""A trial in a real Chromium: from a turn to a table, stopped and gone on with, picked blind, opened in Compare, sent."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from sessions_lib import SessionManager
from sessions_lib.trials import Trial, Variant, checks, table
from tests.model_server import ModelServer, say
from tests.record import GULL, LIGHTHOUSES, call, result


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

        cells = page.locator("[data-testid=stDataFrame] canvas").first.bounding_box()
        page.mouse.click(cells["x"] + 60, cells["y"] + 52)
        link = page.get_by_role("link", name=re.compile("beside other")).first
        link.click()
        app.settle(page)
        expect(page).to_have_url(re.compile(r"/compare\?a=picked\.other\.\d&b=picked\.base\.\d"))


def test_a_server_that_is_killed_in_the_middle_asks_nothing_twice_and_ends_as_an_undisturbed_one(serve):
    """Ten answers of each variant pass or not by what the variant is: so the table is known before."""

    def reply(path, request):
        is_short = request["messages"][0]["role"] == "system"
        return say("Yes." if is_short else "No.", pause_s=0.15)

    with ModelServer(refuse=reply) as model:
        app = serve(OPENAI_BASE_URL=model.url, OPENAI_API_KEY="sk-test", OPENAI_MODEL="tiny")
        session = SessionManager(app.folder).create("Lighthouses", session_id="a")
        session.extend([LIGHTHOUSES, GULL])
        variants = [Variant("base"), Variant("short", system="Be short.")]
        Trial(session, 2, ["Sure?"], variants, [checks.contains("yes")], 10, name="killed").save()
        page = app.open("/trials?trial=killed")
        page.get_by_role("button", name="Go on: 30 answers").click()
        expect(page.get_by_text(re.compile(r"^[5-9] of 30 answers"))).to_be_visible()
        app.kill()
        app.start()

        page = app.open("/trials?trial=killed")
        page.get_by_role("button", name=re.compile("Go on: ")).click()
        expect(page.get_by_role("button", name="10 more repeats")).to_be_visible()

        trial = Trial.load(session.store, "killed")
        assert [table.share(row.rate) for row in table.rows(trial)] == ["0 of 10", "0 of 10", "10 of 10"]
        repeats = [info for info in SessionManager(app.folder).list() if info.id != "a"]
        assert len(repeats) == len(trial.results) == 30
        for info in repeats:
            roles = [message["role"] for message in SessionManager(app.folder).open(info.id).messages[2:]]
            assert roles == ["user", "assistant"]
        expect(page.get_by_text("short is better than base: 10 of 10 against 0 of 10")).to_be_visible()
        assert len(model.requests) <= 30 + 4  # those that the kill cut off are asked again, no other


def test_a_variant_pretends_that_a_tool_said_something_else_and_a_copy_asks_again(serve):
    with ModelServer() as model:
        app = serve(OPENAI_BASE_URL=model.url, OPENAI_API_KEY="sk-test", OPENAI_MODEL="tiny")
        session = SessionManager(app.folder).create("Cave", session_id="cave")
        session.extend([
            {"role": "user", "content": "How deep?"}, call("c1", name="depth"), result("c1", "40 m", name="depth"),
            {"role": "assistant", "content": "Forty."}, {"role": "user", "content": "Is it safe?"}, GULL,
        ])  # fmt: skip
        page = app.open(
            "/trials?new=cave&at=4", viewport={"width": 1280, "height": 1500}
        )  # scrolling would close the list
        page.get_by_text("More that may differ").nth(1).click()
        app.settle(page)
        page.get_by_role("combobox", name="Variant 2 pretends that something else was said").click()
        page.get_by_role("option", name="turn 1 · Tool result: 40 m").click()
        page.get_by_role("textbox", name="What was said instead").fill("4 m")
        page.get_by_role("textbox", name="Name", exact=True).fill("deep")
        page.get_by_role("spinbutton", name="Repeats of each variant").fill("2")
        page.get_by_role("spinbutton", name="Repeats of each variant").press("Tab")
        page.get_by_role("button", name="Set up and start").click()
        expect(page.get_by_role("button", name="10 more repeats")).to_be_visible()

        said = sorted(request["messages"][-1]["content"] for request in model.requests)
        assert said == ["4 m", "4 m", *["40 m"] * 4]

        page.get_by_role("button", name="Copy", exact=True).click()
        page.get_by_role("textbox", name="Name of the copy").fill("deep again")
        page.get_by_role("button", name="Make the copy").click()
        expect(page.get_by_text("Nothing was copied.")).to_be_visible()  # no id: it says so, and stays open
        page.get_by_role("textbox", name="Name of the copy").fill("deep-again")
        page.get_by_role("button", name="Make the copy").click()
        page.get_by_role("button", name="Go on: 6 answers").click()
        expect(page.get_by_role("button", name="10 more repeats")).to_be_visible()
        assert len(model.requests) == 12
        assert page.url.endswith("/trials?trial=deep-again")


def test_the_branches_of_a_comparison_are_tried(serve):
    with ModelServer() as model:
        app = serve(OPENAI_BASE_URL=model.url, OPENAI_API_KEY="sk-test", OPENAI_MODEL="tiny")
        session = SessionManager(app.folder).create("Lighthouses", session_id="a")
        session.extend([LIGHTHOUSES, GULL])
        session.fork("b", at=0, title="Another").extend([{"role": "user", "content": "And harbours?"}, GULL])
        page = app.open("/compare?a=a&b=b")
        page.get_by_role("link", name="Try 10 times").click()
        app.settle(page)
        page.get_by_role("textbox", name="Prompt", exact=True).fill("Sure?\n---\nWhy?")
        page.get_by_role("textbox", name="Value of check 1").fill("yes")
        page.get_by_role("textbox", name="Value of check 1").press("Tab")
        page.get_by_role("button", name="Set up and start").click()
        expect(page.get_by_role("button", name="10 more repeats")).to_be_visible()

        expect(page.get_by_text("Another and Lighthouses are not told apart by 10 repeats")).to_be_visible()
        assert len(model.requests) == 60  # two prompts, one after the other
        first = [
            [m["content"] for m in request["messages"]] for request in model.requests if len(request["messages"]) == 3
        ]
        assert sorted({one[0] for one in first}) == ["And harbours?", LIGHTHOUSES["content"]]
