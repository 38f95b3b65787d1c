"""Messages on their way into one session's rows: counts, tokens, calls and times, continued from what is stored.

A session that grew costs what was added to it. What counts once over all files (``losers`` are the copies that do not)
is summed by quarter of an hour and model in ``activity``, so numbers of days and models need no message rows; these
are made only where ``rows`` is wanted.

Does not read files, and does not begin or end transactions.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from sessions_lib import content, heads, names, times, usage
from sessions_lib.heads import Chunk, Head

QUARTER_US = 900_000_000  # every zone's days begin at a multiple of 15 minutes UTC
COUNTED = ("input", "cached", "output", "reasoning", "total", "reported", "answers")
# The columns of ``activity`` behind its key, and where the token counts stand among them.
SUMS = (
    *("messages", "turns", "answers", "reported", "input", "cached", "output", "reasoning", "total"),
    *("tool_calls", "tool_results", "errors", "copies", "again"),
)
_TOKENS = range(4, 9)
_COPIES, _AGAIN = 12, 13
_MESSAGE = f"INSERT INTO messages VALUES({', '.join('?' * 19)})"
_ACTIVITY = f"INSERT OR REPLACE INTO activity VALUES({', '.join('?' * (4 + len(SUMS)))})"

Call = list[Any]  # a row of ``calls``: session, message, position, id, name, result, error, effect, duration_ms
Sums = list[Any]
Key = tuple[int | None, str]  # quarter (None: no time is known), model


class LateTime(Exception):
    """A stored message without a time gets one from a later message of its turn: the session has to be read again."""


@dataclass(slots=True)
class Fold:
    """New messages of the session whose row is ``row``."""

    row: Any  # catalog_rows.Row
    losers: Collection[int] = ()
    rows: list[tuple[Any, ...]] | None = None  # of ``messages``, where they are wanted
    next_row: int = 0
    calls: list[Call] = field(default_factory=list)
    activity: dict[Key, Sums] = field(default_factory=dict)
    identities: list[str] = field(default_factory=list)
    first_new: int = 0
    _pending: list[tuple[Any, ...]] = field(default_factory=list)  # of this turn, before its first time
    _waiting: dict[str, list[list[Call]]] = field(default_factory=dict)
    _models: dict[str, None] = field(default_factory=dict)
    _tools: dict[str, None] = field(default_factory=dict)
    _whole: Sums = field(default_factory=list)  # in the order of COUNTED
    _own: Sums = field(default_factory=list)

    def __post_init__(self) -> None:
        row = self.row
        self.first_new = row.messages
        self._models = dict.fromkeys(json.loads(row.models))
        self._tools = dict.fromkeys(json.loads(row.tools))
        self._waiting = json.loads(row.waiting)
        self._whole = [getattr(row, name) for name in COUNTED]
        self._own = [getattr(row, "own_" + name) for name in COUNTED]

    def take(self, chunk: Chunk) -> None:
        """Fold in the next messages."""
        row, rows, losers = self.row, self.rows, self.losers
        number = row.messages
        inherited, turn_time = row.inherited, row.turn_time
        for index, head in enumerate(chunk.heads):
            role, stamp = head.role, head.timestamp
            if role == "user":
                if row.turns:
                    self._end_turn()
                    row.turn_from, turn_time = number, None
                row.turns += 1
                if row.prompt is None and (prompt := heads.prompt(head)):
                    row.prompt = names.title_from(prompt)
            moment = None if stamp is None else times.microseconds(stamp)
            if moment is not None:
                if turn_time is None:
                    self._first_time(moment)
                turn_time = row.said_time = moment
                if row.max_time is None or moment > row.max_time:
                    row.max_time = moment
                if row.first_time is None:
                    row.first_time = moment
            model, tokens, made, error = "", None, 0, 0
            if role == "assistant":
                model, tokens, made = self._answer(head, number, number >= inherited)
            elif role == "tool":
                error = int(bool(head.is_error))
                row.errors += error
                self._result(head, number)
            counts = number not in losers
            if turn_time is None:
                self._pending.append((len(rows) if rows is not None else 0, role, model, tokens, made, error, counts))
            else:
                self._add(turn_time // QUARTER_US, role, model, tokens, made, error, counts)
            if rows is not None:
                rows.append(
                    (
                        self.next_row,
                        row.n,
                        number,
                        chunk.starts[index],
                        chunk.ends[index] - chunk.starts[index],
                        chunk.places[index],
                        role,
                        turn_time,
                        int(counts),
                        model or None,
                        *(tokens or _NO_TOKENS),
                        made,
                        error,
                        milliseconds(head.duration_ms),
                        milliseconds(head.first_token_ms),
                    )
                )
                self.next_row += 1
            number += 1
        row.messages, row.turn_time = number, turn_time
        row.damaged += chunk.damaged
        row.offset, row.lines, row.open_line = chunk.offset, chunk.lines, int(chunk.is_open and chunk.offset > 0)
        if chunk.identities:
            self.identities += chunk.identities
            row.last_identity = chunk.identities[-1]

    def finish(self) -> None:
        """Bring the row up to what was folded in."""
        self._end_turn()
        row = self.row
        for name, whole, own in zip(COUNTED, self._whole, self._own, strict=True):
            setattr(row, name, whole)
            setattr(row, "own_" + name, own)
        row.models, row.tools = (json.dumps(list(found), ensure_ascii=False) for found in (self._models, self._tools))
        row.waiting = json.dumps({key: stack for key, stack in self._waiting.items() if stack})
        row.unanswered = sum(len(calls) for stack in self._waiting.values() for calls in stack)
        if self.rows:
            row.last_row = self.next_row - 1

    def _end_turn(self) -> None:
        """What is still without a time stays so: its turn has none."""
        for _, *figures in self._pending:
            self._add(None, *figures)
        self._pending.clear()

    def _first_time(self, moment: int) -> None:
        """The first time of a turn is that of the messages before it, too."""
        if self.row.turn_from < self.first_new:
            raise LateTime
        for place, *figures in self._pending:
            self._add(moment // QUARTER_US, *figures)
            if self.rows is not None:
                self.rows[place] = (*self.rows[place][:7], moment, *self.rows[place][8:])
        self._pending.clear()

    def _add(
        self,
        quarter: int | None,
        role: str,
        model: str,
        tokens: usage.Counts | None,
        made: int,
        error: int,
        counts: bool,
    ) -> None:
        sums = self.activity.get((quarter, model))
        if sums is None:
            sums = self.activity[quarter, model] = [0, 0, 0, 0, None, None, None, None, None, 0, 0, 0, 0, None]
        if not counts:
            sums[_COPIES] += 1
            if tokens and tokens[4] is not None:
                sums[_AGAIN] = (sums[_AGAIN] or 0) + tokens[4]
            return
        sums[0] += 1
        if role == "user":
            sums[1] += 1
        elif role == "assistant":
            sums[2] += 1
            sums[9] += made
            if tokens:
                sums[3] += 1
                for place, value in zip(_TOKENS, tokens, strict=True):
                    if value is not None:
                        sums[place] = (sums[place] or 0) + value
        elif role == "tool":
            sums[10] += 1
            sums[11] += error

    def _answer(self, head: Head, number: int, is_own: bool) -> tuple[str, usage.Counts | None, int]:
        model = head.model
        if not isinstance(model, str):
            model = ""
        if model:
            self._models[model] = None
        tokens = usage.counts(head.usage)
        for sums in (self._whole, self._own) if is_own else (self._whole,):
            if tokens:
                for place, value in enumerate(tokens):
                    if value is not None:
                        sums[place] = (sums[place] or 0) + value
                sums[5] += 1
            sums[6] += 1
        return model, tokens, self._made(head, number) if head.tool_calls else 0

    def _made(self, head: Head, number: int) -> int:
        by_id: dict[str, list[Call]] = {}
        for position, call_id, name in heads.calls_in(head):
            made = [self.row.n, number, position, call_id, name, None, 0, 1, None]
            by_id.setdefault(call_id, []).append(made)
            if self.rows is not None:
                self.calls.append(made)
            if name:
                self._tools[name] = None
        for call_id, made_calls in by_id.items():
            self._waiting.setdefault(call_id, []).append(made_calls)
        count = sum(map(len, by_id.values()))
        self.row.calls += count
        return count

    def _result(self, head: Head, number: int) -> None:
        """The result answers the latest message with such a call open, as ``calls.pair`` has it."""
        stack = self._waiting.get(content.as_text(head.tool_call_id))
        if not stack:
            return
        call = stack[-1].pop(0)
        if not stack[-1]:
            stack.pop()
        call[5:] = [number, int(bool(head.is_error)), int(head.effect is not False), milliseconds(head.duration_ms)]
        if call[1] < self.first_new and self.rows is not None:
            self.calls.append(call)  # stored earlier, answered now

    def write_rows(self, db: sqlite3.Connection) -> None:
        """Store the rows of messages and calls, where they are wanted."""
        if self.rows is not None:
            db.executemany(_MESSAGE, self.rows)
            db.executemany("INSERT OR REPLACE INTO calls VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)", self.calls)

    def write_activity(self, db: sqlite3.Connection) -> None:
        """Add the sums to those that are stored. Messages without a time count when their session was last active."""
        row, made = self.row, []
        whenever = (row.last_active or 0) // QUARTER_US
        if self.first_new:
            for model, *stored in db.execute(
                f"SELECT model, {', '.join(SUMS)} FROM activity WHERE session=? AND untimed=1", (row.n,)
            ):
                self._merge((None, model), stored)
            db.execute("DELETE FROM activity WHERE session=? AND untimed=1", (row.n,))
            stored_key = (
                f"SELECT {', '.join(SUMS)} FROM activity WHERE session=? AND untimed=0 AND quarter=? AND model=?"
            )
            for key in [key for key in self.activity if key[0] is not None]:
                if (found := db.execute(stored_key, (row.n, *key)).fetchone()) is not None:
                    self._merge(key, found)
        for (quarter, model), sums in self.activity.items():
            place = (1, whenever) if quarter is None else (0, quarter)
            made.append((row.n, *place, model, *sums))
        db.executemany(_ACTIVITY, made)

    def _merge(self, key: Key, stored: Collection[Any]) -> None:
        new = self.activity.get(key)
        if new is None:
            self.activity[key] = list(stored)
        else:
            self.activity[key] = [_plus(a, b) for a, b in zip(new, stored, strict=True)]


_NO_TOKENS = (None,) * 5


def _plus(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else a + b


def milliseconds(value: Any) -> int | None:
    """A duration as the rows hold it; ``None`` for what is none."""
    if value is None or isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        return None
    return round(value)
