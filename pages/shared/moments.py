"""Times as a person reads them: in the zone of the viewer's browser, which the pages state and let change.

Does not parse: a moment is an aware ``datetime``.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import streamlit as st

from sessions_lib import times


def zone_name(chosen: str | None = None) -> str:
    """The zone ``chosen`` if there is one of that name, else the browser's, else UTC."""
    for name in (chosen, st.context.timezone):
        if name and _zone(name) is not None:
            return name
    return "UTC"


def zone(chosen: str | None = None) -> tzinfo:
    """The time zone that days and times are shown in."""
    return _zone(zone_name(chosen)) or UTC


def _zone(name: str) -> tzinfo | None:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


@st.cache_data(show_spinner=False, max_entries=1)
def zone_names() -> list[str]:
    """The names of the zones to choose from, sorted."""
    return sorted(name for name in available_timezones() if "/" in name or name == "UTC")


def exact(moment: datetime | None, where: tzinfo) -> str:
    """``2026-11-29 19:40`` in ``where``; ``""`` if the moment is unknown."""
    return times.minute(moment, where) if moment else ""


def ago(moment: datetime | None, now: datetime | None = None) -> str:
    """``3 h ago``: how long before ``now``; ``time unknown`` without a moment, ``just now`` if it is to come."""
    if moment is None:
        return "time unknown"
    passed = (now or datetime.now(UTC)) - moment
    if passed < timedelta(minutes=1):
        return "just now"
    for size, unit in ((timedelta(days=365), "y"), (timedelta(days=30), "mo"), (timedelta(days=1), "d")):
        if passed >= size:
            return f"{passed // size} {unit} ago"
    return (
        f"{passed // timedelta(hours=1)} h ago" if passed >= timedelta(hours=1) else f"{passed.seconds // 60} min ago"
    )


def both(moment: datetime | None, where: tzinfo, now: datetime | None = None) -> str:
    """``2026-11-29 19:40 · 3 h ago``, or ``unknown``; sorts as text in the order of time."""
    return f"{exact(moment, where)} · {ago(moment, now)}" if moment else "unknown"
