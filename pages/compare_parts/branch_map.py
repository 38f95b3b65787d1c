"""The branch map: every branch of the families at hand as lanes of turns; a click puts one into the comparison.

One inline component (``branch_map.js``), drawn with SVG elements and text nodes only. What it shows is laid out by
``sessions_lib.compare.branch_map``; it sends back what a person picked.

Does not load sessions or change the page's address.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from sessions_lib import names, text
from sessions_lib.compare import wording
from sessions_lib.compare.branch_map import FEW_LANES, Lane, Map

_HERE = Path(__file__).parent
_TITLE = 200  # characters of a title that travel to the browser, for the hover


@st.cache_resource(show_spinner=False)
def _component() -> Any:
    return st.components.v2.component(
        "forkbook_branch_map",
        html="<div class='map'></div>",
        css=(_HERE / "branch_map.css").read_text(encoding="utf-8"),
        js=(_HERE / "branch_map.js").read_text(encoding="utf-8"),
    )


def branch_map(
    drawn: Map,
    shown: Sequence[str],
    *,
    key: str,
    picked: Callable[[dict[str, Any]], None],
    most: int = 4,
    is_few: bool = False,
) -> None:
    """Draw the map; ``shown`` are the sessions in the comparison, in order; ``is_few``: more lanes can be asked for.

    ``picked`` is called with what was chosen: ``{"act": "base" | "second" | "add" | "turn" | "open", "id": …}`` and,
    for a turn, its ``turn`` number and ``message`` index; ``{"act": "lanes", "id": ""}`` asks for all lanes, or few.
    """

    def chosen() -> None:
        found = (st.session_state.get(key) or {}).get("pick")
        if isinstance(found, dict) and isinstance(found.get("id"), str):
            picked(found)

    _component()(key=key, data=data(drawn, shown, most, is_few=is_few), on_pick_change=chosen, height="content")


def data(drawn: Map, shown: Sequence[str], most: int = 4, *, is_few: bool = False) -> dict[str, Any]:
    """What travels to the browser; ``is_few``: the branches left out can be asked for."""
    return {
        "lanes": [_lane(lane, shown) for lane in drawn.lanes],
        "dots": [
            {
                "lane": dot.lane,
                "x": dot.x,
                "size": dot.size,
                "turn": dot.turn.number,
                "message": dot.turn.start,
                "tokens": wording.turn_mark(dot.turn),
                "failed": dot.turn.failed,
                "prompt": dot.turn.prompt,
                "rest": dot.turn.is_rest,
            }
            for dot in drawn.dots
        ],
        "links": [{"fromLane": k.from_lane, "fromX": k.from_x, "lane": k.lane, "x": k.x} for k in drawn.links],
        "stretches": [{"lane": s.lane, "x": s.x, "end": s.end, "turns": s.turns} for s in drawn.stretches],
        "width": drawn.width,
        "leftOut": drawn.left_out,
        "isFew": is_few,
        "canFold": len(drawn.lanes) > FEW_LANES,
        "canAdd": len(shown) < most,
    }


def _lane(lane: Lane, shown: Sequence[str]) -> dict[str, Any]:
    here = lane.branch
    return {
        "id": here.id,
        "title": names.one_line(here.title, _TITLE),
        "place": shown.index(here.id) if here.id in shown else None,
        "depth": lane.depth,
        "x": lane.x,
        "end": lane.end,
        "turns": text.count(lane.turns, "turn") + " of its own",
        "tokens": wording.tokens_out(lane.tokens),
        "own": wording.lane(lane),
        "verdict": here.verdict,
        "missing": here.is_missing,
        "running": here.is_running,
    }
