"""Anthropic's content blocks → what a chat message holds. Used by Claude Code's and astorlm's files.

Text, images and documents become text or OpenAI parts; thinking becomes ``reasoning_content``; ``tool_use`` becomes a
call. Blocks without a place there (server tools, redacted thinking) are kept as they are in ``source.blocks``.

Does not know records, trees or files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sessions_lib.importers.imported import ImportReport, as_call, set_usage, word
from sessions_lib.messages import content, encoding, usage
from sessions_lib.messages.content import Message

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
    return "\n\n".join([text for block in blocks if (text := _text(block))])


def _text(block: Any) -> str:
    if isinstance(block, dict):
        if block.get("type", "text") != "text":
            return ""
        said = block.get("text")
        return said if isinstance(said, str) else content.as_text(said)
    return block if isinstance(block, str) else ""


def says_something(blocks: Iterable[Any]) -> bool:
    """True if an answer has more than blank text."""
    for block in blocks:
        if isinstance(block, dict) and block.get("type") not in ("text", "thinking", "redacted_thinking", None):
            return True
        if _text(block).strip():
            return True
    return False


def has_more_than_text(blocks: Iterable[Any]) -> bool:
    """True if there is an image, a document or anything else that is no text."""
    return any(isinstance(block, dict) and block.get("type") not in ("text", None) for block in blocks)


def user_content(blocks: list[Any]) -> Any:
    """What a person said: a string if it is only text, else OpenAI's parts, unknown ones as they are."""
    if not has_more_than_text(blocks):
        return text_of(blocks)
    return [_part(block) for block in blocks]


def _part(block: Any) -> Any:
    if not isinstance(block, dict):
        return {"type": "text", "text": content.as_text(block)}
    kind = block.get("type", "text")
    source = block.get("source")
    if kind == "text":
        return {"type": "text", "text": content.as_text(block.get("text"))}
    if kind == "image" and isinstance(source, dict):
        url = source.get("url") if source.get("type") == "url" else _data_url(source, "image/png")
        return {"type": "image_url", "image_url": {"url": content.as_text(url)}}
    if kind == "document" and isinstance(source, dict) and source.get("type") == "base64":
        name = content.as_text(block.get("title")) or "document.pdf"
        return {"type": "file", "file": {"filename": name, "file_data": _data_url(source, "application/pdf")}}
    return dict(block)


def _data_url(source: Mapping[str, Any], default: str) -> str:
    return f"data:{source.get('media_type') or default};base64,{content.as_text(source.get('data'))}"


def result_content(block: Mapping[str, Any]) -> Any:
    """The content of a ``tool_result`` block: text, or parts where it holds an image."""
    said = block.get("content")
    if not isinstance(said, list):
        return said if isinstance(said, str) else content.as_text(said)
    if any(isinstance(item, dict) and item.get("type") in ("image", "document") for item in said):
        return [_part(item) for item in said]
    texts = [_text(item) or (content.as_text(item) if not isinstance(item, str) else "") for item in said]
    return "\n".join(texts)


def arguments(given: Any) -> str:
    """The input of a ``tool_use`` block as the JSON text a call holds."""
    return given if isinstance(given, str) else encoding.encode({} if given is None else given).decode()


class Answer:
    """One answer put together from its lines; ``message`` is the message, filled as they come.

    The names of its calls are put into ``call_names``.
    """

    __slots__ = (
        *("_advisor", "_call_names", "_calls", "_others", "_reported", "_stop", "_texts", "_thoughts", "_uuids"),
        "message",
    )

    def __init__(self, message: Message, call_names: dict[str, str]) -> None:
        self.message = message
        self._call_names = call_names
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[dict[str, Any]] = []
        self._others: list[Any] = []
        self._stop: str | None = None
        self._reported: dict[str, Any] | None = None
        self._advisor = ""
        self._uuids: list[str] = []

    def add(self, record: Mapping[str, Any], blocks: list[Any]) -> None:
        """Take in one line of the answer."""
        told = record["message"]
        stop, model = told.get("stop_reason"), told.get("model")
        if isinstance(stop, str):
            self._stop = stop
        if isinstance(model, str) and model not in _PLACEHOLDER_MODELS:
            self.message["model"] = model
        reported = told.get("usage")
        if isinstance(reported, dict) and model != "<synthetic>" and reported != self._reported:
            # Lines report what was known when they were written: a part, the whole, or zeros.
            self._reported = usage.fuller(self._reported, reported)
        self._advisor = word(record.get("advisorModel")) or self._advisor
        cost = record.get("costUSD")  # older versions wrote it at every line of an answer
        if isinstance(cost, int | float) and not isinstance(cost, bool):
            self.message["cost_usd"] = max(cost, self.message.get("cost_usd", cost))
        uuid = record.get("uuid")
        if isinstance(uuid, str):
            if uuid in self._uuids:
                return  # a copy of the line
            self._uuids.append(uuid)
        for block in blocks:
            self._take(block)

    def _take(self, block: Any) -> None:
        kind = block.get("type", "text") if isinstance(block, dict) else "text"
        if kind == "text":
            # Lines repeat a text when a session was resumed; two equal blocks in one answer were not seen.
            if (text := _text(block)) and text not in self._texts:
                self._texts.append(text)
        elif kind == "tool_use":
            call_id, name = content.as_text(block.get("id")), content.as_text(block.get("name"))
            call = as_call(call_id, name, arguments(block.get("input")))
            if call not in self._calls or not call_id:  # ids repeat: another call may have the same one
                self._call_names[call_id] = name
                self._calls.append(call)
        elif kind == "thinking":
            if (thought := content.as_text(block.get("thinking"))) and thought not in self._thoughts:
                self._thoughts.append(thought)
        elif block not in self._others:
            self._others.append(dict(block))

    def finish(self, report: ImportReport) -> None:
        """Fill the message from all that was taken in."""
        message = self.message
        if self._texts:
            message["content"] = "\n\n".join(self._texts)
        if self._thoughts:
            message["reasoning_content"] = "\n\n".join(self._thoughts)
        if self._calls:
            message["tool_calls"] = self._calls
        reason = FINISH_REASONS.get(self._stop or "", self._stop)
        if reason is None and self._calls:
            reason = "tool_calls"
        if reason is not None:
            message["finish_reason"] = reason
        if self._reported is not None:
            set_usage(message, self._reported, self._advisor)
        if self._others:
            message["source"] = {**message.get("source", {}), "blocks": self._others}
            for block in self._others:
                report.skipped[f"block kept as it is: {block.get('type')}"] += 1
