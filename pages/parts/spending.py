"""The charts of the Stats page: which numbers, how drawn, and what a click on them narrows or opens.

Does not compute: ``sessions_lib.stats`` does.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from types import MappingProxyType
from typing import Any

import pandas as pd
import streamlit as st

from pages.parts import charts, figures_row, filters, found, links, listed
from pages.parts.filters import Filters
from pages.parts.frame import page
from pages.parts.safe_markdown import safe_label, visible
from sessions_lib import stats
from sessions_lib.catalog import Catalog
from sessions_lib.query import Query
from sessions_lib.stats import Figures

DEFAULT_SPAN = "30d"
KINDS = ("Input", "Input, cached", "Output", "Output, reasoning")
MOST = 10  # bars in a chart; the table below it has all rows
_SPANS = {"7d": "7 days", "30d": "30 days", "90d": "90 days", "365d": "Year", filters.ALL: "All"}
_STACKS = {"kind": "Kind", "model": "Model", "tag": "Tag"}
_MEASURES = {"total": "Tokens", "turns": "Turns", "sessions": "Sessions"}
_CLASSES = ((1, "0–1"), (3, "2–3"), (7, "4–7"), (15, "8–15"), (31, "16–31"), (63, "32–63"))
_LONGEST = "64+"


def nothing_yet() -> None:
    """What to do in an empty folder."""
    st.markdown("No sessions yet. Turns, tokens, tools and forks are counted here as soon as something is said.")
    with st.container(horizontal=True, gap="small"):
        st.page_link(page("chat"), label="Start a session", icon=":material/forum:")
        st.page_link(page("home"), label="Load the demo", icon=":material/auto_stories:")


def with_span(asked: Filters) -> Filters:
    """``asked``; without any days the last 30, or all where nothing was said in these."""
    if asked.when or asked.since or asked.until:
        return asked
    recent = replace(asked, when=DEFAULT_SPAN)
    return recent if found.ids(recent) else replace(asked, when=filters.ALL)


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
        first, last = (moment.astimezone(chosen.zone).date() for moment in (before.since, before.until))
        said.append(f"Changes are against {first} to {last - pd.Timedelta(days=1)}.")
    said += [figures_row.what_counts(now), f"Days are those of {chosen.zone}."]
    st.caption(" ".join(filter(None, said)))


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


def _session_picked(session: str) -> None:
    st.session_state["stats_go"] = ("sessions", {"session": session})


def _length_picked(name: str) -> None:
    st.session_state["stats_length"] = name


# ------------------------------------------------------------ charts


def _box(title: str, meaning: str = "") -> Any:
    """A box under its title."""
    return _choosing(title, meaning)[0]


def _choosing(title: str, meaning: str = "", key: str = "", options: Mapping[str, str] = MappingProxyType({})) -> Any:
    """A box under its title, and what was chosen beside the title."""
    box = st.container(border=True, height="stretch")
    with box, st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{title}**", help=meaning or None, width="stretch")
        if not options:
            return box, ""
        chosen: str = st.segmented_control(
            title,
            list(options),
            key=key,
            default=next(iter(options)),
            format_func=lambda name: options[name],
            required=True,
            label_visibility="collapsed",
        )
    return box, chosen


def kinds(days: pd.DataFrame) -> pd.DataFrame:
    """A row a day and kind of token: cached is inside input, reasoning inside output, so each is taken out once."""
    cached, reasoning = days["cached"].fillna(0), days["reasoning"].fillna(0)
    parts = (days["input"].fillna(0) - cached, cached, days["output"].fillna(0) - reasoning, reasoning)
    made = [
        pd.DataFrame({"day": days["day"], "name": kind, "total": part}) for kind, part in zip(KINDS, parts, strict=True)
    ]
    rows = pd.concat(made, ignore_index=True)
    return rows[rows["total"] > 0]


def _largest(days: pd.DataFrame) -> pd.DataFrame:
    """The six largest names of a split, the others together."""
    sums = days.groupby("name")["total"].sum().sort_values(ascending=False)
    if len(sums) <= 7:
        return days
    kept = set(sums.index[:6])
    return days.assign(name=[name if name in kept else "others" for name in days["name"]])


def tokens_by_day(catalog: Catalog, chosen: Filters, mark: str) -> None:
    """Tokens by day, stacked by kind, model or tag."""
    box, stack = _choosing("Tokens by day", key="stats_stack", options=_STACKS)
    with box:
        days = stats.by_day(catalog, chosen.asked, chosen.zone, None if stack == "kind" else stack)
        days["day"] = pd.to_datetime(days["day"])
        shown = kinds(days) if stack == "kind" else _largest(days.dropna(subset=["total"]))
        if stack == "tag":
            st.caption("A session with two tags stands under both.")
        order = (
            KINDS if stack == "kind" else list(shown.groupby("name")["total"].sum().sort_values(ascending=False).index)
        )
        shown = shown.groupby(["day", "name"])["total"].sum().reset_index()
        chart = charts.by_day(shown.assign(total=shown["total"].astype("float64")), "total", "Tokens", "name", order)
        charts.show(f"tokens-by-day-{stack}", chart, _readable(days), _day_picked, mark, "date")


def turns_by_day(catalog: Catalog, chosen: Filters, mark: str) -> None:
    """Turns by day."""
    with _box("Turns by day", "Prompts, each once, on the day they were said."):
        days = stats.by_day(catalog, chosen.asked, chosen.zone)
        days["day"] = pd.to_datetime(days["day"])
        chart = charts.by_day(days[["day", "turns"]], "turns", "Turns", room=360)
        charts.show(
            "turns-by-day", chart, _readable(days[["day", "sessions", "turns", "messages"]]), _day_picked, mark, "date"
        )


def year(catalog: Catalog, chosen: Filters, mark: str) -> None:
    """The last year, a square a day."""
    with _box("A year of turns", "All filters but the days."):
        days = stats.by_day(catalog, chosen.asked, chosen.zone)
        days["day"] = pd.to_datetime(days["day"])
        every = pd.DataFrame({"day": pd.date_range(str(chosen.days[0]), str(chosen.days[1]))})
        shown = every.merge(days[["day", "turns"]], how="left").fillna({"turns": 0}).astype({"turns": "int64"})
        charts.show(
            "year",
            charts.heatmap(shown, "turns", "Turns"),
            _readable(days[["day", "turns", "total"]]),
            _day_picked,
            mark,
            "date",
        )


def tags(catalog: Catalog, asked: Query, mark: str) -> None:
    """What each tag took."""
    meaning = "A session with two tags stands under both: do not add them up."
    box, measure = _choosing("Tags", meaning, "stats_tags_measure", _MEASURES)
    with box:
        table = stats.by_tag(catalog, asked)
        table["forks_share"] = (table["forks"] / table["sessions"].where(table["sessions"] > 0)).round(3)
        _ranked("tags", table, "tag", measure, ["tag", "sessions", "forks_share", "turns", "total"], _tag_picked, mark)


def models(catalog: Catalog, asked: Query, mark: str) -> None:
    """What each model took."""
    box, measure = _choosing("Models", "", "stats_models_measure", _MEASURES | {"turns": "Answers"})
    with box:
        columns = ["model", "sessions", "answers", "input", "cached", "output", "reasoning", "total", "reported"]
        column = "answers" if measure == "turns" else measure
        _ranked("models", stats.by_model(catalog, asked), "model", column, columns, _model_picked, mark)


def tools(catalog: Catalog, asked: Query, mark: str) -> None:
    """How often each tool was called, how often it failed, how long it took."""
    box, measure = _choosing(
        "Tools", "", "stats_tools_measure", {"calls": "Calls", "failures": "Failures", "seconds": "Seconds"}
    )
    with box:
        table = stats.tools(catalog, asked)
        table["seconds"] = (table["duration_ms"].astype("Float64") / 1000).round(1)
        table["failed"] = (table["failures"] / table["calls"].where(table["calls"] > 0)).round(3)
        columns = ["tool", "calls", "failures", "failed", "unanswered", "sessions", "seconds"]
        _ranked("tools", table, "tool", measure, columns, _tool_picked, mark)


def _ranked(
    name: str, table: pd.DataFrame, label: str, measure: str, columns: list[str], picked: charts.Picked, mark: str,
    field: str | None = None,
) -> None:  # fmt: skip
    known = table.dropna(subset=[measure])
    top = known[known[measure] > 0].sort_values(measure, ascending=False, kind="stable").head(MOST)
    shown = top.assign(**{measure: top[measure].astype("float64")})[
        list(dict.fromkeys([field or label, label, measure]))
    ]
    title = _head(measure)
    charts.show(
        name, charts.bars(shown, label, measure, title, field), _readable(table[columns]), picked, mark, field or label
    )
    if (more := len(known[known[measure] > 0]) - len(top)) > 0:
        st.caption(f"and {more:,} more in the table")


def lengths(catalog: Catalog, asked: Query, mark: str) -> None:
    """How many sessions have how many turns."""
    with _box("Length of sessions", "Whole sessions, copied turns too."):
        rows = stats.sessions(catalog, asked)
        names = [name for _, name in _CLASSES] + [_LONGEST]
        rows["length"] = [next((name for most, name in _CLASSES if turns <= most), _LONGEST) for turns in rows["turns"]]
        counted = rows.groupby("length").size().reindex(names, fill_value=0)
        shown = pd.DataFrame({"length": names, "sessions": counted.to_numpy()})
        st.caption("Turns. Click a bar to list its sessions.")
        charts.show(
            "lengths", charts.columns(shown, "length", "sessions", "Sessions"), shown, _length_picked, mark, "length"
        )
        picked = st.session_state.get("stats_length")
        for row in rows[rows["length"] == picked].head(MOST).itertuples() if picked else ():
            st.page_link(
                page("sessions"),
                label=f"{safe_label(str(row.title), 60)} · {row.turns} turns",
                query_params={"session": str(row.id)},
            )


def expensive_sessions(catalog: Catalog, asked: Query, mark: str) -> None:
    """The sessions in which most was spent."""
    with _box("Most expensive sessions", "Tokens of the messages written in each, not of those it copied."):
        rows = stats.sessions(catalog, asked)
        columns = ["title", "id", "turns", "own_total", "total", "last_active"]
        _ranked("expensive-sessions", _distinct(rows), "label", "own_total", columns, _session_picked, mark, "id")


def expensive_families(catalog: Catalog, asked: Query, mark: str) -> None:
    """The families in which most was spent."""
    with _box("Most expensive families", "A session with all its forks, each message once."):
        rows = stats.families(catalog, asked)
        columns = ["title", "root", "sessions", "turns", "total", "sent_again"]
        _ranked("expensive-families", _distinct(rows), "label", "total", columns, _session_picked, mark, "root")


def _distinct(rows: pd.DataFrame) -> pd.DataFrame:
    """``rows`` with a ``label``: the title, made different from equal ones, because equal labels share a bar."""
    titles = [visible(" ".join(str(title).split()))[:60] for title in rows["title"]]
    seen: dict[str, int] = {}
    labels = []
    for title in titles:
        seen[title] = seen.get(title, 0) + 1
        labels.append(title if seen[title] == 1 else f"{title} ({seen[title]})")
    return rows.assign(label=labels)


def growth(catalog: Catalog, asked: Query, mark: str) -> None:
    """How one session grows turn by turn, and why each turn costs more than the last."""
    with _box(
        "Growth of one session", "Each turn sends the whole conversation again: its input is what was said so far."
    ):
        rows = _distinct(stats.sessions(catalog, asked).sort_values("own_total", ascending=False, na_position="last"))
        titles = dict(zip(rows["id"].head(200), rows["label"].head(200), strict=True))
        session = st.selectbox(
            "Session",
            list(titles),
            key="stats_growth",
            format_func=lambda one: titles.get(one, one),
            label_visibility="collapsed",
        )
        if session is None:
            return
        turns = stats.context(catalog, session)
        made = [
            pd.DataFrame({"turn": turns["turn"], "name": name, "total": turns[column].astype("float64")})
            for name, column in (("Sent", "input"), ("Written", "output"))
        ]
        shown = pd.concat(made, ignore_index=True).dropna()
        prompts = dict(zip(turns["turn"], turns["message"], strict=True))

        def picked(turn: str) -> None:
            st.session_state["stats_go"] = ("chat", links.to_chat(session, int(prompts[int(float(turn))])))

        charts.show(
            "growth",
            charts.steps(shown, "turn", "total", "name", ("Sent", "Written")),
            _readable(turns),
            picked,
            f"{mark}_{session}",
            "turn",
        )
        if len(turns) and not turns["so_far"].isna().all():
            last = turns["so_far"].dropna().iloc[-1]
            st.caption(f"{int(last):,} tokens so far. A click on a turn opens it.")


# ------------------------------------------------------------ tables

_HEADS = {
    "id": "Session",
    "root": "Session",
    "name": "Of",
    "forks_share": "Share of forks",
    "reported": "Reported usage",
    "errors": "Tool errors",
    "input": "Input tokens",
    "cached": "of which cached",
    "output": "Output tokens",
    "reasoning": "of which reasoning",
    "total": "Tokens",
    "own_total": "Tokens written here",
    "sent_again": "Held again by forks",
    "failed": "Share failed",
    "last_active": "Last message (UTC)",
    "time": "Time (UTC)",
    "inherited": "Copied",
    "so_far": "Tokens so far",
}


def _head(column: str) -> str:
    return _HEADS.get(column, column.replace("_", " ").capitalize())


def _readable(table: pd.DataFrame) -> pd.DataFrame:
    """``table`` with real column names, days as text and texts that show what a browser would hide."""
    shown = table.copy()
    for name in shown.columns:
        if pd.api.types.is_datetime64_any_dtype(shown[name]):
            shown[name] = shown[name].dt.strftime("%Y-%m-%d" if name == "day" else "%Y-%m-%d %H:%M")
        elif name in ("title", "tag", "model", "tool", "name"):
            shown[name] = [visible(str(text)) for text in shown[name]]
    return shown.rename(columns=_head)
