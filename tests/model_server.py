"""A model server on loopback for the tests: real HTTP, real SSE, a queue of replies and a memory of what it was sent.

Not a mock: the ``openai`` client talks to it over a socket. Replies are taken from the queue in order; when it is
empty, the model says "Yes.". ``strict`` refuses a history that a strict provider would refuse, and keys of other
providers; ``owned`` are the keys it made itself.
"""

from __future__ import annotations

import json
import re
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

USAGE = {"prompt_tokens": 11, "completion_tokens": 4, "total_tokens": 15}
DROP = "DROP"  # in a list of chunks: cut the connection here, in the middle of the response
SILENCE = "SILENCE"  # in a list of chunks: say nothing more until the client goes away


@dataclass(frozen=True)
class Reply:
    """What the server does with one request: SSE ``chunks``, or a ``body`` of a ``kind`` with a ``status``."""

    chunks: Sequence[Any] = ()
    pause_s: float = 0.0
    done: bool = True
    status: int = 200
    kind: str = "text/event-stream"
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    is_silent: bool = False  # not even headers


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    """One chunk with one choice."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "served", "choices": [choice], **more}


def usage_chunk(usage: Any = None) -> dict[str, Any]:
    """The last chunk of a stream with ``include_usage``."""
    return {**chunk({}), "choices": [], "usage": USAGE if usage is None else usage}


def say(text: str, finish: str | None = "stop", usage: bool = True, **options: Any) -> Reply:
    """A streamed answer, one chunk a word."""
    words = [word + " " for word in text.split(" ")]
    words[-1] = words[-1][:-1]
    chunks = [chunk({"role": "assistant", "content": ""}), *(chunk({"content": word}) for word in words)]
    if finish is not None:
        chunks.append(chunk({}, finish))
    if usage:
        chunks.append(usage_chunk())
    return Reply(chunks, **options)


def ask(*calls: tuple[str, str, dict[str, Any] | str], finish: str = "tool_calls", **options: Any) -> Reply:
    """Tool calls, each ``(id, name, arguments)``."""
    made = [
        {
            "index": index,
            "id": call_id,
            "type": "function",
            "function": {"name": name, "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments)},
        }
        for index, (call_id, name, arguments) in enumerate(calls)
    ]
    return Reply([chunk({"role": "assistant", "content": None, "tool_calls": made}), chunk({}, finish), usage_chunk()])


def status(code: int, message: str = "no", **headers: str) -> Reply:
    """An error of the server; retries are asked for at once."""
    body = json.dumps({"error": {"message": message, "type": "test", "code": code}}).encode()
    return Reply(status=code, kind="application/json", body=body, headers={"retry-after-ms": "1", **headers})


def whole(body: Any, kind: str = "application/json", code: int = 200) -> Reply:
    """A response that is not streamed: JSON for a dict or list, else the text."""
    data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return Reply(status=code, kind=kind, body=data)


class ModelServer:
    """The server; a context manager. ``url`` ends with /v1."""

    def __init__(
        self,
        *replies: Reply,
        strict: bool = True,
        models: Sequence[str | dict[str, Any]] = ("tiny",),
        owned: Sequence[str] = (),
        refuse: Callable[[str, dict[str, Any]], Reply | None] | None = None,
    ) -> None:
        """``refuse`` is asked first, with the path (``chat/completions`` or ``responses``) and the request."""
        self.owned, self.refuse = owned, refuse
        self.paths: list[str] = []
        self.get_reply: Reply | None = None  # what a GET gets instead of the list of models
        self.queue: list[Reply] = list(replies)
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.completed = 0
        self.aborted = 0
        self.spoke_at: float | None = None  # when the first words of the last answer were sent, on time.perf_counter
        self.strict, self.models = strict, list(models)
        self.has_request = threading.Event()
        self._lock = threading.Lock()
        self._is_closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.owner = self
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def __enter__(self) -> ModelServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop serving; silent answers end."""
        self._is_closing.set()
        self._server.shutdown()
        self._server.server_close()

    def take(self, request: dict[str, Any], key: str, path: str = "chat/completions") -> Reply:
        """Remember the request and choose its reply."""
        with self._lock:
            self.requests.append(request)
            self.paths.append(path)
            refused = self.refuse(path, request) if self.refuse is not None else None
            if refused is not None:
                return refused
            if path == "responses":
                return self._respond(request)
            self.spoke_at = None
            self.keys.append(key)
            self.has_request.set()
            wrong = problems(request.get("messages"), self.owned) if self.strict else []
            if wrong:
                return status(400, "; ".join(wrong))
            reply = self.queue.pop(0) if self.queue else say("Yes.")
        asked = request.get("stream_options") or {}
        if not asked.get("include_usage"):
            kept = [one for one in reply.chunks if not (isinstance(one, dict) and one.get("usage"))]
            reply = replace(reply, chunks=kept)
        return reply

    def _respond(self, request: dict[str, Any]) -> Reply:
        wrong = problems_of_items(request) if self.strict else []
        if wrong:
            return status(400, "; ".join(wrong))
        reply = self.queue.pop(0) if self.queue else say("Yes.")
        is_events = any(isinstance(one, dict) and "type" in one for one in reply.chunks)
        return (
            reply if reply.body is not None or is_events or reply.is_silent else replace(reply, chunks=as_events(reply))
        )

    @property
    def sent(self) -> list[list[dict[str, Any]]]:
        """The messages of each request."""
        return [request["messages"] for request in self.requests]

    def wait_aborted(self, count: int = 1) -> bool:
        """Wait until the client has left ``count`` answers."""
        deadline = time.monotonic() + 10
        while self.aborted < count and time.monotonic() < deadline:
            time.sleep(0.01)
        return self.aborted >= count


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    owner: ModelServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is counted, not printed."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the test's output clean."""

    def do_GET(self) -> None:
        if self.server.owner.get_reply is not None:
            self._body(self.server.owner.get_reply)
            return
        if self.path != "/v1/models":
            self._body(status(404, "not here"))
            return
        listed = {
            "object": "list",
            "data": [
                {"id": model, "object": "model"} if isinstance(model, str) else model
                for model in self.server.owner.models
            ],
        }
        self._body(whole(listed))

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        path = self.path.removeprefix("/v1/")
        reply = self.server.owner.take(request, self.headers.get("authorization", ""), path)
        if reply.is_silent:
            self._wait_for_the_client_to_leave()
        elif reply.body is not None:
            self._body(reply)
        else:
            self._stream(reply)

    def _body(self, reply: Reply) -> None:
        body = reply.body or b""
        self.send_response(reply.status)
        for name, value in {"content-type": reply.kind, "content-length": str(len(body)), **reply.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, reply: Reply) -> None:
        self.close_connection = True
        self.send_response(reply.status)
        self.send_header("content-type", reply.kind)
        self.send_header("connection", "close")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        try:
            for line in _lines(reply):
                if line == DROP:
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                if line == SILENCE:
                    self._wait_for_the_client_to_leave()
                    return
                if self._has_left():
                    raise BrokenPipeError
                if self.server.owner.spoke_at is None and '"content": "' in line and '"content": ""' not in line:
                    self.server.owner.spoke_at = time.perf_counter()
                data = line.encode()
                self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
                self.wfile.flush()
                time.sleep(reply.pause_s)
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.server.owner.aborted += 1
        else:
            self.server.owner.completed += 1

    def _has_left(self, wait_s: float = 0.0) -> bool:
        waiting = select.poll()  # not select(), which knows 1,024 descriptors at most
        waiting.register(self.connection, select.POLLIN)
        if not waiting.poll(wait_s * 1000):
            return False
        try:
            return self.connection.recv(1, socket.MSG_PEEK) == b""
        except OSError:
            return True

    def _wait_for_the_client_to_leave(self) -> None:
        self.close_connection = True
        while not self.server.owner._is_closing.is_set():
            if self._has_left(0.02):
                self.server.owner.aborted += 1
                return


