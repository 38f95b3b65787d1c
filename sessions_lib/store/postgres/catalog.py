"""Questions about many sessions of a database.

Does not write sessions.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sessions_lib.store.plain import Scanned, scanned
from sessions_lib.store.plain_catalog import PlainCatalog
from sessions_lib.store.postgres import sessions
from sessions_lib.store.postgres.database import Database
from sessions_lib.store.postgres.rows import read_lines, take_damage
from sessions_lib.store.records import Contents, Revision


class PostgresCatalog(PlainCatalog):
    """The plain answers over all sessions."""

    def __init__(self, database: Database) -> None:
        """Over the sessions of ``database``."""
        super().__init__(self._all)
        self._database = database

    def _all(self) -> Iterator[Scanned]:
        asked = "select id, n, messages, meta, written, bytes from forkbook.session where kind is null order by id"
        for session, n, count, meta, written, size in self._database.run(lambda db: db.execute(asked).fetchall()):
            lines = self._database.run(partial(sessions.lines_of, n=n, start=0, stop=count))
            known = Contents(sessions.metadata(session, meta), Revision())
            take_damage(known, self._database.run(partial(sessions.damage_of, n=n)))
            said = read_lines(lines)
            yield scanned(session, known.meta, said, damaged=known.damaged, size_bytes=size, written=written)
