"""Two hundred trials of twenty repeats against a model whose answers pass with a known probability: what is said of
them is true as often as it claims.

Every answer is asked over HTTP and kept as a session, in memory: the disk has its own tests. Each trial has a model of
its own, whose luck is a seed's, and is asked one answer at a time, four trials beside each other: so it is the same
luck every time.
"""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from sessions_lib import SessionManager
from sessions_lib.store.memory import MemoryStore
from sessions_lib.trials import Trial, Variant, checks, table
from sessions_lib.trials.table import Row
from tests.model_server import ModelServer, Reply, say

TRIALS, REPEATS = 200, 20
TRUTHS = (0.2, 0.5, 0.8, 0.35, 0.65)  # of the trials in turn


class Luck:
    """Answers that pass with the probability that the name of the model says."""

    def __init__(self) -> None:
        self._dice: dict[str, random.Random] = {}
        self._mutex = threading.Lock()

    def __call__(self, path: str, request: dict[str, Any]) -> Reply:
        model = str(request["model"])
        with self._mutex:
            dice = self._dice.setdefault(model, random.Random(f"luck of {model}"))
            return say("Yes." if dice.random() < float(model.split("-")[0]) else "No.")


@pytest.fixture(scope="module")
def trials() -> list[tuple[float, list[Row]]]:
    """The truth of each trial, and its rows: a variant, and the same once more."""
    with ModelServer(refuse=Luck()) as server, ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda number: ended(server.url, number), range(TRIALS)))


def ended(address: str, number: int) -> tuple[float, list[Row]]:
    session = SessionManager(MemoryStore()).create("Cave", session_id="cave")
    session.extend([{"role": "user", "content": "How deep?"}, {"role": "assistant", "content": "Forty."}])
    session.update_meta({"base_url": address})
    truth = TRUTHS[number % len(TRUTHS)]
    variant = Variant("base", model=f"{truth}-{number}")
    trial = Trial(session, 2, ["Is it safe?"], [variant], [checks.contains("yes")], REPEATS, name=f"truth-{number}")
    rows = table.rows(trial.run(parallel=1))
    assert [(row.rate.runs, row.failed) for row in rows] == [(REPEATS, 0)] * 2
    return truth, rows


def test_the_intervals_hold_the_truth_in_92_to_98_per_cent(trials: list[tuple[float, list[Row]]]) -> None:
    held = [
        row.rate.low <= truth <= row.rate.high
        for truth, rows in trials
        for row in rows
        if row.rate.low is not None and row.rate.high is not None
    ]

    assert len(held) == 2 * TRIALS
    assert 0.92 <= sum(held) / len(held) <= 0.98


def test_equal_variants_are_called_different_in_at_most_8_per_cent(trials: list[tuple[float, list[Row]]]) -> None:
    told = ["something changed" in table.verdicts(rows)[-1] for _, rows in trials]

    assert len(told) == TRIALS
    assert sum(told) / len(told) <= 0.08
