"""The charts of the Stats page about whole sessions: how long they are, which cost most, how one grows.

Does not compute: ``sessions_lib.stats`` does.
"""

from __future__ import annotations

import pandas as pd
import streamlit as st

from pages.shared import links
from pages.shared.frame import page
from pages.shared.money import shown as shown_money
from pages.shared.safe_markdown import safe_label
from pages.shared.session_queries import once
from pages.stats_parts import charts
from pages.stats_parts.chart_box import MOST, box, choosing, distinct, ranked, readable
from sessions_lib import prices, stats, text
from sessions_lib.query import Query
from sessions_lib.store.numbers import MONEY

_CLASSES = ((1, "0–1"), (3, "2–3"), (7, "4–7"), (15, "8–15"), (31, "16–31"), (63, "32–63"))
_LONGEST = "64+"
_OFFERED = 200  # sessions to choose from for the growth of one


def _session_picked(session: str) -> None:
    st.session_state["stats_go"] = ("sessions", {"session": session})


def _length_picked(name: str) -> None:
    st.session_state["stats_length"] = name


def lengths(rows: pd.DataFrame, mark: str) -> None:
    """How many sessions have how many turns."""
    with box("Length of sessions", "Whole sessions, copied turns too."):
        names = [name for _, name in _CLASSES] + [_LONGEST]
        edges = [-1, *(most for most, _ in _CLASSES), float("inf")]
        length = pd.cut(rows["turns"], edges, labels=names)
        counted = length.value_counts().reindex(names, fill_value=0)
        shown = pd.DataFrame({"length": names, "sessions": counted.to_numpy()})
        st.caption("Turns. Click a bar to list its sessions.")
        charts.show(
            "lengths",
            charts.columns(shown, "length", "sessions", "Sessions"),
            len(rows),
            lambda: readable(shown),
            _length_picked,
            mark,
            "length",
        )
        picked = st.session_state.get("stats_length")
        for row in rows[length == picked].head(MOST).itertuples() if picked else ():
            st.page_link(
                page("sessions"),
                label=f"{safe_label(str(row.title), 60)} · {row.turns} turns",
                query_params={"session": str(row.id)},
            )


def _measures(rows: pd.DataFrame, own: str = "") -> dict[str, str]:
    """Tokens and cost; cost first where any is known."""
    names = {f"{own}cost": "Cost", f"{own}total": "Tokens"}
    return names if bool((rows[f"{own}cost"].fillna(0) > 0).any()) else dict(reversed(names.items()))


def expensive_sessions(rows: pd.DataFrame, mark: str) -> None:
    """The sessions in which most was spent."""
    meaning = "Of all messages written in each, not of those it copied."
    place, measure = choosing("Most expensive sessions", meaning, "stats_expensive_measure", _measures(rows, "own_"))
    with place:
        columns = ["title", "id", "turns", "own_total", "total", *(f"own_{name}" for name in MONEY), "last_active"]
        ranked("expensive-sessions", rows, "title", measure, columns, _session_picked, mark, "id")


def expensive_families(asked: Query, mark: str) -> None:
    """The families in which most was spent."""
    meaning = "A session with all its forks, each message once."
    rows = once(stats.families, asked)
    place, measure = choosing("Most expensive families", meaning, "stats_families_measure", _measures(rows))
    with place:
        columns = ["title", "root", "sessions", "turns", "total", "sent_again", *MONEY]
        ranked("expensive-families", rows, "title", measure, columns, _session_picked, mark, "root")


def growth(rows: pd.DataFrame, mark: str) -> None:
    """How one session grows turn by turn, and why each turn costs more than the last."""
    with box(
        "Growth of one session", "Each turn sends the whole conversation again: its input is what was said so far."
    ):
        top = rows.sort_values("own_total", ascending=False, na_position="last").head(_OFFERED)
        titles = dict(zip(top["id"], distinct(top["title"]), strict=True))
        session = st.selectbox(
            "Session",
            list(titles),
            key="stats_growth",
            format_func=lambda one: titles.get(one, one),
            label_visibility="collapsed",
        )
        if session is None:
            return
        turns = once(stats.context, session)
        made = [
            pd.DataFrame({"turn": turns["turn"], "name": name, "total": turns[column].astype("float64")})
            for name, column in (("Sent", "input"), ("Written", "output"))
        ]
        shown = pd.concat(made, ignore_index=True).dropna()
        prompts = dict(zip(turns["turn"], turns["message"], strict=True))

        def picked(turn: str) -> None:
            st.session_state["stats_go"] = ("chat", links.to_chat(session, int(prompts[int(float(turn))])))

        colors = [charts.TOKEN_COLORS[kind] for kind in ("input", "output")]
        charts.show(
            "growth",
            charts.steps(shown, "turn", "total", "name", ("Sent", "Written"), colors=colors),
            len(turns),
            lambda: readable(turns),
            picked,
            f"{mark}_{session}",
            "turn",
            charts.UNKNOWN_TOKENS,
        )
        if len(turns) and not turns["so_far"].isna().all():
            last = turns["so_far"].dropna().iloc[-1]
            spent = prices.add(prices.Spent(*turn) for turn in _money_of(turns))
            cost = f", {shown_money(text.money(spent.cost, is_partial=spent.is_partial))}" if spent.cost else ""
            st.caption(f"{int(last):,} tokens{cost} so far. A click on a turn opens it.")


def _money_of(turns: pd.DataFrame) -> list[tuple[float | None, int, int]]:
    costs = turns["cost"].astype(object).where(turns["cost"].notna(), None)
    return list(zip(costs, turns["unpriced"], turns["unmetered"], strict=True))
