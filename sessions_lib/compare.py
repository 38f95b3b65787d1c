"""Two to four conversations side by side: what they share, where they parted, and how each turn differs after that.

* **Shared start**: the messages at the start that are the same in all, by identity (their ``id``, else the chained
  hash) and by what they say. Where not even the first is the same message, equal texts count, and ``Shared.basis``
  says so: such sessions are no forks of each other.
* **Rows**: the turns after the shared start, lined up by order, or by likeness so that branches that meet again stand
  side by side. A turn that the fork cut has its rest in a row of its own.
* **Lines** of a row: prompt, what was said on the way, tool calls, answer, each lined up with its like.
* **States** are those of a cell against the first branch that has the line.

Works on lists of messages. Does not read files, draw, shorten or escape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from sessions_lib import calls, content, figures, lineup, messages, usage, worddiff
from sessions_lib.content import Message
from sessions_lib.errors import SessionError
from sessions_lib.figures import Figures
from sessions_lib.worddiff import Segment

MOST = 4
LETTERS = "ABCD"
_SAID = ("role", "content", "tool_calls", "tool_call_id")

Basis = Literal["id", "text", "none"]
Order = Literal["order", "likeness"]
Kind = Literal["system", "prompt", "said", "tool", "answer", "stray"]
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
Parted = Literal["prompts", "answers", "tools", "end", "never"]


class _Conversation(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def messages(self) -> list[Message]: ...
    @property
    def meta(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Branch:
    """One conversation to compare; ``is_running`` if an answer is being written just now."""

    id: str
    title: str
    messages: Sequence[Message]
    meta: Mapping[str, Any] = field(default_factory=dict)
    is_running: bool = False

    @classmethod
    def of(cls, session: _Conversation) -> Branch:
        """A session as it is now."""
        return cls(session.id, session.title, session.messages, session.meta)


@dataclass(frozen=True, slots=True)
class Shared:
    """The shared start: how many ``messages`` and prompts, why they count as shared, their tokens.

    ``effects`` are the tool calls in it that changed the world: once, for all branches. Empty unless the messages are
    the same by identity.
    """

    messages: int
    turns: int
    basis: Basis
    tokens: usage.Totals
    effects: tuple[calls.Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool call in a cell: on one line, its arguments and result whole, each with its changed words if alike."""

    label: str
    name: str
    arguments: str
    result: str
    status: Status
    duration_ms: int | None
    argument_words: tuple[Segment, ...] | None = None
    result_words: tuple[Segment, ...] | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """What one branch has in a line: ``message`` is its index there; ``words`` are marked where texts are alike."""

    message: int
    text: str
    state: State = "base"
    words: tuple[Segment, ...] | None = None
    tool: Tool | None = None
    is_interrupted: bool = False


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
class Row:
    """Turns side by side, ``None`` for a gap; ``is_rest`` if the fork lies inside the turn and this is what follows."""

    turns: tuple[Turn | None, ...]
    lines: tuple[Line, ...]
    is_rest: bool = False

    @property
    def is_same(self) -> bool:
        """True if every branch has the turn, and says the same in it."""
        return all(turn is not None for turn in self.turns) and all(line.is_same for line in self.lines)


@dataclass(frozen=True, slots=True)
class Comparison:
    """All of it. ``first_difference`` is the number of the first row that is not the same, ``None`` if there is none.

    ``notes`` are sentences a reader has to know first: the same session twice, no shared start, an empty session…
    """

    branches: tuple[Branch, ...]
    shared: Shared
    rows: tuple[Row, ...]
    figures: tuple[Figures, ...]
    order: Order
    first_difference: int | None
    parted: Parted
    notes: tuple[str, ...]


