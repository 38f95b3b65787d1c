"""An answer that came in steps → messages: what was said, the calls, their results, and what was said to these.

Tools keep such an answer as one record. Each step becomes an assistant message and the results of its calls; the first
message has the record's id, the others ``ID:1``, ``ID:2`` and so on.

Does not know any tool's format.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sessions_lib.importers.imported import UNKNOWN_KIND, as_call
from sessions_lib.messages import content, encoding
from sessions_lib.messages.content import Message


def arguments(given: Any) -> str:
    """What a tool was called with, as the JSON text that a call holds."""
    if isinstance(given, str):
        return given or "{}"
    return encoding.encode({} if given is None else given).decode()


@dataclass(slots=True)
class _Step:
    said: list[Any] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    results: list[Message] = field(default_factory=list)
    told: dict[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.said or self.thoughts or self.calls or self.results)


class Steps:
    """One answer, taken in part by part; ``plain`` is what all its messages have: ``id``, ``timestamp``, ``model``."""

    def __init__(self, plain: Mapping[str, Any]) -> None:
        self._plain = dict(plain)
        self._steps = [_Step()]

    def next(self) -> None:
        """Another step begins."""
        if self._steps[-1]:
            self._steps.append(_Step())

    def _open(self) -> _Step:
        """The step that goes on; what comes behind a result is another one."""
        if self._steps[-1].results:
            self.next()
        return self._steps[-1]

    def say(self, part: Any) -> None:
        """A text, or another part of a content; blank texts are none."""
        if not isinstance(part, str) or part.strip():
            self._open().said.append(part)

    def unknown(self, kind: str, texts: Sequence[str]) -> None:
        """The texts in a part of a kind that is not known, marked as that."""
        self._open().said.append({"type": UNKNOWN_KIND, "kind": kind, "text": "\n".join(texts)})

    def think(self, text: str) -> None:
        """What the model thought."""
        if text.strip():
            self._open().thoughts.append(text)

    def call(self, call_id: str, name: str, given: Any, *, with_results: bool = False) -> None:
        """A call; ``with_results`` leaves it in the step of the results before it, as calls at once are."""
        step = self._steps[-1] if with_results else self._open()
        step.calls.append(as_call(call_id, name, arguments(given)))

    def result(self, call_id: str, said: Any, name: str = "", **told: Any) -> None:
        """What a call gave; ``told`` are other keys of its message (``is_error``, ``duration_ms``)."""
        message: Message = {"role": "tool", "tool_call_id": call_id, "content": said}
        self._steps[-1].results.append({**message, **({"name": name} if name else {}), **told})

    def tell(self, **told: Any) -> None:
        """Keys of this step's answer: ``usage``, ``finish_reason``, ``source``."""
        self._steps[-1].told |= told

    def messages(self) -> list[Message]:
        """The messages, in order; none if nothing was taken in."""
        made: list[Message] = []
        spare: dict[str, Any] = {}
        for step in self._steps:
            if not step:
                spare |= step.told
                continue
            answer: Message = {"role": "assistant", "content": joined(step.said), **self._plain}
            if step.thoughts:
                answer["reasoning_content"] = "\n\n".join(step.thoughts)
            if step.calls:
                answer["tool_calls"] = step.calls
            when = {key: self._plain[key] for key in ("id", "timestamp") if key in self._plain}
            made += [{**answer, **step.told}, *({**when, **result} for result in step.results)]
        if spare and made:
            last = next(message for message in reversed(made) if message["role"] == "assistant")
            last.update({**spare, **last})
        elif spare:
            made = [{"role": "assistant", "content": None, **self._plain, **spare}]
        return numbered(made)


def joined(parts: Sequence[Any]) -> Any:
    """The content of these parts: a string where there is only text, ``None`` for none."""
    if all(isinstance(part, str) for part in parts):
        return "\n\n".join(parts) or None
    return [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]


def numbered(made: list[Message]) -> list[Message]:
    """Ids for the messages that one record became: its own for the first, then ``ID:1`` …"""
    return [{**m, "id": f"{m['id']}:{number}"} if number and "id" in m else m for number, m in enumerate(made)]


def attached(name: Any, text: Any = None) -> Any:
    """A file that went with a prompt as a part: its text under its name, or its name alone."""
    shown = content.as_text(name) or "file"
    if isinstance(text, str) and text.strip():
        return {"type": "text", "text": f"{shown}:\n\n{text}"}
    return {"type": "file_link", "text": f"File: {shown}"}
