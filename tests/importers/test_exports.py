"""Exports of chat programs: claude.ai, Open WebUI and LibreChat, whose conversations are trees."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import importers, messages
from sessions_lib.errors import ImportRefused
from sessions_lib.messages import content
from sessions_lib.store.manager import SessionManager
from tests.importers.files import CORPUS, DATA, said

FILES = sorted(path for tool in ("claude-ai", "open-webui", "librechat") for path in (DATA / tool).glob("*.json"))


def test_claude_ai_gives_the_line_that_ends_last_and_the_edit_before_as_a_fork() -> None:
    (shown, edited, old), report = importers.read(DATA / "claude-ai/conversations.json")

    assert said(shown.messages) == [
        (
            "user",
            [
                {"type": "text", "text": "How high is the tide at Ember?"},
                {"type": "text", "text": "tables.txt:\n\nEmber noon 2.1"},
                {"type": "file_link", "text": "File: harbour.png"},
            ],
        ),
        ("assistant", ["Let me see.", "web_search()"]),
        ("tool", "2.1 m at noon"),
        ("assistant", "It is 2.1 metres at noon."),
        ("user", "And at Cape Ember?"),
        ("assistant", [None, "repl()"]),
        ("tool", "division by zero"),
        (
            "assistant",
            [
                {"type": "text", "text": "I cannot say."},
                {"type": "unknown kind", "kind": "shout_block", "text": "Mind the rocks."},
            ],
        ),
    ]
    assert shown.title == "Tides at Ember"
    assert shown.messages[1]["reasoning_content"] == "Look it up."
    assert shown.messages[1]["tool_calls"][0]["function"]["arguments"] == '{"query":"tide Ember"}'
    assert shown.messages[6]["is_error"] is True
    assert shown.messages[0]["timestamp"] == "2026-09-14T10:00:01.000Z"
    assert said(edited.messages[edited.shared :]) == [("user", "And at Gull Point?"), ("assistant", "1.9 metres.")]
    assert (edited.parent_key, edited.shared) == (shown.key, 4)
    assert (said(old.messages), old.title) == (
        [("user", "Only text, as before 2025."), ("assistant", "So it was.")],
        None,
    )
    assert report.unknown == {"shout_block": 1}


def test_open_webui_takes_an_answers_steps_once_and_other_models_as_forks() -> None:
    (shown, other), _ = importers.read(DATA / "open-webui/chats.json")

    assert said(shown.messages)[1:] == [
        ("assistant", "The bowline."),
        ("user", "Look it up."),
        ("assistant", [None, "look()"]),
        ("tool", "page 12"),
        ("assistant", "Page 12."),
    ]
    assert "Bowline: a loop" in content.text(shown.messages[0])
    assert shown.messages[1]["reasoning_content"] == "A loop.\nThe bowline."
    assert shown.messages[3]["reasoning_content"] == "In the book."
    assert [m["usage"]["total_tokens"] for m in shown.messages if "usage" in m] == [28, 49]
    assert (shown.title, shown.tags, shown.meta) == ("Knots", ("sailing",), {"system": "Answer like a sailor."})
    assert (said(other.messages)[-1], other.messages[-1]["model"]) == (("assistant", "The cleat hitch."), "mistral")
    assert (other.parent_key, other.shared) == (shown.key, 1)


def test_open_webui_calls_that_stand_in_the_text_are_calls(tmp_path: Path) -> None:
    chats = json.loads((DATA / "open-webui/chats.json").read_text())
    del chats[0]["chat"]["history"]["messages"]["a3"]["output"]
    path = tmp_path / "chats.json"
    path.write_text(json.dumps(chats))

    (shown, _), _ = importers.read(path)

    assert said(shown.messages)[3:] == [("assistant", [None, "look()"]), ("tool", "page 12"), ("assistant", "Page 12.")]
    assert json.loads(shown.messages[3]["tool_calls"][0]["function"]["arguments"]) == {"q": "bowline"}


def test_librechat_walks_nested_children_and_names_calls_and_thoughts() -> None:
    (shown, other), _ = importers.read(DATA / "librechat/conversation.json")

    assert said(shown.messages) == [
        ("user", "Name a boat."),
        ("assistant", [None, "boats()"]),
        ("tool", "dory"),
        ("assistant", "A dory."),
        ("user", "Another?"),
        ("assistant", "A yawl, half"),
    ]
    assert shown.messages[1]["reasoning_content"] == "Ask the list."
    assert shown.messages[-1]["interrupted"] is True
    assert (shown.title, shown.meta, shown.messages[1]["model"]) == ("Boats", {"system": "Be short."}, "gpt-5.6-luna")
    assert (said(other.messages), other.shared) == ([("user", "Name a boat."), ("assistant", "Skiff.")], 1)


def test_a_deeply_nested_librechat_conversation_is_read(tmp_path: Path) -> None:
    flat: list[dict[str, Any]] = [
        {
            "messageId": f"n{n}",
            "parentMessageId": f"n{n - 1}" if n else None,
            "isCreatedByUser": n % 2 == 0,
            "text": f"t{n}",
        }
        for n in range(3000)
    ]
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"conversationId": "c1", "messages": flat}))

    (found,), _ = importers.read(path)

    assert [message["content"] for message in found.messages] == [f"t{n}" for n in range(3000)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_an_export_is_imported_once_searched_and_sent(tmp_path: Path, path: Path) -> None:
    manager = SessionManager(tmp_path / "sessions")

    first = list(importers.import_paths(manager, [path]))
    path.touch()  # looked at again
    again = list(importers.import_paths(manager, [path]))

    assert not [step.error for step in [*first, *again] if step.error]
    assert sum(step.result.added_messages for step in again if step.result) == 0
    for found in importers.read(path)[0]:
        messages.for_request([*found.messages, {"role": "user", "content": "And now?"}])
        for message in found.messages:
            for part in content.text(message).split("\n\n"):
                assert not part.strip() or manager.search(f'"{part.split(chr(10))[0][:40]}"')


@pytest.mark.parametrize("tool", ["claude-ai-export", "open-webui", "librechat"])
def test_every_text_of_the_corpus_is_in_a_session(tool: str) -> None:
    for path in sorted((CORPUS / tool).glob("*.json")):
        found, _ = importers.read(path)
        whole = "\n".join(content.text(message) for one in found for message in one.messages)

        expected = [text for text in _texts(json.loads(path.read_text())) if text.strip()]

        assert expected or "invalid" in path.name
        assert [text for text in expected if text.strip() not in whole] == []


def _texts(value: Any) -> list[str]:
    """What was said in an export, wherever it stands: the text of messages, by their author."""
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    if not isinstance(value, dict):
        return []
    own = []
    if (value.keys() & {"sender", "role", "isCreatedByUser"} or value.get("type") == "text") and isinstance(
        value.get("text", value.get("content")), str
    ):
        own = [value.get("text", value.get("content"))]
    return own + [text for item in value.values() for text in _texts(item)]


@pytest.mark.parametrize("document", [{"chat_messages": []}, {"conversationId": "c", "messages": []}])
def test_an_export_without_a_word_is_refused_and_stores_nothing(tmp_path: Path, document: object) -> None:
    path = tmp_path / "empty.json"
    path.write_text(json.dumps(document))
    manager = SessionManager(tmp_path / "sessions")

    (step,) = importers.import_paths(manager, [path])

    assert isinstance(step.error, ImportRefused)
    assert manager.list() == []
