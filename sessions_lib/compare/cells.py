"""The lines of turns that stand side by side: what each is made of, what belongs together, and what differs.

A turn is a prompt, what was said on the way, tool calls with their results, and an answer. Each is lined up with its
like in the other branches and judged against the first branch that has it.

Does not know where conversations part: that is ``compare``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from sessions_lib import times
from sessions_lib.compare import alignment, word_diff
from sessions_lib.compare.word_diff_marks import Marked
from sessions_lib.messages import content, note, tool_calls
from sessions_lib.messages.content import Message

Kind = Literal["system", "note", "prompt", "said", "tool", "answer", "stray"]
Status = Literal["done", "failed", "no result"]
State = Literal[
    "base",  # the cell that the others are compared with
    "same",
    "changed",  # alike, words marked
    "spacing changed",
    "different",  # not alike: both plain
    "arguments changed",
    "result changed",
    "status changed",
    "only here",
]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool call in a cell: on one line, its arguments and result whole, each with its changed words if alike."""

    label: str
    name: str
    arguments: str
    result: str
    status: Status
    duration_ms: int | None
    argument_words: Marked | None = None
    result_words: Marked | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """What one branch has in a line: ``message`` is its index there; ``words`` are marked where texts are alike.

    ``reasoning`` is what the model thought before it, where the provider sent that; it is not compared. ``is_edited``:
    a person changed it, or the result of its call.
    """

    message: int
    text: str
    state: State = "base"
    words: Marked | None = None
    tool: Tool | None = None
    is_interrupted: bool = False
    reasoning: str = ""
    is_edited: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a row: a cell a branch, ``None`` where it has no such line."""

    kind: Kind
    cells: tuple[Cell | None, ...]

    @property
    def is_same(self) -> bool:
        """True if every branch has it and all are the same."""
        return all(cell is not None and cell.state == "same" for cell in self.cells)


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn of one branch: its ``number`` there (from 1), and the half-open range of its messages."""

    number: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Piece:
    kind: Kind
    cell: Cell

    @property
    def keys(self) -> tuple[Any, ...]:
        """What lines it up with pieces of other branches, strongest first."""
        tool = self.cell.tool
        name = tool.name if tool else ""
        whole = (tool.arguments if tool else self.cell.text)[:5000]
        return (self.kind, name, whole), (self.kind, name), self.place

    @property
    def place(self) -> Hashable:
        """The weakest of its keys."""
        if self.kind == "said":
            return "work"
        return (self.kind, self.cell.tool.name if self.cell.tool else "")


class Pieces:
    """The pieces of any turn of one conversation; its calls are paired once."""

    def __init__(self, said: Sequence[Message]) -> None:
        self._said = said
        paired = tool_calls.pair(said)
        self._steps: dict[int, list[tool_calls.Step]] = {}
        for step in paired.steps:
            self._steps.setdefault(step.call.message, []).append(step)
        self._strays = {*paired.orphans, *paired.duplicates}

    def of(self, turn: Turn | None) -> list[_Piece]:
        """What a turn is made of, in order."""
        if turn is None:
            return []
        found: list[_Piece] = []
        for index in range(turn.start, turn.end):
            found += self._of_message(index)
        for number in range(len(found) - 1, -1, -1):  # what was said last, with no call after it, is the answer
            if found[number].kind in ("tool", "prompt"):
                break
            if found[number].kind == "said":
                found[number] = _Piece("answer", found[number].cell)
                break
        return found

    def _of_message(self, index: int) -> list[_Piece]:
        message = self._said[index]
        role, text = message.get("role"), shown_text(message)
        if role == "user":
            return [_Piece("prompt", Cell(index, text, is_edited="edited" in message))]
        if role == "tool":
            return [_Piece("stray", Cell(index, text))] if index in self._strays else []
        if role != "assistant":
            kind: Kind = "note" if note(message) else "system"
            return [_Piece(kind, Cell(index, text))] if text else []
        steps = self._steps.get(index, [])
        cut = bool(message.get("interrupted"))
        thought = content.reasoning(message)
        is_edited = "edited" in message
        said = [_Piece("said", Cell(index, text, "base", None, None, cut, thought, is_edited))]
        said = said if text or cut or not steps else []
        done = [_Piece("tool", _tool_cell(step, index)) for step in steps]
        if thought and not said:
            done[0] = _Piece("tool", replace(done[0].cell, reasoning=thought))
        return [*said, *done]


def shown_text(message: Mapping[str, Any]) -> str:
    """What ``message`` says, with a placeholder in brackets for each image, sound or file."""
    if (said := message.get("content")) and isinstance(said, str):
        return said
    parts = [part.text if part.kind == "text" else f"[{part.label}]" for part in content.parts(message)]
    return "\n".join(part for part in parts if part) or content.text(message)


