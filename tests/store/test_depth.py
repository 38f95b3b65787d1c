"""How deep a message may be nested: 200 levels, refused in words when it is written; what is deeper is read or told,
from however deep a call."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import SessionManager
from sessions_lib.errors import InvalidMessage
from sessions_lib.store.folder import jsonl
from tests.record import GULL, LIGHTHOUSES, check, repair


def nested(depth: int, kind: str = "lists") -> Any:
    """A message that is ``depth`` objects and lists deep."""
    value: Any = "x"
    for number in range(depth - 1):
        value = [value] if kind == "lists" or (kind == "both" and number % 2) else {"k": value}
    return {"role": "user", "content": value}


def deeper(calls: int, function: Callable[[], Any]) -> Any:
    """What ``function`` gives when it is called from ``calls`` calls further down."""
    return function() if not calls else deeper(calls - 1, function)


@pytest.mark.parametrize("kind", ["lists", "objects", "both"])
def test_a_message_of_200_levels_is_written_and_one_of_201_refused_in_words(tmp_path: Path, kind: str) -> None:
    manager = SessionManager(tmp_path)
    session = manager.create("a")

    session.append(nested(200, kind))
    for depth in (201, 950, 5_000):
        with pytest.raises(InvalidMessage, match="nested more than 200 levels deep"):
            session.append(nested(depth, kind))

    assert deeper(600, lambda: manager.open(session.id).messages)[0]["content"] == nested(200, kind)["content"]
    assert len(session.messages) == len(manager.open(session.id).messages) == 1


def test_what_another_program_wrote_is_read_alike_from_any_depth_of_calls(tmp_path: Path) -> None:
    for depth in (100, 201, 500, 900, 950, 990, 1_100, 100_000):
        folder = tmp_path / str(depth)
        folder.mkdir()
        text = f'{{"role":"user","content":{"[" * (depth - 1)}{"]" * (depth - 1)}}}\n'
        path = folder / "a.jsonl"
        path.write_text(json.dumps(LIGHTHOUSES) + "\n" + text + json.dumps(GULL) + "\n", encoding="utf-8")

        seen = [deeper(calls, partial(jsonl.read, path)) for calls in (0, 300, 600, 800)]

        roles = [[message["role"] for message in lines.messages] for lines in seen]
        told = [[(damage.line, damage.kind) for damage in lines.damaged] for lines in seen]
        assert roles == [roles[0]] * 4, depth
        assert told == [told[0]] * 4, depth
        assert (roles[0], told[0]) in (
            (["user", "user", "assistant"], []),
            (["user", "assistant"], [(2, "too deep")]),
        ), depth
        before = path.read_bytes()
        deeper(600, partial(repair, folder, "a", write=True))
        assert path.read_bytes() == before, depth


def test_a_line_too_deep_to_be_read_is_told_and_stays(tmp_path: Path) -> None:
    deep = '{"role":"user","content":' + "[" * 100_000 + "]" * 100_000 + "}"
    path = tmp_path / "a.jsonl"
    good = f"{json.dumps(LIGHTHOUSES)}\n"
    path.write_text(f'{good}{{"role": 7}}\n{deep}\n{json.dumps(GULL)}\n', encoding="utf-8")

    before = [(fault.line, fault.kind) for fault in check(tmp_path, "a") if fault.line]
    repair(tmp_path, "a", write=True)

    assert before == [(2, "not a message"), (3, "too deep")]
    assert path.read_text(encoding="utf-8") == f"{good}{deep}\n{json.dumps(GULL)}\n"
    assert [(one.line, one.kind) for one in check(tmp_path, "a")] == [(2, "too deep")]
    assert "a.jsonl:2: too deep: nested too deeply to be read" in str(check(tmp_path, "a")[0])


def test_a_tool_result_or_a_title_nested_too_deeply_is_refused_in_words(tmp_path: Path) -> None:
    session = SessionManager(tmp_path).create("a")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}

    with pytest.raises(InvalidMessage, match="nested more than 200 levels deep"):
        session.update_meta({"notes": nested(250)})

    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before
