"""The API key in what a server sends back: some echo it in an answer or an error, and it must not be stored or shown.

Known are the key as it is, as addresses, HTML and JSON escape it, in base64 (wherever it stands in what was encoded)
and in hexadecimal, in upper and lower case alike; each becomes ``(the key)``. Words that local servers take for a key
are none.

Does not know other secrets (``export`` redacts those), and leaves what tools and people say as it is.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterator
from typing import Any, TypeVar
from urllib.parse import quote

from sessions_lib.errors import ProviderError

T = TypeVar("T")
MARK = "(the key)"
_SHORTEST = 6
_SHORTEST_ENCODED = 8  # a shorter run of base64 may stand in any text
_CUT_OFF = 8  # so much of a key at the end of a text is one that was cut off
_PLACEHOLDERS = frozenset(
    [
        "none",
        "null",
        "empty",
        "dummy",
        "demo",
        "local",
        "localhost",
        "test",
        "testing",
        "nokey",
        "no-key",
        "no_key",
        "not-needed",
        "not_needed",
        "not-used",
        "unused",
        "ollama",
        "lm-studio",
        "lmstudio",
        "llama.cpp",
        "vllm",
        "anything",
        "whatever",
        "sk-no-key-required",
        "sk-none",
        "sk-dummy",
    ]
)


class OwnKey:
    """A key that is to be kept out of texts; without one (or with a placeholder) every text stays as it is."""

    def __init__(self, key: str | None) -> None:
        """The ``key`` that requests are sent with."""
        is_secret = bool(key) and len(key or "") >= _SHORTEST and (key or "").lower() not in _PLACEHOLDERS
        forms = sorted(_forms(key or ""), key=len, reverse=True) if is_secret else []
        self._pattern = re.compile("|".join(map(re.escape, forms)), re.IGNORECASE) if forms else None
        self._beginnings = frozenset(form[:end].lower() for form in forms for end in range(1, len(form)))
        self._longest = max(map(len, forms), default=0)

    def without(self, text: str) -> str:
        """``text`` with ``(the key)`` where the key stood, also where the end of ``text`` or a ``…`` cut it off."""
        if self._pattern is None:
            return text
        return "…".join(map(self._without_beginning, self._pattern.sub(MARK, text).split("…")))

    def _without_beginning(self, text: str) -> str:
        cut = self._begun(text)
        return text[:-cut] + MARK if cut >= _CUT_OFF else text

    def cleaned(self, value: T) -> T:
        """``value`` (a message, made of what JSON has) with every text in it ``without`` the key."""
        result: Any = value
        if self._pattern is None:
            return value
        if isinstance(value, str):
            result = self.without(value)
        elif isinstance(value, list):
            result = [self.cleaned(item) for item in value]
        elif isinstance(value, dict):
            result = {self.cleaned(name): self.cleaned(inner) for name, inner in value.items()}
        return result  # type: ignore[no-any-return]  # of the type it was given

    def told(self, chunks: Iterator[T]) -> Iterator[T]:
        """``chunks`` as they are, their error's text without the key; closing this closes them."""
        try:
            yield from chunks
        except ProviderError as error:
            text = self.without(str(error))
            if text == str(error):
                raise
            raise ProviderError(text, status=error.status) from None  # the chain would show it

    def _begun(self, text: str) -> int:
        """How many characters at the end of ``text`` may be the beginning of the key."""
        end = text[-self._longest :].lower()
        return next((len(end) - at for at in range(len(end)) if end[at:] in self._beginnings), 0)


class Withheld:
    """A text that arrives in pieces, shown without the key: what may be its beginning waits for the next piece."""

    def __init__(self, key: OwnKey) -> None:
        """A text of which nothing has arrived."""
        self._key, self._waiting = key, ""

    def add(self, piece: str) -> str:
        """What can be shown now that ``piece`` has arrived."""
        pattern = self._key._pattern
        if pattern is None or not piece:
            return piece
        *cut, last = pattern.sub(MARK, self._waiting + piece).split("…")
        text = "…".join([*map(self._key.without, cut), last])
        shown = len(text) - self._key._begun(text)
        self._waiting = text[shown:]
        return text[:shown]

    def rest(self) -> str:
        """What was still waiting at the end."""
        waiting, self._waiting = self._waiting, ""
        return self._key.without(waiting)


def _forms(key: str) -> Iterator[str]:
    """What ``key`` may look like."""
    data = key.encode("utf-8", "surrogatepass")
    yield key
    encoded = quote(key, safe="", errors="replace")
    yield encoded
    yield quote(encoded, safe="")  # an address in an address
    yield quote(key, errors="replace")  # "/" stays
    yield html.escape(key)
    yield key.replace("/", "\\/")  # in JSON
    yield "".join(f"\\u{ord(char):04x}" for char in key)
    yield "".join(f"&#{ord(char)};" for char in key)
    yield "".join(f"&#x{ord(char):x};" for char in key)
    yield "".join(f"%{byte:02x}" for byte in data)
    yield data.hex()
    yield from _in_base64(data)
    yield from _in_base64(base64.b64encode(data))


def _in_base64(data: bytes) -> Iterator[str]:
    for shift in range(3):  # how many bytes stand before it in its group of three
        whole = base64.b64encode(b"\0" * shift + data).decode()
        core = whole[(0, 2, 3)[shift] : (shift + len(data)) * 8 // 6]
        if len(core) >= _SHORTEST_ENCODED:
            yield core
            yield core.replace("+", "-").replace("/", "_")
