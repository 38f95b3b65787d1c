"""Home in a real Chromium: a cold start, and rows that keep to one line."""

from __future__ import annotations

from sessions_lib import SessionManager
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
