"""The table of sessions. A selection means sessions, not positions: it follows them when the list changes.

A keyed dataframe keeps the numbers of the selected rows when its data change, so the key holds a hash of the sessions
shown, and the selection of the table before is read as ids first.

Does not act on sessions.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Sequence
from datetime import tzinfo
from typing import Any

import pandas as pd
import streamlit as st

from pages.shared import folder, moments, session_queries
from pages.shared.session_queries import Row
from sessions_lib import prices, text
from sessions_lib.prices import Spent
from sessions_lib.store import records
from sessions_lib.store.records import SessionInfo
from sessions_lib.text import visible

_SHOWN = "sessions_shown"
_GO = "sessions_go"
# Half-transparent, so that the page's own background makes them light or dark.
_HUES = (245, 174, 32, 330, 205, 95, 12, 280, 150, 60, 222, 350)
_STATES = {
    "won": "hsla(45, 90%, 50%, 0.4)",
    "running": "hsla(150, 60%, 45%, 0.35)",
    "unanswered": "hsla(220, 10%, 55%, 0.3)",
}
_TAGS_WIDTH, _MODEL_WIDTH, _TITLE_AND_OPTIONAL = 140, 150, 440  # pixels
_PADDING, _CHIP = 16, 20  # of a cell, and around a tag
_SLIM, _BROAD = "ilIjtfr.,:;'|!() -", "ABCDEFGHKLMNOPQRSTUVWXYZmw—…"
_TALLEST = 17  # rows before the table scrolls by itself
_OPTIONAL = ("inherited", "cost", "state")  # columns without anything in them are not shown
_DAMAGE = "hsla(8, 80%, 55%, 0.35)"


def tag_color(tag: str) -> str:
    """The colour of a tag's chip: the same in every table, whatever the case it is written in."""
    return f"hsla({_HUES[_number(tag) % len(_HUES)]}, 65%, 52%, 0.28)"


def _chip_color(tag: str) -> str:
    """The colour of a chip of the table: a tag's own, grey for the count of those that do not fit."""
    return _STATES["unanswered"] if re.fullmatch(r"\+\d+", tag) else tag_color(tag)


# Streamlit's name for the colour nearest to each hue.
_BADGES: tuple[Any, ...] = (
    "violet", "green", "orange", "red", "blue", "green", "red", "violet", "green", "yellow", "blue", "red",
)  # fmt: skip


def badge_color(tag: str) -> Any:
    """The colour of a tag where Streamlit's own badges are drawn; the same for a tag wherever it stands."""
    return _BADGES[_number(tag) % len(_HUES)]


def _number(tag: str) -> int:
    return int.from_bytes(hashlib.sha256(tag.casefold().encode()).digest()[:4])


def states(info: SessionInfo) -> list[str]:
    """What is to be known about a session before it is opened: won, running, unreadable, damaged, unanswered."""
    marks = ["won"] if records.verdict(info.meta) == "won" else []
    if folder.store().holder(info.id) is not None:
        marks.append("running")
    if info.fault:
        marks.append("unreadable")
    if info.damaged:
        marks.append("damaged")
    if info.unanswered and "running" not in marks:
        marks.append("unanswered")
    return marks


def title_cell(info: SessionInfo, depth: int) -> str:
    """The title on one line, moved to the right under the session it was forked from."""
    line = visible(" ".join(info.title.split()))
    if depth:
        return "\u2003" * (depth - 1) + "└ " + line
    return f"⑂ {line}" if info.parent else line


def inherited_tokens(info: SessionInfo) -> int | None:
    """The tokens of the messages copied from the parent; ``None`` if unknown or nothing was copied."""
    if info.tokens.total is None or not info.inherited:
        return None
    return info.tokens.total - (info.own_tokens.total or 0)


def tokens(info: SessionInfo) -> str:
    """``1,388 own and 529 inherited tokens``."""
    inherited = inherited_tokens(info) if info.inherited else 0
    return text.tokens(info.own_tokens.total, inherited, is_partial=info.own_tokens.is_partial)


def cost(info: SessionInfo, money: Spent) -> str | None:
    """What was spent in the session; ``None`` where nobody knows its tokens, or nothing was answered in it."""
    said = prices.said(money, info.own_tokens)
    return None if said == text.UNKNOWN or not info.own_tokens.answers else said


def frame_of(rows: Sequence[Row], where: tzinfo) -> pd.DataFrame:
    """The rows as the table shows them."""
    infos = [row.info for row in rows]
    # One mark, and how many there are besides: a column for two would leave the title no room.
    marks = [[*found[:1], *([f"+{len(found) - 1}"] if len(found) > 1 else [])] for found in map(states, infos)]
    costs = session_queries.costs([info.id for info in infos])
    return pd.DataFrame(
        {
            "open": ["Open"] * len(rows),
            "title": [title_cell(row.info, row.depth) for row in rows],
            "state": marks,
            "tags": [_tags(info.tags) for info in infos],
            "turns": pd.array([info.turns for info in infos], dtype="Int64"),
            "own": pd.array([info.own_tokens.total for info in infos], dtype="Int64"),
            "inherited": pd.array([inherited_tokens(info) for info in infos], dtype="Int64"),
            "cost": [cost(info, costs[info.id][0]) if info.id in costs else None for info in infos],
            "model": [_models(info.models) for info in infos],
            "last": [moments.both(info.last_active, where) for info in infos],
        }
    )


