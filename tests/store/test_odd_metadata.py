"""What changes messages and metadata says that the metadata cannot be written before it changes anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import Session, SessionManager, importers
from sessions_lib.errors import InvalidMessage, NewerVersion, SessionError
from sessions_lib.store import merge_sessions
from tests.importers.files import codex, item_text, write_lines
from tests.record import GULL, LIGHTHOUSES

NEWER: dict[str, Any] = {"version": 2, "id": "a"}
ODD: list[Any] = [5, "b", {"b": 1}, ["b", None], [["b"]], [{"b": 1}]]


def files(folder: Path) -> dict[str, bytes]:
    """What every file of ``folder`` holds, but for locks and the catalog."""
    kept = (
        p for p in folder.rglob("*") if p.is_file() and ".locks" not in p.parts and not p.name.startswith(".catalog")
    )
    return {str(path.relative_to(folder)): path.read_bytes() for path in kept}


def two(folder: Path, meta: dict[str, Any]) -> tuple[Session, Session]:
    manager = SessionManager(folder)
    manager.create("a").append(LIGHTHOUSES)
    manager.create("b").append(GULL)
    (folder / "a.meta.json").write_text(json.dumps({"version": 1, "id": "a", **meta}), encoding="utf-8")
    return manager.open("a"), manager.open("b")


def test_a_merge_into_metadata_of_a_newer_version_changes_nothing(tmp_path: Path) -> None:
    mine, theirs = two(tmp_path, NEWER)
    before = files(tmp_path)

    with pytest.raises(NewerVersion):
        mine.merge(theirs)

    assert files(tmp_path) == before
    assert mine.messages == SessionManager(tmp_path).open("a").messages


@pytest.mark.parametrize("odd", ODD)
def test_a_merge_into_odd_metadata_changes_nothing(tmp_path: Path, odd: Any) -> None:
    mine, theirs = two(tmp_path, {"merged_from": odd})
    before = files(tmp_path)

    with pytest.raises(SessionError, match="merged_from is no list of session ids"):
        mine.merge(theirs)

    assert files(tmp_path) == before


@pytest.mark.parametrize("odd", ODD)
def test_a_merge_in_memory_with_odd_metadata_changes_nothing(odd: Any) -> None:
    mine, theirs = Session(name="a"), Session(name="b")
    mine.append(LIGHTHOUSES)
    theirs.append(GULL)
    mine.update_meta({"merged_from": odd})

    with pytest.raises(SessionError, match="merged_from is no list"):
        mine.merge(theirs)

    assert [message["role"] for message in mine.messages] == ["user"]


@pytest.mark.parametrize("told", [None, [], ["c", "b"]])
def test_a_merge_notes_its_source_once(tmp_path: Path, told: Any) -> None:
    mine, theirs = two(tmp_path, {"merged_from": told})

    mine.merge(theirs)
    mine.merge(theirs)

    assert mine.meta["merged_from"] == ["c", "b"] if told else ["b"]
    assert len(mine.messages) == 2


def test_loading_into_metadata_of_a_newer_version_changes_nothing(tmp_path: Path) -> None:
    manager = SessionManager(tmp_path)
    session = manager.create("a")
    (tmp_path / "a.meta.json").write_text(json.dumps(NEWER), encoding="utf-8")
    source = tmp_path / "other" / "s.jsonl"
    write_lines(source, LIGHTHOUSES)
    before = files(tmp_path)

    with pytest.raises(NewerVersion):
        session.load(source)

    assert files(tmp_path) == before


def test_a_source_that_grew_changes_nothing_where_the_metadata_is_of_a_newer_version(tmp_path: Path) -> None:
    manager = SessionManager(tmp_path / "sessions")
    records = [codex("session_meta", id="t1"), item_text("user", "q")]
    path = write_lines(tmp_path / "r.jsonl", *records)
    list(importers.import_paths(manager, [path]))
    (session,) = manager.list()
    meta = tmp_path / "sessions" / f"{session.id}.meta.json"
    meta.write_text(json.dumps({**json.loads(meta.read_text()), "version": 2}), encoding="utf-8")
    before = files(tmp_path / "sessions")

    (same,) = importers.import_paths(manager, [write_lines(path, *records)])
    (grown,) = importers.import_paths(manager, [write_lines(path, *records, item_text("assistant", "r"))])

    assert same.error is None
    assert isinstance(grown.error, NewerVersion)
    assert files(tmp_path / "sessions") == before


def test_a_merge_that_cannot_be_stored_makes_no_session(tmp_path: Path) -> None:
    two(tmp_path, {})
    deep: Any = "x"
    for _ in range(300):
        deep = [deep]
    write_lines(tmp_path / "b.jsonl", {**GULL, "content": deep})
    manager = SessionManager(tmp_path)
    plan = merge_sessions.preview(manager, "a", "b")
    before = files(tmp_path)

    with pytest.raises(InvalidMessage, match="nested more than 200"):
        merge_sessions.join(manager, plan)

    assert files(tmp_path) == before
