"""Messages of Anthropic's API: content blocks with ``tool_use``, ``tool_result`` and ``thinking``; Bedrock's, too.

An answer's ``tool_use`` blocks become calls; a user message's ``tool_result`` blocks become results, which stand before
what else the message says.

Does not know how the messages are wrapped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sessions_lib import messages
from sessions_lib.importers.claude import blocks as claude_blocks
from sessions_lib.importers.claude.blocks import Answer
from sessions_lib.importers.imported import ImportReport, iso
from sessions_lib.messages import content
from sessions_lib.messages.content import Message

_BLOCKS = ("tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use")
_BEDROCK = ("toolUse", "toolResult", "reasoningContent")
_TAKEN = ("id", "role", "content", "timestamp", "usage", "model", "stop_reason", "stop_sequence", "type")


def looks_like(listed: Sequence[Any]) -> bool:
    """True if any of these messages has content blocks that only Anthropic's API and Bedrock's have."""
    return any(
        isinstance(block, Mapping)
        and (
            block.get("type") in _BLOCKS
            or any(isinstance(block.get(key), Mapping) for key in _BEDROCK)
            or (block.get("type") in ("image", "document") and isinstance(block.get("source"), Mapping))
        )
        for message in listed
        if isinstance(message, Mapping) and isinstance(message.get("content"), list)
        for block in message["content"]
    )


def convert(listed: Sequence[Any], report: ImportReport) -> list[Message]:
    """The messages that ``listed`` says."""
    made: list[Message] = []
    call_names: dict[str, str] = {}
    for message in listed:
        if messages.is_message(message):
            made += messages_of(message, message.get("id"), call_names, report)
        else:
            report.skipped["entry that is no message"] += 1
    return made


def messages_of(
    record: Mapping[str, Any], message_id: Any, call_names: dict[str, str], report: ImportReport
) -> list[Message]:
    """The messages that ``record`` is: an answer, or results and a prompt; ``call_names`` are those of all calls."""
    blocks = [_block(block) for block in claude_blocks.blocks_of(record)]
    base: Message = {key: value for key, value in record.items() if key not in _TAKEN}
    if isinstance(message_id, str) and message_id:
        base["id"] = message_id
    if (moment := iso(record.get("timestamp"))) is not None:
        base["timestamp"] = moment
    if record["role"] == "assistant":
        answer = Answer({"role": "assistant", "content": None, **base}, call_names)
        answer.add({"message": {key: record.get(key) for key in ("usage", "model", "stop_reason")}}, blocks)
        answer.finish(report)
        return [answer.message]
    results = [block for block in blocks if isinstance(block, dict) and block.get("type") == "tool_result"]
    made = [_result(block, number, base, call_names) for number, block in enumerate(results)]
    others = [block for block in blocks if block not in results]
    if others or not results:
        said: Message = {"role": record["role"], "content": claude_blocks.user_content(others), **base}
        made.append({**said, "id": f"{base['id']}:text"} if results and "id" in base else said)
    return made


def _result(block: Mapping[str, Any], number: int, base: Message, call_names: Mapping[str, str]) -> Message:
    call_id = content.as_text(block.get("tool_use_id"))
    result: Message = {"role": "tool", "tool_call_id": call_id, "content": claude_blocks.result_content(block), **base}
    if number and "id" in base:
        result["id"] = f"{base['id']}:{number}"
    if call_id in call_names:
        result["name"] = call_names[call_id]
    if block.get("is_error") is True:
        result["is_error"] = True
    return result


def _block(block: Any) -> Any:
    """A block of Bedrock's Converse API as Anthropic's own; any other as it is."""
    if not isinstance(block, Mapping) or "type" in block:
        return block
    if isinstance(used := block.get("toolUse"), Mapping):
        return {"type": "tool_use", "id": used.get("toolUseId"), "name": used.get("name"), "input": used.get("input")}
    if isinstance(answered := block.get("toolResult"), Mapping):
        inner = answered.get("content")
        said = [_block(item) for item in inner] if isinstance(inner, list) else inner
        failed = answered.get("status") == "error"
        call_id = answered.get("toolUseId")
        return {"type": "tool_result", "tool_use_id": call_id, "content": said, "is_error": failed}
    if isinstance(thought := block.get("reasoningContent"), Mapping):
        text = thought.get("reasoningText")
        return {"type": "thinking", "thinking": text.get("text") if isinstance(text, Mapping) else text}
    if isinstance(block.get("text"), str):
        return {"type": "text", "text": block["text"]}
    return {"type": "text", "text": content.as_text(block["json"])} if "json" in block else dict(block)


def text_of(system: Any) -> str:
    """The text of a request's ``system``: a string, or text blocks."""
    return system if isinstance(system, str) else claude_blocks.text_of(map(_block, system if system else ()))
