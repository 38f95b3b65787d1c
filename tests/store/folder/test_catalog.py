"""The catalog is only a cache: whatever happens to it or to the files, it answers as the plain scan does."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import stat
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd
import pytest

from sessions_lib import SessionManager, messages, prices, query, stats
from sessions_lib.messages import model_calls, tool_calls, usage
from sessions_lib.store import family, plain, records, tagging
from sessions_lib.store.folder import message_heads, scan
from sessions_lib.store.folder.index import catalog, file_states, fulltext, schema, search, upkeep
from sessions_lib.store.folder.index.catalog import Catalog
from sessions_lib.store.store import SessionCatalog
from tests.record import GULL, LIGHTHOUSES, METRES, TALLER, call, result, write

WORDS = [
    "tide",
    "Café",
    "Straße",
    "north_shore",
    "数据库迁移",
    "潮",
    "🦊",
    "src/main.py",
    "C++",
    "각가",
    "foo(",
    "がく",
]
NEEDLES = [
    *(
        "tide",
        "ide",
        "CAFE",
        "strasse",
        "north",
        "shore",
        "h_s",
        "数据库迁移",
        "据库",
        "库",
        "潮",
        "🦊",
        "main.py",
        "c/m",
    ),
    *(
        "C++",
        "++",
        "각",
        "가",
        "각가",
        "foo(",
        "(",
        "かく",
        "がく",
        "e",
        '"tide café"',
        "tide café",
        "xyzzy",
        "tool_call",
    ),
    *("role:user tide", "tide after:2026-01-15", "before:2026-01-10", "tool:buy", "has:error e", "is:fork", "tag:a e"),
    *("name_of_tool", "torch 潮", "role:tool on:2026-01-03", "has:damage", "untagged: tide"),
]


def same(kept: Catalog, folder: Path) -> None:
    """Every answer of the catalog equals the plain scan's."""
    truth = scan.plain(folder).list()
    assert kept.list() == truth
    assert kept.list(3) == truth[:3]
    assert kept.tags() == tagging.tag_counts(truth)
    figures = stats.figures(kept)
    counted = replace(figures, first_token_ms=None, money=prices.NOTHING, money_again=prices.NOTHING)
    assert counted == plain_figures(folder)
    said, days = stats.messages(kept), stats.by_day(kept)
    for frame, count in ((said, len(said)), (days, days["messages"].sum())):
        assert count == figures.messages
        assert frame["total"].sum() == (figures.tokens.total or 0)
    assert stats.tools(kept)["calls"].sum() == figures.tool_calls
    by_model, spent = stats.by_model(kept), plain_by_model(folder)
    assert {row.model: None if row.total is pd.NA else row.total for row in by_model.itertuples()} == spent
    same_numbers(kept, folder)
    # Sums of whole sessions, and the same by looking at each message of a range that leaves none out.
    ranged = query.parse("after:1970-01-02 before:2100-01-01")
    assert stats.tools(kept).equals(stats.tools(kept, ranged))
    assert stats.by_tag(kept).equals(stats.by_tag(kept, ranged))
    for zone in (UTC, ZoneInfo("Asia/Kolkata")):
        days = stats.by_day(kept, zone=zone)
        found = said.groupby(said["time"].dt.tz_convert(zone).dt.date)
        assert dict(zip(days["day"], days["messages"], strict=True)) == found["role"].size().to_dict()
        assert list(days["sessions"]) == list(found["session"].nunique())
        assert list(days["total"].fillna(0)) == list(found["total"].sum())
        shorter = query.parse("after:2026-01-05 before:2026-01-15", zone)
        assert stats.by_day(kept, shorter, zone)["messages"].sum() == len(stats.messages(kept, shorter))
    assert replace(stats.figures(kept, ranged), sessions=figures.sessions, forks=figures.forks) == figures
    for words in ("", "after:2026-01-05 before:2026-01-15", "tag:a", "tide is:fork", "model:m"):
        assert numbers_of(kept, query.parse(words, UTC)) == numbers_of(scan.plain(folder), query.parse(words, UTC)), (
            words
        )
    contents = [scan.read(folder, session) for session in scan.session_ids(folder)]
    for asked in map(query.parse, NEEDLES):
        found = records.hits_newest_first([hit for one in contents for hit in plain.hits_in(asked, one)])
        assert kept.search(asked) == found, asked.text
        assert [hit.turn for hit in kept.search(asked)] == [hit.turn for hit in found], asked.text
        assert kept.search(asked, 2) == found[:2], asked.text
        assert sorted(kept.ids(asked)) == sorted({hit.session for hit in found}), asked.text


