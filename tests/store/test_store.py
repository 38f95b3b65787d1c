"""Every store answers alike: values typed in by hand, and any sequence of acts. A new store joins ``STORES``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessions_lib import stats
from sessions_lib.errors import (
    ForkPointForbidden,
    InvalidMessage,
    SessionError,
    SessionExists,
    SessionLocked,
    SessionNotFound,
)
from sessions_lib.query import parse
from sessions_lib.store import forks
from sessions_lib.store.folder import scan
from sessions_lib.store.folder.store import FolderStore
from sessions_lib.store.manager import SessionManager
from sessions_lib.store.memory import MemoryStore
from sessions_lib.store.store import SessionStore, open_store
from tests import database
from tests.record import call, result, said

UTC = ZoneInfo("UTC")
USAGE = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}


class _Scanned(FolderStore):
    """A folder that is asked by reading all of it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.catalog = scan.plain(folder)
        self.catalog.rebuild = lambda: None  # it keeps nothing


class _Broken(FolderStore):
    """A folder whose catalog's file holds ``found`` instead, or is not there, before each question."""

    found: bytes | None = b"no database"

    def __init__(self, folder: Path) -> None:
        self._asked: Any = None
        super().__init__(folder)

    @property
    def catalog(self) -> Any:
        self._asked.close()
        for name in (".catalog.sqlite", ".catalog.sqlite-wal", ".catalog.sqlite-shm"):
            (self.folder / name).unlink(missing_ok=True)
        if self.found is not None and self.folder.is_dir():
            (self.folder / ".catalog.sqlite").write_bytes(self.found)
        return self._asked

    @catalog.setter
    def catalog(self, asked: Any) -> None:
        self._asked = asked


class _Deleted(_Broken):
    found = None


STORES: dict[str, Callable[[Path], SessionStore]] = {
    "memory": lambda folder: MemoryStore(),
    "scan": _Scanned,
    "folder": FolderStore,
    "damaged catalog": _Broken,
    "deleted catalog": _Deleted,
}
if database.is_there():
    STORES["postgresql"] = lambda folder: open_store(database.SERVER.new_database())


@pytest.fixture(params=STORES)
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> SessionManager:
    return SessionManager(STORES[request.param](tmp_path / "sessions"))


def prompt(text: str, minute: int) -> dict[str, Any]:
    stamp = f"2026-03-01T10:{minute:02}:00.000Z"
    return {"role": "user", "content": text, "id": f"p{minute}", "timestamp": stamp}


def answer(text: str, minute: int, **more: Any) -> dict[str, Any]:
    stamp = f"2026-03-01T10:{minute:02}:30.000Z"
    made = {"role": "assistant", "content": text, "id": f"a{minute}", "timestamp": stamp, "model": "m-1"}
    return {**made, "finish_reason": "stop", "usage": USAGE, **more}


def tides(manager: SessionManager, session_id: str = "tides", **meta: Any) -> Any:
    created = "2026-03-01T09:00:00.000Z"
    session = manager.create("Tides of Ember", ["sea"], session_id, created=created, **meta)
    session.extend([prompt("When is high water?", 1), answer("At 06:12.", 1), prompt("And tomorrow?", 2)])
    session.append(answer("At 07:01.", 2))
    return session


# --- values typed in --------------------------------------------------------------------------------------------------


def test_what_was_appended_is_read_again(manager: SessionManager) -> None:
    tides(manager)

    again = manager.open("tides")

    assert said(again.messages) == ["When is high water?", "At 06:12.", "And tomorrow?", "At 07:01."]
    assert (again.title, again.tags, again.parent, len(again.turns)) == ("Tides of Ember", ["sea"], None, 2)
    with pytest.raises(InvalidMessage):
        again.append({"content": "nobody"})
    assert len(manager.open("tides").messages) == 4


