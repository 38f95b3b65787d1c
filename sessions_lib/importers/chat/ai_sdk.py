"""The AI SDK's messages: ``parts`` since version 5, ``content`` and ``toolInvocations`` before, and its model messages.

An answer holds its tools' results. It becomes what it was, step by step: an answer with calls, their results, and the
answer to these. Files become pictures, files or links; sources become text behind the answer. Parts that are the
application's own (``data-…``), ``metadata`` and ``annotations`` are kept under ``source``; times, model and tokens are
taken from there where an application put them.

Does not know how the messages are wrapped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sessions_lib.importers.chat.parts import arguments, data_url, file_part, joined, result
from sessions_lib.importers.imported import ImportReport, as_call, iso, set_usage, word
from sessions_lib.messages import content
from sessions_lib.messages.content import Message

_MODEL_PARTS = ("tool-call", "tool-result", "tool-error", "tool-approval-request", "tool-approval-response")
_FINISH_REASONS = {"tool-calls": "tool_calls", "content-filter": "content_filter"}
_FAILED = ("output-error", "output-denied")
_ANSWERED = ("result", "output-available", *_FAILED)
_TAKEN = ("id", "role", "parts", "content", "createdAt", "metadata", "annotations", "reasoning", "toolInvocations")
_FILES = ("experimental_attachments", "attachments")


def looks_like(listed: Sequence[Any]) -> bool:
    """True if any of these messages is one of the AI SDK's."""
    return any(isinstance(message, Mapping) and _is_one(message) for message in listed)


def _is_one(message: Mapping[str, Any]) -> bool:
    if isinstance(message.get("toolInvocations"), list) or isinstance(message.get("experimental_attachments"), list):
        return True
    if any(isinstance(part, Mapping) and word(part.get("type")) for part in _list(message.get("parts"))):
        return True
    return any(isinstance(part, Mapping) and part.get("type") in _MODEL_PARTS for part in _list(message.get("content")))