def compare(branches: Sequence[Branch], *, order: Order = "order") -> Comparison:
    """``branches`` side by side, the first being what the others are compared with.

    ``order`` lines turns up by their place, or by ``likeness``. Raises ``SessionError`` for less than 2 or more
    than 4 branches.
    """
    if not 2 <= len(branches) <= MOST:
        raise SessionError(f"A comparison takes 2 to {MOST} sessions, not {len(branches)}. Choose some.")
    shared = shared_start([branch.messages for branch in branches])
    columns = [_turns(branch.messages, shared.messages) for branch in branches]
    rows = _rows(branches, columns, shared.messages, order)
    first = next((number for number, row in enumerate(rows) if not row.is_same), None)
    return Comparison(
        branches=tuple(branches),
        shared=shared,
        rows=tuple(rows),
        figures=tuple(figures.of(branch.messages, shared.messages) for branch in branches),
        order=order,
        first_difference=first,
        parted="never" if first is None else _parted(rows[first]),
        notes=tuple(_notes(branches, shared, first)),
    )


def shared_start(conversations: Sequence[Sequence[Message]]) -> Shared:
    """What all ``conversations`` begin with."""
    shortest = min(map(len, conversations))
    first = conversations[0]
    keys = [messages.identities(said[:shortest]) for said in conversations]
    count = 0
    while count < shortest and all(
        _is_same_message(keys, conversations, other, count) for other in range(1, len(conversations))
    ):
        count += 1
    basis: Basis = "id" if count else "none"
    if not count:
        while count < shortest and all(_says_the_same(first[count], said[count]) for said in conversations[1:]):
            count += 1
        basis = "text" if count else "none"
    start = first[:count]
    effects = calls.effects(start) if basis == "id" else []
    return Shared(count, messages.turn_count(start), basis, usage.total(start), tuple(effects))


def _is_same_message(keys: list[list[str]], said: Sequence[Sequence[Message]], other: int, index: int) -> bool:
    """The same message in the first conversation and in another one.

    An id alone does not prove it (a file may have been edited by hand), and an id that is missing does not refute it:
    then the text decides, because a copy may have been stamped with another time.
    """
    mine, theirs = said[0][index], said[other][index]
    if keys[0][index] != keys[other][index] and (index == 0 or (messages.has_id(mine) and messages.has_id(theirs))):
        return False
    return _says_the_same(mine, theirs)


def _says_the_same(mine: Message, theirs: Message) -> bool:
    """Equal but for id, time and the order of keys."""
    return mine is theirs or all(mine.get(key) == theirs.get(key) for key in _SAID)


# --- turns -----------------------------------------------------------------------------------------------------------


def _turns(said: Sequence[Message], start: int) -> list[Turn]:
    """The turns after message ``start``; the first may be the rest of one that began before."""
    before = messages.turn_count(said[:start])
    own = said[start:]
    cut = start > 0 and bool(own) and own[0].get("role") != "user"
    if not cut:
        return [Turn(before + n, start + i, start + j) for n, (i, j) in enumerate(calls.each_turn(own), start=1)]
    end = next((i for i, message in enumerate(own) if message.get("role") == "user"), len(own))
    rest = Turn(before, start, start + end)
    later = enumerate(calls.each_turn(own[end:]), start=before + 1)
    return [rest, *(Turn(n, start + end + i, start + end + j) for n, (i, j) in later)]


def _rows(branches: Sequence[Branch], columns: Sequence[list[Turn]], start: int, order: Order) -> list[Row]:
    pieces = [_Pieces(branch.messages) for branch in branches]
    rows: list[Row] = []
    is_cut = [
        bool(start and turns) and branch.messages[start].get("role") != "user"
        for branch, turns in zip(branches, columns, strict=True)
    ]
    if any(is_cut):
        rests = tuple(turns[0] if cut else None for turns, cut in zip(columns, is_cut, strict=True))
        rows.append(Row(rests, _lines(pieces, rests), is_rest=True))
        columns = [turns[1:] if cut else turns for turns, cut in zip(columns, is_cut, strict=True)]
    for chosen in _lined_up(branches, columns, order):
        turns = tuple(None if i is None else column[i] for column, i in zip(columns, chosen, strict=True))
        rows.append(Row(turns, _lines(pieces, turns)))
    return rows


