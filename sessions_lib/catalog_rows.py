"""One session's rows in the catalog: what is new in its files is read from where the last reading ended.

A file that only grew is read from the stored offset on; one that shrank, was replaced (another inode), repaired,
touched or had an unfinished last line is read again as a whole. A fold over the new messages continues the stored
counts, so a long session costs what was added to it.

A message that stands in several files counts once: in the session that wrote it rather than in one that inherited it,
then in the one whose id comes first.

Does not decide which sessions to read, and does not begin or end transactions.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sessions_lib import calls, content, disk, jsonl, listing, messages, metadata, names, query, times, usage
from sessions_lib.errors import SessionError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
INODE = (1 << 63) - 1  # SQLite's integers have a sign
QUARTER_US = 900_000_000  # every zone's days begin at a multiple of 15 minutes UTC
_MICROSECOND = timedelta(microseconds=1)
_MARK = 64  # bytes before the offset that must not have changed

Stamp = tuple[int, int, int]  # size, mtime_ns, inode
COUNTED = ("input", "cached", "output", "reasoning", "total", "reported", "answers")


@dataclass(slots=True)
class Row:
    """A row of ``sessions``: the counts so far, and what the fold needs to go on."""

    n: int
    id: str
    changed: int = 0
    size: int | None = None
    mtime: int | None = None
    inode: int | None = None
    meta_size: int | None = None
    meta_mtime: int | None = None
    meta_inode: int | None = None
    offset: int = 0
    lines: int = 0
    mark: bytes | None = None
    open_line: int = 0
    last_identity: str | None = None
    turn_from: int = 0
    turn_time: int | None = None
    first_time: int | None = None
    said_time: int | None = None
    max_time: int | None = None
    prompt: str | None = None
    meta: str = "{}"
    title: str = ""
    title_text: str = ""
    tags: str = "[]"
    created: int | None = None
    last_active: int | None = None
    newest: int | None = None  # no message was said later: the latest time of all, clocks may step back
    parent: str | None = None
    inherited: int = 0
    messages: int = 0
    turns: int = 0
    models: str = "[]"
    tools: str = "[]"
    verdict: str = ""
    input: int | None = None
    cached: int | None = None
    output: int | None = None
    reasoning: int | None = None
    total: int | None = None
    reported: int = 0
    answers: int = 0
    own_input: int | None = None
    own_cached: int | None = None
    own_output: int | None = None
    own_reasoning: int | None = None
    own_total: int | None = None
    own_reported: int = 0
    own_answers: int = 0
    calls: int = 0
    errors: int = 0
    damaged: int = 0
    unanswered: int = 0
    fault: str | None = None
    indexed: int = 0
    last_row: int = 0

    def stamps(self) -> tuple[Stamp | None, Stamp | None]:
        """The file states of messages and metadata that this row was made from."""
        return _stamp(self.size, self.mtime, self.inode), _stamp(self.meta_size, self.meta_mtime, self.meta_inode)


COLUMNS = tuple(column.name for column in fields(Row))
_SELECT = f"SELECT {', '.join(COLUMNS)} FROM sessions"
_REPLACE = f"INSERT OR REPLACE INTO sessions({', '.join(COLUMNS)}) VALUES({', '.join('?' * len(COLUMNS))})"
_MESSAGE = f"INSERT INTO messages VALUES({', '.join('?' * 21)})"


def _stamp(size: int | None, mtime: int | None, inode: int | None) -> Stamp | None:
    return None if size is None or mtime is None or inode is None else (size, mtime, inode)


def stamp_of(path: Path) -> Stamp | None:
    """Size, time and inode of a regular file; ``None`` if there is none."""
    try:
        state = os.lstat(path)
    except OSError:
        return None
    return (state.st_size, state.st_mtime_ns, state.st_ino & INODE) if stat.S_ISREG(state.st_mode) else None


def to_us(moment: datetime | None) -> int | None:
    """Microseconds since 1970, as times stand in the catalog."""
    return None if moment is None else (moment - EPOCH) // _MICROSECOND


def from_us(value: int | None) -> datetime | None:
    """The moment of a time in the catalog."""
    return None if value is None else EPOCH + timedelta(microseconds=value)


def load(db: sqlite3.Connection, session: str) -> Row | None:
    """The row of a session, or ``None``."""
    found = db.execute(f"{_SELECT} WHERE id=?", (session,)).fetchone()
    return Row(*found) if found else None


def update(db: sqlite3.Connection, folder: Path, session: str, change: int) -> None:
    """Make the rows of ``session`` say what its files say; without files they go."""
    said = stamp_of(folder / f"{session}{listing.MESSAGES}")
    meta = stamp_of(folder / f"{session}{listing.METADATA}")
    row = load(db, session)
    if said is None and meta is None:
        if row:
            forget(db, row, change)
        return
    found = metadata.read(folder / f"{session}{listing.METADATA}")
    if row is None or not _continues(folder, row, said, found):
        n = row.n if row else None
        if row:
            _remove_messages(db, row)
        row = Row(n if n is not None else _next_session(db), session)
    row.changed = change
    row.meta_size, row.meta_mtime, row.meta_inode = meta or (None, None, None)
    is_unread = said != row.stamps()[0]
    row.size, row.mtime, row.inode = said or (None, None, None)
    row.inherited = found.inherited
    fold = _Fold(db, row)
    fault = found.fault and f"the metadata {found.fault}"
    if said is not None and (is_unread or row.fault):
        try:
            _read_on(folder, row, fold)
        except (OSError, SessionError) as error:
            fault = listing.unreadable(error)
    _describe(row, dict(found.values), fault, said)
    fold.write()
    db.execute(_REPLACE, [getattr(row, column) for column in COLUMNS])
    _write_names(db, row)
    db.execute("DELETE FROM gone WHERE id=?", (session,))
    settle_counts(db, {row.n}, fold.copied_identities())


def _next_session(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT coalesce(max(n), 0) + 1 FROM sessions").fetchone()[0])


def _continues(folder: Path, row: Row, said: Stamp | None, found: metadata.Metadata) -> bool:
    """True if the rows so far are still right and only something behind them may be new."""
    before, _ = row.stamps()
    if min(found.inherited, row.messages) != row.inherited or row.fault:
        return False
    if said == before:
        return True
    if before is None or said is None or row.open_line or said[2] != before[2] or said[0] <= before[0]:
        return False
    return row.mark == _mark(folder / f"{row.id}{listing.MESSAGES}", row.offset)


def _mark(path: Path, offset: int) -> bytes | None:
    try:
        descriptor = disk.open_to_read(path)
    except (OSError, SessionError):
        return None
    try:
        start = max(0, offset - _MARK)
        return hashlib.blake2b(os.pread(descriptor, offset - start, start), digest_size=8).digest()
    finally:
        os.close(descriptor)


def _read_on(folder: Path, row: Row, fold: _Fold) -> None:
    path = folder / f"{row.id}{listing.MESSAGES}"
    lines = jsonl.read(path, row.offset, row.lines + 1)
    fold.take(lines, row.offset)
    row.damaged += len(lines.damaged)
    row.offset, row.lines = lines.size, lines.line_count
    descriptor = disk.open_to_read(path)
    try:
        row.open_line = int(row.offset > 0 and os.pread(descriptor, 1, row.offset - 1) != b"\n")
    finally:
        os.close(descriptor)
    row.mark = _mark(path, row.offset)


def _describe(row: Row, meta: dict[str, Any], fault: str | None, said: Stamp | None) -> None:
    """What the row takes from metadata and file times."""
    origin = metadata.Metadata(meta)
    row.meta = json.dumps(meta, ensure_ascii=False, default=str)
    row.title = listing.given_title(meta) or row.prompt or row.id
    tags = listing.tags_of(meta)
    row.tags = json.dumps(tags, ensure_ascii=False)
    row.title_text = " ".join(query.fold("\n".join(filter(None, (listing.given_title(meta), *tags)))).split())
    row.parent, row.inherited = origin.parent, min(origin.inherited, row.messages)
    row.verdict = query.fold_name(listing.verdict(meta))
    created = to_us(origin.created)
    row.created = created if created is not None else row.first_time
    row.last_active = row.said_time if row.said_time is not None else row.created
    if row.last_active is None and said is not None:
        row.last_active = said[1] // 10**9 * 10**6
    row.newest = max((time for time in (row.max_time, row.last_active) if time is not None), default=None)
    row.fault = fault


@dataclass(slots=True)
class _Fold:
    """New messages on their way into the rows of one session."""

    db: sqlite3.Connection
    row: Row
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    found_calls: list[list[Any]] = field(default_factory=list)
    waiting: dict[str, list[list[list[Any]]]] = field(default_factory=dict)
    models: dict[str, None] = field(default_factory=dict)
    tools: dict[str, None] = field(default_factory=dict)
    whole: list[Any] = field(default_factory=list)  # the sums in the order of COUNTED
    own: list[Any] = field(default_factory=list)
    first_new: int = 0
    late: tuple[int, int] | None = None  # the first time of a turn whose stored messages have none, and its start

    def take(self, lines: jsonl.Lines, start: int) -> None:
        row = self.row
        if not lines.messages:
            return
        self.models = dict.fromkeys(json.loads(row.models))
        self.tools = dict.fromkeys(json.loads(row.tools))
        self.whole = [getattr(row, name) for name in COUNTED]
        self.own = [getattr(row, "own_" + name) for name in COUNTED]
        self._load_waiting()
        said = lines.messages
        before = row.last_identity
        identities = messages.identities([{"id": before}, *said])[1:] if before else messages.identities(said)
        row.last_identity = identities[-1]
        self.first_new = number = row.messages
        next_row = self.db.execute("SELECT value FROM facts WHERE name='next_row'").fetchone()[0]
        place, line = 0, -1
        untimed: list[int] = []  # places in self.rows of this turn's messages before its first time
        for index, message in enumerate(said):
            if lines.line_numbers[index] == line:
                place += 1
            else:
                place, line = 0, lines.line_numbers[index]
                if index:
                    start = lines.ends[index - 1]
            role = message["role"]
            if role == "user":
                if row.turns:
                    row.turn_from, row.turn_time, untimed = number, None, []
                row.turns += 1
            self._take_time(message, untimed)
            self.rows.append(
                (
                    next_row,
                    row.n,
                    number,
                    start,
                    lines.ends[index] - start,
                    place,
                    role,
                    row.turn_time,
                    _as_integer(identities[index]),
                    1,
                    int(number >= row.inherited),
                    *self._take_answer(message, role, number),
                )
            )
            if row.turn_time is None:
                untimed.append(len(self.rows) - 1)
            next_row, number = next_row + 1, number + 1
        row.messages, row.last_row = number, next_row - 1
        for name, whole, own in zip(COUNTED, self.whole, self.own, strict=True):
            setattr(row, name, whole)
            setattr(row, "own_" + name, own)
        row.models, row.tools = (json.dumps(list(found), ensure_ascii=False) for found in (self.models, self.tools))
        row.unanswered = sum(len(calls) for stack in self.waiting.values() for calls in stack)
        self.db.execute("UPDATE facts SET value=? WHERE name='next_row'", (next_row,))

    def _take_time(self, message: content.Message, untimed: list[int]) -> None:
        row = self.row
        moment = to_us(times.parse(message.get("timestamp")))
        if moment is None:
            return
        if row.turn_time is None:
            for index in untimed:
                self.rows[index] = (*self.rows[index][:7], moment, *self.rows[index][8:])
            untimed.clear()
            if row.turn_from < self.first_new:
                self.late = (moment, row.turn_from)
        row.turn_time = row.said_time = moment
        row.max_time = moment if row.max_time is None else max(moment, row.max_time)
        row.first_time = moment if row.first_time is None else row.first_time

    def _take_answer(self, message: content.Message, role: str, number: int) -> tuple[Any, ...]:
        """The rest of a message's row: model, five token counts, calls, error, two durations."""
        row = self.row
        model, made, error = None, 0, 0
        tokens: tuple[int | None, ...] = (None,) * 5
        if role == "assistant":
            model = message.get("model")
            model = model if isinstance(model, str) and model else None
            if model:
                self.models[model] = None
            known = usage.of(message)
            if known:
                tokens = (known.input, known.cached, known.output, known.reasoning, known.total)
            self._add_tokens(tokens, known is not None, number >= row.inherited)
            if message.get("tool_calls"):
                made = self._take_calls(message, number)
        elif role == "tool":
            error = int(bool(message.get("is_error")))
            row.errors += error
            self._take_result(message, number)
        elif role == "user" and row.prompt is None and (prompt := content.text(message).strip()):
            row.prompt = names.title_from(prompt)
        return (
            model,
            *tokens,
            made,
            error,
            _milliseconds(message, "duration_ms"),
            _milliseconds(message, "first_token_ms"),
        )

    def _add_tokens(self, tokens: tuple[int | None, ...], is_known: bool, is_own: bool) -> None:
        for sums in (self.whole, self.own) if is_own else (self.whole,):
            for place, value in enumerate(tokens):
                if value is not None:
                    sums[place] = (sums[place] or 0) + value
            sums[5] += is_known
            sums[6] += 1

    def _load_waiting(self) -> None:
        """The calls of earlier messages that no result has answered: what ``calls.pair`` would have open here."""
        if not self.row.unanswered:
            return
        found = self.db.execute(
            "SELECT * FROM calls WHERE session=? AND result IS NULL ORDER BY message, position", (self.row.n,)
        ).fetchall()
        last: dict[str, int] = {}
        for call in map(list, found):
            stack = self.waiting.setdefault(call[3], [])
            if last.get(call[3]) != call[1]:
                stack.append([])
                last[call[3]] = call[1]
            stack[-1].append(call)

    def _take_calls(self, message: content.Message, number: int) -> int:
        by_id: dict[str, list[list[Any]]] = {}
        for call in calls.calls_of(message, number):
            made = [self.row.n, number, call.position, call.id, call.name, None, 0, 1, None]
            by_id.setdefault(call.id, []).append(made)
            self.found_calls.append(made)
            self.row.calls += 1
            if call.name:
                self.tools[call.name] = None
        for call_id, made_calls in by_id.items():
            self.waiting.setdefault(call_id, []).append(made_calls)
        return sum(map(len, by_id.values()))

    def _take_result(self, message: content.Message, number: int) -> None:
        stack = self.waiting.get(content.as_text(message.get("tool_call_id")))
        if not stack:
            return
        call = stack[-1].pop(0)
        if not stack[-1]:
            stack.pop()
        call[5:] = [
            number,
            int(bool(message.get("is_error"))),
            int(message.get("effect") is not False),
            _milliseconds(message, "duration_ms"),
        ]
        if call[1] < self.first_new:
            self.found_calls.append(call)  # stored earlier, answered now

    def write(self) -> None:
        self.db.executemany(_MESSAGE, self.rows)
        self.db.executemany("INSERT OR REPLACE INTO calls VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)", self.found_calls)
        if self.late is not None:
            moment, start = self.late
            self.db.execute(
                "UPDATE messages SET time=? WHERE session=? AND number>=? AND number<? AND time IS NULL",
                (moment, self.row.n, start, self.first_new),
            )

    def copied_identities(self) -> list[int]:
        """The identities among the new messages that stand in other rows too."""
        if not self.rows:
            return []
        found = self.db.execute(
            "SELECT DISTINCT m.identity FROM messages m WHERE m.session=? AND m.number>=? AND EXISTS("
            "SELECT 1 FROM messages o WHERE o.identity=m.identity AND o.row<>m.row)",
            (self.row.n, self.first_new),
        )
        return [identity for (identity,) in found]


