"""Charts for numbers: quiet, in the theme's colours, each with its table and its CSV, each a way to a filter.

A click gives the text of the clicked thing to a callback. Values come as frames; nothing is computed here.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st
from altair.utils.schemapi import debug_mode

Picked = Callable[[str], None]
_PICK = "pick"
_FIRST_WEEKS = "date(datum.value) <= 7 ? timeFormat(datum.value, '%b') : ''"  # a month's name over its first week


def _pick(field: str) -> alt.Parameter:
    return alt.selection_point(name=_PICK, fields=[field], on="click", clear="dblclick")


def _is_dark() -> bool:
    return bool(st.context.theme.type == "dark")


def _theme_color(name: str) -> str:
    """A colour of the theme, which Streamlit gives to axes but not to what is inside a chart."""
    return str(st.get_option(f"theme.{'dark' if _is_dark() else 'light'}.{name}") or "gray")


def _heat() -> list[str]:
    """From few to many: away from the background."""
    colors = [str(color) for color in st.get_option("theme.chartSequentialColors") or ("#c7d2fe", "#312e81")]
    return [colors[-2], colors[2]] if _is_dark() else [colors[2], colors[-2]]


def _faded() -> Any:
    return alt.condition(alt.param(_PICK), alt.value(1), alt.value(0.35))


@debug_mode(False)
def by_day(
    frame: pd.DataFrame, value: str, title: str, series: str | None = None, order: Sequence[str] = (), room: int = 560
) -> Any:
    """Bars by day of ``value``, stacked by the column ``series``; ``frame`` has ``day`` (dates at midnight).

    ``room`` is about how many pixels there are for all days.
    """
    shown = frame.assign(date=frame["day"].dt.strftime("%Y-%m-%d"))
    tips = [alt.Tooltip("date:N", title="Day"), alt.Tooltip(f"{value}:Q", title=title, format=",")]
    encoded: dict[str, Any] = {
        "x": alt.X("day:T", title=None, axis=alt.Axis(format="%d %b", tickCount=8, labelOverlap=True, grid=False)),
        "y": alt.Y(f"{value}:Q", title=None, axis=alt.Axis(format="~s", tickCount=4)),
        "opacity": _faded(),
    }
    if series:
        names = list(order) or sorted(shown[series].unique())
        encoded["color"] = alt.Color(f"{series}:N", title=None, sort=names, legend=alt.Legend(orient="top"))
        encoded["order"] = alt.Order("rank:Q")
        ranks = {name: number for number, name in enumerate(names)}
        shown = shown.assign(rank=shown[series].map(ranks))
        tips.insert(1, alt.Tooltip(f"{series}:N", title="Of"))
    days = max(1, int((shown["day"].max() - shown["day"].min()).days) + 1) if len(shown) else 1
    bar = alt.Chart(shown, height=220).mark_bar(size=max(1.5, min(24, 0.8 * room / days)), cornerRadius=1)
    return bar.encode(tooltip=tips, **encoded).add_params(_pick("date"))


@debug_mode(False)
def heatmap(frame: pd.DataFrame, value: str, title: str) -> Any:
    """A year as weeks beside each other, a day a square; ``frame`` has ``day``, one row a day."""
    day = frame["day"]
    monday = day - pd.to_timedelta(day.dt.day_of_week, unit="D")
    shown = frame.assign(date=day.dt.strftime("%Y-%m-%d"), week=monday, weekday=day.dt.strftime("%a"))
    return (
        alt.Chart(shown, height=150)
        .mark_rect(cornerRadius=3, strokeWidth=2, stroke=_theme_color("backgroundColor"))
        .encode(
            x=alt.X(
                "yearmonthdate(week):O",
                title=None,
                axis=alt.Axis(labelExpr=_FIRST_WEEKS, labelOverlap=False, ticks=False, domain=False, labelAngle=0),
            ),
            y=alt.Y(
                "weekday:O",
                title=None,
                sort=["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"],
                axis=alt.Axis(values=["Mon", "Wed", "Fri"], ticks=False, domain=False),
            ),
            color=alt.Color(f"{value}:Q", legend=None, scale=alt.Scale(type="sqrt", range=_heat())),
            opacity=alt.condition(f"datum['{value}'] > 0", alt.value(1), alt.value(0.12)),
            tooltip=[alt.Tooltip("date:N", title="Day"), alt.Tooltip(f"{value}:Q", title=title, format=",")],
        )
        .add_params(_pick("date"))
    )


@debug_mode(False)
def bars(shown: pd.DataFrame, value: str, title: str, field: str) -> Any:
    """Bars lying down, in the order given: ``label`` is what each is called, ``field`` what a click gives."""
    longest = alt.Axis(labelLimit=230, ticks=False, domain=False)
    height = 24 * max(1, len(shown)) + 8
    bar = alt.Chart(shown, height=height).encode(
        y=alt.Y("label:N", title=None, sort=None, axis=longest),
        x=alt.X(f"{value}:Q", title=None, axis=None),
        tooltip=[alt.Tooltip("label:N", title="Name"), alt.Tooltip(f"{value}:Q", title=title, format=",")],
    )
    marks = bar.mark_bar(cornerRadiusEnd=3, height=15).encode(opacity=_faded()).add_params(_pick(field))
    numbers = bar.mark_text(align="left", dx=5, fontSize=12, color=_theme_color("textColor")).encode(
        text=alt.Text(f"{value}:Q", format=",.3~s")
    )
    return marks + numbers


@debug_mode(False)
def columns(frame: pd.DataFrame, name: str, value: str, title: str) -> Any:
    """Standing bars for classes in their own order: ``1``, ``2–3``, ``4–7`` …"""
    return (
        alt.Chart(frame, height=200)
        .mark_bar(cornerRadiusEnd=3)
        .encode(
            x=alt.X(f"{name}:N", title=None, sort=None, axis=alt.Axis(labelAngle=0, ticks=False)),
            y=alt.Y(f"{value}:Q", title=None, axis=alt.Axis(format="~s", tickCount=4, tickMinStep=1)),
            opacity=_faded(),
            tooltip=[alt.Tooltip(f"{name}:N", title="Turns"), alt.Tooltip(f"{value}:Q", title=title, format=",")],
        )
        .add_params(_pick(name))
    )


@debug_mode(False)
def steps(frame: pd.DataFrame, x: str, value: str, series: str, order: Sequence[str]) -> Any:
    """Stacked columns turn by turn: what each turn sent and got."""
    return (
        alt.Chart(frame, height=220)
        .mark_bar()
        .encode(
            x=alt.X(f"{x}:O", title="Turn", axis=alt.Axis(labelAngle=0, labelOverlap=True)),
            y=alt.Y(f"{value}:Q", title=None, axis=alt.Axis(format="~s", tickCount=4)),
            color=alt.Color(f"{series}:N", title=None, sort=list(order), legend=alt.Legend(orient="top")),
            tooltip=[
                alt.Tooltip(f"{x}:O", title="Turn"),
                alt.Tooltip(f"{series}:N", title="Of"),
                alt.Tooltip(f"{value}:Q", title="Tokens", format=","),
            ],
            opacity=_faded(),
        )
        .add_params(_pick(x))
    )


def show(
    name: str, chart: Any, rows: int, table: Callable[[], pd.DataFrame], picked: Picked | None, stamp: str, field: str
) -> None:
    """Draw ``chart``; a click gives ``picked`` what ``field`` says there. Below: its table, to look at and as CSV.

    ``rows`` is how many the table has: without any there is nothing to draw.

    ``stamp`` changes with the filters, so that a click on an older chart never counts again.
    """
    key = f"stats_{name}_{stamp}"

    def clicked() -> None:
        chosen = st.session_state[key]["selection"].get(_PICK) or []
        if chosen and picked is not None and chosen[0].get(field) is not None:
            picked(str(chosen[0][field]))

    if rows:
        st.altair_chart(
            chart, key=key, on_select=clicked if picked else "ignore", selection_mode=_PICK if picked else None
        )
    else:
        st.caption("Nothing in these days.")
    # Eleven tables that nobody looks at would cost more than the charts: each is sent when it is opened.
    below = st.expander("Table", type="compact", key=f"stats_{name}_open", on_change="rerun")
    if below.open:
        with below:
            _table(name, table())


def _table(name: str, table: pd.DataFrame) -> None:
    height: Any = "content" if len(table) <= 8 else 300
    st.dataframe(table, hide_index=True, key=f"stats_{name}_table", height=height)
    st.download_button(
        "CSV",
        lambda: as_csv(table),
        file_name=f"{name}.csv",
        mime="text/csv",
        on_click="ignore",
        icon=":material/download:",
        key=f"stats_{name}_csv",
    )


def as_csv(table: pd.DataFrame) -> bytes:
    """The table as CSV for any spreadsheet, UTF-8 with its mark; what would be a formula starts with an apostrophe."""
    held = io.StringIO()
    writer = csv.writer(held)
    writer.writerow(table.columns)
    for row in table.itertuples(index=False):
        writer.writerow([_cell(value) for value in row])
    return b"\xef\xbb\xbf" + held.getvalue().encode("utf-8", "replace")


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return "'" + value if value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
    return "" if value is None or (not isinstance(value, list) and pd.isna(value)) else value
