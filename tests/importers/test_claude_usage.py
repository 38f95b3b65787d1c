"""Tokens read off the heads of Claude Code's lines are those that an import stores."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from sessions_lib import SessionManager, importers, prices, stats
from sessions_lib.importers.claude import usage as claude_usage
from sessions_lib.messages import model_calls, usage
from sessions_lib.messages.model_calls import ModelCall
from sessions_lib.messages.usage import Totals, Usage
from tests.importers.files import claude, spent, text, write_lines
from tests.importers.test_corpus import files


def total(paths: Iterable[Path]) -> Totals:
    return usage.total(claude_usage.answers(paths))


def sums(found: Totals) -> tuple[int | None, ...]:
    return found.input, found.cached, found.output, found.total, found.reported


@pytest.mark.parametrize("path", [file for file in files("claude-code") if file.id.endswith((".jsonl", "no-corpus"))])
def test_the_sums_are_those_of_the_folder_after_an_import(tmp_path: Path, path: Path) -> None:
    manager = SessionManager(tmp_path / "sessions")
    list(importers.import_paths(manager, [path]))

    assert sums(total([path])) == sums(stats.figures(manager.catalog).tokens)


def test_an_answer_counts_once_in_many_lines_and_files_with_what_it_reported_last(tmp_path: Path) -> None:
    asked = claude("user", "u", None, "hello")
    begun = claude("assistant", "a", "u", text("one"), id="m1", usage=spent(10, 1, read=90))
    ended = claude("assistant", "b", "a", text("two"), id="m1", usage=spent(10, 7, read=90))
    other = claude("assistant", "c", "b", text("three"), id="m2", usage=spent(20, 5))

    found = total(
        [
            write_lines(tmp_path / "one.jsonl", asked, begun, ended),
            write_lines(tmp_path / "two.jsonl", asked, ended, begun, other),
        ]
    )

    assert sums(found) == (120, 90, 12, 132, 2)


ADVISED = {
    **spent(2, 491, written=800, read=20_000),
    "iterations": [
        {"type": "message", **spent(1, 45, written=700, read=9_000)},
        {"type": "advisor_message", "model": "claude-opus-5", **spent(15_000, 780)},
        {"type": "message", **spent(1, 446, written=100, read=11_000)},
    ],
}


def advised(**more: Any) -> dict[str, Any]:
    told = {"id": "m1", "model": "claude-sonnet-5", "usage": ADVISED, "advisorModel": "claude-opus-5", **more}
    return claude("assistant", "a", "u", text("At dawn."), **told)


def test_what_an_advisor_spent_is_counted_under_its_own_model(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "s1.jsonl", claude("user", "u", None, "Plan the crossing."), advised())
    manager = SessionManager(tmp_path / "sessions")

    list(importers.import_paths(manager, [path]))

    by_model = stats.by_model(manager.catalog)
    assert list(zip(by_model["model"], by_model["total"], by_model["answers"], strict=True)) == [
        ("claude-sonnet-5", 21_293, 1),
        ("claude-opus-5", 15_780, 0),
    ]
    assert sums(total([path])) == sums(stats.figures(manager.catalog).tokens) == (35_802, 20_000, 1_271, 37_073, 1)
    found = claude_usage.by_model(claude_usage.answers([path]))
    assert {model: taken.total for model, taken in found.items()} == {
        "claude-sonnet-5": 21_293,
        "claude-opus-5": 15_780,
    }


def test_each_call_of_a_model_keeps_what_its_price_depends_on(tmp_path: Path) -> None:
    writes = {"cache_creation": {"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 70}}
    reported = {
        **spent(2, 9, written=100),
        **writes,
        "service_tier": "priority",
        "iterations": [
            {"type": "message", **spent(2, 9, written=100), **writes},
            {"type": "advisor_message", **spent(5, 1)},
        ],
    }
    path = write_lines(tmp_path / "s1.jsonl", claude("user", "u", None, "q"), advised(usage=reported))

    (found,), _ = importers.read(path)

    answer = found.messages[1]
    assert model_calls.of(answer) == [
        ModelCall("claude-sonnet-5", Usage(102, 0, 9, None, 111), 100, 70, "priority"),
        ModelCall("claude-opus-5", Usage(5, 0, 1, None, 6), 0, None, ""),
    ]
    assert answer["usage"]["prompt_tokens_details"] == {
        "cached_tokens": 0,
        "cache_write_tokens": 100,
        "cache_write_1h_tokens": 70,
    }
    assert answer["usage_reported"] == reported


@pytest.mark.parametrize(
    ("iterations", "expected"),
    [
        (None, {"m-1": 60}),
        ([], {"m-1": 60}),
        (["odd", 5], {"m-1": 60}),
        ([{"type": "message", **spent(40, 20)}], {"m-1": 60}),
        ([spent(40, 20)], {"m-1": 60}),
        ([{"type": "message", **spent(10, 5)}], {"m-1": 60}),  # a part of what the top says
        ([{"type": "compaction", **spent(500, 50)}, {"type": "message", **spent(40, 20)}], {"m-1": 610}),
        ([{"type": "advisor_message", "model": "big", **spent(7, 3)}], {"m-1": 60, "big": 10}),
        ([{"type": "advisor_message", **spent(7, 3)}], {"m-1": 70}),  # nobody says whose
    ],
)
def test_iterations_are_inside_the_numbers_at_the_top_or_beside_them(
    tmp_path: Path, iterations: Any, expected: dict[str, int]
) -> None:
    reported = {**spent(40, 20), "iterations": iterations}
    path = write_lines(tmp_path / "s1.jsonl", claude("assistant", "a", None, text("r"), usage=reported))

    (found,), _ = importers.read(path)

    taken = claude_usage.by_model(claude_usage.answers([path]))
    assert {model: one.total for model, one in taken.items()} == expected
    assert usage.of(found.messages[0]) == Usage(
        *usage.summed([counts for _, counts in model_calls.by_model(found.messages[0]["usage"], "m-1")])
    )
    assert usage.total(found.messages).total == sum(expected.values())


def test_zeros_in_a_later_line_of_an_answer_take_no_tokens_back(tmp_path: Path) -> None:
    whole = claude("assistant", "a", "u", text("one"), id="m1", usage=spent(10, 7, read=90))
    zeros = claude("assistant", "b", "a", text("two"), id="m1", usage=spent(0, 7))
    nothing = claude("assistant", "c", "b", text("three"), id="m1", usage=spent(0, 0))
    path = write_lines(tmp_path / "s1.jsonl", claude("user", "u", None, "q"), whole, zeros, nothing)

    (found,), _ = importers.read(path)

    assert sums(total([path])) == (100, 90, 7, 107, 1)
    assert sums(usage.total(found.messages)) == (100, 90, 7, 107, 1)


COUNTS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


@pytest.mark.parametrize("path", [file for file in files("claude-code") if file.id.endswith((".jsonl", "no-corpus"))])
def test_tokens_by_model_are_those_of_a_files_lines_counted_plainly(tmp_path: Path, path: Path) -> None:
    manager = SessionManager(tmp_path / "sessions")
    list(importers.import_paths(manager, [path]))

    counted: dict[str, tuple[str, int]] = {}  # an answer: its model, and the most that a line of it reports
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").split("\n")):
        for record in objects(line):
            told = record.get("message")
            if record.get("type") == "assistant" and isinstance(told, dict) and told.get("model") != "<synthetic>":
                reported = told.get("usage") or {}
                own = told.get("id") or record.get("uuid") or str(number)
                advice = [one for one in reported.get("iterations") or () if one["type"] == "advisor_message"]
                calls = [(own, told.get("model") or stats.NO_MODEL, reported)]
                calls += [(f"{own} {place}", one["model"], one) for place, one in enumerate(advice)]
                for key, model, tokens in calls:
                    total = sum(tokens.get(name) or 0 for name in COUNTS)
                    if total >= counted.get(key, ("", 0))[1]:
                        counted[key] = (model, total)
    expected: Counter[str] = Counter()
    for model, total in counted.values():
        expected[model] += total
    found = stats.by_model(manager.catalog)
    assert {row.model: row.total for row in found.itertuples() if row.total is not pd.NA and row.total} == +expected
    taken = claude_usage.by_model(claude_usage.answers([path]))
    assert {model or stats.NO_MODEL: one.total for model, one in taken.items() if one.total} == +expected


def objects(line: str) -> list[dict[str, Any]]:
    """The JSON objects that stand on a line."""
    found, at = [], 0
    line = line.strip()
    while at < len(line):
        try:
            value, at = json.JSONDecoder().raw_decode(line, at)
        except ValueError:
            break
        found += [value] if isinstance(value, dict) else []
    return found


def test_damage_and_notices_cost_nothing_and_hide_nothing(tmp_path: Path) -> None:
    sound = claude("assistant", "a", None, text("é"), id="m1", usage=spent(3, 4))
    notice = claude("assistant", "n", "a", text("x"), id="m2", model="<synthetic>", usage=spent(0, 0))
    failed = claude("assistant", "f", "a", text("x"), id="m3", usage=spent(9, 9), isApiErrorMessage=True)
    silent = claude("assistant", "q", "a", text("x"), id="m4")
    path = write_lines(tmp_path / "a.jsonl", "{torn", "[1]", '{"message": "a text"}', sound, notice, failed, silent)

    found = total([path, tmp_path / "gone.jsonl"])

    assert (sums(found), found.answers) == ((3, 0, 4, 7, 1), 2)


def test_what_older_versions_reported_as_cost_stands_beside_what_is_computed(tmp_path: Path) -> None:
    asked = claude("user", "u", None, "hello")
    first = claude(
        "assistant", "a", "u", text("one"), id="m1", usage=spent(1_000, 1), costUSD=0.001, model="claude-sonnet-4-5"
    )
    last = claude(
        "assistant", "b", "a", text("two"), id="m1", usage=spent(1_000, 100), costUSD=0.0051, model="claude-sonnet-4-5"
    )
    manager = SessionManager(tmp_path / "sessions")
    list(importers.import_paths(manager, [write_lines(tmp_path / "one.jsonl", asked, first, last)]))

    (info,) = manager.list()
    session = manager.open(info.id)

    assert str(prices.reported(session.messages, session.meta)) == "$0.0051 reported, more than the $0.0045 computed"
