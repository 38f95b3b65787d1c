"""A folder of many sessions: list, refresh, search, total. Every fast answer is first compared with the plain scan.

Bars are those of 10,000 sessions; on a small folder fixed costs rule and the ratios say little. ``scan`` below is the
limit of any honest listing: ``scandir`` and ``stat`` of every file.
"""

from __future__ import annotations

import itertools
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import msgspec

from sessions_lib import SessionManager, query, stats
from sessions_lib.messages import content
from sessions_lib.query import Query
from sessions_lib.store import plain as plain_answers
from sessions_lib.store import records
from sessions_lib.store.folder import jsonl
from sessions_lib.store.folder import scan as listing
from sessions_lib.store.folder.index import fulltext
from sessions_lib.store.folder.index.catalog import Catalog
from sessions_lib.store.records import Hit
from tests.benchmarks import corpus
from tests.benchmarks.harness import Raced, Row, installed, milliseconds, processor, race, setting

WORD = "zephyrquartz"
INSIDE = [*corpus.NEEDLES, "phyrquar", "据库", "库", "迁移", "🦊", "regional", "SAY", "farol", "[a-z"]
ASKED = [query.Query(phrases=(query.fold(needle),)) for needle in (*INSIDE, *corpus.TRAPS)]
ASKED += map(
    query.parse,
    ("tag:python checkpoint drift", "role:tool zephyrquartz", "is:fork", "has:error raposa", "on:2026-03-05"),
)


def scan() -> int:
    """Names, sizes and times of everything in the folder."""
    with os.scandir(setting.folder) as entries:
        return sum(entry.stat(follow_symlinks=False).st_size for entry in entries)


def plain(folder: Path) -> tuple[list[records.SessionInfo], list[list[Hit]]]:
    """The rows, and the hits of every query of ``ASKED``, by reading each file once."""
    rows, found = [], [list[Hit]() for _ in ASKED]
    for session in listing.session_ids(folder):
        contents = listing.read(folder, session)
        rows.append(contents.info)
        texts = [plain_answers.title_text(contents.info), *map(content.searchable, contents.messages)]
        folded = query.fold("\n".join(texts))
        for hits, asked in zip(found, ASKED, strict=True):
            # Only what cannot match is left out here: a session that lacks one of the words.
            if all(word in folded for needle in asked.needles for word in needle.split(" ")):
                hits += plain_answers.hits_in(asked, contents)
    return records.newest_first(rows), [records.hits_newest_first(hits) for hits in found]


def check(kept: Catalog, truth: tuple[list[records.SessionInfo], list[list[Hit]]], how: str) -> Row:
    """Does the catalog say what the plain scan says?"""
    rows, found = truth
    assert kept.list() == rows, "the listing differs"
    wrong = [asked.text for asked, hits in zip(ASKED, found, strict=True) if kept.search(asked) != hits]
    assert not wrong, f"these searches differ: {wrong}"
    total = sum(map(len, found))
    return Row(
        f"7 search {how}: hits found / hits of a plain scan",
        1.0,
        1.0,
        f"{len(ASKED)} queries, {total} hits, none false",
    )


def without_catalog() -> None:
    """Delete the catalog."""
    for path in setting.folder.glob(".catalog.sqlite*"):
        path.unlink()


def command(*arguments: str) -> None:
    """Run ``forkbook`` as a person does, its output thrown away."""
    run([sys.executable, "-m", "sessions_lib.cli", *arguments, "--dir", str(setting.folder)])


