"""What plain ``openai`` code says, written down: ``with record(client, session) as client: …``.

What is sent is on the disk before the request goes out, and the answer when it has come, over Chat Completions and
Responses, streamed or not, sync or async. A history that parts from what was written goes on in a fork of the session,
which begins anew if nothing of it was written; an old part that is no longer sent is no change.

Does not change a request or an answer. Of several ``choices`` the first is written.
"""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sessions_lib.agent.providers.endpoints import without_secrets
from sessions_lib.agent.streaming import Answer
from sessions_lib.messages import content, model_calls, tool_calls
from sessions_lib.messages import items as converting
from sessions_lib.messages.content import Message
from sessions_lib.messages.identity import said
from sessions_lib.store.manager import SessionManager
from sessions_lib.store.session import Session

Client = TypeVar("Client")
_SYSTEM = ("system", "developer")


@contextmanager
def record(client: Client, session: Session | str) -> Iterator[Client]:
    """A client that asks as ``client`` does and writes into ``session``, or the one of that id, made if need be.

    ``client`` itself is not changed. What a stream has brought by the end of the block is kept as interrupted.
    """
    kept = SessionManager().open_or_create(session) if isinstance(session, str) else session
    copy: Any = client.with_options()  # type: ignore[attr-defined] # every client of openai has it
    recorder = _Recorder(kept, str(copy.base_url))
    for place, sent, answer in (
        (copy.chat.completions, _chat_sent, _ChatAnswer),
        (copy.responses, _items_sent, _ItemsAnswer),
    ):
        for name in ("create", "parse"):
            setattr(place, name, recorder.around(getattr(place, name), sent, answer))
    try:
        yield copy
    finally:
        recorder.end()


# ---------------------------------------------------------------- what is sent


@dataclass(slots=True)
class _Sent:
    """A request: its system prompt, its messages, and the answer that the server itself keeps what is before."""

    system: str
    messages: list[Message]
    after: str | None = None


def _chat_sent(arguments: Mapping[str, Any]) -> _Sent:
    said = [_plain(message) for message in arguments.get("messages") or ()]
    begin = next((at for at, message in enumerate(said) if message.get("role") not in _SYSTEM), len(said))
    return _Sent("\n\n".join(map(content.text, said[:begin])), said[begin:])


def _items_sent(arguments: Mapping[str, Any]) -> _Sent:
    given = arguments.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else [_plain(one) for one in given or ()]
    said = converting.to_messages(items)
    begin = next((at for at, message in enumerate(said) if message.get("role") not in _SYSTEM), len(said))
    system = [str(arguments.get("instructions") or ""), *map(content.text, said[:begin])]
    after = arguments.get("previous_response_id")
    return _Sent("\n\n".join(filter(None, system)), said[begin:], after if isinstance(after, str) else None)


def _plain(value: Any) -> dict[str, Any]:
    """What the SDK takes as a message, an item or an event, as a dict."""
    if hasattr(value, "model_dump"):
        value = value.model_dump(exclude_none=True, mode="json", warnings=False)
    return dict(value)


# ---------------------------------------------------------------- what is answered


class _ChatAnswer:
    def __init__(self) -> None:
        self._answer = Answer()

    def add(self, event: Mapping[str, Any]) -> None:
        self._answer.add(event)

    def message(self) -> Message | None:
        if not self._answer.says_anything:
            return None
        return {**self._answer.message(), **({"model": self._answer.model} if self._answer.model else {})}


class _ItemsAnswer:
    """An answer over Responses: the items that are whole, and at its end the response."""

    def __init__(self) -> None:
        self._items: list[dict[str, Any]] = []
        self._response: Mapping[str, Any] = {}
        self._words: list[str] = []

    def add(self, event: Mapping[str, Any]) -> None:
        kind = event.get("type")
        if isinstance(event.get("response"), Mapping):
            self._response = event["response"]
        elif event.get("object") == "response":
            self._response = event
        elif kind == "response.output_item.done":
            self._items.append(event["item"])
            self._words.clear()
        elif kind == "response.output_text.delta":
            self._words.append(content.as_text(event.get("delta")))

    def message(self) -> Message | None:
        items = self._response.get("output") or self._items
        is_whole = self._response.get("status") in ("completed", "incomplete")
        if not is_whole and self._words:
            items = [*items, {"type": "message", "role": "assistant", "content": "".join(self._words)}]
        if not items:
            return None
        (message,) = converting.to_messages(items)
        if self._response.get("id"):
            message["response_id"] = self._response["id"]
        for key in ("model", "usage"):
            if self._response.get(key):
                message[key] = self._response[key]
        if "usage" in message and (tier := model_calls.unusual_tier(self._response)):
            message["usage"] = {**message["usage"], "service_tier": tier}
        if is_whole:
            cut = (self._response.get("incomplete_details") or {}).get("reason")
            ended = "tool_calls" if message.get("tool_calls") else "stop"
            return {**message, "finish_reason": "length" if cut == "max_output_tokens" else cut or ended}
        return {**message, "interrupted": True}


# ---------------------------------------------------------------- where it is written


@dataclass(slots=True)
class _Waiting:
    """A request that was sent: where its answer goes, and what came of it so far."""

    branch: Session
    answer: Any
    began: float = field(default_factory=time.monotonic)
    first_ms: int | None = None
    is_over: bool = False


