"""What a session adds up to: read by the plain functions when it changed, and kept in its row until it changes again.

Writing a message costs nothing of it; the first question after it reads that session anew. So an answer is never older
than its question, and says what the plain scan would say.

Does not answer questions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from sessions_lib import prices, query
from sessions_lib.messages import encoding, places
from sessions_lib.store import plain, records, tagging
from sessions_lib.store.plain import Scanned, scanned
from sessions_lib.store.plain_catalog import KEYS
from sessions_lib.store.plain_numbers import microseconds
from sessions_lib.store.postgres import sessions
from sessions_lib.store.postgres.database import Connection, Database
from sessions_lib.store.postgres.rows import as_text, read_lines, take_damage
from sessions_lib.store.records import Contents, Revision, SessionInfo

BATCH = 64  # sessions read at once
ORDERS = ("title", "created", "turns", "tokens", "own_tokens", "tool_calls", "errors", "size_bytes")
_IN_BYTES = 64_000_000  # of lines held at once
_STALE = "kind is null and summed is distinct from changed"
_HEAD = "n, id, messages, lines, meta, written, bytes, changed"
_PUT = "select forkbook.put_summary(%s, %s, %s, %s::jsonb, %s::integer[], %s::bigint[], %s::integer[])"

Progress = Callable[[int, int], None]


def waiting(connection: Connection) -> int:
    """How many sessions changed since they were read."""
    found = connection.execute(f"select count(*) from forkbook.session where {_STALE}").fetchone()
    return int(found[0]) if found else 0


def refresh(database: Database, on_progress: Progress | None = None) -> None:
    """Read what changed; ``on_progress(sessions done, sessions to do)`` on the way."""
    done, todo, last = 0, 0, 0
    while True:
        asked = f"select {_HEAD} from forkbook.session where {_STALE} and n > %s order by n limit {BATCH}"
        heads = database.rows(asked, (last,))
        if not heads:
            return
        if on_progress is not None:
            todo = todo or database.run(waiting)
        for batch in _in_batches(heads):
            database.in_transaction(partial(_sum_up, heads=batch))
        done, last = done + len(heads), heads[-1][0]
        if on_progress is not None:
            on_progress(min(done, todo), todo)


def _in_batches(heads: Sequence[Any]) -> Iterator[list[Any]]:
    batch: list[Any] = []
    size = 0
    for head in heads:
        if batch and size + head[6] > _IN_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(head)
        size += head[6]
    if batch:
        yield batch


def _sum_up(connection: Connection, heads: Sequence[Any]) -> None:
    connection.execute("set local synchronous_commit to off")  # what a crash takes is read again
    known = _known_places(connection, [head[0] for head in heads])
    for head, session in zip(heads, read(connection, heads), strict=True):
        n, changed = head[0], head[-1]
        moments = [microseconds(moment) for moment in session.times]
        turns = places.turns_of(session.messages)
        before = known.get(n, {})
        differing = [seq for seq, place in enumerate(zip(moments, turns, strict=True)) if before.get(seq) != place]
        values = (differing, [moments[seq] for seq in differing], [turns[seq] for seq in differing])
        info = msgspec.json.encode(replace(session.info, meta={})).decode()
        connection.execute(_PUT, (n, changed, info, msgspec.json.encode(_columns(session)).decode(), *values))


def _known_places(connection: Connection, numbers: list[int]) -> dict[int, dict[int, tuple[int | None, int]]]:
    asked = "select session, seq, time, turn from forkbook.place where session = any(%s) and turn is not null"
    known: dict[int, dict[int, tuple[int | None, int]]] = {}
    for n, seq, moment, turn in connection.execute(asked, (numbers,)):
        known.setdefault(n, {})[seq] = (moment, turn)
    return known


def read(connection: Connection, heads: Sequence[Any]) -> list[Scanned]:
    """The sessions whose rows (``_HEAD``) are ``heads``, read whole."""
    numbers = [head[0] for head in heads]
    asked = (
        "select p.session, m.line from forkbook.place p join forkbook.message m on m.n = p.message "
        "where p.session = any(%s) order by p.session, p.seq"
    )
    rows = connection.execute(asked, (numbers,)).fetchall()
    lines = {n: [line for _, line in group] for n, group in itertools.groupby(rows, key=lambda row: row[0])}
    found = []
    for n, session, count, line_count, meta, written, size, _ in heads:
        known = Contents(sessions.metadata(session, meta), Revision())
        if line_count != count:
            take_damage(known, sessions.damage_of(connection, n))
        with encoding.without_gc():
            said = read_lines(lines.get(n, [])[:count])
        damaged = known.damaged
        found.append(scanned(session, known.meta, said, damaged=damaged, size_bytes=size, written=written))
    return found


def scan(database: Database, ids: Sequence[str] | None = None) -> Iterator[Scanned]:
    """The sessions ``ids`` (``None``: all), read whole, a few at a time."""
    last = 0
    chosen = "" if ids is None else " and id = any(%s)"
    asked = f"select {_HEAD} from forkbook.session where kind is null and n > %s{chosen} order by n limit {BATCH}"
    while True:
        heads = database.rows(asked, (last,) if ids is None else (last, list(ids)))
        if not heads:
            return
        for batch in _in_batches(heads):
            yield from database.run(partial(read, heads=batch))
        last = heads[-1][0]


def price(database: Database) -> None:
    """Bring what was spent in each session up to date: with its messages, and with the prices."""
    version = prices.version()
    is_old = "kind is null and (priced, priced_at) is distinct from (%s, changed)"
    heads = database.rows(f"select {_HEAD} from forkbook.session where {is_old}", (version,))
    for batch in _in_batches(heads):
        for head, session in zip(batch, database.run(partial(read, heads=batch)), strict=True):
            cost = plain.own_cost(session)
            database.rows("select forkbook.put_cost(%s, %s, %s, %s)", (head[0], head[-1], version, cost))


def _columns(session: Scanned) -> dict[str, Any]:
    """What a listing sorts and filters by."""
    info = session.info
    orders = {name: KEYS[name](session) for name in ORDERS}
    tags = list(info.tags)
    return {
        **orders,
        "title": as_text(orders["title"]),
        "created": microseconds(info.created),
        "last_active": microseconds(info.last_active),
        "parent": info.parent,
        "inherited": info.inherited,
        "damaged": bool(info.damaged or info.fault),
        "title_text": as_text(query.fold(plain.title_text(info))),
        "tags": [as_text(query.fold_name(tag)) for tag in tags],
        "labels": [as_text(tagging.tag_key(tag)) for tag in tags],
        "spelled": [as_text(tag) for tag in tags],
        "models": [as_text(query.fold_name(model)) for model in info.models],
        "model_names": [as_text(model) for model in info.models],
        "tools": [as_text(query.fold_name(tool)) for tool in info.tools],
        "roles": list({as_text(str(message.get("role"))): None for message in session.messages}),
        "verdict": as_text(query.fold_name(records.verdict(info.meta))),
    }


def info_of(session_id: str, info: str, meta: str) -> SessionInfo:
    """A row as it was kept, with the metadata of its session."""
    found = msgspec.json.decode(info, type=SessionInfo)
    return replace(found, meta=dict(sessions.metadata(session_id, meta).values))
