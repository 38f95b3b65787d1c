"""The charts of the Stats page: which numbers, how drawn, and what a click on them narrows or opens.

Does not compute: ``sessions_lib.stats`` does.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import date

import pandas as pd
import streamlit as st

from pages.sessions_parts import listed
from pages.shared import filters, session_queries
from pages.shared.filters import Filters
from pages.shared.session_queries import once
from pages.stats_parts import charts, figures_row
from pages.stats_parts.chart_box import box, choosing, ranked, readable
from sessions_lib import stats, times
from sessions_lib.query import Query
from sessions_lib.store.numbers import MONEY, Figures

DEFAULT_SPAN = "30d"
KINDS = ("In, not cached", "In, cached", "Out, not reasoning", "Out, reasoning")
_SPANS = {"7d": "7 days", "30d": "30 days", "90d": "90 days", "365d": "Year", filters.ALL: "All"}
_STACKS = {"kind": "Kind", "model": "Model", "tag": "Tag"}
_MEASURES = {"total": "Tokens", "cost": "Cost", "turns": "Turns", "sessions": "Sessions"}


def nothing_yet() -> None:
    """What to do in an empty folder."""
    st.markdown("No sessions yet. Turns, tokens, tools and forks are counted here as soon as something is said.")
    listed.begin()


def with_span(asked: Filters) -> Filters:
    """``asked``; without any days the last 30, or all where nothing was said in these."""
    if asked.when or asked.since or asked.until:
        return asked
    recent = replace(asked, when=DEFAULT_SPAN)
    return recent if session_queries.ids(recent) else replace(asked, when=filters.ALL)


def head(chosen: Filters) -> None:
    """The title, the span and the filters."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="stats_head"):
        st.title("Stats", anchor=False, width="stretch")
        key = "stats_span"
        value = chosen.when if chosen.when in _SPANS else None
        if key not in st.session_state or st.session_state[key] != value:
            st.session_state[key] = value
        st.segmented_control(
            "Days",
            list(_SPANS),
            key=key,
            format_func=_SPANS.__getitem__,
            label_visibility="collapsed",
            on_change=_spanned,
        )
        with st.popover("Filters", icon=":material/tune:", key="stats_filters"):
            filters.search_box("stats", chosen)
            listed.filter_boxes("stats", chosen, filters.ALL)


def _spanned() -> None:
    picked = st.session_state["stats_span"] or filters.ALL
    filters.write(replace(filters.from_address(), when=picked, since=None, until=None))


def said_below(now: Figures, before: Query | None, chosen: Filters) -> None:
    """What the figures are compared with, what their tokens are, and whose days they are."""
    said = []
    if before is not None and before.since and before.until:
        first, last = (times.local_day(moment, chosen.zone) for moment in (before.since, before.until))
        said.append(f"Changes are against {first} to {last - pd.Timedelta(days=1)}.")
    said += [figures_row.what_counts(now), f"Days are those of {chosen.zone}."]
    said.append(figures_row.what_has_no_price(now, once(stats.by_model, chosen.asked)))
    st.caption(" ".join(filter(None, said)))
    if now.messages:
        listed.unread()


def stamp(chosen: Filters) -> str:
    """A mark that changes with the filters."""
    return hashlib.sha256(json.dumps(chosen.address()).encode()).hexdigest()[:8]


# ------------------------------------------------------------ what a click does


def _day_picked(day: str) -> None:
    picked = date.fromisoformat(day)
    filters.write(replace(filters.from_address(), when="", since=picked, until=picked))


def _tag_picked(tag: str) -> None:
    now = filters.from_address()
    if tag == stats.NO_TAG:
        filters.write(replace(now, q=f"{now.q} untagged:".strip()))
    else:
        filters.write(replace(now, tags=(tag,)))


def _model_picked(model: str) -> None:
    filters.write(replace(filters.from_address(), models=(model,)))


def _tool_picked(tool: str) -> None:
    now = filters.from_address()
    name = f'tool:"{tool}"' if " " in tool else f"tool:{tool}"
    filters.write(replace(now, q=now.q if name in now.q.split() else f"{now.q} {name}".strip()))


# ------------------------------------------------------------ charts


def kinds(days: pd.DataFrame) -> pd.DataFrame:
    """A row a day and kind of token: cached is inside input, reasoning inside output, so each is taken out once."""
    cached, reasoning = days["cached"].fillna(0), days["reasoning"].fillna(0)
    parts = (days["input"].fillna(0) - cached, cached, days["output"].fillna(0) - reasoning, reasoning)
    made = [
        pd.DataFrame({"day": days["day"], "name": kind, "total": part}) for kind, part in zip(KINDS, parts, strict=True)
    ]
    rows = pd.concat(made, ignore_index=True)
    return rows[rows["total"] > 0]


def _largest(days: pd.DataFrame, measure: str = "total") -> pd.DataFrame:
    """The six largest names of a split, the others together."""
    sums = days.groupby("name")[measure].sum().sort_values(ascending=False)
    if len(sums) <= 7:
        return days
    kept = set(sums.index[:6])
    return days.assign(name=[name if name in kept else "others" for name in days["name"]])


