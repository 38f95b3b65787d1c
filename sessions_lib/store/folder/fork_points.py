"""Where a long session can be forked, without reading it: the catalog knows where each message ends.

Only the messages around the fork point are parsed, to see that no tool call would be left without its result. What the
catalog cannot say for sure (glued lines, messages without ids, a file that changes at this moment) is left to
the store, which reads everything and gives the same answer.

Does not fork: the store does.
"""

from __future__ import annotations

import sqlite3

from sessions_lib.messages import has_id, places, tool_calls
from sessions_lib.store.folder import jsonl
from sessions_lib.store.folder.folder import SUFFIX
from sessions_lib.store.folder.index.catalog import Catalog
from sessions_lib.store.forks import ForkPoint

_WINDOW = 64  # messages parsed before the fork point; a step with more tool results takes reading all
# Messages of the session, first message, its start, the end, the title; the last one's turn, the role behind it.
_Window = tuple[int, int, int, int, str, int, str | None]


def find(catalog: Catalog, session_id: str, at: int | None) -> tuple[ForkPoint, int] | None:
    """The fork point after ``at`` messages (``None``: the last allowed), and how many bytes of the file are before it.

    ``None`` if that takes reading the file.
    """
    found = catalog.ask(lambda db: _window(catalog, db, session_id, at))
    if found is None:
        return None
    count, first, start, end, title, turn, following = found
    try:
        window = jsonl.read(catalog.folder / (session_id + SUFFIX), start, stop=end).messages
    except OSError:
        return None
    upto = first + len(window)
    if upto != (count if at is None else at) or all(message.get("role") == "tool" for message in window):
        return None
    if tool_calls.is_fork_point(window, len(window)):
        if not has_id(window[-1]):
            return None
        place = places.place_behind(turn, window[-1].get("role"), bool(tool_calls.calls_of(window[-1])), following)
        return ForkPoint(upto, window[-1]["id"], count - upto, title, place), end
    kept = first + tool_calls.last_fork_point(window)
    return find(catalog, session_id, kept) if at is None and kept > first else None


def _window(catalog: Catalog, db: sqlite3.Connection, session_id: str, at: int | None) -> _Window | None:
    """Where the last messages before the fork point stand; the point itself must be the end of a line."""
    session = db.execute("SELECT n, messages, title FROM sessions WHERE id=?", (session_id,)).fetchone()
    if session is None:
        return None
    n, count, title = session
    upto = count if at is None else at
    if not 0 < upto <= count:
        return None
    first = max(0, upto - _WINDOW)
    where = "SELECT start, length, place, turn, role FROM messages WHERE session=? AND number=?"
    last = db.execute(where, (n, upto - 1)).fetchone()
    top = db.execute(where, (n, first)).fetchone()
    behind = db.execute(where, (n, upto)).fetchone()
    if last is None or top is None or top[2] or (behind is not None and behind[2]):
        return None
    return count, first, top[0], last[0] + last[1], title, last[3], behind[4] if behind else None
