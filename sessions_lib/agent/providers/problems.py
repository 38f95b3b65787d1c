"""What went wrong with a request, as one sentence with what to do: the server's own words, and never the key.

Does not try again and does not store anything.
"""

from __future__ import annotations

import os
from typing import Any

from sessions_lib import names
from sessions_lib.agent.own_key import OwnKey
from sessions_lib.agent.providers.endpoints import OPENAI_URL, Endpoint, is_same_place, without_secrets
from sessions_lib.agent.providers.waiting import SHOWN_FROM_S, asked_for
from sessions_lib.agent.providers.waiting import said as told_wait
from sessions_lib.agent.providers.words import decoded, is_too_long, words
from sessions_lib.errors import ConversationTooLong, ProviderError

IS_IT_V1 = "Is it a Chat Completions address? It usually ends with /v1"
_LONGEST = 500  # characters of a server's words
_REFUSED = {
    401: "refuses the API key (401). Check the key, or pass another: api_key or OPENAI_API_KEY",
    403: "does not allow this (403). Check what the key may use",
    408: "took too long (408). Try again",
    413: "finds the conversation too large (413). Fork from an earlier message",
    429: "has had too many requests, or the quota is used up (429). Wait a moment and try again",
}


def problem(error: Exception, endpoint: Endpoint, *, has_begun: bool = False, hint: str = "") -> ProviderError:
    """``error`` as one sentence; ``has_begun``: the server was answering already; ``hint`` goes behind its words."""
    import httpx2
    import openai

    where = endpoint.name
    if isinstance(error, openai.APITimeoutError | httpx2.TimeoutException):
        return ProviderError(f"{where} did not answer in time. Try again, or look at what that server is doing.")
    if isinstance(error, openai.APIStatusError):
        said = told(_body_of(error), endpoint)
        if error.status_code not in (401, 403, 404, 429) and is_too_long(said):
            return _too_long(f" ({error.status_code})", said, error.status_code)
        text = _refusal(error.status_code, _body_of(error), asked_for(error.response.headers), endpoint)
        return ProviderError(f"{text}.{hint and f' {hint}'}", status=error.status_code)
    if isinstance(error, openai.APIConnectionError | httpx2.HTTPError | OSError):
        cause = _deepest(error)
        if has_begun:
            return ProviderError(f"The connection to {where} broke ({cause}).")
        return ProviderError(f"{where} cannot be reached ({cause}). Start that server, or check the address.")
    if isinstance(error, openai.APIError):
        return reported(error.body or error.message, endpoint)
    cause = type(error).__name__
    sent = getattr(error, "doc", "")  # what a JSON decoder could not read
    return ProviderError(
        f"{where} sent what is no Chat Completions stream ({cause}{told(sent, endpoint)}). {IS_IT_V1}."
    )


def reported(body: Any, endpoint: Endpoint) -> ProviderError:
    """An error that a server sent in the place of an answer."""
    said = told(body, endpoint)
    if is_too_long(said):
        return _too_long("", said)
    return ProviderError(f"{endpoint.name} reported an error{said}. Try again.")


def _refusal(status: int, body: Any, wait_s: float | None, endpoint: Endpoint) -> str:
    where, said = endpoint.name, told(body, endpoint)
    if status == 401 and not endpoint.api_key:
        return f"{where} wants an API key (401), and none was sent. {_where_keys_are(endpoint)}{said}"
    if wait_s is not None and wait_s >= SHOWN_FROM_S and (status == 429 or status >= 500):
        return f"{where} asks to wait {told_wait(wait_s)} ({status}). Ask again then{said}"
    if status in _REFUSED:
        return f"{where} {_REFUSED[status]}{said}"
    if status == 404 and endpoint.model:
        return f"{where} has no model {endpoint.model!r}, or is no Chat Completions address (404). Choose another{said}"
    if status == 404:
        return f"{where} is not there (404). {IS_IT_V1}{said}"
    if status >= 500:
        return f"{where} failed ({status}). Try again in a moment{said}"
    return f"{where} refused the request ({status}){said}"


def _too_long(told_status: str, said: str, status: int | None = None) -> ProviderError:
    text = f"The conversation is too long for this model{told_status}. Fork from an earlier message{said}."
    return ConversationTooLong(text, status=status)


def without_key(endpoint: Endpoint) -> ProviderError:
    """What to say where OpenAI is to answer and there is no key for it."""
    return ProviderError(f"{endpoint.name} wants an API key; nothing was sent. {_where_keys_are(endpoint)}.")


def _where_keys_are(endpoint: Endpoint) -> str:
    own = os.environ.get("OPENAI_BASE_URL") or OPENAI_URL
    if not os.environ.get("OPENAI_API_KEY"):
        return "Set OPENAI_API_KEY, pass api_key, or type it in the settings under the prompt"
    if endpoint.base_url is not None and is_same_place(own, endpoint.base_url):
        return "Pass api_key, or type it in the settings under the prompt"
    return (
        f"The key of the environment belongs to {without_secrets(own)}: set OPENAI_BASE_URL beside it, pass api_key, "
        "or type the key in the settings under the prompt"
    )


def told(body: Any, endpoint: Endpoint) -> str:
    """``: `` and the words of ``body`` on one line, without the key; ``""`` if it has none."""
    line = names.one_line(OwnKey(endpoint.api_key).without(words(body)), _LONGEST).rstrip(".")
    return f": {line}" if line else ""


def _body_of(error: Any) -> Any:
    """The body of a refused request: what came over the wire, which the SDK gives only in part."""
    try:
        content = error.response.content
    except Exception:  # noqa: BLE001 - a response that was not read, or that a client made elsewhere brought along
        return error.body
    return error.body if content is None else decoded(content) or content


def _deepest(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return names.one_line(str(error) or type(error).__name__, 100).rstrip(".")
