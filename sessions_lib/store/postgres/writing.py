"""The statements that add messages: each all or nothing, each done again without a second line.

Does not know leases' lives or what a person is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sessions_lib.store.postgres.database import Connection
from sessions_lib.store.postgres.rows import Damage, Row

CHANNEL = "forkbook"

# One statement, so one wait for the server: the session grows if it is as it was read and the lease is still held.
_APPEND = f"""
with grown as (
  update forkbook.session set messages = messages + %(count)s, lines = lines + %(count)s, bytes = bytes + %(bytes)s,
    written = clock_timestamp(), changed = nextval('forkbook.change')
  where n = %(n)s and kind is null and messages = %(first)s
    and exists(select from forkbook.lease where name = %(lease)s and token = %(token)s)
  returning n),
new as (
  select nextval('forkbook.message_n_seq') as n, seq, id, role, line, said
  from unnest(%(ids)s::text[], %(roles)s::text[], %(lines)s::text[], %(said)s::text[])
    with ordinality as given(id, role, line, said, seq)),
kept as (
  insert into forkbook.message(n, id, role, line, said) overriding system value
  select new.n, new.id, new.role, new.line, new.said from new, grown),
placed as (
  insert into forkbook.place(session, seq, message)
  select grown.n, %(first)s + new.seq - 1, new.n from new, grown)
select pg_notify('{CHANNEL}', %(session)s) from grown"""

_PUT = """
with new as (
  select nextval('forkbook.message_n_seq') as n, seq, id, role, line, said
  from unnest(%(ids)s::text[], %(roles)s::text[], %(lines)s::text[], %(said)s::text[], %(seqs)s::integer[])
    as given(id, role, line, said, seq)),
kept as (
  insert into forkbook.message(n, id, role, line, said) overriding system value
  select n, id, role, line, said from new)
insert into forkbook.place(session, seq, message) select %(n)s, seq, n from new"""


def _arrays(rows: Sequence[Row]) -> dict[str, Any]:
    return {
        "ids": [row.id for row in rows],
        "roles": [row.role for row in rows],
        "lines": [row.line for row in rows],
        "said": [row.said for row in rows],
    }


def append(
    connection: Connection, session: str, n: int, first: int, rows: Sequence[Row], lease: tuple[str, object]
) -> bool:
    """Add ``rows`` behind the ``first`` messages of the session ``n``; False if it is not as it was read."""
    grown = {"session": session, "n": n, "first": first, "count": len(rows), "bytes": sum(row.size for row in rows)}
    values = {**_arrays(rows), **grown, "lease": lease[0], "token": lease[1]}
    return connection.execute(_APPEND, values).fetchone() is not None


def put(connection: Connection, n: int, rows: Sequence[Row], seqs: Sequence[int]) -> None:
    """Make ``rows`` the messages ``seqs`` of the session ``n``."""
    if rows:
        connection.execute(_PUT, {**_arrays(rows), "n": n, "seqs": list(seqs)})


def put_damage(connection: Connection, n: int, damaged: Sequence[Damage]) -> None:
    """Keep the damaged lines of the session ``n``."""
    with connection.cursor() as cursor:
        cursor.executemany(
            "insert into forkbook.damage values(%s, %s, %s, %s, %s, %s, %s)",
            [(n, one.line, one.seq, one.held, one.raw, one.kind, one.reason) for one in damaged],
        )


def put_counts(connection: Connection, n: int, *, messages: int, lines: int, size: int) -> None:
    """What the session ``n`` holds now."""
    connection.execute(
        "update forkbook.session set messages = %s, lines = %s, bytes = %s, written = clock_timestamp(), "
        "changed = nextval('forkbook.change') where n = %s",
        (messages, lines, size, n),
    )


def announce(connection: Connection, session: str) -> None:
    """Tell every process that the session changed, when the transaction ends."""
    connection.execute("select pg_notify(%s, %s)", (CHANNEL, session))
