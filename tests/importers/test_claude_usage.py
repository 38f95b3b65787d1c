"""Tokens read off the heads of Claude Code's lines are those that an import stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from sessions_lib import importers
from sessions_lib.importers.claude import usage
from sessions_lib.messages.usage import Totals
from sessions_lib.store.manager import SessionManager
from tests.importers.files import claude, spent, text, write_lines
from tests.importers.test_corpus import files


def sums(found: Totals) -> tuple[int | None, ...]:
    return found.input, found.cached, found.output, found.total, found.reported


@pytest.mark.parametrize("path", [file for file in files("claude-code") if file.id.endswith((".jsonl", "no-corpus"))])
def test_the_sums_are_those_of_the_folder_after_an_import(tmp_path: Path, path: Path) -> None:
    manager = SessionManager(tmp_path / "sessions")
    list(importers.import_paths(manager, [path]))

    assert sums(usage.totals([path])) == sums(manager.catalog.totals().tokens)


def test_an_answer_counts_once_in_many_lines_and_files_with_what_it_reported_last(tmp_path: Path) -> None:
    asked = claude("user", "u", None, "hello")
    begun = claude("assistant", "a", "u", text("one"), id="m1", usage=spent(10, 1, read=90))
    ended = claude("assistant", "b", "a", text("two"), id="m1", usage=spent(10, 7, read=90))
    other = claude("assistant", "c", "b", text("three"), id="m2", usage=spent(20, 5))

    found = usage.totals(
        [
            write_lines(tmp_path / "one.jsonl", asked, begun, ended),
            write_lines(tmp_path / "two.jsonl", asked, ended, begun, other),
        ]
    )

    assert sums(found) == (120, 90, 12, 132, 2)


def test_damage_and_notices_cost_nothing_and_hide_nothing(tmp_path: Path) -> None:
    sound = claude("assistant", "a", None, text("é"), id="m1", usage=spent(3, 4))
    notice = claude("assistant", "n", "a", text("x"), id="m2", model="<synthetic>", usage=spent(0, 0))
    failed = claude("assistant", "f", "a", text("x"), id="m3", usage=spent(9, 9), isApiErrorMessage=True)
    silent = claude("assistant", "q", "a", text("x"), id="m4")
    path = write_lines(tmp_path / "a.jsonl", "{torn", "[1]", '{"message": "a text"}', sound, notice, failed, silent)

    found = usage.totals([path, tmp_path / "gone.jsonl"])

    assert (sums(found), found.answers) == ((3, 0, 4, 7, 1), 2)
