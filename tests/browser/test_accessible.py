"""Every page by axe-core, in both themes: what is ours is clean; what is Streamlit's is left out by name."""

from __future__ import annotations

from pathlib import Path

import axe_playwright_python
import pytest

from sessions_lib import SessionManager, demo
from tests.browser.conftest import App

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# Rule and place of what the framework draws and no page can change.
STREAMLIT = {
    "empty-table-header": "[data-testid=stDataFrame]",  # the column of boxes of a table with a selection
    "color-contrast": "[data-testid=stCode]",  # the colours of code
    "target-size": "[data-testid=stSelectbox]",  # the button that empties it is 22.5 px wide
}
PAGES = {
    "home": "/",
    "chat": "/chat",
    "session": "/chat?session=quest-1",
    "raw": "/chat?session=quest-1&view=raw",
    "sessions": "/sessions",
    "found": "/sessions?q=torch",
    "compare": "/compare?a=quest-1&b=quest-3",
    "drawn": "/compare?a=quest-1&b=quest-2&c=quest-3&text=drawn&view=aligned&start=open",
    "trials": "/trials",
    "stats": "/stats",
}


@pytest.fixture(scope="module")
def with_demo(module_app: App) -> App:
    demo.load(SessionManager(module_app.folder))
    return module_app


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES.values(), ids=PAGES.keys())
def test_a_page_is_clean(with_demo: App, path: str, scheme: str) -> None:
    page = with_demo.open(path, color_scheme=scheme)
    page.wait_for_timeout(800)  # charts and tables are drawn behind the script
    page.evaluate(AXE)

    found = page.evaluate(f"axe.run(document, {{runOnly: {RULES}}})")

    faults = []
    for rule in found["violations"]:
        for node in rule["nodes"]:
            place = node["target"][0]
            first = place[0] if isinstance(place, list) else place
            excluded = STREAMLIT.get(rule["id"])
            if excluded and page.locator(first).first.evaluate(
                "(node, place) => node.closest(place) !== null", excluded
            ):
                continue
            said = [check["message"] for check in (*node["any"], *node["all"], *node["none"])]
            faults.append((rule["id"], node["html"][:200], said[:1]))
    assert faults == []
    assert len(found["passes"]) > 15  # it has looked at something
