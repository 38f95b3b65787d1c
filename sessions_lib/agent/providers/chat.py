"""One request over either wire: sent, read as it comes, waited for, ended from any thread.

* A refusal that names a setting is answered by changing that setting alone (see ``refusals``), which is told before the
  answer (``Changed``). A server that takes no tools is an error (``ToolsRefused``): they are never left out.
* Over Responses the request is made of the one for Chat Completions, and its events become the chunks of one.
* A server that is busy, or not there, is asked again, at most twice and for at most a minute; a wait that a person
  would notice is told of (``Wait``), and a stop ends it.
* A stream that has said why it ended (``finish_reason``) is over within seconds, whatever the connection does.

Does not put the answer together (``streaming`` does) and stores nothing.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from sessions_lib.agent.providers import refusals, responses
from sessions_lib.agent.providers.client import sending, with_model
from sessions_lib.agent.providers.endpoints import Endpoint, without_secrets
from sessions_lib.agent.providers.problems import IS_IT_V1, problem, reported, told
from sessions_lib.agent.providers.waiting import SHOWN_FROM_S, Wait, before_next_try, said
from sessions_lib.agent.providers.words import decoded, words
from sessions_lib.errors import ProviderError, ToolsRefused

if TYPE_CHECKING:
    import httpx2
    from openai import OpenAI

_HEARD = 4000  # bytes
LINGER_S = 2.0  # how long a stream that has ended may still bring its usage
_WITH_TOOLS = "It was asked with tools, and nothing was sent without them: switch them off, or choose another model."
_connections: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()  # client -> its latest connection, which it may reuse


@dataclass(frozen=True, slots=True)
class Changed:
    """Something was changed in the request, because the provider takes it no other way; ``text`` says what."""

    text: str


class ModelCall:
    """One request to a model: ``chunks`` sends it, ``abort`` ends it from another thread.

    ``endpoint`` has a model once it was asked; ``build`` makes the request for it.
    """

    def __init__(
        self,
        made: OpenAI,
        endpoint: Endpoint,
        build: Callable[[Endpoint], dict[str, Any]],
        remembered: Sequence[str] = (),
    ) -> None:
        self.endpoint = endpoint
        self.changes: dict[str, str] = {}  # by rule of ``refusals``: what was changed, in a sentence
        self._remembered = remembered
        self._client, self._build = made, build
        self._request: dict[str, Any] = {}
        self._response: httpx2.Response | None = None
        self._aborted = threading.Event()
        self._has_asked = False
        self._has_ended = False  # the model said why it ended
        self._events: responses.Events | None = None  # over the Responses wire

    def chunks(self) -> Iterator[Mapping[str, Any] | Wait | Changed]:
        """The chunks as dicts; at least one, or ``ProviderError``. Closing the iterator closes the connection."""
        import httpx2
        import openai

        sending.call = self
        has_begun = False
        try:
            stream = yield from self._open()
            self._response = getattr(stream, "response", None)
            with contextlib.closing(stream):
                for chunk in self._read(stream):
                    has_begun = True
                    yield chunk
        except (openai.OpenAIError, httpx2.HTTPError, httpx2.StreamError, OSError, ValueError) as error:
            if not self._has_ended:  # else the connection broke nothing
                raise problem(error, self.endpoint, has_begun=has_begun) from error
        finally:
            sending.call = None

    def before_sending(self, request: httpx2.Request) -> None:
        """Refuse what would be sent after an abort; notice the connection that is made."""
        import httpx2

        if self._aborted.is_set():
            raise httpx2.ConnectError("stopped", request=request)
        if self._has_asked and request.method == "GET":  # what 301, 302 and 303 make of a question
            target = without_secrets(str(request.url)).removesuffix("/chat/completions").removesuffix("/responses")
            raise ProviderError(
                f"{self.endpoint.name} leads to {target}, and the question cannot follow it "
                "there; nothing was sent. Give that address instead."
            )
        self._has_asked = request.method == "POST"
        request.extensions["trace"] = self._trace

    def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            _connections[self._client] = info["return_value"]
            if self._aborted.is_set():  # while it was connecting
                _shut(info["return_value"])

    def _open(self) -> Generator[Wait | Changed, None, Any]:
        import openai

        self.endpoint = with_model(self.endpoint, self._client)
        if (wire := refusals.wire_in(self._remembered)) is not None:
            self.endpoint = replace(self.endpoint, wire=wire)
        for rule in self._make(self._remembered):
            yield self._note(rule)
        client = self._client.with_options(max_retries=0)  # the SDK would wait in silence
        tries, waited_s = 0, 0.0
        while True:
            try:
                return self._send(client)
            except (openai.APIStatusError, openai.APIConnectionError) as error:
                if (adapted := self._adapt(error)) is not None:
                    yield self._note(adapted)
                    continue
                tries += 1
                pause_s = before_next_try(error, tries, waited_s) if tries <= self._client.max_retries else None
                if pause_s is None or self._aborted.is_set():
                    raise problem(error, self.endpoint, hint=self._hint(error)) from error
                waited_s += pause_s
                if pause_s >= SHOWN_FROM_S:
                    yield Wait(pause_s, f"{self.endpoint.name} asks to wait {said(pause_s)}{_status(error)}")
            if self._aborted.wait(pause_s):
                raise ProviderError("Stopped while waiting.")

    def _make(self, keys: Iterable[str]) -> list[refusals.Rule]:
        """Make the request for the endpoint's wire, changed by the rules of these ``keys``; those that changed it."""
        request = {**self._build(self.endpoint), "wire": self.endpoint.wire}
        if self.endpoint.wire == "responses":
            request.pop("stream_options", None)
        used, self._request = refusals.remembered(request, keys)
        return used

    def _send(self, client: OpenAI) -> Any:
        asked = refusals.sent(self._request)
        if self._request["wire"] == "responses":
            made = responses.request({**asked, "without": self._request.get("without", ())})
            self._events = responses.Events()
            return client.responses.create(**made, model=self.endpoint.model, stream=True)
        for message in asked["messages"]:
            message.pop("items", None)  # of the other wire
        self._events = None
        return client.chat.completions.create(**asked, model=self.endpoint.model, stream=True)

    def _adapt(self, error: Any) -> refusals.Rule | None:
        """Change what the provider's refusal names; the rule that did, ``None`` if there is none.

        ``ToolsRefused`` if it names the tools.
        """
        if getattr(error, "status_code", None) not in refusals.STATUSES:
            return None
        named = f"{error} {words(getattr(error, 'body', None))}"
        found = refusals.changed(self._request, named, self.changes, error.status_code)
        if found is None:
            if self._request.get("tools") and refusals.names_tools(named):
                raise ToolsRefused(str(problem(error, self.endpoint, hint=_WITH_TOOLS)), status=error.status_code)
            return None
        rule, self._request = found
        if self._request["wire"] != self.endpoint.wire:  # another wire takes back what was made over it
            self.endpoint = replace(self.endpoint, wire=self._request["wire"])
            self._make(self.changes)
        return rule

    def _note(self, rule: refusals.Rule) -> Changed:
        self.changes[rule.key] = rule.said
        return Changed(rule.said)

    def _hint(self, error: Any) -> str:
        is_refusal = 400 <= getattr(error, "status_code", 0) < 500
        return _WITH_TOOLS if is_refusal and "tools" in self._request and "tool" in str(error).lower() else ""

    def _read(self, stream: Any) -> Iterator[Mapping[str, Any]]:
        kind = self._response.headers.get("content-type", "") if self._response is not None else ""
        if self._response is not None and ("json" in kind or "html" in kind):
            yield self._whole_body(kind)
            return
        heard = _listen(self._response)
        count = 0
        end = _End(self._hang_up)
        try:
            for item in stream:
                chunk = _plain(item)
                if (wrong := _error_in(chunk)) is not None:
                    raise reported(wrong, self.endpoint)
                if not isinstance(chunk, Mapping):
                    continue
                for made in self._said(chunk):
                    count += 1
                    yield made
                    self._has_ended = end.is_near(made) or self._has_ended
        finally:
            end.forget()
        if not count:
            said = told(bytes(heard), self.endpoint)
            raise ProviderError(f"{self.endpoint.name} sent no answer ({kind or 'nothing'}{said}). {IS_IT_V1}.")

    def _said(self, chunk: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """``chunk``, or those that say what this event of the other wire does."""
        if self._events is None:
            yield chunk
            return
        for made in self._events.chunks(chunk):
            if (wrong := _error_in(made)) is not None:
                raise reported(wrong, self.endpoint)
            yield made

    def _whole_body(self, kind: str) -> Mapping[str, Any]:
        """The answer of a server that does not stream, as one chunk."""
        assert self._response is not None  # asked by the caller
        content = self._response.read()
        body = decoded(content)
        if (wrong := _error_in(body)) is not None:
            raise reported(wrong, self.endpoint)
        if self._events is not None and isinstance(body, Mapping):
            body = self._events.whole(body) or body
        choices = body.get("choices") if isinstance(body, Mapping) else None
        first = choices[0] if isinstance(choices, list) and choices else None
        if isinstance(body, Mapping) and isinstance(first, Mapping) and isinstance(first.get("message"), Mapping):
            return body
        # A list of choices without a message says nothing; anything else may hold words.
        said = told(content if body is None else body, self.endpoint) or ": it holds no answer"
        raise ProviderError(
            f"{self.endpoint.name} answered with no stream of chunks ({kind.split(';')[0]}{said}). {IS_IT_V1}."
        )

    def _hang_up(self) -> None:
        """End a stream that has said all there is to say, from another thread."""
        stream = self._response.extensions.get("network_stream") if self._response is not None else None
        if stream is not None:
            _shut(stream)

    def abort(self) -> None:
        """End the call from any thread, also in the middle of a silent read or of a wait."""
        self._aborted.set()
        if (connection := _connections.get(self._client)) is not None:
            _shut(connection)


def _listen(response: httpx2.Response | None) -> bytearray:
    """How the body of ``response`` begins, once it was read: the words of one that is no stream of chunks."""
    import httpx2

    heard = bytearray()
    if response is None or response.headers.get("content-encoding"):
        return heard
    source: Any = response.stream

    class Stream(httpx2.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            for data in source:
                heard.extend(data[: _HEARD - len(heard)])
                yield data

        def close(self) -> None:
            source.close()

    response.stream = Stream()
    return heard


def _plain(item: Any) -> Any:
    """A chunk as a dict; what is no chunk as it came."""
    if isinstance(item, list):
        return [_plain(inner) for inner in item]
    return item.to_dict(warnings=False) if hasattr(item, "to_dict") else item


def _error_in(body: Any) -> Any:
    """What a chunk or a whole body says went wrong, ``None`` if it is no error."""
    if isinstance(body, list):
        return body if words(body) else None  # Gemini's errors come in a list; no chunk does
    if not isinstance(body, Mapping):
        return None
    if body.get("error") or body.get("object") == "error":
        return body
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    if isinstance(first, Mapping) and first.get("error"):
        return first  # OpenRouter, in the middle of an answer
    return body if "detail" in body and "choices" not in body else None


class _End:
    """Waits ``LINGER_S`` behind the chunk that says why an answer ended, or the last words of one that goes on all the
    same, then calls ``hang_up`` from another thread."""

    def __init__(self, hang_up: Callable[[], None]) -> None:
        self._hang_up = hang_up
        self._timer: threading.Timer | None = None

    def is_near(self, chunk: Mapping[str, Any]) -> bool:
        """True if this chunk says why the answer ended."""
        choices = chunk.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(first, Mapping):
            return False
        delta = first.get("delta")
        has_words = isinstance(delta, Mapping) and any(value for key, value in delta.items() if key != "role")
        if (first.get("finish_reason") and self._timer is None) or (self._timer is not None and has_words):
            self.forget()
            self._timer = threading.Timer(LINGER_S, self._hang_up)
            self._timer.daemon = True
            self._timer.start()
        return bool(first.get("finish_reason"))

    def forget(self) -> None:
        """Hang up on nobody."""
        if self._timer is not None:
            self._timer.cancel()


def _status(error: Any) -> str:
    status = getattr(error, "status_code", None)
    return f" ({status})" if status else ""


def _shut(connection: Any) -> None:
    """End what a thread is reading: closing would not wake it, shutting the socket down does."""
    raw = connection.get_extra_info("socket")
    if raw is not None:
        with contextlib.suppress(OSError):  # the server was first
            raw.shutdown(socket.SHUT_RDWR)