def convert(listed: Sequence[Any], report: ImportReport) -> list[Message]:
    """The messages that ``listed`` says."""
    made: list[Message] = []
    for message in listed:
        if not isinstance(message, Mapping) or not word(message.get("role")):
            report.skipped["entry that is no message"] += 1
        elif message["role"] == "assistant":
            made += _Answer(message).messages(report)
        elif message["role"] == "tool":
            made += _results(message)
        else:
            said = [_part(part) for part in _parts(message)]
            plain = _plain(message)
            made.append({**plain, "content": joined([part for part in said if part is not None]) or ""})
    return made


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _parts(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The parts of a message of any version, its attachments last."""
    parts = [part for part in _list(message.get("parts")) if isinstance(part, Mapping)]
    said = message.get("content")
    if not any(part.get("type") == "text" for part in parts):
        if isinstance(said, str) and said:
            parts.append({"type": "text", "text": said})
        elif isinstance(said, list):
            parts += [part if isinstance(part, Mapping) else {"type": "text", "text": part} for part in said]
    files = [file for key in _FILES for file in _list(message.get(key)) if isinstance(file, Mapping)]
    return [*parts, *({**file, "type": "file"} for file in files)]


def _plain(message: Mapping[str, Any]) -> Message:
    """The message without what it says: role, id, time, and the keys that nobody knows."""
    told = message.get("metadata")
    metadata: Mapping[str, Any] = told if isinstance(told, Mapping) else {}
    made: Message = {"role": message["role"], "content": None}
    made |= {key: value for key, value in message.items() if key not in (*_TAKEN, *_FILES)}
    if word(message.get("id")):
        made["id"] = message["id"]
    times = (message.get("createdAt"), metadata.get("createdAt"), metadata.get("created_at"), metadata.get("timestamp"))
    if (moment := next(filter(None, map(iso, times)), None)) is not None:
        made["timestamp"] = moment
    source = {key: message[key] for key in ("metadata", "annotations") if message.get(key)}
    return {**made, "source": source} if source else made


def _part(part: Mapping[str, Any]) -> Any:
    """Text as a string, a file or a source as a part; ``None`` for what says nothing of its own."""
    kind = word(part.get("type"))
    if kind == "text":
        return content.as_text(part.get("text"))
    if kind in ("file", "image"):
        return _file(part)
    if kind in ("source", "source-url", "source-document"):
        source = part["source"] if isinstance(part.get("source"), Mapping) else part
        named = [word(source.get(key)) for key in ("title", "filename", "url")]
        return {**part, "text": " ".join(filter(None, ("Source:", *named)))}
    return None


def _is_source(part: Any) -> bool:
    return isinstance(part, dict) and word(part.get("type")).startswith("source")


def _file(part: Mapping[str, Any]) -> dict[str, Any]:
    kinds = (part.get(key) for key in ("mediaType", "mimeType", "contentType"))
    kind = next(filter(None, map(word, kinds)), "image/png" if part["type"] == "image" else "")
    given = next((part[key] for key in ("url", "data", "image") if word(part.get(key))), "")
    is_url = given.startswith(("http:", "https:", "data:", "blob:", "file:"))
    return file_part(
        given if is_url else data_url(kind, given), kind, word(part.get("filename")) or word(part.get("name"))
    )


def _results(message: Mapping[str, Any]) -> list[Message]:
    """The results in a model message of role ``tool``."""
    made = []
    for part in _parts(message):
        if part.get("type") in ("tool-result", "tool-error"):
            made.append({**_plain(message), **_result(part)})
    return _numbered(made)


def _result(part: Mapping[str, Any]) -> Message:
    state = word(part.get("state"))
    given = next((part[key] for key in ("output", "result", "error", "errorText") if part.get(key) is not None), None)
    failed = state in _FAILED or part.get("type") == "tool-error" or part.get("isError") is True
    if state == "output-error":
        given = part.get("errorText") or given
    elif state == "output-denied":
        approval = part.get("approval")
        reason = approval.get("reason") if isinstance(approval, Mapping) else None
        given = given or f"Denied by the person{f': {reason}' if reason else '.'}"
    if isinstance(given, Mapping) and word(given.get("type")) in ("text", "json", "error-text", "error-json"):
        failed = failed or given["type"].startswith("error")  # a model message says what kind of output it is
        given = given.get("value")
    made: Message = {"role": "tool", "tool_call_id": content.as_text(part.get("toolCallId")), "content": result(given)}
    if name := _tool_of(part):
        made["name"] = name
    return {**made, "is_error": True} if failed else made


def _tool_of(part: Mapping[str, Any]) -> str:
    kind = word(part.get("type"))
    return word(part.get("toolName")) or (kind.removeprefix("tool-") if kind.startswith("tool-") else "")


def _numbered(made: list[Message]) -> list[Message]:
    """Ids for the messages that one message became: its own for the first, then ``ID:1`` …"""
    return [{**m, "id": f"{m['id']}:{number}"} if number and "id" in m else m for number, m in enumerate(made)]


@dataclass(slots=True)
class _Step:
    """One step of an answer: what was said and thought, the calls, and their results."""

    said: list[Any] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    results: list[Message] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.said or self.thoughts or self.calls or self.results)


class _Answer:
    """An answer, part by part."""

    def __init__(self, message: Mapping[str, Any]) -> None:
        self._message = message
        self._steps = [_Step()]
        self._others: list[Any] = []
        self._is_cut = False
        for part in self._ordered():
            self._take(part)

    def _ordered(self) -> Iterator[Mapping[str, Any]]:
        """The parts in the order they came: before version 5, the calls that are answered stand before the text."""
        parts = _parts(self._message)
        held = [part["toolInvocation"] for part in parts if isinstance(part.get("toolInvocation"), Mapping)]
        known = {content.as_text(call.get("toolCallId")) for call in [*held, *parts]}
        others = [call for call in _list(self._message.get("toolInvocations")) if isinstance(call, Mapping)]
        others = [call for call in others if content.as_text(call.get("toolCallId")) not in known]
        if (thought := word(self._message.get("reasoning"))) and all(p.get("type") != "reasoning" for p in parts):
            yield {"type": "reasoning", "text": thought}
        answered = [call for call in others if word(call.get("state")) in _ANSWERED]
        step = answered[0].get("step") if answered else None
        for call in answered:
            if call.get("step") != step:
                step = call.get("step")
                yield {"type": "step-start"}
            yield {"type": "tool-invocation", "toolInvocation": call}
        yield from parts
        for call in others:
            if call not in answered:
                yield {"type": "tool-invocation", "toolInvocation": call}

    def _take(self, part: Mapping[str, Any]) -> None:
        kind, step = word(part.get("type")), self._steps[-1]
        if kind == "step-start":
            self._next()
        elif kind == "reasoning":
            text = content.as_text(part.get("text")) or content.as_text(part.get("reasoning"))
            if text:
                self._open().thoughts.append(text)
        elif kind == "tool-invocation" and isinstance(part.get("toolInvocation"), Mapping):
            self._call(part["toolInvocation"])
        elif kind in ("tool-result", "tool-error") and "toolName" in part and "state" not in part:
            step.results.append(_result(part))  # of a tool that the provider ran
        elif kind == "dynamic-tool" or (kind.startswith("tool-") and "toolCallId" in part):
            self._call(part)
        elif (said := _part(part)) is not None:
            self._open().said.append(said)
            self._is_cut = self._is_cut or part.get("state") == "streaming"
        else:
            self._others.append(part)

    def _next(self) -> None:
        if self._steps[-1]:
            self._steps.append(_Step())

    def _open(self) -> _Step:
        """The step that goes on; what is said behind a result is another one."""
        if self._steps[-1].results:
            self._next()
        return self._steps[-1]

    def _call(self, part: Mapping[str, Any]) -> None:
        step = self._steps[-1]
        given = next((part[key] for key in ("input", "args", "rawInput") if part.get(key) is not None), None)
        step.calls.append(as_call(content.as_text(part.get("toolCallId")), _tool_of(part), arguments(given)))
        if word(part.get("state")) in _ANSWERED:
            step.results.append(_result(part))

    def messages(self, report: ImportReport) -> list[Message]:
        """The answers and results, in order; what is told of the whole stands on the last answer."""
        plain = _plain(self._message)
        told = self._message.get("metadata")
        metadata: Mapping[str, Any] = told if isinstance(told, Mapping) else {}
        made: list[Message] = []
        for step in [step for step in self._steps if step] or [_Step()]:
            answer: Message = {**plain, "content": joined(sorted(step.said, key=_is_source))}
            if step.thoughts:
                answer["reasoning_content"] = "\n\n".join(step.thoughts)
            if step.calls:
                answer["tool_calls"] = step.calls
            if model := word(metadata.get("model")) or word(metadata.get("modelId")):
                answer["model"] = model
            when = {"timestamp": plain["timestamp"]} if "timestamp" in plain else {}
            own = {"id": plain["id"]} if "id" in plain else {}
            made += [answer, *({**result, **own, **when} for result in step.results)]
        last = next(message for message in reversed(made) if message["role"] == "assistant")
        if reason := word(metadata.get("finishReason")):
            last["finish_reason"] = _FINISH_REASONS.get(reason, reason)
        if self._is_cut:
            last["interrupted"] = True
        used = (metadata.get("totalUsage"), metadata.get("usage"), self._message.get("usage"))
        set_usage(last, next((one for one in used if isinstance(one, Mapping)), None))
        if self._others:
            last["source"] = {**last.get("source", {}), "parts": self._others}
            for part in self._others:
                report.skipped[f"part kept as it is: {part.get('type')}"] += 1
        return _numbered(made)
