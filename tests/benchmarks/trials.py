"""Trials: what running one costs beside the model's own time, and how long the page of a large one takes to open.

The model is a server on this machine that streams an answer in about a second, as a small local one does. Its time is
that of the same requests, as many at a time, sent by a bare ``openai`` client. The page is opened in Chromium, from a
server of its own, with 10 and with 1,000 repeats of the same variants in turns.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from sessions_lib import SessionManager, prices
from sessions_lib.messages import encoding
from sessions_lib.store.records import NewSession
from sessions_lib.store.session import Session
from sessions_lib.trials import Trial, Variant, checks, table
from tests.benchmarks.harness import Row, setting
from tests.browser.conftest import CHROMIUM_FLAGS, IDLE, App, make_app
from tests.model_server import ModelServer, Reply, say

PARALLEL, REPEATS = 4, 10
WORDS, PAUSE_S = 24, 0.04
FEW, MANY = 10, 1_000
SAID = [{"role": "user", "content": "How deep?"}, {"role": "assistant", "content": "Forty metres."}]
MARK = "[data-testid=stDataFrame] canvas"


def rows() -> Iterator[Row]:
    """Running, then opening."""
    yield running()
    yield opening()


def answer(path: str, request: dict[str, Any]) -> Reply:
    return say(" ".join(["yes"] * WORDS), pause_s=PAUSE_S)


def running() -> Row:
    """4 rows of 10 repeats: three variants, and the first once more."""
    ratios, seconds = [], []
    with ModelServer(refuse=answer) as server, tempfile.TemporaryDirectory(dir=setting.home) as folder:
        session = SessionManager(folder).create("Cave", session_id="cave")
        session.extend(SAID)
        session.update_meta({"base_url": server.url, "model": "tiny"})
        for number in range(setting.rounds + 1):
            base, ours = bare(server), tried(session, number)
            if number:  # the first only warms
                ratios.append(ours / base)
                seconds.append((ours, base))
    ours, base = (statistics.median(column) for column in zip(*seconds, strict=True))
    return Row(
        "trial of 4 × 10, 4 at a time / the same requests alone",
        statistics.median(ratios),
        1.05,
        f"{ours:.2f} s / {base:.2f} s",
    )


def bare(server: ModelServer) -> float:
    """Seconds of the requests alone."""
    from openai import OpenAI

    client = OpenAI(base_url=server.url, api_key="none")
    asked = [*SAID, {"role": "user", "content": "Is it safe?"}]

    def ask(_: int) -> int:
        stream = client.chat.completions.create(model="tiny", messages=asked, stream=True)  # type: ignore[arg-type]  # plain dicts
        return sum(1 for _ in stream)

    started = time.perf_counter()
    with ThreadPoolExecutor(PARALLEL) as pool:
        assert all(count > WORDS for count in pool.map(ask, range(4 * REPEATS)))
    return time.perf_counter() - started


def tried(session: Session, number: int) -> float:
    """Seconds of the trial, from its start to its last result on the disk."""
    variants = [Variant("base"), Variant("cold", temperature=0.0), Variant("short", system="Be short.")]
    trial = Trial(session, 2, ["Is it safe?"], variants, [checks.contains("yes")], REPEATS, name=f"speed-{number}")
    started = time.perf_counter()
    trial.run(PARALLEL)
    spent = time.perf_counter() - started
    assert [table.share(row.rate) for row in table.rows(trial)] == [f"{REPEATS} of {REPEATS}"] * 4
    return spent


def opening() -> Row:
    """The page with 1,000 repeats against one with 10."""
    ratios, seconds = [], []
    with tempfile.TemporaryDirectory(dir=setting.home) as home, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=CHROMIUM_FLAGS)
        app = make_app(browser, Path(home))
        for count in (FEW, MANY):
            made(app.folder, count)
        SessionManager(app.folder).catalog.index()
        try:
            app.start()
            page = browser.new_context(viewport={"width": 1280, "height": 860}).new_page()
            for number in range(setting.rounds + 2):
                few, many = (stand(app, page, count) for count in (FEW, MANY))
                if number > 1:
                    ratios.append(many / few)
                    seconds.append((many, few))
        finally:
            app.stop()
            browser.close()
    many, few = (statistics.median(column) for column in zip(*seconds, strict=True))
    return Row(
        "page of a trial with 1,000 repeats / with 10", statistics.median(ratios), 1.3, f"{many:.2f} s / {few:.2f} s"
    )


def made(folder: Path, count: int) -> None:
    """A finished trial of ``count`` repeats, each a session."""
    session = SessionManager(folder).create("Cave", session_id=f"cave-{count}")
    session.extend(SAID)
    trial = Trial(
        session, 2, ["Is it safe?"], [Variant("base")], [checks.contains("yes")], count // 2, name=f"of-{count}"
    )
    new = []
    for variant, repeat in trial.planned():
        said = [
            {"role": "user", "content": "Is it safe?", "id": f"u-{variant.name}-{repeat}"},
            {
                "role": "assistant", "content": "Yes." if repeat % 3 else "No.", "id": f"a-{variant.name}-{repeat}", "model": "tiny",
                "usage": {"prompt_tokens": 20, "completion_tokens": repeat % 7}, "duration_ms": 500 + repeat,
            },
        ]  # fmt: skip
        session_id = trial.session_of(variant, repeat)
        meta = {
            "id": session_id, "tags": [f"trial:{trial.name}"],
            "trial": {"name": trial.name, "variant": variant.name, "repeat": repeat},
            "forked_from": {"session": session.id, "messages": 2, "message_id": session.messages[-1]["id"]},
        }  # fmt: skip
        new.append(NewSession(session_id, meta, encoding.encode_lines([*session.messages, *said])))
        trial.results[session_id] = trial.result_of(variant, repeat, said, prices.of(said, meta))
    session.store.create_many(new)
    trial.save()
    assert len(trial.results) == count


def stand(app: App, page: Page, count: int) -> float:
    """Seconds from asking for the address until the table and the dots stand."""
    started = time.perf_counter()
    page.goto(f"{app.url}/trials?trial=of-{count}", wait_until="commit")
    page.wait_for_function(
        "([idle, mark, count]) => document.querySelector(idle) && document.querySelector(mark) "
        "&& document.querySelectorAll('.st-key-trial-dots .vega-embed :is(svg, canvas)').length "
        "&& document.querySelector('h1')?.innerText.includes(count) && !document.querySelector('[data-testid=stSkeleton]')",
        arg=[IDLE, MARK, f"of-{count}"],
        polling="raf",
        timeout=120_000,
    )
    return time.perf_counter() - started
