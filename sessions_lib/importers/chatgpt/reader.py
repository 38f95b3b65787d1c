"""ChatGPT export: ``conversations.json``, a list of conversations, each a tree of nodes (``mapping``).

The branch that ends in ``current_node`` is what ChatGPT shows and becomes the session; every other leaf becomes a fork.

* An answer that is sent to a tool (``recipient``) is a call of that tool; the tool's nodes answer it.
* ``thoughts`` become the reasoning of the answer that follows. Text in any kind of node is taken. Pictures are taken in
  where the export holds them (``chatgpt_assets``); other files stay pointers, their names under ``source.attachments``.
* Hidden nodes, empty system nodes and ``message: null`` are counted. Custom instructions are kept in the metadata under
  ``custom_instructions``; they were no part of what was said.

Message ids are ``cg_``, a short hash of the conversation's id and the node's id, so branches share identities.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sessions_lib import times
from sessions_lib.importers.chatgpt.assets import Assets
from sessions_lib.importers.imported import Imported, ImportReport, as_call, fill_times, iso, word
from sessions_lib.importers.reader import Reader
from sessions_lib.importers.source import Records, Source
from sessions_lib.importers.trees import lines
from sessions_lib.importers.unique_ids import is_unique
from sessions_lib.messages import content, encoding
from sessions_lib.messages.content import Message

Node = dict[str, Any]


def read(source: Source, records: Records, report: ImportReport) -> list[Imported]:
    """Every conversation of the export: the visible branch, then the others."""
    document = records.document if records.is_document else records.first
    listed = document if isinstance(document, list) else [document]
    with Assets(source, report) as assets:
        return _conversations(listed, assets, report)


def _conversations(listed: list[Any], assets: Assets, report: ImportReport) -> list[Imported]:
    found: list[Imported] = []
    for number, conversation in enumerate(listed, 1):
        title = conversation.get("title") if isinstance(conversation, dict) else None
        name = repr(title) if isinstance(title, str) and title else f"number {number}"
        if not isinstance(conversation, dict) or not isinstance(conversation.get("mapping"), dict):
            report.skipped["conversation without a mapping"] += 1
            report.warn(f"conversation {name} has no messages in it and was left out")
            continue
        made = _branches(conversation, assets, report)
        if not made:
            report.skipped["conversation without messages"] += 1
        found += made
    return found


def _branches(conversation: Node, assets: Assets, report: ImportReport) -> list[Imported]:
    nodes = {key: node for key, node in conversation["mapping"].items() if isinstance(node, dict)}
    own = word(conversation.get("conversation_id") or conversation.get("id")) or next(iter(nodes), "")
    if not is_unique(own) and "conversation_id" not in conversation and "id" not in conversation:
        own = f"{own}:{conversation.get('create_time') or conversation.get('title') or ''}"  # a node called "root"
    key = f"chatgpt:{own}"
    created = times.parse(conversation.get("create_time"))
    taken: list[_Line] = []

    def said(path: Sequence[str]) -> list[Message]:
        line = _Line(ImportReport() if taken else report, _short(key), assets, _model(conversation))
        taken.append(line)
        for node_id in path:
            line.take(node_id, nodes[node_id])
        messages = line.finish()
        instructions[tuple(message["id"] for message in messages)] = line.instructions
        return messages

    instructions: dict[tuple[str, ...], dict[str, str]] = {}
    parents = {node_id: word(node.get("parent")) or None for node_id, node in nodes.items()}
    current = word(conversation.get("current_node")) or None
    title = conversation.get("title")
    found: list[Imported] = []
    for line in lines(parents, current, lambda node_id: _time(nodes[node_id]), said):
        told = instructions[tuple(message["id"] for message in line.messages)]
        fill_times(line.messages, iso(conversation.get("create_time")))
        found.append(
            Imported(
                key=line.key(key),
                conversation=key,
                title=title if isinstance(title, str) and title.strip() else None,
                messages=line.messages,
                parent_key=None if line.parent is None else found[line.parent].key,
                shared=line.shared,
                meta={"custom_instructions": told} if told else {},
                source=_provenance(conversation),
                created=created,
            )
        )
    return found


def _model(told: Mapping[str, Any]) -> str:
    """The model that answers where an answer names none; ``auto`` is none."""
    model = word(told.get("default_model_slug"))
    return "" if model == "auto" else model


def _short(key: str) -> str:
    return hashlib.blake2b(key.encode("utf-8", "replace"), digest_size=4).hexdigest()


def _provenance(conversation: Node) -> dict[str, Any]:
    names = ("gizmo_id", "default_model_slug", "is_archived", "is_starred")
    return {name: conversation[name] for name in names if conversation.get(name) not in (None, False)}


def _time(node: Node) -> float:
    message = node.get("message")
    moment = times.parse(message.get("create_time")) if isinstance(message, dict) else None
    return moment.timestamp() if moment else 0.0


# ---------------------------------------------------------------- nodes


@dataclass(slots=True)
class _Line:
    """The messages of one branch, node by node."""

    report: ImportReport
    prefix: str
    assets: Assets
    default_model: str
    messages: list[Message] = field(default_factory=list)
    instructions: dict[str, str] = field(default_factory=dict)
    _thoughts: list[str] = field(default_factory=list)
    _thoughts_at: Message | None = None
    _open_call: tuple[str, str] | None = None

    def take(self, node_id: str, node: Node) -> None:
        """Take in one node of the branch."""
        message = node.get("message")
        if not isinstance(message, dict):
            self.report.skipped["node without a message"] += 1
            return
        author = message.get("author")
        role = author.get("role") if isinstance(author, dict) else None
        said = message.get("content")
        said = said if isinstance(said, dict) else {"content_type": "text", "parts": [said] if said else []}
        kind = said.get("content_type")
        metadata = message.get("metadata")
        if kind in ("user_editable_context", "model_editable_context"):
            for key in ("user_profile", "user_instructions", "model_set_context"):
                if isinstance(said.get(key), str) and said[key].strip():
                    self.instructions[key] = said[key]
            self.report.skipped["custom instructions"] += 1
        elif isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation") is True:
            self.report.skipped[f"hidden {role or 'node'}"] += 1
        elif kind == "reasoning_recap":
            self.report.skipped["reasoning recap"] += 1
        elif kind == "thoughts":
            self._think(node_id, message, said)
        elif role == "assistant":
            self._answer(node_id, message, said)
        elif role == "tool":
            self._result(node_id, message, said, author.get("name") if isinstance(author, dict) else None)
        else:
            self._plain(node_id, message, role, self._content(said))

    def _plain(self, node_id: str, message: Node, role: Any, said: Any) -> None:
        if not said:
            self.report.skipped[f"empty {role or 'node'}"] += 1
            return
        is_known = role in ("user", "system", "developer")
        made = self._stamped(node_id, message, {"role": role if is_known else "system", "content": said})
        if not is_known:
            made["source"] = {**made.get("source", {}), "kind": word(role) or "node"}
        self.messages.append(made)

    def _think(self, node_id: str, message: Node, said: Node) -> None:
        thoughts = said.get("thoughts")
        for thought in thoughts if isinstance(thoughts, list) else []:
            if isinstance(thought, dict):
                parts = [content.as_text(thought.get(key)) for key in ("summary", "content")]
                self._thoughts.append("\n".join(part for part in parts if part))
        self._thoughts_at = self._thoughts_at or self._stamped(node_id, message, {"role": "assistant", "content": None})

    def _answer(self, node_id: str, message: Node, said: Node) -> None:
        text = self._content(said)
        recipient = message.get("recipient")
        is_call = isinstance(recipient, str) and recipient not in ("all", "")
        if not text and not is_call and not self._thoughts:
            self.report.skipped["empty assistant"] += 1
            return
        answer = self._stamped(node_id, message, {"role": "assistant", "content": text or None})
        if is_call:
            call_id = f"cg_{node_id}"
            answer["content"] = None
            answer["tool_calls"] = [as_call(call_id, str(recipient), _arguments(content.text({"content": text})))]
            self._open_call = (call_id, str(recipient))
        self._give_thoughts(answer)
        metadata = message.get("metadata")
        told = metadata if isinstance(metadata, dict) else {}
        if model := word(told.get("model_slug")) or _model(told) or self.default_model:
            answer["model"] = model
        if isinstance(metadata, dict):
            finish = metadata.get("finish_details")
            if isinstance(finish, dict) and finish.get("type") in ("stop", "max_tokens"):
                answer["finish_reason"] = "stop" if finish["type"] == "stop" else "length"
            if isinstance(finish, dict) and finish.get("type") == "interrupted":
                answer["interrupted"] = True
        if is_call:
            answer["finish_reason"] = "tool_calls"
        self.messages.append(answer)

    def _give_thoughts(self, answer: Message) -> None:
        if self._thoughts:
            answer["reasoning_content"] = "\n\n".join(self._thoughts)
            self._thoughts, self._thoughts_at = [], None

    def _result(self, node_id: str, message: Node, said: Node, name: Any) -> None:
        call_id, called = self._open_call or (f"cg_{node_id}", "")
        result = self._stamped(
            node_id, message, {"role": "tool", "tool_call_id": call_id, "content": self._content(said)}
        )
        result["name"] = name if isinstance(name, str) and name else called
        if said.get("content_type") == "system_error":
            result["is_error"] = True
        self.messages.append(result)

    def _content(self, said: Node) -> Any:
        """Text where there is only text, else parts: pictures as far as the export holds them, the rest as pointers."""
        parts = said.get("parts")
        if isinstance(parts, list):
            made = [self._picture(part) or _part(part) for part in parts if part not in ("", None)]
            if all(part["type"] == "text" for part in made):
                return "\n".join(part["text"] for part in made)
            return made
        for key in ("text", "result", "content"):
            if isinstance(said.get(key), str):
                return said[key]
        return ""

    def _picture(self, part: Any) -> dict[str, Any] | None:
        is_picture = isinstance(part, dict) and part.get("content_type") == "image_asset_pointer"
        return self.assets.picture(part) if is_picture else None

    def _stamped(self, node_id: str, node_message: Node, message: Message) -> Message:
        message["id"] = f"cg_{self.prefix}_{node_id}"
        if (moment := iso(node_message.get("create_time"))) is not None:
            message["timestamp"] = moment
        metadata = node_message.get("metadata")
        attached = metadata.get("attachments") if isinstance(metadata, dict) else None
        if isinstance(attached, list) and attached:
            message["source"] = {"attachments": attached}
        return message

    def finish(self) -> list[Message]:
        """The messages; thoughts without an answer become one without text."""
        if self._thoughts and self._thoughts_at is not None:
            answer = self._thoughts_at
            self._give_thoughts(answer)
            self.messages.append(answer)
        return self.messages


def _arguments(text: str) -> str:
    """What a tool was sent as a call's arguments: an object as it is, else the text as ``input``."""
    try:
        is_object = isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        is_object = False
    return text if is_object else encoding.encode({"input": text}).decode()


def _part(part: Any) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if isinstance(part, dict):
        kind = part.get("content_type")
        if kind in ("audio_transcription", "text"):
            return {"type": "text", "text": content.as_text(part.get("text"))}
        return {**part, "type": content.as_text(kind) or "unknown"}
    return {"type": "text", "text": content.as_text(part)}


def looks_like(records: Records) -> bool:
    """True for conversations with a ``mapping``."""
    if records.is_list:
        return any("mapping" in item for item in records.items)
    return isinstance(records.whole.get("mapping"), dict)


READER = Reader("chatgpt", "ChatGPT export", looks_like, read, aliases=("chatgpt-export",))
