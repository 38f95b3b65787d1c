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

from sessions_lib import names, times
from sessions_lib.messages import content, model_calls, places, usage
from sessions_lib.store.folder import message_heads
from sessions_lib.store.folder.message_heads import Chunk, Head

QUARTER_US = 900_000_000  # every zone's days begin at a multiple of 15 minutes UTC
NO_QUARTER = -(1 << 62) - 1  # of messages whose time is unknown: before every time that can be asked for
# The columns of ``activity`` behind its key, and where the token counts stand among them.
SUMS = (
    *("messages", "turns", "answers", "reported", "input", "cached", "output", "reasoning", "total"),
    *("tool_calls", "tool_results", "errors", "copies", "again"),
)
COUNTED = {
    name: SUMS.index(name) for name in ("input", "cached", "output", "reasoning", "total", "reported", "answers")
}
_TOKENS = range(4, 9)
_COPIES, _AGAIN = 12, 13
_MESSAGE = f"INSERT INTO messages VALUES({', '.join('?' * 21)})"
_ACTIVITY = f"INSERT OR REPLACE INTO activity VALUES({', '.join('?' * (4 + len(SUMS)))})"

_ONCE = f"INSERT OR REPLACE INTO once VALUES({', '.join('?' * (3 + len(SUMS)))})"

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
    tools: dict[str, Sums] = field(default_factory=dict)
    identities: list[str] = field(default_factory=list)
    first_new: int = 0
    _last: Head | None = None
    _pending: list[tuple[Any, ...]] = field(default_factory=list)  # of this turn, before its first time
    _waiting: dict[str, list[list[Call]]] = field(default_factory=dict)
    _models: dict[str, None] = field(default_factory=dict)
    _tools: dict[str, None] = field(default_factory=dict)
    _once: Sums = field(default_factory=list)  # all of ``activity``, once it is finished
    _own: Sums = field(default_factory=lambda: _nothing())  # of a fork's own answers

    def __post_init__(self) -> None:
        row = self.row
        self.first_new = row.messages
        self._models = dict.fromkeys(json.loads(row.models))
        self._tools = dict.fromkeys(json.loads(row.tools))
        self._waiting = json.loads(row.waiting)

    def take(self, chunk: Chunk) -> None:
        """Fold in the next messages."""
        row, rows, losers, pending = self.row, self.rows, self.losers, self._pending
        number, inherited, turn_time = row.messages, row.inherited, row.turn_time
        now: Key | None = None  # the key of ``sums``: most messages have that of the one before
        sums: Sums = []
        last = self._last
        for index, head in enumerate(chunk.heads):
            role, stamp = head.role, head.timestamp
            if number == inherited:
                row.place = self._place(last, role)
            last = head
            if role == "user":
                if row.turns:
                    self._end_turn()
                    row.turn_from, turn_time = number, None
                row.turns += 1
                if row.prompt is None and (prompt := message_heads.prompt(head)):
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
            model, tokens, spent, made, error = "", None, None, 0, 0
            if role == "assistant":
                if isinstance(head.model, str) and head.model:
                    model = head.model
                    self._models[model] = None
                if head.usage is not None:
                    tokens = usage.counts(head.usage)
                    if type(head.usage) is dict and usage.MODEL_CALLS in head.usage:
                        spent = self._spent(head.usage, model)
                if head.tool_calls:
                    made = self._made(head, number)
                if inherited and number >= inherited:
                    _add(self._own, role, tokens, 0, 0)
            elif role == "tool":
                error = int(bool(head.is_error))
                row.errors += error
                self._result(head, number)
            counts = number not in losers
            if turn_time is None:
                at = len(rows) if rows is not None else 0
                pending.append((at, role, model, tokens, spent, made, error, counts))
            else:
                key = (turn_time // QUARTER_US, model)
                if key != now:
                    now, sums = key, self._sums(key)
                if not counts:
                    _add_copy(sums, tokens)
                elif spent is None:
                    _add(sums, role, tokens, made, error)
                else:
                    self._add_several(key[0], model, spent, made)
            if rows is not None:
                place = (chunk.starts[index], chunk.ends[index] - chunk.starts[index], chunk.places[index])
                facts = (int(counts), model or None, *(tokens or _NO_TOKENS), made, error)
                times_ms = (times.milliseconds(head.duration_ms), times.milliseconds(head.first_token_ms))
                context = tokens[0] if spent is None and tokens else _context(head, model)
                told = (self.next_row, row.n, number, *place, role, turn_time, *facts, *times_ms, context, row.turns)
                rows.append(told)
                self.next_row += 1
            number += 1
        row.messages, row.turn_time, self._last = number, turn_time, last
        row.damaged += chunk.damaged
        row.offset, row.lines, row.open_line = chunk.offset, chunk.lines, int(chunk.is_open and chunk.offset > 0)
        if chunk.identities:
            self.identities += chunk.identities
            row.last_id = chunk.last_id

    def finish(self) -> None:
        """Bring the row up to what was folded in; its sums are right only without ``losers``."""
        self._end_turn()
        row = self.row
        if row.messages <= row.inherited and (self._last is not None or not row.messages):
            row.place = self._place(self._last, None)
        whole = self._once = list(map(usage.add, *self.activity.values())) if self.activity else _nothing()
        for name, place in COUNTED.items():
            found, own = whole[place], self._own[place] if row.inherited else whole[place]
            setattr(row, name, usage.add(getattr(row, name), found))
            setattr(row, "own_" + name, usage.add(getattr(row, "own_" + name), own))
        row.models, row.tools = (json.dumps(list(found), ensure_ascii=False) for found in (self._models, self._tools))
        row.waiting = json.dumps({key: stack for key, stack in self._waiting.items() if stack})
        row.unanswered = sum(len(calls) for stack in self._waiting.values() for calls in stack)
        if self.rows:
            row.last_row = self.next_row - 1

    def _place(self, last: Head | None, following: str | None) -> str:
        """Where the messages up to ``last`` end, in turns, before one of the role ``following``."""
        turn = self.row.turns
        if last is None:  # the place where they end is known, if they were stored earlier
            return places.place_behind(turn, "user" if self.row.place.startswith("inside") else "", False, following)
        has_calls = last.role == "assistant" and bool(last.tool_calls) and any(message_heads.calls_in(last))
        return places.place_behind(turn, last.role, has_calls, following)

    def _sums(self, key: Key) -> Sums:
        found = self.activity.get(key)
        if found is None:
            found = self.activity[key] = _nothing()
        return found

    def _spent(self, reported: dict[str, Any], model: str) -> dict[str, usage.Counts]:
        """What each model took of an answer; they are models of the session, too."""
        spent = dict(model_calls.by_model(reported, model))
        self._models.update(dict.fromkeys(filter(None, spent)))
        return spent

    def _add_several(self, quarter: int | None, model: str, spent: dict[str, usage.Counts], made: int) -> None:
        """An answer that several models worked on: it is its own model's answer, the tokens are each one's own."""
        _add(self._sums((quarter, model)), "assistant", spent.get(model, _NO_TOKENS), made, 0)
        for name, tokens in spent.items():
            if name != model:
                _add_tokens(self._sums((quarter, name)), tokens)

    def _end_turn(self) -> None:
        """What is still without a time stays so: its turn has none."""
        if self._pending:
            self._take_pending(None)

    def _first_time(self, moment: int) -> None:
        """The first time of a turn is that of the messages before it, too."""
        if self.row.turn_from < self.first_new:
            raise LateTime
        if self._pending:
            self._take_pending(moment)

    def _take_pending(self, moment: int | None) -> None:
        quarter = None if moment is None else moment // QUARTER_US
        for place, role, model, tokens, spent, made, error, counts in self._pending:
            sums = self._sums((quarter, model))
            if not counts:
                _add_copy(sums, tokens)
            elif spent is None:
                _add(sums, role, tokens, made, error)
            else:
                self._add_several(quarter, model, spent, made)
            if self.rows is not None and moment is not None:
                self.rows[place] = (*self.rows[place][:7], moment, *self.rows[place][8:])
        self._pending.clear()

    def _made(self, head: Head, number: int) -> int:
        by_id: dict[str, list[Call]] = {}
        for position, call_id, name, _ in message_heads.calls_in(head):
            made = [self.row.n, number, position, call_id, name, None, 0, 1, None]
            by_id.setdefault(call_id, []).append(made)
            if number not in self.losers:
                sums = self._uses(name)
                sums[0] += 1
                sums[2] += 1
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
        if call[1] not in self.losers:
            sums, took = self._uses(call[4]), times.milliseconds(head.duration_ms)
            sums[1] += bool(head.is_error)
            sums[2] -= 1
            if took is not None:
                sums[3] = (sums[3] or 0) + took
                sums[4] += 1
        call[5:] = [
            number,
            int(bool(head.is_error)),
            int(head.effect is not False),
            times.milliseconds(head.duration_ms),
        ]
        if call[1] < self.first_new and self.rows is not None:
            self.calls.append(call)  # stored earlier, answered now

    def _uses(self, tool: str) -> Sums:
        found = self.tools.get(tool)
        if found is None:
            found = self.tools[tool] = [0, 0, 0, None, 0]  # calls, failures, unanswered, milliseconds, timed
        return found

    def write_rows(self, db: sqlite3.Connection) -> None:
        """Store the rows of messages and calls, where they are wanted."""
        if self.rows is not None:
            db.executemany(_MESSAGE, self.rows)
            db.executemany("INSERT OR REPLACE INTO calls VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)", self.calls)

    def write_activity(self, db: sqlite3.Connection) -> None:
        """Add the sums to those that are stored, and those of all of them to ``once``.

        Messages without a time count when their session was last active; where that is unknown, in no day.
        """
        row, made, once = self.row, [], self._once
        if self.first_new and (
            stored := db.execute(f"SELECT {', '.join(SUMS)} FROM once WHERE session=?", (row.n,)).fetchone()
        ):
            once = list(map(usage.add, once, stored))
        if self.tools:
            self._write_tools(db)
        whenever = NO_QUARTER if row.last_active is None else row.last_active // QUARTER_US
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
        quarters = [stored[2] for stored in made if stored[4] and stored[2] > NO_QUARTER]
        ends = (min(quarters, default=None), max(quarters, default=None))
        if self.first_new:
            found = "SELECT min(quarter), max(quarter) FROM activity WHERE session=? AND messages>0 AND quarter>?"
            ends = db.execute(found, (row.n, NO_QUARTER)).fetchone()
        db.execute(_ONCE, (row.n, *ends, *once))

    def _write_tools(self, db: sqlite3.Connection) -> None:
        stored = {}
        if self.first_new:
            found = "SELECT name, calls, failures, unanswered, duration_ms, timed FROM tools WHERE session=?"
            stored = {name: sums for name, *sums in db.execute(found, (self.row.n,))}
        made = [
            (self.row.n, name, *(map(usage.add, sums, stored[name]) if name in stored else sums))
            for name, sums in self.tools.items()
        ]
        db.executemany("INSERT OR REPLACE INTO tools VALUES(?, ?, ?, ?, ?, ?, ?)", made)

    def _merge(self, key: Key, stored: Collection[Any]) -> None:
        new = self.activity.get(key)
        if new is None:
            self.activity[key] = list(stored)
        else:
            self.activity[key] = list(map(usage.add, new, stored))


_NO_TOKENS: usage.Counts = (None, None, None, None, None)


def _nothing() -> Sums:
    return [0, 0, 0, 0, None, None, None, None, None, 0, 0, 0, 0, None]


def _add(sums: Sums, role: str, tokens: usage.Counts | None, made: int, error: int) -> None:
    sums[0] += 1
    if role == "assistant":
        sums[2] += 1
        sums[9] += made
        if tokens is not None:
            sums[3] += 1
            _add_tokens(sums, tokens)
    elif role == "tool":
        sums[10] += 1
        sums[11] += error
    elif role == "user":
        sums[1] += 1


def _context(head: Head, model: str) -> int | None:
    """How long the conversation was at the answer's end: the input of its own model's last call."""
    found = model_calls.last({"role": head.role, "model": model, "usage": head.usage})
    return found.input if found else None


def _add_tokens(sums: Sums, tokens: usage.Counts) -> None:
    for place, value in zip(_TOKENS, tokens, strict=True):
        if value is not None:
            sums[place] = (sums[place] or 0) + value


def _add_copy(sums: Sums, tokens: usage.Counts | None) -> None:
    sums[_COPIES] += 1
    if tokens is not None and tokens[4] is not None:
        sums[_AGAIN] = (sums[_AGAIN] or 0) + tokens[4]