def _tool_cell(step: tool_calls.Step, index: int) -> Cell:
    label = tool_calls.label(step.call)
    result = "" if step.result is None else shown_text(step.result)
    status: Status = "no result" if step.result is None else "failed" if step.is_error else "done"
    duration = None if step.result is None else times.milliseconds(step.result.get("duration_ms"))
    tool = Tool(label, step.call.name, _arguments_text(step.call), result, status, duration)
    return Cell(index, label, tool=tool, is_edited=step.result is not None and "edited" in step.result)


def _arguments_text(call: tool_calls.Call) -> str:
    """The arguments a line each, in the order of their names; as written where they are no JSON object."""
    given = tool_calls.arguments(call)
    if given is None:
        return call.arguments
    return "\n".join(f"{key}: {content.as_text(given[key])}" for key in sorted(given))


def lines(pieces: Sequence[Pieces], turns: Sequence[Turn | None]) -> tuple[Line, ...]:
    """The lines of one row: each branch's turn cut into pieces, like beside like."""
    columns = [part.of(turn) for part, turn in zip(pieces, turns, strict=True)]
    present = [turn is not None for turn in turns]
    lines = []
    for row in _lined_up(columns):
        kind = next(piece.kind for piece in row if piece)
        lines.append(Line(kind, _judged([piece.cell if piece else None for piece in row], sum(present))))
    return tuple(lines)


def _lined_up(columns: Sequence[Sequence[_Piece]]) -> Iterable[Sequence[_Piece | None]]:
    """The pieces that belong together."""
    places = [[piece.place for piece in column] for column in columns]
    if all(column == places[0] for column in places) and len(set(places[0])) == len(places[0]):
        return zip(*columns, strict=True)  # nothing to choose: one of each kind, in the same order
    found = alignment.by_keys([[piece.keys for piece in column] for column in columns])
    return [[None if i is None else column[i] for column, i in zip(columns, chosen, strict=True)] for chosen in found]


def _judged(cells: Sequence[Cell | None], branches: int) -> tuple[Cell | None, ...]:
    """The cells of one line with their states against the first of them, and their words marked."""
    held = [(at, cell) for at, cell in enumerate(cells) if cell is not None]
    judged: list[Cell | None] = list(cells)
    at, base = held[0]
    if len(held) == 1:
        judged[at] = _stated(base, "only here")
        return tuple(judged)
    for other, cell in held[1:]:
        base, judged[other] = _against(base, cell)
    is_same = len(held) == branches and all(c is None or c.state == "same" for c in judged[at + 1 :])
    judged[at] = _stated(base, "same" if is_same else "base", base.words)
    return tuple(judged)


def _against(base: Cell, cell: Cell) -> tuple[Cell, Cell]:
    """``base`` with its words that ``cell`` lacks marked too, and ``cell`` judged against it."""
    if base.tool and cell.tool:
        return _tool_against(base, base.tool, cell, cell.tool)
    if cell.text == base.text:
        same = cell.is_interrupted == base.is_interrupted
        return base, _stated(cell, "same" if same else "status changed")
    found = word_diff.difference(base.text, cell.text)
    if found.is_spacing_only:
        return base, _stated(cell, "spacing changed")
    mine, theirs = _marked(base.words, found)
    return _stated(base, "base", mine), _stated(cell, "changed" if theirs else "different", theirs)


def _stated(cell: Cell, state: State, words: Marked | None = None) -> Cell:
    """``cell`` in another state (``replace`` takes five times as long, and there is one for every cell)."""
    return Cell(cell.message, cell.text, state, words, cell.tool, cell.is_interrupted, cell.reasoning, cell.is_edited)


def _tool_against(base: Cell, first: Tool, cell: Cell, tool: Tool) -> tuple[Cell, Cell]:
    state: State = "same"
    arguments = results = (None, None)  # type: tuple[Marked | None, Marked | None]
    if tool.arguments != first.arguments:
        state = "arguments changed"
        arguments = _marked(first.argument_words, word_diff.difference(first.arguments, tool.arguments))
    if tool.result != first.result:
        state = "result changed" if state == "same" else state
        results = _marked(first.result_words, word_diff.difference(first.result, tool.result))
    if tool.status != first.status and state != "arguments changed":
        state = "status changed"
    first = replace(
        first, argument_words=arguments[0] or first.argument_words, result_words=results[0] or first.result_words
    )
    tool = replace(tool, argument_words=arguments[1], result_words=results[1])
    return replace(base, tool=first), replace(cell, tool=tool, state=state)


def _marked(before: Marked | None, found: word_diff.Difference) -> tuple[Marked | None, Marked | None]:
    """The segments of two texts; those of the first joined with the marks it has from another comparison."""
    if found.a is None:
        return before, None
    return (found.a if before is None else word_diff.union(before, found.a)), found.b
