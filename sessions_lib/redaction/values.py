"""Values made of what JSON has, without secrets: every text in them, the names in objects, and what texts hold.

A text that is JSON (arguments of a call, most results) is decoded: each value in it is redacted as the text it says,
under the name it has, and written back in its place, so the rest keeps its bytes. So is the text in a ``data:``
address; pictures and sounds keep theirs.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sessions_lib.redaction import assignments, texts

Found = Callable[[texts.Match, str], None]
Kept = Callable[[str, str], str | None]
_PIECE = re.compile(r'"((?:[^"\\]|\\.)*+)"([ \t\r\n]*+:)?|([{\[])|([}\]])|(-?[0-9][0-9.eE+-]*+)')
_ADDRESS = re.compile(
    r"data:(?P<type>[\w.+-]{1,80}/[\w.+-]{1,80})?(?:;[\w.=\"-]{1,80}){0,4};base64,(?P<bytes>[A-Za-z0-9+/_-]*+={0,2})",
    re.IGNORECASE,
)
_TEXT_TYPE = re.compile(
    r"text/|application/(?:\w[\w.-]*\+)?(?:json|xml|yaml|x-yaml|toml|sql|javascript|x-sh)|image/svg", re.IGNORECASE
)
_NAMES = ("name", "key", "variable", "field", "header")  # beside a "value"
_SHORT = 48  # characters: names, models, paths, which come again and again
_short_matches = lru_cache(8192)(texts.matches)
_is_harmless = lru_cache(4096)(lambda name: not texts.matches(name))
_secret_name = lru_cache(4096)(assignments.is_secret_name)


def redacted(value: Any, patterns: Sequence[str], found: Found, key: str = "", kept: Kept | None = None) -> Any:
    """A copy of ``value``, which stands under ``key``, with everything replaced; ``found`` is told each.

    ``kept`` is asked first, of every text with its key, what becomes of it; ``None``: it is searched.
    """
    return _Walk(patterns, found, kept).value(value, key)


class _Walk:
    def __init__(self, patterns: Sequence[str], found: Found, kept: Kept | None) -> None:
        self._patterns, self._found, self._kept = patterns, found, kept

    def value(self, value: Any, key: str = "") -> Any:
        if isinstance(value, str):
            if key and self._is_secret(key, value):
                return self._secret(value)
            known = self._kept(key, value) if self._kept is not None and key else None
            return self.text(value, key) if known is None else known
        if isinstance(value, list | tuple):
            return [self.value(item, _option(before) or key) for before, item in zip(("", *value), value, strict=False)]
        if isinstance(value, Mapping):
            return self._object(value)
        if key and isinstance(value, int) and not isinstance(value, bool) and self._is_secret_number(key):
            return self._secret(str(value))
        return value

    def _object(self, value: Mapping[Any, Any]) -> dict[Any, Any]:
        named = _named(value) if "value" in value else ""
        is_web_key = "kty" in value
        result: dict[Any, Any] = {}
        for name, inner in value.items():
            is_known = not isinstance(name, str) or (not self._patterns and _is_harmless(name))
            new_name = name if is_known else self._plain(name)
            while new_name in result:
                new_name = f"{new_name}+"
            key = named if name == "value" and named else name if isinstance(name, str) else ""
            is_private = is_web_key and _is_private_part(key, inner)
            result[new_name] = self._secret(inner) if is_private else self.value(inner, key)
        return result

    def text(self, text: str, key: str = "") -> str:
        """A text under ``key``."""
        if key and self._is_secret(key, text):
            return self._secret(text)
        if len(text) < 4:
            return text
        if "base64," in text:
            return self._around_addresses(text)
        if text[0] in "{[ \n\t\r" and (inside := self._inside_json(text, key)) is not None:
            return inside
        return self._plain(text)

    def _plain(self, text: str) -> str:
        short = len(text) < _SHORT and not self._patterns
        matches = _short_matches(text) if short else texts.matches(text, self._patterns)
        for match in matches:
            self._found(match, text)
        return texts.replaced(text, matches)

    def _secret(self, text: str) -> str:
        self._found(texts.Match(0, len(text), "secret", "[secret]"), text)
        return "[secret]"

    def _is_secret(self, key: str, text: str) -> bool:
        return len(key) < 120 and _secret_name(key) and assignments.is_secret_value(key, text)

    def _is_secret_number(self, key: str) -> bool:
        return "pass" in key.lower() and _secret_name(key)

    def _around_addresses(self, text: str) -> str:
        """``text`` with the texts in its ``data:`` addresses redacted, and what stands around them."""
        pieces, end = [], 0
        for match in _ADDRESS.finditer(text):
            pieces += [self._plain(text[end : match.start()]), self._address(match)]
            end = match.end()
        return "".join([*pieces, self._plain(text[end:])])

    def _address(self, match: re.Match[str]) -> str:
        if match["type"] and not _TEXT_TYPE.match(match["type"]):
            return match.group()
        try:
            written = match["bytes"].replace("-", "+").replace("_", "/")
            inside = base64.b64decode(written + "=" * (-len(written) % 4)).decode()
        except (binascii.Error, ValueError):
            return match.group()
        redacted = self.text(inside)
        if redacted == inside:
            return match.group()
        return match.group()[: match.start("bytes") - match.start()] + base64.b64encode(redacted.encode()).decode()

    def _inside_json(self, text: str, key: str) -> str | None:
        """JSON with each of its values redacted as the text it says; ``None`` if ``text`` is no JSON."""
        if text.lstrip()[:1] not in ("{", "["):
            return None
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            return None
        pieces, end, above, named, option = [], 0, [], "", ""
        has_web_key = '"kty"' in text
        for match in _PIECE.finditer(text):
            if match[3]:
                above.append((key, named))
                key, named, option = (key if match[3] == "[" else ""), "", ""
                continue
            if match[4]:
                (key, named), option = above.pop(), ""
                continue
            if match[2]:
                key = said = _said(match[1])
                option = ""
                new = self._plain(said)
            elif match[5]:
                said = new = match[5]
                if self._is_secret_number(key):
                    new = self._secret(said)
            else:
                said = _said(match[1])
                is_private = has_web_key and _is_private_part(key, said)
                under = named if key == "value" and named else option or key
                new = self._secret(said) if is_private else self.value(said, under)
                option = _option(said)
                named = said if key in _NAMES else named
            if new != said:
                pieces += [text[end : match.start()], json.dumps(new, ensure_ascii=False), match[2] or ""]
                end = match.end()
        return "".join([*pieces, text[end:]]) if pieces else text


def _named(value: Mapping[Any, Any]) -> str:
    """What an object calls the ``value`` it holds: ``{"name": "DB_PASS", "value": "…"}``."""
    return next((value[one] for one in _NAMES if isinstance(value.get(one), str)), "")


def _is_private_part(key: str, value: Any) -> bool:
    """True for what a JSON web key (with ``kty``) keeps private: its own number, its primes, a symmetric key."""
    return key in ("d", "p", "q", "dp", "dq", "qi", "k") and isinstance(value, str) and len(value) >= 20


def _option(value: Any) -> str:
    """What the value behind it in a list is called: of ``["--password", "geheim"]``; ``""`` if it is no option."""
    is_option = isinstance(value, str) and value[:1] == "-" and len(value) < _SHORT and _secret_name(value.lstrip("-"))
    return value.lstrip("-") if is_option else ""


def _said(literal: str) -> str:
    return str(json.loads(f'"{literal}"', strict=False)) if "\\" in literal else literal
