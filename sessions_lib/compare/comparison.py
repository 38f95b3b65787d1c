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

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from sessions_lib import messages
from sessions_lib.compare import alignment, word_diff
from sessions_lib.compare import metrics as figures
from sessions_lib.compare.cells import Line, Pieces, Turn, lines, shown_text
from sessions_lib.compare.metrics import Figures
from sessions_lib.errors import SessionError
from sessions_lib.messages import content, encoding, tool_calls, usage
from sessions_lib.messages.content import Message

MOST = 4
LETTERS = "ABCD"
_SAID = ("role", "content", "tool_calls", "tool_call_id")

Basis = Literal["id", "text", "none"]
Order = Literal["order", "likeness"]
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
    effects: tuple[tool_calls.Step, ...] = ()


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
    with encoding.without_gc():  # every cell lives on: walking them again and again takes a tenth of the time
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
    said_by_all = 0
    while said_by_all < shortest and all(
        _says_the_same(first[said_by_all], said[said_by_all]) for said in conversations[1:]
    ):
        said_by_all += 1
    keys = [messages.identities(said[:said_by_all]) for said in conversations]
    count = 0
    while count < said_by_all and all(
        _is_same_message(keys, conversations, other, count) for other in range(1, len(conversations))
    ):
        count += 1
    basis: Basis = "id" if count else "text" if said_by_all else "none"
    count = count or said_by_all
    start = first[:count]
    effects = tool_calls.effects(start) if basis == "id" else []
    return Shared(count, messages.turn_count(start), basis, usage.total(start), tuple(effects))


def _is_same_message(keys: list[list[str]], said: Sequence[Sequence[Message]], other: int, index: int) -> bool:
    """True if messages that say the same are the same message: of the first conversation and of another one.

    An id alone does not prove it (a file may have been edited by hand), and an id that is missing does not refute it:
    then the text decides, because a copy may have been stamped with another time.
    """
    if keys[0][index] == keys[other][index]:
        return True
    return index > 0 and not (messages.has_id(said[0][index]) and messages.has_id(said[other][index]))


def _says_the_same(mine: Message, theirs: Message) -> bool:
    """Equal but for id, time, and the form another tool may have given a copy: keys in another order, a text as a list
    of one part, no content for an empty one, arguments spaced otherwise, other call ids."""
    if mine is theirs or all(mine.get(key) == theirs.get(key) for key in _SAID):
        return True
    return mine.get("role") == theirs.get("role") and _content(mine) == _content(theirs)


def _content(message: Message) -> tuple[object, ...]:
    made = [(call, tool_calls.arguments(call)) for call in tool_calls.calls_of(message)]
    return (
        shown_text(message),
        [part for part in content.parts(message) if part.kind != "text"],
        [(call.name, call.arguments if given is None else json.dumps(given, sort_keys=True)) for call, given in made],
    )


# --- turns -----------------------------------------------------------------------------------------------------------


def _turns(said: Sequence[Message], start: int) -> list[Turn]:
    """The turns after message ``start``; the first may be the rest of one that began before."""
    before = messages.turn_count(said[:start])
    own = said[start:]
    cut = start > 0 and bool(own) and own[0].get("role") != "user"
    if not cut:
        return [Turn(before + n, start + i, start + j) for n, (i, j) in enumerate(tool_calls.each_turn(own), start=1)]
    end = next((i for i, message in enumerate(own) if message.get("role") == "user"), len(own))
    rest = Turn(before, start, start + end)
    later = enumerate(tool_calls.each_turn(own[end:]), start=before + 1)
    return [rest, *(Turn(n, start + end + i, start + end + j) for n, (i, j) in later)]


def _rows(branches: Sequence[Branch], columns: Sequence[list[Turn]], start: int, order: Order) -> list[Row]:
    pieces = [Pieces(branch.messages) for branch in branches]
    rows: list[Row] = []
    is_cut = [
        bool(start and turns) and branch.messages[start].get("role") != "user"
        for branch, turns in zip(branches, columns, strict=True)
    ]
    if any(is_cut):
        rests = tuple(turns[0] if cut else None for turns, cut in zip(columns, is_cut, strict=True))
        rows.append(Row(rests, lines(pieces, rests), is_rest=True))
        columns = [turns[1:] if cut else turns for turns, cut in zip(columns, is_cut, strict=True)]
    for chosen in _lined_up(branches, columns, order):
        turns = tuple(None if i is None else column[i] for column, i in zip(columns, chosen, strict=True))
        rows.append(Row(turns, lines(pieces, turns)))
    return rows


def _lined_up(branches: Sequence[Branch], columns: Sequence[list[Turn]], order: Order) -> list[alignment.Row]:
    if order == "order":
        return alignment.by_order([len(column) for column in columns])
    texts = [
        [_turn_texts(branch.messages[turn.start : turn.end]) for turn in column]
        for branch, column in zip(branches, columns, strict=True)
    ]
    keys = [[(both, both[0]) for both in column] for column in texts]

    def alike(column: int, item: int, other: int, other_item: int) -> float:
        mine, theirs = texts[column][item], texts[other][other_item]
        return max(_alike(mine[0], theirs[0]), _alike(mine[1], theirs[1]))

    return alignment.by_likeness(keys, alike)


def _turn_texts(said: Sequence[Message]) -> tuple[str, str]:
    """What a turn asks and what it says last, on one line each: enough to recognise it."""
    prompt = " ".join(messages.first_prompt(said)[:2000].casefold().split())
    last = next((text for m in reversed(said) if m.get("role") == "assistant" and (text := content.text(m))), "")
    return prompt, " ".join(last[:2000].casefold().split())


def _alike(mine: str, theirs: str) -> float:
    found = word_diff.likeness(mine, theirs)
    return found if found >= word_diff.ALIKE else 0.0


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
