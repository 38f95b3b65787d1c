"""What a server says in an error, whatever the form of its body, and whether it says that the request is too long.

Bodies seen: OpenAI's ``{"error": {"message"}}``, Gemini's list of it, FastAPI's ``{"detail"}`` (a text, or a list of
places), ``{"message"}``, OpenRouter's ``metadata.raw``, JSON inside a text, plain text, a stream's ``data:`` lines, and
the HTML page of a proxy. Of a body in a form nobody foresaw, the first words that stand in it are taken.

Pure functions of what came in; nothing here is shown as it is: callers shorten it and take the key out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from html.parser import HTMLParser
from typing import Any

import msgspec

_TELLING = (  # where servers put their words, best first
    "message",
    "msg",
    "detail",
    "details",
    "error_description",
    "error_message",
    "errorMessage",
    "Message",
    "error",
    "errors",
    "err",
    "error_msg",
    "errmsg",
    "err_msg",
    "status_msg",
    "statusMessage",
    "faultstring",
    "title",
    "description",
    "reason",
    "text",
)
_NAMING = ("code", "type", "status")  # what there is to say if nothing else is
_STREAMED = re.compile(r"(?:event:[^\n]*\n)?data:")
_DEEPEST, _MOST, _LONGEST = 6, 3, 100_000


def words(body: Any, depth: int = 0) -> str:
    """The words of an error body, decoded or not; ``""`` if it has none."""
    if isinstance(body, bytes):
        body = body[:_LONGEST].decode("utf-8", "replace")
    if isinstance(body, str):
        return _of_text(body[:_LONGEST].strip(), depth)
    if depth > _DEEPEST:
        return ""
    if isinstance(body, Mapping):
        return _of_object(body, depth)
    if isinstance(body, list):
        return "; ".join(_different(words(item, depth + 1) for item in body[:_MOST]))
    return ""


def _of_text(text: str, depth: int) -> str:
    if _STREAMED.match(text):
        text = next((line[5:].strip() for line in text.splitlines() if line.startswith("data:")), text)
    if text[:1] in ("{", "[") and depth <= _DEEPEST:
        inner = decoded(text.encode("utf-8", "replace"))
        return words(inner, depth + 1) or ("" if inner in ({}, []) else text)
    return _of_page(text) if text.startswith("<") else text


def _of_object(body: Mapping[Any, Any], depth: int) -> str:
    found = next((told for key in _TELLING if (told := words(body.get(key), depth + 1))), "")
    if isinstance(body.get("loc"), list):  # FastAPI: where in the request, then what
        found = f"{'.'.join(str(part) for part in body['loc'])}: {found}"
    metadata = body.get("metadata")
    if isinstance(metadata, Mapping):  # OpenRouter: what the provider behind it said
        found = ": ".join(_different((found, words(metadata.get("raw"), depth + 1))))
    return found or _unforeseen(body, depth)


def _unforeseen(body: Mapping[Any, Any], depth: int) -> str:
    """The first words under a name that nobody foresaw: a sentence, what stands further in, or a code."""
    sentences = [value for value in body.values() if isinstance(value, str) and " " in value.strip()]
    inner = [value for value in body.values() if isinstance(value, Mapping | list)]
    naming = [body[key] for key in _NAMING if isinstance(body.get(key), str | int) and body[key]]
    found = next((told for value in [*sentences, *inner] if (told := words(value, depth + 1))), "")
    return found or next(map(str, naming), "")


def _different(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(text for text in texts if text))


class _Page(HTMLParser):
    """The texts of a page, but for its scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._hidden += tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("script", "style") and self._hidden > 0

    def handle_data(self, data: str) -> None:
        if not self._hidden and data.strip():
            self.texts.append(" ".join(data.split()))


def _of_page(text: str) -> str:
    page = _Page()
    page.feed(text)
    page.close()
    return " · ".join(_different(page.texts)) or text


def decoded(body: bytes) -> Any:
    """The JSON of a response body, or ``None`` if it is none."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None


# Each line with those who say it so; a limit is named as context, input or prompt, never as what may be answered.
_TOO_LONG = re.compile(
    "|".join(
        (
            r"context[ _]?(length|window|size|limit)[ _](is |was |has been )*exceed",  # OpenAI's code, llama.cpp
            r"exceed\w* (\S+ ){0,6}context|context window exceeds",  # OpenAI, Anthropic, llama.cpp, Ollama, MiniMax
            r"maximum (model |context |prompt |input |sequence )+length",  # vLLM, Azure, OpenRouter, xAI, Fireworks
            r"(long|great|larg)er than the (model'?s? |maximum |max |available )*(context|model) ",  # SGLang, LM Studio
            r"(prompt|input|conversation|request|history|messages?) (is|are|was) (far |much )?too (long|large for)",
            r"(prompt|input|conversation|messages?) too long|too (long|large) for (the |this |requested )*model",
            r"(token count|number of \w*\s?tokens|input tokens|prompt tokens)\b.{0,60}exceed",  # Gemini, Copilot
            r"exceed\w* (\w+ ){0,4}(token limit|number of (input )?tokens|input token|input length|prompt length)",
            r"token limit exceeded|too many (input |prompt |total )?tokens",  # Kimi, Cohere, Bedrock
            r"reduce (the length of |your |the )+(messages|prompt|input|conversation)",  # OpenAI, Groq
            r"range of input length|input length should be",  # Qwen
            r"must have less than \d+ tokens|inputs?`? tokens \+",  # TGI, Together
            r"n_keep.{0,40}n_ctx|exceeds n_ctx|larger than n_ctx",  # LM Studio, llama-cpp-python
            r"model_context_window_exceeded",  # Anthropic, GLM
        )
    ),
    re.IGNORECASE | re.DOTALL,
)
_PER_MINUTE = re.compile(r"rate.?limit|per[\s_-]*(?:min|minute|hour|day|second)\b|\btpm\b|\btpd\b|quota", re.IGNORECASE)


def is_too_long(said: str) -> bool:
    """True if a server's words say that the conversation does not fit into the model's context.

    Limits of tokens in a minute are another matter: waiting helps there.

    >>> is_too_long("prompt is too long: 213462 tokens > 200000 maximum")
    True
    >>> is_too_long("Rate limit reached: too many tokens per minute")
    False
    """
    return bool(_TOO_LONG.search(said)) and not _PER_MINUTE.search(said)
