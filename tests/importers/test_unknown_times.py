"""Files that tell no time: their sessions say "unknown", stand last, and are in no day. The time of the import is none."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import SessionManager, importers, query, stats
from sessions_lib.store.folder import scan
from sessions_lib.store.folder.index.catalog import Catalog
from tests.cli.terminal import Terminal
from tests.importers.files import write_lines

CHAT = [{"role": "user", "content": "Tide?"}, {"role": "assistant", "content": "2.1 m", "model": "m-1"}]
TIMED = [{**message, "timestamp": "2026-03-01T10:00:00Z"} for message in CHAT]


def bring(tmp_path: Path, **files: Any) -> SessionManager:
    for name, said in files.items():
        write_lines(tmp_path / f"{name}.jsonl", *said)
    manager = SessionManager(tmp_path / "sessions")
    paths = [tmp_path / f"{name}.jsonl" for name in files]
    assert all(step.result for step in importers.import_paths(manager, paths))
    return manager


def blocks(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text}]


ANTHROPIC = [
    {"role": "user", "content": blocks("Tide?")},
    {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, *blocks("2.1 m")]},
]
PI = [
    {"type": "session", "version": 3, "id": "p1"},
    {"type": "message", "id": "e1", "parentId": None, "message": {"role": "user", "content": "Tide?"}},
    {"type": "message", "id": "e2", "parentId": "e1", "message": {"role": "assistant", "content": blocks("2.1 m")}},
]
CLAUDE = [
    {"type": "user", "uuid": "u1", "sessionId": "s1", "message": {"role": "user", "content": "Tide?"}},
    {"type": "assistant", "uuid": "a1", "parentUuid": "u1", "message": {"id": "m1", "content": blocks("2.1 m")}},
]
CODEX = [
    {"type": "session_meta", "payload": {"id": "c1"}},
    *(
        {
            "type": "response_item",
            "payload": {"type": "message", "role": role, "content": [{"type": kind, "text": text}]},
        }
        for role, kind, text in (("user", "input_text", "Tide?"), ("assistant", "output_text", "2.1 m"))
    ),
]


@pytest.mark.parametrize("said", [CHAT, ANTHROPIC, PI, CLAUDE, CODEX], ids=["chat", "blocks", "pi", "claude", "codex"])
def test_a_file_without_times_makes_a_session_without_a_time(tmp_path: Path, said: list[dict[str, Any]]) -> None:
    manager = bring(tmp_path, a=said)

    (info,) = manager.list()

    assert (info.created, info.last_active) == (None, None)
    assert [message.get("timestamp") for message in manager.open(info.id).messages] == [None, None]
    assert scan.plain(manager.folder).list() == [info]


def test_sessions_without_a_time_stand_last_and_in_no_day(tmp_path: Path) -> None:
    manager = bring(tmp_path, a=CHAT, b=TIMED)
    found = Catalog(manager.folder)

    assert [info.last_active for info in manager.list()] == [datetime(2026, 3, 1, 10, tzinfo=UTC), None]
    for order in ("last_active", "created"):
        for descending in (True, False):
            assert found.page(query.parse(""), order, descending=descending).rows[-1].last_active is None
    assert manager.find_by_date(date.today().isoformat()) == []
    every = stats.figures(found)
    days = stats.by_day(found, zone=UTC)
    assert (every.messages, every.turns) == (4, 2)
    assert [(row.day, row.messages) for row in days.itertuples()] == [(date(2026, 3, 1), 2)]
    assert [(row.day, row.turns) for row in stats.by_day(found, zone=UTC, split="model").itertuples()] == [
        (date(2026, 3, 1), 0),
        (date(2026, 3, 1), 1),
    ]
    for asked in ("after:1900-01-01", "before:2030-01-01", "on:1970-01-01", "before:1971-01-01"):
        count = stats.figures(found, query.parse(asked)).messages
        assert count == (0 if "197" in asked else 2), asked
        assert {hit.session for hit in found.search(query.parse(f"tide {asked}"))} == {
            hit.session for hit in scan.plain(manager.folder).search(query.parse(f"tide {asked}"))
        }
    assert stats.messages(found)["time"].isna().tolist() == [False, False, True, True]
    assert stats.sessions(found)["last_active"].isna().tolist() == [False, True]


def test_only_sessions_without_a_time_make_no_day_at_all(tmp_path: Path) -> None:
    found = Catalog(bring(tmp_path, a=CHAT).folder)

    assert stats.by_day(found, zone=UTC).empty
    assert stats.by_model(found)["answers"].tolist() == [1]


def test_what_is_said_here_afterwards_has_a_time_and_gives_it_to_the_session(tmp_path: Path) -> None:
    manager = bring(tmp_path, a=CHAT)
    found = Catalog(manager.folder)
    assert found.list()[0].last_active is None
    session = manager.open(manager.list()[0].id)

    session.append({"role": "user", "content": "And now?", "timestamp": "2026-03-02T10:00:00Z"})

    assert found.list()[0].last_active == datetime(2026, 3, 2, 10, tzinfo=UTC)
    assert found.list() == scan.plain(manager.folder).list()
    assert [(row.day, row.messages) for row in stats.by_day(found, zone=UTC).itertuples()] == [(date(2026, 3, 2), 3)]


def test_a_session_that_earlier_versions_dated_by_their_import_has_no_time(tmp_path: Path) -> None:
    manager = bring(tmp_path, a=CHAT)
    session = manager.open(manager.list()[0].id)
    origin = {**session.meta["imported_from"], "at": "2026-11-29T19:40:00.412Z"}
    session.update_meta({"imported_from": origin, "created": "2026-11-29T19:40:00.400Z"})

    assert [(info.created, info.last_active) for info in manager.list()] == [(None, None)]
    assert manager.list() == scan.plain(manager.folder).list()
    session.update_meta({"created": "2026-03-01T10:00:00.000Z"})
    assert manager.list()[0].last_active == datetime(2026, 3, 1, 10, tzinfo=UTC)


def test_a_session_that_was_not_imported_keeps_the_time_of_its_file(tmp_path: Path) -> None:
    write_lines(tmp_path / "sessions" / "a.jsonl", *CHAT)

    assert SessionManager(tmp_path / "sessions").list()[0].last_active is not None


def test_a_repair_makes_up_no_time(tmp_path: Path) -> None:
    manager = bring(tmp_path, a=CHAT)
    (info,) = manager.list()
    manager.open(info.id).update_meta({"id": "other"})

    manager.store.repair(info.id)

    assert manager.list()[0].created is None


def test_the_terminal_says_unknown(terminal: Terminal) -> None:
    write_lines(terminal.work / "a.jsonl", *CHAT)
    terminal.ok("import", "a.jsonl")

    assert "unknown" in terminal.ok("list").splitlines()[1]
    (row,) = terminal.records("list", "--json")
    assert (row["created"], row["last_active"]) == (None, None)
