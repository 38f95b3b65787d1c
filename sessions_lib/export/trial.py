"""A trial as one HTML file worth sending: what can be said, the rates, what differs, and every answer; no script.

Redacted as everything that leaves, unless told otherwise.
"""

from __future__ import annotations

from typing import Any

from sessions_lib.errors import SessionError
from sessions_lib.export.html import style_sheet
from sessions_lib.export.redact import NOT_REDACTED, Redaction
from sessions_lib.export.templates import render
from sessions_lib.store.session import Session
from sessions_lib.text import visible
from sessions_lib.trials import checks as checking
from sessions_lib.trials import running, table
from sessions_lib.trials.table import Row, Spread
from sessions_lib.trials.trial import Result, Trial, changed

_DIFFERS = ("model", "base_url", "temperature", "system", "session", "tools")


def html(trial: Trial, *, redacted: bool = True) -> str:
    """The file; the answers are read from the sessions of the trial, those that are gone are said to be."""
    redaction = Redaction(is_on=redacted)

    def shown(text: str) -> str:
        return visible(redaction.text(text))

    rows = table.rows(trial)
    answers = [
        {
            "variant": shown(result.variant),
            "repeat": result.repeat,
            "said": shown(result.error or {True: "passed", False: "did not pass", None: "not judged"}[result.passed]),
            "text": shown(_answer(trial, result)),
        }
        for row in rows
        for result in row.results
    ]
    return render(
        "trial.html",
        title=redaction.session_id(trial.name, [*trial.prompts]),
        style=style_sheet(),
        session=redaction.session_id(trial.session_id),
        created=trial.created[:10],
        planned=len(trial.planned()),
        prompts=[shown(prompt) for prompt in trial.prompts],
        simulated=running.SIMULATED if trial.effects == "simulated" else "",
        checks=[shown(checking.name_of(check)) for check in trial.checks],
        sentences=[shown(sentence) for sentence in table.verdicts(rows)],
        rows=[written(row, shown) for row in rows],
        answers=answers,
        redacted=redaction.sentence() if redacted else NOT_REDACTED,
    )


def written(row: Row, shown: Any) -> dict[str, Any]:
    variant, rate = row.variant, row.rate
    differs = [f"{name}: {value}" for name in _DIFFERS if (value := getattr(variant, name)) not in (None, ())]
    if variant.change:
        differs.append(f"message {variant.change[0] + 1} says: {variant.change[1]}")
    low, high = (rate.low, rate.high) if rate.low is not None and rate.high is not None else (None, None)
    return {
        "name": shown(variant.name),
        "noise": variant.is_noise,
        "differs": shown(" · ".join(differs) or "nothing"),
        "passed": table.share(rate),
        "low": None if low is None else round(low * 100, 1),
        "width": None if low is None or high is None else round((high - low) * 100, 1),
        "rate": None if rate.rate is None else round(rate.rate * 100, 1),
        "interval": "no answer yet" if low is None else f"{low:.0%} to {high:.0%}",
        "tokens": _middle(row.tokens, "{:,.0f}"),
        "seconds": _middle(row.seconds, "{:,.1f}"),
        "cost": _middle(row.dollars, "${:,.4f}") if row.dollars.median is not None else row.without_dollars,
    }


def _middle(spread: Spread, form: str) -> str:
    return "unknown" if spread.median is None else form.format(spread.median)


def _answer(trial: Trial, result: Result) -> str:
    try:
        session = Session.open(trial.store, result.session)
        return checking.run_of(session.messages[session.inherited + changed(session) :]).answer
    except SessionError as error:
        return f"({error})"
