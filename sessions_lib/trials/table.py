"""What a trial says: a row a variant with its rates and spread, and what can be told apart.

Does not know about files, pages or terminals.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from sessions_lib import text
from sessions_lib.trials import checks as checking
from sessions_lib.trials import intervals
from sessions_lib.trials.intervals import Difference, Rate
from sessions_lib.trials.trial import Result, Trial, Variant


@dataclass(frozen=True, slots=True)
class Spread:
    """The middle and the ends of what is known; ``None`` where nothing is."""

    median: float | None
    least: float | None
    most: float | None


@dataclass(frozen=True, slots=True)
class Row:
    """One variant: how often all checks passed, and each of them; what it took.

    ``difference`` is to the first variant, ``None`` for that one itself. ``pass_all`` is pass^k (see ``pass_k``).
    """

    variant: Variant
    results: tuple[Result, ...]
    rate: Rate
    by_check: tuple[Rate, ...]
    difference: Difference | None
    pass_all: float | None
    tokens: Spread
    seconds: Spread
    dollars: Spread
    failed: int
    unknown: int

    @property
    def without_dollars(self) -> str:
        """Why no dollars are known: ``unpriced``, ``unmetered`` (a local server, the demo), else ``unknown``."""
        done = [result for result in self.results if result.state == "done"]
        return text.spent(None, sum(one.unpriced for one in done), sum(one.unmetered for one in done))


PASS_K = 3


def pass_k(trial: Trial) -> int:
    """The k of pass^k, one for all rows: 3, or as many as there are repeats."""
    return min(PASS_K, trial.repeats)


def rows(trial: Trial) -> list[Row]:
    """A row a variant, in the trial's order: the first, its noise row, the others."""
    by_variant: dict[str, list[Result]] = {variant.name: [] for variant in trial.variants}
    for result in trial.results.values():
        if result.variant in by_variant:
            by_variant[result.variant].append(result)
    made: list[Row] = []
    k = pass_k(trial)
    for variant in trial.variants:
        results = sorted(by_variant[variant.name], key=lambda result: result.repeat)
        done = [result for result in results if result.state == "done"]
        rate = _rate([result.passed for result in done])
        checked = [
            _rate([checking.passes(result.verdicts[number]) for result in done]) for number in range(len(trial.checks))
        ]
        made.append(
            Row(
                variant,
                tuple(results),
                rate,
                tuple(checked),
                intervals.difference(made[0].rate, rate) if made else None,
                intervals.pass_all(rate.passed, rate.runs, k),
                _spread(result.tokens for result in done),
                _spread(result.seconds for result in done),
                _spread(result.dollars for result in done),
                sum(result.state == "failed" for result in results),
                sum(result.passed is None for result in done),
            )
        )
    return made


def _rate(passed: Sequence[bool | None]) -> Rate:
    known = [one for one in passed if one is not None]
    return intervals.rate(sum(known), len(known))


def _spread(values: Iterable[float | None]) -> Spread:
    known = [value for value in values if value is not None]
    return Spread(median(known), min(known), max(known)) if known else Spread(None, None, None)


def verdicts(found: Sequence[Row]) -> list[str]:
    """One sentence a variant behind the first: better, worse, or not told apart; then what the noise row says."""
    said = [_sentence(found[0], row) for row in found[1:] if not row.variant.is_noise]
    noise = next((row for row in found if row.variant.is_noise), None)
    if noise is not None and noise.rate.runs and found[0].rate.runs:
        said.append(
            f"The same variant twice: {share(found[0].rate)} and {share(noise.rate)}. "
            + (
                "Even that differs by more than luck would explain: something changed while it ran."
                if noise.difference is not None and noise.difference.is_told_apart
                else "So much is noise."
            )
        )
    return said


def _sentence(first: Row, row: Row) -> str:
    name, base = row.variant.name, first.variant.name
    apart = row.difference
    if apart is None:
        return f"{name}: no answer that is judged yet."
    if apart.is_told_apart:
        better = "better" if apart.difference > 0 else "worse"
        return (
            f"{name} is {better} than {base}: {share(row.rate)} against {share(first.rate)}, "
            f"a difference of {abs(apart.difference):.0%} ({apart.low:+.0%} to {apart.high:+.0%})."
        )
    runs = min(first.rate.runs, row.rate.runs)
    more = f"about {apart.needed} would be needed" if apart.needed else "they passed about equally often"
    both = f"{share(row.rate)} against {share(first.rate)}"
    return f"{name} and {base} are not told apart by {runs} repeats: {both}; {more}."


def share(rate: Rate) -> str:
    """``8 of 10``."""
    return f"{rate.passed} of {rate.runs}"