def test_a_row_says_what_a_session_holds(manager: SessionManager) -> None:
    tides(manager)

    (row,) = manager.list()

    assert (row.id, row.title, row.tags, row.messages, row.turns) == ("tides", "Tides of Ember", ("sea",), 4, 2)
    assert (row.tokens.input, row.tokens.output, row.tokens.total, row.tokens.answers) == (40, 10, 50, 2)
    assert (row.models, row.tool_calls, row.errors, row.damaged, row.unanswered) == (("m-1",), 0, 0, 0, 0)
    assert row.last_active is not None
    assert row.last_active.isoformat() == "2026-03-01T10:02:30+00:00"
    assert manager.tags() == {"sea": 1}
    assert [one.id for one in manager.find_by_tag("SEA")] == ["tides"]
    assert [one.id for one in manager.find_by_date(date(2026, 3, 1), UTC)] == ["tides"]
    assert manager.find_by_date(date(2026, 3, 2), UTC) == []


def test_a_fork_has_the_messages_of_its_parent_with_their_ids(manager: SessionManager) -> None:
    parent = tides(manager)

    child = parent.fork("ebb", at=2)
    child.append(prompt("And at night?", 3))

    assert [message["id"] for message in manager.open("ebb").messages] == ["p1", "a1", "p3"]
    assert (child.parent, child.inherited, child.tags) == ("tides", 2, ["sea"])
    assert len(manager.open("tides").messages) == 4
    assert [row.id for row in manager.family("ebb")] == ["tides", "ebb"]
    with pytest.raises(SessionExists):
        parent.fork("ebb")
    figures = stats.figures(manager.catalog)
    assert (figures.messages, figures.tokens.total, figures.sent_again, figures.forks) == (5, 50, 25, 1)


def test_no_fork_ends_in_a_call_without_its_result(manager: SessionManager) -> None:
    session = manager.create(session_id="a")
    session.extend([prompt("Tide?", 1), {**call("c1"), "id": "x"}, {**result("c1"), "id": "y"}, answer("2.1 m", 2)])

    with pytest.raises(ForkPointForbidden):
        session.fork("b", at=2)

    assert len(session.fork("b", at=3).messages) == 3
    assert sorted((row.id, row.messages, row.tool_calls) for row in manager.list()) == [("a", 4, 1), ("b", 3, 1)]


def test_a_search_finds_messages_and_titles(manager: SessionManager) -> None:
    tides(manager)
    manager.create("Boats", session_id="boats", created="2026-03-01T09:00:00.000Z").append(prompt("Any boat?", 9))

    assert [(hit.session, hit.message, hit.turn) for hit in manager.search("06:12")] == [("tides", 1, 1)]
    assert {hit.session for hit in manager.search("tides ember")} == {"tides"}
    assert [(hit.session, hit.message) for hit in manager.search("boat role:user")] == [("boats", 0)]
    assert manager.search("nothing of it") == []
    page = manager.catalog.page(parse("tag:sea"))
    assert ([row.id for row in page.rows], page.total) == (["tides"], 1)


def test_a_second_writer_is_told_and_the_first_goes_on(manager: SessionManager) -> None:
    session = tides(manager)
    other = manager.open("tides")

    with session.hold():
        with pytest.raises(SessionLocked):
            other.hold(timeout=0)
        session.append(prompt("Mine", 5))
        other.add_tag("running")
        assert len(manager.open("tides").fork("copy").messages) == 5

    with other.hold():
        other.append(prompt("Theirs", 6))
    assert said(manager.open("tides").messages)[-2:] == ["Mine", "Theirs"]
    assert manager.open("tides").tags == ["sea", "running"]


def test_what_is_deleted_comes_back_and_what_is_purged_does_not(manager: SessionManager) -> None:
    tides(manager)

    manager.delete("tides")
    assert (manager.list(), [entry.session for entry in manager.trash()]) == ([], ["tides"])
    with pytest.raises(SessionNotFound):
        manager.open("tides")
    assert manager.search("06:12") == []

    assert len(manager.restore("tides").messages) == 4
    assert [row.id for row in manager.list()] == ["tides"]

    manager.delete("tides")
    purged, kept = manager.purge(manager.purgeable("tides"))
    assert ([one.session for one in purged], kept, manager.trash()) == (["tides"], [], [])
    with pytest.raises(SessionError):
        manager.restore("tides")


