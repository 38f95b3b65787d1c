"""What a trial says: the sentences, the rates with their intervals, the table, and each repeat as a dot.

Does not compute: ``sessions_lib.trials.table`` does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from pages.shared import acting, folder, links
from pages.shared.frame import page
from pages.shared.safe_markdown import safe_label
from pages.trials_parts import new_trial
from sessions_lib import names, text
from sessions_lib.errors import SessionError
from sessions_lib.export import trial as exporting
from sessions_lib.text import visible
from sessions_lib.trials import checks as checking
from sessions_lib.trials import table as counting
from sessions_lib.trials.running import SIMULATED
from sessions_lib.trials.table import Row
from sessions_lib.trials.trial import Result, Trial

_PASSED, _FAILED, _UNKNOWN = "#0ea5a4", "#d97706", "#94a3b8"
_COLORS = alt.Scale(domain=["passed", "did not pass", "not judged"], range=[_PASSED, _FAILED, _UNKNOWN])
_MEASURES = {"seconds": "Seconds", "tokens": "Tokens", "dollars": "Dollars"}


def head(trial: Trial) -> None:
    """Where it starts, what is asked, and the file to send."""
    with st.container(horizontal=True, vertical_alignment="center", key="trial-head"):
        st.page_link(
            page("chat"),
            label=f"starts in {safe_label(folder.title_of(trial.session_id), 60)}",
            icon=":material/forum:",
            query_params=links.to_chat(trial.session_id, max(0, trial.at - 1)),
        )  # fmt: skip
        if trial.results:
            st.download_button(
                "Export", lambda: exporting.html(trial).encode(), f"{trial.name}.html", "text/html",
                icon=":material/download:", key="trial-export", on_click="ignore",
            )  # fmt: skip
        _copy(trial)
    for prompt in trial.prompts:
        with st.container(border=True, key=f"trial-prompt-{trial.prompts.index(prompt)}"):
            st.text(visible(prompt))
    if trial.effects == "simulated":
        st.caption(f":material/history: {SIMULATED}")
    named = [checking.name_of(check) for check in trial.checks]
    st.caption(
        f"An answer passes if: {safe_label(' · '.join(named), 300)}" if named else "No check: every answer passes."
    )


def _copy(trial: Trial) -> None:
    """The same trial once more under another name: to run it again, or to have it from where it stood."""
    taken = {name.lower() for name in folder.store().trials()}
    with st.popover("Copy", icon=":material/content_copy:", key="trial-copy"):
        name = st.text_input(
            "Name of the copy", names.unique_id(trial.name, taken), key=f"trial-copy-name-{trial.name}"
        )
        st.caption("The same start, prompts, variants and checks. Nothing is asked before you say so.")
        if st.button("Make the copy", type="primary", key="trial-copy-go"):  # no callback: see new_trial
            _make_copy(trial, name.strip())
            st.rerun()


def _make_copy(trial: Trial, name: str) -> None:
    try:
        trial.copy(name).save()
    except SessionError as error:
        acting.tell("Nothing was copied.", faults=[str(error)])
        return
    new_trial.go_to(name)


def sentences(trial: Trial) -> None:
    """What can be said, and what not."""
    for sentence in counting.verdicts(counting.rows(trial)):
        st.markdown(f"## {safe_label(sentence, 400)}" if "noise" not in sentence else safe_label(sentence, 400))


def rates(trial: Trial) -> None:
    """Each variant's rate and its interval on one scale."""
    rows = [row for row in counting.rows(trial) if row.rate.runs]
    if not rows:
        return
    shown = pd.DataFrame(
        {
            "variant": [_name(row) for row in rows],
            "rate": [row.rate.rate for row in rows],
            "low": [row.rate.low for row in rows],
            "high": [row.rate.high for row in rows],
            "passed": [counting.share(row.rate) for row in rows],
            "kind": ["noise" if row.variant.is_noise else "variant" for row in rows],
        }
    )
    order = list(shown["variant"])
    y = alt.Y("variant:N", sort=order, title=None, axis=alt.Axis(labelLimit=220, ticks=False, domain=False))
    scale = alt.Scale(domain=[0, 1])
    tips = ["variant:N", "passed:N", alt.Tooltip("low:Q", format=".0%"), alt.Tooltip("high:Q", format=".0%")]
    base = alt.Chart(shown)
    opacity = alt.condition("datum.kind == 'noise'", alt.value(0.45), alt.value(1))
    line = base.mark_rule(strokeWidth=3, color="#6366f1").encode(
        y=y,
        x=alt.X("low:Q", scale=scale, title=None, axis=alt.Axis(format="%", tickCount=5)),
        x2="high:Q",
        opacity=opacity,
        tooltip=tips,
    )
    dot = base.mark_point(size=140, filled=True, color="#6366f1").encode(
        y=y, x=alt.X("rate:Q", scale=scale), opacity=opacity, tooltip=tips
    )
    with st.container(border=True, key="trial-rates"):
        st.markdown(
            "**How often it passed**", help="The dot is the share that passed, the line its 95 % interval (Wilson)."
        )
        st.altair_chart((line + dot).properties(height=38 * len(rows) + 30))


def table(trial: Trial) -> None:
    """Variants × checks and what they took; a selected cell opens its repeats below."""
    rows = counting.rows(trial)
    named = [checking.name_of(check) for check in trial.checks]
    shown = pd.DataFrame([_cells(row, named, counting.pass_k(trial)) for row in rows])
    with st.container(border=True, key="trial-table"):
        st.markdown("**Variants and checks**", help="Select a cell to open its repeats.")
        event: Any = st.dataframe(
            shown, hide_index=True, key=f"trial-cells-{trial.name}", on_select="rerun", selection_mode="single-cell",
            height="content",
        )  # fmt: skip
        cells = event.selection.cells if event and event.selection else []
        if cells:
            number, column = cells[0]
            if 0 <= number < len(rows):
                _repeats(trial, rows, rows[number], str(column), named)