def _lines(reply: Reply) -> Iterator[str]:
    for one in reply.chunks:
        yield one if isinstance(one, str) and one in (DROP, SILENCE) else f"data: {_json(one)}\n\n"
    if reply.done:
        yield "data: [DONE]\n\n"


def _json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


_KEYS = {
    "system": {"role", "content"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "tool_calls"},
    "tool": {"role", "content", "tool_call_id"},
}
_NINE = re.compile(r"[A-Za-z0-9]{9}")
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def problems(messages: Any, owned: Sequence[str] = ()) -> list[str]:
    """What the strictest providers would refuse in these messages; empty if nothing.

    One system message, in front; then the user, and no two of one role behind each other, but for results; each call's
    result right behind it, in order; ids of nine letters and digits, each one once; nothing empty; and no key that is
    not of the format, but for those in ``owned``, which this provider made.
    """
    if not isinstance(messages, list) or not messages:
        return ["no messages"]
    wrong = []
    waiting: list[str] = []
    used: list[str] = []
    last = "system" if messages[0].get("role") == "system" else ""
    for index, message in enumerate(messages):
        role = message.get("role")
        if role not in _KEYS:
            wrong.append(f"{index}: role {role!r}")
            continue
        wrong += [f"{index}: key {key!r}" for key in set(message) - _KEYS[role] - set(owned)]
        if role == "system" and index:
            wrong.append(f"{index}: a system message that is not the first")
        if role == last != "tool" and index:
            wrong.append(f"{index}: {role} behind {role}")
        if role == "assistant" and last in ("", "system"):
            wrong.append(f"{index}: the assistant speaks first")
        last = role
        if role == "tool":
            if message.get("tool_call_id") not in waiting[:1]:
                wrong.append(f"{index}: a result that is not the next call's")
            else:
                waiting.pop(0)
            if not isinstance(message.get("content"), str) or not message["content"].strip():
                wrong.append(f"{index}: a result without text")
            continue
        if waiting:
            wrong.append(f"{index}: calls without results: {waiting}")
        waiting = []
        if role == "assistant":
            wrong += _wrong_with_assistant(index, message, owned)
            waiting = [call.get("id") for call in message.get("tool_calls") or []]
            used += waiting
        elif not isinstance(message.get("content"), str | list) or not message["content"]:
            wrong.append(f"{index}: no content")
    if waiting:
        wrong.append(f"the end: calls without results: {waiting}")
    if messages[-1].get("role") in ("assistant", "system"):
        wrong.append(f"the last message is the {messages[-1]['role']}'s")
    return wrong + [f"id {call_id!r}" for call_id in used if used.count(call_id) > 1 or not _NINE.fullmatch(call_id)]