def _lined_up(branches: Sequence[Branch], columns: Sequence[list[Turn]], order: Order) -> list[lineup.Row]:
    if order == "order":
        return lineup.by_order([len(column) for column in columns])
    texts = [
        [_turn_texts(branch.messages[turn.start : turn.end]) for turn in column]
        for branch, column in zip(branches, columns, strict=True)
    ]
    keys = [[(both, both[0]) for both in column] for column in texts]

    def alike(column: int, item: int, other: int, other_item: int) -> float:
        mine, theirs = texts[column][item], texts[other][other_item]
        return max(_alike(mine[0], theirs[0]), _alike(mine[1], theirs[1]))

    return lineup.by_likeness(keys, alike)


def _turn_texts(said: Sequence[Message]) -> tuple[str, str]:
    """What a turn asks and what it says last, on one line each: enough to recognise it."""
    prompt = " ".join(messages.first_prompt(said)[:2000].casefold().split())
    last = next((text for m in reversed(said) if m.get("role") == "assistant" and (text := content.text(m))), "")
    return prompt, " ".join(last[:2000].casefold().split())


def _alike(mine: str, theirs: str) -> float:
    found = worddiff.likeness(mine, theirs)
    return found if found >= worddiff.ALIKE else 0.0


# --- the lines of a row ----------------------------------------------------------------------------------------------


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
        return (self.kind, name, whole), (self.kind, name), "work" if self.kind == "said" else (self.kind, name)


class _Pieces:
    """The pieces of any turn of one conversation; its calls are paired once."""

    def __init__(self, said: Sequence[Message]) -> None:
        self._said = said
        paired = calls.pair(said)
        self._steps: dict[int, list[calls.Step]] = {}
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
                found[number] = replace(found[number], kind="answer")
                break
        return found

    def _of_message(self, index: int) -> list[_Piece]:
        message = self._said[index]
        role, text = message.get("role"), shown_text(message)
        if role == "user":
            return [_Piece("prompt", Cell(index, text))]
        if role == "tool":
            return [_Piece("stray", Cell(index, text))] if index in self._strays else []
        if role != "assistant":
            return [_Piece("system", Cell(index, text))] if text else []
        steps = self._steps.get(index, [])
        cut = bool(message.get("interrupted"))
        said = [_Piece("said", Cell(index, text, is_interrupted=cut))] if text or cut or not steps else []
        return [*said, *(_Piece("tool", _tool_cell(step, index)) for step in steps)]


def shown_text(message: Mapping[str, Any]) -> str:
    """What ``message`` says, with a placeholder in brackets for each image, sound or file."""
    parts = [part.text if part.kind == "text" else f"[{part.label}]" for part in content.parts(message)]
    return "\n".join(part for part in parts if part) or content.text(message)


def _tool_cell(step: calls.Step, index: int) -> Cell:
    label = calls.label(step.call)
    result = "" if step.result is None else shown_text(step.result)
    spent = None if step.result is None else step.result.get("duration_ms")
    status: Status = "no result" if step.result is None else "failed" if step.is_error else "done"
    duration = spent if isinstance(spent, int) and not isinstance(spent, bool) else None
    tool = Tool(label, step.call.name, _arguments_text(step.call), result, status, duration)
    return Cell(index, label, tool=tool)


def _arguments_text(call: calls.Call) -> str:
    """The arguments a line each, in the order of their names; as written where they are no JSON object."""
    given = calls.arguments(call)
    if given is None:
        return call.arguments
    return "\n".join(f"{key}: {content.as_text(given[key])}" for key in sorted(given))


def _lines(pieces: Sequence[_Pieces], turns: Sequence[Turn | None]) -> tuple[Line, ...]:
    columns = [part.of(turn) for part, turn in zip(pieces, turns, strict=True)]
    present = [turn is not None for turn in turns]
    lines = []
    for chosen in lineup.by_keys([[piece.keys for piece in column] for column in columns]):
        row = [None if i is None else column[i] for column, i in zip(columns, chosen, strict=True)]
        kind = next(piece.kind for piece in row if piece)
        lines.append(Line(kind, _judged([piece.cell if piece else None for piece in row], sum(present))))
    return tuple(lines)