def test_a_fork_may_say_something_else_where_it_begins(manager: SessionManager) -> None:
    session = manager.create(session_id="tides")
    first = {"role": "user", "content": "How deep?"}
    session.extend([first, call("c1"), result("c1", name="depth"), {"role": "assistant", "content": "Forty."}])
    outcome = forks.change(session.messages, 2, "4 m")
    answer = forks.change(session.messages, 3, "Fifty.")

    other = session.fork("other", outcome.at, then=outcome.then, mark=outcome.mark)
    third = session.fork(at=answer.at, then=answer.then, mark=answer.mark)

    assert [message["content"] for message in other.messages] == ["How deep?", None, "4 m"]
    assert other.messages[2]["edited"] == {"by": "person", "was": session.messages[2]["id"]}
    assert (other.inherited, other.title) == (2, "How deep? · result of depth changed in turn 1")
    assert manager.open("other").report.unanswered == []
    assert (third.messages[3]["content"], third.title) == ("Fifty.", "How deep? · answer changed in turn 1")
    assert len({message["id"] for one in (session, other, third) for message in one.messages}) == 6
    with pytest.raises(SessionError):
        session.fork(at=2)


def test_a_trial_is_kept_whole_beside_the_sessions(manager: SessionManager) -> None:
    store = manager.store
    manager.create(session_id="tides")
    store.put_trial("short", {"repeats": 10, "prompt": "Tide?\u2028"})
    store.put_trial("short", {"repeats": 20, "prompt": "Tide?\u2028"})
    store.put_trial("a", {})

    assert store.trials() == ["a", "short"]
    assert store.trial("short") == {"repeats": 20, "prompt": "Tide?\u2028"}
    assert store.trial("none") is None
    assert [info.id for info in manager.list()] == ["tides"]
    store.put_trial("a", None)
    store.put_trial("a", None)
    assert store.trials() == ["short"]
    with pytest.raises(SessionError):
        store.trial("../up")


def test_a_session_that_was_deleted_while_open_takes_no_message(manager: SessionManager) -> None:
    session = tides(manager)
    manager.delete("tides")

    with pytest.raises(SessionNotFound):
        session.append(prompt("Late", 8))

    assert manager.list() == []


def test_merging_brings_whole_turns_and_is_done_once(manager: SessionManager) -> None:
    mine = tides(manager)
    theirs = mine.fork("ebb", at=2)
    theirs.extend([prompt("And at night?", 1 + 2), answer("At 18:40.", 3)])

    mine.merge(theirs)
    mine.merge(theirs)

    assert [message["id"] for message in manager.open("tides").messages] == ["p1", "a1", "p2", "a2", "p3", "a3"]
    assert [message["id"] for message in manager.open("ebb").messages] == ["p1", "a1", "p3", "a3"]


def test_metadata_changed_by_two_keeps_both_changes(manager: SessionManager) -> None:
    one = tides(manager)
    two = manager.open("tides")

    one.rename("High water")
    two.add_tag("north")

    again = manager.open("tides")
    assert (again.title, again.tags) == ("High water", ["sea", "north"])


def test_a_sound_session_has_no_fault_and_an_unanswered_call_is_one(manager: SessionManager) -> None:
    tides(manager)
    session = manager.create(session_id="a")
    session.extend([prompt("Tide?", 1), {**call("c1"), "id": "x"}])

    assert manager.store.faults("tides") == []
    assert len(manager.store.faults("a")) == 1


@pytest.mark.parametrize("name", ["../outside", "", "a/b", "CON"])
def test_no_id_leads_anywhere_else(manager: SessionManager, name: str) -> None:
    with pytest.raises(SessionError):
        manager.create(session_id=name or "..")
    with pytest.raises(SessionError):
        manager.open(name)