class _Recorder:
    def __init__(self, session: Session, base_url: str) -> None:
        self._branches = [session]
        self._base_url = without_secrets(base_url)
        self._open: list[_Waiting] = []
        self._mutex = threading.Lock()

    def around(self, ask: Callable[..., Any], sent: Callable[..., _Sent], answer: Callable[[], Any]) -> Any:
        """``ask``, written down before and after."""
        if inspect.iscoroutinefunction(inspect.unwrap(ask)):

            async def asked_later(*args: Any, **arguments: Any) -> Any:
                waiting = self._begin(sent(arguments), arguments, answer)
                result = await ask(*args, **arguments)
                if hasattr(result, "__anext__"):
                    result._iterator = self._listened_later(waiting, result._iterator)
                    return result
                return self._answered(waiting, result)

            return asked_later

        def asked(*args: Any, **arguments: Any) -> Any:
            waiting = self._begin(sent(arguments), arguments, answer)
            result = ask(*args, **arguments)
            if hasattr(result, "__next__"):
                result._iterator = self._listened(waiting, result._iterator)
                return result
            return self._answered(waiting, result)

        return asked

    def end(self) -> None:
        """Keep what has come of the answers that are still open."""
        for waiting in [*self._open]:
            self._finish(waiting)

    def _begin(self, sent: _Sent, arguments: Mapping[str, Any], answer: Callable[[], Any]) -> _Waiting:
        with self._mutex:
            branch, new = self._place(sent)
            settings = {"system": sent.system or None, "model": arguments.get("model"), "base_url": self._base_url}
            changed = {key: value for key, value in settings.items() if value and branch.meta.get(key) != value}
            if changed:
                branch.update_meta(changed)
            branch.extend(new)
            waiting = _Waiting(branch, answer())
            self._open.append(waiting)
            return waiting

    def _place(self, sent: _Sent) -> tuple[Session, list[Message]]:
        """The session in which ``sent`` goes on, and what it does not have yet."""
        if sent.after is not None:
            for branch in self._branches:
                if branch.messages and branch.messages[-1].get("response_id") == sent.after:
                    return branch, sent.messages
        asked = [_key(message) for message in sent.messages]
        fits = [(*_fit([_key(message) for message in branch.messages], asked), branch) for branch in self._branches]
        shared, goes_on, branch = max(fits, key=lambda fit: fit[:2])
        if goes_on:
            return branch, sent.messages[shared:]
        at = next(at for at in range(shared, -1, -1) if tool_calls.is_fork_point(branch.messages, at))
        new = branch.fork(at=at)
        self._branches.append(new)
        return new, sent.messages[at:]

    def _answered(self, waiting: _Waiting, result: Any) -> Any:
        whole = result.parse() if hasattr(result, "http_response") else result  # of ``with_raw_response``
        waiting.answer.add(_plain(whole))
        self._finish(waiting)
        return result

    def _listened(self, waiting: _Waiting, events: Iterator[Any]) -> Iterator[Any]:
        try:
            for event in events:
                self._hear(waiting, event)
                yield event
        finally:
            self._finish(waiting)

    async def _listened_later(self, waiting: _Waiting, events: AsyncIterator[Any]) -> AsyncIterator[Any]:
        try:
            async for event in events:
                self._hear(waiting, event)
                yield event
        finally:
            self._finish(waiting)

    def _hear(self, waiting: _Waiting, event: Any) -> None:
        waiting.answer.add(_plain(event))
        if waiting.first_ms is None and waiting.answer.message() is not None:
            waiting.first_ms = _ms_since(waiting.began)

    def _finish(self, waiting: _Waiting) -> None:
        with self._mutex:
            if waiting.is_over:
                return
            waiting.is_over = True
            self._open.remove(waiting)
            message = waiting.answer.message()
            if message is not None:
                known: dict[str, Any] = {"duration_ms": _ms_since(waiting.began), "first_token_ms": waiting.first_ms}
                known["base_url"] = self._base_url
                waiting.branch.append({**message, **{key: value for key, value in known.items() if value is not None}})


def _ms_since(began: float) -> int:
    return round((time.monotonic() - began) * 1000)


def _key(message: Mapping[str, Any]) -> tuple[Any, ...]:
    """What ``message`` says, alike as it is stored and as it is sent again."""
    if message.get("role") == "assistant":  # thoughts between tags are taken out of what is stored
        answer = Answer()
        answer.add({"choices": [{"message": message, "finish_reason": "stop"}]})
        message = {**answer.message(), "role": "assistant"}
    calls = [(call.name, call.arguments) for call in tool_calls.calls_of(message)]
    words = said(message.get("content"), message.get("refusal"))
    return message.get("role"), words, calls, message.get("tool_call_id")


def _fit(known: Sequence[Any], asked: Sequence[Any]) -> tuple[int, bool]:
    """How many of ``asked`` are in ``known``, and whether the rest goes on behind it: else it parted there."""
    same = next(
        (at for at, (a, b) in enumerate(zip(known, asked, strict=False)) if a != b), min(len(known), len(asked))
    )
    if same == len(known):
        return same, True
    tail = next((size for size in range(len(asked), 0, -1) if list(known[-size:]) == list(asked[:size])), 0)
    return (tail, True) if tail > same else (same, False)
