"""What repeats say about a rate: Wilson's interval, Newcombe's for the difference of two, and when they tell two apart.

All intervals are of 95 %. Pure functions; scipy counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

MOST_REPEATS = 5_000  # what is never tried to be told apart with more


@dataclass(frozen=True, slots=True)
class Rate:
    """``passed`` of ``runs``, and the interval in which the true rate is likely to lie; ``None`` without any run."""

    passed: int
    runs: int
    low: float | None
    high: float | None

    @property
    def rate(self) -> float | None:
        """The share that passed, 0 to 1."""
        return self.passed / self.runs if self.runs else None


@dataclass(frozen=True, slots=True)
class Difference:
    """How much more often the second passes than the first: -1 to 1, and its interval.

    ``needed`` is how many repeats each would have to have for the interval to exclude 0 if the rates stayed as they
    are; ``None`` where it does already, or where more than ``MOST_REPEATS`` would be needed.
    """

    difference: float
    low: float
    high: float
    needed: int | None

    @property
    def is_told_apart(self) -> bool:
        """True if the interval excludes 0: luck alone would seldom look like this."""
        return self.low > 0 or self.high < 0


def rate(passed: int, runs: int) -> Rate:
    """``passed`` of ``runs`` with Wilson's interval.

    >>> found = rate(8, 10)
    >>> round(found.low, 3), round(found.high, 3)
    (0.49, 0.943)
    """
    if not runs:
        return Rate(0, 0, None, None)
    from scipy.stats import binomtest  # 0.5 s to import: only who looks at a trial waits for it

    found = binomtest(passed, runs).proportion_ci(confidence_level=0.95, method="wilson")
    return Rate(passed, runs, float(found.low), float(found.high))


def difference(first: Rate, second: Rate) -> Difference | None:
    """How ``second`` differs from ``first``, by Newcombe's method; ``None`` if one has no run.

    >>> round(difference(rate(2, 10), rate(9, 10)).low, 2)
    0.26
    """
    if not first.runs or not second.runs:
        return None
    apart, low, high = _newcombe(first, second)
    needed = None if low > 0 or high < 0 else _needed(first.passed / first.runs, second.passed / second.runs)
    return Difference(apart, low, high, needed)


def _newcombe(first: Rate, second: Rate) -> tuple[float, float, float]:
    one, other = first.passed / first.runs, second.passed / second.runs
    (low_one, high_one), (low_other, high_other) = ((rate.low or 0.0, rate.high or 0.0) for rate in (first, second))
    apart = other - one
    low = apart - math.hypot(other - low_other, high_one - one)
    high = apart + math.hypot(high_other - other, one - low_one)
    return apart, low, high


def _needed(one: float, other: float) -> int | None:
    """The fewest repeats that would tell these two rates apart."""

    def tells(runs: int) -> bool:
        _, low, high = _newcombe(rate(round(one * runs), runs), rate(round(other * runs), runs))
        return low > 0 or high < 0

    high = 10
    while not tells(high):
        high *= 2
        if high > MOST_REPEATS:
            return None
    low = high // 2
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if tells(middle) else (middle + 1, high)
    return high


def pass_all(passed: int, runs: int, k: int) -> float | None:
    """pass^k: how likely ``k`` repeats drawn from these all pass; ``None`` with fewer than ``k`` of them.

    >>> pass_all(9, 10, 2)
    0.8
    """
    if not 1 <= k <= runs:
        return None
    return math.comb(passed, k) / math.comb(runs, k)