def numbers_of(kept: SessionCatalog, asked: query.Query) -> dict[str, Any]:
    """All the numbers of a catalog; rows that are in no order as sets."""
    numbers = kept.numbers
    return {
        "figures": numbers.figures(asked),
        "sessions": numbers.sessions(asked),
        "messages": numbers.messages(asked),
        "tools": numbers.tools(asked),
        **{
            f"by day {split}": numbers.by_day(asked, ZoneInfo("Asia/Kolkata"), split)
            for split in (None, "tag", "model")
        },
        **{f"by {split}": set(numbers.by_name(asked, split)) for split in ("tag", "model")},
        "by session": set(numbers.by_session(asked)),
        "context": [numbers.context(row.id) for row in kept.list(3)],
    }


def each_once(folder: Path) -> dict[str, dict[str, Any]]:
    """The messages of a folder by reading everything, each identity once."""
    said: dict[str, dict[str, Any]] = {}
    for session in scan.session_ids(folder):
        found = list(scan.read(folder, session).messages)
        said |= dict(zip(messages.identities(found), found, strict=True))
    return said


def plain_by_model(folder: Path) -> dict[str, int | None]:
    """The tokens of each model that answered or took part, call by call."""
    spent: dict[str, int | None] = {}
    for message in each_once(folder).values():
        if message["role"] == "assistant":
            spent.setdefault(message.get("model") or stats.NO_MODEL)
        for one in model_calls.of(message):
            name = one.model or stats.NO_MODEL
            spent[name] = usage.add(spent.get(name), one.tokens.total)
    return spent


def same_numbers(kept: Catalog, folder: Path) -> None:
    """Every number of the catalog, money too, equals the plain one's."""
    plainly, everything = scan.plain(folder), query.Query()
    numbers, truth = kept.numbers, plainly.numbers
    assert replace(numbers.figures(everything)) == truth.figures(everything)
    for asked in (everything, query.parse("after:2026-01-15"), query.parse("cost:<0.5"), query.parse("tide cost:>0")):
        assert numbers.sessions(asked) == truth.sessions(asked)
        assert numbers.messages(asked) == truth.messages(asked)
        assert sorted(numbers.by_session(asked)) == sorted(truth.by_session(asked))
        for split in ("model", "tag", "tool"):
            assert sorted(numbers.by_name(asked, split)) == sorted(truth.by_name(asked, split))
        assert numbers.by_day(asked, None, "model") == truth.by_day(asked, None, "model")
        assert kept.page(asked, "cost").rows == plainly.page(asked, "cost").rows
    ids = [row.id for row in kept.list()]
    assert kept.costs(ids) == plainly.costs(ids)
    assert all(numbers.context(session) == truth.context(session) for session in ids[:3])


def plain_figures(folder: Path) -> stats.Figures:
    """The figures of the Stats page by reading everything and keeping each identity once; no first token."""
    said, rows = each_once(folder), scan.plain(folder).list()
    contents = [scan.read(folder, session) for session in scan.session_ids(folder)]
    stands = Counter(identity for one in contents for identity in messages.identities(list(one.messages)))
    again = [
        (count - 1) * total
        for identity, count in stands.items()
        if count > 1 and said[identity]["role"] == "assistant"
        if (total := usage.total([said[identity]]).total) is not None
    ]
    results = [message for message in said.values() if message["role"] == "tool"]
    return stats.Figures(
        sessions=len(rows),
        forks=sum(row.parent is not None for row in rows),
        messages=len(said),
        turns=messages.turn_count(said.values()),
        tokens=usage.total(said.values()),
        sent_again=sum(again) if again else None,
        tool_calls=sum(len(tool_calls.calls_of(message)) for message in said.values()),
        tool_results=len(results),
        errors=sum(bool(message.get("is_error")) for message in results),
        first_token_ms=None,
    )


