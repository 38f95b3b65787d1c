"""Questions about many sessions of a database, answered in SQL; each first reads what changed (see ``summary``).

Does not write sessions.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, tzinfo
from typing import Any, TypeVar

from sessions_lib import query
from sessions_lib.prices import Spent
from sessions_lib.query import Query
from sessions_lib.store import family, plain, tagging
from sessions_lib.store.plain_numbers import PlainNumbers
from sessions_lib.store.postgres import search, summary
from sessions_lib.store.postgres.conditions import Condition, about_sessions, active
from sessions_lib.store.postgres.database import Connection, Database
from sessions_lib.store.records import Hit, Page, SessionInfo

Infos = list[SessionInfo]  # the method ``list`` hides the type of that name inside the class
Hits = list[Hit]
Ids = list[str]
Progress = Callable[[int, int], None]
T = TypeVar("T")

_NEWEST = "order by s.last_active desc nulls last, s.id"
_INFO = "select s.id, s.info, s.meta from forkbook.session s where"
_OF_SUMS = "s.kind is null and s.info is not null"
_COLUMNS = {"id": "s.id", "messages": "s.messages"}  # all others are called as the order is


class PostgresCatalog:
    """The catalog of one database."""

    is_in_memory = False

    def __init__(self, database: Database) -> None:
        """The catalog of ``database``; nothing is asked yet."""
        self._database = database
        self.numbers = PlainNumbers(lambda: summary.scan(database))
        self._local = threading.local()

    # ------------------------------------------------------------ up to date

    def _ask(self, question: Callable[[Connection], T], asked: Query | None = None, order: str = "") -> T:
        """The answer of ``question``, of all that was written before it."""
        if not getattr(self._local, "is_fixed", False):
            summary.refresh(self._database)
        if order == "cost" or (asked is not None and asked.cost):
            summary.price(self._database)
        return self._database.run(question)

    @contextmanager
    def at_one_moment(self, on_progress: Progress | None = None) -> Iterator[None]:
        """Inside, what changed is looked for once, by this thread's first question."""
        if getattr(self._local, "is_fixed", False):
            yield
            return
        summary.refresh(self._database, on_progress)
        self._local.is_fixed = True
        try:
            yield
        finally:
            self._local.is_fixed = False

    @contextmanager
    def as_known(self) -> Iterator[None]:
        """Answers are read anew in a moment; there is nothing to wait for."""
        yield

    def watch(self) -> None:
        """Every question looks for what changed."""

    def waiting(self) -> int:
        """How many sessions changed since they were read."""
        return self._database.run(summary.waiting)

    def catch_up(self, on_progress: Progress | None = None) -> None:
        """Read what changed."""
        summary.refresh(self._database, on_progress)

    def mark(self) -> object:
        """What changes exactly when a session does."""
        asked = "select count(*), sum(changed) from forkbook.session where kind is null"
        return self._database.row(asked)

    def unindexed_bytes(self) -> int:
        """The database keeps its indexes."""
        return 0

    def index(
        self, seconds: float | None = None, on_progress: Progress | None = None, stop: threading.Event | None = None
    ) -> None:
        """The database keeps its indexes."""

    # ------------------------------------------------------------ sessions

    def _rows(self, asked: str) -> list[Any]:
        return self._ask(lambda db: db.execute(asked).fetchall())

    def _infos(self, condition: str, values: Iterable[Any] = (), rest: str = _NEWEST) -> Infos:
        asked = f"{_INFO} {_OF_SUMS} and {condition} {rest}"
        return self._ask(lambda db: [summary.info_of(*row) for row in db.execute(asked, tuple(values))])

    def list(self, limit: int | None = None) -> Infos:
        """Every session, or the ``limit`` newest, newest first."""
        return self._infos("true", (limit,), f"{_NEWEST} limit %s")

    def info(self, session: str) -> SessionInfo | None:
        """One session's row, ``None`` if there is none."""
        return self.infos([session]).get(session)

    def infos(self, ids: Iterable[str]) -> dict[str, SessionInfo]:
        """The rows of the sessions ``ids`` that are there, in this order."""
        order = [*ids]
        found = {row.id: row for row in self._infos("lower(s.id) = any(%s)", ([one.lower() for one in order],))}
        return {session: found[session] for session in order if session in found}

    def costs(self, ids: Iterable[str]) -> dict[str, tuple[Spent, Spent]]:
        """What was spent in each of the sessions ``ids`` that are there, and what its copied start had cost."""
        found = summary.scan(self._database, [*ids])
        return {
            one.info.id: (plain.money(one, one.info.inherited), plain.money(one, 0, one.info.inherited))
            for one in found
        }

    def tags(self) -> dict[str, int]:
        """How many sessions wear each tag, the most worn first; tags that differ by case only are one."""
        asked = (
            'select min(tag.spelled collate "C"), count(*) from forkbook.session s, unnest(s.labels, s.spelled) '
            f'as tag(label, spelled) where {_OF_SUMS} group by label order by 2 desc, label collate "C"'
        )
        return dict(self._rows(asked))

    def models(self) -> Ids:
        """Every model that worked on an answer, sorted."""
        asked = f"select distinct model from forkbook.session s, unnest(s.model_names) as model where {_OF_SUMS}"
        return sorted(model for (model,) in self._rows(asked))

    def lineage(self) -> dict[str, tuple[str, int]]:
        """Each fork's parent, and how many messages it copied."""
        asked = f"select id, parent, inherited from forkbook.session s where {_OF_SUMS} and parent is not null"
        rows = self._rows(asked)
        return {session: (parent, inherited) for session, parent, inherited in rows}

    def find_by_tag(self, tag: str) -> Infos:
        """The sessions that wear ``tag``, upper and lower case alike, newest first."""
        return self._infos("%s = any(s.labels)", (tagging.tag_key(tag),))

    def find_by_date(self, day: date, zone: tzinfo | None = None) -> Infos:
        """The sessions with a message of ``day`` in ``zone`` (default: this machine's), newest first."""
        since, until = query.day_bounds(day, zone)
        return self._infos(*active(replace(Query(), since=since, until=until), without_messages=True))

    # ------------------------------------------------------------ queries

    def _matching(self, connection: Connection, asked: Query) -> Condition:
        """The sessions ``asked`` finds (a blank query: all) as a condition on ``forkbook.session s``."""
        clause, values = about_sessions(asked)
        if asked.needles or asked.roles:
            found = {hit.session for hit in search.hits(connection, asked, None, first_only=True)}
            clause, values = "s.kind is null and s.id = any(%s)", ([*found],)
        elif asked.asks_about_messages:
            days, bounds = active(asked, without_messages=True)
            clause, values = f"{clause} and {days}", (*values, *bounds)
        return f"s.info is not null and {clause}", values

    def ids(self, asked: Query) -> Ids:
        """The ids of all sessions that ``asked`` finds (a blank query: all), newest first."""

        def find(db: Connection) -> Ids:
            clause, values = self._matching(db, asked)
            wanted = f"select s.id from forkbook.session s where {clause} {_NEWEST}"
            return [session for (session,) in db.execute(wanted, values)]

        return self._ask(find, asked)

    def page(
        self, asked: Query, order: str = "last_active", *, descending: bool = True, offset: int = 0, limit: int = 50
    ) -> Page:
        """One page of the sessions that ``asked`` finds (a blank query: all); see ``SessionCatalog.page``."""

        def find(db: Connection) -> Page:
            clause, values = self._matching(db, asked)
            counted = db.execute(f"select count(*) from forkbook.session s where {clause}", values).fetchone()
            total = counted[0] if counted else 0
            if order == "family":
                return _family_page(db, clause, values, total, offset, limit)
            by = f"{_COLUMNS.get(order, f's.{order}')} {'desc' if descending else 'asc'} nulls last, s.id"
            rows = db.execute(f"{_INFO} {clause} order by {by} limit %s offset %s", (*values, limit, offset))
            found = [summary.info_of(*row) for row in rows]
            return Page(found, [0] * len(found), total)

        return self._ask(find, asked, order)

    def search(self, asked: Query, limit: int | None = None) -> Hits:
        """Where ``asked`` is found, newest first; see ``plain``."""
        return [] if asked.is_blank else self._ask(lambda db: search.hits(db, asked, limit), asked)


def _family_page(
    connection: Connection, clause: str, values: tuple[Any, ...], total: int, offset: int, limit: int
) -> Page:
    wanted = f"select s.id, s.parent from forkbook.session s where {clause} {_NEWEST}"
    listed = connection.execute(wanted, values).fetchall()
    here = {session for session, _ in listed}
    ordered = family.tree((session for session, _ in listed), [pair for pair in listed if pair[1] in here])
    shown = [*itertools.islice(ordered, offset, offset + limit)]
    rows = connection.execute(f"{_INFO} s.kind is null and s.id = any(%s)", ([session for session, _ in shown],))
    by_id = {row[0]: summary.info_of(*row) for row in rows}
    return Page([by_id[session] for session, _ in shown], [depth for _, depth in shown], total)
