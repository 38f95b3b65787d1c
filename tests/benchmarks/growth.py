"""What is constant and what grows: the same questions to 100, 1,000 and 10,000 sessions, once indexed.

The folders are links to the first sessions of the same corpus. A page asks for 50 rows, a search for 20 hits.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from sessions_lib import query, stats
from sessions_lib.store.folder import jsonl
from sessions_lib.store.folder.index.catalog import Catalog
from tests.benchmarks import corpus
from tests.benchmarks.harness import Row, milliseconds, race, setting

SIZES = (100, 1_000, 10_000)


def folder_of(count: int) -> Path:
    """A folder with the first ``count`` sessions of the corpus."""
    folder = setting.home / f"first-{count}"
    if not folder.exists():
        folder.mkdir()
        for number in range(count):
            for ending in (".jsonl", ".meta.json"):
                os.link(setting.folder / f"s{number:06}{ending}", folder / f"s{number:06}{ending}")
    return folder


def rows() -> Iterator[Row]:
    """One row a question and size, as multiples of the smallest."""
    corpus.make(setting.folder, setting.sessions)
    kept = {count: Catalog(folder_of(count)) for count in SIZES if count <= setting.sessions}
    for one in kept.values():
        one.index()
    word, everything = query.parse("zephyrquartz"), query.parse("")
    asked = {
        "list the newest 20": lambda one: one.list(20),
        "a page of 50": lambda one: one.page(everything),
        "search a rare word": lambda one: one.search(word),
        "search 'error', first 20": lambda one: one.search(query.parse("error"), 20),
        "figures of the Stats page": lambda one: stats.figures(one, everything),
    }
    for name, question in asked.items():
        found = race(
            {str(count): lambda one=one, question=question: question(one) for count, one in kept.items()},
            setting.rounds,
        )
        for count in list(kept)[1:]:
            raced = found[str(count)]
            yield Row(f"{name}, {count:,} / 100 sessions", raced.wall_ratio, None, milliseconds(raced))
    files = {size: corpus.long_session(setting.home / f"big-{size}.jsonl", size) for size in (1, 10, 95)}
    found = race({str(size): lambda path=path: jsonl.read(path) for size, path in files.items()}, 3)
    for size in (10, 95):
        yield Row(f"read, {size} MB / 1 MB", found[str(size)].wall_ratio, None, milliseconds(found[str(size)]))
