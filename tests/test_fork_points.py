"""A long session is forked without being read, and the fork is the same as if it had been."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import SessionManager, fork_points
from sessions_lib.errors import ForkPointForbidden
from tests.record import GULL, LIGHTHOUSES, TALLER, call, result, write


def with_ids(*messages: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**message, "id": f"m{number}"} for number, message in enumerate(messages)]


CONVERSATION = with_ids(
    LIGHTHOUSES, GULL, TALLER, call("c1", "c2"), result("c1"), result("c2"), GULL, TALLER, call("c3")
)


def outcome(manager: SessionManager, fork: Any) -> Any:
    try:
        child = fork()
    except ForkPointForbidden as error:
        return error.allowed
    raw = (manager.folder / f"{child.id}.jsonl").read_bytes() if child.messages else b""
    meta = {key: child.meta.get(key) for key in ("title", "forked_from", "tags")}
    manager.delete(child.id)
    return raw, meta, child.report.left_out, child.inherited


@pytest.mark.parametrize("at", [None, *range(10)])
def test_the_fast_fork_is_the_slow_fork(tmp_path: Path, at: int | None) -> None:
    manager = SessionManager(tmp_path)
    write(tmp_path / "a.jsonl", *CONVERSATION[:2], "damaged", *CONVERSATION[2:])

    fast = outcome(manager, lambda: manager.fork("a", at=at))
    slow = outcome(manager, lambda: manager.open("a").fork(at=at))

    assert fast == slow


def test_a_long_session_is_forked_without_reading_its_start(tmp_path: Path) -> None:
    many = with_ids(*(m for number in range(200) for m in ({"role": "user", "content": f"q{number}"}, GULL)))
    write(tmp_path / "a.jsonl", *many)
    manager = SessionManager(tmp_path)
    manager.list()

    point = fork_points.find(manager.catalog, "a", None)
    middle = fork_points.find(manager.catalog, "a", 201)

    assert point is not None
    assert (point.at, point.size, point.message_id, point.left_out) == (
        400,
        (tmp_path / "a.jsonl").stat().st_size,
        "m399",
        0,
    )
    assert middle is not None
    assert (middle.at, middle.message_id, middle.left_out) == (201, "m200", 199)


def test_what_the_catalog_cannot_say_is_left_to_the_slow_way(tmp_path: Path) -> None:
    manager = SessionManager(tmp_path)
    write(tmp_path / "noid.jsonl", LIGHTHOUSES, GULL)
    write(tmp_path / "glued.jsonl", json.dumps(CONVERSATION[0]) + json.dumps(CONVERSATION[1]), CONVERSATION[2])
    write(tmp_path / "results.jsonl", *with_ids(call("c"), *(result("c") for _ in range(70))))

    assert fork_points.find(manager.catalog, "noid", None) is None
    assert fork_points.find(manager.catalog, "glued", 1) is None
    assert fork_points.find(manager.catalog, "results", None) is None
    assert len(manager.fork("noid").messages) == 2
    assert len(manager.fork("glued", at=1).messages) == 1
    assert len(manager.fork("results").messages) == 71


def test_a_session_that_grew_a_moment_ago_is_forked_whole(tmp_path: Path) -> None:
    manager = SessionManager(tmp_path)
    session = manager.create("a")
    session.append(LIGHTHOUSES)
    assert len(manager.fork("a").messages) == 1

    session.append(GULL)

    assert len(manager.fork("a").messages) == 2
