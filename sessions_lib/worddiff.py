"""Two texts → which words differ, where a reader can use that; else that they are two different texts.

Words and punctuation are compared, white space is not: each side keeps its own. The longest common subsequence comes
from rapidfuzz (``LCSseq``). Then scraps are joined, as an editor would: two common words between two longer changes
say nothing, so they belong to the change.

Marks help only between texts that are alike. ``likeness`` is the share of words two texts have in common, in order
(2 × common / all); below ``ALIKE`` nothing is marked. Measured on 533 pairs of answers of 40 real support conversations
(tau-bench, airline, gpt-4o: the same opening in other conversations, and each answer with the next): unlike answers
have a median of 0.15 to 0.22. From 0.3 to 0.4 a common run is 3 words long and 74% of the text would be marked, which
nobody can read; from 0.4 to 0.5 it is 5 words and 61%, from 0.5 to 0.6 7 words and 49%. So the line is drawn at 0.4.

Does not look at letters inside a word, and does not know Markdown: text is text.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import itemgetter
from typing import NamedTuple

from rapidfuzz.distance import LCSseq

ALIKE = 0.4

# LCSseq keeps one bit for each pair of words to find its path back: 400 million are 50 MB. Above it, lines go first.
_MOST_PAIRS = 400_000_000

_SPACELESS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # scripts where a character is a word
_JOINED = "\u0300-\u036f\u200c\u200d\ufe0e\ufe0f\U0001f1e6-\U0001f1ff\U0001f3fb-\U0001f3ff"
_SPECIAL = re.compile(f"[{_SPACELESS}{_JOINED}]")
_PLAIN_TOKEN = re.compile(r"\s*(?:\w+(?:['’]\w+)*|[^\w\s])")
_PLAIN_WORD = re.compile(r"[^\W_]\w*(?:['’]\w+)*")
_SPECIAL_TOKEN = re.compile(
    rf"\s*(?:[{_SPACELESS}]"
    rf"|(?:[^\W{_SPACELESS}]|[\u0300-\u036f\u200c])+(?:['’][^\W{_SPACELESS}]+)*"
    r"|[\U0001f1e6-\U0001f1ff]{2}"  # a flag is two characters
    r"|[^\w\s](?:\u200d[^\w\s]|[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff])*)"
)

Span = tuple[int, int]  # a half-open range: of words, or of characters
Change = tuple[int, int, int, int]  # words from, to in a; from, to in b


class Segment(NamedTuple):
    """A stretch of one text: ``changed`` if the other text does not have it."""

    text: str
    changed: bool


@dataclass(frozen=True, slots=True)
class Difference:
    """How two texts differ: their ``likeness`` from 0 to 1, and both in segments.

    Each side's segments joined are its whole text. They are ``None`` where the texts are not alike enough to mark
    words; ``likeness`` is then at most what it says.
    """

    likeness: float
    a: tuple[Segment, ...] | None = None
    b: tuple[Segment, ...] | None = None

    @property
    def is_alike(self) -> bool:
        """True if the texts are alike enough to mark words."""
        return self.a is not None


@dataclass(frozen=True, slots=True)
class _Words:
    """A text cut into words: each word, where it starts and ends, and how many true words precede each."""

    text: str
    keys: list[str]
    ends: list[int]
    counts: list[int]

    def characters(self, first: int, last: int) -> Span:
        """Where the words ``first`` to ``last`` stand, without the white space before the first."""
        end = self.ends[first]
        return end - len(self.keys[first]), self.ends[last - 1]


def difference(a: str, b: str, *, alike: float = ALIKE) -> Difference:
    """How ``a`` and ``b`` differ.

    >>> difference("Go west at dawn.", "Go east at dawn.").b
    (Segment(text='Go ', changed=False), Segment(text='east', changed=True), Segment(text=' at dawn.', changed=False))
    >>> difference("Go west at dawn.", "Bring a lamp.").is_alike
    False
    """
    if a == b:
        return Difference(1.0, _segments(a, []), _segments(b, []))
    left, right = _words(a), _words(b)
    either = left.counts[-1] + right.counts[-1]
    if not either:  # signs only
        return Difference(0.0)
    if len(left.keys) * len(right.keys) > _MOST_PAIRS:
        changes = _in_long_texts(left, right)
    else:
        most = 2 * LCSseq.similarity(left.keys, right.keys) / either
        if most < alike:
            return Difference(most)
        changes = _changed_words(left.keys, right.keys)
    common = left.counts[-1] - sum(left.counts[a1] - left.counts[a0] for a0, a1, _, _ in changes)
    likeness = 2 * common / either
    if likeness < alike:
        return Difference(likeness)
    changes = [_slid(change, left.keys, right.keys) for change in _without_scraps(changes, left)]
    return Difference(
        likeness,
        _segments(a, [left.characters(a0, a1) for a0, a1, _, _ in changes if a1 > a0]),
        _segments(b, [right.characters(b0, b1) for _, _, b0, b1 in changes if b1 > b0]),
    )


def likeness(a: str, b: str) -> float:
    """The share of words that ``a`` and ``b`` have in common, in order: 0 to 1, 0 if neither has any word."""
    if a == b:
        return 1.0 if a else 0.0
    left, right = _words(a), _words(b)
    words = left.counts[-1] + right.counts[-1]
    common = LCSseq.similarity([k for k in left.keys if _is_word(k)], [k for k in right.keys if _is_word(k)])
    return 2 * common / words if words else 0.0


def word_count(text: str) -> int:
    """How many words ``text`` has; signs are none."""
    if _is_plain(text):
        return len(_PLAIN_WORD.findall(text))
    return sum(token.lstrip()[0].isalnum() for token in _SPECIAL_TOKEN.findall(text))


def is_same_but_for_spacing(a: str, b: str) -> bool:
    """True if the texts differ in white space only."""
    return a != b and a.split() == b.split()


def union(first: Sequence[Segment], second: Sequence[Segment]) -> tuple[Segment, ...]:
    """One text in segments, changed where it is changed in either of two readings of it."""
    text = "".join(segment.text for segment in first)
    return _segments(text, sorted(_changed_spans(first) + _changed_spans(second)))


def _is_word(key: str) -> bool:
    return key[0].isalnum()


def _tokens(text: str) -> list[str]:
    """The words and signs of ``text``, each with the white space before it."""
    return (_PLAIN_TOKEN if _is_plain(text) else _SPECIAL_TOKEN).findall(text)


def _is_plain(text: str) -> bool:
    return text.isascii() or not _SPECIAL.search(text)


def _words(text: str) -> _Words:
    tokens = _tokens(text)
    keys = list(map(str.lstrip, tokens))
    is_word = map(str.isalnum, map(itemgetter(0), keys))
    return _Words(text, keys, list(accumulate(map(len, tokens))), list(accumulate(is_word, initial=0)))


def _changed_words(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[Change]:
    """The changes between two lists of words, neighbours joined, each not empty on at least one side."""
    changes: list[Change] = []
    at_a = at_b = 0
    for block in LCSseq.opcodes(a, b).as_matching_blocks():
        if block.a > at_a or block.b > at_b:
            changes.append((at_a, block.a, at_b, block.b))
        at_a, at_b = block.a + block.size, block.b + block.size
    return changes


def _in_long_texts(left: _Words, right: _Words) -> list[Change]:
    """The changes between two very long texts: without what both begin and end with, then lines, then words in them.

    What is too long even then counts as changed whole.
    """
    a, b = left.keys, right.keys
    start = _shared_start(a, b)
    end = _shared_start(a[start:][::-1], b[start:][::-1])
    stop_a, stop_b = len(a) - end, len(b) - end
    starts_a, starts_b = _line_starts(left, start, stop_a), _line_starts(right, start, stop_b)
    if len(starts_a) * len(starts_b) > _MOST_PAIRS:
        return [(start, stop_a, start, stop_b)]
    changes: list[Change] = []
    lines_a = [hash(tuple(a[i:j])) for i, j in pairwise(starts_a)]
    lines_b = [hash(tuple(b[i:j])) for i, j in pairwise(starts_b)]
    for i0, i1, j0, j1 in _changed_words(lines_a, lines_b):
        a0, a1, b0, b1 = starts_a[i0], starts_a[i1], starts_b[j0], starts_b[j1]
        if (a1 - a0) * (b1 - b0) > _MOST_PAIRS // 16:
            changes.append((a0, a1, b0, b1))
        else:
            inner = _changed_words(a[a0:a1], b[b0:b1])
            changes += [(a0 + p, a0 + q, b0 + r, b0 + s) for p, q, r, s in inner]
    return changes


def _shared_start(a: Sequence[str], b: Sequence[str]) -> int:
    return next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _line_starts(words: _Words, first: int, last: int) -> list[int]:
    """The numbers of the words from ``first`` on that begin a line, and at last ``last``."""
    starts = [first] if last > first else []
    for number in range(first + 1, last):
        if "\n" in words.text[words.ends[number - 1] : words.ends[number] - len(words.keys[number])]:
            starts.append(number)
    return [*starts, last]


def _without_scraps(changes: Sequence[Change], left: _Words) -> list[Change]:
    """The changes, those joined that only a scrap of common text parts.

    A scrap holds at most two words, and fewer than the changes on both of its sides; or no word and no full stop.
    """
    joined: list[Change] = []
    counts, keys = left.counts, left.keys
    for a2, a3, b2, b3 in changes:
        while joined:
            a0, a1, b0, b1 = joined[-1]
            words = counts[a2] - counts[a1]
            if words > 2 or (words and words >= min(max(a1 - a0, b1 - b0), max(a3 - a2, b3 - b2))):
                break
            if not words and "." in keys[a1:a2]:
                break
            joined.pop()
            a2, b2 = a0, b0
        joined.append((a2, a3, b2, b3))
    return joined


def _slid(change: Change, a: Sequence[str], b: Sequence[str]) -> Change:
    """A pure insertion or deletion moved past the sign it begins with, where it reads the same.

    ``x. [New one.] y`` and not ``x[. New one]. y``.
    """
    a0, a1, b0, b1 = change
    if a1 > a0 and b1 > b0:
        return change
    words, start, end = (a, a0, a1) if a1 > a0 else (b, b0, b1)
    if words[start] in ".!?…:;," and end < len(words) and words[end] == words[start]:
        return a0 + 1, a1 + 1, b0 + 1, b1 + 1
    return change


def _changed_spans(segments: Iterable[Segment]) -> list[Span]:
    spans, at = [], 0
    for segment in segments:
        if segment.changed:
            spans.append((at, at + len(segment.text)))
        at += len(segment.text)
    return spans


def _segments(text: str, changed: Iterable[Span]) -> tuple[Segment, ...]:
    """``text`` in segments, alternately common and changed, none empty."""
    found: list[Segment] = []
    at = 0  # what is before it is in a segment
    for start, end in changed:
        if end <= at:
            continue
        if start > at:
            found.append(Segment(text[at:start], False))
        elif found:  # it touches or overlaps the change before
            start = max(start, at) - len(found.pop().text)
        found.append(Segment(text[start:end], True))
        at = end
    if at < len(text):
        found.append(Segment(text[at:], False))
    return tuple(found)
