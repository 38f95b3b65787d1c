"""Measuring on a shared machine: ratios of things run in turns in the same process, never seconds of one run.

Every round runs every candidate once, in an order that rotates; a ratio is the median over the rounds of (candidate /
base) inside one round. Processor time (own and children's) stands beside wall time: on a busy machine it is the
steadier of the two. A candidate that answers wrongly is no candidate: callers check answers before they measure.
"""

from __future__ import annotations

import gc
import os
import resource
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

Work = Callable[[], object]


@dataclass
class Setting:
    """What all modules measure with: how many sessions and rounds, where files are made."""

    sessions: int = 200
    rounds: int = 5
    home: Path = Path()

    @property
    def folder(self) -> Path:
        """The folder of sessions."""
        return self.home / f"sessions-{self.sessions}"


setting = Setting()


def installed() -> dict[str, str]:
    """The environment of a command whose modules are compiled once, as an installation's are."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(setting.home / "compiled")}


@dataclass(frozen=True)
class Row:
    """One line of the table: a ratio (``None`` where there is nothing to measure), the most it may be, and a note.

    ``at_least`` turns the bar round.
    """

    name: str
    ratio: float | None
    bar: float | None
    note: str = ""
    at_least: bool = False

    @property
    def is_met(self) -> bool | None:
        """True if the bar holds, ``None`` if there is none."""
        if self.ratio is None or self.bar is None:
            return None
        return self.ratio >= self.bar if self.at_least else self.ratio <= self.bar


@dataclass(frozen=True)
class Raced:
    """Medians of one candidate: seconds, processor seconds, and both as multiples of the base's."""

    wall: float
    cpu: float
    wall_ratio: float
    cpu_ratio: float


def processor() -> float:
    """Processor seconds of this process and its children so far."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def race(candidates: Mapping[str, Work], rounds: int = 5, before: Work | None = None) -> dict[str, Raced]:
    """Run ``candidates`` in turns; the first is the base. ``before`` is done before each run and not counted."""
    names = list(candidates)
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for name in names:
        if before:
            before()
        candidates[name]()  # warm: the first run fills the page cache
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            if before:
                before()
            gc.collect()
            wall, cpu = time.perf_counter(), processor()
            candidates[name]()
            taken[name].append((time.perf_counter() - wall, processor() - cpu))
    base = taken[names[0]]

    def ratio(runs: list[tuple[float, float]], which: int) -> float:
        return statistics.median(run[which] / max(1e-9, other[which]) for run, other in zip(runs, base, strict=True))

    return {
        name: Raced(
            statistics.median(run[0] for run in runs),
            statistics.median(run[1] for run in runs),
            ratio(runs, 0),
            ratio(runs, 1),
        )
        for name, runs in taken.items()
    }


def milliseconds(raced: Raced) -> str:
    """``3.1 ms``, for a note."""
    return f"{raced.wall * 1000:.3g} ms"