def tokens_by_day(chosen: Filters, mark: str) -> None:
    """Tokens by day, stacked by kind, model or tag."""
    place, stack = choosing("Tokens by day", key="stats_stack", options=_STACKS)
    with place:
        days = once(stats.by_day, chosen.asked, chosen.zone, None if stack == "kind" else stack)
        days["day"] = pd.to_datetime(days["day"])
        shown = kinds(days) if stack == "kind" else _largest(days[days["total"].fillna(0) > 0])
        if stack == "tag":
            st.caption("A session with two tags stands under both.")
        order = (
            KINDS if stack == "kind" else list(shown.groupby("name")["total"].sum().sort_values(ascending=False).index)
        )
        shown = shown.groupby(["day", "name"])["total"].sum().reset_index()
        colors = list(charts.TOKEN_COLORS.values()) if stack == "kind" else []
        shown = shown.astype({"total": "float64"})
        chart = charts.by_day(shown, "total", "Tokens", "name", order, colors=colors)
        nothing = charts.UNKNOWN_TOKENS if days["total"].isna().any() else "No tokens."
        name = f"tokens-by-day-{stack}"
        charts.show(name, chart, len(days), lambda: readable(days), _day_picked, mark, "date", nothing)


def cost_by_day(chosen: Filters, mark: str) -> None:
    """Money by day, stacked by model or tag; nothing where no answer has a price."""
    place, stack = choosing("Cost by day", charts.PRICED_ALONE, "stats_cost_stack", {"model": "Model", "tag": "Tag"})
    with place:
        days = once(stats.by_day, chosen.asked, chosen.zone, stack)
        days["day"] = pd.to_datetime(days["day"])
        shown = _largest(days[days["cost"].fillna(0) > 0], "cost")
        order = list(shown.groupby("name")["cost"].sum().sort_values(ascending=False).index)
        shown = shown.groupby(["day", "name"])["cost"].sum().reset_index().astype({"cost": "float64"})
        chart = charts.by_day(shown, "cost", "Cost", "name", order, room=1000)
        name = f"cost-by-day-{stack}"
        charts.show(name, chart, len(days), lambda: readable(days), _day_picked, mark, "date", charts.UNKNOWN_COST)


def turns_by_day(chosen: Filters, mark: str) -> None:
    """Turns by day."""
    with box("Turns by day", "Prompts, each once, on the day they were said; those without a time on none."):
        days = once(stats.by_day, chosen.asked, chosen.zone, None)
        days["day"] = pd.to_datetime(days["day"])
        chart = charts.by_day(days[["day", "turns"]], "turns", "Turns", room=360)
        charts.show(
            "turns-by-day",
            chart,
            len(days),
            lambda: readable(days[["day", "sessions", "turns", "messages"]]),
            _day_picked,
            mark,
            "date",
        )


def year(chosen: Filters, mark: str) -> None:
    """The last year, a square a day."""
    with box("A year of turns", "All filters but the days."):
        days = once(stats.by_day, chosen.asked, chosen.zone, None)
        days["day"] = pd.to_datetime(days["day"])
        every = pd.DataFrame({"day": pd.date_range(str(chosen.days[0]), str(chosen.days[1]))})
        shown = every.merge(days[["day", "turns"]], how="left").fillna({"turns": 0}).astype({"turns": "int64"})
        charts.show(
            "year",
            charts.heatmap(shown, "turns", "Turns"),
            len(days),
            lambda: readable(days[["day", "turns", "total"]]),
            _day_picked,
            mark,
            "date",
        )


def tags(asked: Query, mark: str) -> None:
    """What each tag took."""
    meaning = "A session with two tags stands under both: do not add them up."
    place, measure = choosing("Tags", meaning, "stats_tags_measure", _MEASURES)
    with place:
        table = once(stats.by_tag, asked)
        table["forks_share"] = (table["forks"] / table["sessions"].where(table["sessions"] > 0)).round(3)
        ranked(
            "tags",
            table,
            "tag",
            measure,
            ["tag", "sessions", "forks_share", "turns", "total", *MONEY],
            _tag_picked,
            mark,
        )


def models(asked: Query, mark: str) -> None:
    """What each model took."""
    place, measure = choosing("Models", "", "stats_models_measure", _MEASURES | {"turns": "Answers"})
    with place:
        columns = [
            "model",
            "sessions",
            "answers",
            "input",
            "cached",
            "output",
            "reasoning",
            "total",
            *MONEY,
            "reported",
        ]
        column = "answers" if measure == "turns" else measure
        ranked("models", once(stats.by_model, asked), "model", column, columns, _model_picked, mark)


def tools(asked: Query, mark: str) -> None:
    """How often each tool was called, how often it failed, how long it took."""
    place, measure = choosing(
        "Tools",
        "The cost of a tool is that of the answers that called it; one that called two stands under both.",
        "stats_tools_measure",
        {"calls": "Calls", "failures": "Failures", "duration_ms": "Time", "cost": "Cost"},
    )
    with place:
        if measure == "cost":
            columns = ["tool", "sessions", "answers", "total", *MONEY]
            ranked("tools", once(stats.by_tool, asked), "tool", measure, columns, _tool_picked, mark)
            return
        table = once(stats.tools, asked)
        table["failed"] = (table["failures"] / table["calls"].where(table["calls"] > 0)).round(3)
        columns = ["tool", "calls", "failures", "failed", "unanswered", "sessions", "duration_ms"]
        ranked("tools", table, "tool", measure, columns, _tool_picked, mark)
