"""The database's answers are the plain ones: over whatever happens to sessions, and as the folder they came from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from sessions_lib import SessionManager, query
from sessions_lib.errors import SessionError
from sessions_lib.store import records, tagging
from sessions_lib.store.folder import metadata, scan
from sessions_lib.store.plain_catalog import KEYS, PlainCatalog
from sessions_lib.store.postgres import summary
from sessions_lib.store.postgres.database import Database
from sessions_lib.store.postgres.store import PostgresStore
from tests import database
from tests.database import SERVER
from tests.store.folder.test_catalog import NEEDLES, Story, numbers_of

pytestmark = database.needs_server
UTC = ZoneInfo("UTC")


@pytest.fixture
def store() -> Iterator[PostgresStore]:
    store = PostgresStore(Database(SERVER.new_database()))
    yield store
    store.database.close()


def fill(store: PostgresStore, folder: Path) -> None:
    """The sessions of ``folder``, line for line, in place of those of before."""
    for session in store.ids():
        SessionManager(store).delete(session)
    for session in scan.session_ids(folder):
        store.create(session, session, metadata.read(folder / f"{session}.meta.json").values)
        file = folder / f"{session}.jsonl"
        if file.exists() and (raw := file.read_bytes()):
            store.put_lines(session, raw.decode("utf-8", "surrogateescape").split("\n"))


@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_the_database_answers_as_reading_all_does(
    store: PostgresStore, tmp_path: Path, seed: int
) -> None:
    story = Story(tmp_path / "sessions", seed)
    for step in range(40):
        story.step()
        if step % 13 == 0:
            fill(store, story.folder)
            same(store, story.folder)
    fill(store, story.folder)
    same(store, story.folder)


def same(store: PostgresStore, folder: Path) -> None:
    kept, plain = store.catalog, PlainCatalog(lambda: summary.scan(store.database))
    truth = plain.list()
    assert kept.list() == truth
    assert kept.list(3) == truth[:3]
    assert kept.tags() == tagging.tag_counts(truth)
    assert (kept.models(), kept.lineage()) == (plain.models(), plain.lineage())
    ids = [row.id for row in truth]
    assert kept.infos(ids) == {row.id: row for row in truth}
    assert kept.costs(ids) == plain.costs(ids)
    for order in KEYS:
        for descending in (True, False):
            asked = query.parse("")
            found = kept.page(asked, order, descending=descending, offset=1, limit=5)
            assert found == plain.page(asked, order, descending=descending, offset=1, limit=5), order
    read = scan.plain(folder)
    for asked in (query.parse(words, UTC) for words in [*NEEDLES, "model:gpt-5", "cost:>0.01 e", "is:fork tag:b"]):
        assert kept.search(asked) == plain.search(asked), asked.text
        assert kept.search(asked, 2) == plain.search(asked)[:2], asked.text
        assert kept.ids(asked) == plain.ids(asked), asked.text
        assert kept.page(asked, "family") == plain.page(asked, "family"), asked.text
        if not asked.has_damage:  # damaged metadata stays in the folder
            assert places(kept.search(asked)) == places(read.search(asked)), asked.text
    for words in ("", "after:2026-01-05 before:2026-01-15", "tag:a", "tide is:fork", "model:m-1", "tide cost:>0"):
        asked = query.parse(words, UTC)
        assert numbers_of(kept, asked) == numbers_of(plain, asked), words


def places(hits: list[records.Hit]) -> set[tuple[object, ...]]:
    return {(hit.session, hit.message, hit.turn, hit.snippet) for hit in hits if hit.message is not None}


def test_a_session_says_the_same_lines_and_faults_as_its_file(store: PostgresStore, tmp_path: Path) -> None:
    story = Story(tmp_path / "sessions", 5)
    for _ in range(60):
        story.step()
    fill(store, story.folder)
    folder = SessionManager(story.folder)

    for session in folder.store.ids():
        try:
            lines = folder.store.lines(session, range(1, 1000))
        except (SessionError, FileNotFoundError):
            continue
        assert store.lines(session, range(1, 1000)) == lines
        assert store.line_count(session) == len(lines)
        assert (store.size_bytes(session) or 0) == folder.store.size_bytes(session)
        ours, theirs = SessionManager(store).open(session), folder.open(session)
        assert ours.messages == theirs.messages
        assert (ours.report.damaged, ours.report.repaired) == (theirs.report.damaged, theirs.report.repaired)
        faults = [(one.line, one.kind) for one in folder.store.faults(session) if one.line]
        assert [(one.line, one.kind) for one in store.faults(session) if one.line] == faults
        store.repair(session)
        folder.store.repair(session)
        mended = [{**message, "id": "", "timestamp": ""} for message in SessionManager(store).open(session).messages]
        assert mended == [{**message, "id": "", "timestamp": ""} for message in folder.open(session).messages]
