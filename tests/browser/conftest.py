"""A real app for a real Chromium: ``streamlit run app.py`` on a free loopback port with a folder and an environment of
its own.

``app`` is a server shared by the tests of one module; ``serve`` starts a server for one test, to be configured, killed
or restarted. Both give an ``App``; ``app.open("/chat?session=a")`` opens a page and waits until it is drawn. When a
test ends, it fails if a page of it asked another host than this machine, logged an error in the console or met a script
error, or if the server's log holds a traceback.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE_MS = 60_000  # a machine that builds and tests at once is slow, not wrong
IDLE = "[data-testid=stApp][data-test-script-state=notRunning][data-test-connection-state=CONNECTED]"


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        reason = "no Chromium on this machine; on Debian: apt-get install chromium"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


@dataclass
class App:
    """A running server; ``faults`` collects what no page may do."""

    browser: Browser
    folder: Path
    log: Path
    env: dict[str, str]
    port: int = 0
    process: subprocess.Popen[bytes] | None = None
    faults: list[str] = field(default_factory=list)
    contexts: list[Any] = field(default_factory=list)
    log_read: int = 0
    was_killed: bool = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, script: Path = ROOT / "app.py") -> None:
        """Start the server (again, on the same port) and wait until it answers."""
        if not self.port:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self.port = probe.getsockname()[1]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "streamlit", "run", str(script), "--server.port", str(self.port)],
                cwd=ROOT,
                env=self.env,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            try:
                with urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=2):
                    return
            except OSError:
                time.sleep(0.1)
        raise AssertionError(f"the server did not start:\n{self.log.read_text()}")

    def kill(self) -> None:
        """End the server as a crash would."""
        assert self.process is not None
        self.was_killed = True
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()

    def open(self, path: str = "/", *, beside: Page | None = None, **context: Any) -> Page:
        """A page on ``path``, drawn: of a new visitor, or in another tab of the visitor who has ``beside``."""
        page = self.page(beside=beside, **context)
        self.go(page, path)
        return page

    def page(self, *, beside: Page | None = None, **context: Any) -> Page:
        """An empty page of a visitor, as ``open`` has it."""
        if beside is None:
            owner = self.browser.new_context(**{"viewport": {"width": 1280, "height": 860}, **context})
            owner.set_default_timeout(PATIENCE_MS)
            self.contexts.append(owner)
        else:
            owner = beside.context
        page = owner.new_page()
        page.on("request", lambda request: self._saw_request(request.url))
        page.on("console", lambda message: self._saw_console(message.type, message.text, message.location))
        page.on("pageerror", lambda error: self.faults.append(f"script error: {error}"))
        return page

    def go(self, page: Page, path: str) -> None:
        """Load ``path`` in ``page`` and wait until it is drawn."""
        page.goto(self.url + path)
        self.settle(page)

    def settle(self, page: Page) -> None:
        """Wait until the script has run and what it sent is drawn."""
        page.wait_for_selector(IDLE, timeout=PATIENCE_MS)
        page.wait_for_timeout(150)
        page.wait_for_selector(IDLE, timeout=PATIENCE_MS)
        # Streamlit loads the code of an element when one is first drawn, and shows a grey bar until then.
        page.wait_for_function("!document.querySelector('[data-testid=stSkeleton]')", timeout=PATIENCE_MS)

    def check(self) -> None:
        """Close this test's pages and fail it for what they did."""
        for context in self.contexts:
            context.close()
        self.contexts.clear()
        text = self.log.read_text(errors="replace")
        new, self.log_read = text[self.log_read :], len(text)
        faults, self.faults = self.faults, []
        assert not faults, "\n".join(faults)
        assert "Traceback" not in new, new

    def _saw_request(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("data", "blob") and parts.hostname not in ("127.0.0.1", "localhost"):
            self.faults.append(f"request to another host: {url}")

    def _saw_console(self, kind: str, text: str, location: Any) -> None:
        url = location.get("url", "")
        # A server that a test kills or restarts takes its connections with it. And on a deep link Streamlit itself
        # first looks for its server below the page's own path: /chat/_stcore/health.
        is_expected = "ERR_CONNECTION" in text or "WebSocket" in text or ("404" in text and "/_stcore/" in url)
        is_expected |= self.was_killed and any(
            said in text for said in ("_stcore/health", "server is not responding", "disconnected from server")
        )
        if kind == "error" and not is_expected:
            self.faults.append(f"console error: {text} {url}")


def make_app(browser: Browser, home: Path, **env: str) -> App:
    home.mkdir(parents=True, exist_ok=True)
    clean = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("OPENAI_", "SESSIONS_", "STREAMLIT_")) and "PROXY" not in key.upper()
    }
    folder = home / "folder"
    settings = {"HOME": str(home), "SESSIONS_DIR": str(folder), **env}
    return App(browser, Path(settings["SESSIONS_DIR"]), home / "server.log", {**clean, **settings})


@pytest.fixture(scope="module")
def module_app(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    app = make_app(chromium, tmp_path_factory.mktemp("app"))
    app.start()
    yield app
    app.stop()


@pytest.fixture
def app(module_app: App) -> Iterator[App]:
    yield module_app
    module_app.check()


@pytest.fixture
def serve(chromium: Browser, tmp_path: Path) -> Iterator[Callable[..., App]]:
    """``serve(NAME="value")``: a server with that environment, and a folder of its own, for one test."""
    started: list[App] = []

    def start(**env: str) -> App:
        app = make_app(chromium, tmp_path / f"app-{len(started)}", **env)
        app.start()
        started.append(app)
        return app

    yield start
    try:
        for app in started:
            app.check()
    finally:
        for app in started:
            app.stop()


def is_red(locator: Locator, style: str = "color") -> bool:
    """True if the text or the sign is drawn in red, whatever the theme."""
    red, green, blue = map(
        float, re.findall(r"[\d.]+", locator.evaluate("(e, style) => getComputedStyle(e)[style]", style))[:3]
    )
    return red > 1.3 * green and red > 1.3 * blue
