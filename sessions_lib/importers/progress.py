"""What an import tells on its way: file by file, and at the end one sentence for all files that were refused alike.

Does not import anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from sessions_lib import text
from sessions_lib.errors import ImportRefused, SessionError
from sessions_lib.importers.adding.writing import Outcome
from sessions_lib.importers.imported import ImportReport

_FEW = 3


@dataclass(frozen=True, slots=True)
class ImportResult:
    """What became of one file: its report, and an ``Outcome`` for each of its conversations."""

    report: ImportReport
    outcomes: list[Outcome] = field(default_factory=list)
    is_unchanged: bool = False
    left_deleted: int = 0  # sessions that were deleted here before, and stay so

    @property
    def added_sessions(self) -> int:
        """How many sessions were made, or came back from the trash."""
        return sum(outcome.change in ("new", "parted", "restored") for outcome in self.outcomes)

    @property
    def added_messages(self) -> int:
        """How many messages were written."""
        return sum(outcome.added for outcome in self.outcomes)

    @property
    def summary(self) -> str:
        """One line: ``2 sessions, 31 messages``; what is new, or that nothing is, and what stays deleted."""
        grown = sum(outcome.change == "grown" for outcome in self.outcomes)
        made, added = self.added_sessions, self.added_messages
        parts = [text.count(made, "session")] if made else []
        parts += [f"{grown} grown"] if grown else []
        parts += [text.count(added, "message")] if added else []
        gone = [f"{self.left_deleted} deleted before"] if self.left_deleted else []
        return ", ".join([*(parts or ["nothing new"]), *gone])


@dataclass(frozen=True, slots=True)
class Progress:
    """One file of an import is done: ``done`` of ``total``; either ``result`` or ``error``.

    ``found_in`` is the folder or zip that a person named, ``None`` if it was the file itself.
    """

    done: int
    total: int
    source: Path
    found_in: Path | None = None
    result: ImportResult | None = None
    error: SessionError | None = None

    @property
    def was_named(self) -> bool:
        """True if a person named the file, false if it was found in a folder or zip."""
        return self.found_in is None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a file, or ``files`` files of the folder or zip ``path``, could not be imported."""

    path: Path
    files: int
    text: str


def refusals(steps: Iterable[Progress]) -> list[Refusal]:
    """What could not be imported: one refusal for all files of a folder or zip that are refused alike.

    A few files that a person named one by one are refused one by one.
    """
    alike: dict[tuple[Path, str], list[Progress]] = {}
    for step in steps:
        if step.error is not None:
            kind = step.error.found.partition(" (")[0] if isinstance(step.error, ImportRefused) else str(step.error)
            alike.setdefault((step.found_in or step.source.parent, kind), []).append(step)
    told = []
    for (place, kind), group in alike.items():
        is_few = len(group) <= _FEW and all(step.was_named for step in group)
        told += [_refusal(place, kind, [step]) for step in group] if is_few else [_refusal(place, kind, group)]
    return told


def _refusal(place: Path, kind: str, group: list[Progress]) -> Refusal:
    first = group[0].source
    if len(group) == 1:
        return Refusal(first, 1, str(group[0].error))
    found = {step.error.found for step in group if isinstance(step.error, ImportRefused)}
    said = found.pop() if len(found) == 1 else kind
    text = f"{place}: {len(group):,} files, {first.name} the first: {said}. Nothing was imported of them."
    return Refusal(place, len(group), text)
