"""Charts for numbers: quiet, in the theme's colours, each with its table and its CSV, each a way to a filter.

A click gives the text of the clicked thing to a callback. Values come as frames; nothing is computed here.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from sessions_lib.export.redact import Redaction

UNKNOWN_TOKENS = "No tokens are known: none of these answers reported usage."
UNKNOWN_COST = "No cost is known: none of these answers has a price."
PRICED_ALONE = "Only what has a price; the sentence under the figures names what has none."
Picked = Callable[[str], None]
Spec = dict[str, Any]
_PICK = "pick"
# A month's name over its first week, with the year under the first name and under each January.
_FIRST_WEEKS = (
    "date(datum.value) > 7 ? '' : datum.index == 0 || month(datum.value) == 0 ? "
    "[timeFormat(datum.value, '%b'), timeFormat(datum.value, '%Y')] : timeFormat(datum.value, '%b')"
)
_FAILED = "#d94a57"  # what failed, in both themes
# What a kind of token is drawn in on every page; no branch of a comparison has one of these.
TOKEN_COLORS = {"input": "#64748b", "cached": "#94a3b8", "output": "#4d7c0f", "reasoning": "#84a845"}
_FADED = {"condition": {"param": _PICK, "value": 1}, "value": 0.35}  # all but what was clicked


def _is_dark() -> bool:
    return bool(st.context.theme.type == "dark")


def _theme_color(name: str) -> str:
    """A colour of the theme, which Streamlit gives to axes but not to what is inside a chart."""
    return str(st.get_option(f"theme.{'dark' if _is_dark() else 'light'}.{name}") or "gray")


def _heat() -> list[str]:
    """From few to many: away from the background."""
    colors = [str(color) for color in st.get_option("theme.chartSequentialColors") or ("#c7d2fe", "#312e81")]
    return [colors[-2], colors[2]] if _is_dark() else [colors[2], colors[-2]]


def _chart(frame: pd.DataFrame, height: int, mark: Spec, encoding: Spec, field: str, **more: Any) -> Spec:
    """A chart of one mark; ``field`` is what a click on it gives."""
    picked = {"type": "point", "fields": [field], "on": "click", "clear": "dblclick"}
    return {
        "data": {"values": frame},
        "height": height,
        "mark": mark,
        "encoding": encoding,
        "params": [{"name": _PICK, "select": picked}],
        **more,
    }


def _tip(field: str, title: str, kind: str = "nominal") -> Spec:
    return {
        "field": field,
        "type": kind,
        "title": title,
        **({"format": _exact(field)} if kind == "quantitative" else {}),
    }


def _exact(value: str) -> str:
    return "$,.4~f" if value.endswith("cost") else ","


def _short(value: str) -> str:
    return "$,.3~r" if value.endswith("cost") else "~s"


def _dates(count: int) -> Spec:
    """An axis of ``count`` days: ``06 Sep``, with the year under the first date and under the first of each year."""
    # Ticks are days, weeks or months apart, so the first of a year stands that far into January at most.
    apart = next(days for most, days in ((30, 1), (120, 7), (10**9, 31)) if count <= most)
    is_new = f"datum.index == 0 || (month(datum.value) == 0 && date(datum.value) <= {apart})"
    day, year = "timeFormat(datum.value, '%d %b')", "timeFormat(datum.value, '%Y')"
    return {"labelExpr": f"{is_new} ? [{day}, {year}] : {day}", "tickCount": 8, "labelOverlap": True, "grid": False}


def by_day(
    frame: pd.DataFrame,
    value: str,
    title: str,
    series: str | None = None,
    order: Sequence[str] = (),
    *,
    colors: Sequence[str] = (),
    room: int = 560,
) -> Spec:
    """Bars by day of ``value``, stacked by the column ``series``; ``frame`` has ``day`` (dates at midnight).

    ``colors`` are those of ``order``, else the theme's. ``room`` is about how many pixels there are for all days.
    """
    shown = frame.assign(date=frame["day"].dt.strftime("%Y-%m-%d"))
    count = max(1, int((shown["day"].max() - shown["day"].min()).days) + 1) if len(shown) else 1
    days = _dates(count)
    encoding: Spec = {
        "x": {"field": "day", "type": "temporal", "title": None, "axis": days},
        "y": {"field": value, "type": "quantitative", "title": None, "axis": {"format": _short(value), "tickCount": 4}},
        "opacity": _FADED,
        "tooltip": [_tip("date", "Day"), _tip(value, title, "quantitative")],
    }
    if series:
        names = list(order) or sorted(shown[series].unique())
        shown = shown.assign(rank=shown[series].map({name: number for number, name in enumerate(names)}))
        encoding["color"] = _colors(series, names, colors)
        encoding["order"] = {"field": "rank", "type": "quantitative"}
        encoding["tooltip"].insert(1, _tip(series, "Of"))
    bar = {"type": "bar", "size": max(1.5, min(24, 0.8 * room / count)), "cornerRadius": 1}
    return _chart(shown, 220, bar, encoding, "date")


def heatmap(frame: pd.DataFrame, value: str, title: str) -> Spec:
    """A year as weeks beside each other, a day a square; ``frame`` has ``day``, one row a day."""
    day = frame["day"]
    monday = day - pd.to_timedelta(day.dt.day_of_week, unit="D")
    shown = frame.assign(date=day.dt.strftime("%Y-%m-%d"), week=monday, weekday=day.dt.strftime("%a"))
    months = {"labelExpr": _FIRST_WEEKS, "labelOverlap": False, "ticks": False, "domain": False, "labelAngle": 0}
    names = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    some = {"values": names[:5:2], "ticks": False, "domain": False}
    scale = {"type": "sqrt", "range": _heat()}
    encoding = {
        "x": {"field": "week", "timeUnit": "yearmonthdate", "type": "ordinal", "title": None, "axis": months},
        "y": {"field": "weekday", "type": "ordinal", "title": None, "sort": names, "axis": some},
        "color": {"field": value, "type": "quantitative", "legend": None, "scale": scale},
        "opacity": {"condition": {"test": f"datum['{value}'] > 0", "value": 1}, "value": 0.12},
        "tooltip": [_tip("date", "Day"), _tip(value, title, "quantitative")],
    }
    square = {"type": "rect", "cornerRadius": 3, "strokeWidth": 2, "stroke": _theme_color("backgroundColor")}
    return _chart(shown, 150, square, encoding, "date")


def bars(shown: pd.DataFrame, value: str, title: str, field: str) -> Spec:
    """Bars lying down, in the order given: ``label`` is what each is called, ``field`` what a click gives.

    ``written``, if there is such a column, is what stands behind each.
    """
    names = {"labelLimit": 230, "ticks": False, "domain": False}
    room = float(shown[value].max()) * 1.15 if len(shown) else 1  # for the number behind the longest bar
    placed: Spec = {
        "y": {"field": "label", "type": "nominal", "title": None, "sort": None, "axis": names},
        "x": {"field": value, "type": "quantitative", "title": None, "axis": None, "scale": {"domainMax": room}},
        "tooltip": [_tip("label", "Name"), _tip(value, title, "quantitative")],
    }
    number: Spec = {"field": value, "type": "quantitative", "format": ",.3~s"}
    if "written" in shown:
        number = {"field": "written", "type": "nominal"}
    label = {"type": "text", "align": "left", "dx": 5, "fontSize": 12, "color": _theme_color("textColor")}
    spec = _chart(shown, 24 * max(1, len(shown)) + 8, {}, {}, field)
    bar = {"type": "bar", "cornerRadiusEnd": 3, "height": 15}
    if value == "failures":
        bar["color"] = _FAILED
    spec["params"][0]["views"] = ["bars"]
    spec["layer"] = [
        {"name": "bars", "mark": bar, "encoding": {**placed, "opacity": _FADED}},
        {"mark": label, "encoding": {**placed, "text": number}},
    ]
    del spec["mark"], spec["encoding"]
    return spec


def columns(frame: pd.DataFrame, name: str, value: str, title: str) -> Spec:
    """Standing bars for classes in their own order: ``1``, ``2–3``, ``4–7`` …"""
    whole = {"format": "~s", "tickCount": 4, "tickMinStep": 1}
    encoding = {
        "x": {"field": name, "type": "nominal", "title": None, "sort": None, "axis": {"labelAngle": 0, "ticks": False}},
        "y": {"field": value, "type": "quantitative", "title": None, "axis": whole},
        "opacity": _FADED,
        "tooltip": [_tip(name, "Turns"), _tip(value, title, "quantitative")],
    }
    return _chart(frame, 200, {"type": "bar", "cornerRadiusEnd": 3}, encoding, name)


def _colors(series: str, order: Sequence[str], colors: Sequence[str]) -> Spec:
    """The names of ``order`` in ``colors`` (in the theme's, if none are given), told above the chart."""
    scale = {"scale": {"domain": list(order), "range": list(colors)}} if colors else {}
    legend = {"orient": "top", "offset": 8}
    return {"field": series, "type": "nominal", "title": None, "sort": list(order), "legend": legend, **scale}


def steps(
    frame: pd.DataFrame, x: str, value: str, series: str, order: Sequence[str], *, colors: Sequence[str] = ()
) -> Spec:
    """Stacked columns turn by turn: what each turn sent and got."""
    encoding = {
        "x": {"field": x, "type": "ordinal", "title": "Turn", "axis": {"labelAngle": 0, "labelOverlap": True}},
        "y": {"field": value, "type": "quantitative", "title": None, "axis": {"format": "~s", "tickCount": 4}},
        "color": _colors(series, order, colors),
        "tooltip": [_tip(x, "Turn", "ordinal"), _tip(series, "Of"), _tip(value, "Tokens", "quantitative")],
        "opacity": _FADED,
    }
    return _chart(frame, 220, {"type": "bar"}, encoding, x)


def show(
    name: str,
    chart: Spec,
    rows: int,
    table: Callable[[], pd.DataFrame],
    picked: Picked | None,
    stamp: str,
    field: str,
    nothing: str = "None of them.",
) -> None:
    """Draw ``chart``; a click gives ``picked`` what ``field`` says there. Below: its table, to look at and as CSV.

    ``rows`` is how many the table has: without any there is nothing to draw. ``nothing`` is said where the table has
    rows and the chart has none.

    ``stamp`` changes with the filters, so that a click on an older chart never counts again.
    """
    key = f"stats_{name}_{stamp}"

    def clicked() -> None:
        chosen = st.session_state[key]["selection"].get(_PICK) or []
        if chosen and picked is not None and chosen[0].get(field) is not None:
            picked(str(chosen[0][field]))

    if rows and chart["data"]["values"].empty:
        st.caption(nothing)
    elif rows:
        st.vega_lite_chart(
            spec=chart, key=key, on_select=clicked if picked else "ignore", selection_mode=_PICK if picked else None
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
    """The table as CSV for any spreadsheet, UTF-8 with its mark; what would be a formula starts with an apostrophe.

    Redacted: titles, tags, ids and names as in every other export.
    """
    held = io.StringIO()
    writer = csv.writer(held)
    writer.writerow(table.columns)
    redaction = Redaction()
    for row in table.itertuples(index=False):
        words = [value for value in row if isinstance(value, str)]
        writer.writerow([_cell(redaction.cell(value, words) if isinstance(value, str) else value) for value in row])
    return b"\xef\xbb\xbf" + held.getvalue().encode("utf-8", "replace")


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return "'" + value if value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
    return "" if value is None or (not isinstance(value, list) and pd.isna(value)) else value