def _as_integer(identity: str) -> int:
    digest = hashlib.blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def _milliseconds(message: content.Message, key: str) -> int | None:
    value = message.get(key)
    if value is None or isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        return None
    return round(value)


def _write_names(db: sqlite3.Connection, row: Row) -> None:
    """Tags, models, tools and the verdict as the filters compare them; ``label`` are tags as they are counted."""
    named = [("tag", query.fold_name(tag), tag) for tag in json.loads(row.tags)]
    named += [("label", metadata.tag_key(tag), tag) for tag in json.loads(row.tags)]
    named += [("model", query.fold_name(model), model) for model in json.loads(row.models)]
    named += [("tool", query.fold_name(tool), tool) for tool in json.loads(row.tools)]
    if row.verdict:
        named.append(("verdict", row.verdict, row.verdict))
    db.execute("DELETE FROM names WHERE session=?", (row.n,))
    db.executemany(
        "INSERT OR IGNORE INTO names VALUES(?, ?, ?, ?)", [(kind, name, row.n, said) for kind, name, said in named]
    )


def _remove_messages(db: sqlite3.Connection, row: Row) -> None:
    """Take the messages of a session out; copies of them elsewhere count from now on."""
    copied = db.execute(
        "SELECT DISTINCT m.identity FROM messages m WHERE m.session=? AND EXISTS("
        "SELECT 1 FROM messages o WHERE o.identity=m.identity AND o.session<>m.session)",
        (row.n,),
    ).fetchall()
    db.execute("UPDATE facts SET value=value+? WHERE name='dead_rows'", (row.indexed,))
    for table in ("messages", "calls", "activity"):
        db.execute(f"DELETE FROM {table} WHERE session=?", (row.n,))
    settle_counts(db, set(), [identity for (identity,) in copied])


