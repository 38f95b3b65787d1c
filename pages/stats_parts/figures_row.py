"""The figures of a range in one row, each against the period before."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd
import streamlit as st

from pages.shared.money import shown
from pages.shared.safe_markdown import safe_label
from sessions_lib import prices, text
from sessions_lib.prices import NOTHING
from sessions_lib.store.numbers import Figures

_NAMED = 6  # models named in a sentence; the table of models has all


def short(number: float) -> str:
    """A count that is read from the back of a room: ``950``, ``12.3k``, ``4.6M``."""
    for size, unit in ((1e9, "B"), (1e6, "M"), (1e4, "k")):
        if number >= size:
            return f"{number / (1e3 if unit == 'k' else size):.1f}{unit}"
    return f"{number:,.0f}"


def change(now: float | None, before: float | None) -> str | None:
    """``+12%``, ``14×`` against the period before; ``None`` where that or this is unknown, or both are nothing."""
    if now is None or before is None:
        return None
    if not before:
        return "new" if now else None
    return f"{now / before:,.0f}×" if now >= 3 * before else f"{(now - before) / before:+.0%}"


def rows(now: Figures, before: Figures | None) -> Sequence[tuple[str, str, str | None, str]]:
    """Each figure as (name, value, change, what it means)."""
    tokens, rate = now.tokens.total, now.error_rate

    def since(figure: Callable[[Figures], float | None]) -> str | None:
        return change(figure(now), figure(before)) if before else None

    return [
        ("Sessions", short(now.sessions), since(lambda f: f.sessions), "With a message in these days."),
        ("Turns", short(now.turns), since(lambda f: f.turns), "Prompts, each once."),
        (
            "Tokens",
            "unknown" if tokens is None else short(tokens),
            since(lambda f: f.tokens.total),
            "As the providers reported them, each message once, however many forks hold it.",
        ),
        (
            "Cost",
            prices.said(now.money, now.tokens),
            since(lambda f: f.money.cost),
            "What the answers of these days cost, each message once, at the prices of their day.",
        ),
        ("Tool calls", short(now.tool_calls), since(lambda f: f.tool_calls), "Each once."),
        (
            "Tool error rate",
            "–" if rate is None else f"{rate:.1%}",
            since(lambda f: f.error_rate),
            "The share of tool results that say the tool failed.",
        ),
        ("Forks", short(now.forks), since(lambda f: f.forks), "Of these sessions."),
        (
            "First token",
            text.duration(now.first_token_ms),
            since(lambda f: f.first_token_ms),
            "The median time until an answer began, where it was recorded.",
        ),
    ]


def draw(now: Figures, before: Figures | None) -> None:
    """Draw the figures. More is neither good nor bad, so no change is green or red."""
    with st.container(key="stats_figures"):
        columns = st.columns(8, gap="small")
    for column, (name, value, delta, meaning) in zip(columns, rows(now, before), strict=True):
        column.metric(name, shown(value), delta, delta_color="off", help=meaning, border=True, height="stretch")


def what_counts(now: Figures) -> str:
    """What the tokens are, in a sentence or two."""
    answers = now.tokens
    said = [f"{answers.reported:,} of {answers.answers:,} answers reported usage."] if answers.answers else []
    if now.sent_again:
        again = f" ({shown(text.money(now.money_again.cost))})" if now.money_again.cost is not None else ""
        said.append(f"Forks hold {short(now.sent_again)} tokens again{again}, which are not added.")
    return " ".join(said)


def what_has_no_price(now: Figures, models: pd.DataFrame) -> str:
    """The models without a price or a meter with their tokens, and which prices these are; empty without any money."""
    if now.money == NOTHING:
        return ""
    said = []
    for column, lack in (("unpriced", "have no price"), ("unmetered", "are not metered")):
        lacking = models[models[column] > 0].sort_values(column, ascending=False)
        names = [safe_label(str(model), 60) for model in lacking["model"].head(_NAMED)]
        few = [f"{short(tokens)} of {name}" for tokens, name in zip(lacking[column], names, strict=False)]
        few += [f"{len(lacking) - _NAMED} more models"] if len(lacking) > _NAMED else []
        said += [f"{text.listed(few)} {lack}"] if few else []
    lacking_one = f"Of the tokens, {', '.join(said)}. " if said else ""
    borrowed = "".join(f"{safe_label(one, 160)}. " for one in prices.borrowed_by(models["model"])[:_NAMED])
    return f"{lacking_one}{borrowed}Prices: {prices.version()}."