_ITEM_ROLES = ("user", "assistant")


def problems_of_items(request: dict[str, Any]) -> list[str]:
    """What a strict provider would refuse in a request over Responses; empty if nothing.

    Nothing is kept on the server; calls have one output each behind them; reasoning comes whole, with its encrypted
    content, and never without what follows it.
    """
    wrong = []
    if request.get("store") is not False or "messages" in request or not request.get("input"):
        wrong.append("store is not false, or there is no input")
    for tool in request.get("tools") or ():
        if set(tool) - {"type", "function", "name", "description", "parameters", "strict"} or "name" not in tool:
            wrong.append(f"tool {tool}")
    waiting: list[str] = []
    after_reasoning = False
    for index, item in enumerate(request.get("input") or ()):
        kind = item.get("type", "message")
        if kind == "reasoning":
            if not item.get("encrypted_content"):
                wrong.append(f"{index}: a reasoning item without its encrypted content")
            after_reasoning = True
            continue
        if after_reasoning and not (kind == "function_call" or item.get("role") == "assistant"):
            wrong.append(f"{index}: a reasoning item without what follows it")
        after_reasoning = False
        if kind == "function_call":
            waiting.append(item["call_id"])
        elif kind == "function_call_output":
            if item["call_id"] not in waiting:
                wrong.append(f"{index}: an output without a call")
            else:
                waiting.remove(item["call_id"])
        elif item.get("role") not in _ITEM_ROLES or not item.get("content"):
            wrong.append(f"{index}: {item}")
    return wrong + ([f"calls without outputs: {waiting}"] if waiting or after_reasoning else [])


