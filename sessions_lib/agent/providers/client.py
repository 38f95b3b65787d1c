"""The ``openai`` client of an endpoint, and what its server says of its models.

Nothing is sent to another place than the endpoint's: a redirect to another host, port or scheme is refused before the
conversation and the key would follow it. A proxy from the environment is not used for this machine's own addresses: it
could not reach them.

A client made elsewhere is held to the same.

Does not send a conversation: ``chat`` does.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from sessions_lib import text
from sessions_lib.agent.providers.end_dates import END_DATES
from sessions_lib.agent.providers.endpoints import (
    DEMO_MODEL,
    PRESETS,
    Endpoint,
    is_loopback,
    place_of,
    without_secrets,
)
from sessions_lib.agent.providers.problems import IS_IT_V1, problem
from sessions_lib.errors import ProviderError, SessionError

if TYPE_CHECKING:
    import ssl

    import httpx2
    from openai import OpenAI

CONNECT_TIMEOUT_S = 10.0
_WIRES = {"/chat/completions": "Chat Completions", "/responses": "Responses"}
_KINDS = {
    "vllm": "vLLM",
    "llamacpp": "llama.cpp",
    "library": "Ollama",
    "organization_owner": "LM Studio",
    "openai": "OpenAI",
}
_LOCAL_S = 1.0  # a server on this machine that does not answer by then is not there
_NO_KEY = "none"  # the SDK refuses an empty key; local servers ignore whatever they get
sending = threading.local()  # .call: what is told of each request this thread sends, where it has a before_sending


def client(endpoint: Endpoint) -> OpenAI:
    """A new ``openai`` client for ``endpoint``, which is not the demo: ``demo_model`` has that one."""
    import httpx2
    from openai import OpenAI

    assert endpoint.base_url is not None  # the demo has no address
    address = endpoint.base_url
    timeout = httpx2.Timeout(endpoint.timeout_s, connect=CONNECT_TIMEOUT_S)

    def before_sending(request: httpx2.Request) -> None:
        _check_place(address, str(request.url))
        if (call := getattr(sending, "call", None)) is not None:
            call.before_sending(request)

    trust_env = not is_loopback(address)
    transport = httpx2.Client(
        verify=_certificates(trust_env),
        trust_env=trust_env,
        timeout=timeout,
        follow_redirects=True,
        event_hooks={"request": [before_sending]},
    )
    return OpenAI(
        api_key=endpoint.api_key or _NO_KEY, base_url=address, timeout=timeout, max_retries=2, http_client=transport
    )


@cache
def _certificates(trust_env: bool) -> ssl.SSLContext:
    """Whom to trust, read once in a process: it takes 20 ms, for which every run of a conversation would wait."""
    import httpx2

    return httpx2.create_ssl_context(trust_env=trust_env)


def watched(made: OpenAI) -> OpenAI:
    """A client ``made`` elsewhere, as it is, but that a conversation it sends follows no redirect to another server."""
    transport = getattr(made, "_client", None)  # the SDK shows it nowhere else
    hooks = getattr(transport, "event_hooks", None)
    if transport is not None and hooks is not None and _before_sending not in hooks["request"]:
        transport.event_hooks = {**hooks, "request": [*hooks["request"], _before_sending]}
    return made


def _before_sending(request: httpx2.Request) -> None:
    if (call := getattr(sending, "call", None)) is not None:  # else it is a request of its owner's
        if call.endpoint.base_url is not None:  # the demo answers inside the process, and leads nowhere
            _check_place(call.endpoint.base_url, str(request.url))
        call.before_sending(request)


def _check_place(address: str, target: str) -> None:
    """Refuse a ``target`` that is not where ``address`` is: a redirect leads there. Its own https is no other place."""
    (scheme, host, port), (to_scheme, to_host, to_port) = place_of(address), place_of(target)
    is_same = (scheme, host, port) == (to_scheme, to_host, to_port)
    is_upgrade = host == to_host and (scheme, port, to_scheme, to_port) == ("http", 80, "https", 443)
    if not is_same and not is_upgrade:
        raise ProviderError(
            f"{without_secrets(address)} leads to another server, {without_secrets(target)}; nothing was sent there. "
            "If that is the one you mean, give its address."
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


def _listed(endpoint: Endpoint, made: OpenAI | None, timeout_s: float = CONNECT_TIMEOUT_S) -> dict[str, dict[str, Any]]:
    """Model → what the server says of it, in its order."""
    import httpx2
    import openai

    asked = (made or client(endpoint)).with_options(timeout=timeout_s, max_retries=0)
    try:
        found = asked.models.list()
        return {item.id: item.to_dict() for item in found.data if isinstance(item.id, str) and item.id}
    except (openai.OpenAIError, httpx2.HTTPError) as error:
        raise problem(error, endpoint) from error
    except (AttributeError, TypeError, ValueError) as error:
        raise ProviderError(f"{endpoint.name} answers, but not with a list of models. {IS_IT_V1}") from error


def with_model(endpoint: Endpoint, made: OpenAI | None = None) -> Endpoint:
    """``endpoint`` with a model: its own, else the first the server lists."""
    if endpoint.model:
        return endpoint
    listed = list_models(endpoint, made)
    if not listed:
        raise ProviderError(f"{endpoint.name} lists no model. Load one there, or name it (OPENAI_MODEL).")
    return replace(endpoint, model=listed[0])


def find_local() -> dict[str, list[str]]:
    """The servers of models that answer on this machine, by address: Ollama, LM Studio, llama.cpp and vLLM where they
    usually listen; the models that each lists. Asks them at once, for a second."""
    from concurrent.futures import ThreadPoolExecutor

    places = [url for url in PRESETS.values() if is_loopback(url)]
    with ThreadPoolExecutor(len(places)) as pool:
        found = dict(zip(places, pool.map(_models_at, places), strict=True))
    return {url: models for url, models in found.items() if models is not None}


def _models_at(url: str) -> list[str] | None:
    try:
        return list(_listed(Endpoint(url, timeout_s=_LOCAL_S), None, timeout_s=_LOCAL_S))
    except SessionError:
        return None


def ends_on(model: str, facts: Mapping[str, Any] | None = None) -> date | None:
    """The day on which ``model`` is switched off: what its server says (``facts``), else what is known here."""
    said = (facts or {}).get("shutdown_date")
    if isinstance(said, int | float) and not isinstance(said, bool):
        return datetime.fromtimestamp(said, UTC).date()
    if isinstance(said, str):
        with contextlib.suppress(ValueError):
            return date.fromisoformat(said[:10])
    name = model.rpartition("/")[2]
    return next((day for known, day in END_DATES.items() if name == known or name.startswith(f"{known}-20")), None)


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


def tested(endpoint: Endpoint) -> str:
    """What ``check`` says, what the server is and which wires it speaks, and what it says of the chosen model: context,
    pictures, tools, when it ends. Starts no model."""
    if endpoint.is_demo:
        return check(endpoint)
    try:
        facts = _listed(endpoint, None)
    except SessionError as error:
        return str(error)
    made = client(endpoint).with_options(timeout=CONNECT_TIMEOUT_S, max_retries=0)
    wires = [name for path, name in _WIRES.items() if _speaks(made, path)]
    said = [check(endpoint)]
    if (kind := _KINDS.get(str(next(iter(facts.values()), {}).get("owned_by")))) is not None:
        said.append(f"It is {kind}.")
    said.append(f"It speaks {' and '.join(wires)}." if wires else "It speaks neither Chat Completions nor Responses.")
    return " ".join([*said, *(_of_model(endpoint, facts) if endpoint.model in facts else ())])


def _speaks(made: OpenAI, path: str) -> bool:
    """True if the server knows ``path``: an empty request is refused there, and costs nothing."""
    import httpx2
    import openai

    try:
        made.post(path, body={}, cast_to=object)
    except openai.APIStatusError as error:
        return error.status_code not in (404, 405, 501)
    except (openai.OpenAIError, httpx2.HTTPError, ValueError):
        return False
    return True


def _of_model(endpoint: Endpoint, facts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What is known of the chosen model, in sentences: its context, what it takes, when it ends."""
    found = facts[endpoint.model]
    said = []
    if (size := _context_size(found)) is not None:
        said.append(f"Its context holds {size:,} tokens.")
    silent = []
    kinds = found.get("input_modalities") or (found.get("architecture") or {}).get("input_modalities")
    known = found.get("supported_parameters")
    for what, listed, word in (("pictures", kinds, "image"), ("tools", known, "tools")):
        if isinstance(listed, list) and listed:
            said.append(f"It takes {what}." if word in listed else f"It takes no {what}.")
        else:
            silent.append(what)
    if silent:
        said.append(f"Whether it takes {' and '.join(silent)}, its server does not say.")
    if (day := ends_on(endpoint.model, found)) is not None:
        said.append(f"{endpoint.model} ends on {day}: choose another before.")
    return [*said, f"It is asked over {_WIRES['/responses' if endpoint.wire == 'responses' else '/chat/completions']}."]
