"""What a stretch of a conversation took: turns, steps, tokens, time, tool calls, errors, words of its answers.

Turns and answers are those of the whole conversation, wherever the stretch begins: what follows a fork inside turn 1
belongs to turn 1. So a stretch and what stands before it add up to the whole, but for a turn that lies in both.

Each number says how many of the messages it is a sum over reported theirs: a sum is unknown (``None``) where none did,
and a lower bound where only some did.

Does not estimate, and never counts unknown as 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

from sessions_lib import messages, times
from sessions_lib.compare import word_diff
from sessions_lib.messages import content, places, usage
from sessions_lib.messages import tool_calls as calls
from sessions_lib.messages.content import Message


class Figure(NamedTuple):
    """A sum: ``value`` is ``None`` if unknown; ``known`` of the ``of`` messages it is made of reported theirs."""

    value: int | None
    known: int
    of: int

    @property
    def is_partial(self) -> bool:
        """True if some messages did not report theirs: the true sum is larger."""
        return self.value is not None and self.known < self.of


class Difference(NamedTuple):
    """One figure minus another; ``is_exact`` if both are whole sums."""

    value: int
    is_exact: bool


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a stretch. Tokens in count what each step sent, the history again each time."""

    turns: Figure
    steps: Figure
    tokens_in: Figure
    tokens_out: Figure
    time_ms: Figure
    tool_calls: Figure
    errors: Figure
    answer_words: Figure

    def items(self) -> list[tuple[str, Figure]]:
        """Each figure with its name, in order."""
        return [(field.name, getattr(self, field.name)) for field in fields(self)]


TITLES = {
    "turns": "Turns",
    "steps": "Steps",
    "tokens_in": "Tokens in",
    "tokens_out": "Tokens out",
    "time_ms": "Time",
    "tool_calls": "Tool calls",
    "errors": "Tool errors",
    "answer_words": "Words in answers",
}
MEANINGS = {
    "turns": "Turns with anything after the shared start; the one that it ends in, too.",
    "steps": "Model calls.",
    "tokens_in": "All that was sent, the history again at each step.",
    "tokens_out": "All that the model wrote, its reasoning included.",
    "time_ms": "Time of the model calls and the tools, as recorded.",
    "tool_calls": "Calls the model asked for.",
    "errors": "Tool results that say they failed.",
    "answer_words": "Words of all answers: what was said after a turn’s last tool call.",
}


def of(said: Sequence[Message], start: int = 0, end: int | None = None) -> Figures:
    """The figures of the messages from ``start`` up to ``end`` of the conversation ``said``."""
    stretch = said[start:end]
    answers = [message for message in stretch if message.get("role") == "assistant"]
    tokens = [usage.of(message) for message in answers]
    results = [message for message in stretch if message.get("role") == "tool"]
    made = sum(len(calls.calls_of(message)) for message in answers)
    words = sum(
        word_diff.word_count(content.text(said[index])) for index in _answers(said, start, start + len(stretch))
    )
    return Figures(
        turns=_counted(messages.turn_count(stretch) + (places.turn_cut_at(said, start) is not None and bool(stretch))),
        steps=_counted(len(answers)),
        tokens_in=_sum([found.input if found else None for found in tokens]),
        tokens_out=tokens_out(answers),
        time_ms=_time(answers, results),
        tool_calls=_counted(made),
        errors=_counted(sum(bool(message.get("is_error")) for message in results)),
        answer_words=_counted(words),
    )


def tokens_out(said: Sequence[Message]) -> Figure:
    """The tokens that the answers in ``said`` wrote."""
    tokens = [usage.of(message) for message in said if message.get("role") == "assistant"]
    return _sum([found.output if found else None for found in tokens])


def added(figures: Sequence[Figure]) -> Figure:
    """The sum of ``figures``: unknown if none of those that count anything is known."""
    known, of = sum(figure.known for figure in figures), sum(figure.of for figure in figures)
    return Figure(sum(figure.value or 0 for figure in figures) if known or not of else None, known, of)


def difference(figure: Figure, base: Figure) -> Difference | None:
    """``figure`` minus ``base``, ``None`` if either is unknown."""
    if figure.value is None or base.value is None:
        return None
    return Difference(figure.value - base.value, not (figure.is_partial or base.is_partial))


def _counted(number: int) -> Figure:
    return Figure(number, 0, 0)


def _sum(values: Sequence[int | None]) -> Figure:
    known = [value for value in values if value is not None]
    return Figure(sum(known) if known or not values else None, len(known), len(values))


def _time(answers: Sequence[Message], results: Sequence[Message]) -> Figure:
    """Model time is asked of every answer; the tools' is added where it was recorded."""
    model = _sum([times.milliseconds(message.get("duration_ms")) for message in answers])
    if model.value is None:
        return model
    tools = [times.milliseconds(message.get("duration_ms")) for message in results]
    return model._replace(value=model.value + sum(spent for spent in tools if spent is not None))


def _answers(said: Sequence[Message], start: int, end: int) -> list[int]:
    """The answers among the messages from ``start`` up to ``end``, by index: what a turn says after its last call."""
    found = []
    for first, last in calls.each_turn(said):
        if last <= start or first >= end:
            continue
        for index in range(last - 1, first - 1, -1):
            if said[index].get("role") == "user" or calls.calls_of(said[index]):
                break
            if said[index].get("role") == "assistant" and start <= index < end:
                found.append(index)
    return found
