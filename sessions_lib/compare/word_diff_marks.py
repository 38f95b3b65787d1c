"""Changed words → the characters to mark on both sides: whole words, and the signs around them that differ.

Does not decide which words changed: that is ``word_diff``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import cycle, pairwise
from typing import NamedTuple, overload

from sessions_lib.compare.word_diff_words import Words

Change = tuple[int, int, int, int]  # words from, to in a; from, to in b
Span = tuple[int, int]  # a half-open range of characters


class Segment(NamedTuple):
    """A stretch of one text: ``changed`` if the other text does not have it."""

    text: str
    changed: bool


_segment = partial(tuple.__new__, Segment)  # from a pair, in half the time of Segment(…)


class Marked(Sequence[Segment]):
    """A text and the places where its changed stretches begin and end: a sequence of segments, cut when asked for.

    They are alternately common and changed, none is empty, and joined they are the text.
    """

    __slots__ = ("_bounds", "text")

    def __init__(self, text: str, bounds: Sequence[int] = (0, 0)) -> None:
        """``text`` with changed stretches: 0, 0, and the places where each begins and ends, in order."""
        self.text = text
        self._bounds = bounds

    @classmethod
    def at(cls, text: str, changed: Iterable[Span]) -> Marked:
        """``text`` with the stretches ``changed``, which come in order and may touch or overlap."""
        bounds = [0, 0]
        for start, end in changed:
            _mark(bounds, start, end)
        return cls(text, bounds)

    @property
    def is_changed(self) -> bool:
        """True if any of it is marked."""
        return any(self._bounds)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The text cut at those places."""
        texts = [self.text[start:end] for start, end in pairwise([*self._bounds, len(self.text)])]
        stretches = zip(texts, cycle((True, False)), strict=False)
        return tuple([_segment(stretch) for stretch in stretches if stretch[0]])

    def __iter__(self) -> Iterator[Segment]:
        return iter(self.segments)

    def __len__(self) -> int:
        return len(self.segments)

    def __bool__(self) -> bool:
        return bool(self.text)

    @overload
    def __getitem__(self, at: int) -> Segment: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Segment, ...]: ...
    def __getitem__(self, at: int | slice) -> Segment | tuple[Segment, ...]:
        return self.segments[at]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self.segments == tuple(other)

    def __hash__(self) -> int:
        return hash(self.segments)

    def __repr__(self) -> str:
        return repr(self.segments)


def _mark(bounds: list[int], start: int, end: int) -> None:
    """Add a changed stretch to ``bounds``, which begin with 0, 0; those that touch or overlap become one."""
    if end <= start or end <= bounds[-1]:
        return
    if start > bounds[-1]:
        bounds += (start, end)
    else:
        bounds[-1] = end


def both(changes: Sequence[Change], left: Words, right: Words) -> tuple[Marked, Marked]:
    """Both texts, marked.

    Before every word that both have, and before each change, signs that differ are marked too.
    """
    marked_a, marked_b = [0, 0], [0, 0]
    text_a, text_b, ends_a, ends_b = left.text, right.text, left.ends, right.ends
    words_a, words_b = left.words, right.words
    at_a = at_b = 0
    is_told = False  # True if the signs before the words at_a and at_b are dealt with
    for a0, a1, b0, b1 in changes:
        end_a, end_b = ends_a[a0], ends_b[b0]
        if a0 > at_a:
            from_a, from_b = (left.start(at_a), right.start(at_b)) if is_told else (ends_a[at_a], ends_b[at_b])
            if text_a[from_a:end_a] != text_b[from_b:end_b]:
                _mark_signs(left, marked_a, range(at_a + is_told, a0), right, marked_b, at_b - at_a)
        is_told = False
        if a1 > a0 and b1 > b0:
            start_a, start_b = ends_a[a0 + 1] - len(words_a[a0]), ends_b[b0 + 1] - len(words_b[b0])
            if text_a[end_a:start_a] != text_b[end_b:start_b]:
                _mark_signs(left, marked_a, range(a0, a0 + 1), right, marked_b, b0 - a0)
            if start_a > marked_a[-1] and start_b > marked_b[-1]:  # mostly: two calls less
                marked_a += (start_a, ends_a[a1])
                marked_b += (start_b, ends_b[b1])
            else:
                _mark(marked_a, start_a, ends_a[a1])
                _mark(marked_b, start_b, ends_b[b1])
        elif a1 > a0:
            is_told = _mark_alone(left, marked_a, a0, a1, right.before(b0))
        else:
            is_told = _mark_alone(right, marked_b, b0, b1, left.before(a0))
        at_a, at_b = a1, b1
    from_a, from_b = (left.start(at_a), right.start(at_b)) if is_told else (ends_a[at_a], ends_b[at_b])
    if text_a[from_a:] != text_b[from_b:]:
        _mark_signs(left, marked_a, range(at_a + is_told, len(words_a) + 1), right, marked_b, at_b - at_a)
    return Marked(text_a, marked_a), Marked(text_b, marked_b)


def _mark_alone(words: Words, marked: list[int], first: int, last: int, other: str) -> bool:
    """Mark words that one side has alone, and with them the signs on the one end that ``other`` has not.

    True if it is the end: then the signs before the next common word need no look.
    """
    before = words.before(first)
    if before == other or before.split() == other.split():
        _mark(marked, words.start(first), words.ends[last] + len(words.before(last).rstrip()))
        return True
    _mark(marked, words.start(first) - len(before.lstrip()), words.ends[last])
    return False


def _mark_signs(
    left: Words, marked_a: list[int], numbers: Iterable[int], right: Words, marked_b: list[int], shift: int
) -> None:
    """Mark the signs before words of both, word ``n`` and word ``n + shift``, that differ in more than white space."""
    text_a, text_b, ends_a, ends_b = left.text, right.text, left.ends, right.ends
    for number in numbers:
        other = number + shift
        if text_a[ends_a[number] : ends_a[number + 1]] == text_b[ends_b[other] : ends_b[other + 1]]:
            continue  # the signs and the word
        before, theirs = left.before(number), right.before(other)
        if before.split() != theirs.split():
            _mark(marked_a, *_trimmed(ends_a[number], before))
            _mark(marked_b, *_trimmed(ends_b[other], theirs))


def _trimmed(start: int, text: str) -> Span:
    """Where ``text``, which begins at ``start``, stands without the white space around it."""
    inner = text.strip()
    at = start + text.find(inner)
    return at, at + len(inner)


def changed_spans(segments: Iterable[Segment]) -> list[Span]:
    """Where the changed segments of a text stand in it."""
    spans, at = [], 0
    for segment in segments:
        if segment.changed:
            spans.append((at, at + len(segment.text)))
        at += len(segment.text)
    return spans
