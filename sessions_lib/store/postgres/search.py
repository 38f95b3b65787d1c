"""Search in a database: an index over three letters says where words may stand, the messages are the proof.

Every hit is decoded and matched by ``query``, so nothing false is shown; texts are folded by the same function on both
sides, so nothing true is missed. A word of one or two letters is looked for in every text.

Does not bring sums up to date: the catalog does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

from sessions_lib import query, snippets
from sessions_lib.messages import content, encoding
from sessions_lib.query import Query
from sessions_lib.store import plain
from sessions_lib.store.postgres.conditions import TIME, about_messages, about_sessions, active
from sessions_lib.store.postgres.database import Connection
from sessions_lib.store.postgres.sessions import patterned
from sessions_lib.store.postgres.summary import info_of
from sessions_lib.store.records import Hit, hits_newest_first
from sessions_lib.times import EPOCH

_FETCHED = 200  # candidates at a time; whoever wants a few need not read all
_ROLES = "select distinct role from forkbook.session s, unnest(s.roles) as role where s.kind is null"
_ORDER = "time desc nulls last, id, seq desc"
_CHOSEN = f"s.id, p.seq, {TIME} as time, p.turn, p.message"


def hits(connection: Connection, asked: Query, limit: int | None, *, first_only: bool = False) -> list[Hit]:
    """Where ``asked`` is found, newest first, at most ``limit``; ``first_only``: one a session, without snippets."""
    found = _titles(connection, asked, limit)
    if asked.asks_about_messages:
        roles = [role for (role,) in connection.execute(_ROLES)] if asked.roles else []
        found += _said(connection, asked, roles, limit, first_only)
    return hits_newest_first(found)[:limit]


def _titles(connection: Connection, asked: Query, limit: int | None) -> list[Hit]:
    if asked.roles or (asked.asks_about_messages and not asked.needles):
        return []
    clause, values = about_sessions(asked)
    for pattern in _patterns(asked):
        clause, values = f"{clause} and s.title_text like %s", (*values, pattern)
    if asked.since is not None or asked.until is not None:
        about_days, days = active(asked, without_messages=False)
        clause, values = f"{clause} and {about_days}", (*values, *days)
    rows = connection.execute(
        f"select s.id, s.info, s.meta from forkbook.session s where {clause} "
        "order by s.last_active desc nulls last, s.id",
        values,
    )
    without_days = replace(asked, since=None, until=None)
    found = (hit for row in rows if (hit := plain.title_hit(without_days, info_of(*row), ())) is not None)
    return [hit for hit, _ in zip(found, range(limit), strict=False)] if limit is not None else list(found)


def _patterns(asked: Query) -> list[str]:
    """What every text that ``asked`` finds is like."""
    words = (word for needle in asked.needles for word in needle.replace("\0", " ").split(" "))
    return [f"%{patterned(word)}%" for word in dict.fromkeys(filter(None, words))]


def _said(connection: Connection, asked: Query, roles: list[str], limit: int | None, first_only: bool) -> list[Hit]:
    sessions, about = about_sessions(asked)
    messages, more = about_messages(asked, roles)
    values = (*about, *more)
    if asked.needles:
        chosen = (
            f"select {_CHOSEN} from forkbook.candidates(%s) as found(n) join forkbook.place p on p.message = found.n"
        )
        values, ending = (_patterns(asked), *values), ""
    else:  # the newest message of each session that passes
        chosen, ending = f"select distinct on (s.n) {_CHOSEN} from forkbook.place p", " order by s.n, p.seq desc"
    chosen += " join forkbook.session s on s.n = p.session"
    if asked.roles:
        chosen += " join forkbook.message m on m.n = p.message"
    wanted = (
        f"select id, seq, time, turn, (select line from forkbook.message m where m.n = c.message) "
        f"from ({chosen} where {sessions} and {messages}{ending}) c order by {_ORDER}"
    )
    prove = _prover(asked, first_only)
    found: list[Hit] = []
    seen: set[str] = set()
    for row in _fetched(connection, wanted, values):
        if limit is not None and len(found) >= limit:
            break
        if not (first_only and row[0] in seen) and (hit := prove(row)) is not None:
            found.append(hit)
            seen.add(hit.session)
    return found


def _fetched(connection: Connection, statement: str, values: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    with connection.transaction(), connection.cursor("candidates") as cursor:
        cursor.itersize = _FETCHED
        cursor.execute(statement, values)
        yield from cursor


def _prover(asked: Query, first_only: bool) -> Callable[[tuple[Any, ...]], Hit | None]:
    def prove(row: tuple[Any, ...]) -> Hit | None:
        session, seq, when, turn, line = row
        message = encoding.decode(line)
        text = content.searchable(message)
        if asked.needles and not query.text_matches(asked, text):
            return None
        piece = snippets.Snippet("") if first_only else snippets.snippet(text, asked)
        moment = None if when is None else EPOCH + timedelta(microseconds=when)
        return Hit(session, seq, piece.text, str(message.get("role")), moment, piece.marks, max(1, turn or 1))

    return prove
