"""What stands in a text and cannot be seen, or steers what shows it: named in its place.

``visible`` (as ``text.visible``, too) is the one way to make a stored text harmless: pages, the terminal and every
export go through it, so that what is seen is what is there. ``escaped`` does the same for JSON, whose readers must get
the text itself.

Does not shorten, does not escape for a format, and never changes what is stored.
"""

from __future__ import annotations

import json as _json
import re

# C0 (but tab and line feed), C1, what turns a line round or has no width, blank letters, tags, lone surrogates.
# Left alone: the joiners U+200C and U+200D and the variation selectors, which emoji and several scripts need.
_SIGNS = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufeff"
    "\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"
)
_FLAG = "\U0001f3f4[\U000e0061-\U000e007a]{5}\U000e007f"  # England, Scotland and Wales are spelled in tags
_UNSEEN = re.compile(f"({_FLAG})|[{_SIGNS}]")
_UNSEEN_IN_JSON = re.compile(f"({_FLAG})|[{_SIGNS}\u2028\u2029]")
_UNSEEN_ASCII = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
_LINE_ENDS = re.compile("\r\n?|[\x85\u2028\u2029]")


def visible(text: str) -> str:
    """``text`` with what could not be seen, or would steer what shows it, named in its place.

    A control character becomes its picture (``␛``), what turns a line round or has no width its number
    (``⟦U+202E⟧``), half a surrogate pair U+FFFD: the result is valid UTF-8. Every kind of line end becomes ``\\n``.

    >>> visible("a\\r\\nb\\x1b[2J \\u202etxt.exe")
    'a\\nb␛[2J ⟦U+202E⟧txt.exe'
    """
    if text.isascii():
        if text.isprintable():
            return text
        return _UNSEEN_ASCII.sub(_named, text.replace("\r\n", "\n").replace("\r", "\n"))
    return _UNSEEN.sub(_named, _LINE_ENDS.sub("\n", text))


def escaped(json: str) -> str:
    """``json``, which says the same, with what ``visible`` would name written as ``\\u202e``.

    >>> escaped('{"file":"\u202etxt.exe"}')
    '{"file":"\\\\u202etxt.exe"}'
    """
    if json.isascii() and "\x7f" not in json:
        return json
    return _UNSEEN_IN_JSON.sub(lambda match: match.group(1) or _json.dumps(match.group())[1:-1], json)


def _named(match: re.Match[str]) -> str:
    char = match.group()
    if match.re is _UNSEEN and match.group(1):
        return char
    if char < "\x20" or char == "\x7f":
        return chr(0x2421 if char == "\x7f" else 0x2400 + ord(char))
    return "\ufffd" if "\ud800" <= char <= "\udfff" else f"⟦U+{ord(char):04X}⟧"
