"""A text without its secrets: where they stand, by all rules and in every reading, and what is put in their place.

Nearly all texts hold none, and most are short: before a pattern is tried, one of its hints must be in the text, and for
the long table of tokens in its long words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from sessions_lib.errors import SessionError
from sessions_lib.redaction import assignments, decoding, private_keys, shapes, tokens

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Rule:
    """What is ``kind``, and what is put in its place; ``places`` finds it in a text (as it is, and in lower case).

    One of ``hints`` and the ``gate``, in lower case, are in every text where it is found; of one ``in_words`` the hints
    are in long words, as they are written. Those of a caller have none and are always tried. One that ``gives_way`` is
    not found where another is: ``x:secret@host`` is no address.
    """

    kind: str
    replacement: str
    places: Callable[[str, str], Iterable[Place]]
    hints: tuple[str, ...] = ()
    gate: str = ""
    in_words: bool = False
    gives_way: bool = False


@dataclass(frozen=True, slots=True)
class Match:
    """One secret in a text: from ``start`` to ``stop``, replaced by ``replacement``."""

    start: int
    stop: int
    kind: str
    replacement: str


@cache
def rules() -> tuple[Rule, ...]:
    """Every rule, the surest first: where two find the same, it has the name of the first."""
    blocks, bare = (lambda text, _: private_keys.places(text)), (lambda text, _: private_keys.bare(text))
    made = [Rule("private key", "[private key]", blocks, private_keys.HINTS)]
    made.append(Rule("private key", "[private key]", bare, private_keys.BARE_HINTS, in_words=True))
    made += [_of_token(*row) for row in tokens.compiled()]
    made += [_of_pattern(*row) for row in shapes.compiled()]
    addresses = lambda text, _: shapes.e_mail_addresses(text)  # noqa: E731 - a rule takes both, this needs one
    made.append(Rule(shapes.E_MAIL, f"[{shapes.E_MAIL}]", addresses, ("@",), gives_way=True))
    made.append(_of_pattern("API key", tokens.cut(), ("…",)))
    made.append(Rule("secret", "[secret]", assignments.places, assignments.HINTS))
    return tuple(made)


def _of_token(kind: str, pattern: re.Pattern[str], begins: tuple[str, ...]) -> Rule:
    hints = tokens.hints(begins)
    return Rule(kind, f"[{kind}]", lambda text, _: tokens.places(text, pattern, begins), hints, in_words=True)


def _of_pattern(kind: str, pattern: re.Pattern[str], hints: tuple[str, ...] = (), gate: str = "") -> Rule:
    groups: list[str | int] = [name for name in pattern.groupindex if name.startswith("secret")] or [0]

    def places(text: str, lowered: str) -> Iterator[Place]:
        for match in pattern.finditer(text):
            for group in groups:
                if match.group(group):
                    yield match.span(group)

    replacement = shapes.REPLACEMENTS.get(kind, f"[{kind}]")
    return Rule(kind, replacement, places, hints, gate)


@cache
def own_rules(patterns: tuple[str, ...]) -> tuple[Rule, ...]:
    """``patterns`` (Python regular expressions) as rules; ``SessionError`` names one that is not usable."""
    made = []
    for pattern in patterns:
        try:
            compiled = re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise SessionError(
                f"{pattern[:60]!r} is not a regular expression: {error}. Correct the pattern."
            ) from error
        if compiled.match("") is not None:
            raise SessionError(f"{pattern[:60]!r} matches an empty text, so it would match everywhere. Narrow it.")
        made.append(replace(_of_pattern("your pattern", compiled), replacement="[redacted]"))
    return tuple(made)


def matches(text: str, patterns: Sequence[str] = ()) -> list[Match]:
    """The secrets of ``text``, from left to right, without overlaps; ``patterns`` find more."""
    if not patterns and (len(text) < _SHORTEST or (len(text) < tokens.SHORTEST and text.isidentifier())):
        return []  # nearly all texts by number are keys and names
    own = own_rules(tuple(patterns))
    wanted = (*own, *rules())
    found: list[tuple[int, int, int]] = []
    for reading in decoding.readings(text):
        lowered = reading.text.lower()
        for rank in [*range(len(own)), *(len(own) + rank for rank in _hinted(reading.text, lowered))]:
            places = wanted[rank].places(reading.text, lowered)
            found += [(*reading.source(place), rank) for place in places]
    if not found:
        return []
    apart = _apart(found, wanted)
    return [Match(start, stop, wanted[rank].kind, wanted[rank].replacement) for start, stop, rank in apart]


def _hinted(text: str, lowered: str) -> list[int]:
    """The ranks of the rules that have a hint in a text."""
    gates, in_words = _hints()
    ranks = [rank for gate, hints in gates if gate in lowered for hint, rank in hints if hint in lowered]
    if words := _long_words(text):
        ranks += [rank for hint, rank in in_words if hint in words]
    return sorted(set(ranks))


Hints = list[tuple[str, int]]  # each with the rank of its rule


@cache
def _hints() -> tuple[list[tuple[str, Hints]], Hints]:
    """The hints of any text behind their gates, and those of long words."""
    gates: dict[str, Hints] = {}
    words: Hints = []
    for rank, rule in enumerate(rules()):
        (words if rule.in_words else gates.setdefault(rule.gate, [])).extend((hint, rank) for hint in rule.hints)
    return list(gates.items()), words


_SHORTEST = 4
_LONG = 20  # a shorter token has a digit
_DIGIT = re.compile(rb"[0-9]")
_BREAKS = bytes(code if chr(code).isalnum() or chr(code) in "_.-~+/=%" else 32 for code in range(128)) + b"_" * 128


def _long_words(text: str) -> str:
    """The words of ``text`` that are long enough to be tokens, each once: a prose text has none."""
    if len(text) < tokens.SHORTEST:
        return ""
    split = text.encode("utf-8", "replace").translate(_BREAKS).split()
    words = {word for word in split if len(word) >= tokens.SHORTEST}
    return b" ".join([word for word in words if len(word) >= _LONG or _DIGIT.search(word)]).decode("latin-1")


def _apart(found: list[tuple[int, int, int]], wanted: Sequence[Rule]) -> list[tuple[int, int, int]]:
    """``found`` in order, without overlaps: matches that overlap are one, named by the earlier rule."""
    merged: list[tuple[int, int, int]] = []
    for start, stop, rank in sorted(found):
        if not merged or start >= merged[-1][1]:
            merged.append((start, stop, rank))
            continue
        first, end, earlier = merged[-1]
        if wanted[earlier].gives_way and not wanted[rank].gives_way:
            merged[-1] = (start, stop, rank)
        elif not wanted[rank].gives_way:
            merged[-1] = (first, max(end, stop), min(earlier, rank))
    return merged


def redact_text(text: str, patterns: Sequence[str] = ()) -> str:
    """``text`` with everything found replaced.

    >>> redact_text("mail ana@example.org about /home/ana/tide.py")
    'mail [e-mail address] about ~/tide.py'
    """
    return replaced(text, matches(text, patterns))


def replaced(text: str, found: Sequence[Match]) -> str:
    """``text`` with the replacements of ``found``."""
    if not found:
        return text
    pieces, end = [], 0
    for match in found:
        pieces += [text[end : match.start], match.replacement]
        end = match.stop
    return "".join([*pieces, text[end:]])
