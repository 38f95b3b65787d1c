"""Anthropic's content blocks → what a chat message holds. Used by Claude Code's and astorlm's files.

Text, images and documents become text or OpenAI parts; thinking becomes ``reasoning_content``; ``tool_use`` becomes a
call. Blocks without a place there (server tools, redacted thinking) are kept as they are in ``source.blocks``.

Does not know records, trees or files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sessions_lib import content, jsonl
from sessions_lib.content import Message
from sessions_lib.importers.imported import ImportReport, as_call, set_usage

FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "refusal": "content_filter",
}
_PLACEHOLDER_MODELS = ("<synthetic>", "")


def blocks_of(message: Mapping[str, Any]) -> list[Any]:
    """The content blocks of ``message``; a string is one text block."""
    said = message.get("content")
    if isinstance(said, str):
        return [{"type": "text", "text": said}] if said else []
    return said if isinstance(said, list) else []


def text_of(blocks: Iterable[Any]) -> str:
    """The text blocks, joined by an empty line."""
    return "\n\n".join(text for text in (_text(block) for block in blocks) if text)


def _text(block: Any) -> str:
    if isinstance(block, str):
        return block
    if isinstance(block, Mapping) and block.get("type", "text") == "text":
        return content.as_text(block.get("text"))
    return ""


def says_something(blocks: Iterable[Any]) -> bool:
    """True if an answer has more than blank text."""
    return any(
        (isinstance(block, Mapping) and block.get("type") not in ("text", "thinking", "redacted_thinking", None))
        or _text(block).strip()
        for block in blocks
    )


def has_more_than_text(blocks: Iterable[Any]) -> bool:
    """True if there is an image, a document or anything else that is no text."""
    return any(isinstance(block, Mapping) and block.get("type") not in ("text", None) for block in blocks)


def user_content(blocks: list[Any]) -> Any:
    """What a person said: a string if it is only text, else OpenAI's parts, unknown ones as they are."""
    if not has_more_than_text(blocks):
        return text_of(blocks)
    return [_part(block) for block in blocks]


def _part(block: Any) -> Any:
    if not isinstance(block, Mapping):
        return {"type": "text", "text": content.as_text(block)}
    kind = block.get("type", "text")
    source = block.get("source")
    if kind == "text":
        return {"type": "text", "text": content.as_text(block.get("text"))}
    if kind == "image" and isinstance(source, Mapping):
        url = source.get("url") if source.get("type") == "url" else _data_url(source, "image/png")
        return {"type": "image_url", "image_url": {"url": content.as_text(url)}}
    if kind == "document" and isinstance(source, Mapping) and source.get("type") == "base64":
        name = content.as_text(block.get("title")) or "document.pdf"
        return {"type": "file", "file": {"filename": name, "file_data": _data_url(source, "application/pdf")}}
    return dict(block)


def _data_url(source: Mapping[str, Any], default: str) -> str:
    return f"data:{source.get('media_type') or default};base64,{content.as_text(source.get('data'))}"


def result_content(block: Mapping[str, Any]) -> Any:
    """The content of a ``tool_result`` block: text, or parts where it holds an image."""
    said = block.get("content")
    if not isinstance(said, list):
        return content.as_text(said)
    if any(isinstance(item, Mapping) and item.get("type") in ("image", "document") for item in said):
        return [_part(item) for item in said]
    texts = [_text(item) or (content.as_text(item) if not isinstance(item, str) else "") for item in said]
    return "\n".join(texts)


def arguments(given: Any) -> str:
    """The input of a ``tool_use`` block as the JSON text a call holds."""
    return given if isinstance(given, str) else jsonl.encode({} if given is None else given).decode()


def _output(reported: Mapping[str, Any]) -> float:
    count = reported.get("output_tokens")
    return count if isinstance(count, int | float) else -1


@dataclass(slots=True)
class Answer:
    """One answer put together from its lines; ``message`` is the message, filled as they come."""

    message: Message
    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    others: list[Any] = field(default_factory=list)
    call_names: dict[str, str] = field(default_factory=dict)
    stop_reason: str | None = None
    reported: dict[str, Any] | None = None
    _seen: set[str] = field(default_factory=set)
    _uuids: set[str] = field(default_factory=set)

    def add(self, record: Mapping[str, Any], blocks: list[Any]) -> None:
        """Take in one line of the answer."""
        told = record["message"]
        if isinstance(told.get("stop_reason"), str):
            self.stop_reason = told["stop_reason"]
        model = told.get("model")
        if isinstance(model, str) and model not in _PLACEHOLDER_MODELS:
            self.message["model"] = model
        self._take_usage(told.get("usage"), model)
        uuid = record.get("uuid")
        is_copy = isinstance(uuid, str) and uuid in self._uuids
        if isinstance(uuid, str):
            self._uuids.add(uuid)
        for block in blocks if not is_copy else ():
            self.take(block)

    def take(self, block: Any) -> None:
        """Take in one content block."""
        kind = block.get("type", "text") if isinstance(block, Mapping) else "text"
        if kind == "text":
            # Lines repeat a text when a session was resumed; two equal blocks in one answer were not seen.
            if (text := _text(block)) and text not in self.texts:
                self.texts.append(text)
        elif kind == "thinking":
            if (thought := content.as_text(block.get("thinking"))) and thought not in self.thoughts:
                self.thoughts.append(thought)
        elif kind == "tool_use":
            call_id, name = content.as_text(block.get("id")), content.as_text(block.get("name"))
            if not call_id or call_id not in self._seen:
                self._seen.add(call_id)
                self.call_names[call_id] = name
                self.calls.append(as_call(call_id, name, arguments(block.get("input"))))
        elif block not in self.others:
            self.others.append(dict(block))

    def _take_usage(self, reported: Any, model: Any) -> None:
        if not isinstance(reported, dict) or model == "<synthetic>":
            return
        if self.reported is None or _output(reported) >= _output(self.reported):
            self.reported = reported

    def finish(self, report: ImportReport) -> None:
        """Fill the message from all that was taken in."""
        message = self.message
        message["content"] = "\n\n".join(self.texts) or None
        if self.thoughts:
            message["reasoning_content"] = "\n\n".join(self.thoughts)
        if self.calls:
            message["tool_calls"] = self.calls
        reason = FINISH_REASONS.get(self.stop_reason or "", self.stop_reason)
        if reason is None and self.calls:
            reason = "tool_calls"
        if reason is not None:
            message["finish_reason"] = reason
        if self.reported is not None:
            set_usage(message, self.reported)
        if self.others:
            message["source"] = {**message.get("source", {}), "blocks": self.others}
            for block in self.others:
                report.skipped[f"block kept as it is: {block.get('type')}"] += 1
