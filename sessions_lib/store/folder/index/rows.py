"""One session's rows in the catalog: what is new in its files is read from where the last reading ended.

A file that only grew is read from the stored offset on; one that shrank, was replaced (another inode), repaired,
touched or had an unfinished last line is read again as a whole. A fold over the new messages continues the stored
counts, so a long session costs what was added to it.

Does not decide which sessions to read, and does not begin or end transactions.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import stat
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from operator import attrgetter
from pathlib import Path
from typing import Any

from sessions_lib import prices, query
from sessions_lib.errors import SessionError
from sessions_lib.messages import usage
from sessions_lib.store import records, tagging
from sessions_lib.store.folder import disk, message_heads, metadata, scan
from sessions_lib.store.folder.index import sums
from sessions_lib.store.folder.index.fold import Fold
from sessions_lib.store.numbers import TOKENS
from sessions_lib.times import EPOCH

INODE = (1 << 63) - 1  # SQLite's integers have a sign
_MICROSECOND = timedelta(microseconds=1)
_MARK = 64  # bytes before the offset that must not have changed

Stamp = tuple[int, int, int]  # size, mtime_ns, inode


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
    last_id: str | None = None
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
    place: str = ""  # where the copied messages end, in turns
    messages: int = 0
    turns: int = 0
    models: str = "[]"
    tools: str = "[]"
    verdict: str = ""
    settings: str = ""  # the address and the model that the metadata names
    uses_settings: int = 0  # 1 if an answer does not say where it came from: its price depends on ``settings``
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
    waiting: str = "{}"  # the calls without a result, by id

    def stamps(self) -> tuple[Stamp | None, Stamp | None]:
        """The file states of messages and metadata that this row was made from."""
        return _stamp(self.size, self.mtime, self.inode), _stamp(self.meta_size, self.meta_mtime, self.meta_inode)


COLUMNS = tuple(column.name for column in fields(Row))
_SELECT = f"SELECT {', '.join(COLUMNS)} FROM sessions"
_values = attrgetter(*COLUMNS)
_REPLACE = f"INSERT OR REPLACE INTO sessions({', '.join(COLUMNS)}) VALUES({', '.join('?' * len(COLUMNS))})"


def _stamp(size: int | None, mtime: int | None, inode: int | None) -> Stamp | None:
    return None if size is None or mtime is None or inode is None else (size, mtime, inode)


def stamp_of(path: Path | str) -> Stamp | None:
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


def update(db: sqlite3.Connection, folder: Path, session: str, change: int) -> list[int]:
    """Update the rows of ``session`` from its files; remove them if the files are gone.

    Gives the identities of the messages that came or went, for ``sums.settle``.
    """
    said = stamp_of(f"{folder}/{session}{scan.MESSAGES}")
    meta = stamp_of(f"{folder}/{session}{scan.METADATA}")
    row = load(db, session)
    if said is None and meta is None:
        return _forget(db, row, change) if row else []
    found = metadata.read(folder / f"{session}{scan.METADATA}")
    touched: list[int] = []
    if row is None:
        db.execute("DELETE FROM gone WHERE id=?", (session,))
        row = Row(_next_session(db), session)
    elif not _continues(folder, row, said, found):
        touched = _remove_messages(db, row)
        row = Row(row.n, session)
    is_unread = said != row.stamps()[0]
    row.changed = change
    row.meta_size, row.meta_mtime, row.meta_inode = meta or (None, None, None)
    row.size, row.mtime, row.inode = said or (None, None, None)
    fault = found.fault and f"the metadata {found.fault}"
    row.inherited, row.settings = found.inherited, _settings(found)
    fold = Fold(row, _next_row(db), prices.settings_of(found.values))
    if said is not None and (is_unread or row.fault):
        try:
            _read_on(folder, row, fold)
        except (OSError, SessionError) as error:
            fault = scan.unreadable(error)
    fold.write(db)
    _describe(row, dict(found.values), fault, said)
    _sum_up(db, row)
    db.execute("UPDATE facts SET value=? WHERE name='next_row'", (fold.next_row,))
    db.execute(_REPLACE, _values(row))
    db.execute("DELETE FROM names WHERE session=?", (row.n,))
    _write_names(db, row)
    return touched + fold.identities


def _sum_up(db: sqlite3.Connection, row: Row) -> None:
    whole = sums.of_session(db, row.n)
    own = sums.of_session(db, row.n, row.inherited) if row.inherited else whole
    for name, count, own_count in zip((*TOKENS, "reported", "answers"), whole, own, strict=True):
        setattr(row, name, count)
        setattr(row, "own_" + name, own_count)


def _next_row(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT value FROM facts WHERE name='next_row'").fetchone()[0])


def _next_session(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT coalesce(max(n), 0) + 1 FROM sessions").fetchone()[0])


def _continues(folder: Path, row: Row, said: Stamp | None, found: records.Metadata) -> bool:
    """True if the rows so far are still right and only something behind them may be new."""
    before, _ = row.stamps()
    if min(found.inherited, row.messages) != row.inherited or row.fault:
        return False
    if row.uses_settings and row.settings != _settings(found):
        return False
    if said == before:
        return True
    if before is None or said is None or row.open_line or said[2] != before[2] or said[0] <= before[0]:
        return False
    return row.mark == _mark(folder / f"{row.id}{scan.MESSAGES}", row.offset)


def _settings(found: records.Metadata) -> str:
    return "\n".join(prices.settings_of(found.values))


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


def _read_on(folder: Path, row: Row, fold: Fold) -> None:
    path = folder / f"{row.id}{scan.MESSAGES}"
    for chunk in message_heads.read(path, row.offset, row.lines, row.last_id or ""):
        fold.take(chunk)
    row.mark = _mark(path, row.offset)


def _describe(row: Row, meta: dict[str, Any], fault: str | None, said: Stamp | None) -> None:
    """What the row takes from metadata and file times."""
    origin = records.Metadata(meta)
    row.meta = json.dumps(meta, ensure_ascii=False, default=str)
    row.title = records.given_title(meta) or row.prompt or row.id
    tags = tagging.tags_of(meta)
    row.tags = json.dumps(tags, ensure_ascii=False)
    row.title_text = " ".join(query.fold("\n".join(filter(None, (records.given_title(meta), *tags)))).split())
    row.parent, row.inherited = origin.parent, min(origin.inherited, row.messages)
    row.verdict = query.fold_name(records.verdict(meta))
    created = to_us(origin.created)
    row.created = created if created is not None else row.first_time
    row.last_active = row.said_time if row.said_time is not None else row.created
    if row.last_active is None and said is not None and not origin.was_imported:
        row.last_active = said[1] // 10**9 * 10**6
    row.newest = max((time for time in (row.max_time, row.last_active) if time is not None), default=None)
    row.fault = fault


def _write_names(db: sqlite3.Connection, row: Row) -> None:
    """Tags, models, tools and the verdict as the filters compare them; ``label`` are tags as they are counted."""
    named = [("tag", query.fold_name(tag), tag) for tag in json.loads(row.tags)]
    named += [("label", tagging.tag_key(tag), tag) for tag in json.loads(row.tags)]
    named += [("model", query.fold_name(model), model) for model in json.loads(row.models)]
    named += [("tool", query.fold_name(tool), tool) for tool in json.loads(row.tools)]
    if row.verdict:
        named.append(("verdict", row.verdict, row.verdict))
    db.executemany(
        "INSERT OR IGNORE INTO names VALUES(?, ?, ?, ?)", [(kind, name, row.n, said) for kind, name, said in named]
    )


def _remove_messages(db: sqlite3.Connection, row: Row) -> list[int]:
    """Take the messages of a session out, and give their identities."""
    db.execute("UPDATE facts SET value=value+? WHERE name='dead_rows'", (row.indexed,))
    identities = [found for (found,) in db.execute("SELECT identity FROM messages WHERE session=?", (row.n,))]
    for table in ("messages", "calls", "model_calls", "activity"):
        db.execute(f"DELETE FROM {table} WHERE session=?", (row.n,))
    return identities


def _forget(db: sqlite3.Connection, row: Row, change: int) -> list[int]:
    """Take a session out of the catalog, and give the identities of its messages."""
    identities = _remove_messages(db, row)
    db.execute("DELETE FROM names WHERE session=?", (row.n,))
    db.execute("DELETE FROM sessions WHERE n=?", (row.n,))
    db.execute("INSERT OR REPLACE INTO gone VALUES(?, ?)", (row.id, change))
    return identities


def info_of(found: Sequence[Any]) -> records.SessionInfo:
    """The columns ``INFO`` of a row as the plain scan would say them."""
    session, title, tags, meta, created, last_active, parent, inherited, place, *rest = found
    count, turns, models, tools, *rest = rest
    tokens, own, (tool_calls, errors, damaged, unanswered, size, fault) = rest[:7], rest[7:14], rest[14:]
    return records.SessionInfo(
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
        place=place if parent else "",
    )


INFO = (
    "s.id, s.title, s.tags, s.meta, s.created, s.last_active, s.parent, s.inherited, s.place, s.messages, s.turns, "
    "s.models, s.tools, s.input, s.cached, s.output, s.reasoning, s.total, s.reported, s.answers, s.own_input, "
    "s.own_cached, s.own_output, s.own_reasoning, s.own_total, s.own_reported, s.own_answers, s.calls, s.errors, "
    "s.damaged, s.unanswered, s.offset, s.fault"
)
