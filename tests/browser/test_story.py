"""The whole story, in one browser: load the demo, chat, see a tool step, reload, fork, compare, stats.

Every step is watched by ``conftest``: no console error, no request to any host but this machine.
"""

from __future__ import annotations

import json
import re

from playwright.sync_api import expect


def test_from_an_empty_folder_to_a_comparison_and_its_numbers(serve):
    app = serve()
    page = app.open("/")

    # The first screen, and the demo.
    expect(page.get_by_text("Nothing here yet")).to_be_visible()
    page.get_by_role("button", name="Load the demo").click()
    expect(page.get_by_text("are there to look at")).to_be_visible()
    expect(page.get_by_role("link", name="The Cave of Echoes, asking first")).to_be_visible()

    # A session of one's own: asked, answered by the demo model, with a tool step that opens.
    page.get_by_role("button", name="Start a session").click()
    expect(page.get_by_role("heading", name="New session")).to_be_visible()
    app.settle(page)
    field = page.get_by_test_id("stChatInputTextArea")
    field.fill("I need to get into the Cave of Echoes. Find out what it takes, and get what you can.")
    field.press("Enter")
    expect(page.get_by_text("in all").first).to_be_visible()
    app.settle(page)
    step = page.locator("[class*=st-key-turn-steps-] summary").filter(has_text="buy")
    expect(step).to_contain_text('buy(item="torch")')
    step.click()
    expect(page.locator("[class*=st-key-turn-steps-]").get_by_text("Result", exact=True).last).to_be_visible()
    expect(page.get_by_text("demo model").first).to_be_visible()
    session = page.url.split("session=")[1]
    stored = [json.loads(line) for line in (app.folder / f"{session}.jsonl").read_text().splitlines()]
    assert len(stored) == 6

    # It is still there after a reload.
    page.reload()
    app.settle(page)
    expect(page.get_by_text("Find out what it takes").first).to_be_visible()

    # A fork, and another way in it.
    page.locator("[class*=st-key-cell-menu-] button").first.click()
    page.get_by_role("button", name="Fork from here").click()
    expect(page.get_by_text(re.compile("Forked from .* after turn 1$"))).to_be_visible()
    expect(page.get_by_text("These happened once, for every branch: buy(torch)")).to_be_visible()
    app.settle(page)
    field = page.get_by_test_id("stChatInputTextArea")
    field.fill("Suppose the key doesn't fit. Is there another way in?")
    field.press("Enter")
    expect(page.get_by_text("in all")).to_have_count(2)
    app.settle(page)

    # The two side by side.
    page.get_by_role("link", name="Compare", exact=True).last.click()
    page.wait_for_url("**/compare?**")
    app.settle(page)
    asked = "Suppose the key doesn't fit. Is there another way in?"
    expect(page.locator(".st-key-compare_grid .cell.prompt", has_text=asked)).to_be_visible()
    expect(page.locator(".st-key-compare_grid .head", has_text="Suppose the key")).to_be_visible()  # the fork's name

    # Found by what was said in it.
    page.get_by_role("link", name="Sessions", exact=True).first.click()
    page.wait_for_url("**/sessions**")
    app.settle(page)

    # The numbers.
    page.get_by_role("link", name="Stats", exact=True).first.click()
    page.wait_for_url("**/stats**")
    app.settle(page)
    expect(page.get_by_text("Tokens").first).to_be_visible()

    # The demo goes, what was made here stays.
    page.get_by_role("link", name="Home", exact=True).first.click()
    page.get_by_role("button", name="Remove the demo").click()
    expect(page.get_by_text("72 sessions moved to the trash.")).to_be_visible()
    assert len(list(app.folder.glob("*.jsonl"))) == 2
