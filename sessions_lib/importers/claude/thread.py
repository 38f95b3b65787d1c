"""One line of Claude Code records → messages. Used by ``claude``.

Does not choose which records are on the line.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any

from sessions_lib.importers.claude import blocks as claude_blocks
from sessions_lib.importers.claude import kinds
from sessions_lib.importers.claude.blocks import Answer
from sessions_lib.importers.claude.records import Node, Record
from sessions_lib.importers.imported import UNKNOWN_KIND, ImportReport, fill_times, iso
from sessions_lib.messages import content, encoding
from sessions_lib.messages.content import Message

_NAME = re.compile(r"<command-name>(.*?)</command-name>", re.DOTALL)
_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)


def messages_of(line: Sequence[Node], report: ImportReport) -> list[Message]:
    """What was said on ``line``, in order; what turns out to be no conversation is counted in ``report``."""
    messages: list[Message] = []
    answers: dict[str, Answer] = {}
    call_names: dict[str, str] = {}
    for position, node in enumerate(line):
        kind = node.kind
        if kind == kinds.ANSWER:
            _take_answer(node, messages, answers, call_names)
        elif kind == kinds.RESULT:
            messages += _results(node, call_names, report)
            if len(node.blocks) > 1 and _has_interruption(node):
                _mark_interrupted(messages)
        elif kind in (kinds.PROMPT, kinds.QUEUED):
            messages.append(_prompt(node, report))
        elif kind == kinds.INTERRUPTION:
            _mark_interrupted(messages)
        elif kind == kinds.COMMAND and not _was_answered(line, position):
            report.skipped[kinds.LOCAL_COMMAND] += 1
        elif kind in kinds.SAID:
            messages.append(_other(node))
    for answer in answers.values():
        answer.finish(report)
    _unique_ids(messages)
    fill_times(messages, None)
    return messages


def _other(node: Node) -> Message:
    """What is said but is no prompt, answer or result: summaries, failures, commands, and notes of what went on."""
    text = claude_blocks.text_of(node.blocks)
    if node.kind == kinds.COMMAND:
        return _said(node, "user", _typed(text))
    if node.kind == kinds.SUMMARY:
        return {**_said(node, "assistant", text), "source": {"kind": "compaction"}}
    if node.kind == kinds.ERROR:
        told = {key: node.record[key] for key in ("error", "apiErrorStatus") if node.record.get(key) is not None}
        source = {"kind": kinds.ERROR, **told}
        return {**_said(node, "assistant", text), "finish_reason": "error", "source": source}
    said, source = _noted(node, text)
    return {**_said(node, "system", said), "source": source}


def _noted(node: Node, text: str) -> tuple[str, dict[str, Any]]:
    """A note's text and source: what a person ran, what another agent wrote, what nobody here knows."""
    if node.kind == kinds.SHELL_INPUT:
        command = _inside(text, "bash-input").strip()
        return f"Ran `{command}`", {"kind": "bashExecution", "command": command}
    if node.kind == kinds.SHELL_OUTPUT:
        printed = [_inside(text, tag).strip("\n") for tag in ("bash-stdout", "bash-stderr")]
        return "\n".join(filter(None, printed)), {"kind": "bashExecution", "output": True}
    if node.kind == kinds.UNKNOWN:
        return text, {"kind": UNKNOWN_KIND, "record": node.record}
    found = list(kinds.OF_AGENTS.finditer(text))
    written = [one.group(3).strip() for one in found] or [text]
    names = [name for one in found if (name := _sender(one.group(2) or ""))]
    origin = node.record.get("origin")
    told = [origin["from"]] if not names and isinstance(origin, dict) and isinstance(origin.get("from"), str) else names
    return "\n\n".join(written), {"kind": "agent message", "author": ", ".join(dict.fromkeys(told))}


def _inside(text: str, tag: str) -> str:
    """What stands between ``<tag>`` and its end, all of them."""
    return "\n".join(re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL))


def _sender(attributes: str) -> str:
    """Whom a message's tag names: a teammate, or another session by name, else by address."""
    for name in ("teammate_id", "from-name", "from", "agent_id", "agent-id"):
        if (found := re.search(rf'\b{name}="([^"]*)"', attributes)) and found.group(1).strip():
            return found.group(1).strip()
    return ""


def _prompt(node: Node, report: ImportReport) -> Message:
    blocks, notices = kinds.without_notices(node.blocks) if len(node.blocks) > 1 else (node.blocks, [])
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
    made = _made(told) if isinstance(told, dict) else {}
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
        if made:
            result["source"] = made
        results.append(result)
    if others:
        others, notices = kinds.without_notices(others)
        if notices:
            report.skipped["notice inside a prompt"] += len(notices)
    if others:
        text = claude_blocks.text_of(others)
        if not kinds.INTERRUPTED.match(text) and (text.strip() or claude_blocks.has_more_than_text(others)):
            message = _said(node, "user", claude_blocks.user_content(others))
            message["id"] += ":text"
            results.append(message)
    return results


def _made(told: dict[str, Any]) -> dict[str, str]:
    """The sub-agent, or the workflow of sub-agents, that a call made."""
    names = {"agent": told.get("agentId"), "workflow": told.get("workflowId") or told.get("runId")}
    return {kind: name for kind, name in names.items() if isinstance(name, str)}


def _has_interruption(node: Node) -> bool:
    texts = (b.get("text") for b in node.blocks if isinstance(b, dict) and b.get("type") == "text")
    return any(kinds.INTERRUPTED.match(content.as_text(text)) for text in texts)


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
        if node.kind == kinds.ANSWER:
            return bool(node.record["message"].get("model") != "<synthetic>")
        if node.kind in kinds.ENDS_A_COMMAND:
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
