"""A comparison as one HTML file: opens offline, light and dark, prints, needs no script and runs none.

It stands in the same document as an exported session (``export_html.page``): every text is escaped, and a policy in the
file forbids everything but its own style sheet.

Does not compare or shorten.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from sessions_lib import names
from sessions_lib.compare import LETTERS, Comparison, Row, wording
from sessions_lib.compare.cells import Cell, Line, Tool, shown_text
from sessions_lib.compare.word_diff_marks import Segment
from sessions_lib.export import html
from sessions_lib.messages import tool_calls

_text = html.text


def document(comparison: Comparison) -> str:
    """The whole comparison as one HTML document."""
    title = " · ".join(names.one_line(branch.title) for branch in comparison.branches)
    return html.page(f"Compare: {title}", "\n".join(_body(comparison)), _style(), wide=True)


@cache
def _style() -> str:
    return Path(__file__).with_suffix(".css").read_text(encoding="utf-8")


def _body(comparison: Comparison) -> Iterator[str]:
    yield "<header><h1>Comparison</h1>"
    for at, branch in enumerate(comparison.branches):
        yield f'<p class="facts b{at}">{_badge(at)} {_text(names.one_line(branch.title, 200))} · {_text(branch.id)}</p>'
    yield "</header>"
    for note in comparison.notes:
        yield f'<p class="note">{_text(note)}</p>'
    yield from _figures(comparison)
    yield from _shared(comparison)
    yield f'<p class="parted">{_text(wording.parted(comparison))}</p>'
    yield f'<div class="scroll n{len(comparison.branches)}"><div class="heads">'
    for at, branch in enumerate(comparison.branches):
        yield f'<div class="b{at}">{_badge(at)} <span>{_text(names.one_line(branch.title, 120))}</span></div>'
    yield "</div>"
    for row in comparison.rows:
        yield from _row(row)
    yield "</div>"


def _badge(at: int) -> str:
    return f'<span class="badge">{LETTERS[at]}</span>'


def _figures(comparison: Comparison) -> Iterator[str]:
    table = wording.figure_table(comparison)
    heads = "".join(f'<th title="{_text(row.meaning)}">{row.title}</th>' for row in table)
    counted = wording.counted_from(comparison)
    yield f'<div class="scroll"><table class="figures"><thead><tr><th>{counted}</th>{heads}</tr></thead>'
    for at, branch in enumerate(comparison.branches):
        cells = []
        for cell in (row.cells[at] for row in table):
            against = f"<small>{_text(cell.delta)}{'' if cell.delta == '=' else ' vs'} A</small>" if cell.delta else ""
            cells.append(f'<td title="{_text(cell.note)}">{_text(cell.text)}{against}</td>')
        name = _text(names.one_line(branch.title, 60))
        yield f'<tr class="b{at}"><th>{_badge(at)} {name}</th>{"".join(cells)}</tr>'
    yield "</table></div>"


def _shared(comparison: Comparison) -> Iterator[str]:
    shared = comparison.shared
    if shared.messages:
        yield f"<details><summary>Shared start · {_text(wording.shared(shared))}</summary><div>"
        for message in comparison.branches[0].messages[: shared.messages]:
            made = "\n".join(tool_calls.label(call) for call in tool_calls.calls_of(message))
            said = "\n".join(filter(None, [shown_text(message), made]))
            yield f'<p class="facts">{_text(str(message.get("role")))}</p><p class="text">{_text(said)}</p>'
        yield "</div></details>"
    if shared.effects:
        yield '<p class="facts">Before the fork, once for all:</p><ul class="tags">'
        for step in shared.effects:
            ending = " · outcome unknown" if step.result is None else " · failed" if step.is_error else ""
            kind = ' class="failed"' if step.is_error else ""
            yield f"<li{kind}>{_text(tool_calls.label(step.call) + ending)}</li>"
        yield "</ul>"


def _row(row: Row) -> Iterator[str]:
    yield f"<h2>{_text(wording.turn_label(row))}{' · the same' if row.is_same else ''}</h2>"
    yield '<div class="row">'
    is_gap = [turn is None for turn in row.turns]
    for number, line in enumerate(row.lines):
        for at, cell in enumerate(line.cells):
            if is_gap[at]:
                yield f'<div class="gap">{LETTERS[at]} has no such turn</div>' if number == 0 else "<div></div>"
            else:
                yield _cell(line, cell, at, is_alone=any(is_gap))
    yield "</div>"


def _cell(line: Line, cell: Cell | None, at: int, *, is_alone: bool) -> str:
    if cell is None:
        return f'<div class="cell nothing b{at}"></div>'
    state = "" if is_alone and cell.state == "only here" else wording.state_label(line, cell)
    cut = "cut off" if cell.is_interrupted else ""
    said = " · ".join(filter(None, [wording.KINDS[line.kind], state, cut]))
    facts = f'<p class="facts">{_text(said)}</p>'
    body = _tool(cell.tool) if cell.tool else f'<p class="text">{_segments(cell.words, cell.text)}</p>'
    return f'<div class="cell {line.kind} b{at}">{facts}{_reasoning(cell)}{body}</div>'


def _reasoning(cell: Cell) -> str:
    if not cell.reasoning:
        return ""
    return f'<details><summary>Reasoning</summary><p class="text">{_text(cell.reasoning)}</p></details>'


def _tool(tool: Tool) -> str:
    kind = "facts failed" if tool.status == "failed" else "facts"
    ending = "" if tool.status == "done" else f' <span class="{kind}">{tool.status}</span>'
    return (
        f"<details><summary><code>{_text(tool.label)}</code>{ending}</summary><div>"
        f'<p class="facts">Arguments</p><pre>{_segments(tool.argument_words, tool.arguments)}</pre>'
        f'<p class="facts">Result</p><pre>{_segments(tool.result_words, tool.result)}</pre></div></details>'
    )


def _segments(words: Sequence[Segment] | None, whole: str) -> str:
    if words is None:
        return _text(whole)
    return "".join(
        f'<mark class="mark">{_text(segment.text)}</mark>' if segment.changed else _text(segment.text)
        for segment in words
    )
