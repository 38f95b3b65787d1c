"""One line of Claude Code records → messages. Used by ``claude_code``.

Does not choose which records are on the line.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

from sessions_lib import content, jsonl
from sessions_lib.content import Message
from sessions_lib.importers import claude_blocks
from sessions_lib.importers.claude_blocks import Answer
from sessions_lib.importers.claude_records import INTERRUPTED, Node, Record
from sessions_lib.importers.imported import ImportReport, fill_times, iso

_NAME = re.compile(r"<command-name>(.*?)</command-name>", re.DOTALL)
_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)


def messages_of(line: Sequence[Node], report: ImportReport) -> list[Message]:
    """What was said on ``line``, in order; what turns out to be no conversation is counted in ``report``."""
    messages: list[Message] = []
    answers: dict[str, Answer] = {}
    call_names: dict[str, str] = {}
    seen: dict[str, Record] = {}
    for position, node in enumerate(line):
        record = node.record
        uuid = record.get("uuid")
        if node.kind != "answer" and isinstance(uuid, str):
            if seen.get(uuid) == record:
                report.skipped["repeated record"] += 1
                continue
            seen.setdefault(uuid, record)
        if node.kind == "answer":
            _take_answer(node, messages, answers, call_names, report)
        elif node.kind == "result":
            messages += _results(node, call_names)
        elif node.kind == "prompt":
            messages.append(_said(node, "user", claude_blocks.user_content(node.blocks)))
        elif node.kind == "summary":
            summary = _said(node, "assistant", claude_blocks.text_of(node.blocks))
            messages.append({**summary, "source": {"kind": "compaction"}})
        elif node.kind == "command":
            if _was_answered(line, position):
                messages.append(_said(node, "user", _typed(claude_blocks.text_of(node.blocks))))
            else:
                report.skipped["local command"] += 1
        if node.kind == "interruption" or (node.kind == "result" and _has_interruption(node)):
            _mark_interrupted(messages)
    for answer in answers.values():
        answer.finish(report)
    _unique_ids(messages)
    fill_times(messages, None)
    return messages


def _take_answer(
    node: Node, messages: list[Message], answers: dict[str, Answer], names_of: dict[str, str], report: ImportReport
) -> None:
    message = node.record["message"]
    own = message.get("id")
    key = own if isinstance(own, str) and own else str(node.record.get("uuid") or _hash(node.record))
    answer = answers.get(key)
    if answer is None:
        answer = answers[key] = Answer(_said(node, "assistant", None, key))
        messages.append(answer.message)
    answer.add(node.record, node.blocks)
    names_of.update(answer.call_names)


def _said(node: Node, role: str, said: Any, own_id: str | None = None) -> Message:
    forked = node.record.get("forkedFrom")
    uuid = forked.get("messageUuid") if isinstance(forked, dict) else None
    own_id = own_id or uuid or node.record.get("uuid") or _hash(node.record)
    message: Message = {"role": role, "content": said, "id": f"cc_{own_id}"}
    if (moment := iso(node.record.get("timestamp"))) is not None:
        message["timestamp"] = moment
    return message


def _hash(record: Record) -> str:
    return hashlib.blake2b(jsonl.encode(record), digest_size=12).hexdigest()


def _results(node: Node, call_names: dict[str, str]) -> Iterator[Message]:
    blocks = [b for b in node.blocks if isinstance(b, dict) and b.get("type") == "tool_result"]
    for number, block in enumerate(blocks):
        message = _said(node, "tool", None)
        call_id = content.as_text(block.get("tool_use_id"))
        result = {"role": "tool", "tool_call_id": call_id, "content": claude_blocks.result_content(block)}
        if number:
            message["id"] += f":{number}"
        if name := call_names.get(call_id):
            message["name"] = name
        if block.get("is_error") is True:
            message["is_error"] = True
        told = node.record.get("toolUseResult")
        if isinstance(told, dict) and isinstance(told.get("agentId"), str):
            message["source"] = {"agent": told["agentId"]}
        yield {**result, **{k: v for k, v in message.items() if k not in ("role", "content")}}
    others = [block for block in node.blocks if block not in blocks]
    text = claude_blocks.text_of(others)
    if others and not INTERRUPTED.match(text) and (text.strip() or claude_blocks.has_more_than_text(others)):
        message = _said(node, "user", claude_blocks.user_content(others))
        message["id"] += ":text"
        yield message


def _has_interruption(node: Node) -> bool:
    return any(
        isinstance(b, dict) and b.get("type") == "text" and bool(INTERRUPTED.match(content.as_text(b.get("text"))))
        for b in node.blocks
    )


def _mark_interrupted(messages: list[Message]) -> None:
    for message in reversed(messages):
        if message["role"] == "user":
            return
        if message["role"] == "assistant":
            message["interrupted"] = True
            return


def _was_answered(line: Sequence[Node], position: int) -> bool:
    """True if the model answered the command: it got its expansion, not only a local output."""
    for node in line[position + 1 :]:
        if node.kind == "answer":
            return bool(node.record["message"].get("model") != "<synthetic>")
        if node.kind in ("prompt", "command", "command output", "result", "summary", "placeholder of a resume"):
            return False
    return False


def _typed(text: str) -> str:
    """What a person typed for a slash command: ``/review 12``."""
    name = _NAME.search(text)
    arguments = _ARGUMENTS.search(text)
    typed = f"/{name.group(1).strip().lstrip('/')}" if name else text.strip()
    return f"{typed} {arguments.group(1).strip() if arguments else ''}".strip()


def _unique_ids(messages: list[Message]) -> None:
    """Two different records with one ``uuid`` (seen in real files): the later one gets a suffix."""
    seen: set[str] = set()
    for message in messages:
        base, number = message["id"], 2
        while message["id"] in seen:
            message["id"] = f"{base}~{number}"
            number += 1
        seen.add(message["id"])
