"""Gemini's API: ``contents`` with ``role`` and ``parts``, in camelCase or with underscores, and its tuning examples.

A ``functionCall`` becomes a call and its ``functionResponse`` the result; where neither has an id, they are paired by
name, in order. Thoughts become reasoning; code that the model ran is a call of ``code_execution``. A thought's
signature stays on its call, as Gemini's OpenAI-compatible address has it.

Does not know how the messages are wrapped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sessions_lib.importers.chat.parts import arguments, data_url, file_part, joined, result
from sessions_lib.importers.imported import ImportReport, as_call, iso, set_usage, word
from sessions_lib.messages import content
from sessions_lib.messages.content import Message

_ROLES = {"model": "assistant", "": "user", "function": "user"}
_TAKEN = ("role", "parts", "usageMetadata")
_CODE = "code_execution"


def looks_like(listed: Sequence[Any]) -> bool:
    """True if these are contents: messages with parts that have no type."""
    return any(isinstance(one, Mapping) and _is_one(one) for one in listed)


def _is_one(one: Mapping[str, Any]) -> bool:
    parts = one.get("parts")
    if not isinstance(parts, list):
        return isinstance(parts, str) and one.get("role") == "model"
    untyped = [part for part in parts if isinstance(part, str) or (isinstance(part, Mapping) and "type" not in part)]
    return bool(parts) and len(untyped) == len(parts) and "content" not in one


def convert(listed: Sequence[Any], report: ImportReport) -> list[Message]:
    """The messages that ``listed`` says."""
    reader = Contents(report)
    for one in listed:
        if isinstance(one, Mapping):
            reader.take(one)
        else:
            report.skipped["entry that is no message"] += 1
    return reader.messages


class Contents:
    """The contents of one conversation, one after the other."""

    def __init__(self, report: ImportReport) -> None:
        self.messages: list[Message] = []
        self._report = report
        self._open: dict[str, list[str]] = {}  # a tool's name -> the ids of its calls without a result

    def take(self, one: Mapping[str, Any]) -> None:
        """Take in one content: what a model says behind the output of its own code is another answer."""
        role = word(one.get("role"))
        given = one.get("parts")
        base: Message = {key: value for key, value in one.items() if key not in _TAKEN}
        base = {"role": _ROLES.get(role, role), "content": None, **base}
        if (moment := iso(base.pop("createTime", None))) is not None:
            base["timestamp"] = moment
        groups: list[list[Any]] = [[]]
        for part in given if isinstance(given, list) else [given]:
            if base["role"] == "assistant" and groups[-1] and _is_output(groups[-1][-1]) and not _is_output(part):
                groups.append([])
            groups[-1].append(part)
        for number, parts in enumerate(groups, 1):
            usage = one.get("usageMetadata") if number == len(groups) else None
            self._take(dict(base), parts, usage)

    def _take(self, base: Message, parts: list[Any], usage: Any) -> None:
        said: list[Any] = []
        thoughts: list[str] = []
        results: list[Message] = []
        calls: list[dict[str, Any]] = []
        others: list[Any] = []
        for part in parts:
            found = part if isinstance(part, Mapping) else {"text": part}
            if found.get("thought") is True and (thought := word(found.get("text"))):
                thoughts.append(thought)
            elif (call := self._call(found)) is not None:
                calls.append(call)
            elif (answer := self._result(found)) is not None:
                results.append(answer)
            elif (text := _said(found)) is not None:
                said.append(text)
            else:
                others.append(part)
        if thoughts:
            base["reasoning_content"] = "\n\n".join(thoughts)
        if calls:
            base["tool_calls"] = calls
        set_usage(base, usage)
        if others:
            base["source"] = {"parts": others}
            self._report.skipped["part kept as it is"] += len(others)
        base["content"] = joined(said)
        keep = bool(said or thoughts or calls or others or not results)
        if base["role"] == "assistant":  # code that it ran stands behind the call
            self.messages += [base] * keep + results
        else:
            self.messages += results + [{**base, "content": base["content"] or ""}] * keep

    def _call(self, part: Mapping[str, Any]) -> dict[str, Any] | None:
        called = _get(part, "functionCall")
        code = _get(part, "executableCode")
        if not isinstance(called, Mapping) and not isinstance(code, Mapping):
            return None
        found = called if isinstance(called, Mapping) else {"name": _CODE, "args": code}
        name = word(found.get("name"))
        call_id = word(found.get("id")) or f"call_{len(self.messages)}_{sum(map(len, self._open.values()))}"
        self._open.setdefault(name, []).append(call_id)
        call = as_call(call_id, name, arguments(found.get("args")))
        signature = _get(part, "thoughtSignature")
        return {**call, "extra_content": {"google": {"thought_signature": signature}}} if signature else call

    def _result(self, part: Mapping[str, Any]) -> Message | None:
        answered = _get(part, "functionResponse")
        code = _get(part, "codeExecutionResult")
        if not isinstance(answered, Mapping) and not isinstance(code, Mapping):
            return None
        found = answered if isinstance(answered, Mapping) else {"name": _CODE, "response": code}
        name, given = word(found.get("name")), found.get("response")
        waiting = self._open.get(name, [])
        call_id = word(found.get("id")) or (waiting[0] if waiting else f"call_{len(self.messages)}")
        if call_id in waiting:
            waiting.remove(call_id)
        inner = given.get("output", given.get("result")) if isinstance(given, Mapping) and len(given) == 1 else None
        made: Message = {"role": "tool", "tool_call_id": call_id, "name": name}
        made["content"] = result(given if inner is None else inner)
        failed = isinstance(given, Mapping) and (
            given.keys() == {"error"} or word(given.get("outcome")) in ("OUTCOME_FAILED", "OUTCOME_DEADLINE_EXCEEDED")
        )
        return {**made, "is_error": True} if failed else made


def _is_output(part: Any) -> bool:
    return isinstance(part, Mapping) and _get(part, "codeExecutionResult") is not None


def _said(part: Mapping[str, Any]) -> Any:
    """Text as a string, a file as a part; ``None`` for what is neither."""
    if isinstance(part.get("text"), str):
        return part["text"]
    for name in ("inlineData", "fileData"):
        file = _get(part, name)
        if isinstance(file, Mapping):
            kind = word(_get(file, "mimeType"))
            url = word(_get(file, "fileUri")) or data_url(kind, file.get("data"))
            return file_part(url, kind, word(_get(file, "displayName")))
    return None


def _get(found: Mapping[str, Any], name: str) -> Any:
    """The value of ``name``, also where it is spelled with underscores."""
    spelled = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    return found.get(name, found.get(spelled))


def text_of(instruction: Any) -> str:
    """The text of a ``systemInstruction``: a string, a content, or its parts."""
    if isinstance(instruction, Mapping):
        instruction = instruction.get("parts", instruction.get("text"))
    parts = instruction if isinstance(instruction, list) else [instruction]
    return "\n\n".join(filter(None, (content.as_text(p.get("text") if isinstance(p, Mapping) else p) for p in parts)))