class Story:
    """Random things that happen to a folder, the same for the same seed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.random, self.count = folder, random.Random(seed), 0
        folder.mkdir(exist_ok=True)

    def message(self) -> dict[str, Any]:
        r = self.random
        self.count += 1
        text = " ".join(r.choices(WORDS, k=r.randint(1, 5))) + r.choice(["", "\n", '"', "\\", "e\u0301"])
        made: dict[str, Any] = {"role": r.choice(["user", "assistant", "tool"]), "content": text}
        if made["role"] == "assistant":
            made["model"] = r.choice(["m-1", "claude-sonnet-4-6", "gpt-5", "", None])
            sent = r.choice([3, 70, 201_000])
            details = r.choice([{}, {"cached_tokens": 2, "cache_write_tokens": 40, "cache_write_1h_tokens": 10}])
            spent = {"prompt_tokens": sent, "completion_tokens": 1, "prompt_tokens_details": details}
            spent |= r.choice([{}, {}, {"service_tier": "priority"}, {"web_searches": 1}])
            several = [{**spent, "model": name} for name in r.choices(["gpt-5", "m-3", ""], k=r.randint(0, 3))]
            if r.random() < 0.2:
                made["base_url"] = r.choice(["http://127.0.0.1:1234/v1", "https://api.openai.com/v1"])
            made["usage"] = r.choice([None, {}, spent, {**spent, "model_calls": several}])
            if r.random() < 0.4:
                name = r.choice(["buy", "name_of_tool"])
                made |= call(*r.choices(["c1", "c2", "c3"], k=2), name=name, arguments='{"item":"torch 潮"}')
        if made["role"] == "tool":
            made |= result(r.choice(["c1", "c2", "c3"]), text, is_error=r.random() < 0.3)
        if r.random() < 0.8:
            made["timestamp"] = f"2026-01-{r.randint(1, 28):02}T{r.randint(0, 23):02}:00:00Z"
        if r.random() < 0.8:
            made["id"] = f"msg_{self.count}"
        return made

    def step(self) -> None:
        r = self.random
        files = sorted(self.folder.glob("*.jsonl"))
        kinds = ["new", "append", "append", "append", "torn", "meta", "fork", "delete", "rewrite", "glue", "copy"]
        kind = r.choice(kinds) if files else "new"
        path = r.choice(files) if files else self.folder / "none"
        if kind == "new":
            path = self.folder / f"s{self.count}.jsonl"
            write(path, *(self.message() for _ in range(r.randint(0, 6))))
        elif kind == "append":
            raw = b"".join(json.dumps(self.message()).encode() + b"\n" for _ in range(r.randint(1, 3)))
            broken = b"" if path.read_bytes().endswith(b"\n") or not path.stat().st_size else b"\n"
            path.write_bytes(path.read_bytes() + broken + raw)
        elif kind == "torn":
            with path.open("ab") as file:
                file.write(r.choice([b'{"role":"user","con', json.dumps(self.message()).encode(), b"nonsense\n"]))
        elif kind == "meta":
            meta = {"tags": r.sample(["a", "B", "é"], r.randint(0, 2)), "title": r.choice(["Tide 潮", None, "e"])}
            meta |= r.choice(
                [{}, {"base_url": "http://localhost:1/v1"}, {"base_url": "http://[::1]/", "model": "gpt-5"}]
            )
            write(path.with_name(f"{path.stem}.meta.json"), r.choice([meta, meta, "{torn"]))
        elif kind == "fork":
            lines = path.read_bytes().splitlines(keepends=True)
            at = r.randint(0, len(lines))
            self.count += 1
            (self.folder / f"f{self.count}.jsonl").write_bytes(b"".join(lines[:at]))
            origin = {"session": path.stem, "messages": r.choice([at, at, 99])}
            write(self.folder / f"f{self.count}.meta.json", {"forked_from": origin})
        elif kind == "delete":
            path.unlink()
            if r.random() < 0.5:
                path.with_name(f"{path.stem}.meta.json").unlink(missing_ok=True)
        elif kind == "rewrite":
            lines = path.read_bytes().splitlines(keepends=True)
            path.write_bytes(b"".join([*lines[: len(lines) // 2], json.dumps(self.message()).encode() + b"\n"]))
        elif kind == "glue":
            with path.open("ab") as file:
                file.write(json.dumps(self.message()).encode() + json.dumps(self.message()).encode() + b"\n")
        else:
            self.count += 1
            (self.folder / f"k{self.count}.jsonl").write_bytes(path.read_bytes())


@pytest.mark.parametrize("batch", [64, 1])
@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_to_the_files_the_answers_are_those_of_the_plain_scan(
    tmp_path: Path, seed: int, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "BATCH", batch)  # more changes than a batch take the way of a large folder
    story = Story(tmp_path / "sessions", seed)
    kept = Catalog(story.folder)
    for step in range(40):
        story.step()
        if step % 5 == 4:
            same(kept, story.folder)
        if step == 20:
            kept = Catalog(story.folder)

    assert not kept.is_in_memory
    same(Catalog(story.folder), story.folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder after a few things have happened to it."""
    story = Story(tmp_path / "sessions", 99)
    for _ in range(30):
        story.step()
    return story.folder


