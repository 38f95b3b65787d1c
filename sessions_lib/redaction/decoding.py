"""A text as somebody reads it who sees through escapes, and where each of its characters stands in the text itself.

Undone are the escapes of JSON and of programs (``\\n``, ``\\"``, ``\\u0041``, ``\\x41``, a line that goes on), those of
addresses (``%3D``) and of HTML (``&quot;``), terminal colours (as they are or written out: ``\\u001b[31m``), and signs
without width. What was escaped twice is undone twice.

Does not judge what it finds: a path such as ``C:\\new`` is read as a line break, too. So a text is searched as it is
*and* decoded.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator

_DEPTH = 4  # JSON in JSON in JSON, in a log
_COLOUR = (
    r"(?:\x1b|\\x1[bB]|\\u001[bB]|\\033|\\e|␛)"
    r"(?:\[[0-?]{0,20}[ -/]{0,4}[@-~]|\][^\x07\x1b\r\n]{0,200}(?:\x07|\x1b\\))|\x1b[@-_]"
)
_WITHOUT_WIDTH = r"[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"
_ESCAPE = re.compile(
    rf"(?P<nothing>{_COLOUR}|{_WITHOUT_WIDTH})|(?P<blank>\\\r?\n[ \t]{{0,80}})"
    r"|\\(?P<escaped>[nrtbf\"'`/\\$])|\\u(?P<unicode>[0-9A-Fa-f]{4})|\\x(?P<byte>[0-7][0-9A-Fa-f])"
    r"|%(?P<percent>0[9AaDd]|[2-7][0-9A-Fa-f])|&(?P<entity>quot|amp|apos|lt|gt|#\d{2,3}|#[xX][0-9A-Fa-f]{2});"
)
_ENTITIES = {"quot": '"', "amp": "&", "apos": "'", "lt": "<", "gt": ">"}
_SAID = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
Place = tuple[int, int]


class Reading:
    """A ``text`` somebody reads; ``source`` says where a place of it stands in the text that it was read from."""

    def __init__(self, text: str, source: Reading | None = None) -> None:
        """A text as it is; with ``source``, one that ``then`` decodes from it."""
        self.text, self._source = text, source
        self._here: list[int] = [0]  # in this text, and …
        self._there: list[int] = [0]  # … in the source: the same places, where an escape begins or ends

    def source(self, place: Place) -> Place:
        """Where in the original ``place`` stands, with the escapes at its ends whole."""
        if self._source is None:
            return place
        start, stop = place
        first = bisect_right(self._here, start) - 1
        last = bisect_left(self._here, stop)
        if last == len(self._here) or self._here[last] != stop:
            last -= 1
        begin = self._there[first] + start - self._here[first]
        return self._source.source((begin, self._there[last] + stop - self._here[last]))

    def then(self) -> Reading | None:
        """What it says with one layer of escapes undone; ``None`` if there is nothing to undo."""
        if self.text.isascii() and not any(map(self.text.__contains__, "\\%&\x1b")):
            return None
        pieces: list[str] = []
        decoded = Reading("", self)
        end = length = 0
        for match in _ESCAPE.finditer(self.text):
            said = _UNDONE[match.lastgroup or ""](match)
            pieces += [self.text[end : match.start()], said]
            length += match.start() - end
            end = match.end()
            decoded._here += [length, length + len(said)]
            decoded._there += [match.start(), end]
            length += len(said)
        if not end:
            return None
        decoded.text = "".join([*pieces, self.text[end:]])
        return decoded


def readings(text: str) -> Iterator[Reading]:
    """``text`` as it is, then decoded once, twice … as long as there is something to undo."""
    reading: Reading | None = Reading(text)
    for _ in range(_DEPTH):
        if reading is None:
            return
        yield reading
        reading = reading.then()


def _of_number(written: str) -> str:
    """The character of ``#61`` or ``#x3D``."""
    return chr(int(written[1:], 16) if written[0] in "xX" else int(written))


_UNDONE: dict[str, Callable[[re.Match[str]], str]] = {
    "nothing": lambda match: "",
    "blank": lambda match: " ",
    "escaped": lambda match: _SAID.get(match["escaped"], match["escaped"]),
    "unicode": lambda match: chr(int(match["unicode"], 16)),
    "byte": lambda match: chr(int(match["byte"], 16)),
    "percent": lambda match: chr(int(match["percent"], 16)),
    "entity": lambda match: _ENTITIES.get(match["entity"]) or _of_number(match["entity"][1:]),
}
