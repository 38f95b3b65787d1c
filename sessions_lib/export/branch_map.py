"""The branch map as a picture: SVG with no script and no inline style, in the colours of the file it stands in.

Does not lay out: that is ``sessions_lib.compare.branch_map``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from sessions_lib import names
from sessions_lib.compare import LETTERS, wording
from sessions_lib.compare.branch_map import Branch, Lane, Map
from sessions_lib.export.templates import render

_HEIGHT, _NAMES, _STEP, _SUM = 32, 300, 60, 200  # px: of a lane, for names, between turns, for what stands behind
_SMALL, _LARGE = 3.6, 9.5  # the radius of a turn without tokens, and of the one with the most
_FIT = 38  # characters of a title


def svg(drawn: Map, shown: Sequence[str], title: Callable[[Branch], str]) -> str:
    """``drawn`` as SVG; ``shown`` are the sessions that are compared, in order: they have letters and colours.

    ``title`` is what a branch is called in the file: no prompt, and no title that was not given back, stands in it.
    """
    step = min(_STEP, max(14, 700 / max(drawn.width, 1)))

    def x(place: float) -> float:
        return round(_NAMES + 18 + place * step, 1)

    def y(lane: int) -> float:
        return 12 + (lane + 0.5) * _HEIGHT

    kinds = [_kind(lane, shown) for lane in drawn.lanes]
    lines = [
        {"kind": kinds[at], "x1": x(lane.x), "x2": x(lane.end), "y": y(at)}
        for at, lane in enumerate(drawn.lanes)
        if lane.x is not None and lane.end is not None and lane.end > lane.x
    ]
    lines += [{"kind": "hidden", "x1": x(cut.x), "x2": x(cut.end), "y": y(cut.lane)} for cut in drawn.stretches]
    links = [{"kind": kinds[k.lane], "d": _path(x(k.from_x), y(k.from_lane), x(k.x), y(k.lane))} for k in drawn.links]
    begins = {link.lane: link.x for link in drawn.links}
    return render(
        "branch_map.html",
        width=math.ceil(x(drawn.width) + _SUM),
        height=24 + len(drawn.lanes) * _HEIGHT + (16 if drawn.left_out else 0),
        links=links,
        lines=lines,
        lanes=[
            _lane(lane, y(at), x(lane.end or begins.get(at, 0.0)), shown, title(lane.branch))
            for at, lane in enumerate(drawn.lanes)
        ],
        dots=[
            {
                "kind": kinds[dot.lane],
                "x": x(dot.x),
                "y": y(dot.lane),
                "r": round(_SMALL + (_LARGE - _SMALL) * math.sqrt(dot.size or 0), 1),
                "said": f"Turn {dot.turn.number} · {wording.turn_mark(dot.turn)}",
            }
            for dot in drawn.dots
        ],
        left_out=drawn.left_out,
    )


def _kind(lane: Lane, shown: Sequence[str]) -> str:
    return f"b{shown.index(lane.branch.id)}" if lane.branch.id in shown else "other"


def _lane(lane: Lane, y: float, end: float, shown: Sequence[str], title: str) -> dict[str, Any]:
    here = lane.branch
    return {
        "kind": _kind(lane, shown),
        "letter": LETTERS[shown.index(here.id)] if here.id in shown else "",
        "indent": 14 + min(lane.depth, 4) * 9,
        "title": names.one_line(title, _FIT),
        "own": wording.lane(lane),
        "end": end,
        "y": y,
    }


def _path(x0: float, y0: float, x1: float, y1: float) -> str:
    """From a place on one lane down, with a bend, to a place on another."""
    if x1 <= x0:
        return f"M{x0} {y0} V{y1}"
    bend = min(10.0, x1 - x0, abs(y1 - y0) / 2)
    return f"M{x0} {y0} V{y1 - bend} Q{x0} {y1} {x0 + bend} {y1} H{x1}"