# --- any sequence of acts ---------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c", "D"])
ACTS = st.one_of(
    st.tuples(st.just("create"), NAMES, st.sampled_from(["", "Tide", "boat"])),
    st.tuples(st.just("say"), NAMES, st.integers(0, 59)),
    st.tuples(st.just("answer"), NAMES, st.integers(0, 59)),
    st.tuples(st.just("use"), NAMES, st.booleans()),
    st.tuples(st.just("fork"), NAMES, NAMES, st.integers(0, 6)),
    st.tuples(st.just("merge"), NAMES, NAMES),
    st.tuples(st.just("tag"), NAMES, st.sampled_from(["sea", "Sea", "north"])),
    st.tuples(st.just("rename"), NAMES, st.sampled_from(["", "Tide", "e"])),
    st.tuples(st.just("delete"), NAMES),
    st.tuples(st.just("restore"), NAMES),
    st.tuples(st.just("purge"), NAMES),
)


def act(manager: SessionManager, number: int, what: tuple[Any, ...]) -> str:
    """Do it; what it gave, or the name of its refusal."""
    kind, name, *more = what
    try:
        if kind == "create":
            manager.create(more[0], session_id=name, created="2026-01-01T00:00:00.000Z")
        elif kind == "say":
            manager.open(name).append({**prompt(f"tide {number}", more[0]), "id": f"m{number}"})
        elif kind == "answer":
            manager.open(name).append({**answer(f"boat {number}", more[0]), "id": f"m{number}"})
        elif kind == "use":
            made = [{**call("c"), "id": f"m{number}"}]
            made += [{**result("c", is_error=number % 2 == 0), "id": f"r{number}"}] if more[0] else []
            manager.open(name).extend(made)
        elif kind == "fork":
            manager.open(name).fork(more[0], at=more[1])
        elif kind == "merge":
            manager.open(name).merge(manager.open(more[0]))
        elif kind == "tag":
            manager.open(name).add_tag(more[0])
        elif kind == "rename":
            manager.open(name).rename(more[0])
        elif kind == "delete":
            manager.delete(name)
        elif kind == "restore":
            manager.restore(name)
        else:
            manager.purge(manager.purgeable(name))
    except SessionError as error:
        return type(error).__name__
    return "done"


def answers(manager: SessionManager) -> list[Any]:
    """What a store says of all that it keeps. Times of forks and sizes are each store's own."""
    told: list[Any] = []
    for row in sorted(manager.list(), key=lambda row: row.id):
        meta = {key: value for key, value in row.meta.items() if key not in ("created", "merged_from", "version", "id")}
        told.append(replace(row, created=None, last_active=None, size_bytes=0, meta=meta))
        told.append([(m["role"], m.get("content"), m.get("id", "")) for m in manager.open(row.id).messages])
        told.append([(fault.kind, fault.can_be_repaired) for fault in manager.store.faults(row.id)])
    for words in ("tide", "boat", "tag:sea", "has:error", "role:user tide", "is:fork"):
        told.append(sorted((hit.session, hit.message or -1, hit.snippet) for hit in manager.search(words)))
        told.append(sorted(manager.catalog.ids(parse(words))))
    told.append(sorted((entry.session, entry.kind) for entry in manager.trash()))
    told.append([manager.tags(), manager.catalog.lineage(), replace(stats.figures(manager.catalog))])
    told.append(stats.by_model(manager.catalog).to_dict("list"))
    return told


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ACTS, min_size=1, max_size=14))
def test_any_sequence_of_acts_leaves_all_stores_with_the_same_answers(
    tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[Any, ...]]
) -> None:
    place = tmp_path_factory.mktemp("stores")
    managers = [SessionManager(make(place / f"s{number}")) for number, make in enumerate(STORES.values())]

    for number, what in enumerate(acts):
        outcomes = {act(manager, number, what) for manager in managers}
        assert len(outcomes) == 1, (what, outcomes)

    first, *others = [answers(manager) for manager in managers]
    for name, other in zip(list(STORES)[1:], others, strict=True):
        assert other == first, name
