"""A catalog of a server: told what was touched instead of looking at all files, and asked while it is being made."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from sessions_lib import SessionManager
from sessions_lib.query import parse
from sessions_lib.store.folder import watch
from sessions_lib.store.folder.index import upkeep
from sessions_lib.store.folder.index.catalog import Catalog
from tests.record import GULL, LIGHTHOUSES, write

told = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what was touched")


@pytest.fixture
def watched(tmp_path, monkeypatch):
    """A catalog that knows its two sessions, and must not look at all files any more."""
    write(tmp_path / "a.jsonl", LIGHTHOUSES, GULL)
    write(tmp_path / "b.jsonl", LIGHTHOUSES)
    if not watch.is_told_of(tmp_path):
        pytest.skip("the temporary folder is on no disk of this machine")
    made = Catalog(tmp_path)
    made.watch()
    made.refresh()
    monkeypatch.setattr(upkeep, "scan_files", lambda folder: pytest.fail("all files were looked at"))
    yield made
    made.close()


def counts(one):
    return {info.id: info.messages for info in one.list()}


@told
def test_what_others_do_is_seen_without_looking_at_all_files(watched):
    manager = SessionManager(watched.folder)
    assert counts(watched) == {"a": 2, "b": 1}

    manager.open("a").append({"role": "user", "content": "And the taller?"})
    assert counts(watched) == {"a": 3, "b": 1}
    manager.create("C", session_id="c")
    manager.open("b").add_tag("north")
    assert counts(watched) == {"a": 3, "b": 1, "c": 0}
    assert watched.tags() == {"north": 1}
    manager.delete("a")
    assert counts(watched) == {"b": 1, "c": 0}
    manager.restore("a")
    assert counts(watched) == {"a": 3, "b": 1, "c": 0}


@told
def test_what_another_process_read_first_is_seen_too(watched):
    write(watched.folder / "c.jsonl", LIGHTHOUSES)
    command = [sys.executable, "-m", "sessions_lib.cli", "list", "--dir", str(watched.folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    assert counts(watched) == {"a": 2, "b": 1, "c": 1}


@told
def test_a_question_that_failed_loses_nothing_that_was_told(watched, monkeypatch):
    write(watched.folder / "c.jsonl", LIGHTHOUSES)
    with monkeypatch.context() as broken:
        broken.setattr(Catalog, "_read", lambda self, *given: (_ for _ in ()).throw(MemoryError))
        with pytest.raises(MemoryError):
            watched.list()

    assert counts(watched) == {"a": 2, "b": 1, "c": 1}


def test_a_catalog_that_was_made_anew_looks_at_all_files(tmp_path):
    write(tmp_path / "a.jsonl", LIGHTHOUSES)
    made = Catalog(tmp_path)
    made.watch()
    assert counts(made) == {"a": 1}

    made.rebuild()
    assert counts(made) == {"a": 1}
    for file in tmp_path.glob(".catalog.sqlite*"):
        file.unlink()
    assert counts(made) == {"a": 1}
    made.close()


def test_what_was_written_last_is_read_first(tmp_path):
    for number in range(100):
        os.utime(write(tmp_path / f"s{number:03}.jsonl", LIGHTHOUSES), (number, number))
    shared, reader = Catalog(tmp_path), Catalog(tmp_path)
    first: list[str] = []

    with shared.as_known():
        reader.refresh(lambda done, todo: first.extend(shared.ids(parse("")) if not first else []))

    assert sorted(first) == [f"s{number:03}" for number in range(80, 100)]
    reader.close()


def test_while_a_folder_is_read_behind_the_answers_are_of_what_was_read(tmp_path):
    for number in range(200):
        write(tmp_path / f"s{number:03}.jsonl", LIGHTHOUSES)
    shared, reader = Catalog(tmp_path), Catalog(tmp_path)
    seen: list[int] = []
    at_work = threading.Event()

    def look(done, todo):
        at_work.set()
        seen.append(len(shared.list()))

    assert shared.waiting() == 200
    with shared.as_known():
        assert shared.list() == []
        thread = threading.Thread(target=reader.refresh, args=(look,))
        thread.start()
        thread.join()

    assert seen == [20, 84, 148, 200]
    assert shared.waiting() == 0
    write(tmp_path / "s200.jsonl", LIGHTHOUSES)
    assert len(shared.search(parse("lighthouses"))) == 201
    reader.close()
