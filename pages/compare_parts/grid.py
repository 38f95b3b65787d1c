"""The comparison itself: figures, the shared start, effects, and the turns side by side, in one inline component.

``grid.js`` sets text only. Long texts are cut here, at the edge, with a link to where they are whole; characters that
turn a line round are shown as ``⟦U+202E⟧``.

Does not compare: that is ``sessions_lib.compare``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import streamlit as st

from sessions_lib import names, text
from sessions_lib.compare import LETTERS, Comparison, Row, metrics, wording
from sessions_lib.compare.cells import Cell, Line, Tool, shown_text
from sessions_lib.compare.word_diff_marks import Marked
from sessions_lib.messages import places, tool_calls
from sessions_lib.text import visible

_HERE = Path(__file__).parent
View = Literal["aligned", "differences", "changes"]

MOST_CHARACTERS = 12_000  # of one text
MOST_SHARED = 40  # messages of the shared start that are shown when it is opened
MOST_ROWS = 300
_FOLD = {"aligned": 0, "differences": 3, "changes": 1}  # this many same turns in a row become one line
_KEEP = 60  # characters of common text beside a change, where the rest is left out


@st.cache_resource(show_spinner=False)
def _component() -> Any:
    return st.components.v2.component(
        "forkbook_grid",
        html="<div class='grid-root'></div>",
        css=(_HERE / "grid.css").read_text(encoding="utf-8"),
        js=(_HERE / "grid.js").read_text(encoding="utf-8"),
    )


def grid(
    comparison: Comparison,
    *,
    view: View,
    key: str,
    picked: Callable[[dict[str, Any]], None],
    opened: bool = False,
    turn: tuple[int, int] | None = None,
    rows: int = MOST_ROWS,
) -> None:
    """Draw ``comparison``; ``opened`` shows the shared start, ``turn`` (of a branch, its number) is scrolled to.

    ``picked`` is called with what a person asks for: ``{"act": "shared"}``, ``{"act": "turn", "turn": 4, "id": …}``,
    ``{"act": "rows"}`` or ``{"act": "open", "id": …, "message": …}``.
    """

    def chosen() -> None:
        found = (st.session_state.get(key) or {}).get("pick")
        if isinstance(found, dict):
            picked(found)

    sent = data(comparison, view, opened=opened, turn=turn, rows=rows)
    _component()(key=key, data=sent, on_pick_change=chosen, height="content")


def data(
    comparison: Comparison, view: View, *, opened: bool, turn: tuple[int, int] | None, rows: int
) -> dict[str, Any]:
    """What travels to the browser."""
    return {
        "branches": [
            {
                "letter": letter,
                "id": branch.id,
                "title": names.one_line(branch.title, 120),
                "running": branch.is_running,
                "note": wording.after_start(comparison, at),
            }
            for at, (letter, branch) in enumerate(zip(LETTERS, comparison.branches, strict=False))
        ],
        "figures": _figures(comparison),
        "of": wording.counted_from(comparison),
        "shared": _shared(comparison, opened),
        "effects": [{"text": effect_text(step), "failed": step.is_error} for step in comparison.shared.effects],
        "parted": wording.parted(comparison),
        "rows": [_row(row, view) for row in comparison.rows[:rows]],
        "more": max(0, len(comparison.rows) - rows),
        "fold": _FOLD[view],
        "view": view,
        "here": None if turn is None else _row_of(comparison, *turn),
    }


def _row_of(comparison: Comparison, at: int, number: int) -> int | None:
    """The row that shows turn ``number`` of the branch ``at``; if it has none there, the first one so numbered."""
    numbers = [[turn and turn.number for turn in row.turns] for row in comparison.rows]
    own = (row for row, found in enumerate(numbers) if at < len(found) and found[at] == number)
    return next(own, next((row for row, found in enumerate(numbers) if number in found), None))


def _figures(comparison: Comparison) -> list[dict[str, Any]]:
    return [
        {
            "title": row.title,
            "meaning": row.meaning,
            "failures": row.title == metrics.TITLES["errors"],
            "cells": [cell._asdict() for cell in row.cells],
        }
        for row in wording.figure_table(comparison)
    ]


def _shared(comparison: Comparison, opened: bool) -> dict[str, Any]:
    shared = comparison.shared
    first = max(0, shared.messages - MOST_SHARED)
    base = comparison.branches[0]
    turns = places.turns_of(base.messages[: shared.messages]) if opened else []
    return {
        "line": wording.shared(shared),
        "count": shared.messages,
        "open": opened,
        "id": base.id,
        "earlier": first,
        "messages": [
            {
                "role": str(message.get("role")),
                "text": _cut(shown_text(message)),
                "calls": [visible(tool_calls.label(call)) for call in tool_calls.calls_of(message)],
                "turn": turns[index],
            }
            for index, message in enumerate(base.messages[first : shared.messages], start=first)
        ]
        if opened
        else [],
    }


def effect_text(step: tool_calls.Step) -> str:
    """One tool call of the shared start on a line, with what is known of how it ended."""
    ending = " · outcome unknown" if step.result is None else " · failed" if step.is_error else ""
    return visible(tool_calls.label(step.call)) + ending


def _row(row: Row, view: View) -> dict[str, Any]:
    return {
        "turns": [
            None if turn is None else {"n": turn.number, "from": turn.start, "to": turn.end} for turn in row.turns
        ],
        "rest": row.is_rest,
        "same": row.is_same,
        "lines": [_line(line, view) for line in row.lines],
    }


def _line(line: Line, view: View) -> dict[str, Any]:
    return {
        "kind": line.kind,
        "same": line.is_same,
        "cells": [None if cell is None else _cell(cell, view) for cell in line.cells],
    }


def _cell(cell: Cell, view: View) -> dict[str, Any]:
    sent: dict[str, Any] = {"state": cell.state, "message": cell.message}
    if cell.tool:
        sent["tool"] = _tool(cell.tool, marks=view != "aligned")
    else:
        sent["text"] = _text(cell.text, cell.words, view)
    if cell.reasoning:
        sent["reasoning"] = _cut(cell.reasoning)
    if cell.is_interrupted:
        sent["interrupted"] = True
    if len(cell.text) > MOST_CHARACTERS:
        sent["cut"] = len(cell.text)
    return sent


def _tool(tool: Tool, *, marks: bool) -> dict[str, Any]:
    return {
        "label": visible(tool.label),
        "status": tool.status,
        "time": "" if tool.duration_ms is None else text.duration(tool.duration_ms),
        "arguments": _text(tool.arguments, tool.argument_words if marks else None, "differences"),
        "result": _text(tool.result, tool.result_words if marks else None, "differences"),
    }


def _text(text: str, words: Marked | None, view: View) -> Any:
    """A text, or a list of ``[text, is changed]``; changed is 2 for what is left out."""
    if words is None or view == "aligned" or not words.is_changed:
        return _cut(text)
    segments: list[list[Any]] = []
    spent = 0
    stretches = words.segments
    for number, segment in enumerate(stretches):
        shown = segment.text[: MOST_CHARACTERS - spent]
        spent += len(segment.text)
        if view == "changes" and not segment.changed:
            segments += _without_middle(shown, is_first=number == 0, is_last=number == len(stretches) - 1)
        elif shown:
            segments.append([visible(shown), int(segment.changed)])
        if spent >= MOST_CHARACTERS:
            segments.append(["…", 2])
            break
    return segments


def _without_middle(text: str, *, is_first: bool, is_last: bool) -> list[list[Any]]:
    """Common text shortened to what stands beside a change."""
    if len(text) <= _KEEP * 3:
        return [[visible(text), 0]]
    head = "" if is_first else text[:_KEEP].rsplit(" ", 1)[0]
    tail = "" if is_last else text[-_KEEP:].split(" ", 1)[-1]
    left_out = len(text[len(head) : len(text) - len(tail)].split())
    return [[visible(head), 0], [f" … {left_out} words the same … ", 2], [visible(tail), 0]]


def _cut(text: str) -> str:
    return visible(text if len(text) <= MOST_CHARACTERS else text[:MOST_CHARACTERS] + "…")
