"""The sessions that the filters leave: one page of them, forks under their session, and how many there are.

Asks the folder's catalog, which compares itself with the files at each question. Answers that cost sums over all
sessions are kept until the folder or a person's own prices change (``once``): for the process, bounded; the folder is
the same for all visitors.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import streamlit as st

from pages.shared import filters, folder, reading
from pages.shared.filters import Filters
from sessions_lib import own_prices
from sessions_lib.prices import Spent
from sessions_lib.query import Query
from sessions_lib.store.records import Hit, SessionInfo
from sessions_lib.store.store import SessionCatalog

MOST = 48  # answers kept, those of several filters

T = TypeVar("T")
_answers: OrderedDict[tuple[Hashable, ...], tuple[object, Any]] = OrderedDict()
_lock = threading.Lock()

# What the choice says → its label, the order of the catalog, and whether it starts with the largest.
_OF_TRIALS = "trial:*"
ORDERS = {
    "": ("Newest, forks below", "family", True),
    "newest": ("Last message", "last_active", True),
    "oldest": ("Oldest message", "last_active", False),
    "created": ("Newest session", "created", True),
    "title": ("Title", "title", False),
    "turns": ("Most turns", "turns", True),
    "tokens": ("Most tokens", "own_tokens", True),
    "cost": ("Most expensive", "cost", True),
}


@dataclass(frozen=True)
class Row:
    """One session of the table; ``depth`` is how many of its ancestors stand above it."""

    info: SessionInfo
    depth: int = 0


@dataclass(frozen=True)
class Found:
    """What the filters leave: ``rows`` is one page of ``total``."""

    rows: Sequence[Row]
    total: int


def catalog() -> SessionCatalog:
    """Questions about the sessions, kept open for the process."""
    return folder.store().catalog


def once(question: Callable[..., T], *values: Hashable) -> T:
    """A copy of ``question(catalog, *values)``, which is asked again only after a change in the folder."""
    name, asked = folder.store().name, catalog()
    key, version = (name, question, *values), (asked.mark(), own_prices.current().stamp)
    with _lock:
        known = _answers.get(key)
    if known is None or known[0] != version:
        known = version, question(asked, *values)
        with _lock:
            for old in [one for one, (made, _) in _answers.items() if one[0] == name and made != version]:
                del _answers[old]
            _answers[key] = known
            if len(_answers) > MOST:
                _answers.popitem(last=False)
    answer: T = copy(known[1])
    return answer


@contextmanager
def at_one_moment() -> Iterator[None]:
    """Inside, all questions are about one look at the folder: numbers fit together, and it is looked at once.

    What is new is read first; where that is a lot, in a thread, under a bar (``reading``), and the questions are about
    what was read so far.
    """
    place, bar = st.empty(), st.container()

    def shown(done: int, todo: int) -> None:
        if todo > reading.MANY:
            place.progress(done / todo, f"Reading {todo:,} sessions: {done:,} done")

    kept = folder.store()
    reading.begin(kept)
    with bar:
        reading.bar(kept.name)
    with kept.catalog.at_one_moment(shown):
        place.empty()
        reading.index(kept)
        yield


def _listed(asked: Query) -> Query:
    """``asked`` without the repeats of trials, unless it asks for some: hundreds of forks that nobody looks for."""
    named = (*asked.tags, *asked.any_tags)
    if not folder.store().trials() or any(tag.startswith(_OF_TRIALS[:-1]) for tag in named):
        return asked
    return replace(asked, not_tags=(*asked.not_tags, _OF_TRIALS))


def find(chosen: Filters, order: str, page: int, size: int) -> Found:
    """The ``page`` (from 1) of ``size`` sessions that the filters leave; the last one if there are not so many."""
    _, by, descending = ORDERS[order]
    asked = _listed(chosen.asked)
    found = catalog().page(asked, by, descending=descending, offset=(page - 1) * size, limit=size)
    if found.total and not found.rows:
        last = (found.total - 1) // size * size
        found = catalog().page(asked, by, descending=descending, offset=last, limit=size)
    return Found([Row(*pair) for pair in zip(found.rows, found.depths, strict=True)], found.total)


def hits(chosen: Filters, limit: int | None = None) -> Sequence[Hit]:
    """Where the search is found in the sessions that the filters leave, newest first, at most ``limit``."""
    share = reading.indexing(folder.store().name)
    if share is None:
        return once(_search, _listed(chosen.asked), limit)
    with st.spinner(f"{share:.0%} of the texts are indexed. The others are read from their files, which takes longer."):
        return catalog().search(_listed(chosen.asked), limit)


def _search(asked: SessionCatalog, query: Query, limit: int | None) -> list[Hit]:
    return asked.search(query, limit)


def infos(ids: Sequence[str]) -> dict[str, SessionInfo]:
    """The rows of the sessions ``ids`` that are there, in this order."""
    return catalog().infos(ids)


def costs(ids: Sequence[str]) -> dict[str, tuple[Spent, Spent]]:
    """What was spent in each of the sessions ``ids`` that are there, and what its copied start had cost."""
    return catalog().costs(ids)


def lineage() -> dict[str, tuple[str, int]]:
    """Each fork's parent, and how many messages it copied."""
    return once(_lineage)


def _lineage(asked: SessionCatalog) -> dict[str, tuple[str, int]]:
    return asked.lineage()


def ids(chosen: Filters) -> Sequence[str]:
    """The ids of all sessions that the filters leave, newest first."""
    return once(_ids, _listed(chosen.asked))


def _ids(asked: SessionCatalog, query: Query) -> Sequence[str]:
    return asked.ids(query)


def of_the_demo() -> Sequence[str]:
    """The ids of the demo's sessions, newest first."""
    return once(_of_the_demo)


def _of_the_demo(asked: SessionCatalog) -> Sequence[str]:
    return folder.manager().marked("demo")


def damaged() -> Sequence[str]:
    """The ids of the sessions that could not be read whole."""
    return once(_ids, Query(has_damage=True))


def total() -> int:
    """How many sessions there are, but for the repeats of trials."""
    return once(_count)


def _count(asked: SessionCatalog) -> int:
    return asked.page(_listed(Query()), limit=0).total


def newest(count: int) -> list[SessionInfo]:
    """The ``count`` sessions that were said something to last, newest first."""
    return (
        list(catalog().page(_listed(Query()), limit=count).rows) if folder.store().trials() else catalog().list(count)
    )


def without_each(chosen: Filters) -> list[tuple[str, Filters, int]]:
    """Each thing that is asked, the filters without it, and how many sessions those would leave."""
    return [(label, left, len(ids(left))) for label, left in filters.parts(chosen)]


def tags_in_use() -> list[str]:
    """Every tag in use, the most used first."""
    return once(_tags)


def _tags(asked: SessionCatalog) -> list[str]:
    return list(asked.tags())


def models_in_use() -> list[str]:
    """Every model in use, sorted."""
    return once(_models)


def _models(asked: SessionCatalog) -> list[str]:
    return asked.models()
