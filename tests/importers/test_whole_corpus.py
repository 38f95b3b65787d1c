"""The whole corpus, file by file: what a person would expect is in a session and found, and nothing is invented.

What to expect is taken from the files by plain code of this module alone. Tokens are counted in ``test_corpus`` and
``test_agents``, here again for what those leave out.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import importers
from sessions_lib.errors import ImportRefused
from sessions_lib.messages import content
from sessions_lib.store.manager import SessionManager
from tests.importers.files import CORPUS, corpus

SUPPORTED = (
    *("claude-code", "codex", "pi", "chatgpt-export", "claude-ai-export", "gemini", "opencode", "open-webui"),
    *("librechat", "openai-agents-sqlite", "openai-chat", "openai-finetune"),
)
REFUSED = {
    "aider/aider-chat-history-head.md": "an aider chat history",
    "chatbotui/chatbotui-export.json": "a ChatbotUI export",
    "gptme/agentsview-hello/conversation.jsonl": "a gptme conversation",
    "sharegpt/llamafactory-glaive-toolcall-en.json": "ShareGPT training data",
    "vibe/agentsview-with-tools/messages.jsonl": "a Mistral Vibe session",
}
# What a program puts into a prompt's record: no person typed it.
_TYPED_BY_NOBODY = ("<", "Caveat:", "[Request interrupted", "# AGENTS.md", "[SYSTEM NOTIFICATION", "Another Claude")
_OURS = ("Ran `", "File: ", "Edited ", "```")  # what an importer puts before what a tool said


def values(path: Path) -> list[Any]:
    """The JSON values of a file, one behind the other, and those in the texts of a database."""
    if path.suffix == ".db":
        with sqlite3.connect(f"file:{path}?immutable=1", uri=True) as connection:
            return [json.loads(row[0]) for row in connection.execute("SELECT message_data FROM agent_messages")]
    raw = path.read_text(encoding="utf-8", errors="replace")
    try:
        return [json.loads(raw)]
    except ValueError:
        pass
    found = []
    for line in raw.split("\n"):
        at, line = 0, line.strip()
        try:
            while at < len(line):
                value, at = json.JSONDecoder().raw_decode(line, at)
                found.append(value)
        except ValueError:
            continue
    return found


def strings(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            waiting += [*one.values(), *one]
        elif isinstance(one, list):
            waiting += one


def texts_of(said: Any) -> list[str]:
    """The texts of a content: a string, or the parts with a text."""
    if isinstance(said, str):
        return [said]
    parts = said if isinstance(said, list) else []
    return [
        p if isinstance(p, str) else p["text"] for p in parts if isinstance(p, str) or isinstance(p.get("text"), str)
    ]


def expected(tool: str, path: Path) -> list[str]:
    """What persons and models said, as far as it is plain to see in the file."""
    found: list[str] = []
    for value in values(path):
        if tool in ("claude-code", "pi"):
            for record in value.get("loglines", [value]) if isinstance(value, dict) else ():
                message = record.get("message") if isinstance(record, dict) else None
                if isinstance(message, dict) and not record.get("isMeta") and message.get("model") != "<synthetic>":
                    found += texts_of(message.get("content")) if message.get("role") in ("user", "assistant") else []
        elif tool == "codex":
            payload = value.get("payload", value) if isinstance(value, dict) else {}
            if payload.get("type") == "message" and payload.get("role") == "assistant":
                found += texts_of(payload.get("content"))
            if payload.get("type") == "user_message":
                found.append(payload["message"])
        elif tool == "chatgpt-export":
            nodes = [node for c in value for node in c.get("mapping", {}).values() if node.get("message")]
            for message in (node["message"] for node in nodes):
                if message["author"]["role"] in ("user", "assistant"):
                    found += [part for part in message["content"].get("parts", []) if isinstance(part, str)]
        elif tool == "claude-ai-export":
            for message in (m for c in value for m in c["chat_messages"]):
                found += texts_of(message.get("content")) or [message["text"]]
        elif tool == "gemini":
            found += [text for m in value["messages"] for text in texts_of(m["content"])]
        elif tool == "open-webui":
            found += [m["content"] for m in value["history"]["messages"].values()]
        elif tool == "librechat":
            found += nested(value["messages"])
        elif tool == "opencode":
            parts = sorted(path.parents[2].glob("part/*/*.json"))
            of_session = [
                part for part in map(json.loads, map(Path.read_text, parts)) if part["sessionID"] == value["id"]
            ]
            found += [part["text"] for part in of_session if part["type"] == "text"]
        elif tool == "openai-agents-sqlite":
            found += texts_of(value.get("content")) + ([value["output"]] if "output" in value else [])
        else:
            for item in value if isinstance(value, list) else [value]:
                found += [text for m in item.get("messages") or item["traj"] for text in texts_of(m.get("content"))]
    return [text for text in found if text.strip() and not text.lstrip().startswith(_TYPED_BY_NOBODY)]


def nested(listed: list[dict[str, Any]]) -> list[str]:
    return [text for message in listed for text in [message["text"], *nested(message.get("children", []))]]


def files(tool: str) -> list[Path]:
    left_out = ("expected", "gen-expected")
    found = [p for p in (CORPUS / tool).rglob("*") if p.suffix in (".json", ".jsonl", ".db")]
    if tool == "opencode":
        found = [p for p in found if "session" in p.parts]
    return sorted(p for p in found if not p.name.startswith(left_out) and "ccl-records" not in p.parts)


@pytest.mark.parametrize("tool", SUPPORTED)
def test_everything_that_was_said_is_in_a_session_and_found_by_search(tmp_path: Path, tool: str) -> None:
    corpus(tool)
    manager = SessionManager(tmp_path / "sessions")
    list(importers.import_paths(manager, [CORPUS / tool]))
    kept = {" ".join(content.text(m).split()) for info in manager.list() for m in manager.open(info.id).messages}
    whole = "\n".join(kept)
    missing: dict[str, list[str]] = {}

    for path in files(tool):
        said = expected(tool, path)
        lost = [text[:80] for text in said if " ".join(text.split()) not in whole]
        missing |= {path.name: lost} if lost else {}
        for text in {said[0], said[len(said) // 2], said[-1]} if said and not lost else ():
            words = [word for word in text.split() if word.isalnum()][:1]
            assert not words or manager.search(words[0], 1), (path.name, words)

    assert missing == {}


@pytest.mark.parametrize("tool", SUPPORTED)
def test_nothing_is_said_that_stands_nowhere_in_the_file(tool: str) -> None:
    corpus(tool)
    for path in files(tool):
        try:
            found, _ = importers.read(path)
        except ImportRefused:
            continue
        sources = [path, *path.parents[2].rglob("*.json")] if tool == "opencode" else [path]
        if tool in ("codex", "claude-code", "pi"):  # a fork may be told from its parent's file
            sources = files(tool)
        whole = " ".join(" ".join(text.split()) for source in sources for text in strings(values(source)))
        for message in (message for one in found for message in one.messages):
            if message["role"] in ("user", "assistant"):
                for line in content.text(message).split("\n"):
                    words = " ".join(line.split())
                    command, _, given = words.partition(" ") if words.startswith("/") else (words, "", "")
                    is_there = words in whole or (
                        command in whole and given in whole
                    )  # a command and what it was given
                    assert is_there or line.startswith(_OURS), (path.name, message["role"], line[:200])


@pytest.mark.parametrize(("name", "found"), REFUSED.items())
def test_kinds_that_are_not_supported_are_refused_by_name(tmp_path: Path, name: str, found: str) -> None:
    manager = SessionManager(tmp_path / "sessions")

    (step,) = importers.import_paths(manager, [corpus(name)])

    assert step.error
    assert step.error.found.startswith(f"looks like {found}, which cannot be imported yet (")
    assert manager.list() == []


def test_every_kind_of_the_corpus_is_one_or_the_other() -> None:
    kinds = {path.name for path in corpus("").iterdir() if path.is_dir()}

    assert kinds == {*SUPPORTED, *(name.split("/")[0] for name in REFUSED)}
