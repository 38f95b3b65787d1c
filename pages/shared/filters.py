"""What Sessions and Stats are narrowed to: search, tags, models, days, forks. It stands in the address, and only there.

``q`` is the search; ``tag`` any of, ``all`` every one of, ``not`` none of these tags; ``model`` any of; ``when`` a
span (``7d``), or ``from`` and ``to`` (days, both included); ``forks`` is ``only`` or ``none``; ``zone`` the time zone.

Does not find sessions: ``found`` does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, tzinfo
from typing import Any

import streamlit as st

from pages.shared import moments
from sessions_lib import query
from sessions_lib.query import Query

SPANS = {"today": "Today", "7d": "Last 7 days", "30d": "Last 30 days", "90d": "Last 90 days", "365d": "Last year"}
ALL = "all"  # any time, where a page would choose a span by itself
FORKS = {"only": "Only forks", "none": "No forks"}
_NAMES = ("q", "tag", "all", "not", "model", "when", "from", "to", "forks", "zone")


@dataclass(frozen=True)
class Filters:
    """What was asked for; empty means everything."""

    q: str = ""
    tags: tuple[str, ...] = ()
    all_tags: tuple[str, ...] = ()
    not_tags: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    when: str = ""
    since: date | None = None
    until: date | None = None
    forks: str = ""
    zone_name: str = ""

    @property
    def zone(self) -> tzinfo:
        """The time zone in which days begin and times are shown."""
        return moments.zone(self.zone_name)

    @property
    def is_narrow(self) -> bool:
        """True if anything is asked, so that something may be hidden."""
        return replace(self, zone_name="", when="" if self.when == ALL else self.when) != Filters()

    @property
    def days(self) -> tuple[date | None, date | None]:
        """The first and the last day asked for."""
        if self.when not in SPANS:
            return (None, None) if self.when == ALL else (self.since, self.until)
        today = datetime.now(self.zone).date()
        count = 1 if self.when == "today" else int(self.when[:-1])
        return today - timedelta(days=count - 1), today

    @property
    def asked(self) -> Query:
        """The search and the filters as one query."""
        said = query.parse(self.q, self.zone)
        first, last = self.days
        since = query.midnight(first, self.zone) if first else None
        until = query.day_bounds(last, self.zone)[1] if last else None
        return replace(
            said,
            tags=said.tags + tuple(map(query.fold_name, self.all_tags)),
            not_tags=said.not_tags + tuple(map(query.fold_name, self.not_tags)),
            any_tags=tuple(map(query.fold_name, self.tags)),
            models=said.models + tuple(map(query.fold_name, self.models)),
            since=max(filter(None, (said.since, since)), default=None),
            until=min(filter(None, (said.until, until)), default=None),
            is_fork=said.is_fork or self.forks == "only",
            not_fork=said.not_fork or self.forks == "none",
        )

    def address(self) -> dict[str, list[str]]:
        """The query parameters that reopen this view."""
        held = {
            "q": [self.q],
            "tag": self.tags,
            "all": self.all_tags,
            "not": self.not_tags,
            "model": self.models,
            "when": [self.when],
            "from": [self.since.isoformat() if self.since else ""],
            "to": [self.until.isoformat() if self.until else ""],
            "forks": [self.forks],
            "zone": [self.zone_name],
        }
        return {name: [value for value in values if value] for name, values in held.items() if any(values)}


def from_address() -> Filters:
    """The filters the address asks for; what it does not know is left out."""
    given = st.query_params

    def many(name: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(value for value in given.get_all(name) if value.strip()))

    when, forks = given.get("when", ""), given.get("forks", "")
    return Filters(
        q=given.get("q", ""),
        tags=many("tag"),
        all_tags=many("all"),
        not_tags=many("not"),
        models=many("model"),
        when=when if when in SPANS or when == ALL else "",
        since=None if when in SPANS else _day(given.get("from", "")),
        until=None if when in SPANS else _day(given.get("to", "")),
        forks=forks if forks in FORKS else "",
        zone_name=given.get("zone", ""),
    )


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def write(chosen: Filters) -> None:
    """Put ``chosen`` into the address, from its first page on."""
    held = chosen.address()
    for name in (*_NAMES, "page", "within"):
        if name in held:
            st.query_params[name] = held[name] if len(held[name]) > 1 else held[name][0]
        elif name in st.query_params:
            del st.query_params[name]


def parts(chosen: Filters) -> list[tuple[str, Filters]]:
    """Each thing that is asked, in words, with the filters that would be left without it."""
    found: list[tuple[str, Filters]] = []
    words = query.tokens(chosen.q)
    for number, word in enumerate(words):
        rest = " ".join(words[:number] + words[number + 1 :])
        found.append((word, replace(chosen, q=rest)))
    for field, label in (("tags", "tag: {}"), ("all_tags", "all of: {}"), ("not_tags", "not: {}"), ("models", "{}")):
        values: tuple[str, ...] = getattr(chosen, field)
        # "Any of these" is one condition: without one of its tags it would only be stricter.
        groups = [values] if field in ("tags", "models") and values else [(value,) for value in values]
        for group in groups:
            left = tuple(value for value in values if value not in group)
            found.append((label.format(" or ".join(group)), _with(chosen, field, left)))
    if chosen.when in SPANS or chosen.since or chosen.until:
        found.append((span_label(chosen), replace(chosen, when="", since=None, until=None)))
    if chosen.forks:
        found.append((FORKS[chosen.forks].lower(), replace(chosen, forks="")))
    return found


def _with(chosen: Filters, field: str, value: Any) -> Filters:
    return replace(chosen, **{field: value})


def span_label(chosen: Filters) -> str:
    """The days in words: ``last 7 days``, ``2026-03-01 to 2026-03-31``, ``any time``."""
    if chosen.when in SPANS:
        return SPANS[chosen.when].lower()
    first, last = chosen.since, chosen.until
    if first and last:
        return f"{first} to {last}" if first != last else str(first)
    return f"from {first}" if first else f"to {last}" if last else "any time"


def field(prefix: str, name: str, value: Any) -> str:
    """The key of the widget for ``name``, showing ``value``; a widget that shows it already is left to the typist."""
    key = f"{prefix}_{name}"
    if key not in st.session_state or st.session_state[key] != value:
        st.session_state[key] = value
    return key


def search_box(prefix: str, chosen: Filters) -> None:
    """The search field; it writes the address while a person types."""
    key = field(prefix, "q", chosen.q)
    st.text_input(
        "Search",
        key=key,
        type="search",
        live="300ms",
        icon=":material/search:",
        placeholder='Search everything said: lighthouse "low tide" tag:python after:2026-03-01',
        label_visibility="collapsed",
        on_change=lambda: write(replace(from_address(), q=st.session_state[key])),
    )


def span_box(prefix: str, chosen: Filters, any_time: str = "") -> None:
    """The choice of days: a span that ends today, or two days. ``any_time`` is how the address says all of them."""
    is_custom = bool(chosen.since or chosen.until) or bool(st.session_state.get(f"{prefix}_custom_days"))
    value = "custom" if is_custom and not chosen.when else chosen.when.replace(ALL, "")
    labels = {"": "Any time", **SPANS, "custom": "Between two days"}
    key = field(prefix, "when", value)

    def changed() -> None:
        picked = st.session_state[key]
        st.session_state[f"{prefix}_custom_days"] = picked == "custom"
        first, last = from_address().days if picked == "custom" else (None, None)
        when = picked if picked in SPANS else "" if picked == "custom" else any_time
        write(replace(from_address(), when=when, since=first, until=last))

    st.selectbox("Days", list(labels), key=key, format_func=labels.__getitem__, on_change=changed)
    if value == "custom":
        _day_box(prefix, "from", "First day", chosen.since, lambda day: replace(from_address(), since=day))
        _day_box(prefix, "to", "Last day", chosen.until, lambda day: replace(from_address(), until=day))


def _day_box(prefix: str, name: str, label: str, value: date | None, changed: Callable[[date | None], Filters]) -> None:
    key = field(prefix, name, value)
    st.date_input(
        label,
        value=None,
        min_value=date.min,
        max_value=date.max,
        key=key,
        format="YYYY-MM-DD",
        on_change=lambda: write(changed(st.session_state[key])),
    )


def tag_boxes(prefix: str, chosen: Filters, tags: list[str]) -> None:
    """Three choices of tags: any, all and none of them."""
    for field_name, label in (
        ("tags", "Any of these tags"),
        ("all_tags", "All of these"),
        ("not_tags", "None of these"),
    ):
        _many(prefix, field_name, label, getattr(chosen, field_name), tags)


def model_box(prefix: str, chosen: Filters, models: list[str]) -> None:
    """The choice of models."""
    _many(prefix, "models", "Any of these models", chosen.models, models)


def _many(prefix: str, name: str, label: str, values: tuple[str, ...], options: list[str]) -> None:
    key = field(prefix, name, list(values))
    known = list(dict.fromkeys([*values, *options]))

    def changed() -> None:
        write(_with(from_address(), name, tuple(st.session_state[key])))

    st.multiselect(label, known, key=key, on_change=changed, placeholder="Choose", select_all=False)


def fork_box(prefix: str, chosen: Filters) -> None:
    """The choice between sessions, forks and both."""
    labels = {"": "All sessions", **FORKS}
    key = field(prefix, "forks", chosen.forks)
    st.selectbox(
        "Forks",
        list(labels),
        key=key,
        format_func=labels.__getitem__,
        on_change=lambda: write(replace(from_address(), forks=st.session_state[key])),
    )


def zone_box(prefix: str, chosen: Filters) -> None:
    """The time zone that days are cut in; the browser's unless another one is chosen."""
    current = moments.zone_name(chosen.zone_name)
    key = field(prefix, "zone", current)

    def changed() -> None:
        picked = st.session_state[key]
        write(replace(from_address(), zone_name="" if picked == moments.zone_name() else picked))

    options = list(dict.fromkeys([current, *moments.zone_names()]))
    st.selectbox("Days and times in", options, key=key, on_change=changed)