def thinking(text: str, then: Reply, number: int = 1) -> Reply:
    """``then`` with a reasoning item in front, as events of the Responses wire."""
    summary = [{"type": "summary_text", "text": text}]
    item = {"type": "reasoning", "id": f"rs_{number}", "summary": summary, "encrypted_content": f"gAAAA{number}"}
    return replace(then, chunks=as_events(then, [item]))


def as_events(reply: Reply, first: Sequence[dict[str, Any]] = ()) -> list[Any]:
    """The chunks of a Chat Completions reply as the events that say the same over Responses."""
    events: list[Any] = [{"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}}]
    output: list[dict[str, Any]] = [*first]
    for item in first:
        events += [{"type": "response.reasoning_summary_text.delta", "delta": part["text"]} for part in item["summary"]]
        events.append({"type": "response.output_item.done", "item": item})
    text, calls, finish, usage, is_cut = "", dict[int, dict[str, Any]](), None, None, False
    for one in reply.chunks:
        if not isinstance(one, dict):
            events.append(one)
            is_cut = is_cut or one in (DROP, SILENCE)
            continue
        usage = one.get("usage") or usage
        choice = (one.get("choices") or [{}])[0]
        delta, finish = choice.get("delta") or {}, choice.get("finish_reason") or finish
        if delta.get("content"):
            text += delta["content"]
            events.append({"type": "response.output_text.delta", "delta": delta["content"]})
        for call in delta.get("tool_calls") or ():
            function = call.get("function") or {}
            known = calls.setdefault(
                call["index"], {"type": "function_call", "call_id": "", "name": "", "arguments": ""}
            )
            known["call_id"] = call.get("id") or known["call_id"]
            known["id"] = f"fc_{known['call_id']}"
            known["name"] += function.get("name") or ""
            known["arguments"] += function.get("arguments") or ""
    if text:
        output.append(
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": text, "annotations": []}],
            }
        )
    output += calls.values()
    events += [{"type": "response.output_item.done", "item": item} for item in output[len(first) :]]
    if finish is None or is_cut:
        return events
    is_whole = finish in ("stop", "tool_calls")
    told = (
        {
            "input_tokens": usage["prompt_tokens"],
            "output_tokens": usage["completion_tokens"],
            "total_tokens": usage["total_tokens"],
        }
        if usage
        else None
    )
    response = {
        "id": "resp_1", "model": "served", "status": "completed" if is_whole else "incomplete", "output": output, "usage": told,
        "incomplete_details": None if is_whole else {"reason": "max_output_tokens" if finish == "length" else finish},
    }  # fmt: skip
    return [*events, {"type": f"response.{response['status']}", "response": response}]


def _wrong_with_assistant(index: int, message: dict[str, Any], owned: Sequence[str]) -> list[str]:
    wrong = []
    calls = message.get("tool_calls")
    if not (message.get("content") or "").strip() and not calls:
        wrong.append(f"{index}: an assistant message that says nothing")
    if message.get("content") == "" or (calls is not None and not calls):
        wrong.append(f"{index}: an empty text or list of calls")
    for call in calls or []:
        wrong += [f"{index}: key {key!r} of a call" for key in set(call) - {"id", "type", "function"} - set(owned)]
        wrong += [f"{index}: key {key!r} of a call" for key in set(call["function"]) - {"name", "arguments"}]
        try:
            is_object = isinstance(json.loads(call["function"]["arguments"]), dict)
        except ValueError:
            is_object = False
        if not is_object or not _TOOL_NAME.fullmatch(call["function"]["name"]):
            wrong.append(f"{index}: call {call}")
    return wrong
