"""Where a session can be forked, seen from its last messages alone, and the fork.

A long session is not read for it: the messages around the fork point say whether a call would be left without its
result. What they cannot say is left to whoever reads all, with the same answer.

Does not retry.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from sessions_lib.messages import has_id, places, tool_calls
from sessions_lib.messages.content import Message
from sessions_lib.store import forks
from sessions_lib.store.forks import ForkPoint
from sessions_lib.store.postgres import sessions, writing
from sessions_lib.store.postgres.database import Connection
from sessions_lib.store.postgres.rows import read_lines, row_of

_WINDOW = 64  # messages read before the fork point; a step with more tool results takes reading all
_BEHIND = """
select (select m.role from forkbook.place p join forkbook.message m on m.n = p.message
    where p.session = %(n)s and p.seq = %(at)s),
  (select count(*) from forkbook.place p join forkbook.message m on m.n = p.message
    where p.session = %(n)s and p.seq < %(at)s and m.role = 'user')"""
_PROMPTS = (
    "select m.line from forkbook.place p join forkbook.message m on m.n = p.message "
    "where p.session = %s and p.seq < %s and m.role = 'user' order by p.seq limit 8"
)


def point(connection: Connection, n: int, count: int, at: int | None, title: str) -> ForkPoint | None:
    """The fork point after ``at`` of the ``count`` messages (``None``: the last allowed), ``None`` if it takes reading.

    ``title`` is the session's display title.
    """
    upto = count if at is None else at
    if not 0 < upto <= count:
        return None
    first = max(0, upto - _WINDOW)
    window = read_lines(sessions.lines_of(connection, n, first, upto))
    if len(window) != upto - first or all(message.get("role") == "tool" for message in window):
        return None
    if not tool_calls.is_fork_point(window, len(window)):
        kept = first + tool_calls.last_fork_point(window)
        return point(connection, n, count, kept, title) if at is None and kept > first else None
    last = window[-1]
    if not has_id(last):
        return None
    following, turn = connection.execute(_BEHIND, {"n": n, "at": upto}).fetchone() or (None, 0)
    place = places.place_behind(turn, last.get("role"), bool(tool_calls.calls_of(last)), following)
    return ForkPoint(upto, last["id"], count - upto, title, place)


def first_prompts(connection: Connection, n: int, count: int) -> list[Message]:
    """The first few prompts of a session, to name it by."""
    return read_lines([line for (line,) in connection.execute(_PROMPTS, (n, count))])


def copy(
    connection: Connection,
    parent: tuple[str, int],
    new_id: str | None,
    at: int,
    meta: dict[str, Any],
    then: Sequence[Message],
    *,
    made: uuid.UUID,
    number_title: bool,
) -> str:
    """Make the fork of ``parent`` (id and number) after ``at`` messages, with ``then`` behind them, and give its id."""
    session_id, n = parent
    if connection.execute("select 1 from forkbook.session where n = %s for share", (n,)).fetchone() is None:
        raise sessions.gone(session_id)
    base = forks.base_id(session_id, meta)
    title = sessions.numbered_title(connection, base, meta["title"]) if number_title else meta["title"]
    child, child_id, is_new = sessions.create(connection, new_id, base, {**meta, "title": title}, made)
    if is_new and (at or then):
        rows = [row_of(message) for message in then]
        connection.execute(
            "insert into forkbook.place(session, seq, message, time, turn) "
            "select %s, seq, message, time, turn from forkbook.place where session = %s and seq < %s",
            (child, n, at),
        )
        writing.put(connection, child, rows, range(at, at + len(rows)))
        count = at + len(rows)
        writing.put_counts(connection, child, messages=count, lines=count, size=sessions.size(connection, child))
    return child_id