def _models(models: tuple[str, ...]) -> str:
    if not models:
        return ""
    more = f" +{len(models) - 1}" if len(models) > 1 else ""
    return _fitted(visible(models[-1]), _MODEL_WIDTH - _width(more)) + more


def _tags(tags: Sequence[str]) -> list[str]:
    """The tags that fit into their column, and how many there are besides: ``["quest", "+26"]``."""
    written = [_fitted(visible(tag), _TAGS_WIDTH - 40) for tag in tags]
    room, count = float(_TAGS_WIDTH), 0
    for left, tag in enumerate(written):
        room -= _width(tag) + _CHIP
        if room < (0 if left + 1 == len(written) else _width("+26") + _CHIP):
            break
        count += 1
    count = max(count, min(1, len(written)))
    return written[:count] + ([f"+{len(written) - count}"] if count < len(written) else [])


def _width(written: str) -> float:
    """About how many pixels ``written`` takes in a cell."""
    return sum(
        14 if unicodedata.east_asian_width(sign) in "WF" else 3.5 if sign in _SLIM else 8 if sign in _BROAD else 6.2
        for sign in written
    )


def _fitted(written: str, width: float) -> str:
    """``written``, ended by "…" where it does not fit into a cell of ``width`` pixels: a table cuts without a sign."""
    if _width(written) <= width - _PADDING:
        return written
    while written and _width(written + "…") > width - _PADDING:
        written = written[:-1]
    return written.rstrip() + "…"


def _columns(frame: pd.DataFrame, key: str, ids: list[str]) -> dict[str, Any]:
    column = st.column_config
    tags = sorted({tag for tags in frame["tags"] for tag in tags})
    states_here = sorted({state for state_list in frame["state"] for state in state_list})
    return {
        "open": column.ButtonColumn(
            "", width=54, type="tertiary", key=f"{key}_open", on_click=_opened, args=(f"{key}_open", ids)
        ),
        "title": column.TextColumn(
            "Title", width=_title_width(frame), help="A fork stands under the session it was forked from."
        ),
        "tags": column.MultiselectColumn(
            "Tags", options=tags, color=[_chip_color(tag) for tag in tags] or None, width=_TAGS_WIDTH
        ),
        "turns": column.NumberColumn("Turns", width=52),
        "own": column.NumberColumn(
            "Own tokens", width=84, format="localized", help="In and out, of the messages written in this session."
        ),
        "inherited": column.NumberColumn(
            "Inherited",
            width=76,
            format="localized",
            help="Tokens of the messages copied from its parent.",
        ),
        "cost": column.TextColumn(
            "Own cost",
            width=78,
            help="What was spent in this session. ≥: not all of its answers have a price. Unmetered: a local server.",
        ),
        "model": column.TextColumn("Model", width=_MODEL_WIDTH),
        "last": column.TextColumn("Last message", width=174),
        "state": column.MultiselectColumn(
            "State",
            options=states_here,
            color=[
                _STATES["unanswered"] if state.startswith("+") else _STATES.get(state, _DAMAGE) for state in states_here
            ]
            or None,
            width=_state_width(frame),
        ),
    }


def _title_width(frame: pd.DataFrame) -> int:
    """What the other columns leave of a page 1280 pixels wide."""
    optional = {"inherited": 76, "cost": 78, "state": _state_width(frame)}
    return _TITLE_AND_OPTIONAL - sum(
        width for name, width in optional.items() if frame[name].map(_says_something).any()
    )


def _state_width(frame: pd.DataFrame) -> int:
    return 124 if frame["state"].map(len).max() > 1 else 96


def _opened(key: str, ids: list[str]) -> None:
    click = st.session_state.get(key)
    if click is not None:
        st.session_state[_GO] = ids[click["row"]]


def opened() -> str | None:
    """The session whose "Open" was clicked; once."""
    session: str | None = st.session_state.pop(_GO, None)
    return session


def draw(rows: Sequence[Row], where: tzinfo) -> list[str]:
    """Draw the table and return the ids of the selected sessions."""
    ids = [row.info.id for row in rows]
    key = "sessions_table_" + hashlib.sha256(json.dumps(ids).encode()).hexdigest()[:12]
    frame = frame_of(rows, where)
    frame["title"] = [_fitted(title, _title_width(frame)) for title in frame["title"]]
    event: Any = st.dataframe(
        frame,
        key=key,
        hide_index=True,
        on_select="rerun",
        selection_mode="multi-row",
        selection_default=_carried_over(key, ids),
        column_config=_columns(frame, key, ids),
        column_order=[
            name for name in frame.columns if name not in _OPTIONAL or frame[name].map(_says_something).any()
        ],
        placeholder="–",
        height="content" if len(rows) <= _TALLEST else 34 * _TALLEST,
        alt="Sessions",
    )
    st.session_state[_SHOWN] = (key, ids)
    return [ids[row] for row in event["selection"]["rows"] if row < len(ids)]


def _says_something(value: Any) -> bool:
    return bool(value) if isinstance(value, list) else not pd.isna(value)


def _carried_over(key: str, ids: list[str]) -> Any:
    """The selection of the table drawn before, for the sessions of it that are still shown."""
    was_key, was_ids = st.session_state.get(_SHOWN, ("", []))
    if was_key in ("", key):
        return None
    before = st.session_state.get(was_key)
    selected = {was_ids[row] for row in before["selection"]["rows"] if row < len(was_ids)} if before else set()
    rows = [number for number, session in enumerate(ids) if session in selected]
    return {"selection": {"rows": rows, "columns": [], "cells": []}} if rows else None
