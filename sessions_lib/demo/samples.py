"""What the demo's small sessions say: ``samples.jsonl``, one conversation a line, written by hand.

Does not know when they took place or what they cost: ``sessions`` makes that up, and marks them as the demo's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

LARGE = "sample-large"


@dataclass(frozen=True, slots=True)
class Step:
    """A tool call of a written turn and its result; ``effect``: it changed something, ``failed``: it did not work."""

    tool: str
    arguments: str
    result: str
    effect: bool = False
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """A prompt, the tool steps on the way, and the answer; ``finish`` as providers say it, ``""`` if it broke off."""

    prompt: str
    answer: str
    steps: tuple[Step, ...] = ()
    finish: str = "stop"


@dataclass(frozen=True, slots=True)
class Sample:
    """One conversation. Those with a ``name`` are played in their own way, all others as they stand."""

    title: str | None
    tags: tuple[str, ...]
    model: str
    turns: tuple[Turn, ...]
    name: str | None = None


@cache
def samples() -> tuple[Sample, ...]:
    """Every conversation of the file, in its order."""
    lines = Path(__file__).with_suffix(".jsonl").read_bytes()
    return tuple(msgspec.json.Decoder(Sample).decode_lines(lines))


def named(name: str) -> Sample:
    """The conversation of that ``name``."""
    return next(sample for sample in samples() if sample.name == name)
