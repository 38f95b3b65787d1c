"""The plain catalog: every question about many sessions by reading them all.

Does not know where sessions are kept, and keeps nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import date, tzinfo
from typing import Any

from sessions_lib import query
from sessions_lib.prices import Spent
from sessions_lib.query import Query
from sessions_lib.store import family
from sessions_lib.store.plain import Scanned, hits_in, is_active, is_found, money, own_cost
from sessions_lib.store.plain_numbers import PlainNumbers
from sessions_lib.store.records import Hit, Page, SessionInfo, hits_newest_first, newest_first
from sessions_lib.store.tagging import tag_counts, tag_key

Infos = list[SessionInfo]  # the method ``list`` hides the type of that name inside the class
Hits = list[Hit]
Ids = list[str]
Names = list[str]
Progress = Callable[[int, int], None]

_ASCII_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
KEYS: dict[str, Callable[[Scanned], Any]] = {
    "last_active": lambda one: one.info.last_active,
    "title": lambda one: one.info.title.translate(_ASCII_LOWER),
    "created": lambda one: one.info.created,
    "turns": lambda one: one.info.turns,
    "messages": lambda one: one.info.messages,
    "tokens": lambda one: one.info.tokens.total if one.info.tokens.answers else 0,
    "own_tokens": lambda one: one.info.own_tokens.total if one.info.own_tokens.answers else 0,
    "cost": own_cost,
    "tool_calls": lambda one: one.info.tool_calls,
    "errors": lambda one: one.info.errors,
    "size_bytes": lambda one: one.info.size_bytes,
    "id": lambda one: one.info.id,
}


def in_order(sessions: Iterable[Scanned], order: str, *, descending: bool) -> Infos:
    """The rows of ``sessions`` by ``order`` (see ``SessionCatalog.page``); unknown last, equal ones by id."""
    by_id = sorted(sessions, key=lambda one: one.info.id)
    keyed = [(KEYS[order](one), one.info) for one in by_id]
    known = sorted((pair for pair in keyed if pair[0] is not None), key=lambda pair: pair[0], reverse=descending)
    return [row for _, row in [*known, *(pair for pair in keyed if pair[0] is None)]]


class PlainCatalog:
    """A ``SessionCatalog`` that reads every session at every question."""

    is_in_memory = True

    def __init__(self, read_all: Callable[[], Iterable[Scanned]]) -> None:
        """Over the sessions that ``read_all`` reads."""
        self._read_all = read_all
        self.numbers = PlainNumbers(read_all)

    def _rows(self) -> Infos:
        return [session.info for session in self._read_all()]

    def list(self, limit: int | None = None) -> Infos:
        """Every session, or the ``limit`` newest, newest first."""
        return newest_first(self._rows())[:limit]

    def info(self, session: str) -> SessionInfo | None:
        """One session's row, ``None`` if there is none."""
        return self.infos([session]).get(session)

    def infos(self, ids: Iterable[str]) -> dict[str, SessionInfo]:
        """The rows of the sessions ``ids`` that are there, in this order."""
        rows = {row.id: row for row in self._rows()}
        return {session: rows[session] for session in ids if session in rows}

    def costs(self, ids: Iterable[str]) -> dict[str, tuple[Spent, Spent]]:
        """What was spent in each of the sessions ``ids`` that are there, and what its copied start had cost."""
        wanted = set(ids)
        found = [session for session in self._read_all() if session.info.id in wanted]
        return {one.info.id: (money(one, one.info.inherited), money(one, 0, one.info.inherited)) for one in found}

    def tags(self) -> dict[str, int]:
        """How many sessions wear each tag, the most worn first; tags that differ by case only are one."""
        return tag_counts(self._rows())

    def models(self) -> Names:
        """Every model that worked on an answer, sorted."""
        return sorted({model for row in self._rows() for model in row.models})

    def lineage(self) -> dict[str, tuple[str, int]]:
        """Each fork's parent, and how many messages it copied."""
        return {row.id: (row.parent, row.inherited) for row in self._rows() if row.parent is not None}

    def find_by_tag(self, tag: str) -> Infos:
        """The sessions that wear ``tag``, upper and lower case alike, newest first."""
        return [row for row in self.list() if tag_key(tag) in map(tag_key, row.tags)]

    def find_by_date(self, day: date, zone: tzinfo | None = None) -> Infos:
        """The sessions with a message of ``day`` in ``zone`` (default: this machine's), newest first."""
        since, until = query.day_bounds(day, zone)
        asked = replace(Query(), since=since, until=until)
        return newest_first([session.info for session in self._read_all() if is_active(asked, session)])

    def ids(self, asked: Query) -> Ids:
        """The ids of all sessions that ``asked`` finds (a blank query: all), newest first."""
        return [row.id for row in newest_first(self._found(asked))]

    def _found(self, asked: Query) -> Infos:
        return [session.info for session in self._read_all() if is_found(asked, session)]

    def page(
        self, asked: Query, order: str = "last_active", *, descending: bool = True, offset: int = 0, limit: int = 50
    ) -> Page:
        """One page of the sessions that ``asked`` finds (a blank query: all); see ``SessionCatalog.page``."""
        found = [session for session in self._read_all() if is_found(asked, session)]
        rows = [session.info for session in found]
        if order != "family":
            shown = in_order(found, order, descending=descending)[offset : offset + limit]
            return Page(shown, [0] * len(shown), len(rows))
        listed = newest_first(rows)
        by_id = {row.id: row for row in listed}
        lineage = [(row.id, row.parent) for row in listed if row.parent in by_id]
        placed = list(family.tree(by_id, lineage))[offset : offset + limit]
        return Page([by_id[session] for session, _ in placed], [depth for _, depth in placed], len(rows))

    def search(self, asked: Query, limit: int | None = None) -> Hits:
        """Where ``asked`` is found, newest first: every message, and each title or tags that match.

        A query about sessions and days only (no word) finds one hit a session: its newest message that passes, or the
        session itself.
        """
        if asked.is_blank:
            return []
        hits = [hit for session in self._read_all() for hit in hits_in(asked, session)]
        return hits_newest_first(hits)[:limit]

    # ------------------------------------------------------------ nothing to keep up

    def mark(self) -> object:
        """Never equal to another: whoever keeps answers asks again."""
        return object()

    def at_one_moment(self, on_progress: Progress | None = None) -> AbstractContextManager[None]:
        """Nothing to hold: each question reads what is there."""
        return nullcontext()

    def as_known(self) -> AbstractContextManager[None]:
        """Nothing is known before it is asked."""
        return nullcontext()

    def watch(self) -> None:
        """Nothing to watch."""

    def waiting(self) -> int:
        """Nothing waits to be read."""
        return 0

    def catch_up(self, on_progress: Progress | None = None) -> None:
        """Nothing to catch up with."""

    def unindexed_bytes(self) -> int:
        """Nothing waits to be indexed."""
        return 0

    def index(
        self, seconds: float | None = None, on_progress: Progress | None = None, stop: threading.Event | None = None
    ) -> None:
        """Nothing to index."""
