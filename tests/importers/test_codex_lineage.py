"""Forks of forks and sub-agents of sub-agents: each answer is counted once, and everyone has its parent."""

from __future__ import annotations

import zipfile
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import importers, stats
from sessions_lib.store.manager import SessionManager
from tests.importers.files import codex, item_text, tokens, write_lines

Record = dict[str, Any]
A = [item_text("user", "Plan the trip."), item_text("assistant", "Three legs."), tokens(1100, 1100)]
B = [*A, item_text("user", "Check the first leg."), item_text("assistant", "It is open."), tokens(2250, 1150)]
C = [*B, item_text("user", "Count the boats."), item_text("assistant", "Seven."), tokens(3470, 1220)]


def fork(thread: str, parent: str) -> Record:
    return codex("session_meta", id=thread, forked_from_id=parent)


def agent(thread: str, parent: str, **more: Any) -> Record:
    spawn = {"subagent": {"thread_spawn": {"parent_thread_id": parent, "depth": 1}}}
    return codex("session_meta", id=thread, parent_thread_id=parent, source=spawn, **more)


def called(thread: str, parent: str) -> Record:
    return agent(thread, parent, forked_from_id=parent)


ROOT = codex("session_meta", id="a")
FAMILIES = {
    "forks": [[ROOT, *A], [fork("b", "a"), *B], [fork("c", "b"), *C]],
    "sub-agents": [[ROOT, *A], [called("b", "a"), *B], [called("c", "b"), *C]],
    "sub-agents without a mark": [[ROOT, *A], [agent("b", "a"), *B], [agent("c", "b"), *C]],
    "one header": [[ROOT, *A], [fork("b", "a"), ROOT, *B], [fork("c", "b"), fork("b", "a"), *C]],
    "all headers": [[ROOT, *A], [fork("b", "a"), ROOT, *B], [fork("c", "b"), fork("b", "a"), ROOT, *C]],
    "a sub-agent of a fork": [[ROOT, *A], [fork("b", "a"), *B], [called("c", "b"), *C]],
    "counts of the copies left out": [
        [ROOT, *A],
        [fork("b", "a"), *A[:2], *B[3:]],
        [fork("c", "b"), *A[:2], *B[3:5], *C[6:]],
    ],
}


def lineage(manager: SessionManager) -> dict[str, tuple[str | None, int]]:
    """Of each thread the parent's thread, and how many messages it has from there."""
    infos = {info.id: info for info in manager.list()}
    thread = {session: info.meta["imported_from"]["key"].removeprefix("codex:") for session, info in infos.items()}
    return {thread[i.id]: (thread[i.parent] if i.parent else None, i.inherited) for i in infos.values()}


def spent(manager: SessionManager) -> tuple[int | None, int]:
    totals = stats.figures(manager.catalog)
    return totals.tokens.total, totals.tokens.answers


@pytest.mark.parametrize("family", FAMILIES)
def test_what_a_fork_of_a_fork_copied_is_counted_once(tmp_path: Path, family: str) -> None:
    for number, order in enumerate(permutations(range(3))):
        folder = tmp_path / str(number)
        for place, which in enumerate(order):  # files are imported in the order of their names
            write_lines(folder / f"{place}.jsonl", *FAMILIES[family][which])
        manager = SessionManager(folder / "sessions")

        list(importers.import_paths(manager, [folder / f"{place}.jsonl" for place in range(3)]))

        assert spent(manager) == (3470, 3)
        assert lineage(manager) == {"a": (None, 0), "b": ("a", 2), "c": ("b", 4)}