def run(arguments: list[str], allowed: tuple[int, ...] = (0, 1)) -> None:
    """Run a program, its output thrown away."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    done = subprocess.run(arguments, env=installed(), check=False, **quiet)
    assert done.returncode in allowed, done.stderr.decode()[-500:]


def rows() -> Iterator[Row]:
    """All rows about the folder, in the order of the bars."""
    folder = corpus.make(setting.folder, setting.sessions)
    without_catalog()
    truth = plain(folder)
    kept = Catalog(folder)
    yield from building(kept)
    yield check(kept, truth, "with the index")
    yield from searching(kept)
    yield from looking(kept)
    yield from changing(kept)
    yield from adding_up(kept)
    yield from unindexed(truth)


def building(kept: Catalog) -> Iterator[Row]:
    """From nothing: the rows, then the text index."""
    sessions = sorted(setting.folder.glob("*.jsonl"))
    size = sum(path.stat().st_size for path in sessions)

    decoder = msgspec.json.Decoder()

    def decode() -> None:
        for path in sessions:
            for line in path.read_bytes().splitlines():
                with suppress(msgspec.DecodeError):  # an unfinished last line
                    decoder.decode(line)

    def build() -> None:
        without_catalog()
        Catalog(setting.folder).refresh()

    found = race({"scan": scan, "first": lambda: first_rows(20)}, setting.rounds)["first"]
    yield Row("first 20 rows of an unread folder / scandir + stat", found.wall_ratio, 3, milliseconds(found))
    found = race({"decode": decode, "build": build}, min(3, setting.rounds))["build"]
    yield Row("16 catalog from nothing / msgspec decoding the same lines, cpu", found.cpu_ratio, 2.5)
    kept.refresh()
    before = processor()
    kept.index()
    took = processor() - before
    speed = f"{size / 1e6:.0f} MB of sessions, {size / 1e6 / took:.1f} MB a second"
    yield Row("9 text index / FTS5 fed with ready texts, speed", feeding() / took, 0.6, speed, at_least=True)
    pages = "SELECT sum(pgsize) FROM dbstat WHERE name LIKE ?"
    text, whole = (kept.ask(lambda db, name=name: db.execute(pages, (name,)).fetchone()[0]) for name in ("said%", "%"))
    yield Row("9 size of the text index / of the sessions", text / size, 0.12, f"whole catalog {whole / size:.2f}")


def first_rows(count: int) -> list[records.SessionInfo]:
    """What ``forkbook list`` shows of a folder that nobody has read, as soon as it can."""

    class Enough(Exception):
        pass

    def enough(*_: int) -> None:
        raise Enough

    without_catalog()
    kept = Catalog(setting.folder)
    kept.waiting()
    with kept.as_known():
        with suppress(Enough):
            kept.catch_up(enough)
        found = kept.list(count)
    assert len(found) == count
    return found


def feeding() -> float:
    """Seconds of CPU that FTS5 takes for all texts, ready as they go into it, in a table like ours."""
    texts: list[str] = []
    for session in listing.session_ids(setting.folder):
        said = map(content.searchable, jsonl.read(setting.folder / f"{session}.jsonl").messages)
        texts += [fulltext.index_text(query.fold(text)) for text in said if text]
    path = setting.home / "fed.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA synchronous=OFF")
        db.execute(
            "CREATE VIRTUAL TABLE said USING fts5(text, content='', detail=none, columnsize=0, tokenize='ascii')"
        )
        before = processor()
        with db:
            db.executemany("INSERT INTO said(rowid, text) VALUES(?, ?)", enumerate(texts))
        db.execute("INSERT INTO said(said) VALUES('optimize')")
        took = processor() - before
    path.unlink()
    return took


def searching(kept: Catalog) -> Iterator[Row]:
    """The whole command, and the library, against ripgrep."""
    if not (rg := shutil.which("rg")):
        yield Row("6 search / ripgrep", None, 1, "ripgrep (rg) was not found")
        return
    bare = [rg, "-l", "-i", "--no-config", WORD, str(setting.folder), "-g", "*.jsonl"]
    frequent = [rg, "-l", "-i", "--no-config", "error", str(setting.folder), "-g", "*.jsonl"]
    found = race(
        {
            "rg": lambda: run(bare),
            "command": lambda: command("search", WORD),
            "library": lambda: kept.search(query.parse(WORD)),
            "new": lambda: Catalog(setting.folder).search(query.parse(WORD)),
        },
        setting.rounds,
    )
    note = f"rg {milliseconds(found['rg'])}"
    yield Row("6 forkbook search WORD, whole command / rg -l -i", found["command"].wall_ratio, 1, note)
    yield Row("6 search in process, warm / rg -l -i", found["library"].wall_ratio, 0.5, milliseconds(found["library"]))
    yield Row("6 search, catalog just opened / rg -l -i", found["new"].wall_ratio, 0.5, milliseconds(found["new"]))
    found = race({"rg": lambda: run(frequent), "first": lambda: kept.search(query.parse("error"), 20)}, setting.rounds)
    yield Row("6 search 'error', first 20 / rg -l -i", found["first"].wall_ratio, 0.5, milliseconds(found["first"]))


def looking(kept: Catalog) -> Iterator[Row]:
    """The newest sessions."""
    newest = f"ls -lt {setting.folder} | head -20"
    found = race(
        {"scan": scan, "list": lambda: kept.list(20), "new": lambda: Catalog(setting.folder).list(20)}, setting.rounds
    )
    yield Row(
        "11 list the newest 20, fresh / scandir + stat", found["list"].wall_ratio, 1.5, milliseconds(found["list"])
    )
    yield Row("11 the same, catalog just opened", found["new"].wall_ratio, 1.5, milliseconds(found["new"]))
    found = race({"ls": lambda: run(["sh", "-c", newest]), "list": lambda: command("list", "-n", "20")}, setting.rounds)
    yield Row(
        "12 forkbook list -n 20, whole command / ls -lt | head -20",
        found["list"].wall_ratio,
        2.5,
        milliseconds(found["list"]),
    )


def changing(kept: Catalog) -> Iterator[Row]:
    """What an append costs the catalog."""
    session = SessionManager(setting.folder).create(session_id="growing")
    some = [f"s{number:06}" for number in range(0, setting.sessions, max(1, setting.sessions // 100))][:100]

    def own() -> None:
        session.extend([{"role": "user", "content": "and another"}, {"role": "assistant", "content": "yes"}])

    def others(names: list[str]) -> None:
        for name in names:
            with (setting.folder / f"{name}.jsonl").open("ab") as file:
                file.write(b"\n")

    sizes = {name: (setting.folder / f"{name}.jsonl").stat().st_size for name in some}
    watched = Catalog(setting.folder)  # as the app's is: the system tells it which files were touched
    watched.watch()
    watched.refresh()
    update = race({"update": watched.refresh}, setting.rounds, before=own)["update"]
    yield Row("10 rows of one session after two messages, ms", update.wall * 1000, 3, "told which")

    def index() -> None:
        watched.ask(lambda db: fulltext.index(db, setting.folder, seconds=9))

    def grow() -> None:
        own()
        watched.refresh()

    watched.index()
    found = race({"index": index}, setting.rounds * 4, before=grow)["index"]
    watched.close()
    base = race({"scan": scan}, setting.rounds)["scan"]
    yield Row("10 text index of two messages, ms", found.wall * 1000, 3, "told which")
    yield Row("13 refresh, own append / scandir + stat", update.wall / base.wall, 0.02, milliseconds(update))
    kept.refresh()
    for count in (1, 100):
        names = some[:count]
        found = race({"scan": scan, "refresh": kept.refresh}, setting.rounds, before=lambda names=names: others(names))[
            "refresh"
        ]
        yield Row(f"13 refresh, {count} unknown changes / scandir + stat", found.wall_ratio, 1.7, milliseconds(found))
    for name in some:
        with (setting.folder / f"{name}.jsonl").open("r+b") as file:
            file.truncate(sizes[name])
    manager = SessionManager(setting.folder)
    manager.purge(manager.purgeable(manager.delete("growing").session))
    kept.index()


def adding_up(kept: Catalog) -> Iterator[Row]:
    """Figures on the open catalog, and frames."""
    kept.refresh()
    everything = Query()
    with kept.at_one_moment():
        found = race(
            {
                "scan": scan,
                "figures": lambda: stats.figures(kept, everything),
                "tags": kept.tags,
                "by tag": lambda: stats.by_tag(kept, everything),
                "by day": lambda: stats.by_day(kept, everything),
                "frame": lambda: stats.sessions(kept, everything),
            },
            setting.rounds,
        )

    def row(name: str, bar: float, raced: Raced) -> Row:
        return Row(f"{name} / scandir + stat", raced.wall_ratio, bar, milliseconds(raced))

    figures = found["figures"]
    yield Row("14 figures of the Stats page / half a second", figures.wall / 0.5, 1, milliseconds(figures))
    yield priced(kept)
    yield row("14 tag counts", 0.1, found["tags"])
    yield row("14 by tag", 0.5, found["by tag"])
    yield row("14 by day", 0.5, found["by day"])
    yield row("15 frame of all sessions", 3, found["frame"])


def priced(kept: Catalog) -> Row:
    """The figures with the money of all messages right after a person's own prices changed: all is priced anew."""
    own, before = setting.home / "prices.toml", os.environ.get("FORKBOOK_PRICES")
    os.environ["FORKBOOK_PRICES"] = str(own)
    prices = itertools.count(1)

    def change() -> None:
        own.write_text(f'[model."llama3.1"]\ninput = {next(prices)}\noutput = 1\n')

    change()
    try:
        found = race({"figures": lambda: stats.figures(kept, Query())}, setting.rounds, change)["figures"]
    finally:
        os.environ["FORKBOOK_PRICES"] = before or ""
        own.unlink()
    return Row("14 money of all messages, priced anew / 0.2 s", found.wall / 0.2, 1, milliseconds(found))


def unindexed(truth: tuple[list[records.SessionInfo], list[list[Hit]]]) -> Iterator[Row]:
    """Search while there is no text index yet."""
    without_catalog()
    kept = Catalog(setting.folder)
    kept.refresh()
    index = fulltext.index
    fulltext.index = lambda *_, **__: None
    try:
        yield check(kept, truth, "without an index")
        if rg := shutil.which("rg"):
            bare = [rg, "-l", "-i", "-j1", "--no-config", WORD, str(setting.folder), "-g", "*.jsonl"]
            found = race({"rg": lambda: run(bare), "scan": lambda: kept.search(query.parse(WORD))}, setting.rounds)[
                "scan"
            ]
            yield Row("8 search without an index / rg -l -i -j1", found.wall_ratio, 6, milliseconds(found))
    finally:
        fulltext.index = index
        without_catalog()
