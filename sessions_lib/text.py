"""How a text, a number, a time span, a place and a name are written for people: the one way, on every page, in every
export.

``visible`` makes a stored text harmless to show. An unknown number is written ``unknown``, never 0.

Does not know what a message is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from sessions_lib import names
from sessions_lib.unseen import escaped as escaped
from sessions_lib.unseen import visible as visible

UNKNOWN = "unknown"
_MS = 1
_NAME = 50  # characters of a name before its mark, so that lists still show the mark
_STEPS_MS = (1000, 100, 10)  # what a time span may be rounded to, the coarsest first
_MARK = re.compile(
    r" · (?:(?:after|inside) turn \d+|from the start"
    r"|from message \d+|rerun of turn \d+(?: · [^·]+)?|merged(?: with .+)?)"
    r"(?: \(\d+\))?\Z",
    re.DOTALL,
)


# --- numbers ---------------------------------------------------------------------------------------------------------


def number(value: float | None, *, is_partial: bool = False) -> str:
    """``1,204``; ``≥ 1,204`` for a sum of which not all parts are known; ``unknown``."""
    return UNKNOWN if value is None else f"{'≥ ' * is_partial}{value:,}"


def noun(value: int, one: str, many: str = "") -> str:
    """``one`` or its plural, as ``value`` asks for: ``message``, ``messages``, ``entries``."""
    return one if value == 1 else many or one + "s"


def count(value: int, one: str, many: str = "") -> str:
    """``1 message``, ``1,204 messages``, ``2 entries`` (``many`` where it is not ``one`` with an s).

    >>> count(2, "entry", "entries")
    '2 entries'
    """
    return f"{value:,} {noun(value, one, many)}"


def tokens(own: int | None, inherited: int | None = 0, *, is_partial: bool = False) -> str:
    """A session's tokens, in and out: ``1,388 tokens``, or ``1,388 own and 529 inherited tokens``.

    ``inherited`` are those of the messages copied from the parent, beside the ``own`` ones and never part of them; 0
    for a session that copied none. ``is_partial``: not all answers reported their own.
    """
    own_text = number(own, is_partial=is_partial)
    if inherited:
        return f"{own_text} own and {number(inherited)} inherited tokens"
    if own is None:
        return "tokens unknown"
    said = f"{own_text} {noun(own, 'token')}"
    return said if inherited == 0 else f"{said} of its own, inherited ones unknown"


def money(dollars: float | None, *, is_partial: bool = False) -> str:
    """``$1,204.50``, ``$0.10``, ``$0.014``, ``$0.0042``, ``$0`` for nothing; ``unknown``.

    ``is_partial``: ``≥ $1.10`` for a sum of which not all parts are known. From a dollar on to the cent; of less, so
    many places that two figures are left.
    """
    if dollars is None:
        return UNKNOWN
    small = 1 - math.floor(math.log10(dollars)) if dollars else 0
    places = 2 if dollars >= 0.995 else 3 if dollars >= 0.0095 else small
    written = f"{dollars:,.{places}f}"
    if places > 2:
        whole, _, parts = written.partition(".")
        written = f"{whole}.{parts.rstrip('0').ljust(2, '0')}"
    return f"{'≥ ' * is_partial}${written}"


def spent(cost: float | None, unpriced: int, unmetered: int, *, is_partial: bool = False) -> str:
    """What something cost in a word or two: ``$1.10``; ``≥ $1.10`` where some tokens have no price or some answers
    reported none (``is_partial``); ``unpriced``, ``unmetered`` (a local server, the demo), ``unknown``.

    ``unpriced`` and ``unmetered`` are tokens, as in ``prices.Spent``.
    """
    if cost is not None:
        return money(cost, is_partial=is_partial or unpriced > 0)
    return "unpriced" if unpriced else "unmetered" if unmetered else UNKNOWN


def listed(items: Sequence[str]) -> str:
    """``A``, ``A and B``, ``A, B and C``."""
    return " and ".join(filter(None, [", ".join(items[:-1]), *items[-1:]]))


# --- time spans ------------------------------------------------------------------------------------------------------


def duration(milliseconds: float | None, step_ms: int | None = None) -> str:
    """``412 ms``, ``1.2 s``, ``2 min 5 s``, ``1 h 0 min 5 s``; ``unknown`` for ``None``.

    Below a second always in milliseconds. ``step_ms`` is what longer ones are rounded to: see ``shared_step``.

    >>> duration(1_249), duration(1_249, 10), duration(59_960)
    ('1.2 s', '1.25 s', '1 min 0 s')
    """
    if milliseconds is None:
        return UNKNOWN
    shown = shown_ms(milliseconds, step_ms)
    if shown < 1000:
        return f"{shown} ms"
    step = _step_of(milliseconds, step_ms)
    decimals = {1: 3, 10: 2, 100: 1}.get(step, 0)
    seconds, minutes, hours = shown % 60_000 / 1000, shown // 60_000 % 60, shown // 3_600_000
    parts = [f"{hours:,} h"] if hours else []
    parts += [f"{minutes} min"] if minutes or hours else []
    return " ".join([*parts, f"{seconds:.{decimals}f} s"])


def shown_ms(milliseconds: float, step_ms: int | None = None) -> int:
    """The milliseconds that ``duration`` writes: rounded half up to its step."""
    step = _step_of(milliseconds, step_ms)
    return int((milliseconds + step / 2) // step) * step


def _step_of(milliseconds: float, step_ms: int | None) -> int:
    whole = int(milliseconds + 0.5)
    if whole < 1000:
        return _MS
    return step_ms or (100 if whole < 59_950 else 1000)


def shared_step(base: int | None, others: Iterable[int | None]) -> int | None:
    """The ``step_ms`` with which ``base``, ``others`` and their differences to it agree as they are written.

    Each difference is of the milliseconds, not of what is shown: 740 ms, 1.17 s and +430 ms, not 0.7 s, 1.2 s and
    +0.4 s. ``None`` where what ``duration`` writes by itself agrees.
    """
    known = [other for other in others if other is not None]
    if base is None or not known:
        return None
    return next((step for step in (None, *_STEPS_MS) if _agrees(base, known, step)), _MS)


def _agrees(base: int, others: Sequence[int], step: int | None) -> bool:
    return all(
        abs(shown_ms(other, step) - shown_ms(base, step)) == shown_ms(abs(other - base), step) for other in others
    )


def signed(difference: int, written: str) -> str:
    """``written``, the size of ``difference``, with its sign: ``+35``, ``−2``; ``=`` for none."""
    return "=" if difference == 0 else ("+" if difference > 0 else "−") + written


# --- places and names ------------------------------------------------------------------------------------------------


def place(turn: int, *, is_inside: bool) -> str:
    """Where something stands in a session: ``after turn 3``, ``inside turn 3``, ``before turn 1``.

    >>> place(0, is_inside=False)
    'before turn 1'
    """
    if turn < 1:
        return "before turn 1"
    return f"{'inside' if is_inside else 'after'} turn {turn}"


def display_title(given: str | None, prompt: str, session: str) -> str:
    """What a session is called: the title it was given, else one made of its first prompt, else its id."""
    return (given or "").strip() or names.title_from(prompt) or session


def unmarked(title: str, mark_at: object = None) -> str:
    """``title`` without the mark that a fork or a merge gave it: made titles are made of it, so they never grow.

    ``mark_at`` is where the mark begins, if its words do not tell that it is one.

    >>> unmarked("Refactor auth · after turn 2 (3)"), unmarked("Refactor auth · a small model", 13)
    ('Refactor auth', 'Refactor auth')
    """
    if isinstance(mark_at, int) and mark_at > 0 and title[mark_at:].startswith(" · "):
        title = title[:mark_at]
    while (bare := _MARK.sub("", title)) != title:
        title = bare
    return title


def fork_title(title: str, where: str) -> str:
    """The title of a fork of a session called ``title``: its name and one mark, ``Refactor auth · after turn 2``."""
    return marked_title(unmarked(title), "from the start" if where == place(0, is_inside=False) else where)


def marked_title(name: str, mark: str) -> str:
    """A ``name`` on one line and behind it ``mark``: what a branch does otherwise than the session called so."""
    return f"{names.one_line(name, _NAME) or 'Session'} · {mark}"


def merge_title(first: str, second: str) -> str:
    """The title of two sessions merged: ``Refactor auth · merged with Cave of Echoes``.

    Two branches of one session are ``Refactor auth · merged``.
    """
    mine, theirs = (names.one_line(unmarked(title), _NAME) or "Session" for title in (first, second))
    return marked_title(mine, "merged" if mine == theirs else f"merged with {theirs}")
