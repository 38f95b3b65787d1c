"""Items of OpenAI's Responses API as messages, and back.

A message keeps the items it was made of under ``items``, so that what only they can hold (reasoning with its encrypted
content, calls of hosted tools) comes back whole; beside them it is an ordinary Chat Completions message.

Does not send or store anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from sessions_lib.messages import content, tool_calls
from sessions_lib.messages.content import Message

Item = dict[str, Any]
ITEMS = "items"  # of a message: what it was made of


def to_messages(items: Iterable[Mapping[str, Any]]) -> list[Message]:
    """The messages that ``items`` are, each item in exactly one of them, in order.

    What a model puts out in one go (reasoning, words, calls) is one assistant message.
    """
    made: list[Message] = []
    for is_answer, group in groupby(items, key=lambda item: _role(item) == "assistant"):
        one_by_one = [dict(item) for item in group]
        made += [_answer(one_by_one)] if is_answer else [_other(item) for item in one_by_one]
    return made


def to_items(message: Mapping[str, Any]) -> list[Item]:
    """The items of ``message``: those it was made of, else what it says as items."""
    kept = message.get(ITEMS)
    if isinstance(kept, list) and kept and all(isinstance(item, dict) for item in kept):
        return [dict(item) for item in kept]
    said = content.text(message)
    if message.get("role") in ("tool", "function"):
        call_id = message.get("tool_call_id") or message.get("name") or ""
        return [{"type": "function_call_output", "call_id": call_id, "output": said}]
    if message.get("role") != "assistant":
        return [{"role": message.get("role"), "content": _as_input(message.get("content"))}]
    calls = tool_calls.calls_of(message)
    return [
        *([_words(said)] if said else []),
        *({"type": "function_call", "call_id": one.id, "name": one.name, "arguments": one.arguments} for one in calls),
    ]


def _words(said: str) -> Item:
    """What an assistant said; llama.cpp takes it in no shorter form."""
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": said}]}


def _role(item: Mapping[str, Any]) -> str:
    if str(item.get("type")).endswith("_call_output"):
        return "tool"
    role = item.get("role")
    return role if isinstance(role, str) and role else "assistant"


def _other(item: Item) -> Message:
    if _role(item) == "tool":
        output = item.get("output")
        said = output if isinstance(output, str) else content.text({"content": output})
        return {"role": "tool", "tool_call_id": str(item.get("call_id") or ""), "content": said, ITEMS: [item]}
    return {"role": _role(item), "content": _as_chat(item.get("content")), ITEMS: [item]}


def _answer(items: list[Item]) -> Message:
    said = [content.text(item) for item in items]
    thoughts = [content.text({"content": item.get("summary")}) for item in items if item.get("type") == "reasoning"]
    calls = [_call(item) for item in items if str(item.get("type")).endswith("_call") and item.get("call_id")]
    message: Message = {"role": "assistant", "content": "\n\n".join(filter(None, said)) or None}
    if calls:
        message["tool_calls"] = calls
    if any(thoughts):
        message["reasoning_content"] = "\n\n".join(filter(None, thoughts))
    return {**message, ITEMS: items}


def _call(item: Item) -> dict[str, Any]:
    """A call that this side answers: of a function, of a tool with free text, of a shell or a screen."""
    name = content.as_text(item.get("name")) or str(item["type"]).removesuffix("_call")
    asked = next((item[key] for key in ("arguments", "input", "action") if key in item), "{}")
    arguments = {"input": asked} if "input" in item else asked
    function = {"name": name, "arguments": content.as_text(arguments)}
    return {"id": str(item["call_id"]), "type": "function", "function": function}


def _as_chat(value: Any) -> Any:
    """The content of an item as Chat Completions spells it; what it has no word for stays as it is."""
    if not isinstance(value, list):
        return value
    return [_part_as_chat(part) if isinstance(part, Mapping) else part for part in value]


def _part_as_chat(part: Mapping[str, Any]) -> dict[str, Any]:
    if part.get("type") == "input_text":
        return {"type": "text", "text": part.get("text")}
    if part.get("type") == "input_image" and isinstance(part.get("image_url"), str):
        return {"type": "image_url", "image_url": {"url": part["image_url"]}}
    if part.get("type") == "input_file":
        return {"type": "file", "file": {key: value for key, value in part.items() if key != "type"}}
    return dict(part)


def _as_input(value: Any) -> Any:
    """The content of a message as an item spells it."""
    if not isinstance(value, list):
        return content.as_text(value)
    made: list[dict[str, Any]] = []
    for part, raw in zip(content.parts({"content": value}), value, strict=True):
        if part.kind == "text":
            made.append({"type": "input_text", "text": part.text})
        elif part.kind == "image" and part.url:
            made.append({"type": "input_image", "image_url": part.url, "detail": "auto"})
        elif part.kind == "file" and isinstance(raw.get("file"), Mapping):
            made.append({"type": "input_file", **raw["file"]})
        else:
            made.append({"type": "input_text", "text": f"[{part.label}]"})
    return made
