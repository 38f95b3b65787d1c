"""Chat in real Chromium: opening a session of any length, and watching an answer arrive.

``rows()`` lists what was measured: each is a ratio to something measured in turns in the same run, or to the project's
target. Run alone: ``python -m tests.benchmarks.chat``.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from tests.browser.conftest import CHROMIUM_FLAGS, App, make_app
from tests.model_server import ModelServer, Reply, chunk, say, usage_chunk

ROUNDS = 3
OPENING_BYTES = 150_000
STREAM_BYTES = 6_000_000
PAINTED_S = 0.5
FIRST_WORD_S = 0.25
BARE = """
import openai, streamlit as st
if prompt := st.chat_input("Ask"):
    made = openai.OpenAI().chat.completions.create(
        model="tiny", stream=True, messages=[{"role": "user", "content": prompt}])
    st.write_stream(made)
"""


@dataclass(frozen=True)
class Row:
    """One ratio and the most it may be."""

    name: str
    ratio: float
    bar: float
    note: str


def rows() -> list[Row]:
    """All that is measured; takes about two minutes."""
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright, ModelServer() as model:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=CHROMIUM_FLAGS)
        environment = {"OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "sk-test", "OPENAI_MODEL": "tiny"}
        app = make_app(browser, Path(home) / "app", **environment)
        bare = make_app(browser, Path(home) / "bare", **environment)
        try:
            app.start()
            start_bare(bare)
            return [*opening(app), *streaming(app, model), first_word(app, bare, model)]
        finally:
            app.stop()
            bare.stop()


def start_bare(app: App) -> None:
    """A server of the smallest chat page there is, to compare with."""
    script = app.log.parent / "bare.py"
    script.write_text(BARE)
    probe = App(app.browser, app.folder, app.log, app.env)
    app.port = free_port()
    command = [sys.executable, "-m", "streamlit", "run", str(script), "--server.port", str(app.port)]
    options = ["--server.headless", "true", "--server.address", "127.0.0.1", "--browser.gatherUsageStats", "false"]
    with probe.log.open("ab") as log:
        app.process = subprocess.Popen([*command, *options], env=app.env, stdout=log, stderr=log)
    time.sleep(5)


def free_port() -> int:
    """A port nobody listens on."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(page: Page, text: str) -> None:
    """Wait until ``text`` is painted; asked at every frame, which costs the page nothing."""
    page.wait_for_function("text => document.body.innerText.includes(text)", arg=text, polling="raf", timeout=120_000)


def counted(page: Page) -> list[int]:
    """A list that fills with the sizes of what the server sends to ``page``."""
    sizes: list[int] = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda data: sizes.append(len(data))))
    return sizes


def opening(app: App) -> list[Row]:
    """A session of 5,000 messages against one of 50."""
    app.folder.mkdir(parents=True)
    for count in (50, 5000):
        with (app.folder / f"n{count}.jsonl").open("w") as file:
            for i in range(count):
                file.write(json.dumps({"role": ("user", "assistant")[i % 2], "content": f"message {i}"}) + "\n")
    context = app.browser.new_context(viewport={"width": 1280, "height": 860})
    spent: dict[int, list[float]] = {50: [], 5000: []}
    received: dict[int, int] = {}
    for number in range(ROUNDS + 1):
        for count in spent:
            page = context.new_page()
            sizes = counted(page)
            seconds = timed(lambda page=page, count=count: open_at(app, page, count))
            page.wait_for_timeout(500)
            received[count] = sum(sizes)
            if number:  # the first round loads the code of the page
                spent[count].append(seconds)
            page.close()
    context.close()
    long, short = (statistics.median(spent[count]) for count in (5000, 50))
    return [
        Row("open 5,000 messages / 50 messages", long / short, 1.2, f"{long:.2f} s / {short:.2f} s"),
        Row("bytes to open 5,000 / 150 kB", received[5000] / OPENING_BYTES, 1.0, f"{received[5000] / 1000:.0f} kB"),
    ]


def open_at(app: App, page: Page, count: int) -> None:
    """Open the session of ``count`` messages and wait for its last one."""
    page.goto(f"{app.url}/chat?session=n{count}")
    until(page, f"message {count - 1}")


def timed(act: Callable[[], Any]) -> float:
    """How many seconds ``act`` takes."""
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def streaming(app: App, model: ModelServer) -> list[Row]:
    """An answer of 4,000 tokens at 200 a second."""
    words = [f"word{i} " if i % 25 else f"word{i}.\n\n" for i in range(4000)]
    chunks = [*(chunk({"content": word}) for word in words), chunk({}, "stop"), usage_chunk()]
    model.queue = [Reply(chunks, pause_s=0.005)]
    page = app.browser.new_context().new_page()
    sizes = counted(page)
    open_at(app, page, 50)
    send(page, "A long one")
    completed = model.completed
    while model.completed == completed:
        page.wait_for_timeout(5)
    late = timed(lambda: until(page, "word3999"))
    page.wait_for_timeout(1000)
    total = sum(sizes)
    page.context.close()
    return [
        Row("bytes of a 4,000-token answer / 6 MB", total / STREAM_BYTES, 1.0, f"{total / 1e6:.2f} MB"),
        Row("painted after its end / 0.5 s", late / PAINTED_S, 1.0, f"{late:.2f} s"),
    ]


def send(page: Page, text: str) -> None:
    """Type a prompt and press Enter."""
    field = page.get_by_test_id("stChatInputTextArea")
    field.fill(text)
    field.press("Enter")


def first_word(app: App, bare: App, model: ModelServer) -> Row:
    """From the words the model sends first to their pixels, ours against ``st.write_stream`` on an empty page."""
    pages = {"ours": app.browser.new_context().new_page(), "bare": bare.browser.new_context().new_page()}
    open_at(app, pages["ours"], 50)
    pages["bare"].goto(bare.url)
    pages["bare"].get_by_test_id("stChatInputTextArea").wait_for(timeout=60_000)
    spent: dict[str, list[float]] = {"ours": [], "bare": []}
    for number in range(ROUNDS + 1):
        for name, page in pages.items():
            model.queue = [say(f"first{name}{number} and more", pause_s=0.2)]
            page.get_by_test_id("stChatInputTextArea").and_(page.locator(":enabled")).wait_for(timeout=60_000)
            seconds = ask(page, f"first{name}{number}", model)
            if number:
                spent[name].append(seconds)
            page.wait_for_timeout(2500)
    ours, other = statistics.median(spent["ours"]), statistics.median(spent["bare"])
    return Row(
        "first words later than bare / 0.25 s", (ours - other) / FIRST_WORD_S, 1.0, f"{ours:.2f} s / {other:.2f} s"
    )


def ask(page: Page, word: str, model: ModelServer) -> float:
    """Send a prompt; how many seconds after the model's first words ``word`` is painted."""
    send(page, "Go")
    until(page, word)
    painted = time.perf_counter()
    assert model.spoke_at is not None
    return painted - model.spoke_at


def main() -> None:
    """Print every row, a mark on those above their bar."""
    for row in rows():
        print(
            f"{'ok ' if row.ratio <= row.bar else 'OVER'} {row.name}: {row.ratio:.2f} (at most {row.bar}; {row.note})"
        )


if __name__ == "__main__":
    main()
