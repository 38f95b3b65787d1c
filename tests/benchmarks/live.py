"""An open Chat page on a real server, in real Chromium: what it costs when nothing happens, and how fast Stop stops.

Idle: processor time of the server with one open session, against a server of the same settings whose page is nothing
but a timer of the same two seconds; both stand open at once, so a busy machine disturbs both alike. Stop: from the
click until the file has what was said, while two processes a core keep the machine busy.
``python -m tests.benchmarks.live``.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.benchmarks.chat import send, until
from tests.benchmarks.harness import Row, setting
from tests.browser.conftest import CHROMIUM_FLAGS, App, make_app
from tests.model_server import SILENCE, ModelServer, Reply, chunk

IDLE_BAR, STOP_BAR_S = 1.3, 1.0
WINDOW_S = 20.0
TIMER = """
import streamlit as st
@st.fragment(run_every=2)
def timer():
    pass
timer()
"""
WORDS = [chunk({"content": f"word{number} "}) for number in range(4000)]


def rows() -> Iterator[Row]:
    """What an idle page costs, then Stop with a model that is silent and one that goes on talking."""
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=CHROMIUM_FLAGS)
        try:
            yield idle(browser, Path(home))
            yield from stopping(browser, Path(home))
        finally:
            browser.close()


def idle(browser: Browser, home: Path) -> Row:
    """Processor time of a server with an open Chat page as a multiple of one with a bare timer."""
    ours, bare = make_app(browser, home / "ours"), make_app(browser, home / "bare")
    fill(ours.folder)
    script = bare.log.parent / "timer.py"
    script.write_text(TIMER)
    try:
        ours.start()
        bare.start(script)  # from the app's folder, so with its settings
        pages = [browser.new_page(), browser.new_page()]
        pages[0].goto(f"{ours.url}/chat?session=talk")
        until(pages[0], "answer 49")
        pages[1].goto(bare.url)
        pages[1].wait_for_timeout(6000)
        ratios, costs = [], []
        for _ in range(setting.rounds):
            before = [processor_of(app) for app in (ours, bare)]
            pages[0].wait_for_timeout(WINDOW_S * 1000)
            mine, other = (processor_of(app) - spent for app, spent in zip((ours, bare), before, strict=True))
            ratios.append(mine / max(other, 0.01))
            costs.append((100 * mine / WINDOW_S, 100 * other / WINDOW_S))
        mine, other = (statistics.median(cost) for cost in zip(*costs, strict=True))
        note = f"{mine:.1f} % / {other:.1f} % of a core"
        return Row("an open, idle Chat page / a bare timer, cpu", statistics.median(ratios), IDLE_BAR, note)
    finally:
        ours.stop()
        bare.stop()


def fill(folder: Path) -> None:
    """A session of fifty turns."""
    folder.mkdir(parents=True)
    said = [
        {"role": role, "content": f"{what} {number}"}
        for number in range(50)
        for role, what in (("user", "prompt"), ("assistant", "answer"))
    ]
    (folder / "talk.jsonl").write_text("".join(json.dumps(message) + "\n" for message in said))


def processor_of(app: App) -> float:
    """Processor seconds of the server so far."""
    assert app.process is not None
    fields = Path(f"/proc/{app.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def stopping(browser: Browser, home: Path) -> Iterator[Row]:
    """Seconds from the click on Stop until the stopped answer is in the file."""
    with ModelServer() as model:
        app = make_app(browser, home / "stop", OPENAI_BASE_URL=model.url, OPENAI_API_KEY="sk-test", OPENAI_MODEL="tiny")
        fill(app.folder)
        replies = {
            "a silent model": Reply([chunk({"content": "word0 word9 "}), SILENCE]),
            "a talking model": Reply(WORDS, pause_s=0.02),
        }
        try:
            app.start()
            with busy():
                spent: dict[str, list[float]] = {name: [] for name in replies}
                for _ in range(setting.rounds):
                    for name, reply in replies.items():
                        model.queue = [reply]
                        spent[name].append(stop_once(app))
        finally:
            app.stop()
    for name, seconds in spent.items():
        note = f"{', '.join(f'{one:.2f}' for one in seconds)} s"
        yield Row(f"Stop to the disk, busy machine, {name} / 1 s", max(seconds) / STOP_BAR_S, 1.0, note)


def stop_once(app: App) -> float:
    """Ask, wait for words, stop; how many seconds from the click until the file has the answer as stopped."""
    file = app.folder / "talk.jsonl"
    context = app.browser.new_context(viewport={"width": 1280, "height": 860})
    page = context.new_page()
    page.goto(f"{app.url}/chat?session=talk")
    until(page, "answer 49")
    send(page, "Go")
    until(page, "word9")
    page.wait_for_timeout(1500)
    size = file.stat().st_size
    # The click itself: what the driver does before it (is the button at rest, is it covered) is not the app's.
    page.evaluate("document.addEventListener('click', () => { window.clickedAt = Date.now(); }, true)")
    page.get_by_role("button", name="Stop").click()
    while file.stat().st_size == size:
        time.sleep(0.002)
    stored = time.time()
    assert json.loads(file.read_text().splitlines()[-1])["interrupted"] is True
    clicked = page.evaluate("window.clickedAt") / 1000
    context.close()
    return float(stored - clicked)


@contextmanager
def busy() -> Iterator[None]:
    """Two processes a core that do nothing but work."""
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_work, daemon=True) for _ in range(2 * (os.cpu_count() or 1))]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        for worker in workers:
            worker.kill()
            worker.join()


def _work() -> None:
    while True:
        sum(range(10_000))


def main() -> None:
    """Print every row, with a mark on those above their bar."""
    for row in rows():
        print(
            f"{'ok  ' if row.is_met else 'OVER'} {row.name}: {row.ratio:.2f} (at most {row.bar}; {row.note})",
            flush=True,
        )


if __name__ == "__main__":
    main()
