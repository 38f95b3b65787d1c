"""A source imported while it grows ends as if it had been imported whole: each word, call, result and token once."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import importers, messages
from sessions_lib.messages import content, usage
from sessions_lib.store.manager import SessionManager
from tests.importers.files import CORPUS, corpus
from tests.importers.test_damage import LAST, SOURCES
from tests.model_server import problems

SMALL = [
    "claude-code/entire-fork-two-answers.jsonl",
    "claude-code/ccviewer-5c0375b4.jsonl",
    "claude-code/ccl-dag-compact-after-rewind.jsonl",
    "codex/vibetracker-2025-09-codex-0.39.jsonl",
    "codex/codemie-rollout-2026-05-11a.jsonl",
    "codex/agtrace-codex-session.jsonl",
    "codex/usage-oracle/s1.jsonl",
    "pi/gen-v3-branches-labels.jsonl",
]


def told(manager: SessionManager) -> dict[str, Any]:
    """What all sessions together say, each message once."""
    once = {m["id"]: m for info in manager.list() for m in manager.open(info.id).messages}
    said = list(once.values())
    answers = "".join(content.text(m) for m in said if m["role"] == "assistant")
    return {
        "prompts": sorted(content.text(m) for m in said if m["role"] == "user"),
        "answers": sorted(answers.replace("\n", "")),
        "calls": sorted(call["id"] for m in said for call in m.get("tool_calls", [])),
        "results": sorted(m["tool_call_id"] for m in said if m["role"] == "tool"),
        "tokens": usage.total(said).total,
        "input": usage.total(said).input,
        "cached": usage.total(said).cached or 0,
    }


def import_at(manager: SessionManager, path: Path, lines: list[bytes], count: int) -> None:
    path.write_bytes(b"".join(lines[:count]))
    os.utime(path, ns=(count * 10**9, count * 10**9))  # the same second, were it not told apart
    list(importers.import_paths(manager, [path]))


def check(folder: Path, lines: list[bytes], stages: list[int]) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / "growing.jsonl"
    whole, grown = SessionManager(folder / "whole"), SessionManager(folder / "-".join(map(str, stages)))
    import_at(whole, path, lines, len(lines))

    for count in [*stages, len(lines)]:
        import_at(grown, path, lines, count)

    assert told(grown) == told(whole), stages
    for info in grown.list():
        request = messages.for_request([*grown.open(info.id).messages, {"role": "user", "content": "?"}])
        assert problems(request) == []
    assert len(grown.list()) == len(whole.list()), stages


@pytest.mark.parametrize("format", ["claude-code", "pi"])
def test_a_source_imported_after_every_line_is_the_source_imported_whole(tmp_path: Path, format: str) -> None:
    lines = [json.dumps(record).encode() + b"\n" for record in [*SOURCES[format], LAST[format]]]

    check(tmp_path, lines, list(range(1, len(lines))))


@pytest.mark.parametrize("name", SMALL if CORPUS.exists() else SMALL[:1])
def test_a_real_source_imported_at_any_stage_ends_as_imported_whole(tmp_path: Path, name: str) -> None:
    lines = corpus(name).read_bytes().splitlines(keepends=True)
    rng = random.Random(name)

    for trial in range(3):
        stages = sorted(rng.sample(range(1, len(lines)), 3))
        check(tmp_path / str(trial), lines, stages)
