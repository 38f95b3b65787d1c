"""A text cut into words: what is left where white space and signs are cut out; and where each word stands.

In scripts without spaces a character is a word. Signs inside a word that are none (an apostrophe, a hyphen) keep it
whole.

Does not compare anything.
"""

from __future__ import annotations

import re
from functools import cached_property
from itertools import accumulate, compress

_SPACELESS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # scripts where a character is a word
_SPACELESS_CHAR = re.compile(f"([{_SPACELESS}])")
_SIGNS = '.,;:!?…"“”‘«»()[]{}*`~#>|=<+/\\&%—–。、，！？；：（）「」'
_SPACELESS_PART = re.compile(rf"[{_SPACELESS}]|[^ {_SPACELESS}]+| +")
_SPACES = "".join(filter(str.isspace, map(chr, range(0x3001))))
_BLANK = dict.fromkeys(map(ord, _SIGNS + _SPACES), " ")
_SHAPES = bytes(ord(" " if chr(code) in _SIGNS + _SPACES else "x") for code in range(256))


class Words:
    """A text cut into ``words``: what is left where white space and signs are cut out."""

    def __init__(self, text: str) -> None:
        self.text = text
        blank = text.translate(_BLANK)  # as long as the text
        self._is_spaced = _is_spaced(text)
        self._parts = blank.split(" ") if self._is_spaced else _SPACELESS_PART.findall(blank)
        self.words = list(filter(None if self._is_spaced else str.strip, self._parts))

    @cached_property
    def ends(self) -> list[int]:
        """Where each word ends: the word ``n`` at ``ends[n + 1]``. Before them stands 0, after them the text's end."""
        end = len(self.text)
        if self._is_spaced:  # a blank follows each part
            at = -1
            return [0, *[at for part in self._parts if (at := at + len(part) + 1) and part], end]
        return [0, *compress(accumulate(map(len, self._parts)), map(str.strip, self._parts)), end]

    def start(self, number: int) -> int:
        """Where the word ``number`` begins; behind the last word, where the text ends."""
        if number == len(self.words):
            return len(self.text)
        return self.ends[number + 1] - len(self.words[number])

    def before(self, number: int) -> str:
        """What stands before the word ``number``; behind the last word, what is left of the text."""
        return self.text[self.ends[number] : self.start(number)]


def _is_spaced(text: str) -> bool:
    return text.isascii() or not _SPACELESS_CHAR.search(text)


def split(text: str) -> list[str]:
    """The words of ``text``, where nobody asks for their places."""
    return text.translate(_BLANK).split() if _is_spaced(text) else Words(text).words


def count(text: str) -> int:
    """How many words ``text`` has."""
    if text.isascii():  # without making them: a word begins where a letter follows a blank
        return (b" " + text.encode().translate(_SHAPES)).count(b" x")
    return len(split(text))