def _judged(cells: Sequence[Cell | None], branches: int) -> tuple[Cell | None, ...]:
    """The cells of one line with their states against the first of them, and their words marked."""
    held = [(at, cell) for at, cell in enumerate(cells) if cell is not None]
    judged: list[Cell | None] = list(cells)
    at, base = held[0]
    if len(held) == 1:
        judged[at] = replace(base, state="only here")
        return tuple(judged)
    for other, cell in held[1:]:
        base, judged[other] = _against(base, cell)
    is_same = len(held) == branches and all(c is None or c.state == "same" for c in judged[at + 1 :])
    judged[at] = replace(base, state="same" if is_same else "base")
    return tuple(judged)


def _against(base: Cell, cell: Cell) -> tuple[Cell, Cell]:
    """``base`` with its words that ``cell`` lacks marked too, and ``cell`` judged against it."""
    if base.tool and cell.tool:
        return _tool_against(base, base.tool, cell, cell.tool)
    if cell.text == base.text:
        same = cell.is_interrupted == base.is_interrupted
        return base, replace(cell, state="same" if same else "status changed")
    found = worddiff.difference(base.text, cell.text)
    if found.is_spacing_only:
        return base, replace(cell, state="spacing changed")
    mine, theirs = _marked(base.words, found)
    return replace(base, words=mine), replace(cell, words=theirs, state="changed" if theirs else "different")


def _tool_against(base: Cell, first: Tool, cell: Cell, tool: Tool) -> tuple[Cell, Cell]:
    state: State = "same"
    arguments = results = (None, None)  # type: tuple[tuple[Segment, ...] | None, tuple[Segment, ...] | None]
    if tool.arguments != first.arguments:
        state = "arguments changed"
        arguments = _marked(first.argument_words, worddiff.difference(first.arguments, tool.arguments))
    if tool.result != first.result:
        state = "result changed" if state == "same" else state
        results = _marked(first.result_words, worddiff.difference(first.result, tool.result))
    if tool.status != first.status and state != "arguments changed":
        state = "status changed"
    first = replace(
        first, argument_words=arguments[0] or first.argument_words, result_words=results[0] or first.result_words
    )
    tool = replace(tool, argument_words=arguments[1], result_words=results[1])
    return replace(base, tool=first), replace(cell, tool=tool, state=state)


def _marked(
    before: tuple[Segment, ...] | None, found: worddiff.Difference
) -> tuple[tuple[Segment, ...] | None, tuple[Segment, ...] | None]:
    """The segments of two texts; those of the first joined with the marks it has from another comparison."""
    if found.a is None:
        return before, None
    return (found.a if before is None else worddiff.union(before, found.a)), found.b


# --- what a reader has to know first ---------------------------------------------------------------------------------


def _parted(row: Row) -> Parted:
    """What differs first in a row."""
    if any(turn is None for turn in row.turns):
        return "end"
    line = next(line for line in row.lines if not line.is_same)
    if line.kind in ("prompt", "system"):
        return "prompts"
    return "tools" if line.kind in ("tool", "stray") else "answers"


def _notes(branches: Sequence[Branch], shared: Shared, first_difference: int | None) -> list[str]:
    notes = []
    seen: dict[str, str] = {}
    for letter, branch in zip(LETTERS, branches, strict=False):
        if branch.id in seen:
            notes.append(f"{seen[branch.id]} and {letter} are the same session. Choose another one to compare.")
        seen.setdefault(branch.id, letter)
    if len(seen) == 1:
        return notes
    empty = [letter for letter, branch in zip(LETTERS, branches, strict=False) if not branch.messages]
    if empty:
        notes.append(f"{_listed(empty)} {'has' if len(empty) == 1 else 'have'} no messages yet.")
        return notes
    if shared.basis == "none":
        notes.append("These sessions share no start: they are compared turn by turn from the beginning.")
    if shared.basis == "text":
        count = "first message says" if shared.messages == 1 else f"first {shared.messages} messages say"
        notes.append(f"No copies of one another: the {count} the same, so the comparison starts after that.")
    if first_difference is None:
        notes.append("No difference: they say the same from the first message to the last.")
        return notes
    ended = [letter for letter, b in zip(LETTERS, branches, strict=False) if len(b.messages) == shared.messages]
    if ended:
        notes.append(f"{_listed(ended)} {'has' if len(ended) == 1 else 'have'} nothing after the shared start yet.")
    return notes


def _listed(letters: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(letters[:-1]), letters[-1]]))
