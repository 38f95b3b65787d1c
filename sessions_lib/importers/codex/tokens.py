"""Codex's counts → the tokens that each answer used.

``token_count`` holds the thread's total so far and the last call's part; ``token_usage_record`` one call's. Where both
tell of a call it is counted once. A thread that another one began may go on counting where that was.

Does not know messages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sessions_lib.importers.codex.parts import numbers
from sessions_lib.importers.codex.views import Views
from sessions_lib.messages import content

Record = dict[str, Any]
Totals = Callable[[], list[dict[str, int]]]


class Counts:
    """What was counted so far; ``parents_totals`` reads the parent's totals, and is ``None`` without a parent."""

    def __init__(self, parents_totals: Totals | None) -> None:
        """Nothing was counted yet."""
        self._parents_totals = parents_totals
        self._total: dict[str, int] | None = None
        self._views = Views()
        self._responses: set[str] = set()

    def of_count(self, info: Record, *, is_answered: bool) -> dict[str, int] | None:
        """What was used since the last count; ``None`` if nothing: Codex repeats its counts."""
        last, total = numbers(info.get("last_token_usage")), numbers(info.get("total_token_usage"))
        added = self._beyond(last, total, is_answered) if total else last
        if not added or not self._views.is_new("count", _key(last or added)):
            return None
        return added

    def of_record(self, record: Record) -> dict[str, int] | None:
        """What one call used; ``None`` if it was counted already, or the record does not say."""
        response = content.as_text(record.get("response_id"))
        used = numbers(record.get("usage"))
        if response in self._responses or not any(used.values()) or not self._views.is_new("record", _key(used)):
            return None
        if response:
            self._responses.add(response)
        return used

    def _beyond(self, last: dict[str, int], total: dict[str, int], is_answered: bool) -> dict[str, int] | None:
        before, self._total = self._total, total
        if before is None:
            if self._parents_totals is None or not last or last == total:
                return total
            # The total goes on from the parent's. Before anything was answered it may be the parent's own last count.
            return None if not is_answered and total in self._parents_totals() else last
        if total == before:
            return None
        if total.get("total_tokens", 0) < before.get("total_tokens", 0):
            return last or total  # counting began anew
        return {key: max(0, count - before.get(key, 0)) for key, count in total.items()}


def _key(used: dict[str, int]) -> str:
    return " ".join(f"{used.get(key, 0)}" for key in ("input_tokens", "output_tokens", "total_tokens"))
