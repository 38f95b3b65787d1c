"""Chat files that number their messages within a conversation: each is a session of its own, and every word counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import SessionManager, importers, stats
from sessions_lib.importers.adding.store import Store
from sessions_lib.importers.unique_ids import is_unique
from sessions_lib.store.folder.index.catalog import Catalog
from tests.importers.files import write_lines

TIDE = ("What is the tide in Ember?", "2.1 m")
BOAT = ("Name a boat.", "Gull")
COUNT = ("Count.", "One.", "More.", "Two.")


def numbered(*texts: str, ids: str = "m{}") -> list[dict[str, Any]]:
    return [
        {"id": ids.format(number), "role": "assistant" if number % 2 == 0 else "user", "content": text}
        for number, text in enumerate(texts, 1)
    ]


def document(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def bring(manager: SessionManager, *paths: Path) -> list[str]:
    """What became of each conversation."""
    results = [step.result for step in importers.import_paths(manager, paths)]
    return [outcome.change for result in results if result for outcome in result.outcomes]


def texts(manager: SessionManager) -> list[tuple[str, ...]]:
    """What each session says, in no order that counts."""
    return sorted(tuple(m["content"] for m in manager.open(info.id).messages) for info in manager.list())


@pytest.mark.parametrize("ids", ["m{}", "{}", "msg-{}", "conversation-message-{}", "0000000000000000000{}"])
@pytest.mark.parametrize("at_once", [True, False])
def test_conversations_that_are_numbered_alike_are_sessions_of_their_own(
    tmp_path: Path, ids: str, at_once: bool
) -> None:
    files = [
        document(tmp_path / f"{number}.json", numbered(*said, ids=ids))
        for number, said in enumerate((TIDE, BOAT, COUNT))
    ]
    manager = SessionManager(tmp_path / "sessions")

    changes = [one for group in ([files] if at_once else [[file] for file in files]) for one in bring(manager, *group)]

    assert changes == ["new", "new", "new"]
    assert texts(manager) == [COUNT, BOAT, TIDE]
    assert stats.figures(Catalog(manager.folder)).messages == 8
    assert bring(manager, *files) == []
    assert bring(manager, document(tmp_path / "copy.json", numbered(*BOAT, ids=ids))) == ["unchanged"]


@pytest.mark.parametrize("wrap", ["list of lists", "lines"])
def test_conversations_of_one_file_are_told_apart_too(tmp_path: Path, wrap: str) -> None:
    many = [{"messages": numbered(*said)} for said in (TIDE, BOAT, COUNT)]
    path = tmp_path / "all.json"
    manager = SessionManager(tmp_path / "sessions")

    bring(manager, document(path, many) if wrap == "list of lists" else write_lines(path, *many))

    assert texts(manager) == [COUNT, BOAT, TIDE]
    assert stats.figures(Catalog(manager.folder)).messages == 8


def test_sessions_of_another_folder_that_are_called_alike_are_told_apart(tmp_path: Path) -> None:
    manager = SessionManager(tmp_path / "sessions")
    changes = []
    for place, said in {"east": TIDE, "west": BOAT, "north": COUNT}.items():
        blocks = [{**message, "content": [{"type": "text", "text": message["content"]}]} for message in numbered(*said)]
        path = write_lines(tmp_path / place / "session-1.jsonl", *blocks)
        path.with_name("session-1.meta.json").write_text('{"id": "session-1", "createdAt": 1772359200000}')
        changes += bring(manager, path)

    assert changes == ["new", "new", "new"]
    assert texts(manager) == [COUNT, BOAT, TIDE]
    assert stats.figures(Catalog(manager.folder)).messages == 8


def test_conversations_of_chatgpt_without_an_id_are_told_apart_by_their_time(tmp_path: Path) -> None:
    def tree(moment: float, *said: str) -> dict[str, Any]:
        nodes: dict[str, Any] = {}
        for number, text in enumerate(said):
            author = {"role": "assistant" if number % 2 else "user"}
            message = {"author": author, "content": {"content_type": "text", "parts": [text]}, "recipient": "all"}
            nodes[f"n{number}"] = {"message": message, "parent": f"n{number - 1}" if number else None}
        return {"create_time": moment, "mapping": nodes, "current_node": f"n{len(said) - 1}"}

    manager = SessionManager(tmp_path / "sessions")
    files = [
        document(tmp_path / f"{n}.json", [tree(n, *said)]) for n, said in enumerate((TIDE, BOAT, COUNT), 1772359200)
    ]

    assert [change for file in files for change in bring(manager, file)] == ["new", "new", "new"]
    assert texts(manager) == [COUNT, BOAT, TIDE]


def test_only_chats_that_may_be_the_same_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manager = SessionManager(tmp_path / "sessions")
    files = [document(tmp_path / f"{n}.json", numbered("Hello", f"r{n}", f"q{n}")) for n in range(30)]
    read = []
    whole = Store.read
    monkeypatch.setattr(Store, "read", lambda self, known, **how: (read.append(known.id), whole(self, known, **how))[1])

    assert bring(manager, *files) == ["new"] * 30
    assert len(read) < 30


def test_a_numbered_conversation_grows_by_its_own_file_only(tmp_path: Path) -> None:
    manager = SessionManager(tmp_path / "sessions")
    file = document(tmp_path / "a.json", numbered(*COUNT[:2]))
    other = document(tmp_path / "b.json", numbered("Count.", "Uno.", "More.", "Dos."))

    assert bring(manager, file, other) == ["new", "new"]
    assert bring(manager, document(file, numbered(*COUNT))) == ["grown"]

    assert texts(manager) == [COUNT, ("Count.", "Uno.", "More.", "Dos.")]


def test_a_copy_that_says_something_else_under_a_unique_id_is_another_session(tmp_path: Path) -> None:
    ids = "3f2b1c00-0000-4000-8000-00000000000{}"
    manager = SessionManager(tmp_path / "sessions")

    bring(manager, document(tmp_path / "a.json", numbered(*TIDE, ids=ids)))
    bring(manager, document(tmp_path / "b.json", numbered(TIDE[0], "3.4 m", ids=ids)))

    assert texts(manager) == [TIDE, (TIDE[0], "3.4 m")]
    assert [m["id"] for info in manager.list() for m in manager.open(info.id).messages] == [
        ids.format(number) for number in (1, 2, 1, 2)
    ]
    assert stats.figures(Catalog(manager.folder)).messages == 3


def test_what_was_deleted_hides_no_other_conversation_of_the_same_numbers(tmp_path: Path) -> None:
    manager = SessionManager(tmp_path / "sessions")
    tide, boat = (document(tmp_path / f"{said[1]}.json", numbered(*said)) for said in (TIDE, BOAT))
    bring(manager, tide)
    manager.delete(manager.list()[0].id)

    assert bring(manager, tide, boat) == ["new"]
    assert texts(manager) == [BOAT]


def test_what_was_deleted_hides_no_conversation_that_only_starts_alike(tmp_path: Path) -> None:
    hello, other = ([{"role": "user", "content": "Hello"}, {"role": "assistant", "content": text}] for text in "ab")
    files = [document(tmp_path / f"{number}.json", said) for number, said in enumerate((hello, other))]
    manager = SessionManager(tmp_path / "sessions")
    bring(manager, files[0])
    manager.delete(manager.list()[0].id)

    assert bring(manager, document(files[0], [*hello, {"role": "user", "content": "More."}]), files[1]) == [
        "deleted",
        "new",
    ]
    assert texts(manager) == [("Hello", "b")]


def test_what_is_asked_for_again_brings_back_no_chat_that_only_starts_alike(tmp_path: Path) -> None:
    files = [document(tmp_path / f"{text}.json", numbered("Hello", text)) for text in "ab"]
    manager = SessionManager(tmp_path / "sessions")
    bring(manager, *files)
    for info in manager.list():
        manager.delete(info.id)

    (step,) = importers.import_paths(manager, files[:1], again=True)

    assert [outcome.change for outcome in step.result.outcomes] == ["restored"]  # type: ignore[union-attr]  # it is there
    assert texts(manager) == [("Hello", "a")]


def test_what_was_deleted_before_ids_were_unique_stays_deleted(tmp_path: Path) -> None:
    file = document(tmp_path / "a.json", numbered(*TIDE))
    manager = earlier(tmp_path / "sessions", file, numbered(*TIDE))
    manager.delete("tide")

    assert bring(manager, file) == ["deleted"]


def earlier(folder: Path, file: Path, said: list[dict[str, Any]]) -> SessionManager:
    """A folder as version 1 of the import left it: numbers kept, the conversation named after the first of them."""
    manager = SessionManager(folder)
    session = manager.create("Tide", session_id="tide")
    session.extend(said)
    origin = {"format": "openai-chat", "path": str(file), "key": "chat:m1", "conversation": "chat:m1"}
    session.update_meta({"imported_from": {**origin, "version_of_import": 1}})
    write_lines(folder / "tide.jsonl", *said)
    return manager


def test_a_session_that_was_imported_with_its_numbers_is_known_again_and_grows(tmp_path: Path) -> None:
    file = document(tmp_path / "a.json", numbered(*COUNT[:2]))
    manager = earlier(tmp_path / "sessions", file, numbered(*COUNT[:2]))

    assert bring(manager, file) == ["unchanged"]
    assert bring(manager, document(tmp_path / "b.json", numbered(*BOAT))) == ["new"]
    assert bring(manager, document(file, numbered(*COUNT))) == ["grown"]

    assert texts(manager) == [COUNT, BOAT]


def test_what_was_appended_to_another_conversation_comes_as_its_own(tmp_path: Path) -> None:
    mixed = numbered(*TIDE, *COUNT[2:])
    file = document(tmp_path / "a.json", numbered(*COUNT))
    manager = earlier(tmp_path / "sessions", file, mixed)

    assert bring(manager, file) == ["new"]
    assert COUNT in texts(manager)
    assert manager.open("tide").messages == mixed


def test_numbers_are_kept_beside_the_ids_that_replace_them(tmp_path: Path) -> None:
    (found,), _ = importers.read(document(tmp_path / "a.json", [*numbered(*TIDE), {"role": "user", "content": "q"}]))

    assert [m.get("source_id") for m in found.messages] == ["m1", "m2", None]
    assert [str(m.get("id"))[:3] for m in found.messages] == ["ch_", "ch_", "Non"]


@pytest.mark.parametrize(
    ("message_id", "is_so"),
    [
        ("3f2b1c00-0000-4000-8000-000000000001", True),
        ("msg_0a1b2c3d4e5f60718293a4b5", True),
        ("chatcmpl-8a9Bq2L7xY0pTz3KdWm5", True),
        ("aB3dEfGh1jK2mN4p", True),
        ("1", False),
        ("m1", False),
        ("message_000000000000000017", False),
        ("1772359200000123", False),
        ("conversation2message10reply3", False),
    ],
)
def test_an_id_is_unique_only_where_nobody_else_would_choose_it(message_id: str, is_so: bool) -> None:
    assert is_unique(message_id) is is_so
