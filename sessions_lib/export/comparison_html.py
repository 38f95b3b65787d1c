"""A comparison as HTML, made once for the page and for the file: every text escaped, no script, no inline style.

What a person may do stands in attributes (``data-act``), which the page's script sends on and a file has not. On the
page long texts are cut, with the way to where they are whole; in a file nothing is.

Does not compare or redact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from markupsafe import Markup

from sessions_lib import names, text
from sessions_lib.compare import LETTERS, Comparison, Row, metrics, summary, wording
from sessions_lib.compare.cells import Cell, Line, Tool, shown_text
from sessions_lib.compare.settings import SYSTEM
from sessions_lib.compare.wording import FigureRow
from sessions_lib.export import comparison_text, html
from sessions_lib.export.comparison_text import IN_A_FILE, MOST_CHARACTERS, Look
from sessions_lib.export.templates import render
from sessions_lib.messages import places, tool_calls
from sessions_lib.messages.content import Message
from sessions_lib.text import visible

MOST_SHARED = 40  # messages of the shared start that the page shows when it is opened
LONG = 1_500  # characters from which the page folds a text
EDITED = "changed by a person"
MOST_EFFECTS = 12
CONTENTS_FROM = 6  # turns; a shorter file needs no list of contents
_FOLD = {"aligned": 0, "differences": 3, "changes": 1}  # this many same turns in a row become one line
_MISSING = {
    "tool": "no such call",
    "said": "nothing on the way",
    "answer": "no answer",
    "prompt": "no prompt",
    "system": "no such message",
    "note": "no such note",
    "stray": "no such result",
}
_NAMED = ("said", "system", "note", "stray")  # kinds of lines that are named; the others are seen
_ENDINGS = {"done": "Result", "failed": "Result, failed", "no result": "No result was recorded"}


def document(comparison: Comparison, picture: str = "", redacted: str = "", *, drawn: bool = True) -> str:
    """The whole comparison as one HTML file.

    ``picture`` is the map of its family (``branch_map.svg``), ``redacted`` a sentence that says what was replaced.
    """
    look = Look(drawn=drawn)
    title = " · ".join(names.one_line(branch.title) for branch in comparison.branches)
    body = render(
        "comparison_file.html",
        head=Markup(head(comparison)),
        body=Markup(body_of(comparison, look)),
        branches=_branches(comparison),
        verdict=visible(summary.verdict(comparison)),
        contents=_contents(comparison),
        picture=Markup(picture),
        redacted=redacted,
    )
    return html.page(f"Compare: {title}", body, _file_style(), wide=True)


@cache
def style_sheet() -> str:
    """The style sheet of page and file; colours are Streamlit's custom properties, which the file defines."""
    return Path(__file__).with_name("comparison.css").read_text(encoding="utf-8")


@cache
def _file_style() -> str:
    return style_sheet() + Path(__file__).with_name("comparison_file.css").read_text(encoding="utf-8")


def head(comparison: Comparison) -> str:
    """What differs, first: a sentence a branch, then the settings that differ."""
    settings = [
        {
            "name": setting.name,
            "is_long": setting.name == SYSTEM,
            "values": [
                comparison_text.pieces(value, words, IN_A_FILE)
                for value, words in zip(setting.values, setting.words, strict=True)
            ],
        }
        for setting in comparison.settings
    ]
    sentences = [visible(sentence) for sentence in summary.differs(comparison)]
    return render("comparison_head.html", sentences=sentences, settings=settings, branches=_branches(comparison))


def body_of(comparison: Comparison, look: Look) -> str:
    """Figures, the shared start, what the tools did before the fork, and the turns side by side."""
    made = parts(comparison, look, wording.figure_table(comparison))
    return render(
        "comparison.html",
        **made,
        counted_from=wording.counted_from(comparison),
        shared=_shared(comparison, look),
        effects=_effects(comparison, look),
        parted=wording.parted(comparison),
        differences=summary.differences(comparison),
        groups=list(_groups(comparison.rows[: look.rows], made["rows"], look)),
        more=len(comparison.rows) - len(made["rows"]),
    )


