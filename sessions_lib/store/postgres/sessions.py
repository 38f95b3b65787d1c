"""Rows of sessions: found, made, copied; each function is given a connection, and leaves transactions to its caller.

Does not decide who may, and does not retry.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sessions_lib import names
from sessions_lib.errors import SessionExists, SessionNotFound
from sessions_lib.messages import encoding
from sessions_lib.store import forks
from sessions_lib.store.postgres import writing
from sessions_lib.store.postgres.database import Connection
from sessions_lib.store.postgres.rows import Damage, Row
from sessions_lib.store.records import META_VERSION, Metadata

# n, messages, version of the metadata, metadata, lines
State = tuple[int, int, int, str, int]
_STATE = (
    "select n, messages, meta_version, meta, lines from forkbook.session "
    "where kind is null and lower(id) = lower(%s) and id = %s"
)
_INSERT = (
    "insert into forkbook.session(id, made, meta) values(%s, %s, %s) "
    "on conflict (lower(id)) where kind is null do nothing returning n"
)


def state(connection: Connection, session_id: str, *, lock: bool = False) -> State | None:
    """The row of a session; ``lock`` keeps others from changing it until the transaction ends."""
    asked = _STATE + (" for update" if lock else "")
    found: Any = connection.execute(asked, (session_id, session_id)).fetchone()
    row: State | None = found
    return row


def gone(session_id: str) -> SessionNotFound:
    """That a session was deleted while it was open."""
    return SessionNotFound(
        session_id,
        f"Session {session_id!r} was deleted while it was open; nothing was written. "
        f"See: forkbook restore {session_id}",
    )


def create(
    connection: Connection, wanted: str | None, base: str, meta: Mapping[str, Any], made: uuid.UUID
) -> tuple[int, str, bool]:
    """Make an empty session: its number, its id, and False if an earlier try has made it already (``made``)."""
    again = connection.execute("select n, id from forkbook.session where made = %s", (made,)).fetchone()
    if again is not None:
        return again[0], again[1], False
    start = names.check_id(wanted) if wanted is not None else base
    like = f"{patterned(start[: names.MAX_ID - 8].lower())}%"
    asked = "select lower(id) from forkbook.session where kind is null and lower(id) like %s"
    taken = {session for (session,) in connection.execute(asked, (like,))}
    while True:
        if wanted is not None and wanted.lower() in taken:
            raise SessionExists(wanted)
        new_id = wanted or names.unique_id(base, taken)
        found = connection.execute(_INSERT, (new_id, made, encoded({"id": new_id, **meta}))).fetchone()
        if found is not None:
            writing.announce(connection, new_id)
            return found[0], new_id, True
        taken.add(new_id.lower())  # made by another meanwhile, or one that this person cannot see


def patterned(text: str) -> str:
    """``text`` as a part of a pattern of ``like``."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def encoded(values: Mapping[str, Any]) -> str:
    """Metadata as it is kept, without what is ``None``."""
    kept = {key: value for key, value in values.items() if value is not None}
    return encoding.encode({"version": META_VERSION, **kept}).decode()


def metadata(session_id: str, text: str) -> Metadata:
    """Metadata as it was kept."""
    return Metadata(encoding.decode(text), where=session_id)


def lines_of(connection: Connection, n: int, start: int, stop: int) -> list[str]:
    """The lines of the messages ``start`` to ``stop`` of the session ``n``."""
    asked = (
        "select m.line from forkbook.place p join forkbook.message m on m.n = p.message "
        "where p.session = %s and p.seq >= %s and p.seq < %s order by p.seq"
    )
    return [line for (line,) in connection.execute(asked, (n, start, stop))]


def damage_of(connection: Connection, n: int) -> list[Damage]:
    """The damaged lines of the session ``n``; a torn one that is not the last any more was ended by what follows."""
    asked = (
        "select d.line, d.seq, d.held, d.raw, d.kind, d.reason, s.lines from forkbook.damage d "
        "join forkbook.session s on s.n = d.session where d.session = %s order by d.line"
    )
    found = []
    for *values, lines in connection.execute(asked, (n,)):
        one = Damage(*values)
        if one.kind == "torn" and one.line < lines:
            one = replace(one, kind="not JSON", reason="not JSON, perhaps cut off")
        found.append(one)
    return found


def size(connection: Connection, n: int) -> int:
    """How many bytes the messages of the session ``n`` take, newlines included."""
    asked = (
        "select coalesce(sum(octet_length(m.line) + 1), 0) from forkbook.place p "
        "join forkbook.message m on m.n = p.message where p.session = %s"
    )
    found = connection.execute(asked, (n,)).fetchone()
    return int(found[0]) if found else 0


def numbered_title(connection: Connection, base: str, title: str) -> str:
    """``title``, with a number if a session whose id is made of ``base`` is called so already."""
    asked = "select id, meta from forkbook.session where kind is null and lower(id) like %s"
    siblings = connection.execute(asked, (f"{patterned(base.lower())}%",)).fetchall()
    return forks.numbered(title, {metadata(session, meta).title for session, meta in siblings})


def end_if_stored(connection: Connection, n: int, rows: Sequence[Row], first: int) -> int | None:
    """Where ``rows`` end in the session ``n``, if they stand there: behind ``first`` messages, or as the last of them.

    An append whose connection was cut may have been done; its lines hold ids that nothing else has.
    """
    lines = [row.line for row in rows]
    if not all(row.id for row in rows):
        return None
    for start in (first, first - len(lines)):
        if start >= 0 and lines_of(connection, n, start, start + len(lines)) == lines:
            return start + len(lines)
    return None
