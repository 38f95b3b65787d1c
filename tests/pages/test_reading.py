"""A folder nobody has read yet: the pages show what is known so far, and fill up when the rest is read."""

from __future__ import annotations

import threading
import time

import pytest

from pages.shared import reading
from sessions_lib.store.folder.index import catalog
from sessions_lib.store.folder.index.catalog import Catalog
from tests.record import write

COUNT = 400


@pytest.fixture
def gate(folder, monkeypatch):
    """A folder of 400 sessions, of which 20 are read until the gate opens."""
    folder.mkdir(mode=0o700)
    for number in range(COUNT):
        line = {"role": "user", "content": f"hay {number}", "timestamp": f"2026-01-01T00:00:00.{number:03}Z"}
        write(folder / f"s{number:03}.jsonl", line)
    opened = threading.Event()

    class Slow(Catalog):
        def refresh(self, on_progress=None):
            def told(done, todo):
                if on_progress:
                    on_progress(done, todo)
                opened.wait(60)

            super().refresh(told)

    monkeypatch.setattr(catalog, "Catalog", Slow)
    yield opened
    opened.set()
    finish(folder)


def finish(folder):
    """Wait until the thread of the folder has ended."""
    deadline = time.monotonic() + 60
    while str(folder) in reading._running and time.monotonic() < deadline:
        time.sleep(0.01)


def texts(page):
    return "\n".join(one.value for one in [*page.markdown, *page.caption, *page.header])


def bars(page):
    return [one.proto.text for one in page.get("progress")]


@pytest.mark.parametrize("name", ["home", "sessions", "stats"])
def test_a_page_is_there_before_the_folder_is_read(open_page, gate, folder, name):
    page = open_page(name, **({"when": "all"} if name == "stats" else {}))

    assert not page.exception
    assert bars(page) == ["Reading 400 sessions: 20 done. What you see is of these, and fills up by itself."]
    shown = {"home": "All 20 sessions", "sessions": "**20** sessions", "stats": ""}[name]
    assert shown in texts(page) + "".join(one.proto.label for one in page.get("page_link"))
    if name == "stats":
        assert [one.value for one in page.metric][:2] == ["20", "20"]

    gate.set()
    finish(folder)
    page.run()

    assert bars(page) == []
    shown = {"home": "All 400 sessions", "sessions": "**400** sessions", "stats": ""}[name]
    assert shown in texts(page) + "".join(one.proto.label for one in page.get("page_link"))


def test_chat_answers_while_the_folder_is_read(open_page, gate, folder):
    page = open_page("chat")

    page.chat_input[0].set_value("Find out what it takes.").run()

    assert not page.exception
    assert not gate.is_set()
    assert len(list(folder.glob("*.jsonl"))) == COUNT + 1


def test_a_folder_that_is_small_is_read_by_the_page_itself(open_page, folder):
    folder.mkdir(mode=0o700)
    for number in range(reading.MANY):
        write(folder / f"s{number:03}.jsonl", {"role": "user", "content": f"hay {number}"})

    page = open_page("sessions")

    assert bars(page) == []
    assert "**300** sessions" in texts(page)
    finish(folder)


def test_a_folder_that_cannot_be_read_ends_its_thread_and_is_told(open_page, gate, folder, monkeypatch):
    page = open_page("sessions")
    assert len(bars(page)) == 1
    kept = folder.rename(folder.with_name("moved"))
    folder.write_text("no folder")

    gate.set()
    finish(folder)
    page.run()

    assert not page.exception
    assert len(page.error) == 1
    folder.unlink()
    kept.rename(folder)
