"""Home in a real Chromium: a cold start, rows that keep to one line, the demo that comes once and goes on request."""

from __future__ import annotations

from playwright.sync_api import expect

from sessions_lib import SessionManager, demo
from tests.record import GULL, LIGHTHOUSES


def test_a_cold_server_opens_home(app):
    page = app.open("/")

    assert page.title() == "Home · Forkbook"


def test_a_long_title_gives_way_to_the_facts_beside_it(app):
    tags = ["a tag of many letters", "another tag of many", "third"]
    parent = SessionManager(app.folder).create("The lighthouses of the north " * 7, session_id="long", tags=tags)
    parent.extend([LIGHTHOUSES, {**GULL, "usage": {"total_tokens": 1_240_000}}])
    parent.fork("fork").extend([LIGHTHOUSES, {**GULL, "usage": {"total_tokens": 1_310_000}}])

    page = app.open("/")

    row = page.locator(".st-key-home-row-fork")
    link, facts = row.get_by_test_id("stPageLink").bounding_box(), row.get_by_test_id("stMarkdown").bounding_box()
    assert "1,310,000 own and 1,240,000 inherited tokens" in row.inner_text()
    assert abs(link["y"] + link["height"] / 2 - facts["y"] - facts["height"] / 2) < 4
    assert link["x"] + link["width"] <= facts["x"]
    cut = "text => [text.scrollWidth > text.clientWidth, getComputedStyle(text).textOverflow]"
    assert row.get_by_test_id("stPageLink").locator("p").evaluate(cut) == [True, "ellipsis"]


def test_load_the_demo_clicked_twice_loads_once_and_removes_nothing(serve):
    app = serve()
    page = app.open("/")
    place = page.get_by_role("button", name="Load the demo").bounding_box()
    at = (place["x"] + 20, place["y"] + place["height"] / 2)

    for _ in range(6):  # wherever in the load a click falls, and once it has ended
        page.mouse.click(*at)
        page.wait_for_timeout(250)
    app.settle(page)

    expect(page.get_by_text("32 sessions and a finished trial are there to look at.")).to_be_visible()
    expect(page.get_by_role("link", name="All 32 sessions")).to_be_visible()
    manager = SessionManager(app.folder)
    assert (len(manager.list()), manager.trash()) == (72, [])


def test_the_demo_is_removed_at_the_foot_of_the_page_and_an_undo_brings_it_back(serve):
    app = serve()
    manager = SessionManager(app.folder)
    demo.load(manager)
    page = app.open("/")

    page.get_by_role("button", name="Remove the demo").click()
    expect(page.get_by_text("72 sessions moved to the trash.")).to_be_visible()
    assert manager.list() == []
    page.get_by_role("button", name="Undo").click()

    expect(page.get_by_text("72 sessions restored.")).to_be_visible()
    assert len(manager.list()) == 72


def test_the_demo_loaded_from_an_empty_compare_is_compared_there(serve):
    app = serve()
    page = app.open("/compare")

    page.get_by_role("button", name="Load the demo").dblclick()

    expect(page.locator(".st-key-compare_grid .head .title")).to_have_text(
        ["The Cave of Echoes", "The Cave of Echoes, asking first"]
    )
    expect(page.get_by_text("32 sessions and a finished trial are there to look at.")).to_be_visible()
    assert page.url.split("?")[0].endswith("/compare")
