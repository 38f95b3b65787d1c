"""A folder that is read for the first time, or after many changes: in a thread that no page waits for.

One thread a folder. While it reads, the pages show what it has read so far, the newest files first, under a bar that
moves by itself; when all is read they draw themselves again. After that the texts are indexed for searching, batch by
batch; a search reads from the files what is not indexed yet.

Does not read sessions itself: the catalog does.
"""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field

import streamlit as st

from sessions_lib.errors import SessionError
from sessions_lib.store.store import SessionStore

MANY = 300  # sessions that a page reads by itself, in well under two seconds
_FIRST_S = 0.8  # a page waits for the first sessions, so that it need not be drawn twice
_AGAIN_S = 2.0  # between two looks for many changes


@dataclass
class Reading:
    """What the thread of a folder is doing: how many of how many sessions it has read; then how much is indexed."""

    todo: int
    done: int = 0
    indexed: float | None = None
    is_read: bool = False
    some: threading.Event = field(default_factory=threading.Event)

    @property
    def said(self) -> str:
        """What it does, in a sentence."""
        return f"Reading {self.todo:,} sessions: {self.done:,} done. What you see is of these, and fills up by itself."


_running: dict[str, Reading] = {}
_looked_at: dict[str, float] = {}
_lock = threading.Lock()


def of(name: str) -> Reading | None:
    """What is being read of the store ``name`` at this moment."""
    found = _running.get(name)
    return None if found is None or found.is_read else found


def indexing(name: str) -> float | None:
    """How much of the texts is indexed, from 0 to 1; ``None`` if nothing is being indexed."""
    found = _running.get(name)
    return None if found is None else found.indexed


def begin(store: SessionStore) -> None:
    """Start to read the folder in a thread if there is much to read."""
    name, catalog = store.name, store.catalog
    if name in _running or time.monotonic() < _looked_at.get(name, 0.0):
        return
    catalog.watch()
    waiting = catalog.waiting()
    _looked_at[name] = time.monotonic() + _AGAIN_S
    if waiting > MANY and not catalog.is_in_memory and (made := _start(store, waiting)):
        made.some.wait(_FIRST_S)


def index(store: SessionStore) -> None:
    """Start to index the texts in a thread if any are not."""
    if store.name not in _running and store.catalog.unindexed_bytes():
        _start(store, 0)


def _start(store: SessionStore, waiting: int) -> Reading | None:
    # The catalog's lock is never asked for under this module's, which a page may want while it has the catalog's.
    behind = ExitStack()
    if waiting:
        behind.enter_context(store.catalog.as_known())
    with _lock:
        if store.name not in _running:
            made = _running[store.name] = Reading(waiting, is_read=not waiting)
            threading.Thread(target=_read, args=(made, store, behind), name="reading", daemon=True).start()
            return made
    behind.close()
    return None


def _read(reading: Reading, store: SessionStore, behind: ExitStack) -> None:
    def counted(done: int, todo: int) -> None:
        reading.done, reading.todo = done, todo
        reading.some.set()

    def indexed(done: int, todo: int) -> None:
        reading.indexed = done / todo

    try:
        with behind:
            if reading.todo:
                store.catalog.catch_up(counted)
        reading.is_read = True
        store.catalog.index(on_progress=indexed)
    except (SessionError, OSError):
        pass  # the next page that asks reads by itself, and says what is wrong
    finally:
        reading.is_read = True
        reading.some.set()
        del _running[store.name]


def bar(name: str) -> None:
    """The bar of the reading that goes on, if one does; it moves, and goes, by itself."""
    if of(name) is not None:
        with st.container(key="reading"):
            _moving(name)


@st.fragment(run_every=1.0)
def _moving(name: str) -> None:
    reading = of(name)
    if reading is None:
        st.rerun()
    st.progress(min(1.0, reading.done / max(1, reading.todo)), reading.said)
