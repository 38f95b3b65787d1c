"""Times: whatever a file holds → an aware datetime in UTC, and back; time spans in milliseconds.

ISO 8601 with or without a zone (without = UTC; a leap second, 24:00 and a zone in letters, ``UTC`` or ``GMT``, too), or
the dates of mails; numbers, or strings of digits, are seconds since 1970, from 1e11 on
milliseconds, from 1e14 on microseconds, from 1e17 on nanoseconds. What is none of these is no time, never 1970.

Does not know messages, and never reads the clock but in ``now``.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))  # from this number on, so many make a second
_ODD = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d):(\d\d)(?::(\d\d))?(.*)\Z", re.ASCII | re.IGNORECASE)
_ZONE = re.compile(r" ?(?:z|utc|gmt)\Z", re.IGNORECASE)
_MAIL = re.compile(r"(?:[A-Z][a-z]{2}, )?\d{1,2} [A-Z][a-z]{2} \d{4} \d\d:\d\d", re.ASCII)
_NUMBER = re.compile(r"[+-]?[0-9]{1,20}(\.[0-9]{1,20})?\Z")


def now() -> str:
    """This moment as we store it: ``2026-11-29T19:40:01.123Z``."""
    return iso(datetime.now(UTC))


def iso(moment: datetime) -> str:
    """``moment`` in UTC with milliseconds and ``Z``.

    >>> iso(datetime(2026, 3, 1, tzinfo=UTC))
    '2026-03-01T00:00:00.000Z'
    """
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse(value: Any) -> datetime | None:
    """``value`` as an aware datetime in UTC, or ``None`` if it is no time.

    >>> parse("2026-03-01T09:00:00+08:00")
    datetime.datetime(2026, 3, 1, 1, 0, tzinfo=datetime.timezone.utc)
    >>> parse(1772355600) == parse(1772355600000) == parse("1772355600")
    True
    """
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return _from_number(float(value)) if abs(value) < 1e20 else None
    if not isinstance(value, str):
        return None
    text = value.strip()
    if (moment := _from_text(text)) is not None:
        return moment
    return _from_number(float(text)) if _NUMBER.match(text) else _from_odd_text(text)


def _from_text(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _from_odd_text(text: str) -> datetime | None:
    """What ISO 8601 allows and Python does not read, and what other programs write."""
    if (odd := _ODD.match(text)) is not None:
        day, hour, minute, second, rest = odd.groups()
        more = timedelta(days=hour == "24", seconds=second == "60")
        plain = _from_text(
            f"{day}T{'00' if hour == '24' else hour}:{minute}:{'59' if second == '60' else second or '00'}"
            f"{_ZONE.sub('+00:00', rest)}"
        )
        try:
            return plain + more if plain else None
        except OverflowError:
            return None
    if _MAIL.match(text):
        from email.utils import parsedate_to_datetime  # takes longer to load than all else here, and is rarely needed

        try:
            moment = parsedate_to_datetime(text)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError):
            return None
    return None


def microseconds(value: Any) -> int | None:
    """``parse(value)`` as microseconds since 1970, at a third of the cost for the usual spellings."""
    try:
        moment = datetime.fromisoformat(value)
        since = moment - EPOCH
    except (TypeError, ValueError):  # no text, no zone, no ISO
        since = None
    if since is None or not 1 < moment.year < 9999:
        found = parse(value)
        if found is None:
            return None
        since = found - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def milliseconds(value: Any) -> int | None:
    """A time span as messages hold it (``duration_ms``), in whole milliseconds; ``None`` for what is none."""
    if value is None or isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        return None
    return round(value)


def _from_number(number: float) -> datetime | None:
    if not math.isfinite(number):
        return None
    seconds = number / next((per_second for start, per_second in _UNITS if abs(number) >= start), 1)
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def local(moment: datetime, zone: tzinfo | None = None) -> datetime:
    """``moment`` as the clocks in ``zone`` show it (default: this machine's zone, ``$TZ`` respected)."""
    try:
        return moment.astimezone(zone)
    except (OverflowError, ValueError):  # the first or the last day of the calendar, or $TZ is nonsense
        return moment


def minute(moment: datetime, zone: tzinfo | None = None) -> str:
    """``2026-11-29 19:40``, as the clocks in ``zone`` show it: in any year it sorts as text.

    >>> minute(datetime(900, 3, 1, 9, tzinfo=UTC), UTC)
    '0900-03-01 09:00'
    """
    return local(moment, zone).isoformat(" ", "minutes")[:16]


def local_day(moment: datetime, zone: tzinfo | None = None) -> date:
    """The calendar day of ``moment`` in ``zone`` (default: this machine's zone)."""
    return local(moment, zone).date()
