"""ChatGPT's export: the branch that is shown is the session, the others are its forks."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from sessions_lib import importers
from sessions_lib.messages import tool_calls
from tests.importers.files import said


def node(key: str, parent: str | None, role: str | None, parts: Any, **more: Any) -> dict[str, Any]:
    if role is None:
        return {"id": key, "message": None, "parent": parent, "children": []}
    said_as = parts if isinstance(parts, dict) else {"content_type": "text", "parts": parts}
    message = {"id": key, "author": {"role": role}, "content": said_as, "recipient": "all", "create_time": 1772359200.5}
    return {"id": key, "message": {**message, **more}, "parent": parent, "children": []}


def conversation(*nodes: dict[str, Any], current: str | None = None, **more: Any) -> dict[str, Any]:
    for one in nodes:
        one["children"] = [other["id"] for other in nodes if other["parent"] == one["id"]]
    mapping = {one["id"]: one for one in nodes}
    return {"title": "Tides", "conversation_id": "c1", "mapping": mapping, "current_node": current, **more}


def write(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_the_visible_branch_comes_first_and_the_other_is_its_fork(tmp_path: Path) -> None:
    tree = conversation(
        node("root", None, None, []),
        node("u1", "root", "user", ["Tide?"]),
        node("a1", "u1", "assistant", ["Low."], metadata={"model_slug": "gpt-4o"}),
        node("a2", "u1", "assistant", ["High."]),
        current="a1",
    )

    (main, other), report = importers.read(write(tmp_path / "conversations.json", [tree]))

    assert said(main.messages) == [("user", "Tide?"), ("assistant", "Low.")]
    assert said(other.messages) == [("user", "Tide?"), ("assistant", "High.")]
    assert (main.key, main.title, other.parent_key, other.shared) == ("chatgpt:c1", "Tides", "chatgpt:c1", 1)
    assert main.messages[0]["id"] == other.messages[0]["id"]
    assert (main.messages[1]["model"], main.messages[1]["timestamp"]) == ("gpt-4o", "2026-03-01T10:00:00.500Z")
    assert report.skipped == {"node without a message": 1}


def test_the_model_of_an_answer_is_its_own_else_that_of_the_conversation(tmp_path: Path) -> None:
    tree = conversation(
        node("u1", None, "user", ["Tide?"]),
        node("a1", "u1", "assistant", ["Low."], metadata={"model_slug": "o4-mini"}),
        node("a2", "a1", "assistant", ["High."], metadata={}),
        node("a3", "a2", "assistant", ["Both."], metadata={"default_model_slug": "gpt-5-2"}),
        default_model_slug="gpt-5-thinking",
        current="a3",
    )
    auto = conversation(
        node("u1", None, "user", ["Tide?"]),
        node("a1", "u1", "assistant", ["Low."]),
        default_model_slug="auto",
        conversation_id="c2",
    )

    named, unnamed = importers.read(write(tmp_path / "conversations.json", [tree, auto]))[0]

    assert [m.get("model") for m in named.messages] == [None, "o4-mini", "gpt-5-thinking", "gpt-5-2"]
    assert [m.get("model") for m in unnamed.messages] == [None, None]


def test_pictures_stay_as_pointers_between_the_texts(tmp_path: Path) -> None:
    pointer = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_1", "width": 8}
    heard = {"content_type": "audio_transcription", "text": "and this?"}
    mixed = {"content_type": "multimodal_text", "parts": [pointer, "What is this?", heard]}
    tree = conversation(node("u1", None, "user", mixed), node("a1", "u1", "assistant", ["A boat."]), current="a1")

    (found,), _ = importers.read(write(tmp_path / "c.json", tree))

    assert found.messages[0]["content"] == [
        {"type": "image_asset_pointer", **pointer},
        {"type": "text", "text": "What is this?"},
        {"type": "text", "text": "and this?"},
    ]


PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
JPEG = b"\xff\xd8\xff\xe0" + bytes(8)
WEBP = b"RIFF\x10\x00\x00\x00WEBPVP8 "


def pictures(*pointers: str) -> dict[str, Any]:
    parts = [{"content_type": "image_asset_pointer", "asset_pointer": pointer} for pointer in pointers]
    mixed = {"content_type": "multimodal_text", "parts": [*parts, "What are these?"]}
    return conversation(node("u1", None, "user", mixed), current="u1")


def urls(found: importers.Imported) -> list[str]:
    return [part["image_url"]["url"][:22] for part in found.messages[0]["content"] if part["type"] == "image_url"]


ASSETS = {
    "file-AbC1-photo.png": PNG,
    "dalle-generations/file-Def2-0b1c.webp": WEBP,
    "file_00aa-sanitized.dat": JPEG,
}
POINTERS = ("file-service://file-AbC1", "file-service://file-Def2", "sediment://file_00aa")
DATA = ["data:image/png;base64,", "data:image/webp;base64", "data:image/jpeg;base64"]


def test_pictures_that_a_folder_or_zip_holds_are_taken_in(tmp_path: Path) -> None:
    archive = tmp_path / "export.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for name, data in ASSETS.items():
            file.writestr(name, data)
        file.writestr("conversations-000.json", json.dumps([pictures(*POINTERS)]))
    for name, data in ASSETS.items():
        (tmp_path / "unpacked" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "unpacked" / name).write_bytes(data)
    unpacked = write(tmp_path / "unpacked" / "conversations.json", [pictures(*POINTERS)])

    (zipped,), report = importers.read(archive)
    (found,), _ = importers.read(unpacked)

    assert urls(zipped) == urls(found) == DATA
    assert found.messages[0]["content"][0]["asset_pointer"] == "file-service://file-AbC1"
    assert report.warnings == []


def test_pictures_that_are_not_there_or_no_pictures_stay_pointers_and_are_named(tmp_path: Path) -> None:
    (tmp_path / "file-AbC1-photo.png").write_bytes(b"<html>")
    pointers = [f"file-service://file-N{number}" for number in range(5)]
    path = write(tmp_path / "c.json", [pictures("file-service://file-AbC1", *pointers)])

    (found,), report = importers.read(path)

    assert urls(found) == []
    assert found.messages[0]["content"][0]["asset_pointer"] == "file-service://file-AbC1"
    assert report.skipped == {"picture that stays a pointer": 6}
    assert report.warnings == [
        "pictures are pointers still, no such picture is beside the conversations: "
        "file-AbC1, file-N0, file-N1 and 3 more"
    ]


def test_files_that_a_person_attached_keep_their_names(tmp_path: Path) -> None:
    attached = [{"id": "file-9", "name": "tides.pdf", "mimeType": "application/pdf"}]
    tree = conversation(node("u1", None, "user", ["Read it."], metadata={"attachments": attached}), current="u1")

    (found,), _ = importers.read(write(tmp_path / "c.json", [tree]))

    assert found.messages[0]["source"] == {"attachments": attached}


def test_an_answer_to_a_tool_is_a_call_that_the_tool_answers(tmp_path: Path) -> None:
    tree = conversation(
        node("u1", None, "user", ["Draw."]),
        node("a1", "u1", "assistant", {"content_type": "code", "text": "print(1)"}, recipient="python"),
        node(
            "t1",
            "a1",
            "tool",
            {"content_type": "execution_output", "text": "1"},
            author={"role": "tool", "name": "python"},
        ),
        node("a2", "t1", "assistant", ["One."]),
        current="a2",
    )

    (found,), _ = importers.read(write(tmp_path / "c.json", tree))

    assert said(found.messages) == [
        ("user", "Draw."),
        ("assistant", [None, "python()"]),
        ("tool", "1"),
        ("assistant", "One."),
    ]
    assert found.messages[1]["tool_calls"][0]["function"]["arguments"] == '{"input":"print(1)"}'
    assert not tool_calls.pair(found.messages).unanswered
    assert not tool_calls.pair(found.messages).orphans


def test_custom_instructions_and_hidden_nodes_are_not_said(tmp_path: Path) -> None:
    profile = {"content_type": "user_editable_context", "user_profile": "An SRE.", "user_instructions": "Be short."}
    tree = conversation(
        node("s1", None, "system", [""], metadata={"is_visually_hidden_from_conversation": True}),
        node("x1", "s1", "user", profile),
        node("u1", "x1", "user", ["Tide?"]),
        node(
            "h1",
            "u1",
            "assistant",
            {"content_type": "thoughts", "thoughts": [{"summary": "Look", "content": "It is low."}]},
        ),
        node("r1", "h1", "assistant", {"content_type": "reasoning_recap", "content": "Thought for 2 s"}),
        node("a1", "r1", "assistant", ["Low."]),
        current="a1",
    )

    (found,), report = importers.read(write(tmp_path / "c.json", tree))

    assert said(found.messages) == [("user", "Tide?"), ("assistant", "Low.")]
    assert found.messages[1]["reasoning_content"] == "Look\nIt is low."
    assert found.meta == {"custom_instructions": {"user_profile": "An SRE.", "user_instructions": "Be short."}}
    assert report.skipped == {"hidden system": 1, "custom instructions": 1, "reasoning recap": 1}


def test_a_conversation_that_is_damaged_never_stops_the_others(tmp_path: Path) -> None:
    good = conversation(node("u1", None, "user", ["Tide?"]), current="u1")
    broken = {"title": "Broken", "conversation_id": "c2"}

    found, report = importers.read(write(tmp_path / "c.json", [broken, 7, good]))

    assert [one.key for one in found] == ["chatgpt:c1"]
    assert report.warnings == [
        "conversation 'Broken' has no messages in it and was left out",
        "conversation number 2 has no messages in it and was left out",
    ]


def test_the_same_node_name_in_two_conversations_is_two_messages(tmp_path: Path) -> None:
    first = conversation(node("u1", None, "user", ["Tide?"]), current="u1")
    second = conversation(node("u1", None, "user", ["Wind?"]), current="u1", conversation_id="c2")

    (one, other), _ = importers.read(write(tmp_path / "c.json", [first, second]))

    assert one.messages[0]["id"] != other.messages[0]["id"]
