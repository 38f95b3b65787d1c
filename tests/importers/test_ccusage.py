"""The dollars that ccusage gives for Claude Code's files are ours, but for three faults of it, each named and counted.

ccusage (18.0.11, ``daily --json --offline --mode calculate --breakdown``) over the corpus prints ``PRINTED``. Its way,
as its source has it: each line with usage counts once for its ``message.id`` and ``requestId``, the first one seen, and
every line without both of them; all cache writes at the price of five minutes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import SessionManager, importers, stats
from sessions_lib.messages import usage
from tests.importers.files import CORPUS, corpus
from tests.importers.test_corpus import files

# Dollars for a million: input, output, cache write of five minutes, of an hour, cache read.
PRICES = {
    "claude-3-sonnet": (3, 15, 3.75, 6, 0.3),
    "claude-sonnet-4": (3, 15, 3.75, 6, 0.3),
    "claude-opus-4-1": (15, 75, 18.75, 30, 1.5),
    "claude-opus-4-5": (5, 25, 6.25, 10, 0.5),
    "claude-opus-4-6": (5, 25, 6.25, 10, 0.5),
    "converse/jp.anthropic.claude-haiku": (
        1.1,
        5.5,
        1.375,
        2.2,
        0.11,
    ),  # a tenth more in Japan, which ccusage leaves out
}
PRINTED = {
    "claude-3-sonnet-20240229": 0.013539,
    "claude-opus-4-1-20250805": 0.360012,
    "claude-opus-4-5-20251101": 20.62888,
    "claude-opus-4-6": 2.869299,
    "claude-sonnet-4": 0.001779,
    "claude-sonnet-4-20250514": 0.515418,
    "claude-sonnet-4-5-20250929": 26.981536,
}
FIRST_LINE = "it takes what the first line of an answer reports, and lines report a part until the answer ends"
NO_REQUEST = "it counts each line of an answer that has no requestId"
HOURS = "it prices cache writes of an hour as those of five minutes"
FAULTS = (FIRST_LINE, NO_REQUEST, HOURS)
DIFFERENT = {
    "agtrace-claude-session.jsonl": {FIRST_LINE},
    "ccviewer-1af7fc5e.jsonl": {FIRST_LINE},
    "ccviewer-5c0375b4.jsonl": {FIRST_LINE},
    "entire-compact-small.jsonl": {FIRST_LINE},
    "entire-resume-after-exit.jsonl": {FIRST_LINE},
    "entire-summary-small.jsonl": {FIRST_LINE},
    "entire-tool-error-small.jsonl": {FIRST_LINE},
    "entire-two-objects-one-line.jsonl": {FIRST_LINE},
    "codemie-196820da.jsonl": {NO_REQUEST},
    "codemie-9eda1058-interrupt.jsonl": {NO_REQUEST},
    "4c2ddfdc.jsonl": {NO_REQUEST},
    "main-turn1.jsonl": {NO_REQUEST},
    "main-turn2.jsonl": {NO_REQUEST},
    "agent-a485154.jsonl": {NO_REQUEST},
    "entire-fork-two-answers.jsonl": {FIRST_LINE, HOURS},
    "entire-microcompact.jsonl": {HOURS},
    "entire-user-image.jsonl": {HOURS},
}


def lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_bytes().split(b"\n"):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        told = record.get("message") if isinstance(record, dict) else None
        if not isinstance(told, dict) or not isinstance(told.get("usage"), dict) or record.get("type") != "assistant":
            continue
        if told.get("model") != "<synthetic>" and not record.get("isApiErrorMessage"):
            yield record


def spent(paths: Sequence[Path], *mended: str) -> dict[str, float]:
    """The dollars of each model in ccusage's way, the oldest file first, with the faults ``mended`` put right."""
    answers: dict[object, tuple[str, dict[str, Any]]] = {}
    for number, record in enumerate(record for path in sorted(paths, key=begun) for record in lines(path)):
        told = record["message"]
        message, request = told.get("id"), record.get("requestId")
        key: object = (message, request) if message and request else number
        if NO_REQUEST in mended:
            key = message or record.get("uuid")
        model, reported = answers.get(key, (str(told.get("model")), {}))
        if not reported:
            reported = told["usage"]
        elif FIRST_LINE in mended:
            reported = usage.fuller(reported, told["usage"])
        answers[key] = model, reported
    found: dict[str, float] = {}
    for model, reported in answers.values():
        found[model] = found.get(model, 0.0) + dollars(model, reported, HOURS in mended)
    return found


def begun(path: Path) -> str:
    return min((str(record.get("timestamp") or "~") for record in lines(path)), default="~")


def dollars(model: str, reported: dict[str, Any], is_hour_apart: bool) -> float:
    price = next((prices for name, prices in PRICES.items() if model.startswith(name)), (0, 0, 0, 0, 0))
    written = reported.get("cache_creation_input_tokens") or 0
    kept = reported.get("cache_creation")
    hour = (kept.get("ephemeral_1h_input_tokens") or 0) if is_hour_apart and isinstance(kept, dict) else 0
    read = reported.get("cache_read_input_tokens") or 0
    counts = (reported.get("input_tokens") or 0, reported.get("output_tokens") or 0, written - hour, hour, read)
    return sum(count * each for count, each in zip(counts, price, strict=True)) / 1e6


def ours(path: Path, folder: Path) -> dict[str, float]:
    manager = SessionManager(folder)
    list(importers.import_paths(manager, [path]))
    rows = stats.by_model(manager.catalog)
    return dict(rows[rows["cost"].notna()][["model", "cost"]].itertuples(index=False))


REAL = [file.values[0] for file in files("claude-code") if CORPUS in file.values[0].parents]


def test_its_way_is_known_to_the_cent() -> None:
    found = spent([*corpus("claude-code").rglob("*.jsonl")])

    assert {model: round(cost, 6) for model, cost in found.items() if model in PRINTED} == PRINTED


@pytest.mark.parametrize("path", REAL or [CORPUS / "none"], ids=lambda path: path.name)
def test_what_a_file_cost_is_what_ccusage_says_but_for_its_faults(tmp_path: Path, path: Path) -> None:
    corpus("claude-code")

    cost = sum(ours(path, tmp_path).values())
    theirs = sum(spent([path]).values())
    matter = {fault for fault in FAULTS if abs(sum(spent([path], fault).values()) - theirs) > 1e-9}

    assert sum(spent([path], *FAULTS).values()) == pytest.approx(cost, abs=1e-9)
    assert matter == DIFFERENT.get(path.name, set())
    assert (cost == pytest.approx(theirs, abs=1e-9)) == (not matter)


def test_a_whole_folder_with_its_copies_and_sub_agents_costs_each_answer_once(tmp_path: Path) -> None:
    folder = corpus("claude-code")

    found = ours(folder, tmp_path)

    mended = spent([*folder.rglob("*.jsonl")], *FAULTS)
    # The other models' files were made by hand, and their answers share ids across files.
    for model in (
        "claude-opus-4-1-20250805",
        "claude-opus-4-5-20251101",
        "claude-opus-4-6",
        "claude-sonnet-4-5-20250929",
    ):
        assert found[model] == pytest.approx(mended[model], abs=1e-9)
