"""Two to four conversations side by side: what they share, where they parted, and how each turn differs after that.

* **Shared start**: the messages at the start that are the same in all, by identity (their ``id``, else the chained
  hash) and by what they say. Where not even the first is the same message, equal texts count, and ``Shared.basis``
  says so: such sessions are no forks of each other.
* **Rows**: the turns after the shared start. Equal prompts stand side by side, the turns between them by their place;
  or, by likeness, only turns that are alike. A turn that the fork cut has its rest in a row of its own.
* **Lines** of a row: prompt, what was said on the way, tool calls, answer, each lined up with its like.
* **States** are those of a cell against the first branch that has the line.

Works on lists of messages. Does not read files, draw, shorten or escape.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal, Protocol

from sessions_lib import messages, prices
from sessions_lib.compare import alignment, settings, word_diff
from sessions_lib.compare import metrics as figures
from sessions_lib.compare.cells import Line, Pieces, Turn, lines, shown_text
from sessions_lib.compare.metrics import Figures
from sessions_lib.errors import SessionError
from sessions_lib.messages import content, encoding, places, tool_calls, usage
from sessions_lib.messages.content import Message
from sessions_lib.prices import NOTHING, Spent

MOST = 4
LETTERS = "ABCD"
_SAME_PROMPT = 0.8  # likeness from which two prompts are one, typed again
_SAID = ("role", "content", "tool_calls", "tool_call_id")

Basis = Literal["id", "text", "none"]
Order = Literal["prompts", "likeness"]
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
    """The shared start: how many ``messages`` and prompts, why they count as shared, their tokens and money.

    ``effects`` are the tool calls in it that changed the world: once, for all branches. Empty unless the messages are
    the same by identity.
    """

    messages: int
    turns: int
    basis: Basis
    tokens: usage.Totals
    effects: tuple[tool_calls.Step, ...] = ()
    money: Spent = NOTHING


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
    """All of it. ``money`` is what each branch spent after the shared start; ``settings`` are those that differ.

    ``first_difference`` is the number of the first row that is not the same, ``None`` if there is none.
    ``notes`` are sentences a reader has to know first: the same session twice, no shared start, an empty session…
    """

    branches: tuple[Branch, ...]
    shared: Shared
    rows: tuple[Row, ...]
    figures: tuple[Figures, ...]
    money: tuple[Spent, ...]
    order: Order
    first_difference: int | None
    parted: Parted
    notes: tuple[str, ...]
    settings: tuple[settings.Setting, ...] = ()

    @property
    def differences(self) -> int:
        """In how many rows something differs."""
        return sum(not row.is_same for row in self.rows)


def compare(branches: Sequence[Branch], *, order: Order = "prompts") -> Comparison:
    """``branches`` side by side, the first being what the others are compared with.

    ``order`` lines turns up by equal ``prompts`` and place, or by ``likeness``. Raises ``SessionError`` for less than
    2 or more than 4 branches.
    """
    if not 2 <= len(branches) <= MOST:
        raise SessionError(f"A comparison takes 2 to {MOST} sessions, not {len(branches)}. Choose some.")
    shared = shared_start([branch.messages for branch in branches])
    first_branch = branches[0]
    shared = replace(shared, money=prices.of(first_branch.messages, first_branch.meta, 0, shared.messages))
    columns = [_turns(branch.messages, shared.messages) for branch in branches]
    with encoding.without_gc():  # every cell lives on: walking them again and again takes a tenth of the time
        rows = _rows(branches, columns, shared.messages, order)
    first = next((number for number, row in enumerate(rows) if not row.is_same), None)
    return Comparison(
        branches=tuple(branches),
        shared=shared,
        rows=tuple(rows),
        figures=tuple(figures.of(branch.messages, shared.messages) for branch in branches),
        money=tuple(prices.of(branch.messages, branch.meta, shared.messages) for branch in branches),
        order=order,
        first_difference=first,
        parted="never" if first is None else _parted(rows[first]),
        notes=tuple(_notes(branches, shared, first)),
        settings=settings.differing(branches, shared.messages),
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
    keys = [messages.ids(said[:said_by_all]) for said in conversations]
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
    numbered = enumerate(tool_calls.each_turn(said), start=1)
    return [Turn(number, max(first, start), end) for number, (first, end) in numbered if end > start]


def _rows(branches: Sequence[Branch], columns: Sequence[list[Turn]], start: int, order: Order) -> list[Row]:
    pieces = [Pieces(branch.messages) for branch in branches]
    rows: list[Row] = []
    is_cut = [places.turn_cut_at(branch.messages, start) is not None for branch in branches]
    if any(is_cut):
        rests = tuple(turns[0] if cut else None for turns, cut in zip(columns, is_cut, strict=True))
        rows.append(Row(rests, lines(pieces, rests), is_rest=True))
        columns = [turns[1:] if cut else turns for turns, cut in zip(columns, is_cut, strict=True)]
    for chosen in _lined_up(branches, columns, order):
        turns = tuple(None if i is None else column[i] for column, i in zip(columns, chosen, strict=True))
        rows.append(Row(turns, lines(pieces, turns)))
    return rows


def _lined_up(branches: Sequence[Branch], columns: Sequence[list[Turn]], order: Order) -> list[alignment.Row]:
    said = [
        [branch.messages[turn.start : turn.end] for turn in column]
        for branch, column in zip(branches, columns, strict=True)
    ]
    prompts = [[_short(messages.first_prompt(turn)) for turn in column] for column in said]
    answer = cache(lambda column, item: _short(_last_said(said[column][item])))

    def alike(column: int, item: int, other: int, other_item: int) -> float:
        mine, theirs = prompts[column][item], prompts[other][other_item]
        if order == "prompts":  # the same prompt, typed again
            return _alike(mine, theirs, _SAME_PROMPT)
        return max(_alike(mine, theirs), _alike(answer(column, item), answer(other, other_item)))

    keys = _turn_keys(prompts, answer)
    return alignment.by_likeness(keys, alike, then_by_place=order == "prompts")


def _turn_keys(prompts: Sequence[Sequence[str]], answer: Callable[[int, int], str]) -> list[list[alignment.Keys]]:
    """What lines turns up, strongest first: a prompt that is said once, prompt and answer, the prompt.

    "Go on" is said often and lines up nothing by itself. A prompt without words (a picture) has no key of its own.
    """
    counts = [Counter(column) for column in prompts]
    repeated = {prompt for column in counts for prompt, count in column.items() if count > 1}
    keys: list[list[alignment.Keys]] = []
    for column, here in enumerate(prompts):
        keys.append([])
        for item, prompt in enumerate(here):
            none = (column, item)
            once = prompt if prompt and counts[column][prompt] == 1 else none
            both = (prompt, answer(column, item)) if prompt in repeated else none
            keys[-1].append((once, both, prompt or none))
    return keys


def _short(text: str) -> str:
    """Enough of ``text`` to recognise it, on one line."""
    return " ".join(text[:2000].casefold().split())


def _last_said(turn: Sequence[Message]) -> str:
    return next((text for m in reversed(turn) if m.get("role") == "assistant" and (text := content.text(m))), "")


def _alike(mine: str, theirs: str, least: float = word_diff.ALIKE) -> float:
    found = word_diff.likeness(mine, theirs)
    return found if found >= least else 0.0


# --- what a reader has to know first ---------------------------------------------------------------------------------


def _parted(row: Row) -> Parted:
    """What differs first in a row."""
    if any(turn is None for turn in row.turns):
        return "end"
    line = next(line for line in row.lines if not line.is_same)
    if line.kind in ("prompt", "system", "note"):
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