def _cells(row: Row, named: Sequence[str], k: int) -> dict[str, str]:
    cells = {"Variant": visible(_name(row)), "All": _rate(row.rate)}
    if len(named) > 1:
        cells |= {visible(name)[:60]: _rate(rate) for name, rate in zip(named, row.by_check, strict=True)}
    cells[f"{k} of {k} pass"] = "unknown" if row.pass_all is None else f"{row.pass_all:.0%}"
    cells |= {
        "Tokens": _spread(row.tokens, "{:,.0f}".format),
        "Seconds": _spread(row.seconds, "{:,.1f}".format),
        "Cost": _spread(row.dollars, text.money) if row.dollars.median is not None else row.without_dollars,
    }
    if row.failed:
        cells["Failed"] = str(row.failed)
    return cells


def _name(row: Row) -> str:
    return f"{row.variant.name} (noise)" if row.variant.is_noise else row.variant.name


def _rate(rate: Any) -> str:
    if not rate.runs:
        return "not judged"
    return f"{rate.passed} of {rate.runs}  ({rate.low:.0%} to {rate.high:.0%})"


def _spread(spread: Any, written: Callable[[float], str]) -> str:
    if spread.median is None:
        return "unknown"
    if spread.least == spread.most:
        return written(spread.median)
    return f"{written(spread.median)}  ({written(spread.least)} to {written(spread.most)})"


def _repeats(trial: Trial, rows: Sequence[Row], row: Row, column: str, named: Sequence[str]) -> None:
    """The repeats of a row, those that did not pass first; each opens in Chat, or in Compare."""
    at = next((number for number, name in enumerate(named) if visible(name)[:60] == column), None)
    results = sorted(row.results, key=lambda one: (_passed(one, at) is not False, one.repeat))
    st.markdown(f"**{safe_label(_name(row), 60)}**" + (f" · {safe_label(column, 60)}" if at is not None else ""))
    others = {
        one.repeat: one for one in next((r for r in rows if r is not row and not r.variant.is_noise), rows[0]).results
    }
    for result in results[:40]:
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.page_link(
                page("chat"), label=f"{result.repeat} · {_said(result, at)}", icon=":material/forum:",
                query_params=links.to_chat(result.session),
            )  # fmt: skip
            if (other := others.get(result.repeat)) is not None and other.session != result.session:
                st.page_link(
                    page("compare"), label=f"beside {safe_label(other.variant, 30)}", icon=":material/compare_arrows:",
                    query_params=links.to_compare(other.session, result.session),
                )  # fmt: skip
    if len(results) > 40:
        st.caption(
            f"and {text.count(len(results) - 40, 'repeat')} more, in Sessions by the tag trial:{safe_label(trial.name)}"
        )


def _passed(result: Result, at: int | None) -> bool | None:
    return result.passed if at is None or result.state != "done" else checking.passes(result.verdicts[at])


def _said(result: Result, at: int | None) -> str:
    if result.error:
        return f"failed: {safe_label(result.error, 80)}"
    passed = _passed(result, at)
    words = {True: "passed", False: "did not pass", None: "not judged"}[passed]
    why = (
        result.verdicts[at] if at is not None else next((v for v in result.verdicts if isinstance(v, str) and v), None)
    )
    return f"{words}: {safe_label(why, 80)}" if isinstance(why, str) and why else words


def dots(trial: Trial) -> None:
    """Each repeat as a dot: what it took, and whether it passed."""
    done = [result for result in trial.results.values() if result.state == "done"]
    known = [name for name in _MEASURES if any(getattr(result, name) is not None for result in done)]
    if not known:
        return
    with st.container(border=True, key="trial-dots"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown("**Each repeat**", width="stretch")
            measure = st.segmented_control(
                "Measure", known, default=known[0], format_func=lambda name: _MEASURES[name], key="trial-measure",
                required=True, label_visibility="collapsed",
            )  # fmt: skip
        names = {row.variant.name: _name(row) for row in counting.rows(trial)}
        words = {True: "passed", False: "did not pass", None: "not judged"}
        shown = pd.DataFrame(
            {
                "variant": [names.get(result.variant, result.variant) for result in done],
                "value": [getattr(result, str(measure)) for result in done],
                "outcome": [words[result.passed] for result in done],
                "repeat": [result.repeat for result in done],
            }
        ).dropna(subset=["value"])
        chart = (
            alt.Chart(shown)
            .mark_circle(size=90, opacity=0.75)
            .encode(
                x=alt.X(
                    "value:Q", title=_MEASURES[str(measure)], scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=8)
                ),
                y=alt.Y(
                    "variant:N",
                    sort=list(names.values()),
                    title=None,
                    axis=alt.Axis(labelLimit=220, ticks=False, domain=False),
                ),
                yOffset=alt.YOffset("jitter:Q", scale=alt.Scale(domain=[0, 1])),
                color=alt.Color("outcome:N", scale=_COLORS, title=None, legend=alt.Legend(orient="top")),
                tooltip=["variant:N", "repeat:Q", "value:Q", "outcome:N"],
            )
            .transform_calculate(jitter="0.2 + 0.6 * ((datum.repeat * 37) % 100) / 100")
            .properties(height=46 * len(names) + 60)
        )
        st.altair_chart(chart)
