"""claude.ai: ``conversations.json`` of its export, a list of conversations with ``chat_messages``.

``content`` holds Anthropic's blocks, older exports only ``text``; where they disagree, the blocks are the answer. An
edited prompt has a sibling (``parent_message_uuid``): the line that ends last is the session, the others are forks.
Attachments come in with the text that the export took out of them, other files by their names. There are no tokens.

Message ids are ``ca_`` and the message's own UUID.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from sessions_lib import times
from sessions_lib.importers.claude import blocks
from sessions_lib.importers.imported import Imported, ImportReport, fill_times, iso, texts_in, word
from sessions_lib.importers.reader import Reader
from sessions_lib.importers.source import Records, Source
from sessions_lib.importers.steps import Steps, attached, joined
from sessions_lib.importers.trees import lines
from sessions_lib.messages import content, encoding
from sessions_lib.messages.content import Message

_SILENT = frozenset({"token_budget", "flag"})  # what says nothing to anybody


def looks_like(records: Records) -> bool:
    """True for conversations with ``chat_messages``."""
    return any(isinstance(item.get("chat_messages"), list) for item in records.items)


def read(source: Source, records: Records, report: ImportReport) -> list[Imported]:
    """Every conversation: the line that ends last, then the others."""
    listed = records.document if records.is_list else [records.whole] if records.whole else _objects(records)
    found: list[Imported] = []
    for conversation in listed:
        if not isinstance(conversation, Mapping) or not isinstance(conversation.get("chat_messages"), list):
            report.skipped["entry without messages"] += 1
            continue
        made = _lines(conversation, report)
        if not made:
            report.skipped["conversation without messages"] += 1
        found += made
    return found


def _objects(records: Records) -> list[Any]:
    return [record for _, record in records.lines]


def _lines(conversation: Mapping[str, Any], report: ImportReport) -> list[Imported]:
    listed = [message for message in conversation["chat_messages"] if isinstance(message, dict)]
    own = word(conversation.get("uuid")) or word(conversation.get("conversation_id")) or _made_of(listed)
    nodes: dict[str, Mapping[str, Any]] = {}
    parents: dict[str, str | None] = {}
    before: str | None = None
    for number, message in enumerate(listed):
        node = word(message.get("uuid")) or f"{own}:{number}"
        named = message.get("parent_message_uuid")
        nodes[node] = message
        parents[node] = named if isinstance(named, str) and named in nodes else before if named is None else None
        before = node
    made = {node: _messages(node, message, report) for node, message in nodes.items()}
    place = {node: float(number) for number, node in enumerate(nodes)}
    leaf = word(conversation.get("current_leaf_message_uuid")) or None
    key, title = f"claude-ai:{own}", conversation.get("name")
    found: list[Imported] = []
    for line in lines(parents, leaf, place.__getitem__, lambda path: [m for node in path for m in made[node]]):
        fill_times(line.messages, iso(conversation.get("created_at")))
        told = {k: conversation[k] for k in ("model", "summary", "project") if conversation.get(k)}
        found.append(
            Imported(
                key=line.key(key),
                conversation=key,
                title=title if isinstance(title, str) and title.strip() else None,
                messages=line.messages,
                parent_key=None if line.parent is None else found[line.parent].key,
                shared=line.shared,
                source=told,
                created=times.parse(conversation.get("created_at")),
            )
        )
    return found


def _made_of(listed: Sequence[Mapping[str, Any]]) -> str:
    said = encoding.encode([message.get("text") for message in listed[:2]])
    return hashlib.blake2b(said, digest_size=8).hexdigest()


def _messages(node: str, message: Mapping[str, Any], report: ImportReport) -> list[Message]:
    plain: dict[str, Any] = {"id": f"ca_{node}"}
    if (moment := iso(message.get("created_at"))) is not None:
        plain["timestamp"] = moment
    if word(message.get("model")):
        plain["model"] = message["model"]
    listed = [block for block in blocks.blocks_of(message) if isinstance(block, dict)]
    if not any(blocks.says_something([block]) for block in listed) and word(message.get("text")).strip():
        listed = [{"type": "text", "text": message["text"]}, *listed]
    if message.get("sender") == "assistant":
        return _answer(plain, listed, report)
    said = [block for block in listed if block.get("type") != "text" or word(block.get("text")).strip()]
    parts = blocks.user_content(said) if said else ""
    parts = ([parts] if parts else []) if isinstance(parts, str) else parts
    for file in _files(message, "attachments"):
        parts.append(attached(file.get("file_name"), file.get("extracted_content")))
    seen: set[str] = set()
    for key in ("files", "files_v2"):
        for file in _files(message, key):
            if (name := content.as_text(file.get("file_name"))) not in seen:
                seen.add(name)
                parts.append(attached(name))
    plain.pop("model", None)
    return [{"role": "user", "content": joined(parts), **plain}] if parts else []


def _files(message: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    listed = message.get(key)
    return [file for file in listed if isinstance(file, dict)] if isinstance(listed, list) else []


def _answer(plain: dict[str, Any], listed: Sequence[Mapping[str, Any]], report: ImportReport) -> list[Message]:
    steps = Steps(plain)
    names: dict[str, str] = {}
    last = ""  # the call that a result without an id answers
    for number, block in enumerate(listed):
        kind = content.as_text(block.get("type", "text"))
        if kind == "text":
            steps.say(content.as_text(block.get("text")))
        elif kind == "thinking":
            steps.think(content.as_text(block.get("thinking")))
        elif kind == "tool_use":
            last = content.as_text(block.get("id")) or f"{plain['id']}:call{number}"
            names[last] = content.as_text(block.get("name"))
            steps.call(last, names[last], block.get("input"))
        elif kind == "tool_result":
            call_id = content.as_text(block.get("tool_use_id")) or last
            failed = {"is_error": True} if block.get("is_error") is True else {}
            said = blocks.result_content(block)
            steps.result(call_id, said, content.as_text(block.get("name")) or names.get(call_id, ""), **failed)
        elif kind not in _SILENT and (texts := texts_in(block)):
            report.unknown[kind] += 1
            steps.unknown(kind, texts)
        else:
            report.skipped[f"block: {kind}"] += 1
    return steps.messages()


READER = Reader("claude-ai", "claude.ai export", looks_like, read, aliases=("claude.ai", "claude_ai"))
