"""The query language: what a person types → one ``Query``, and whether a message answers it.

One meaning for the library, the command line and the pages:

* ``tide table``: **words**, all of them in one message, in any order. A word is found as it is written, also inside
  longer words (``tide`` finds "notes/tide"); punctuation stands for itself. ``word*`` says the same as ``word``.
* ``"tide table"``: a **phrase**, its words next to each other, whatever blank or line break is between them.
* Upper and lower case, accents and Unicode composition do not matter (``STRASSE`` finds "Straße").
* ``role:user``, ``after:2026-03-01`` (that day or later), ``before:2026-03-01`` (earlier than that day),
  ``on:2026-03-01`` are about the **message**. Days are those of the zone given; ``2026-03`` and ``2026`` are a month
  and a year. Several roles: any of them.
* ``tag:python`` ``-tag:draft`` ``untagged:`` ``model:gpt-5`` ``tool:buy`` ``is:fork`` ``-is:fork`` ``has:error``
  ``has:damage`` ``verdict:better`` are about the **session**. A name is a whole name unless it ends in ``*``; names
  with blanks go in quotes: ``tag:"night shift"``. ``cost:>1`` and ``cost:<=0.5`` are dollars that were spent in the
  session itself; where they are not known, it is in neither. Several tags, tools or costs: all of them; several models
  or verdicts: any of them.
* What is no filter is a word: ``http://x``, ``after:lunch``; ``Query.notes`` then says so. A blank query finds nothing.

Words are looked for in what was said, in reasoning, tool names, arguments and results (``content.searchable``), and in
the titles and tags of sessions. Never in JSON keys, roles or base64.

Does not read files.
"""

from __future__ import annotations

import operator
import re
import unicodedata
from calendar import monthrange
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any

from sessions_lib.messages import clean, content

