"""A model's thoughts where a server leaves them in the text: ``<think>…</think>`` at the start of an answer.

Several local servers do, and cut the tags anywhere between chunks. Only what opens an answer is taken for thoughts: a
tag in the middle of a text is what the answer speaks of. Does not know chunks: it is given texts in order.
"""

from __future__ import annotations

import re

_TAGS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<seed:think>", "</seed:think>"),
    ("<reasoning>", "</reasoning>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
)
_CLOSED_ONLY = re.compile(r"\A(.*?)\n\s*</think(?:ing)?>[ \t]*(?:\n+|\Z)", re.DOTALL)  # the opening tag is the prompt's


class Thoughts:
    """Takes an answer's texts in order and tells its words from its thoughts."""

    def __init__(self) -> None:
        self._waiting = ""  # what may still be, or become, a tag
        self._close = ""  # the tag that ends the thoughts it is in; empty outside of them
        self._is_fresh = False  # nothing but blanks since the opening tag
        self._is_text = False  # the answer's own words have begun
        self._has_thought = False
        self._opening = ""  # how the thoughts that are not closed began

    def add(self, text: str) -> tuple[str, str]:
        """The words and the thoughts that are certain with ``text``, each ``""`` if none are."""
        if self._is_text:
            return text, ""
        self._waiting += text
        said, thought = "", ""
        while not self._is_text:
            before = self._waiting
            if self._close:
                thought += self._within()
            else:
                said += self._before()
            if self._waiting == before:
                break
        return said, thought

    def _within(self) -> str:
        """The thoughts up to the closing tag, without the blanks at their ends; what may be the tag waits."""
        if self._is_fresh:
            self._waiting = self._waiting.lstrip()
            self._is_fresh = not self._waiting
        found = self._waiting
        if closing := re.search(re.escape(self._close), found, re.IGNORECASE):
            self._close, self._waiting, self._opening = "", found[closing.end() :], ""
            return found[: closing.start()].rstrip()
        kept = len(found) - _overlap(found, self._close)
        kept = len(found[:kept].rstrip())
        self._waiting = found[kept:]
        return found[:kept]

    def _before(self) -> str:
        """The first words of the answer; nothing while they may be an opening tag, or if they are one."""
        start = self._waiting.lstrip()
        for opening, closing in _TAGS:
            if start.lower().startswith(opening.lower()):
                self._opening, self._close, self._has_thought = self._waiting[: -len(start)] + opening, closing, True
                self._waiting, self._is_fresh = start[len(opening) :], True
                return ""
        if any(opening.lower().startswith(start.lower()) for opening, _ in _TAGS):
            return ""
        said = start if self._has_thought else self._waiting
        self._waiting, self._is_text = "", True
        return said

    @property
    def rest(self) -> tuple[str, str]:
        """What still waits, as words and as thoughts: what there is to add when the answer has ended."""
        return ("", self._waiting.rstrip()) if self._close else (self._waiting, "")

    @property
    def unclosed(self) -> str:
        """How the thoughts began that the answer never closed; ``""`` if it closed them all."""
        return self._opening


def _overlap(text: str, tag: str) -> int:
    """How many characters at the end of ``text`` may be the beginning of ``tag``."""
    begun = tag.lower().startswith
    return next((size for size in range(min(len(tag) - 1, len(text)), 0, -1) if begun(text[-size:].lower())), 0)


def closed_only(text: str) -> tuple[str, str]:
    """The words and the thoughts of a whole ``text`` that only closes them, on a line of its own.

    So it is where the prompt's template opened them. Code in the way may speak of the tag: then all is words.

    >>> closed_only("Two and two.\\n</think>\\n\\n4")
    ('4', 'Two and two.')
    """
    found = _CLOSED_ONLY.match(text)
    if found is None or "```" in found[1] or text.count("</think") != 1:
        return text, ""
    return text[found.end() :].lstrip("\n"), found[1].strip()
