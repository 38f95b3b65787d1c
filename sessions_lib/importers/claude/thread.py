"""One line of Claude Code records → messages. Used by ``claude``.

Does not choose which records are on the line.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any

from sessions_lib.importers.claude import blocks as claude_blocks
from sessions_lib.importers.claude.blocks import Answer
from sessions_lib.importers.claude.records import INTERRUPTED, Node, Record, without_notices
from sessions_lib.importers.imported import ImportReport, fill_times, iso
from sessions_lib.messages import content, encoding
from sessions_lib.messages.content import Message

_NAME = re.compile(r"<command-name>(.*?)</command-name>", re.DOTALL)
_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)


def messages_of(line: Sequence[Node], report: ImportReport) -> list[Message]:
    """What was said on ``line``, in order; what turns out to be no conversation is counted in ``report``."""
    messages: list[Message] = []
    answers: dict[str, Answer] = {}
    call_names: dict[str, str] = {}
    seen: dict[str, Record] = {}
    for position, node in enumerate(line):
        kind, record = node.kind, node.record
        if kind == "answer":
            _take_answer(node, messages, answers, call_names)
            continue
        uuid = record.get("uuid")
        if isinstance(uuid, str):
            if uuid in seen and seen[uuid] == record:
                report.skipped["repeated record"] += 1
                continue
            seen.setdefault(uuid, record)
        if kind == "result":
            messages += _results(node, call_names, report)
        elif kind == "prompt":
            messages.append(_prompt(node, report))
        elif kind == "summary":
            summary = _said(node, "assistant", claude_blocks.text_of(node.blocks))
            messages.append({**summary, "source": {"kind": "compaction"}})
        elif kind == "command":
            if _was_answered(line, position):
                messages.append(_said(node, "user", _typed(claude_blocks.text_of(node.blocks))))
            else:
                report.skipped["local command"] += 1
        if kind == "interruption" or (kind == "result" and len(node.blocks) > 1 and _has_interruption(node)):
            _mark_interrupted(messages)
    for answer in answers.values():
        answer.finish(report)
    _unique_ids(messages)
    fill_times(messages, None)
    return messages


def _prompt(node: Node, report: ImportReport) -> Message:
    blocks, notices = without_notices(node.blocks) if len(node.blocks) > 1 else (node.blocks, [])
    message = _said(node, "user", claude_blocks.user_content(blocks))
    if notices:
        message["source"] = {"notices": notices}
        report.skipped["notice inside a prompt"] += len(notices)
    return message


def _take_answer(node: Node, messages: list[Message], answers: dict[str, Answer], names_of: dict[str, str]) -> None:
    own = node.record["message"].get("id")
    key = own if isinstance(own, str) and own else str(node.record.get("uuid") or _hash(node.record))
    answer = answers.get(key)
    if answer is None:
        answer = answers[key] = Answer(_said(node, "assistant", None, key), names_of)
        messages.append(answer.message)
    answer.add(node.record, node.blocks)


def _said(node: Node, role: str, said: Any, own_id: str | None = None) -> Message:
    record = node.record
    if own_id is None:
        forked = record.get("forkedFrom")
        uuid = forked.get("messageUuid") if isinstance(forked, dict) else None
        own_id = uuid or record.get("uuid") or _hash(record)
    message: Message = {"role": role, "content": said, "id": f"cc_{own_id}"}
    if (moment := iso(record.get("timestamp"))) is not None:
        message["timestamp"] = moment
    return message


def _hash(record: Record) -> str:
    return hashlib.blake2b(encoding.encode(record), digest_size=12).hexdigest()


def _results(node: Node, call_names: dict[str, str], report: ImportReport) -> list[Message]:
    results: list[Message] = []
    others: list[Any] = []
    told = node.record.get("toolUseResult")
    agent = told.get("agentId") if isinstance(told, dict) else None
    for block in node.blocks:
        if not isinstance(block, dict) or block.get("type") != "tool_result":
            others.append(block)
            continue
        call_id = content.as_text(block.get("tool_use_id"))
        result: Message = {"role": "tool", "tool_call_id": call_id, "content": claude_blocks.result_content(block)}
        said = _said(node, "tool", result["content"])
        result |= said
        if results:
            result["id"] += f":{len(results)}"
        if name := call_names.get(call_id):
            result["name"] = name
        if block.get("is_error") is True:
            result["is_error"] = True
        if isinstance(agent, str):
            result["source"] = {"agent": agent}
        results.append(result)
    if others:
        others, notices = without_notices(others)
        if notices:
            report.skipped["notice inside a prompt"] += len(notices)
    if others:
        text = claude_blocks.text_of(others)
        if not INTERRUPTED.match(text) and (text.strip() or claude_blocks.has_more_than_text(others)):
            message = _said(node, "user", claude_blocks.user_content(others))
            message["id"] += ":text"
            results.append(message)
    return results


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
        own = message["id"]
        number = 2
        while own in seen:
            own = f"{message['id']}~{number}"
            number += 1
        message["id"] = own
        seen.add(own)
