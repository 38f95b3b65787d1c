"""An answer put together from the chunks of a Chat Completions stream, whatever the provider makes of the format.

* ``choices`` may be empty, ``null`` or absent (the chunk then carries usage, or nothing); only the first choice counts.
* Text may be a string, ``null`` or a list of parts; reasoning comes as ``reasoning_content``, ``reasoning``, parts, or
  between tags at the start of the text (see ``thoughts``).
* Tool calls: see ``_Calls``. Ids may be missing, empty or repeated: each stored call has one of its own.
* What a provider wants back with its calls and messages is kept under its own names (see ``providers.owned``).
* An answer is whole only with a ``finish_reason`` that is no failure: a connection that ends looks like an end
  otherwise.
* Usage may come in several chunks, in parts, as it grows, or with a last chunk of zeros: of each count the largest is
  the answer's.

**What becomes of cut calls.** Calls of an answer that was cut (no ``finish_reason``, or ``length``) may be half calls.
They are neither run nor stored as calls; their text is kept in the message under ``unfinished_calls`` (name and
arguments as far as they came), which no provider is sent.

Does not read the network or the clock.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sessions_lib.agent.providers import owned
from sessions_lib.agent.thoughts import Thoughts, closed_only
from sessions_lib.messages import content, model_calls, tool_calls, usage
from sessions_lib.messages.content import Message

CUT_REASONS = ("length", "content_filter", "max_tokens", "model_context_window_exceeded")
# Words in reasons that say the server failed: OpenRouter, vLLM and SGLang, DeepSeek, GLM, Gemini, Kimi, proxies.
_FAILED = re.compile(
    r"error|abort|cancel|fail|exception|interrupt|insufficient|malformed|overload|unavailable|disconnect|preempt"
    r"|time_?d?_?out",
    re.IGNORECASE,
)


@dataclass(slots=True)
class _PartialCall:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)  # the provider's own keys of the call
    function_more: dict[str, Any] = field(default_factory=dict)  # and of its function

    @property
    def written(self) -> str:
        return "".join(self.arguments)

    @property
    def is_whole(self) -> bool:
        """True if the arguments so far are a JSON object: what comes next under another name is another call."""
        written = self.written
        return bool(written.strip()) and tool_calls.arguments(tool_calls.Call(0, 0, "", "", written)) is not None


class _Calls:
    """The calls of one answer. A delta belongs to the call of its ``index``, or of its id, or to the last one.

    It starts a new call where there is none yet, and where it names a tool and either carries an id that is not the
    call's own (servers that send ``index`` 0 for all) or finds the call's arguments complete (servers without ids).
    Without an index, every named delta that is not of a known id starts a call. The one call of the legacy form
    (``function_call``) counts where there are no others.
    """

    def __init__(self) -> None:
        self._calls: list[_PartialCall] = []
        self._legacy: _PartialCall | None = None
        self._by_index: dict[int, _PartialCall] = {}

    def add(self, delta: Mapping[str, Any]) -> None:
        function = delta.get("function")
        function = function if isinstance(function, Mapping) else {}
        call_id, name = content.as_text(delta.get("id")), content.as_text(function.get("name"))
        arguments = content.as_text(function.get("arguments"))
        index = delta.get("index")
        index = index if isinstance(index, int) and not isinstance(index, bool) else None
        call = self._of(index, call_id, name, arguments)
        call.id = call.id or call_id
        _add_to(call, name, arguments)
        owned.take(call.more, delta, beside=("index", "id", "type", "function"))
        owned.take(call.function_more, function, beside=("name", "arguments"))

    def add_legacy(self, delta: Mapping[str, Any]) -> None:
        """Take in a ``function_call``, which is one for the whole answer and has no id."""
        self._legacy = self._legacy or _PartialCall()
        _add_to(self._legacy, content.as_text(delta.get("name")), content.as_text(delta.get("arguments")))

    def _of(self, index: int | None, call_id: str, name: str, arguments: str) -> _PartialCall:
        if index is None:
            known = next((call for call in self._calls if call_id and call.id == call_id), None)
            if known is not None:
                return known
            return self._new(None) if name or not self._calls else self._calls[-1]
        call = self._by_index.get(index)
        if call is None:
            return self._new(index)
        another_id = bool(call_id and call.id and call_id != call.id)
        if name and (another_id or (not call_id and arguments and call.is_whole)):
            return self._new(index)
        return call

    def _new(self, index: int | None) -> _PartialCall:
        call = _PartialCall()
        self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        return call

    @property
    def _all(self) -> list[_PartialCall]:
        return self._calls or ([self._legacy] if self._legacy is not None else [])

    @property
    def are_owned(self) -> bool:
        """True if the provider put keys of its own on one of them."""
        return any(call.more or call.function_more for call in self._all)

    def whole(self) -> list[dict[str, Any]]:
        """The calls as a message holds them, each with an id of its own."""
        used: set[str] = set()
        made = []
        for call in self._all:
            call_id = call.id
            if not call_id or call_id in used:
                call_id = "call_" + secrets.token_hex(8)
            used.add(call_id)
            function = {"name": call.name, "arguments": call.written, **call.function_more}
            made.append({"id": call_id, "type": "function", "function": function, **call.more})
        return made

    def unfinished(self) -> list[dict[str, str]]:
        """The calls as plain text."""
        return [{"name": call.name, "arguments": call.written} for call in self._all]


def _add_to(call: _PartialCall, name: str, arguments: str) -> None:
    if name and name != call.name:
        call.name += name  # some servers send a name in pieces
    call.arguments.append(arguments)


class Answer:
    """One answer while it arrives: ``add`` chunks, then take ``message``."""

    def __init__(self) -> None:
        self.chunks = 0
        self.finish_reason: str | None = None
        self.model: str = ""
        self.usage: dict[str, Any] | None = None
        self._tier: dict[str, Any] = {}  # the service tier: what the price depends on, too
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._thoughts = Thoughts()
        self._calls = _Calls()
        self._has_calls = False
        self._owned: dict[str, Any] = {}

    def add(self, chunk: Mapping[str, Any]) -> tuple[str, str]:
        """Take in one chunk and return what it adds to the text and to the reasoning, each ``""`` if nothing."""
        self.chunks += 1
        if isinstance(chunk.get("usage"), Mapping) and chunk["usage"]:
            self.usage = usage.fuller(self.usage, chunk["usage"])
        if model_calls.unusual_tier(chunk):
            self._tier = {"service_tier": chunk["service_tier"]}
        if isinstance(chunk.get("model"), str):
            self.model = chunk["model"] or self.model
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, Mapping):
            return "", ""
        if isinstance(choice.get("finish_reason"), str):
            self.finish_reason = choice["finish_reason"] or self.finish_reason
        # A server that does not stream sends the whole message in one chunk.
        delta = choice.get("delta") or choice.get("message")
        return self._add_delta(delta) if isinstance(delta, Mapping) else ("", "")

    def _add_delta(self, delta: Mapping[str, Any]) -> tuple[str, str]:
        text, thought = _said(delta.get("content"))
        text, inner = self._thoughts.add(text)
        thought += content.reasoning(delta) + inner
        refusal = content.as_text(delta.get("refusal"))
        self._text.append(text)
        self._reasoning.append(thought)
        self._refusal.append(refusal)
        listed = delta.get("tool_calls")
        for call in listed if isinstance(listed, list) else ():
            if isinstance(call, Mapping):
                self._has_calls = True
                self._calls.add(call)
        legacy = delta.get("function_call")
        if isinstance(legacy, Mapping) and (legacy.get("name") or legacy.get("arguments")):  # else none was made
            self._has_calls = True
            self._calls.add_legacy(legacy)
        owned.take_message(self._owned, delta)
        return text or refusal, thought

    @property
    def is_whole(self) -> bool:
        """True if the provider said why it ended, and did not say that it failed."""
        return self.finish_reason is not None and not _FAILED.search(self.finish_reason)

    @property
    def says_anything(self) -> bool:
        """True if there is text, reasoning, a refusal or a part of a call: something to keep."""
        return self._has_calls or any(map(any, (self._text, self._reasoning, self._refusal, self._thoughts.rest)))

    @property
    def owned_keys(self) -> list[str] | None:
        """The keys of the message that go back to the provider, and to no other; ``None`` if nothing at all does."""
        found = owned.returned(self._owned, has_calls=self._has_calls)
        return found if found or self._calls.are_owned else None

    def message(self) -> Message:
        """The answer as an assistant message, so far as it came; ``interrupted`` if the provider did not end it."""
        text, reasoning = self._words()
        message: Message = {"role": "assistant", "content": text or None}
        if refusal := "".join(self._refusal):
            message["refusal"] = refusal
        if self._has_calls and self.is_whole and (self.finish_reason or "").lower() not in CUT_REASONS:
            message["tool_calls"] = self._calls.whole()
        elif self._has_calls:
            message["unfinished_calls"] = self._calls.unfinished()
        if reasoning:
            message["reasoning_content"] = reasoning
        message.update({key: value for key, value in self._owned.items() if key != owned.REASONING})
        if self.finish_reason is not None:
            message["finish_reason"] = self.finish_reason
        if not self.is_whole:
            message["interrupted"] = True
        if self.usage is not None:
            message["usage"] = {**self.usage, **self._tier}
        return message

    def _words(self) -> tuple[str, str]:
        """The text and the reasoning, with what is known only at the end: which of them was not told by tags."""
        late_text, late_thought = self._thoughts.rest
        text, reasoning = "".join(self._text) + late_text, "".join(self._reasoning) + late_thought
        if self._thoughts.unclosed and self.finish_reason == "stop" and not text and not self._has_calls:
            return self._thoughts.unclosed + reasoning, ""  # it ended, so its answer is in there
        said, opened_elsewhere = closed_only(text)
        return said, reasoning + opened_elsewhere


def _said(value: Any) -> tuple[str, str]:
    """The text and the reasoning in a delta's content."""
    if not isinstance(value, list):
        return content.as_text(value), ""
    texts, thoughts = [], []
    for item in value:
        if isinstance(item, Mapping) and item.get("type") in ("thinking", "reasoning"):
            inner = item.get(str(item["type"]), item.get("text"))
            thoughts.append(content.text({"content": inner}) if isinstance(inner, list) else content.as_text(inner))
        else:
            texts.append(content.text({"content": [item]}))
    return "".join(texts), "".join(thoughts)