def forget(db: sqlite3.Connection, row: Row, change: int) -> None:
    """Take a session out of the catalog."""
    _remove_messages(db, row)
    db.execute("DELETE FROM names WHERE session=?", (row.n,))
    db.execute("DELETE FROM sessions WHERE n=?", (row.n,))
    db.execute("INSERT OR REPLACE INTO gone VALUES(?, ?)", (row.id, change))


def settle_counts(db: sqlite3.Connection, sessions: set[int], identities: Iterable[int]) -> None:
    """Let one copy of each of ``identities`` count, and sum up what counts in ``sessions`` and those this changes."""
    touched = set(sessions)
    for identity in identities:
        copies = db.execute(
            "SELECT m.row, m.session, m.counts FROM messages m JOIN sessions s ON s.n=m.session WHERE m.identity=? "
            "ORDER BY m.own DESC, s.id, m.number",
            (identity,),
        ).fetchall()
        for place, (row, session, counts) in enumerate(copies):
            if counts != (place == 0):
                db.execute("UPDATE messages SET counts=? WHERE row=?", (int(place == 0), row))
                touched.add(session)
    for session in touched:
        _sum_up(db, session)


_ACTIVITY = f"""
INSERT INTO activity
SELECT m.session, coalesce(m.time, s.last_active, 0) / {QUARTER_US}, coalesce(m.model, ''), count(*),
  sum(m.role='user'), sum(m.role='assistant'), sum(m.total IS NOT NULL), sum(m.input), sum(m.cached), sum(m.output),
  sum(m.reasoning), sum(m.total), sum(m.calls), sum(m.role='tool'), sum(m.error)
FROM messages m JOIN sessions s ON s.n=m.session WHERE m.session=? AND m.counts=1 GROUP BY 2, 3
"""


