r"""May a file hold what is looked for? Decided on its bytes, much faster than by decoding it.

Of each word or phrase the longest run of plain ASCII is looked for (the anchor). What a search takes for the same
letter stands in a file in several ways: as another case, with an accent, as ``\u00e9``. So the few characters of the
file that fold to one of the anchors' letters are found. Where one of them stands between the right neighbours, all are
replaced by what they fold to, and the anchors are looked for again.

Answers "no" only where no message can match; "yes" means that the file has to be read.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from sessions_lib import query
from sessions_lib.errors import SessionError
from sessions_lib.store.folder import disk

_PLAIN = re.compile(r"[!#-.0-\[\]-~]+")  # ASCII that JSON never escapes by itself: no quote, slash, backslash
_ASCII = bytes(range(128))
_FAR = re.compile("[\U00010000-\U0010ffff]")
_LAST_FOLDED = 0x1FBFF  # no character behind it folds to ASCII or to nothing


def anchors(needles: Iterable[str]) -> list[bytes]:
    """The longest run of plain ASCII of each of the folded ``needles`` that has any."""
    longest = (max(_PLAIN.findall(needle), key=len, default="") for needle in needles)
    return [anchor.encode() for anchor in longest if anchor]


def may_hold(path: Path, wanted: Sequence[bytes]) -> bool:
    """False only if no message of the file can hold all of the anchors ``wanted``."""
    if not wanted:
        return True
    try:
        descriptor = disk.open_to_read(path)
    except (OSError, SessionError):
        return False
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        data = file.read().lower()
    if all(anchor in data for anchor in wanted):
        return True
    letters = "".join(sorted(set(b"".join(wanted).decode())))
    others = dict(_spellings(data, letters))
    if not others:
        return False
    for spelled in [spelled for spelled, folded in others.items() if not folded]:
        data = data.replace(spelled, b"")  # an accent of its own may stand between any two letters
        del others[spelled]
    if not all(anchor in data or _may_stand(anchor.decode(), others, data) for anchor in wanted):
        return False
    for spelled, folded in others.items():
        data = data.replace(spelled, folded.encode())
    return all(anchor in data for anchor in wanted)


def _may_stand(anchor: str, others: Mapping[bytes, str], data: bytes) -> bool:
    """False only if ``anchor`` stands nowhere in ``data`` with one of its letters as one of ``others``."""
    if not all(len(folded) == 1 for folded in others.values()):
        return True  # a ligature is several letters
    respelled = set(others.values())
    plain = [b"" if letter in respelled else letter.encode() for letter in ("", *anchor, "")]
    return any(
        plain[place] + spelled + plain[place + 2] in data
        for spelled, folded in others.items()
        for place, letter in enumerate(anchor)
        if letter == folded
    )


def _spellings(data: bytes, letters: str) -> Iterator[tuple[bytes, str]]:
    """The characters of ``data`` that fold to any of ``letters`` or to nothing: as spelled, and as folded."""
    chars = _folding_to(letters)
    for code in set(chars.escaped.findall(data)):
        folded = _unescaped(code)
        if not folded or not set(letters).isdisjoint(folded):
            yield b"\\u" + code, folded
    if not data.isascii():
        rest = data.translate(None, _ASCII).decode("utf-8", "replace")
        for char in chars.far.intersection(_FAR.findall(rest)):
            yield char.encode(), foldings()[char]
        while found := chars.near.search(rest):
            yield found[0].encode(), foldings()[found[0]]
            rest = rest.replace(found[0], "")


class _Chars(NamedTuple):
    """Some characters beyond ASCII: those of 16 bits, the others, and escapes of lower case that may stand for them.

    Apart, since a class of characters is fast only as long as all of them have 16 bits.
    """

    near: re.Pattern[str]
    far: set[str]
    escaped: re.Pattern[bytes]


@lru_cache(16)
def _folding_to(letters: str) -> _Chars:
    """The characters that fold to one of ``letters`` or to nothing."""
    chars = {char for char, folded in foldings().items() if not folded or not set(letters).isdisjoint(folded)}
    far = set(_FAR.findall("".join(chars)))
    units = ["00??", *(f"{ord(char) >> 8:02x}??" for char in chars - far)]
    units += [f"{(ord(char) - 0x10000 >> 10) + 0xD800:x}\\ud???" for char in far]
    return _Chars(re.compile(f"[{re.escape(''.join(sorted(chars - far)))}]"), far, _any_of(units))


def _any_of(units: Iterable[str]) -> re.Pattern[bytes]:
    r"""``\u`` and any of ``units``, in which a ``?`` is any hexadecimal digit; grouped by their first digit."""
    groups = [
        f"{first}(?:{'|'.join(re.escape(unit[1:]) for unit in sorted(group))})"
        for first, group in groupby(sorted(set(units)), key=itemgetter(0))
    ]
    return re.compile(rf"\\u({'|'.join(groups)})".replace(r"\?", "[0-9a-f]").encode())


@cache
def foldings() -> dict[str, str]:
    """Every character beyond ASCII that a search takes for ASCII or for nothing, and what it takes it for."""
    changing = (
        char
        for char in map(chr, range(0x80, _LAST_FOLDED + 1))
        if unicodedata.decomposition(char) or unicodedata.combining(char) or char.casefold() != char or char <= "\xff"
    )
    found = {char: query.fold(char) for char in (*changing, *map(chr, range(0xFE00, 0xFE10)))}
    return {char: folded for char, folded in found.items() if any(map(str.isascii, folded)) or not folded}


@lru_cache(100_000)
def _unescaped(code: bytes) -> str:
    units = [int(unit, 16) for unit in code.split(b"\\u")]
    if len(units) == 2:
        return query.fold(chr(0x10000 + ((units[0] - 0xD800) << 10) + units[1] - 0xDC00))
    return "\ufffd" if 0xD800 <= units[0] < 0xE000 else query.fold(chr(units[0]))
