"""A folder of sessions: made, found, deleted, restored, purged, and never left."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_lib import SessionManager, names
from sessions_lib.errors import (
    ForkPointForbidden,
    InvalidSessionId,
    SessionError,
    SessionExists,
    SessionLocked,
    SessionNotFound,
)
from tests.record import GULL, LIGHTHOUSES, TALLER, said, write

EVIL = [
    "../outside",
    "..",
    ".",
    "",
    "/etc/passwd",
    "a/b",
    "a\\b",
    "C:\\x",
    "a\0b",
    "~root",
    "a\nb",
    "-rf",
    ".hidden",
    "CON",
    "nul.txt",
    "é",
    "x" * 129,
    "a ",
    "a\u202eb",
]


@pytest.fixture
def manager(tmp_path: Path) -> SessionManager:
    return SessionManager(tmp_path / "store")


def tree(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith(".catalog")
    }


def test_the_folder_is_the_argument_else_the_environment_else_the_seeds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SESSIONS_DIR", raising=False)
    assert SessionManager().folder == tmp_path / ".pi-agent" / "sessions"
    monkeypatch.setenv("SESSIONS_DIR", str(tmp_path / "env"))
    assert SessionManager().folder == tmp_path / "env"
    assert SessionManager(save_dir="~/mine").folder == tmp_path / "mine"
    assert SessionManager(tmp_path / "x").folder == tmp_path / "x"
    assert list(tmp_path.iterdir()) == []


def test_looking_at_a_folder_that_is_not_there_makes_none(manager: SessionManager) -> None:
    assert (manager.list(), manager.tags(), manager.search("x"), manager.trash()) == ([], {}, [], [])
    assert not manager.exists("a")
    assert not manager.folder.exists()


@pytest.mark.parametrize("evil", EVIL)
def test_an_evil_id_is_refused_everywhere_and_nothing_is_touched(
    manager: SessionManager, tmp_path: Path, evil: str
) -> None:
    write(tmp_path / "outside.jsonl", LIGHTHOUSES)
    write(manager.folder / "ok.jsonl", LIGHTHOUSES)
    before = tree(tmp_path)

    for act in (
        lambda: manager.open(evil),
        lambda: manager.open_or_create(evil),
        lambda: manager.create(session_id=evil) if evil else manager.open(evil),
        lambda: manager.fork("ok", evil) if evil else manager.open(evil),
        lambda: manager.delete(evil),
        lambda: manager.resolve(evil),
        lambda: manager.info(evil),
    ):
        with pytest.raises(InvalidSessionId):
            act()
    with pytest.raises(SessionError):
        manager.restore(evil)

    assert not manager.exists(evil)
    assert tree(tmp_path) == before


def test_an_id_is_made_from_the_title_and_made_unique(manager: SessionManager) -> None:
    made = [
        manager.create(title).id
        for title in ("quest-1", "Project review", "Project review", "Sessão de maré", "CON", "北", None, "QUEST-1")
    ]

    assert made[:6] == ["quest-1", "project-review", "project-review-2", "sessao-de-mare", "session-con", "session"]
    assert made[6].startswith("session-")
    assert made[7] == "QUEST-1-2"
    assert len({one.lower() for one in made}) == 8


@given(st.text(max_size=300))
def test_any_title_makes_a_valid_id_and_a_file_name_every_system_takes(title: str) -> None:
    assert names.is_id(names.id_from_title(title))
    name = names.file_name(title, "md")
    assert len(name.encode()) <= 255
    assert name.endswith(".md")
    assert name[0] not in "-. ~"
    assert not set(name) & set('<>:"/\\|?*\0\n')
    assert not names._RESERVED.match(name.removesuffix(".md"))


def test_an_id_asked_for_is_exact_and_never_taken_over(manager: SessionManager) -> None:
    manager.create(session_id="quest-1").append(LIGHTHOUSES)

    for taken in ("quest-1", "QUEST-1"):
        with pytest.raises(SessionExists):
            manager.create(session_id=taken)
    assert manager.open_or_create("quest-1").messages[0]["content"] == LIGHTHOUSES["content"]
    with pytest.raises(SessionNotFound):
        manager.open("quest-2")


def test_a_session_is_found_by_id_by_start_and_by_title(manager: SessionManager) -> None:
    write(manager.folder / "quest-1.jsonl", LIGHTHOUSES)
    write(manager.folder / "quest-10.jsonl", TALLER)
    manager.create("Project review")
    manager.open("quest-10").rename("The big One")

    assert manager.resolve("quest-1") == "quest-1"
    assert manager.resolve("proj") == "project-review"
    assert manager.resolve("the BIG one") == "quest-10"
    assert manager.resolve(str(LIGHTHOUSES["content"])) == "quest-1"
    with pytest.raises(SessionError, match="could be 2 sessions: quest-1, quest-10"):
        manager.resolve("quest")
    with pytest.raises(SessionNotFound):
        manager.resolve("nothing")


def test_foreign_files_are_no_sessions_and_harm_nothing(manager: SessionManager) -> None:
    folder = manager.folder
    write(folder / "ok.jsonl", LIGHTHOUSES)
    write(folder / "ok.jsonl.bak", LIGHTHOUSES)
    write(folder / "ok.jsonl.tmp123", "{")
    (folder / "dir.jsonl").mkdir()
    (folder / ".DS_Store").write_text("x")
    write(folder / "snapshot.jsonl", '{"type":"file-history-snapshot","snapshot":{}}')
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "link.jsonl").symlink_to(folder / "ok.jsonl")
    (folder / b"caf\xff.jsonl".decode("utf-8", "surrogateescape")).write_text("{}")

    rows = {info.id: (info.messages, info.damaged) for info in manager.list()}

    assert rows == {"ok": (1, 0), "snapshot": (0, 1)}
    assert [hit.session for hit in manager.search("north")] == ["ok"]


def test_deleting_is_undone_and_forks_do_not_mind(manager: SessionManager) -> None:
    parent = manager.create("a", tags=["t"])
    parent.extend([LIGHTHOUSES, GULL])
    child = parent.fork("b")
    raw = (manager.folder / "a.jsonl").read_bytes()

    manager.delete("a")

    assert [(info.id, info.parent) for info in manager.list()] == [("b", "a")]
    assert [info.id for info in manager.family("b")] == ["b"]
    assert manager.tags() == {"t": 1}
    assert said(child.messages) == said([LIGHTHOUSES, GULL])
    assert [(entry.session, entry.kind, entry.title) for entry in manager.trash()] == [("a", "deleted", "a")]
    assert said(manager.restore("a").messages) == said([LIGHTHOUSES, GULL])
    assert (manager.folder / "a.jsonl").read_bytes() == raw
    assert manager.open("a").tags == ["t"]
    assert manager.trash() == []


def test_the_id_of_a_deleted_session_is_free_and_then_it_is_not_restored_over(manager: SessionManager) -> None:
    manager.create("a").append(LIGHTHOUSES)
    manager.delete("a")
    manager.create(session_id="a").append(TALLER)

    with pytest.raises(SessionExists):
        manager.restore("a")

    assert said(manager.open("a").messages) == [TALLER["content"]]
    manager.delete("a")
    assert said(manager.restore("a").messages) == [TALLER["content"]]
    assert len(manager.trash()) == 1


def test_a_session_being_written_is_not_deleted(manager: SessionManager) -> None:
    session = manager.create("a")
    with session.hold():
        session.append(LIGHTHOUSES)
        with pytest.raises(SessionLocked):
            manager.delete("a")

    assert said(manager.open("a").messages) == said([LIGHTHOUSES])


def days_ago(days: int) -> str:
    return (datetime.now(UTC) - timedelta(days=days)).isoformat()


def test_retention_goes_by_the_last_message_is_a_dry_run_and_spares_what_is_written(manager: SessionManager) -> None:
    write(manager.folder / "old.jsonl", {**LIGHTHOUSES, "timestamp": days_ago(400)})
    write(manager.folder / "new.jsonl", {**LIGHTHOUSES, "timestamp": days_ago(400)}, {**GULL, "timestamp": days_ago(3)})
    write(manager.folder / "busy.jsonl", {**LIGHTHOUSES, "timestamp": days_ago(400)})
    write(manager.folder / "grown.jsonl", {**LIGHTHOUSES, "timestamp": days_ago(400)})
    write(manager.folder / "timeless.jsonl", LIGHTHOUSES)
    for name in ("new", "timeless"):
        os.utime(manager.folder / f"{name}.jsonl", (1, 1))

    found = manager.purgeable(older_than=timedelta(days=90))

    assert sorted(one.session for one in found) == ["busy", "grown", "old"]
    assert {info.id for info in manager.list()} == {"old", "new", "busy", "grown", "timeless"}
    manager.open("grown").append(TALLER)
    with manager.open("busy").hold():
        done, kept = manager.purge(found)
    assert [one.session for one in done] == ["old"]
    assert len(kept) == 2
    assert any("new messages" in sentence for sentence in kept)
    assert {info.id for info in manager.list()} == {"new", "busy", "grown", "timeless"}
    assert manager.trash() == []


def test_purging_the_trash_deletes_for_good_and_only_that(manager: SessionManager) -> None:
    for name in ("a", "b", "c"):
        manager.create(name).append(LIGHTHOUSES)
    manager.delete("a")
    manager.delete("b")

    done, kept = manager.purge(manager.purgeable("a"))

    assert ([one.session for one in done], kept) == (["a"], [])
    assert [entry.session for entry in manager.trash()] == ["b"]
    manager.purge(manager.purgeable())
    assert manager.trash() == []
    assert [info.id for info in manager.list()] == ["c"]


def test_a_day_is_a_day_of_a_zone(manager: SessionManager) -> None:
    from zoneinfo import ZoneInfo

    write(manager.folder / "a.jsonl", {**LIGHTHOUSES, "timestamp": "2026-03-02T02:30:00Z"})
    write(manager.folder / "b.jsonl", {**LIGHTHOUSES, "timestamp": "2026-03-01T23:30:00-03:00"})

    def on(day: str, zone: str) -> set[str]:
        return {info.id for info in manager.find_by_date(day, ZoneInfo(zone))}

    assert on("2026-03-01", "America/Sao_Paulo") == on("2026-03-02", "UTC") == {"a", "b"}
    assert on("2026-03-02", "America/Sao_Paulo") == on("2026-03-01", "UTC") == set()
    with pytest.raises(SessionError, match="not a day"):
        manager.find_by_date("yesterday")


def test_forks_of_a_session_that_was_deleted_stay_one_family(manager: SessionManager) -> None:
    manager.create(session_id="a").extend([LIGHTHOUSES, GULL])
    for fork, parent in (("b", "a"), ("c", "a"), ("d", "c"), ("e", "b")):
        manager.fork(parent, fork)
    manager.create(session_id="other")

    manager.delete("a")
    manager.delete("c")

    assert [info.id for info in manager.family("e")] == ["b", "e"]
    manager.restore("c")
    assert [[info.id for info in manager.family(one)] for one in "bcde"] == [["b", "e", "c", "d"]] * 4
    assert [info.id for info in manager.family("other")] == ["other"]


def test_a_circle_of_parents_ends(manager: SessionManager) -> None:
    for one, parent in (("a", "b"), ("b", "a")):
        write(manager.folder / f"{one}.jsonl", LIGHTHOUSES)
        (manager.folder / f"{one}.meta.json").write_text(f'{{"forked_from":{{"session":"{parent}","messages":1}}}}')

    assert {info.id for info in manager.family("a")} == {"a", "b"}


def test_the_first_and_the_last_day_of_the_calendar_are_days_like_others(manager: SessionManager) -> None:
    write(manager.folder / "a.jsonl", LIGHTHOUSES)

    found = [
        manager.find_by_date(day, ZoneInfo(z))
        for day in ("0001-01-01", "9999-12-31")
        for z in ("Asia/Tokyo", "America/Sao_Paulo")
    ]

    assert found == [[]] * 4
    assert [manager.find_by_date(day) for day in ("0001-01-01", "9999-12-31")] == [[], []]


def test_half_a_character_in_a_query_finds_nothing_and_breaks_nothing(manager: SessionManager) -> None:
    write(manager.folder / "a.jsonl", LIGHTHOUSES)

    assert manager.search("\ud83d") == []


def test_a_tag_is_one_however_its_accents_are_composed(manager: SessionManager) -> None:
    session = manager.create(session_id="a", tags=["cafe\u0301"])
    session.add_tag("Caf\u00e9")

    assert session.tags == ["cafe\u0301"]
    assert manager.tags() == {"cafe\u0301": 1}
    assert [info.id for info in manager.find_by_tag("CAF\u00c9")] == ["a"]
    session.remove_tag("caf\u00e9")
    assert manager.open("a").tags == []


@pytest.mark.parametrize(("at", "nearest"), [(-1, (0,)), (-7, (0,)), (2, (1,)), (10**9, (1,))])
def test_a_fork_point_outside_the_session_is_refused_with_what_there_is(
    manager: SessionManager, at: int, nearest: tuple[int, ...]
) -> None:
    write(manager.folder / "a.jsonl", LIGHTHOUSES)

    with pytest.raises(ForkPointForbidden, match="its last message is 1") as refused:
        manager.fork("a", "b", at=at)

    assert refused.value.allowed == nearest
    assert not manager.exists("b")


def test_a_title_that_a_saved_and_its_loaded_session_share_means_the_newest(
    tmp_path: Path, manager: SessionManager
) -> None:
    first = manager.create()
    first.append({**LIGHTHOUSES, "timestamp": "2026-03-01T09:00:00Z"})
    first.save(tmp_path / "walk.json")
    again = manager.create()
    again.load(tmp_path / "walk.json")
    again.append({**GULL, "timestamp": "2026-03-01T10:00:00Z"})

    assert manager.resolve("walk") == again.id
    manager.create("walk", session_id="other").append(TALLER)
    with pytest.raises(SessionError, match="could be 3 sessions"):
        manager.resolve("walk")
