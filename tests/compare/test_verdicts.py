"""A verdict is read in one way, whoever wrote it."""

from __future__ import annotations

from typing import Any

import pytest

from sessions_lib.compare import verdicts
from sessions_lib.store import records


@pytest.mark.parametrize(
    ("stored", "name", "found"),
    [
        ("won", "won", {"verdict": "won"}),
        ({"verdict": "won", "over": ["a"]}, "won", {"verdict": "won", "over": ["a"]}),
        ({"name": "lost"}, "lost", {"verdict": "lost", "name": "lost"}),
        ({"name": "better"}, "better", None),
        ("better", "better", None),
        ({"verdict": 3, "name": "won"}, "", None),
        (None, "", None),
        ([], "", None),
    ],
)
def test_every_reader_takes_a_stored_verdict_for_the_same(stored: Any, name: str, found: dict[str, Any] | None) -> None:
    assert records.verdict({"verdict": stored}) == name
    assert verdicts.of({"verdict": stored}) == found
