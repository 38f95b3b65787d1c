"""The plain scan, and the catalog beside it: every rule here holds for both."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from sessions_lib import SessionManager, query
from sessions_lib.messages.usage import Totals
from sessions_lib.store import tagging
from sessions_lib.store.folder import scan as listing
from sessions_lib.store.folder.index.catalog import Catalog
from sessions_lib.store.records import Hit, SessionInfo
from tests.record import GULL, LIGHTHOUSES, METRES, TALLER, call, result, write

List = Callable[[Path], list[SessionInfo]]
Search = Callable[[Path, str], list[Hit]]


@pytest.fixture(params=["plain scan", "catalog"])
def scan(request: pytest.FixtureRequest) -> List:
    """Lists a folder in either way."""
    return lambda folder: (listing.plain(folder) if request.param == "plain scan" else Catalog(folder)).list()


@pytest.fixture(params=["plain scan", "catalog"])
def search(request: pytest.FixtureRequest) -> Search:
    """Searches a folder in either way."""
    if request.param == "plain scan":
        return lambda folder, asked: listing.plain(folder).search(query.parse(asked))
    return lambda folder, asked: Catalog(folder).search(query.parse(asked))


def ids(rows: list[SessionInfo]) -> list[str]:
    return [row.id for row in rows]


def places(hits: list[Hit]) -> list[tuple[str, int | None]]:
    return [(hit.session, hit.message) for hit in hits]


def test_a_row_says_what_the_files_say(tmp_path: Path, scan: List) -> None:
    write(
        tmp_path / "a.jsonl",
        {**LIGHTHOUSES, "timestamp": "2026-03-01T10:00:00Z"},
        {**call("c1", "c2"), "model": "m-1", "usage": {"prompt_tokens": 10, "completion_tokens": 2}},
        result("c1", is_error=True),
        {**GULL, "model": "m-2", "timestamp": "2026-03-01T10:05:00Z"},
    )
    meta = {"version": 1, "title": " North ", "tags": ["Sea", "sea", ""], "created": "2026-02-28T09:00:00Z"}
    write(tmp_path / "a.meta.json", meta)

    (row,) = scan(tmp_path)

    assert row == SessionInfo(
        id="a",
        title="North",
        tags=("Sea",),
        messages=4,
        turns=1,
        own_messages=4,
        created=datetime(2026, 2, 28, 9, tzinfo=UTC),
        last_active=datetime(2026, 3, 1, 10, 5, tzinfo=UTC),
        models=("m-1", "m-2"),
        tokens=Totals(input=10, output=2, total=12, reported=1, answers=2),
        own_tokens=Totals(input=10, output=2, total=12, reported=1, answers=2),
        tool_calls=2,
        errors=1,
        unanswered=1,
        size_bytes=(tmp_path / "a.jsonl").stat().st_size,
        meta=meta,
        tools=("tide",),
    )


def test_foreign_files_are_no_sessions(tmp_path: Path, scan: List, search: Search) -> None:
    write(tmp_path / "ok.jsonl", LIGHTHOUSES)
    for name in ("ok.jsonl.bak", "ok.jsonl.tmp123", ".DS_Store", ".hidden.jsonl", "con.jsonl", "a b.jsonl", ".jsonl"):
        write(tmp_path / name, LIGHTHOUSES)
    write(tmp_path / "snapshot.jsonl", {"type": "file-history-snapshot", "snapshot": {}})
    (tmp_path / "dir.jsonl").mkdir()
    (tmp_path / "dir.meta.json").mkdir()
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "ok.jsonl")
    (tmp_path / "sub").mkdir()
    write(tmp_path / "sub" / "deep.jsonl", LIGHTHOUSES)
    write(Path(os.fsdecode(bytes(tmp_path) + b"/bad\xff.jsonl")), LIGHTHOUSES)
    os.mkfifo(tmp_path / "pipe.jsonl")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(tmp_path / "s.jsonl"))

        rows = scan(tmp_path)

        assert ids(rows) == ["ok", "snapshot"]
        assert [(row.messages, row.damaged) for row in rows] == [(1, 0), (0, 1)]
        assert places(search(tmp_path, "north")) == [("ok", 0)]


def test_a_linked_metadata_file_is_not_read(tmp_path: Path, scan: List) -> None:
    secret = write(tmp_path / "elsewhere.json", {"title": "secret"})
    folder = tmp_path / "sessions"
    write(folder / "a.jsonl", LIGHTHOUSES)
    (folder / "a.meta.json").symlink_to(secret)

    (row,) = scan(folder)

    assert row.title == "List the lighthouses on the north shore."


def test_a_folder_that_is_not_there_is_empty(tmp_path: Path, scan: List, search: Search) -> None:
    assert scan(tmp_path / "none") == []
    assert search(tmp_path / "none", "x") == []


@pytest.mark.parametrize(
    ("first", "damaged"),
    [('{"role":"user","con', 1), ("", 0), ("\ufeff", 0), ("[]", 1), (b"\xff\xfe", 1), ("\0" * 40, 1)],
)
def test_a_damaged_first_line_hides_nothing(tmp_path: Path, scan: List, first: str | bytes, damaged: int) -> None:
    write(tmp_path / "a.jsonl", first, GULL, TALLER)

    (row,) = scan(tmp_path)

    assert (row.messages, row.damaged, row.title) == (2, damaged, "Which one is taller?")


def test_metadata_never_hides_or_counts_messages(tmp_path: Path, scan: List) -> None:
    write(tmp_path / "torn.jsonl", LIGHTHOUSES, GULL)
    write(tmp_path / "torn.meta.json", '{"title":"Lighthou')
    write(tmp_path / "none.jsonl", LIGHTHOUSES)
    write(tmp_path / "stale.jsonl", LIGHTHOUSES, GULL, TALLER)
    write(tmp_path / "stale.meta.json", {"title": "Old", "message_count": 1, "tags": ["mar"]})
    write(tmp_path / "list.jsonl", LIGHTHOUSES)
    write(tmp_path / "list.meta.json", [])

    rows = {row.id: row for row in scan(tmp_path)}

    assert {name: row.messages for name, row in rows.items()} == {"torn": 2, "none": 1, "stale": 3, "list": 1}
    assert rows["stale"].tags == ("mar",)
    assert rows["torn"].fault == "the metadata is not JSON, perhaps cut off"
    assert rows["list"].fault == "the metadata is JSON, but not an object"
    assert rows["none"].fault is None


def test_a_session_may_be_metadata_alone(tmp_path: Path, scan: List) -> None:
    write(tmp_path / "new.meta.json", {"title": "Plan", "created": "2026-03-01T10:00:00Z"})

    (row,) = scan(tmp_path)

    assert (row.title, row.messages, row.last_active) == ("Plan", 0, datetime(2026, 3, 1, 10, tzinfo=UTC))


def test_order_is_by_last_message_whatever_touched_the_files(tmp_path: Path, scan: List) -> None:
    write(tmp_path / "s1.jsonl", {**LIGHTHOUSES, "timestamp": "2026-03-02T10:00:00Z"})
    write(tmp_path / "s2.jsonl", {**LIGHTHOUSES, "timestamp": "2026-03-01T10:00:00Z"})
    before = scan(tmp_path)
    (tmp_path / "s2.jsonl").touch()
    old = SessionManager(tmp_path).open("s2")
    old.add_tag("x")
    old.rename("New title")

    rows = scan(tmp_path)

    assert ids(before) == ids(rows) == ["s1", "s2"]
    assert rows[1].last_active == datetime(2026, 3, 1, 10, tzinfo=UTC)
    assert (rows[1].title, rows[1].tags) == ("New title", ("x",))


def test_last_activity_follows_what_is_appended(tmp_path: Path, scan: List) -> None:
    write(tmp_path / "a.jsonl", {"role": "user", "content": "q", "timestamp": "2026-03-01T10:00:00Z"})
    write(tmp_path / "a.meta.json", {"created_at": "2026-03-01T10:00:00Z", "updated_at": "2026-03-01T10:00:00Z"})
    SessionManager(tmp_path).open("a").append(
        {"role": "assistant", "content": "r", "timestamp": "2026-03-05T12:00:00Z"}
    )

    (row,) = scan(tmp_path)

    assert row.last_active == datetime(2026, 3, 5, 12, tzinfo=UTC)
    assert row.created == datetime(2026, 3, 1, 10, tzinfo=UTC)


def test_without_times_a_session_is_as_old_as_its_metadata_or_file(tmp_path: Path, scan: List) -> None:
    write(tmp_path / "made.jsonl", LIGHTHOUSES)
    write(tmp_path / "made.meta.json", {"created": "2026-03-01T10:00:00Z"})
    write(tmp_path / "seed.jsonl", LIGHTHOUSES)
    os.utime(tmp_path / "seed.jsonl", (1772355600, 1772355600))

    rows = {row.id: row for row in scan(tmp_path)}

    assert rows["made"].last_active == datetime(2026, 3, 1, 10, tzinfo=UTC)
    assert rows["seed"].last_active == datetime(2026, 3, 1, 9, tzinfo=UTC)
    assert rows["seed"].created is None


def test_a_message_without_a_time_has_that_of_its_turn(tmp_path: Path) -> None:
    write(
        tmp_path / "a.jsonl",
        LIGHTHOUSES,
        {**GULL, "timestamp": "2026-03-01T10:00:00Z"},
        TALLER,
        {**METRES, "timestamp": "2026-03-03T10:00:00Z"},
    )
    kept = Catalog(tmp_path)

    for asked, expected in (("on:2026-03-01 role:user", 0), ("on:2026-03-03 role:user", 2)):
        for hits in (listing.plain(tmp_path).search(query.parse(asked, UTC)), kept.search(query.parse(asked, UTC))):
            assert places(hits) == [("a", expected)]


@pytest.mark.parametrize(
    ("zone", "days"),
    [(ZoneInfo("America/Sao_Paulo"), {1: ["a", "b"], 2: []}), (UTC, {1: [], 2: ["a", "b"]})],
)
def test_days_are_cut_in_the_zone_that_is_asked(tmp_path: Path, zone: ZoneInfo, days: dict[int, list[str]]) -> None:
    write(tmp_path / "a.jsonl", {"role": "user", "content": "late", "timestamp": "2026-03-02T02:30:00Z"})
    write(tmp_path / "b.jsonl", {"role": "user", "content": "late too", "timestamp": "2026-03-01T23:30:00-03:00"})

    for day, expected in days.items():
        assert sorted(ids(listing.plain(tmp_path).find_by_date(date(2026, 3, day), zone))) == expected
        assert sorted(ids(Catalog(tmp_path).find_by_date(date(2026, 3, day), zone))) == expected


def test_a_fork_keeps_the_times_of_what_it_copied(tmp_path: Path) -> None:
    write(
        tmp_path / "a.jsonl",
        {"role": "user", "content": "Plan a walk.", "timestamp": "2026-01-05T09:00:00Z"},
        {"role": "assistant", "content": "Coast or hills?", "timestamp": "2026-01-05T09:00:02Z"},
    )
    manager = SessionManager(tmp_path)
    manager.fork("a", "b")

    rows = {row.id: row for row in manager.find_by_date("2026-01-05", UTC)}

    assert sorted(rows) == ["a", "b"]
    assert rows["b"].last_active == datetime(2026, 1, 5, 9, 0, 2, tzinfo=UTC)
    assert rows["b"].created is not None
    assert rows["b"].created.year >= 2026
    assert rows["b"].created > datetime(2026, 1, 6, tzinfo=UTC)
    assert (rows["b"].parent, rows["b"].inherited, rows["b"].own_messages) == ("a", 2, 0)


def test_a_fork_outlives_its_parent(tmp_path: Path, scan: List) -> None:
    write(tmp_path / "a.jsonl", {"role": "user", "content": "Plan a walk."}, {"role": "assistant", "content": "Coast?"})
    manager = SessionManager(tmp_path)
    manager.fork("a", "b")
    manager.fork("b", "c")
    manager.delete("a")

    rows = {row.id: row for row in scan(tmp_path)}

    assert {name: (row.parent, row.messages) for name, row in rows.items()} == {"b": ("a", 2), "c": ("b", 2)}


def test_sums_know_unknown_from_nothing(tmp_path: Path, scan: List) -> None:
    usages = [
        None,
        {},
        {"prompt_tokens": 10},
        {"prompt_tokens": "12", "completion_tokens": "3"},
        {"prompt_tokens": None, "completion_tokens": 7, "total_tokens": None},
        {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10},
    ]
    answers = [{"role": "assistant", "content": str(n), "usage": usage} for n, usage in enumerate(usages)]
    write(tmp_path / "a.jsonl", {"role": "user", "content": "q"}, {"role": "assistant", "content": "-"}, *answers)
    write(tmp_path / "b.jsonl", {"role": "user", "content": "q"}, {"role": "assistant", "content": "-"})

    rows = {row.id: row for row in scan(tmp_path)}

    assert rows["a"].tokens == Totals(input=27, output=15, total=42, reported=4, answers=7)
    assert rows["b"].tokens == Totals(answers=1)


def test_tags_are_counted_without_regard_to_case(tmp_path: Path) -> None:
    for name, tags in {"a": ["Python"], "b": ["python", "résumé, café #1"], "c": []}.items():
        write(tmp_path / f"{name}.jsonl", LIGHTHOUSES)
        write(tmp_path / f"{name}.meta.json", {"tags": tags})
    manager = SessionManager(tmp_path)

    assert manager.tags() == tagging.tag_counts(listing.plain(tmp_path).list()) == {"Python": 2, "résumé, café #1": 1}
    assert sorted(ids(manager.find_by_tag("PYTHON"))) == ["a", "b"]
    manager.delete("b")
    assert manager.tags() == {"Python": 1}


def test_case_is_ignored_in_what_is_found(tmp_path: Path, search: Search) -> None:
    write(
        tmp_path / "a.jsonl",
        {"role": "user", "content": "Ferry to London"},
        {"role": "assistant", "content": "Die Straße ist lang."},
    )

    assert [places(search(tmp_path, one)) for one in ("london", "LONDON", "London")] == [[("a", 0)]] * 3
    assert places(search(tmp_path, "STRASSE")) == [("a", 1)]


def test_one_message_must_hold_every_word(tmp_path: Path, search: Search) -> None:
    write(tmp_path / "a.jsonl", LIGHTHOUSES, GULL)

    assert places(search(tmp_path, "shore NORTH")) == [("a", 0)]
    assert search(tmp_path, "north gull") == []


def test_blank_finds_nothing_and_one_letter_what_holds_it(tmp_path: Path, search: Search) -> None:
    write(tmp_path / "a.jsonl", {"role": "user", "content": "xyz"})
    write(tmp_path / "b.jsonl", {"role": "user", "content": "abc"})

    assert search(tmp_path, "") == search(tmp_path, "   ") == []
    assert places(search(tmp_path, "x")) == [("a", 0)]


def test_the_oldest_of_many_sessions_is_found(tmp_path: Path, scan: List, search: Search) -> None:
    for i in range(250):
        text, time = ("needle" if i == 0 else "hay") + f" {i}", f"2026-01-01T00:{i // 60:02}:{i % 60:02}Z"
        write(tmp_path / f"s{i:03}.jsonl", {"role": "user", "content": text, "timestamp": time})

    assert places(search(tmp_path, "needle")) == [("s000", 0)]
    assert len(scan(tmp_path)) == 250


def test_a_damaged_file_costs_the_others_nothing(tmp_path: Path, scan: List, search: Search) -> None:
    write(tmp_path / "bad.jsonl", b'\xff\xfe{"role":\n')
    write(tmp_path / "a.jsonl", {"role": "user", "content": "needle"})

    assert places(search(tmp_path, "needle")) == [("a", 0)]
    assert {row.id: row.damaged for row in scan(tmp_path)} == {"a": 0, "bad": 1}
    assert places(search(tmp_path, "has:damage")) == [("bad", None)]


def test_lines_that_are_no_messages_are_reported_and_passed_over(tmp_path: Path, scan: List, search: Search) -> None:
    odd = ["", "   ", "[]", "null", "42", '"text"', "{}", '{"content":"no role"}', '{"role":7,"content":"x"}']
    write(tmp_path / "a.jsonl", LIGHTHOUSES, *odd, GULL)

    (row,) = scan(tmp_path)

    assert (row.messages, row.damaged) == (2, 7)
    assert places(search(tmp_path, "Gull")) == [("a", 1)]


def test_a_very_long_line_hides_nothing_behind_it(tmp_path: Path, scan: List, search: Search) -> None:
    write(tmp_path / "a.jsonl", *({"role": "user", "content": c} for c in ("before", "y" * 15_000_000, "after")))

    assert scan(tmp_path)[0].messages == 3
    assert places(search(tmp_path, "after")) == [("a", 2)]


def test_titles_and_tags_are_searched(tmp_path: Path, search: Search) -> None:
    write(tmp_path / "a.jsonl", {**LIGHTHOUSES, "timestamp": "2026-03-01T10:00:00Z"})
    write(tmp_path / "a.meta.json", {"title": "Quête du Nord", "tags": ["night shift"]})

    assert places(search(tmp_path, "quete")) == [("a", None)]
    assert places(search(tmp_path, '"night shift" nord')) == [("a", None)]
    assert places(search(tmp_path, "quete role:user")) == []
    assert places(search(tmp_path, "quete after:2026-03-01 before:2026-03-03")) == [("a", None)]
    assert places(search(tmp_path, "quete after:2026-03-05")) == []


def test_hits_come_newest_first(tmp_path: Path, search: Search) -> None:
    write(
        tmp_path / "a.jsonl",
        {"role": "user", "content": "x 1", "timestamp": "2026-03-01T10:00:00Z"},
        {"role": "user", "content": "x 2", "timestamp": "2026-03-03T10:00:00Z"},
    )
    write(tmp_path / "b.jsonl", {"role": "user", "content": "x 3", "timestamp": "2026-03-02T10:00:00Z"})

    hits = search(tmp_path, "x")

    assert places(hits) == [("a", 1), ("b", 0), ("a", 0)]
    assert hits[0] == Hit("a", 1, "x 2", "user", datetime(2026, 3, 3, 10, tzinfo=UTC), ((0, 1),))


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("tag:SEA", ["fork", "parent"]),
        ("tag:se*", ["fork", "parent"]),
        ("-tag:sea", ["plain"]),
        ("untagged:", ["plain"]),
        ("is:fork", ["fork"]),
        ("model:M-1", ["fork", "parent"]),
        ("model:m-2", []),
        ("tool:tide", ["fork", "parent"]),
        ("tool:tid", []),
        ("has:error", ["fork", "parent"]),
        ("has:damage", ["plain"]),
        ("verdict:better", ["fork"]),
        ("lighthouses tag:sea is:fork", ["fork"]),
    ],
)
def test_filters_choose_sessions(tmp_path: Path, search: Search, asked: str, expected: list[str]) -> None:
    said = [LIGHTHOUSES, {**call("c"), "model": "m-1"}, result("c", is_error=True), GULL]
    write(tmp_path / "parent.jsonl", *said)
    write(tmp_path / "parent.meta.json", {"tags": ["sea"], "created": "2026-01-01T00:00:00Z"})
    write(tmp_path / "fork.jsonl", *said)
    origin = {"session": "parent", "messages": 4}
    meta = {"tags": ["Sea"], "forked_from": origin, "verdict": "better", "created": "2026-01-02T00:00:00Z"}
    write(tmp_path / "fork.meta.json", meta)
    write(tmp_path / "plain.jsonl", TALLER, "{torn")
    kept = Catalog(tmp_path)

    assert [hit.session for hit in search(tmp_path, asked)] == expected
    assert kept.ids(query.parse(asked)) == expected
    assert kept.page(query.parse(asked)).total == len(expected)


def test_a_session_that_cannot_be_read_says_so(tmp_path: Path, scan: List) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads every file")
    write(tmp_path / "a.jsonl", LIGHTHOUSES)
    (tmp_path / "a.jsonl").chmod(0)

    (row,) = scan(tmp_path)

    assert row.fault == "the messages cannot be read (Permission denied)"


def test_looking_writes_no_session(tmp_path: Path, scan: List, search: Search) -> None:
    write(tmp_path / "a.jsonl", LIGHTHOUSES, '{"role":"user","content":"half')
    write(tmp_path / "a.meta.json", '{"title":"Lighthou')
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.iterdir()}

    scan(tmp_path)
    search(tmp_path, "north")

    after = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.glob("[!.]*")}
    assert after == before