_QUOTES = {'"': '"', "“": "”", "„": "“", "«": "»"}
_FILTER = re.compile(r"(-?[a-z]+):", re.IGNORECASE)
_NAMED = {"tag": "tags", "-tag": "not_tags", "model": "models", "tool": "tools", "role": "roles", "verdict": "verdicts"}
_DAYS = ("after", "before", "on")
_CLAIMS = {
    "is:fork": "is_fork",
    "-is:fork": "not_fork",
    "has:error": "has_error",
    "has:damage": "has_damage",
    "is:untagged": "untagged",
}
COMPARISONS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
_COST = re.compile(r"(>=|<=|>|<)\$?(\d{1,9}(?:\.\d{1,6})?)")
_END = datetime.max.replace(tzinfo=UTC)
_SPACES = re.compile(r"\s+")
# Vowel signs and voicing marks make another letter; what has one of these classes is no accent.
_NOT_ACCENTS = (0, 7, 8, 9)


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked for. ``words``, ``phrases`` and names are folded; ``since`` is included, ``until`` is not.

    ``any_tags`` (one of them is enough) is not typed: the pages set it.
    """

    text: str = ""
    words: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    tags: tuple[str, ...] = ()
    not_tags: tuple[str, ...] = ()
    any_tags: tuple[str, ...] = ()
    untagged: bool = False
    models: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    verdicts: tuple[str, ...] = ()
    cost: tuple[tuple[str, float], ...] = ()
    is_fork: bool = False
    not_fork: bool = False
    has_error: bool = False
    has_damage: bool = False
    notes: tuple[str, ...] = field(default=(), compare=False)

    @property
    def needles(self) -> tuple[str, ...]:
        """The words and phrases."""
        return self.words + self.phrases

    @property
    def asks_about_messages(self) -> bool:
        """True if a message has to pass: words, phrases, roles or days."""
        return bool(self.words or self.phrases or self.roles or self.since or self.until)

    @property
    def asks_about_sessions(self) -> bool:
        """True if the session has to pass: tags, models, tools, verdicts, cost, fork, error, damage."""
        return bool(
            self.tags
            or self.not_tags
            or self.any_tags
            or self.untagged
            or self.models
            or self.tools
            or self.verdicts
            or self.cost
            or self.is_fork
            or self.not_fork
            or self.has_error
            or self.has_damage
        )

    @property
    def is_blank(self) -> bool:
        """True if nothing is asked; a blank query finds nothing."""
        return not (self.asks_about_messages or self.asks_about_sessions)


def parse(text: str, zone: tzinfo | None = None) -> Query:
    """``text`` as a query, its days in ``zone`` (default: this machine's). Never an error.

    >>> parse('Tide "low water" tag:Sea').words, parse('Tide "low water" tag:Sea').phrases
    (('tide',), ('low water',))
    """
    found: dict[str, Any] = {"words": [], "phrases": [], "cost": [], **{name: [] for name in _NAMED.values()}}
    notes: list[str] = []
    for token, key, value, quoted in _tokens(clean(text)):
        if key and _take_filter(found, key, value, zone):
            continue
        if key in (*_NAMED, *_DAYS, "is", "has", "cost"):
            notes.append(f"{token} is no filter that is known, so it is looked for as text.")
        if quoted and not key:
            found["phrases"].append(" ".join(fold(value).split()))
        else:
            found["words"].append(fold(_without_star(token)))
    for name in ("words", "phrases", "cost", *_NAMED.values()):
        found[name] = tuple(dict.fromkeys(filter(None, found[name])))
    return Query(text=text, notes=tuple(notes), **found)


def tokens(text: str) -> list[str]:
    """The words, phrases and filters of ``text`` one by one, as they were typed.

    >>> tokens('tide "low water" tag:sea')
    ['tide', '"low water"', 'tag:sea']
    """
    return [token for token, *_ in _tokens(text)]


def _tokens(text: str) -> Iterator[tuple[str, str, str, bool]]:
    """Each token of ``text`` as (token, filter name or "", value, was it in quotes)."""
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        named = _FILTER.match(text, at)
        start = named.end() if named else at
        closing = _QUOTES.get(text[start : start + 1])
        end = text.find(closing, start + 1) if closing else -1
        quoted = end > 0 and bool(text[start + 1 : end].strip())
        if closing and end < 0 and text[start + 1 :].strip() and not named:
            end, quoted = len(text), True  # a phrase that is still being typed
        if quoted:
            value, stop = text[start + 1 : end], end + 1
        else:
            stop = next((i for i in range(start, len(text)) if text[i].isspace()), len(text))
            value = text[start:stop]
        yield text[at:stop], named[1].lower() if named else "", value, quoted
        at = stop


def _take_filter(found: dict[str, Any], key: str, value: str, zone: tzinfo | None) -> bool:
    """Put a filter into ``found``; False if it is none."""
    if key == "untagged" and not value:
        found["untagged"] = True
        return True
    if (claim := f"{key}:{value.lower()}") in _CLAIMS:
        found[_CLAIMS[claim]] = True
        return True
    if key in _NAMED and value.strip():
        found[_NAMED[key]].append(fold_name(value))
        return True
    if key == "cost" and (bound := _COST.fullmatch(value)):
        found["cost"].append((bound[1], float(bound[2])))
        return True
    days = _period(value, zone) if key in _DAYS else None
    if days is None:
        return False
    since = days[0] if key in ("after", "on") else None
    until = days[0] if key == "before" else days[1] if key == "on" else None
    if since:
        found["since"] = max(filter(None, (found.get("since"), since)))
    if until:
        found["until"] = min(filter(None, (found.get("until"), until)))
    return True


def _period(text: str, zone: tzinfo | None) -> tuple[datetime, datetime] | None:
    """The half-open time of a day, month or year in ``zone``."""
    found = re.fullmatch(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?", text)
    if not found:
        return None
    year, month, day = (int(part) if part else None for part in found.groups())
    try:
        first = date(year or 0, month or 1, day or 1)
    except ValueError:
        return None
    last = first
    if not month:
        last = date(first.year, 12, 31)
    elif not day:
        last = first.replace(day=monthrange(first.year, first.month)[1])
    return midnight(first, zone), day_bounds(last, zone)[1]


def midnight(day: date, zone: tzinfo | None = None) -> datetime:
    """The first moment of ``day`` in ``zone`` (default: this machine's), aware."""
    start = datetime(day.year, day.month, day.day, tzinfo=zone)
    try:
        return start if zone else start.astimezone()
    except (ValueError, OverflowError):  # the calendar's first or last day, seen from another zone
        return start.replace(tzinfo=UTC)


def day_bounds(day: date, zone: tzinfo | None = None) -> tuple[datetime, datetime]:
    """The first moment of ``day`` and of the day after it in ``zone``; for the calendar's last day, its end."""
    return midnight(day, zone), midnight(day + timedelta(days=1), zone) if day < date.max else _END


def _without_star(word: str) -> str:
    return word[:-1] if len(word) > 1 and word.endswith("*") and word[-2].isalnum() else word


def fold(text: str) -> str:
    """``text`` without what a search ignores: case, accents, composition, width.

    >>> fold("Straße, Café, ＡＢＣ")
    'strasse, cafe, abc'
    """
    if text.isascii():
        return text.lower()
    normal = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    for char in set(normal):
        if not char.isascii() and is_accent(char):
            normal = normal.replace(char, "")
    return unicodedata.normalize("NFC", normal)


def is_accent(char: str) -> bool:
    """True for a combining mark that a search ignores, and for variation selectors (emoji with and without colour)."""
    return unicodedata.combining(char) not in _NOT_ACCENTS or "\ufe00" <= char <= "\ufe0f"


def fold_name(name: str) -> str:
    """A tag, model or tool name as names are compared: folded, blanks at the ends and doubled ones gone."""
    return " ".join(fold(name).split())


def name_matches(wanted: str, name: str) -> bool:
    """True if ``name`` is the folded name ``wanted``, or starts with it where ``wanted`` ends in ``*``."""
    given = fold_name(name)
    return given.startswith(wanted[:-1]) if len(wanted) > 1 and wanted.endswith("*") else given == wanted


def match(query: Query, message: Mapping[str, Any], when: datetime | None = None) -> bool:
    """True if ``message``, said at ``when``, passes the part of ``query`` that is about messages."""
    if query.roles and not role_matches(query, message.get("role")):
        return False
    if not time_matches(query, when):
        return False
    return not query.needles or text_matches(query, content.searchable(message))


def role_matches(query: Query, role: object) -> bool:
    """True if ``role`` is one of those asked for, or none is."""
    return not query.roles or any(name_matches(wanted, str(role)) for wanted in query.roles)


def time_matches(query: Query, when: datetime | None) -> bool:
    """True if ``when`` lies in the days asked for; an unknown time lies in none."""
    if query.since is None and query.until is None:
        return True
    if when is None:
        return False
    return (query.since is None or when >= query.since) and (query.until is None or when < query.until)


def text_matches(query: Query, text: str) -> bool:
    """True if ``text`` holds every word and every phrase."""
    folded = fold(text)
    return all(word in folded for word in query.words) and all(_has_phrase(folded, p) for p in query.phrases)


def _has_phrase(folded: str, phrase: str) -> bool:
    if phrase in folded:
        return True
    words = phrase.split(" ")
    # Most texts lack one of the words; the expression is for those that have all.
    return len(words) > 1 and all(word in folded for word in words) and bool(expression(phrase).search(folded))


def expression(needle: str) -> re.Pattern[str]:
    """What finds the folded ``needle`` in a folded text, whatever blanks are between its words."""
    return re.compile(r"\s+".join(re.escape(word) for word in needle.split(" ")))
