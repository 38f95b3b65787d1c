"""Every page as the first thing a fresh server is asked for: on an empty folder, and with the demo in it."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from sessions_lib import SessionManager, demo

PAGES = {"": "Home", "chat": "Chat", "sessions": "Sessions", "compare": "Compare", "trials": "Trials", "stats": "Stats"}


@pytest.mark.parametrize("path", PAGES)
def test_a_cold_deep_link_opens_the_page_inside_the_app(serve, path):
    app = serve()

    page = app.open(f"/{path}")
    expect(page.get_by_role("navigation", name="App pages").get_by_role("link")).to_have_count(len(PAGES))
    expect(page.get_by_test_id("stException")).to_have_count(0)
    assert not app.folder.exists()
    demo.load(SessionManager(app.folder))
    app.go(page, f"/{path}")

    expect(page.get_by_role("navigation", name="App pages").get_by_role("link")).to_have_count(len(PAGES))
    expect(page.get_by_test_id("stException")).to_have_count(0)
    assert page.title().endswith("Forkbook")