def test_a_large_index_answers_as_a_small_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fulltext, "SMALL_BYTES", 0)
    monkeypatch.setattr(fulltext, "BATCH_BYTES", 200)
    kept = Catalog(folder)

    kept.index()

    assert kept.unindexed_bytes() == 0
    same(kept, folder)


def test_the_newest_of_very_many_hits_are_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "FREQUENT", 0)

    same(Catalog(folder), folder)


def test_more_candidates_than_a_statement_takes_are_all_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MAX_VALUES", 2)

    same(Catalog(folder), folder)


def test_a_half_built_index_answers_as_a_whole_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fulltext, "SMALL_BYTES", 0)
    monkeypatch.setattr(fulltext, "BATCH_BYTES", 200)
    kept = Catalog(folder)
    kept.ask(lambda db: fulltext.index(db, folder, seconds=0.0))
    monkeypatch.setattr(fulltext, "index", lambda *_, **__: None)

    assert kept.unindexed_bytes() > 0
    same(kept, folder)


def test_an_index_that_is_mostly_dead_is_made_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fulltext, "REBUILD_FROM_DEAD", 1)
    kept = Catalog(folder)
    kept.search(query.parse("tide"))
    for path in folder.glob("*.jsonl"):
        path.write_bytes(path.read_bytes().replace(b"tide", b"ebb"))

    same(kept, folder)

    rows = kept.ask(lambda db: db.execute("SELECT value FROM facts WHERE name='dead_rows'").fetchone())
    assert rows == (0,)


SHARED_LOCK = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)  # where SQLite holds what it shares
        print("free")
    except OSError:
        print("held")
