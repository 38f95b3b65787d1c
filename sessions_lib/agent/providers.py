"""Endpoints: where a model answers, the ``openai`` client for it, one request to it, and its failures as one sentence.

Endpoint and key come from the arguments, else ``OPENAI_BASE_URL``, ``OPENAI_API_KEY``, ``OPENAI_MODEL``; with none of
them the offline village answers. **A key goes only where it belongs:** the key of the environment is sent to the
environment's own address or to OpenAI, never to another address that was passed in or typed.

A proxy from the environment is not used for this machine's own addresses: it could not reach them.

Does not store anything: keys live in the ``Endpoint`` and are not in its ``repr``, in any error or in any file.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from sessions_lib import names, text
from sessions_lib.agent import streaming
from sessions_lib.agent.own_key import OwnKey
from sessions_lib.errors import ProviderError, SessionError

if TYPE_CHECKING:
    import httpx2
    from openai import OpenAI

DEMO_MODEL = "demo"  # the offline village
OPENAI_URL = "https://api.openai.com/v1"
OPENAI_MODEL = "gpt-4o-mini"
PRESETS = {
    "OpenAI": OPENAI_URL,
    "Ollama": "http://127.0.0.1:11434/v1",
    "LM Studio": "http://127.0.0.1:1234/v1",
    "vLLM": "http://127.0.0.1:8000/v1",
    "llama.cpp": "http://127.0.0.1:8080/v1",
}
CONNECT_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 300.0  # a small machine reads a long history for minutes before its first token
_NO_KEY = "none"  # the SDK refuses an empty key; local servers ignore whatever they get


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model answers. ``base_url`` is ``None`` for the offline demo; no ``model``: the server's first."""

    base_url: str | None = None
    model: str = ""
    api_key: str | None = field(default=None, repr=False)
    timeout_s: float = READ_TIMEOUT_S

    @property
    def is_demo(self) -> bool:
        """True for the offline village."""
        return self.base_url is None

    @property
    def name(self) -> str:
        """The address without anything secret in it, or ``the offline demo``."""
        if self.base_url is None:
            return "the offline demo"
        parts = urlsplit(self.base_url)
        return names.one_line(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/"), 120)


def choose(
    model: str | None = None,
    base_url: str | None = None,
    api_key: str | None = None,
    made: OpenAI | None = None,
) -> Endpoint:
    """The endpoint for these arguments, completed from the environment; the offline demo if nothing says otherwise.

    A client ``made`` elsewhere brings its own address and key.
    """
    if made is not None and model != DEMO_MODEL:
        return Endpoint(str(made.base_url).rstrip("/"), model or os.environ.get("OPENAI_MODEL") or "")
    if model == DEMO_MODEL and not base_url:
        return Endpoint(model=DEMO_MODEL)
    env_url, env_key = os.environ.get("OPENAI_BASE_URL") or None, os.environ.get("OPENAI_API_KEY") or None
    env_model = os.environ.get("OPENAI_MODEL") or None
    if not any((model, base_url, api_key, env_url, env_key, env_model)):
        return Endpoint(model=DEMO_MODEL)
    url = _checked((base_url or env_url or OPENAI_URL).strip())
    api_key = _checked_key(api_key)
    own = [address.rstrip("/") for address in (env_url, OPENAI_URL) if address]
    key = api_key or (_checked_key(env_key) if url in own else None)
    if base_url and base_url.rstrip("/") != (env_url or "").rstrip("/"):
        env_model = None  # the name of a model on another server
    return Endpoint(url, model or env_model or (OPENAI_MODEL if url == OPENAI_URL else ""), key)


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        valid = False
    if not valid or any(char.isspace() for char in url):
        raise ProviderError(
            f"{names.one_line(url, 80)!r} is not the address of a model server. It looks like http://127.0.0.1:11434/v1"
        )
    return url.rstrip("/")


def _checked_key(key: str | None) -> str | None:
    """``key`` without blanks around it; refused before it could be quoted in an error of the network's."""
    key = (key or "").strip()
    if not all("!" <= char <= "~" for char in key):
        raise ProviderError("The API key holds a character that no key has (a blank, an accent?). Paste it again.")
    return key or None


def is_loopback(url: str) -> bool:
    """True if ``url`` names this machine."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def client(endpoint: Endpoint) -> OpenAI:
    """A new ``openai`` client for ``endpoint``, which is not the demo: ``demo_model`` has that one."""
    import httpx2
    from openai import OpenAI

    assert endpoint.base_url is not None  # the demo has no address
    timeout = httpx2.Timeout(endpoint.timeout_s, connect=CONNECT_TIMEOUT_S)
    transport = httpx2.Client(
        trust_env=not is_loopback(endpoint.base_url),
        timeout=timeout,
        follow_redirects=True,
        event_hooks={"request": [_before_sending]},
    )
    return OpenAI(
        api_key=endpoint.api_key or _NO_KEY,
        base_url=endpoint.base_url,
        timeout=timeout,
        max_retries=2,
        http_client=transport,
    )


def list_models(endpoint: Endpoint, made: OpenAI | None = None) -> list[str]:
    """The ids of the models ``endpoint`` offers, in its order; ``ProviderError`` if it cannot be asked."""
    return [DEMO_MODEL] if endpoint.is_demo else list(_listed(endpoint, made))


def context_sizes(endpoint: Endpoint, made: OpenAI | None = None) -> dict[str, int]:
    """Model → tokens of its context, where ``endpoint`` says so: vLLM, OpenRouter, LM Studio and llama.cpp do."""
    found = {} if endpoint.is_demo else _listed(endpoint, made)
    return {model: size for model, facts in found.items() if (size := _context_size(facts)) is not None}


def _context_size(facts: Mapping[str, Any]) -> int | None:
    more = facts.get("meta")
    said = [facts.get(key) for key in ("max_model_len", "context_length", "max_context_length", "context_window")]
    said += [more.get("n_ctx"), more.get("n_ctx_train")] if isinstance(more, Mapping) else []
    return next((size for size in said if isinstance(size, int) and not isinstance(size, bool) and size > 0), None)


def _listed(endpoint: Endpoint, made: OpenAI | None) -> dict[str, dict[str, Any]]:
    """Model → what the server says of it, in its order."""
    import httpx2
    import openai

    asked = (made or client(endpoint)).with_options(timeout=CONNECT_TIMEOUT_S, max_retries=0)
    try:
        found = asked.models.list()
        return {item.id: item.to_dict() for item in found.data if isinstance(item.id, str) and item.id}
    except (openai.OpenAIError, httpx2.HTTPError) as error:
        raise problem(error, endpoint) from error
    except (AttributeError, TypeError, ValueError) as error:
        raise ProviderError(f"{endpoint.name} answers, but not with a list of models. {_IS_IT_V1}") from error


def with_model(endpoint: Endpoint, made: OpenAI | None = None) -> Endpoint:
    """``endpoint`` with a model: its own, else the first the server lists."""
    if endpoint.model:
        return endpoint
    listed = list_models(endpoint, made)
    if not listed:
        raise ProviderError(f"{endpoint.name} lists no model. Load one there, or name it (OPENAI_MODEL).")
    return replace(endpoint, model=listed[0])


def check(endpoint: Endpoint) -> str:
    """One sentence that says whether ``endpoint`` answers; never an error. Asks for its models, starts nothing."""
    if endpoint.is_demo:
        return "The offline demo is ready; it knows the village by the Cave of Echoes and nothing else."
    try:
        listed = list_models(endpoint)
    except SessionError as error:
        return str(error)
    if endpoint.model and listed and endpoint.model not in listed:
        near = ", ".join(listed[:5])
        return f"{endpoint.name} answers, but lists no model {endpoint.model!r}. It has: {near}."
    if not listed:
        return f"{endpoint.name} answers, but lists no model. Load one there, or type its name."
    return f"{endpoint.name} answers and offers {text.count(len(listed), 'model')}."


_IS_IT_V1 = "Is it a Chat Completions address? It usually ends with /v1"
_REFUSED = {
    401: "refuses the API key (401). Check the key, or pass one: api_key or OPENAI_API_KEY",
    403: "does not allow this (403). Check what the key may use",
    408: "took too long (408). Try again",
    413: "finds the conversation too large (413). Fork from an earlier message",
    429: "has had too many requests, or the quota is used up (429). Wait a moment and try again",
}


def problem(error: Exception, endpoint: Endpoint, *, has_begun: bool = False) -> ProviderError:
    """``error`` as one sentence with what to do; the server's own words where it sent some, the key never.

    ``has_begun``: the server was answering already.
    """
    import httpx2
    import openai

    where = endpoint.name
    if isinstance(error, openai.APITimeoutError | httpx2.TimeoutException):
        return ProviderError(f"{where} did not answer in time. Try again, or look at what that server is doing.")
    if isinstance(error, openai.APIStatusError):
        status = error.status_code
        said = _said(error, endpoint)
        if status in _REFUSED:
            text = f"{where} {_REFUSED[status]}"
        elif status == 404 and endpoint.model:
            text = f"{where} has no model {endpoint.model!r}, or is no Chat Completions address (404). Choose another"
        elif status == 404:
            text = f"{where} is not there (404). {_IS_IT_V1}"
        elif status == 400 and _is_too_long(said):
            text = f"The conversation is too long for this model (400). Fork from an earlier message{said}"
            return ProviderError(f"{text}.", status=status)
        elif status >= 500:
            text = f"{where} failed ({status}). Try again in a moment"
        else:
            text = f"{where} refused the request ({status})"
        return ProviderError(f"{text}{said}.", status=status)
    if isinstance(error, openai.APIConnectionError | httpx2.HTTPError | OSError):
        cause = _deepest(error)
        if has_begun:
            return ProviderError(f"The connection to {where} broke ({cause}).")
        return ProviderError(f"{where} cannot be reached ({cause}). Start that server, or check the address.")
    if isinstance(error, openai.APIError):
        return ProviderError(f"{where} reported an error{_said(error, endpoint)}. Try again.")
    return ProviderError(f"{where} sent what is no Chat Completions stream ({type(error).__name__}). {_IS_IT_V1}.")


def _is_too_long(said: str) -> bool:
    return "context" in said and any(word in said for word in ("length", "size", "window", "exceed", "maximum"))


def _said(error: Any, endpoint: Endpoint) -> str:
    body = getattr(error, "body", None)
    said = body.get("message") if isinstance(body, Mapping) else None
    if not isinstance(said, str):
        said = error.message if not hasattr(error, "status_code") else ""
    line = names.one_line(OwnKey(endpoint.api_key).without(said), 300).rstrip(".")
    return f": {line}" if line else ""


def _deepest(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return names.one_line(str(error) or type(error).__name__, 100).rstrip(".")


_thread = threading.local()  # .call: the ModelCall this thread is working for
_connections: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()  # client -> its latest connection, which it may reuse


def _before_sending(request: httpx2.Request) -> None:
    call: ModelCall | None = getattr(_thread, "call", None)
    if call is not None:
        call._before_sending(request)


class ModelCall:
    """One request to a model: ``chunks`` sends it, ``abort`` ends it from another thread.

    ``endpoint`` has a model once it was asked.
    A provider that refuses ``stream_options`` or tools is asked once more without them; ``notices`` says so.
    """

    def __init__(self, made: OpenAI, endpoint: Endpoint, request: Mapping[str, Any]) -> None:
        self.notices: list[str] = []
        self.endpoint = endpoint
        self._client, self._request = made, dict(request)
        self._response: httpx2.Response | None = None
        self._is_aborted = False

    def chunks(self) -> Iterator[Mapping[str, Any]]:
        """The chunks as dicts; at least one, or ``ProviderError``. Closing the iterator closes the connection."""
        import httpx2
        import openai

        _thread.call = self
        has_begun = False
        try:
            stream = self._open()
            self._response = getattr(stream, "response", None)
            with contextlib.closing(stream):
                for chunk in self._read(stream):
                    has_begun = True
                    yield chunk
        except (openai.OpenAIError, httpx2.HTTPError, httpx2.StreamError, OSError, ValueError) as error:
            raise problem(error, self.endpoint, has_begun=has_begun) from error
        finally:
            _thread.call = None

    def _before_sending(self, request: httpx2.Request) -> None:
        """Refuse what the SDK would send again after an abort; notice the connection that is made."""
        import httpx2

        if self._is_aborted:
            raise httpx2.ConnectError("stopped", request=request)
        request.extensions["trace"] = self._trace

    def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            _connections[self._client] = info["return_value"]
            if self._is_aborted:  # while it was connecting
                _shut(info["return_value"])

    def _open(self) -> Any:
        import openai

        self.endpoint = with_model(self.endpoint, self._client)
        while True:
            try:
                return self._client.chat.completions.create(**self._request, model=self.endpoint.model, stream=True)
            except openai.APIStatusError as error:
                if not self._leave_out(error):
                    raise

    def _leave_out(self, error: Any) -> bool:
        """Drop from the request what the provider does not take, if its words name it; True if that was possible."""
        said = str(error).lower()
        if error.status_code not in (400, 404, 422, 500, 501):
            return False
        if "stream_options" in self._request and ("stream_options" in said or "include_usage" in said):
            del self._request["stream_options"]
            return True
        if "tools" in self._request and "tool" in said:
            del self._request["tools"]
            self.notices.append(f"{self.endpoint.model} at {self.endpoint.name} takes no tools; it was asked without.")
            return True
        return False

    def _read(self, stream: Any) -> Iterator[Mapping[str, Any]]:
        kind = self._response.headers.get("content-type", "") if self._response is not None else ""
        if self._response is not None and ("json" in kind or "html" in kind):
            yield self._whole_body(kind)
            return
        count = 0
        for chunk in stream:
            found = chunk.to_dict(warnings=False) if hasattr(chunk, "to_dict") else chunk
            if not isinstance(found, Mapping):
                continue
            if found.get("object") == "error" or found.get("error"):
                said = names.one_line(str(found.get("message") or found.get("error")), 300)
                raise ProviderError(f"{self.endpoint.name} reported an error: {said}")
            count += 1
            yield found
        if not count:
            raise ProviderError(f"{self.endpoint.name} sent no answer ({kind or 'nothing'}). {_IS_IT_V1}.")

    def _whole_body(self, kind: str) -> Mapping[str, Any]:
        """The answer of a server that does not stream, as one chunk."""
        assert self._response is not None  # asked by the caller
        body = streaming.decode_body(self._response.read())
        if (wrong := streaming.body_problem(body)) is not None:
            wrong = names.one_line(wrong, 300).rstrip(".")
            raise ProviderError(
                f"{self.endpoint.name} answered with no stream of chunks ({kind.split(';')[0]}: {wrong}). {_IS_IT_V1}."
            )
        found: Mapping[str, Any] = body
        return found

    def abort(self) -> None:
        """End the call from any thread, also in the middle of a silent read."""
        self._is_aborted = True
        if (connection := _connections.get(self._client)) is not None:
            _shut(connection)


def _shut(connection: Any) -> None:
    """End what a thread is reading: closing would not wake it, shutting the socket down does."""
    raw = connection.get_extra_info("socket")
    if raw is not None:
        with contextlib.suppress(OSError):  # the server was first
            raw.shutdown(socket.SHUT_RDWR)
