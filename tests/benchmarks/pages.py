"""Sessions, a search and Stats with many sessions against 100, once indexed: ``python -m tests.benchmarks.pages``.

Two measures, both in turns and as medians of ratios. In real Chromium: from asking for the address until the page
stands, each from a server of its own. The script alone (AppTest): a rerun of the page that is open, which is what a
click or a message added elsewhere costs the server. Each answer is checked before it is measured.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright
from streamlit.testing.v1 import AppTest

from sessions_lib.store.folder.index.catalog import Catalog
from tests.benchmarks import corpus
from tests.benchmarks.harness import Row, setting
from tests.browser.conftest import CHROMIUM_FLAGS, IDLE, ROOT, App, make_app

FEW = 100
BAR = 1.5
RARE = "zephyrquartz"
# name → the page's script, its query, and what stands on the page when it is drawn
PAGES: dict[str, tuple[str, dict[str, str], str]] = {
    "Sessions": ("sessions", {}, "[data-testid=stDataFrame] canvas"),
    "a search": ("sessions", {"q": RARE}, ".st-key-sessions_q input"),
    "a search for a frequent word": ("sessions", {"q": "checkpoint drift"}, ".st-key-sessions_q input"),
    "Stats": ("stats", {"when": "all"}, ".vega-embed :is(svg, canvas)"),
    "Home": ("home", {}, ".st-key-home-recent"),
}

Times = dict[str, dict[int, list[float]]]


def folders() -> dict[int, Path]:
    """The folder of ``FEW`` sessions and the large one, both indexed."""
    corpus.make(setting.folder, setting.sessions)
    small = setting.home / f"first-{FEW}"
    if not small.exists():
        small.mkdir()
        for number in range(FEW):
            for ending in (".jsonl", ".meta.json"):
                shutil.copy2(setting.folder / f"s{number:06}{ending}", small)
    made = {FEW: small, setting.sessions: setting.folder}
    for folder in made.values():
        catalog = Catalog(folder)
        catalog.index()
        catalog.close()
    return made


def rows() -> Iterator[Row]:
    """A row a page and measure: many sessions as a multiple of few."""
    made = folders()
    measured = {"": in_chromium(made), ", rerun of the script": as_script(made)}
    for what, times in measured.items():
        for name, spent in times.items():
            ratios = [many / few for few, many in zip(spent[FEW], spent[setting.sessions], strict=True)]
            few, many = (statistics.median(spent[count]) * 1000 for count in made)
            yield Row(
                f"{name}{what}, {setting.sessions:,} / {FEW} sessions",
                statistics.median(ratios),
                BAR,
                f"{many:.0f} ms / {few:.0f} ms",
            )


def timed(act: Callable[[], Any]) -> float:
    """How many seconds ``act`` takes."""
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def in_turns(made: dict[int, Path], act: Callable[[int, str], Any]) -> Times:
    """The times of ``act(sessions, page)``, once a round for each folder in turns; the first round only warms."""
    spent: Times = {name: {count: [] for count in made} for name in PAGES}
    for number in range(setting.rounds + 1):
        for name in PAGES:
            for count in sorted(made, reverse=bool(number % 2)):
                seconds = timed(partial(act, count, name))
                if number:
                    spent[name][count].append(seconds)
    return spent


# ---------------------------------------------------------------- real Chromium


def in_chromium(made: dict[int, Path]) -> Times:
    """From the address to the standing page."""
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=CHROMIUM_FLAGS)
        apps = {count: make_app(browser, Path(home) / str(count), SESSIONS_DIR=str(made[count])) for count in made}
        try:
            for app in apps.values():
                app.start()
            pages = {count: new_page(browser) for count in made}
            return in_turns(made, lambda count, name: stand(apps[count], pages[count], name))
        finally:
            for app in apps.values():
                app.stop()
            browser.close()


def new_page(browser: Browser) -> Page:
    """A tab of a visitor of its own."""
    page = browser.new_context(viewport={"width": 1280, "height": 860}).new_page()
    page.set_default_timeout(120_000)
    return page


def stand(app: App, page: Page, name: str) -> None:
    """Open the page and wait until its script has ended and what it sent is there."""
    path, query, mark = PAGES[name]
    asked = "&".join(f"{key}={value.replace(' ', '%20')}" for key, value in query.items())
    page.goto(f"{app.url}/{'' if path == 'home' else path}?{asked}", wait_until="commit")
    page.wait_for_function(
        "([idle, mark]) => document.querySelector(idle) && document.querySelector(mark) "
        "&& !document.querySelector('[data-testid=stSkeleton]')",
        arg=[IDLE, mark],
        polling="raf",
    )


# ---------------------------------------------------------------- the script alone


def as_script(made: dict[int, Path]) -> Times:
    """A rerun of the open page, without a browser."""
    opened = {(count, name): opened_page(made[count], name) for count in made for name in PAGES}

    def rerun(count: int, name: str) -> None:
        os.environ["SESSIONS_DIR"] = str(made[count])
        opened[count, name].run()

    return in_turns(made, rerun)


def opened_page(folder: Path, name: str) -> AppTest:
    """The page, drawn and looked at: it says what the folder holds."""
    os.environ["SESSIONS_DIR"] = str(folder)
    path, query, _ = PAGES[name]
    test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    test.run()
    for key, value in query.items():
        test.query_params[key] = value
    test.switch_page(f"pages/{path}.py").run()
    assert not test.exception, test.exception
    if name == "Sessions":
        count = len(list(folder.glob("s*.jsonl")))
        assert any(f"**{count:,}** sessions" in one.value for one in test.markdown), "not all sessions are listed"
    return test


def main() -> None:
    """Print every row, with a mark on those above their bar."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.pages", description=__doc__)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--home", type=Path, help="where to make (and find again) the folders; else they are temporary")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        setting.sessions, setting.rounds, setting.home = chosen.sessions, chosen.rounds, chosen.home or Path(temporary)
        setting.home.mkdir(parents=True, exist_ok=True)
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        for row in rows():
            mark = "ok  " if row.ratio is not None and row.bar is not None and row.ratio <= row.bar else "OVER"
            print(f"{mark} {row.name}: {row.ratio:.2f} (at most {row.bar}; {row.note})", flush=True)


if __name__ == "__main__":
    main()
