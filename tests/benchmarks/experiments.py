"""Asking four branches at once: the time against the slowest alone, and what the page sends against one branch.

``rows()`` lists what was measured. Run alone: ``python -m tests.benchmarks.experiments``.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from sessions_lib import SessionManager
from sessions_lib.agent import experiments, runs
from sessions_lib.store.store import open_store
from tests.benchmarks.chat import Row, counted
from tests.browser.conftest import CHROMIUM_FLAGS, App, make_app
from tests.model_server import ModelServer, Reply, say

ROUNDS = 5
TIME, TRAFFIC = 1.2, 4.5
LONG = say(" ".join(f"word{number}" for number in range(200)), pause_s=0.01)
NAMES = "abcd"


def rows() -> list[Row]:
    """All that is measured; takes about two minutes."""
    with tempfile.TemporaryDirectory() as home:
        return [together(Path(home) / "together"), traffic(Path(home) / "traffic")]


def branches(folder: Path, url: str) -> SessionManager:
    """Four sessions, a parent and three forks, that ask the model at ``url``."""
    manager = SessionManager(folder)
    manager.create("a", model="tiny", base_url=url).extend(
        [{"role": "user", "content": "q"}, {"role": "assistant", "content": "r"}]
    )
    for name in NAMES[1:]:
        manager.open("a").fork(name)
    return manager


def together(folder: Path) -> Row:
    """Four branches asked at once, against one asked alone, in turns."""
    with ModelServer() as model:
        manager = branches(folder, model.url)
        settings = runs.Settings(open_store(folder), model="tiny", base_url=model.url)

        def asked(names: str) -> float:
            model.queue[:] = [LONG] * len(names)
            start = time.perf_counter()
            started = experiments.ask(list(names), "And then?", lambda _: settings)
            for one in started:
                assert one.run is not None
                assert one.run.wait(60)
            return time.perf_counter() - start

        asked("a")  # the first answer loads the client
        ratios = []
        for _ in range(ROUNDS):
            alone = asked("a")
            ratios.append(asked(NAMES) / alone)
        expected = 2 + 2 * (1 + 2 * ROUNDS)
        assert len(manager.open("a").messages) == expected, "an answer is missing or doubled"
    return Row("ask 4 branches / the slowest alone", statistics.median(ratios), TIME, f"{ROUNDS} rounds, in turns")


def traffic(home: Path) -> Row:
    """What the Compare page receives while four branches stream, against one (the other three answer in a word)."""
    with sync_playwright() as playwright, ModelServer() as model:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=CHROMIUM_FLAGS)
        app = make_app(browser, home)
        manager = branches(app.folder, model.url)
        try:
            app.start()
            received = []
            for replies in ([LONG, *[say("x")] * 3], [LONG] * 4):
                received.append(_received(app, manager, model, list(replies)))
        finally:
            app.stop()
            browser.close()
    one, four = received
    return Row(
        "bytes while 4 stream / while 1 streams", four / one, TRAFFIC, f"{one / 1000:.0f} kB, {four / 1000:.0f} kB"
    )


def _received(app: App, manager: SessionManager, model: ModelServer, replies: list[Reply]) -> int:
    model.queue[:] = replies
    before = {name: len(manager.open(name).messages) for name in NAMES}
    page = app.browser.new_page(viewport={"width": 1280, "height": 860})
    sizes = counted(page)
    app.go(page, "/compare?a=a&b=b&c=c&d=d")
    sizes.clear()
    box = page.locator(".st-key-compare_prompt textarea")
    box.fill("And then?")
    box.press("Enter")
    deadline = time.monotonic() + 120
    while any(len(manager.open(name).messages) < before[name] + 2 for name in NAMES) and time.monotonic() < deadline:
        page.wait_for_timeout(200)
    app.settle(page)
    page.close()
    return sum(sizes)


if __name__ == "__main__":
    for row in rows():
        verdict = "met" if row.ratio <= row.bar else "missed"
        print(f"{row.name}: {row.ratio:.2f} (at most {row.bar}; {verdict}; {row.note})")