"""


def test_a_second_catalog_of_a_process_leaves_the_first_its_locks(folder: Path) -> None:
    first, second = Catalog(folder), Catalog(folder)
    first.list()

    second.list()

    asked = [sys.executable, "-c", SHARED_LOCK, str(folder / ".catalog.sqlite")]
    assert subprocess.run(asked, capture_output=True, text=True, check=True).stdout == "held\n"
    first.close()
    second.close()


def test_a_catalog_that_lost_its_facts_is_made_anew(folder: Path) -> None:
    kept = Catalog(folder)
    truth = kept.list()
    kept.ask(lambda db: db.execute("DELETE FROM facts"))

    assert kept.list() == truth
    kept.close()


def test_reopening_reads_no_session_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "SNAPSHOT_AFTER", 1)
    truth = Catalog(folder).list()
    read: list[str] = []
    update = upkeep.catalog_rows.update
    monkeypatch.setattr(
        upkeep.catalog_rows,
        "update",
        lambda db, home, session, n, **how: (read.append(session), update(db, home, session, n, **how)),
    )

    assert Catalog(folder).list() == truth
    assert read == []

    write(folder / "new.jsonl", LIGHTHOUSES)
    assert len(Catalog(folder).list()) == len(truth) + 1
    assert read == ["new"]


def test_a_grown_file_is_read_from_where_the_last_reading_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a.jsonl", LIGHTHOUSES, GULL)
    kept = Catalog(tmp_path)
    kept.refresh()
    size = (tmp_path / "a.jsonl").stat().st_size
    starts: list[int] = []
    read = message_heads.read
    monkeypatch.setattr(
        message_heads, "read", lambda path, start=0, *rest: (starts.append(start), read(path, start, *rest))[1]
    )

    SessionManager(tmp_path).open("a").append(TALLER)

    assert kept.info("a").messages == 3
    assert starts == [size]


DAMAGE = {
    "deleted": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "no database": lambda path: path.write_bytes(b"This is no database. " * 500),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "of a newer version": lambda path: pragma(path, "PRAGMA user_version=99"),
    "without a table": lambda path: pragma(path, "DROP TABLE names"),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}


def pragma(path: Path, statement: str) -> None:
    with sqlite3.connect(path) as db:
        db.execute(statement)
    db.close()


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("is_open", [True, False])
def test_a_damaged_catalog_costs_no_answer(folder: Path, damage: str, is_open: bool) -> None:
    kept = Catalog(folder)
    same(kept, folder)
    if not is_open:
        kept.close()

    DAMAGE[damage](folder / ".catalog.sqlite")

    same(kept, folder)
    same(Catalog(folder), folder)


def test_pages_of_garbage_cost_no_answer(folder: Path) -> None:
    kept = Catalog(folder)
    kept.search(query.parse("tide"))
    kept.close()
    path = folder / ".catalog.sqlite"
    raw = bytearray(path.read_bytes())
    for start in range(4096, len(raw), 4096):
        raw[start : start + 200] = random.Random(start).randbytes(200)
    path.write_bytes(raw)

    same(Catalog(folder), folder)


@pytest.mark.parametrize("name", [".catalog.sqlite", ".catalog.sqlite-wal", ".catalog.sqlite-shm"])
def test_a_linked_catalog_is_never_followed(folder: Path, tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"precious")
    (folder / name).symlink_to(outside)

    same(Catalog(folder), folder)

    assert outside.read_bytes() == b"precious"
    assert (folder / name).is_symlink()


def test_the_catalog_is_private_whatever_the_umask(folder: Path) -> None:
    write(folder / ".catalog.sqlite", "")
    (folder / ".catalog.sqlite").write_bytes(b"")
    (folder / ".catalog.sqlite").chmod(0o644)
    before = os.umask(0)
    try:
        kept = Catalog(folder)
        kept.search(query.parse("tide"))
    finally:
        os.umask(before)

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.glob(".catalog.sqlite*")}
    assert modes == {".catalog.sqlite": 0o600, ".catalog.sqlite-wal": 0o600, ".catalog.sqlite-shm": 0o600}


def test_a_folder_that_cannot_be_written_is_listed_and_searched(folder: Path) -> None:
    code = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from sessions_lib import query\nfrom sessions_lib.store.folder import scan as listing\n"
        "from sessions_lib.store.folder.index.catalog import Catalog\n"
        "os.chdir(sys.argv[1])\n"
        "if os.geteuid() == 0: os.setgid(65534), os.setuid(65534)\n"
        "folder = Path('.'); kept = Catalog(folder)\n"
        "assert kept.list() == listing.plain(folder).list() and kept.is_in_memory\n"
        "asked = query.parse('tide')\n"
        "assert kept.search(asked) == listing.plain(folder).search(asked) != []\n"
    )
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)

    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert not list(folder.glob(".catalog*"))


def test_a_locked_catalog_is_done_without(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "WAIT_MS", 50)
    Catalog(folder).refresh()
    other = sqlite3.connect(folder / ".catalog.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    write(folder / "new.jsonl", LIGHTHOUSES)
    kept = Catalog(folder)

    same(kept, folder)

    assert kept.is_in_memory
    other.execute("ROLLBACK")
    same(Catalog(folder), folder)
    other.close()


def test_two_processes_refresh_at_once(folder: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom sessions_lib import query\nfrom sessions_lib.store.folder import scan as listing\n"
        "from sessions_lib.store.folder.index.catalog import Catalog\n"
        "folder = Path(sys.argv[1]); kept = Catalog(folder)\n"
        "for n in range(15):\n"
        '    (folder / f\'{sys.argv[2]}{n}.jsonl\').write_text(\'{"role":"user","content":"tide"}\\n\')\n'
        "    kept.list(); kept.search(query.parse('tide'))\n"
    )
    children = [subprocess.Popen([sys.executable, "-c", code, str(folder), name]) for name in ("p", "q", "r")]

    assert [child.wait() for child in children] == [0, 0, 0]

    same(Catalog(folder), folder)


def test_threads_share_one_catalog(folder: Path) -> None:
    kept, failed = catalog.of(folder), []

    def look() -> None:
        try:
            for _ in range(5):
                kept.list()
                kept.search(query.parse("tide"))
                stats.figures(kept)
        except Exception as error:  # noqa: BLE001  (told below)
            failed.append(error)

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(5):
        write(folder / f"t{number}.jsonl", TALLER)
    for thread in threads:
        thread.join()

    assert failed == []
    assert catalog.of(folder) is kept
    same(kept, folder)


def test_a_folder_made_later_is_noticed(tmp_path: Path) -> None:
    kept = Catalog(tmp_path / "later")
    assert kept.list() == []
    write(tmp_path / "later" / "a.jsonl", LIGHTHOUSES)

    assert [row.id for row in kept.list()] == ["a"]
    assert not kept.is_in_memory


def test_what_is_purged_leaves_no_word_behind(tmp_path: Path) -> None:
    manager = SessionManager(tmp_path)
    manager.create("one", session_id="one").append({"role": "user", "content": "unspeakablesecret"})
    manager.create("two", session_id="two").append(LIGHTHOUSES)
    assert len(manager.search("unspeakablesecret")) == 1

    manager.delete("one")
    manager.purge(manager.purgeable("one"))

    assert manager.search("unspeakablesecret") == []
    assert [info.id for info in manager.list()] == ["two"]
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"unspeakables" in path.read_bytes()]


def test_a_fork_chain_counts_every_message_once(tmp_path: Path) -> None:
    write(
        tmp_path / "a.jsonl",
        {"role": "user", "content": "q1"},
        {"role": "assistant", "content": "r1", "usage": {"prompt_tokens": 60, "completion_tokens": 40}},
    )
    manager = SessionManager(tmp_path)
    manager.fork("a", "b").extend(
        [{"role": "user", "content": "q2"}, {"role": "assistant", "content": "r2", "usage": {"total_tokens": 50}}]
    )
    manager.fork("b", "c")

    totals = stats.figures(manager.catalog)

    assert (totals.tokens.total, totals.sent_again, totals.turns, totals.messages) == (150, 250, 2, 4)
    assert {row.id: (row.tokens.total, row.own_tokens.total) for row in manager.list()} == {
        "a": (100, 100),
        "b": (150, 50),
        "c": (150, 0),
    }
    manager.delete("a")
    manager.delete("b")
    assert stats.figures(manager.catalog).tokens.total == 150


def names_of(rows: list[Any]) -> list[str]:
    return [row.id for row in rows]


def test_a_page_is_one_piece_of_an_order(tmp_path: Path) -> None:
    for number in range(7):
        time = f"2026-01-0{number + 1}T00:00:00Z"
        write(tmp_path / f"s{number}.jsonl", *[{**LIGHTHOUSES, "timestamp": time}] * (7 - number))
    kept = Catalog(tmp_path)

    newest = kept.page(query.parse(""), limit=3)
    longest = kept.page(query.parse("lighthouses"), "messages", limit=2, offset=1)
    shortest = kept.page(query.parse("before:2026-01-03", UTC), "messages", descending=False)

    assert (names_of(newest.rows), newest.total) == (["s6", "s5", "s4"], 7)
    assert (names_of(longest.rows), longest.total) == (["s1", "s2"], 7)
    assert (names_of(shortest.rows), shortest.total) == (["s1", "s0"], 2)


@pytest.fixture
def kin(tmp_path: Path) -> Catalog:
    """A family of four, a stranger, and a fork of a session that is gone."""
    parents = {"a": None, "b": "a", "c": "b", "d": "a", "x": None, "o": "gone"}
    for number, (name, parent) in enumerate(parents.items()):
        time = f"2026-01-0{number + 1}T00:00:00Z"
        write(tmp_path / f"{name}.jsonl", {**METRES, "timestamp": time})
        if parent:
            write(tmp_path / f"{name}.meta.json", {"forked_from": {"session": parent, "messages": 0}})
    return Catalog(tmp_path)


def test_a_page_by_family_puts_forks_under_their_parents(kin: Catalog) -> None:
    page = kin.page(query.parse(""), "family")

    assert list(zip(names_of(page.rows), page.depths, strict=True)) == [
        ("o", 0),
        ("x", 0),
        ("a", 0),
        ("d", 1),
        ("b", 1),
        ("c", 2),
    ]
    assert names_of(kin.page(query.parse(""), "family", offset=3, limit=2).rows) == ["d", "b"]


def test_parents_in_a_circle_end(tmp_path: Path) -> None:
    order = list(family.tree(["a", "b", "c"], [("a", "b"), ("b", "a"), ("c", "c")]))

    assert sorted(session for session, _ in order) == ["a", "b", "c"]


def test_file_states_come_back_as_they_were_stored() -> None:
    files = {"a.jsonl": (1, -5, (1 << 63) - 1), "b.meta.json": (0, 10**18, 7)}

    assert file_states.unpack(file_states.pack(3, files)) == (3, files)
    assert file_states.unpack(file_states.pack(0, {})) == (0, {})
    assert file_states.unpack(b"") == (0, {})


def test_a_session_that_was_answered_nothing_spent_nothing_and_stands_before_the_unknown_ones(tmp_path: Path) -> None:
    write(tmp_path / "asked.jsonl", {"role": "user", "content": "q"})
    write(tmp_path / "told.jsonl", {"role": "assistant", "content": "r", "usage": {"total_tokens": 5}})
    write(tmp_path / "unknown.jsonl", {"role": "assistant", "content": "r"})
    kept = Catalog(tmp_path)

    page = kept.page(query.parse(""), "own_tokens")

    assert [(row.id, row.own_tokens.total) for row in page.rows] == [("told", 5), ("asked", 0), ("unknown", None)]


def test_a_session_that_is_gone_before_it_is_indexed_stops_no_index(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / f"{name}.jsonl", LIGHTHOUSES)
    kept = Catalog(tmp_path)
    with kept.at_one_moment():
        (tmp_path / "a.jsonl").unlink()
        kept.ask(lambda db: fulltext.index(db, tmp_path, seconds=0.2))

    assert [hit.session for hit in kept.search(query.parse("lighthouses"))] == ["b"]


@pytest.mark.parametrize("small_bytes", [4_000_000, 0], ids=["few", "many"])
def test_a_file_that_cannot_be_read_for_a_moment_is_found_afterwards(
    tmp_path: Path, small_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fulltext, "SMALL_BYTES", small_bytes)
    for name in ("a", "b"):
        write(tmp_path / f"{name}.jsonl", LIGHTHOUSES)
    kept = Catalog(tmp_path)
    kept.refresh()
    hidden = tmp_path / "hidden"
    with kept.at_one_moment():
        (tmp_path / "a.jsonl").rename(hidden)
        kept.ask(lambda db: fulltext.index(db, tmp_path, seconds=0.2))
        hidden.rename(tmp_path / "a.jsonl")

    assert sorted(hit.session for hit in kept.search(query.parse("lighthouses"))) == ["a", "b"]


def test_a_stored_prompt_without_a_time_takes_that_of_its_late_answer_whatever_follows(tmp_path: Path) -> None:
    prompt, answer = {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}
    write(tmp_path / "s.jsonl", {**prompt, "timestamp": "2026-01-01T00:00:00Z"}, prompt)
    kept = Catalog(tmp_path)
    kept.list()
    with (tmp_path / "s.jsonl").open("a") as file:
        file.write(json.dumps({**answer, "timestamp": "2026-01-02T00:00:00Z"}) + "\n")
        file.write(json.dumps({**prompt, "timestamp": "2026-01-03T00:00:00Z"}) + "\n")

    days = [day for day, *_ in stats.by_day(kept, zone=UTC)[["day", "messages"]].itertuples(index=False)]

    assert stats.by_day(kept, zone=UTC)["messages"].tolist() == [1, 2, 1]
    assert len(days) == 3


def test_copies_count_once_at_every_moment_of_a_first_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "BATCH", 1)
    monkeypatch.setattr(upkeep, "FIRST_BATCH", 1)
    for name in "abc":
        write(tmp_path / f"{name}.jsonl", LIGHTHOUSES, GULL)
    counted: list[int] = []

    def look(*_: int) -> None:
        with sqlite3.connect(tmp_path / schema.NAME) as db:
            counted.append(db.execute("SELECT total(messages) FROM activity WHERE counts").fetchone()[0])

    Catalog(tmp_path).refresh(look)

    assert counted == [2, 2, 2]


def test_where_a_fork_left_its_parent_is_said_in_turns_however_the_session_grew(tmp_path: Path) -> None:
    said = [
        {"role": "system", "content": "s"},
        LIGHTHOUSES,
        GULL,
        TALLER,
        call("c"),
        result("c"),
        METRES,
        {"role": "weird", "content": "x"},
        LIGHTHOUSES,
    ]
    places = []
    for inherited in range(len(said) + 2):
        session, lines = f"s{inherited}", []
        meta = {"forked_from": {"session": "gone", "messages": inherited}}
        (tmp_path / f"{session}.meta.json").write_text(json.dumps(meta))
        kept = Catalog(tmp_path)
        for message in said:
            lines.append(message)
            write(tmp_path / f"{session}.jsonl", *lines)
            assert [info.place for info in kept.list()] == [info.place for info in scan.plain(tmp_path).list()]
        places.append(scan.read(tmp_path, session).info.place)

    assert places == [
        "before turn 1",
        "before turn 1",
        "inside turn 1",
        "after turn 1",
        "inside turn 2",
        "inside turn 2",
        "inside turn 2",
        "inside turn 2",
        "after turn 2",
        "inside turn 3",
        "inside turn 3",
    ]


def test_other_settings_price_again_only_the_answers_that_do_not_say_where_they_came_from(tmp_path: Path) -> None:
    told = {
        "role": "assistant",
        "content": "a",
        "model": "gpt-5",
        "usage": {"prompt_tokens": 8_000, "completion_tokens": 0},
    }
    write(tmp_path / "a.jsonl", told)
    write(tmp_path / "b.jsonl", {**told, "base_url": "https://api.openai.com/v1"})
    kept = Catalog(tmp_path)
    kept.index()
    costs = [kept.costs(["a", "b"])]

    for name in "ab":
        write(tmp_path / f"{name}.meta.json", {"base_url": "http://localhost:1/v1", "model": "gpt-5"})
    costs.append(kept.costs(["a", "b"]))

    assert [{name: own.cost for name, (own, _) in found.items()} for found in costs] == [
        {"a": 0.01, "b": 0.01},
        {"a": None, "b": 0.01},
    ]
    assert kept.ask(lambda db: db.execute("SELECT indexed FROM sessions ORDER BY id").fetchall()) == [(0,), (1,)]
