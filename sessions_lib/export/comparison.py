"""A comparison to keep or to print: for a terminal, as JSON, as Markdown, as one HTML file (``comparison_html``).

Whole texts everywhere; what steers a terminal, Markdown or HTML is shown as typed.

Does not compare, and does not write files.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from sessions_lib import names
from sessions_lib.compare import LETTERS, Comparison, Row, summary, wording
from sessions_lib.compare.cells import Cell
from sessions_lib.compare.word_diff_marks import Segment
from sessions_lib.export import comparison_html
from sessions_lib.export import markdown as export_markdown
from sessions_lib.export.redact import Redaction
from sessions_lib.messages import command_output, tool_calls
from sessions_lib.prices import Spent
from sessions_lib.text import visible

html = comparison_html.document

_BOLD, _DIM, _END = "\x1b[1m", "\x1b[2m", "\x1b[0m"
_COLOURS = ("\x1b[94m", "\x1b[36m", "\x1b[33m", "\x1b[35m")


def file_name(comparison: Comparison, extension: str, redaction: Redaction | None = None) -> str:
    """A file name for an export: both titles, as they leave with ``redaction``, as every system takes it."""
    shown = [branch.title if redaction is None else redaction.title(branch) for branch in comparison.branches[:2]]
    titles = " and ".join(names.one_line(title, 40) for title in shown)
    return names.file_name(f"Compare {titles}", extension)


def title(comparison: Comparison) -> str:
    """The titles of the branches in a line."""
    return " · ".join(
        f"{letter} {names.one_line(branch.title)}" for letter, branch in zip(LETTERS, comparison.branches, strict=False)
    )


# --- terminal --------------------------------------------------------------------------------------------------------


def terminal(comparison: Comparison, width: int = 80, *, colour: bool = False) -> str:
    """The comparison for a terminal ``width`` columns wide, every line ended.

    Words that differ stand in ``[-…-]`` in the first branch and in ``{+…+}`` in the others, as in ``git diff
    --word-diff``; with ``colour`` they have their branch's colour instead.
    """
    return "".join(f"{line.rstrip()}\n" for line in _terminal(comparison, max(width, 40), colour))


def _terminal(comparison: Comparison, width: int, colour: bool) -> Iterator[str]:
    for at, branch in enumerate(comparison.branches):
        named = names.one_line(branch.title, max(20, width - len(branch.id) - 6))
        yield f"{_letter(at, colour)}  {branch.id} · {named}"
    yield ""
    for note in (*comparison.notes, *summary.differs(comparison), visible(summary.verdict(comparison))):
        yield from textwrap.wrap(note, width)
    yield from _terminal_settings(comparison, width, colour)
    yield ""
    yield from _figures_table(comparison)
    yield ""
    yield f"Shared start: {wording.shared(comparison.shared)}"
    if comparison.shared.effects:
        yield "Before the fork, once for all:"
        yield from (f"  {comparison_html.effect_text(step)}" for step in comparison.shared.effects)
    yield f"{wording.parted(comparison)} · {summary.differences(comparison)}"
    for row in comparison.rows:
        yield ""
        yield from _terminal_row(comparison, row, width, colour)


def _letter(at: int, colour: bool) -> str:
    return f"{_COLOURS[at]}{_BOLD}{LETTERS[at]}{_END}" if colour else LETTERS[at]


def _terminal_settings(comparison: Comparison, width: int, colour: bool) -> Iterator[str]:
    if comparison.settings:
        yield ""
        yield "Settings that differ"
    for setting in comparison.settings:
        for at, (value, words) in enumerate(zip(setting.values, setting.words, strict=True)):
            shown = visible(value) if words is None else "".join(_terminal_segment(one, at, colour) for one in words)
            name = f"{setting.name if at == 0 else '':<14} {_letter(at, colour)}  "
            yield from textwrap.wrap(" ".join(shown.split()), width, initial_indent=name, subsequent_indent=" " * 18)


def _figures_table(comparison: Comparison) -> Iterator[str]:
    rows = [(wording.counted_from(comparison), *LETTERS[: len(comparison.branches)])]
    rows += [(row.title, *map(_with_delta, row.cells)) for row in wording.figure_table(comparison)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]
        )


def _terminal_row(comparison: Comparison, row: Row, width: int, colour: bool) -> Iterator[str]:
    heading = f"── {wording.turn_label(row)} "
    yield heading + "─" * max(0, width - len(heading))
    for letter, turn in zip(LETTERS, row.turns, strict=False):
        if turn is None:
            yield f"   {letter}  (no such turn)"
    for line in row.lines:
        held = [(at, cell) for at, cell in enumerate(line.cells) if cell]
        if line.is_same:
            yield from _terminal_cell("=", wording.KINDS[line.kind], "", held[0][1], held[0][1].words, width, False)
            continue
        for at, cell in held:
            state = "" if any(turn is None for turn in row.turns) else wording.state_label(line, cell)
            words = _shown_words(cell)
            yield from _terminal_cell(
                _letter(at, colour), wording.KINDS[line.kind], state, cell, words, width, colour, at
            )


def _terminal_cell(
    mark: str,
    kind: str,
    state: str,
    cell: Cell,
    words: Sequence[Segment] | None,
    width: int,
    colour: bool,
    at: int = 0,
) -> Iterator[str]:
    ending = "" if cell.tool is None or cell.tool.status == "done" else cell.tool.status
    said = " · ".join(filter(None, [kind, state, ending, "cut off" if cell.is_interrupted else "", edited(cell)]))
    yield f"{mark}  {_DIM}{said}{_END}" if colour else f"{mark}  {said}"
    text = visible(cell.text)
    if words:
        text = "".join(_terminal_segment(segment, at, colour) for segment in words)
    for paragraph in text.split("\n"):
        yield from textwrap.wrap(paragraph, width - 3, initial_indent="   ", subsequent_indent="   ") or [""]
    if cell.tool and cell.state in ("result changed", "status changed"):
        result = names.one_line(command_output.gist(cell.tool.result), max(20, width - 8))
        yield f"   → {result}"


def _terminal_segment(segment: Segment, at: int, colour: bool) -> str:
    text = visible(segment.text)
    if not segment.changed:
        return text
    if colour:
        return f"{_COLOURS[at]}{text}{_END}"
    return f"[-{text}-]" if at == 0 else f"{{+{text}+}}"


# --- JSON ------------------------------------------------------------------------------------------------------------


def as_json(comparison: Comparison) -> dict[str, Any]:
    """The comparison as plain JSON values: branches, notes, shared start, figures, rows with their lines and states."""
    return {
        "branches": [
            {"letter": letter, "id": branch.id, "title": branch.title, "messages": len(branch.messages)}
            for letter, branch in zip(LETTERS, comparison.branches, strict=False)
        ],
        "differs": summary.differs(comparison),
        "settings": {setting.name: list(setting.values) for setting in comparison.settings},
        "differences": comparison.differences,
        "verdict": summary.verdict(comparison) or None,
        "notes": list(comparison.notes),
        "shared": {
            "messages": comparison.shared.messages,
            "turns": comparison.shared.turns,
            "basis": comparison.shared.basis,
            "tokens": asdict(comparison.shared.tokens),
            **_json_money(comparison.shared.money),
            "effects": [tool_calls.label(step.call) for step in comparison.shared.effects],
        },
        "parted": comparison.parted,
        "sentence": wording.parted(comparison),
        "order": comparison.order,
        "money": [_json_money(money) for money in comparison.money],
        "figures": [{name: figure._asdict() for name, figure in found.items()} for found in comparison.figures],
        "rows": [_json_row(row) for row in comparison.rows],
    }


def _json_money(money: Spent) -> dict[str, Any]:
    return {"cost_usd": money.cost, "unpriced_tokens": money.unpriced, "unmetered_tokens": money.unmetered}


def _json_row(row: Row) -> dict[str, Any]:
    return {
        "same": row.is_same,
        "rest": row.is_rest,
        "turns": [None if turn is None else asdict(turn) for turn in row.turns],
        "lines": [
            {"kind": line.kind, "cells": [None if cell is None else _json_cell(cell) for cell in line.cells]}
            for line in row.lines
        ],
    }


def _json_cell(cell: Cell) -> dict[str, Any]:
    found: dict[str, Any] = {"message": cell.message, "state": cell.state, "text": cell.text}
    if cell.reasoning:
        found["reasoning"] = cell.reasoning
    if cell.words is not None:
        found["words"] = [[segment.text, segment.changed] for segment in cell.words]
    if cell.tool is not None:
        tool = cell.tool
        found["tool"] = {
            "name": tool.name,
            "arguments": tool.arguments,
            "result": tool.result,
            "status": tool.status,
            "duration_ms": tool.duration_ms,
        }
    if cell.is_interrupted:
        found["interrupted"] = True
    if cell.is_edited:
        found["edited"] = True
    return found


# --- Markdown --------------------------------------------------------------------------------------------------------


def markdown(comparison: Comparison) -> str:
    """The comparison as Markdown: a table of figures, then turn by turn; texts in fences, so that nothing runs."""
    return "\n".join(_markdown(comparison)).rstrip() + "\n"


def _markdown(comparison: Comparison) -> Iterator[str]:
    yield "# Comparison\n"
    for letter, branch in zip(LETTERS, comparison.branches, strict=False):
        named = export_markdown.inline(names.one_line(branch.title, 200))
        yield f"- **{letter}** {named} ({export_markdown.code(branch.id)})"
    yield ""
    for note in comparison.notes:
        yield f"{export_markdown.inline(note)}\n"
    for sentence in summary.differs(comparison):
        yield f"**{export_markdown.inline(sentence)}**\n"
    if verdict := summary.verdict(comparison):
        yield f"{export_markdown.inline(verdict)}\n"
    letters = LETTERS[: len(comparison.branches)]
    if comparison.settings:
        yield "| Settings that differ | " + " | ".join(letters) + " |"
        yield "|---|" + "---|" * len(letters)
        for setting in comparison.settings:
            cells = (export_markdown.inline(names.one_line(value, 300)).replace("|", "\\|") for value in setting.values)
            yield f"| {setting.name} | " + " | ".join(cells) + " |"
        yield ""
    yield f"| {wording.counted_from(comparison)} | " + " | ".join(letters) + " |"
    yield "|---|" + "---:|" * len(letters)
    for figure in wording.figure_table(comparison):
        yield f"| {figure.title} | " + " | ".join(map(_with_delta, figure.cells)) + " |"
    yield f"\n## Shared start\n\n{wording.shared(comparison.shared)}\n"
    if comparison.shared.effects:
        yield "Before the fork, once for all:\n"
        yield from (
            f"- {export_markdown.code(comparison_html.effect_text(step))}" for step in comparison.shared.effects
        )
        yield ""
    yield f"**{wording.parted(comparison)}** · {summary.differences(comparison)}\n"
    for row in comparison.rows:
        yield from _markdown_row(row)


def _markdown_row(row: Row) -> Iterator[str]:
    yield f"## {wording.turn_label(row)}\n"
    for letter, turn in zip(LETTERS, row.turns, strict=False):
        if turn is None:
            yield f"*{letter} has no such turn.*\n"
    for line in row.lines:
        held = [(at, cell) for at, cell in enumerate(line.cells) if cell]
        if line.is_same:
            yield f"**All** · {wording.KINDS[line.kind]}\n\n{export_markdown.fence(held[0][1].text)}\n"
            continue
        for at, cell in held:
            state = "" if any(turn is None for turn in row.turns) else wording.state_label(line, cell)
            ending = cell.tool.status if cell.tool and cell.tool.status != "done" else ""
            said = " · ".join(filter(None, [wording.KINDS[line.kind], state, ending, edited(cell)]))
            yield f"**{LETTERS[at]}** · {said}\n\n{export_markdown.fence(cell.text)}\n"
            if cell.tool and cell.state in ("result changed", "status changed"):
                yield f"Result:\n\n{export_markdown.fence(cell.tool.result)}\n"


# --- what the formats share ------------------------------------------------------------------------------------------


def edited(cell: Cell) -> str:
    """That a person changed what stands there; ``""`` if nobody did."""
    return comparison_html.EDITED if cell.is_edited else ""


def _with_delta(cell: wording.FigureCell) -> str:
    return f"{cell.text} ({cell.against})" if cell.delta else cell.text


def _shown_words(cell: Cell) -> Sequence[Segment] | None:
    return cell.words if cell.words and cell.words.is_changed else None