def parts(comparison: Comparison, look: Look, figures: Sequence[FigureRow]) -> dict[str, Any]:
    """What every template with rows is given: the look, the branches, their figures, the rows."""
    rows = comparison.rows[: look.rows]
    return {
        "look": look,
        "edited": EDITED,
        "branches": _branches(comparison),
        "figures": _figures(figures),
        "rows": [_row(number, row, look) for number, row in enumerate(rows)],
    }


def row_of(comparison: Comparison, at: int, number: int) -> int | None:
    """The row that shows turn ``number`` of the branch ``at``; if it has none there, the first one so numbered."""
    numbers = [[turn and turn.number for turn in row.turns] for row in comparison.rows]
    own = (row for row, found in enumerate(numbers) if at < len(found) and found[at] == number)
    return next(own, next((row for row, found in enumerate(numbers) if number in found), None))


def effect_text(step: tool_calls.Step) -> str:
    """One tool call of the shared start on a line, with what is known of how it ended."""
    ending = " · outcome unknown" if step.result is None else " · failed" if step.is_error else ""
    return visible(tool_calls.label(step.call)) + ending


def _branches(comparison: Comparison) -> list[dict[str, Any]]:
    return [
        {
            "letter": letter,
            "id": branch.id,
            "title": names.one_line(branch.title, 120),
            "note": wording.after_start(comparison, at) + " · answering now" * branch.is_running,
        }
        for at, (letter, branch) in enumerate(zip(LETTERS, comparison.branches, strict=False))
    ]


def _figures(table: Sequence[FigureRow]) -> list[dict[str, Any]]:
    return [
        {
            "title": row.title,
            "meaning": row.meaning,
            "cells": [
                {
                    "text": cell.text,
                    "title": " ".join(filter(None, [cell.note, row.meaning])),
                    "share": round(100 * cell.share),
                    "is_bad": row.title == metrics.TITLES["errors"] and cell.share > 0,
                    "against": "= A" if cell.delta == "=" else f"{cell.against} vs A" if cell.delta else "",
                }
                for cell in row.cells
            ],
        }
        for row in table
    ]


def _effects(comparison: Comparison, look: Look) -> list[dict[str, Any]]:
    effects = comparison.shared.effects
    most = MOST_EFFECTS if look.on_page else len(effects)
    shown = [{"text": effect_text(step), "is_bad": step.is_error} for step in effects[:most]]
    return shown + [{"text": f"and {len(effects) - most} more", "is_bad": False}] * (len(effects) > most)


def _shared(comparison: Comparison, look: Look) -> dict[str, Any]:
    shared, base = comparison.shared, comparison.branches[0]
    first = max(0, shared.messages - MOST_SHARED) if look.on_page else 0
    said = base.messages[: shared.messages]
    turns = places.turns_of(said) if look.opened else []
    return {
        "line": wording.shared(shared),
        "count": shared.messages,
        "id": base.id,
        "earlier": text.count(first, "earlier message") if first else "",
        "messages": [_shared_message(said[at], turns[at], look) for at in range(first, len(said))]
        if look.opened
        else [],
    }


def _shared_message(message: Message, turn: int, look: Look) -> dict[str, Any]:
    said = shown_text(message)
    drawn = look.drawn and message.get("role") == "assistant"
    return {
        "role": f"turn {turn} · {visible(str(message.get('role')))}",
        "is_drawn": drawn,
        "text": comparison_text.drawn(said, look) if drawn else comparison_text.pieces(said, None, look),
        "calls": [visible(tool_calls.label(call)) for call in tool_calls.calls_of(message)],
    }


def _contents(comparison: Comparison) -> list[dict[str, Any]]:
    """Each turn by its prompt, of a file that is long enough to need it."""
    if len(comparison.rows) < CONTENTS_FROM:
        return []
    found = []
    for number, row in enumerate(comparison.rows):
        prompts = [cell.text for line in row.lines if line.kind == "prompt" for cell in line.cells if cell]
        name = names.one_line(names.request_in(prompts[0]) if prompts else "", 90)
        found.append({"row": number, "label": wording.turn_label(row), "prompt": name, "is_same": row.is_same})
    return found


# --- turns -----------------------------------------------------------------------------------------------------------


