"""The box a chart stands in: its title, a choice beside it, the ranking of names, the words of its table.

Does not know what is counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pandas as pd
import streamlit as st

from pages.stats_parts import charts
from sessions_lib import names, text
from sessions_lib.text import visible

MOST = 10  # bars in a chart; the table below it has all rows
_HEADS = {
    "id": "Session",
    "root": "Session",
    "name": "Of",
    "forks_share": "Share of forks",
    "reported": "Reported usage",
    "errors": "Tool errors",
    "input": "Tokens in",
    "cached": "of which cached",
    "output": "Tokens out",
    "reasoning": "of which reasoning",
    "total": "Tokens",
    "own_total": "Own tokens",
    "cost": "Cost (US$)",
    "own_cost": "Own cost (US$)",
    "unpriced": "Tokens without a price",
    "unmetered": "Tokens not metered",
    "own_unpriced": "Own tokens without a price",
    "own_unmetered": "Own tokens not metered",
    "duration_ms": "Time (ms)",
    "sent_again": "Held again by forks",
    "failed": "Share failed",
    "last_active": "Last message (UTC)",
    "time": "Time (UTC)",
    "inherited": "Copied",
    "so_far": "Tokens so far",
}


def head(column: str) -> str:
    """The name a person reads over ``column``."""
    return _HEADS.get(column, column.replace("_", " ").capitalize())


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """``table`` with real column names, days as text and texts that show what a browser would hide."""
    shown = table.copy()
    for name in shown.columns:
        if pd.api.types.is_datetime64_any_dtype(shown[name]):
            shown[name] = shown[name].dt.strftime("%Y-%m-%d" if name == "day" else "%Y-%m-%d %H:%M").fillna("unknown")
        elif name in ("title", "tag", "model", "tool", "name"):
            shown[name] = [visible(str(value)) for value in shown[name]]
    return shown.rename(columns=head)


def box(title: str, meaning: str = "") -> Any:
    """A box under its title."""
    return choosing(title, meaning)[0]


def choosing(title: str, meaning: str = "", key: str = "", options: Mapping[str, str] = MappingProxyType({})) -> Any:
    """A box under its title, and what was chosen beside the title."""
    place = st.container(border=True, height="stretch")
    with place, st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{title}**", help=meaning or None, width="stretch")
        if not options:
            return place, ""
        chosen: str = st.segmented_control(
            title,
            list(options),
            key=key,
            default=next(iter(options)),
            format_func=lambda name: options[name],
            required=True,
            label_visibility="collapsed",
        )
    return place, chosen


def ranked(
    name: str,
    table: pd.DataFrame,
    label: str,
    measure: str,
    columns: Sequence[str],
    picked: charts.Picked,
    stamp: str,
    field: str | None = None,
) -> None:
    """The largest of ``table`` by ``measure`` as bars named ``label``; a click gives ``field``, else the label."""
    known = table[table[measure].notna() & (table[measure] > 0)]
    top = known.sort_values(measure, ascending=False, kind="stable").head(MOST)
    shown = pd.DataFrame(
        {field or label: top[field or label], "label": distinct(top[label]), measure: top[measure].astype("float64")}
    )
    if measure.endswith("cost"):
        shown["written"] = _written(top, measure.removesuffix("cost"))
    chart = charts.bars(shown, measure, head(measure), field or label)
    is_unknown = measure in ("total", "own_total") and bool(table[measure].isna().any())
    nothing = {"nothing": charts.UNKNOWN_TOKENS} if is_unknown else {}
    if measure.endswith("cost") and bool(table[measure].isna().any()):
        nothing = {"nothing": charts.UNKNOWN_COST}
    charts.show(
        name, chart, len(table), lambda: readable(table[list(columns)]), picked, stamp, field or label, **nothing
    )
    if (more := len(known) - len(top)) > 0:
        st.caption(f"and {more:,} more in the table")


def _written(table: pd.DataFrame, own: str) -> list[str]:
    """The costs in words, ``≥`` before those to which tokens without a price belong, or answers that reported none."""
    is_partial = table[f"{own}unpriced"] > 0
    if f"{own}answers" in table:
        is_partial |= table[f"{own}reported"] < table[f"{own}answers"]
    pairs = zip(table[f"{own}cost"], is_partial, strict=True)
    return [text.money(float(cost), is_partial=bool(partial)) for cost, partial in pairs]


def distinct(texts: Iterable[object]) -> list[str]:
    """``texts`` as labels, equal ones made different: equal labels would share a bar."""
    seen: dict[str, int] = {}
    labels = []
    for value in texts:
        label = names.one_line(visible(" ".join(str(value).split())), 60)
        seen[label] = seen.get(label, 0) + 1
        labels.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return labels
