"""The trash of a database: rows of sessions with a ``kind``, whose messages stay where they are until they are purged.

Does not decide who may delete.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC
from typing import Any

import psycopg

from sessions_lib.errors import SessionError, SessionExists
from sessions_lib.messages import encoding
from sessions_lib.store.postgres import writing
from sessions_lib.store.postgres.database import Connection
from sessions_lib.store.postgres.rows import Damage, row_of
from sessions_lib.store.postgres.sessions import gone, metadata, state
from sessions_lib.store.records import TrashEntry

_ENTRY = "entry, id, kind, trashed, meta, bytes, lines"
_PUT = (
    "update forkbook.session set kind = %(kind)s, trashed = clock_timestamp(), changed = nextval('forkbook.change'), "
    "entry = to_char(clock_timestamp() at time zone 'utc', 'YYYYMMDD\"T\"HH24MISSMS\"Z.\"') || n || '~' || %(kind)s "
    f"|| '~' || id where n = %(n)s returning {_ENTRY}"
)


def _entry(found: Any) -> TrashEntry:
    entry, session, kind, when, meta, size, lines = found
    title = metadata(session, meta).title if kind == "deleted" else None  # a merge or a repair kept its metadata
    return TrashEntry(entry, session, kind, when.astimezone(UTC), title, size + (len(meta) if not lines else 0))


def delete(connection: Connection, session_id: str) -> TrashEntry:
    """Move the session to the trash."""
    found = state(connection, session_id, lock=True)
    if found is None:
        # The connection may have been cut behind the commit: the newest entry is what was asked for.
        last = next((one for one in entries(connection) if one.session == session_id and one.is_session), None)
        if last is None:
            raise gone(session_id)
        return last
    put = connection.execute(_PUT, {"n": found[0], "kind": "deleted"}).fetchone()
    writing.announce(connection, session_id)
    return _entry(put)


def entries(connection: Connection) -> list[TrashEntry]:
    """What is in the trash, newest first."""
    asked = f"select {_ENTRY} from forkbook.session where kind is not null order by trashed desc, n desc"
    return [_entry(row) for row in connection.execute(asked)]


def find(connection: Connection, entry: str) -> tuple[int, int, str]:
    """The number, the count of messages and the metadata of what lies in the trash as ``entry``."""
    asked = "select n, messages, meta from forkbook.session where entry = %s"
    found = connection.execute(asked, (entry,)).fetchone()
    if found is None:
        raise _missing(entry)
    return found[0], found[1], found[2]


def _missing(name: str) -> SessionError:
    return SessionError(f"There is no deleted session {name!r} in the trash. See: forkbook list --trash")


def restore(connection: Connection, name: str) -> str:
    """Bring back the newest deleted session of this id, or the entry of this name; its id."""
    asked = (
        "select n, id from forkbook.session where kind is not null and (entry = %s or (id = %s and kind = 'deleted')) "
        "order by trashed desc, n desc limit 1 for update"
    )
    found = connection.execute(asked, (name, name)).fetchone()
    if found is None:
        raise _missing(name)
    try:
        with connection.transaction():
            connection.execute(
                "update forkbook.session set kind = null, entry = null, trashed = null, "
                "changed = nextval('forkbook.change') where n = %s",
                (found[0],),
            )
    except psycopg.errors.UniqueViolation as error:
        raise SessionExists(found[1]) from error
    writing.announce(connection, found[1])
    return str(found[1])


def replace(
    connection: Connection,
    session_id: str,
    lines: Sequence[str],
    damaged: Sequence[Damage],
    kept_as: str,
    made: uuid.UUID,
) -> None:
    """Make a session of ``lines`` in place of the one there is, which goes to the trash as ``kept_as``.

    Lines that it had are the same messages as before; ``damaged`` stays damaged. ``made``: an earlier try did it.
    """
    if connection.execute("select 1 from forkbook.session where made = %s", (made,)).fetchone() is not None:
        return
    found = state(connection, session_id, lock=True)
    if found is None:
        raise gone(session_id)
    n, count = found[:2]
    known: dict[str, int] = dict(
        connection.execute(
            "select m.line, m.n from forkbook.place p join forkbook.message m on m.n = p.message "
            "where p.session = %s order by p.seq desc",
            (n,),
        ).fetchall()
    )
    if count:
        connection.execute(_PUT, {"n": n, "kind": kept_as})
        new = connection.execute(
            "insert into forkbook.session(id, made, owner, access, link, meta, meta_version) "
            "select id, %s, owner, access, link, meta, meta_version from forkbook.session where n = %s returning n",
            (made, n),
        ).fetchone()
        n = new[0] if new else n
    seqs = [seq for seq, line in enumerate(lines) if line in known]
    connection.execute(
        "insert into forkbook.place(session, seq, message) select %s, * from unnest(%s::integer[], %s::bigint[])",
        (n, seqs, [known[lines[seq]] for seq in seqs]),
    )
    fresh = [seq for seq, line in enumerate(lines) if line not in known]
    writing.put(connection, n, [row_of(encoding.decode(lines[seq]), lines[seq].encode()) for seq in fresh], fresh)
    writing.put_damage(connection, n, damaged)
    size = sum(len(line.encode()) + 1 for line in lines) + sum(len(one.raw) + 1 for one in damaged)
    writing.put_counts(connection, n, messages=len(lines), lines=len(lines) + len(damaged), size=size)
    writing.announce(connection, session_id)


def purge(connection: Connection, entry: TrashEntry) -> None:
    """Delete ``entry`` for good, and every text that no other session holds."""
    connection.execute("select forkbook.delete_for_good(%s)", (entry.entry,))
