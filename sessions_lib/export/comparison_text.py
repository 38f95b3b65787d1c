"""One text of a comparison as HTML takes it: in pieces, each with what it is, cut where the page has no room for it.

Does not escape: the template does, but for answers that are drawn.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from markupsafe import Markup

from sessions_lib.compare.word_diff_marks import Marked
from sessions_lib.export import html
from sessions_lib.text import visible

View = Literal["aligned", "differences", "changes"]

MOST_CHARACTERS = 12_000  # of one text on the page
_KEEP = 60  # characters of common text beside a change, where the rest is left out


class Look(NamedTuple):
    """How a comparison is shown: which ``view``, texts as typed or ``drawn``, the first ``rows`` of it (all: ``None``).

    ``on_page``: with what a person can do, long texts cut. ``opened``: the shared start is. ``here`` is the row that
    is looked at.
    """

    view: View = "differences"
    drawn: bool = False
    rows: int | None = None
    on_page: bool = False
    opened: bool = True
    here: int | None = None


IN_A_FILE = Look()


def drawn(said: str, look: Look) -> list[tuple[Any, str]]:
    return [(Markup(html.answer(_cut(said, look))), "")]


def pieces(said: str, words: Marked | None, look: Look) -> list[tuple[Any, str]]:
    """A text in pieces with what each is: ``""``, ``mark`` for changed, ``left-out`` for what we say of the rest."""
    if words is None or not is_marked(words, look):
        return [(visible(_cut(said, look)), "")]
    pieces: list[tuple[Any, str]] = []
    spent, most = 0, MOST_CHARACTERS if look.on_page else len(said)
    stretches = words.segments
    for number, segment in enumerate(stretches):
        shown = segment.text[: most - spent]
        spent += len(segment.text)
        if look.view == "changes" and not segment.changed:
            pieces += _without_middle(shown, is_first=number == 0, is_last=number == len(stretches) - 1)
        elif shown:
            pieces.append((visible(shown), "mark" if segment.changed else ""))
        if spent > most:
            pieces.append(("…", "left-out"))
            break
    return pieces


def is_marked(words: Marked | None, look: Look) -> bool:
    return words is not None and look.view != "aligned" and words.is_changed


def _without_middle(said: str, *, is_first: bool, is_last: bool) -> list[tuple[Any, str]]:
    """Common text shortened to what stands beside a change."""
    if len(said) <= _KEEP * 3:
        return [(visible(said), "")]
    before = "" if is_first else said[:_KEEP].rsplit(" ", 1)[0]
    behind = "" if is_last else said[-_KEEP:].split(" ", 1)[-1]
    left_out = len(said[len(before) : len(said) - len(behind)].split())
    return [(visible(before), ""), (f" … {left_out} words the same … ", "left-out"), (visible(behind), "")]


def _cut(said: str, look: Look) -> str:
    return said if not look.on_page or len(said) <= MOST_CHARACTERS else said[:MOST_CHARACTERS] + "…"
