"""The Responses wire: a Chat Completions request as one of it, and its events as Chat Completions chunks.

Stateless: the server keeps nothing (``store=False``), so what it needs back comes with every request: reasoning with
its encrypted content, whole, in the items of the answer that it made (``items`` of a message, see ``owned``).

Does not send: ``chat`` does, over both wires.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sessions_lib.messages import items as converting

_ENDS = {"max_output_tokens": "length", "content_filter": "content_filter"}
_WITH_CALL_ID = ("function_call", "custom_tool_call")


def request(chat: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of ``responses.create`` that ask what the Chat Completions request ``chat`` asks."""
    said = list(chat["messages"])
    systems = [str(message["content"]) for message in said if message["role"] in ("system", "developer")]
    made: dict[str, Any] = {
        "input": [item for message in said for item in _items(message)],
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"summary": "auto"},
    }
    if systems:
        made["instructions"] = "\n\n".join(systems)
    if chat.get("tools"):
        made["tools"] = [{"type": "function", **tool["function"], "strict": False} for tool in chat["tools"]]
    if chat.get("reasoning_effort"):
        made["reasoning"]["effort"] = chat["reasoning_effort"]
    if "temperature" in chat:
        made["temperature"] = chat["temperature"]
    if "max_tokens" in chat or "max_completion_tokens" in chat:
        made["max_output_tokens"] = chat.get("max_completion_tokens", chat.get("max_tokens"))
    for key in chat.get("without", ()):  # what this server refused of ours
        made.pop(key, None)
        made["reasoning"].pop(key, None)
    if not made["reasoning"]:
        del made["reasoning"]
    return made


def _items(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The items of a message of the request; the calls under the ids that their results name."""
    if message["role"] in ("system", "developer"):
        return
    calls = iter(message.get("tool_calls") or ())
    for item in converting.to_items(message):
        call = next(calls, None) if item.get("type") in _WITH_CALL_ID else None
        yield {**item, "call_id": call["id"]} if call is not None else item


class Events:
    """The events of one response, each as the chunks that say the same over Chat Completions."""

    def __init__(self) -> None:
        self._items: list[dict[str, Any]] = []
        self._has_thought = False
        self._calls = 0

    def chunks(self, event: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """What ``event`` says, as chunks; none for most kinds. An error comes out as one."""
        kind = event.get("type")
        if kind == "response.output_text.delta":
            yield _chunk({"content": event.get("delta")})
        elif kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
            self._has_thought = True
            yield _chunk({"reasoning_content": event.get("delta")})
        elif kind == "response.reasoning_summary_part.added" and self._has_thought:
            yield _chunk({"reasoning_content": "\n\n"})
        elif kind == "response.refusal.delta":
            yield _chunk({"refusal": event.get("delta")})
        elif kind == "response.output_item.done" and isinstance(event.get("item"), Mapping):
            yield from self._done(dict(event["item"]))
        elif kind == "error":
            yield {"error": {key: event.get(key) for key in ("message", "code", "param") if event.get(key)}}
        elif kind in ("response.completed", "response.incomplete", "response.failed"):
            yield from self._end(event.get("response"))

    def whole(self, response: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer of a server that does not stream, as one chunk; ``{}`` if it is no response."""
        output = response.get("output")
        if not isinstance(output, list):
            return {}
        (message, *_) = [*converting.to_messages([one for one in output if isinstance(one, Mapping)]), {"role": "?"}]
        message.pop("role")
        (end,) = [chunk for chunk in self._end({**response, "output": output}) if "choices" in chunk] or [{}]
        ended = end.get("choices", [{}])[0].get("finish_reason")
        return {**end, "choices": [{"index": 0, "message": message, "finish_reason": ended}]}

    def _done(self, item: dict[str, Any]) -> Iterator[Mapping[str, Any]]:
        self._items.append(item)
        if item.get("type") == "function_call":
            function = {"name": item.get("name"), "arguments": item.get("arguments")}
            yield _chunk({"tool_calls": [{"index": self._calls, "id": item.get("call_id"), "function": function}]})
            self._calls += 1

    def _end(self, response: Any) -> Iterator[Mapping[str, Any]]:
        found = response if isinstance(response, Mapping) else {}
        if found.get("status") == "failed" or found.get("error"):
            yield {"error": found.get("error") or {"message": "the response failed"}, "usage": _usage(found)}
            return
        reason = (found.get("incomplete_details") or {}).get("reason")
        output = found.get("output")
        items: list[dict[str, Any]] = output if isinstance(output, list) and output else self._items
        is_whole = found.get("status") != "incomplete"
        has_calls = any(item.get("type") == "function_call" for item in items)
        ended = ("tool_calls" if has_calls else "stop") if is_whole else _ENDS.get(str(reason), "length")
        # Of an answer that was cut no item goes back: reasoning may not stand without what follows it.
        chunk = _chunk({"items": items} if is_whole and any(map(_is_opaque, items)) else {}, ended)
        more = {"model": found.get("model"), "usage": _usage(found), "service_tier": found.get("service_tier")}
        yield {**chunk, **{key: value for key, value in more.items() if value}}


def _is_opaque(item: Mapping[str, Any]) -> bool:
    """True for an item that a Chat Completions message cannot hold."""
    return item.get("type") not in ("message", "function_call")


def _chunk(delta: dict[str, Any], ended: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": ended}]}


def _usage(response: Mapping[str, Any]) -> dict[str, Any] | None:
    """The usage in Chat Completions' words; cached and reasoning tokens are parts of the sums in both."""
    given = response.get("usage")
    if not isinstance(given, Mapping):
        return None
    names = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"}
    inner = {"input_tokens_details": "prompt_tokens_details", "output_tokens_details": "completion_tokens_details"}
    return {names.get(key) or inner.get(key) or key: value for key, value in given.items()}
