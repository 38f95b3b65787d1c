"""Which copy of a message counts, where several files hold it: each message counts once.

It counts in the session that wrote it rather than in one that inherited it, then in the one whose id comes first, then
where it stands first. Identities (``messages.identities``) are kept as numbers of 64 bits: by number for finding
copies, and by session for taking a session out.

Does not sum up: it says which sessions have to be summed up anew, and without which messages.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter

_COPIES = (
    "SELECT i.session, i.number FROM identities i JOIN sessions s ON s.n=i.session WHERE i.identity=? "
    "ORDER BY i.number>=s.inherited DESC, s.id, i.number"
)
_MANY = (
    "SELECT i.identity, i.session, i.number FROM identities i JOIN sessions s ON s.n=i.session WHERE i.identity IN "
    "(SELECT identity FROM identities GROUP BY identity HAVING count(*)>1) "
    "ORDER BY i.identity, i.number>=s.inherited DESC, s.id, i.number"
)


def numbers(identities: Iterable[str]) -> array[int]:
    """Identities as the catalog keeps them."""
    to_int, to_bytes = int.from_bytes, bytes.fromhex
    return array("q", [to_int(to_bytes(identity), "big", signed=True) for identity in identities])


def add(db: sqlite3.Connection, session: int, first: int, identities: array[int], *, now: bool = True) -> None:
    """Keep the identities of the messages of ``session`` from number ``first`` on; not ``now``: until ``add_all``."""
    if identities:
        db.execute(
            "INSERT OR REPLACE INTO identity_lists VALUES(?, ?, ?, ?)", (session, first, int(now), identities.tobytes())
        )
        if now:
            _insert(db, [(identity, session, number) for number, identity in enumerate(identities, first)])


def add_all(db: sqlite3.Connection) -> None:
    """Let the identities be found that were not added at once."""
    rows = []
    for session, first, packed in db.execute("SELECT session, first, packed FROM identity_lists WHERE added=0"):
        identities: array[int] = array("q", packed)
        rows += [(identity, session, number) for number, identity in enumerate(identities, first)]
    rows.sort(key=itemgetter(0))  # in order, a tree is filled at half the cost
    _insert(db, rows)
    db.execute("UPDATE identity_lists SET added=1 WHERE added=0")


def _insert(db: sqlite3.Connection, rows: list[tuple[int, int, int]]) -> None:
    db.executemany("INSERT OR IGNORE INTO identities VALUES(?, ?, ?)", rows)


def of(db: sqlite3.Connection, session: int) -> array[int]:
    """The identities of all messages of ``session``, in order."""
    found: array[int] = array("q")
    for (run,) in db.execute("SELECT packed FROM identity_lists WHERE session=? ORDER BY first", (session,)):
        found.frombytes(run)
    return found


def remove(db: sqlite3.Connection, session: int) -> set[int]:
    """Take the identities of ``session`` out; the sessions whose copies count from now on."""
    gained = set()
    for number, identity in enumerate(of(db, session)):
        copies = db.execute(_COPIES, (identity,)).fetchall()
        if len(copies) > 1 and copies[0][0] == session:
            gained |= set(next(([other] for other, _ in copies if other != session), []))
        db.execute("DELETE FROM identities WHERE identity=? AND session=? AND number=?", (identity, session, number))
    db.execute("DELETE FROM identity_lists WHERE session=?", (session,))
    return gained


def changed_by(db: sqlite3.Connection, session: int, new: Sequence[int]) -> set[int]:
    """The sessions whose sums are no longer right now that ``session`` has the identities ``new``."""
    touched = set()
    for identity in dict.fromkeys(new):
        copies = db.execute(_COPIES, (identity,)).fetchall()
        if len(copies) > 1:
            touched.add(session)
            if copies[0][0] == session:  # another one counted before
                touched |= {other for other, _ in copies if other != session}
    return touched


def losers_of(db: sqlite3.Connection, session: int) -> set[int]:
    """The numbers of the messages of ``session`` that count elsewhere."""
    losers = set()
    for number, identity in enumerate(of(db, session)):
        copies = db.execute(_COPIES, (identity,)).fetchall()
        if len(copies) > 1 and copies[0] != (session, number):
            losers.add(number)
    return losers


def all_losers(db: sqlite3.Connection) -> Iterator[tuple[int, set[int]]]:
    """Every session with messages that count elsewhere, or that had some when it was summed up, and their numbers."""
    losers: dict[int, set[int]] = {}
    for (session,) in db.execute("SELECT DISTINCT session FROM activity WHERE copies>0"):
        losers[session] = set()
    for _, copies in groupby(db.execute(_MANY), key=itemgetter(0)):
        for _, session, number in list(copies)[1:]:
            losers.setdefault(session, set()).add(number)
    yield from losers.items()
