"""A comparison, a session or a trial on a wall: HTML with a slide a turn, every text escaped, answers drawn.

Each slide is a ``section.slide``; what one can point at in it has the class ``point``, or is a line of a comparison.

Does not show them one by one: that is the page's script.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from markupsafe import Markup

from sessions_lib import names
from sessions_lib.compare import Comparison, summary, wording
from sessions_lib.compare.wording import FigureRow
from sessions_lib.export import comparison_html, html
from sessions_lib.export import facts as export_facts
from sessions_lib.export import trial as trial_export
from sessions_lib.export.comparison_text import Look
from sessions_lib.export.templates import render
from sessions_lib.messages import tool_calls
from sessions_lib.messages.content import Message
from sessions_lib.text import visible
from sessions_lib.trials import checks as checking
from sessions_lib.trials import table
from sessions_lib.trials.trial import Trial

MOST_FIGURES = 3


@cache
def style_sheet() -> str:
    """The style sheet of a presentation, that of comparisons included."""
    return comparison_html.style_sheet() + Path(__file__).with_suffix(".css").read_text(encoding="utf-8")


def of_comparison(comparison: Comparison, picture: str = "") -> str:
    """What differs and the map (``picture``, SVG, trusted) first, then a slide a turn."""
    return render(
        "presentation_comparison.html",
        **comparison_html.parts(comparison, Look(drawn=True), most_different(comparison)),
        head=Markup(comparison_html.head(comparison)),
        verdict=visible(summary.verdict(comparison)),
        picture=Markup(picture),
    )


def most_different(comparison: Comparison) -> list[FigureRow]:
    """The three figures in which the branches differ most, in the order of the table."""

    def spread(row: FigureRow) -> float:
        return max(cell.share for cell in row.cells) - min(cell.share for cell in row.cells)

    rows = [row for row in wording.figure_table(comparison) if spread(row)]
    most = sorted(rows, key=spread, reverse=True)[:MOST_FIGURES]
    return [row for row in rows if row in most]


def of_session(said: Sequence[Message], meta: Mapping[str, Any], inherited: int = 0) -> str:
    """The title with its figures, then a slide a turn: prompt, what the tools did on a line each, answer."""
    turns = []
    for number, (start, end) in enumerate(tool_calls.each_turn(said), start=1):
        turns.append({"number": number, "parts": [part for index in range(start, end) for part in _parts(said[index])]})
    return render(
        "presentation_session.html",
        title=visible(export_facts.title(said, meta)),
        facts=[visible(" · ".join(export_facts.summary(said, inherited, meta)))],
        turns=turns,
    )


def _parts(message: Message) -> list[dict[str, Any]]:
    role, said = message.get("role"), export_facts.said(message)
    if role == "user":
        return [{"kind": "prompt", "text": visible(said)}]
    if role != "assistant":
        return []  # a result stands behind its call; a note is no part of what was said
    parts: list[dict[str, Any]] = []
    if said.strip():
        parts.append({"kind": "answer", "text": Markup(html.answer(said))})
    calls = tool_calls.calls_of(message)
    return parts + [{"kind": "code", "text": visible(tool_calls.label(call))} for call in calls]


def of_trial(trial: Trial) -> str:
    """What can be said, the rates of all variants, and what was asked."""
    rows = table.rows(trial)
    return render(
        "presentation_trial.html",
        title=visible(names.one_line(trial.name)),
        sentences=[visible(sentence) for sentence in table.verdicts(rows)],
        rows=[trial_export.written(row, visible) for row in rows],
        prompts=[visible(prompt) for prompt in trial.prompts],
        checks=[visible(checking.name_of(check)) for check in trial.checks],
    )