def _sum_up(db: sqlite3.Connection, session: int) -> None:
    db.execute("DELETE FROM activity WHERE session=?", (session,))
    db.execute(_ACTIVITY, (session,))


def info_of(found: Sequence[Any]) -> listing.SessionInfo:
    """The columns ``INFO`` of a row as the plain scan would say them."""
    (session, title, tags, meta, created, last_active, parent, inherited, count, turns, models, tools, *rest) = found
    tokens, own, (tool_calls, errors, damaged, unanswered, size, fault) = rest[:7], rest[7:14], rest[14:]
    return listing.SessionInfo(
        id=session,
        title=title,
        tags=tuple(json.loads(tags)),
        messages=count,
        turns=turns,
        own_messages=count - inherited,
        created=from_us(created),
        last_active=from_us(last_active),
        models=tuple(json.loads(models)),
        parent=parent,
        inherited=inherited,
        tokens=usage.Totals(*tokens),
        own_tokens=usage.Totals(*own),
        tool_calls=tool_calls,
        errors=errors,
        damaged=damaged,
        unanswered=unanswered,
        size_bytes=size or 0,
        meta=json.loads(meta),
        tools=tuple(json.loads(tools)),
        fault=fault,
    )


INFO = (
    "s.id, s.title, s.tags, s.meta, s.created, s.last_active, s.parent, s.inherited, s.messages, s.turns, s.models, "
    "s.tools, s.input, s.cached, s.output, s.reasoning, s.total, s.reported, s.answers, s.own_input, s.own_cached, "
    "s.own_output, s.own_reasoning, s.own_total, s.own_reported, s.own_answers, s.calls, s.errors, s.damaged, "
    "s.unanswered, s.offset, s.fault"
)