def _groups(rows: Sequence[Row], made: Sequence[dict[str, Any]], look: Look) -> Iterator[dict[str, Any]]:
    """The rows; those of many same turns one after another together, with what to say of them folded."""
    fold = _FOLD[look.view]
    for is_same, run in groupby(enumerate(rows), key=lambda found: found[1].is_same):
        listed = list(run)
        is_folded = is_same and fold and len(listed) >= fold and look.here not in {number for number, _ in listed}
        yield {
            "label": _folded_label([row for _, row in listed]) if is_folded else "",
            "rows": [made[number] for number, _ in listed],
        }


def _folded_label(rows: Sequence[Row]) -> str:
    numbers = [{turn.number for turn in row.turns if turn} for row in rows]
    if any(len(found) > 1 for found in numbers):
        return f"{text.count(len(rows), 'turn')} the same"
    first, last = min(numbers[0]), min(numbers[-1])
    return f"Turn {first} is the same" if first == last else f"Turns {first} to {last} are the same"


def _row(number: int, row: Row, look: Look) -> dict[str, Any]:
    shown = [turn for turn in row.turns if turn]
    first = shown[0].number
    lines: Sequence[Line] = row.lines
    if look.view == "changes" and not row.is_same:
        lines = [line for line in lines if not line.is_same or line.kind == "prompt"]
    is_alone = any(turn is None for turn in row.turns)
    gaps = [
        "" if turn else f"turn {first} ends before the fork in {letter}" if row.is_rest else f"no such turn in {letter}"
        for letter, turn in zip(LETTERS, row.turns, strict=False)
    ]
    return {
        "number": number,
        "turn": first,
        "label": f"Turn {' · '.join(map(str, dict.fromkeys(turn.number for turn in shown)))}",
        "at": next(at for at, turn in enumerate(row.turns) if turn),
        "is_rest": row.is_rest,
        "is_same": row.is_same,
        "is_here": number == look.here,
        "gaps": gaps,
        "lines": [_line(line, gaps, look, is_alone=is_alone) for line in lines],
    }


def _line(line: Line, gaps: Sequence[str], look: Look, *, is_alone: bool) -> dict[str, Any]:
    return {
        "kind": line.kind,
        "cells": [
            None if gap else {"missing": "" if is_alone else _MISSING.get(line.kind, "")} if cell is None else
            _cell(line, cell, look, is_alone=is_alone)
            for cell, gap in zip(line.cells, gaps, strict=True)
        ],
    }  # fmt: skip


def _cell(line: Line, cell: Cell, look: Look, *, is_alone: bool) -> dict[str, Any]:
    state = "" if is_alone and cell.state == "only here" else wording.state_label(line, cell)
    kind = wording.KINDS[line.kind] if line.kind in _NAMED else ""
    is_drawn = look.drawn and line.kind in ("answer", "said")
    is_quiet = line.is_same and line.kind == "answer" and look.view != "aligned"
    return {
        "message": cell.message,
        "state": "" if look.view == "aligned" else state,
        "said": " · ".join(filter(None, [kind, *_about(cell)])),
        "is_edited": cell.is_edited,
        "reasoning": comparison_text.pieces(cell.reasoning, None, look) if cell.reasoning else None,
        "tool": _tool(cell.tool, look) if cell.tool else None,
        "is_drawn": is_drawn,
        "is_quiet": is_quiet,
        "text": comparison_text.drawn(cell.text, look)
        if is_drawn
        else comparison_text.pieces(cell.text, cell.words, look),
        "words": comparison_text.pieces(cell.text, cell.words, look)
        if is_drawn and comparison_text.is_marked(cell.words, look)
        else None,
        "is_empty": not cell.text,
        "is_long": look.on_page and len(cell.text) > LONG,
        "cut": f"{len(cell.text):,}" if look.on_page and len(cell.text) > MOST_CHARACTERS else "",
    }


def _about(cell: Cell) -> list[str]:
    return ["cut off"] * cell.is_interrupted + [EDITED] * cell.is_edited


def _tool(tool: Tool, look: Look) -> dict[str, Any]:
    whole = look._replace(view="aligned" if look.view == "aligned" else "differences")
    ending = _ENDINGS[tool.status] + ("" if tool.duration_ms is None else f" · {text.duration(tool.duration_ms)}")
    return {
        "label": visible(tool.label),
        "status": tool.status,
        "arguments": comparison_text.pieces(tool.arguments or "none", tool.argument_words, whole),
        "ending": ending,
        "result": comparison_text.pieces(tool.result, tool.result_words, whole) if tool.result else None,
    }