def test_the_files_of_a_family_are_found_in_a_zip_and_in_the_folder_of_codex(tmp_path: Path) -> None:
    home = tmp_path / "codex" / "sessions"
    for day, records in enumerate(FAMILIES["forks"]):
        thread = records[0]["payload"]["id"] * 8
        payload = {key: value * 8 for key, value in records[0]["payload"].items()}
        write_lines(
            home / "2026" / "09" / f"0{day}" / f"rollout-{thread}.jsonl", codex("session_meta", **payload), *records[1:]
        )
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for number, records in enumerate(FAMILIES["forks"]):
            archive.write(write_lines(tmp_path / "r.jsonl", *records), f"in/{number}.jsonl")
    by_day, zipped = SessionManager(tmp_path / "1"), SessionManager(tmp_path / "2")

    list(importers.import_paths(by_day, [home]))
    list(importers.import_paths(zipped, [tmp_path / "all.zip"]))

    assert spent(by_day) == spent(zipped) == (3470, 3)


def test_sub_agents_that_are_asked_the_same_are_no_copies(tmp_path: Path) -> None:
    asked = [item_text("user", "Plan the trip."), item_text("assistant", "Done."), tokens(110, 110)]
    write_lines(tmp_path / "in" / "a.jsonl", ROOT, *A)
    write_lines(tmp_path / "in" / "b.jsonl", agent("b", "a"), *asked)
    write_lines(tmp_path / "in" / "c.jsonl", agent("c", "a"), *asked)
    write_lines(tmp_path / "in" / "d.jsonl", fork("d", "gone"), *A[:2], tokens(90, 90))
    manager = SessionManager(tmp_path / "sessions")

    list(importers.import_paths(manager, [tmp_path / "in"]))

    assert spent(manager) == (1100 + 110 + 110 + 90, 4)
    assert lineage(manager) == {"a": (None, 0), "b": (None, 0), "c": (None, 0), "d": (None, 0)}


@pytest.mark.parametrize("header", [agent("b", "a"), fork("b", "a"), called("b", "a")])
def test_the_first_count_of_a_thread_does_not_hold_its_parents(tmp_path: Path, header: Record) -> None:
    own = [item_text("user", "Count the boats."), item_text("assistant", "Seven."), tokens(1250, 150)]
    again = [item_text("user", "And now?"), item_text("assistant", "Six."), tokens(1310, 60)]
    write_lines(tmp_path / "in" / "a.jsonl", ROOT, *A)
    plain = write_lines(tmp_path / "in" / "b.jsonl", header, *own, *again)
    told_before = write_lines(tmp_path / "in" / "b2.jsonl", header, tokens(1100, 1100 - 1), *own, *again)

    (first,), _ = importers.read(plain)
    (second,), _ = importers.read(told_before)

    for found in (first, second):
        assert [m["usage"]["total_tokens"] for m in found.messages if "usage" in m] == [150, 60]


def test_a_sub_agent_of_a_sub_agent_names_its_caller(tmp_path: Path) -> None:
    for number, records in enumerate(FAMILIES["sub-agents"]):
        write_lines(tmp_path / "in" / f"{number}.jsonl", *records)
    manager = SessionManager(tmp_path / "sessions")

    list(importers.import_paths(manager, [tmp_path / "in"]))

    by_key = {info.meta["imported_from"]["key"]: info for info in manager.list()}
    caller = by_key["codex:c"].meta["subagent_of"]
    assert caller == {"key": "codex:b", "session": by_key["codex:b"].id}
    assert by_key["codex:c"].tags == ("sub-agent",)


def test_a_fork_of_a_thread_that_was_never_used_is_imported_and_its_parent_refused(tmp_path: Path) -> None:
    write_lines(tmp_path / "in" / "a.jsonl", ROOT, codex("event_msg", type="thread_settings_applied"))
    write_lines(tmp_path / "in" / "d.jsonl", fork("d", "a"), *A)
    manager = SessionManager(tmp_path / "sessions")

    parent, child = importers.import_paths(manager, [tmp_path / "in"])

    assert "holds no conversation" in str(parent.error)
    assert child.result is not None
    assert child.result.added_messages == 2
    assert spent(manager) == (1100, 1)
