"""Endpoints: where a model answers, and which key goes there.

The address comes from the arguments, then from what the session names, then from ``OPENAI_BASE_URL``; so does the
model, where it was named for that address. A session that names an address or the demo is answered there and nowhere
else. Where nothing is named, the offline village answers.

**A key goes only to the place it was given for.** ``OPENAI_API_KEY`` belongs to ``OPENAI_BASE_URL`` where that is set,
to OpenAI where it is not; a key that was passed belongs to the address of that agent. A place is scheme, host and port.

Does not ask any server and does not store anything: keys live in the ``Endpoint`` and are not in its ``repr``, in any
error or in any file.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from sessions_lib import names
from sessions_lib.errors import ProviderError

if TYPE_CHECKING:
    from openai import OpenAI

DEMO_MODEL = "demo"  # the offline village
OPENAI_URL = "https://api.openai.com/v1"
OPENAI_MODEL = "gpt-5.6-luna"
WIRES = ("chat", "responses")  # Chat Completions, and OpenAI's Responses
PRESETS = {
    "OpenAI": OPENAI_URL,
    "Ollama": "http://127.0.0.1:11434/v1",
    "LM Studio": "http://127.0.0.1:1234/v1",
    "vLLM": "http://127.0.0.1:8000/v1",
    "llama.cpp": "http://127.0.0.1:8080/v1",
}
READ_TIMEOUT_S = 300.0  # a small machine reads a long history for minutes before its first token
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model answers. ``base_url`` is ``None`` for the offline demo; no ``model``: the server's first."""

    base_url: str | None = None
    model: str = ""
    api_key: str | None = field(default=None, repr=False)
    timeout_s: float = READ_TIMEOUT_S
    wire: str = "chat"  # or "responses"

    @property
    def is_demo(self) -> bool:
        """True for the offline village."""
        return self.base_url is None

    @property
    def name(self) -> str:
        """The address without anything secret in it, or ``the offline demo``."""
        return "the offline demo" if self.base_url is None else names.one_line(without_secrets(self.base_url), 120)

    @property
    def lacks_key(self) -> bool:
        """True for OpenAI's own address without a key: it answers nobody then."""
        return self.base_url is not None and not self.api_key and is_same_place(self.base_url, OPENAI_URL)

    @property
    def settings(self) -> dict[str, str]:
        """What a session remembers of it: ``base_url`` without anything secret in it, and ``model`` if it has one."""
        place = {} if self.base_url is None else {"base_url": without_secrets(self.base_url)}
        return {**place, **({"model": self.model} if self.model else {})}


def choose(
    model: str | None = None,
    base_url: str | None = None,
    api_key: str | None = None,
    made: OpenAI | None = None,
    *,
    wire: str | None = None,
    session: Mapping[str, Any] | None = None,
) -> Endpoint:
    """The endpoint of these arguments, then of the ``session``'s metadata, then of the environment, else the demo.

    The ``wire`` is chosen likewise; where nobody names one it is Responses for OpenAI's own address, and Chat
    Completions elsewhere. A client ``made`` elsewhere brings its own address and key. ``ProviderError`` for an address
    that is none, in the arguments or in the metadata: nothing else is taken in its place.
    """
    named_url, named_model = _named(session or {}, "base_url"), _named(session or {}, "model")
    env_url, env_model = os.environ.get("OPENAI_BASE_URL") or None, os.environ.get("OPENAI_MODEL") or None
    env_key = os.environ.get("OPENAI_API_KEY") or None
    if made is not None and model != DEMO_MODEL:
        url: str | None = str(made.base_url).rstrip("/")
    elif base_url:
        url = base_url
    elif model == DEMO_MODEL or (not model and not named_url and named_model == DEMO_MODEL):
        return Endpoint(model=DEMO_MODEL)
    else:
        is_meant = any((model, named_model, api_key, env_key, env_model))
        url = named_url or env_url or (OPENAI_URL if is_meant else None)
    if url is None:
        return Endpoint(model=DEMO_MODEL)
    url = _checked(url.strip()) if made is None else url
    own = env_url or OPENAI_URL  # whose key and model the environment names
    if named_model == DEMO_MODEL or (named_url and not _is_same_address(named_url, url)):
        named_model = None  # the name of a model on another server
    if made is None and not _is_same_address(own, url):
        env_model = None
    chosen = model or named_model or env_model
    named_wire = _named(session or {}, "wire") if not named_url or _is_same_address(named_url, url) else None
    spoken = checked_wire(wire or named_wire or ("responses" if is_same_place(url, OPENAI_URL) else "chat"))
    if made is not None:
        return Endpoint(url, chosen or "", wire=spoken)
    if not chosen and is_same_place(url, OPENAI_URL):
        chosen = OPENAI_MODEL
    key = _checked_key(api_key) or (_checked_key(env_key) if is_same_place(own, url) else None)
    if env_url and is_same_place(env_url, url) and not urlsplit(url).username:
        url = _with_login_of(env_url, url)
    return Endpoint(url, chosen or "", key, wire=spoken)


def check_given(base_url: str | None, api_key: str | None) -> None:
    """Refuse an address that is none and a key that cannot be one, before anything is made for them."""
    if base_url:
        _checked(base_url.strip())
    _checked_key(api_key)


def checked_wire(wire: str) -> str:
    """``wire`` if it is one of ``WIRES``; ``ProviderError`` names them."""
    if wire not in WIRES:
        raise ProviderError(f"{names.one_line(wire, 40)!r} is no wire. Choose {' or '.join(WIRES)}.")
    return wire


def _named(session: Mapping[str, Any], key: str) -> str | None:
    """What the session's metadata says under ``key``; ``ProviderError`` if that is something, but no text."""
    value = session.get(key)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise ProviderError(
            f"The session's metadata names a {key} that is no text; nothing was sent. Choose it again: --base-url, "
            "--model, or the settings under the prompt."
        )
    return value.strip() or None


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        valid = parts.scheme in _PORTS and bool(parts.hostname) and (parts.port or 1) > 0
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


def _with_login_of(other: str, url: str) -> str:
    """``url`` with the login that ``other``, which is at the same place, has in it: no session remembers one."""
    login, at, _ = urlsplit(other).netloc.rpartition("@")
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{login}{at}{parts.netloc}"))


def without_secrets(url: str) -> str:
    """``url`` without a login and without what may follow its path.

    >>> without_secrets("https://me:secret@models.example/v1/?key=secret")
    'https://models.example/v1'
    """
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}".rstrip("/")


def place_of(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port of ``url``: who gets what is sent there. Blank and ``None`` if it has none."""
    try:
        parts = urlsplit(url.strip())
        return parts.scheme, (parts.hostname or "").rstrip("."), parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return "", "", None


def is_same_place(url: str, other: str) -> bool:
    """True if both addresses are at one scheme, host and port."""
    return place_of(url) == place_of(other)


def _is_same_address(url: str, other: str) -> bool:
    return is_same_place(url, other) and urlsplit(url).path.rstrip("/") == urlsplit(other).path.rstrip("/")


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
