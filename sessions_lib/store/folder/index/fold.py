"""Messages on their way into one session's rows: times, tokens, calls, continued from what is stored.

A session that grew costs what was added to it. Each message becomes a row; what is summed is summed from the rows, in
SQL (see ``sums``).

Does not read files, and does not begin or end transactions.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, field
from typing import Any

from sessions_lib import names, price_table, prices, times
from sessions_lib.messages import content, model_calls, places, usage
from sessions_lib.store.folder import message_heads
from sessions_lib.store.folder.message_heads import Chunk, Head

BILLED = ("tier", "host", "step", "read", "written", "written_1h", "searches")  # what a price depends on
MESSAGE = (
    *("row", "session", "number", "start", "length", "place", "role", "time", "counts", "identity", "model"),
    *("input", "cached", "output", "reasoning", "total", "several", "calls", "error"),
    *("duration_ms", "first_token_ms", "context", "turn"),
    *BILLED,
)
_TIME = MESSAGE.index("time")
_INSERT = f"INSERT INTO messages({', '.join(MESSAGE)}) VALUES({', '.join('?' * len(MESSAGE))})"
_NOT_BILLED = ("", "", 0, 0, 0, 0, 0)
_INSERT_CALL = f"INSERT INTO model_calls VALUES({', '.join('?' * 15)})"
_UNKNOWN: usage.Counts = (None, None, None, None, None)

Call = list[Any]  # a row of ``calls``: session, message, position, id, name, result, error, effect, duration_ms


@dataclass(slots=True)
class Fold:
    """New messages of the session whose row is ``row``; ``next_row`` is the number that the next message's row gets."""

    row: Any  # rows.Row
    next_row: int
    settings: tuple[str, str] = ("", "")  # the address and the model that the session's metadata names
    messages: list[list[Any]] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    model_calls: list[tuple[Any, ...]] = field(default_factory=list)
    identities: list[int] = field(default_factory=list)
    _first_new: int = 0
    _last: Head | None = None
    _late: tuple[int, int] | None = None  # where a turn begins among the stored messages, and its first time
    _waiting: dict[str, list[list[Call]]] = field(default_factory=dict)
    _models: dict[str, None] = field(default_factory=dict)
    _tools: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        row = self.row
        self._first_new = row.messages
        self._models = dict.fromkeys(json.loads(row.models))
        self._tools = dict.fromkeys(json.loads(row.tools))
        self._waiting = json.loads(row.waiting)

    def take(self, chunk: Chunk) -> None:
        """Fold in the next messages."""
        row, number = self.row, self.row.messages
        for index, head in enumerate(chunk.heads):
            role, stamp = head.role, head.timestamp
            if number == row.inherited:
                row.place = self._place(role)
            self._last = head
            if role == "user":
                self._prompt(head, number)
            if stamp is not None and (moment := times.microseconds(stamp)) is not None:
                self._time(moment)
            model, tokens, several, context, made, error = None, _UNKNOWN, 0, None, 0, 0
            billed: tuple[Any, ...] = _NOT_BILLED
            if role == "assistant":
                if isinstance(head.model, str) and head.model:
                    model = head.model
                    self._models[model] = None
                if head.usage is not None:
                    tokens, several, context, billed = self._usage(head, number, model or "")
                if head.tool_calls:
                    made = self._made(head, number)
            elif role == "tool":
                error = int(bool(head.is_error))
                row.errors += error
                self._result(head, number)
            identity = int.from_bytes(bytes.fromhex(chunk.identities[index]), "big", signed=True)
            self.identities.append(identity)
            place = (chunk.starts[index], chunk.ends[index] - chunk.starts[index], chunk.places[index])
            ms = (times.milliseconds(head.duration_ms), times.milliseconds(head.first_token_ms))
            said = (role, row.turn_time, 1, identity, model, *tokens, several, made, error, *ms, context, row.turns)
            self.messages.append([self.next_row, row.n, number, *place, *said, *billed])
            self.next_row += 1
            number += 1
            row.messages = number
        row.damaged += chunk.damaged
        row.offset, row.lines, row.open_line = chunk.offset, chunk.lines, int(chunk.is_open and chunk.offset > 0)
        if chunk.heads:
            row.last_id = chunk.last_id

    def write(self, db: sqlite3.Connection) -> None:
        """Store the rows, and bring the session's row up to what was folded in."""
        row = self.row
        if row.messages <= row.inherited and (self._last is not None or not row.messages):
            row.place = self._place(None)
        if self._late is not None:
            start, moment = self._late
            late = "UPDATE messages SET time=? WHERE session=? AND number>=? AND time IS NULL"
            db.execute(late, (moment, row.n, start))
        db.executemany(_INSERT, self.messages)
        db.executemany("INSERT OR REPLACE INTO calls VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)", self.calls)
        db.executemany(_INSERT_CALL, self.model_calls)
        row.models, row.tools = (json.dumps(list(found), ensure_ascii=False) for found in (self._models, self._tools))
        row.waiting = json.dumps({key: stack for key, stack in self._waiting.items() if stack})
        row.unanswered = sum(len(calls) for stack in self._waiting.values() for calls in stack)
        if self.messages:
            row.last_row = self.next_row - 1

    def _place(self, following: str | None) -> str:
        """Where the messages so far end, in turns, before one of the role ``following``."""
        last, turn = self._last, self.row.turns
        if last is None:  # the place where they end is known, if they were stored earlier
            return places.place_behind(turn, "user" if self.row.place.startswith("inside") else "", False, following)
        has_calls = last.role == "assistant" and bool(last.tool_calls) and any(message_heads.calls_in(last))
        return places.place_behind(turn, last.role, has_calls, following)

    def _prompt(self, head: Head, number: int) -> None:
        row = self.row
        if row.turns:  # what stands before the first prompt is of its turn
            row.turn_from, row.turn_time = number, None
        row.turns += 1
        if row.prompt is None and (prompt := message_heads.prompt(head)):
            row.prompt = names.title_from(prompt)

    def _time(self, moment: int) -> None:
        """A message's own time; the first one of a turn is that of the messages before it, too."""
        row = self.row
        if row.turn_time is None:
            if row.turn_from < self._first_new:
                self._late = row.turn_from, moment
            for message in self.messages[max(0, row.turn_from - self._first_new) :]:
                message[_TIME] = moment
        row.turn_time = row.said_time = moment
        if row.max_time is None or moment > row.max_time:
            row.max_time = moment
        if row.first_time is None:
            row.first_time = moment

    def _usage(self, head: Head, number: int, model: str) -> tuple[usage.Counts, int, int | None, tuple[Any, ...]]:
        """The tokens of an answer, 1 if several model calls made it, how long the conversation was at its end, and
        what its price depends on.
        """
        reported = head.usage
        if not head.base_url:
            self.row.uses_settings = 1
        host = prices.host_of({"base_url": head.base_url, "model": model}, self.settings)
        calls = model_calls.of({"role": head.role, "model": model, "usage": reported})
        if type(reported) is not dict or usage.MODEL_CALLS not in reported:
            if not calls:
                return _UNKNOWN, 0, None, _NOT_BILLED
            tokens = calls[0].tokens
            counts = tokens.input, tokens.cached, tokens.output, tokens.reasoning, tokens.total
            return counts, 0, tokens.input, _billed(calls[0], host)
        for call in calls:
            each = (getattr(call.tokens, name) for name in usage.SUMS)
            self.model_calls.append((self.row.n, number, call.model, *each, *_billed(call, host)))
            if call.model:
                self._models[call.model] = None
        last = model_calls.last({"role": head.role, "model": model, "usage": reported})
        return usage.counts(reported) or _UNKNOWN, 1, last.input if last else None, _NOT_BILLED

    def _made(self, head: Head, number: int) -> int:
        by_id: dict[str, list[Call]] = {}
        for position, call_id, name, _ in message_heads.calls_in(head):
            made = [self.row.n, number, position, call_id, name, None, 0, 1, None]
            by_id.setdefault(call_id, []).append(made)
            self.calls.append(made)
            if name:
                self._tools[name] = None
        for call_id, made_calls in by_id.items():
            self._waiting.setdefault(call_id, []).append(made_calls)
        count = sum(map(len, by_id.values()))
        self.row.calls += count
        return count

    def _result(self, head: Head, number: int) -> None:
        """The result answers the latest message with such a call open, as ``tool_calls.pair`` has it."""
        stack = self._waiting.get(content.as_text(head.tool_call_id))
        if not stack:
            return
        call = stack[-1].pop(0)
        if not stack[-1]:
            stack.pop()
        effect, took = int(head.effect is not False), times.milliseconds(head.duration_ms)
        call[5:] = [number, int(bool(head.is_error)), effect, took]
        if call[1] < self._first_new:
            self.calls.append(call)  # stored earlier, answered now


def _billed(call: model_calls.ModelCall, host: str) -> tuple[Any, ...]:
    """The columns ``BILLED`` of a call."""
    tokens = call.tokens
    parts = prices.bounded(tokens.input, tokens.cached, call.written, call.written_1h)
    return call.tier, host, price_table.step_of(tokens), *parts, call.searches or 0
