r"""May a file hold what is looked for? Decided on its bytes, much faster than by decoding it.

Of each word or phrase the longest run of plain ASCII is looked for (the anchor). What a search takes for the same
letter stands in a file in several ways: as another case, with an accent, as ``\u00e9``. So the few characters of the
file that fold to one of the anchors' are replaced by what they fold to, and then the anchors are looked for again.

Answers "no" only where no message can match; "yes" means that the file has to be read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from sessions_lib import disk, query
from sessions_lib.errors import SessionError

_PLAIN = re.compile(r"[!#-.0-\[\]-~]+")  # ASCII that JSON never escapes by itself: no quote, slash, backslash
_ASCII = bytes(range(128))
_ESCAPE = re.compile(rb"\\u(d[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|[0-9a-f]{4})")


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
    letters = frozenset(b"".join(wanted).decode())
    others: dict[bytes, str] = {}
    for spelled, folded in _spellings(data):
        if not folded:
            data = data.replace(spelled, b"")  # an accent of its own may stand between any two letters
        elif not letters.isdisjoint(folded):
            others[spelled] = folded
    # Between the letters that this file spells otherwise, an anchor stands as it is.
    respelled = letters.intersection("".join(others.values()))
    pieces = re.compile(f"[^{re.escape(''.join(respelled))}]+" if respelled else ".+")
    if not all(piece.encode() in data for anchor in wanted for piece in pieces.findall(anchor.decode())):
        return False
    for spelled, folded in others.items():
        data = data.replace(spelled, folded.encode())
    return all(anchor in data for anchor in wanted)


def _spellings(data: bytes) -> Iterator[tuple[bytes, str]]:
    """Each character of ``data`` beyond ASCII, and each escaped one, as it is spelled and as it is folded."""
    if b"\\u" in data:
        for code in set(_ESCAPE.findall(data)):
            yield b"\\u" + code, _unescaped(code)
    if not data.isascii():
        for char in set(data.translate(None, _ASCII).decode("utf-8", "replace")):
            yield char.encode(), _folded(char)


@lru_cache(100_000)
def _folded(char: str) -> str:
    return query.fold(char)


@lru_cache(100_000)
def _unescaped(code: bytes) -> str:
    units = [int(unit, 16) for unit in code.split(b"\\u")]
    if len(units) == 2:
        return query.fold(chr(0x10000 + ((units[0] - 0xD800) << 10) + units[1] - 0xDC00))
    return "\ufffd" if 0xD800 <= units[0] < 0xE000 else query.fold(chr(units[0]))
