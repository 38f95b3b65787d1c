"""The plain answers: every question about many sessions by reading them all. What every faster answer must equal.

* **Last active** is the time of the last message that has one (a message without a time has that of its turn); in a
  session where none has, when it was created; where that is unknown too, when its messages were last written, but for
  one that was imported, which was written by the import. Titles, tags and forks never change it. Copied messages keep
  their times.
* **Order** is newest first: by last active, sessions without any time last, equal times by id. Hits: by the time of
  their message (without one, of their session), then by session, then the later message first.

Does not know where sessions are kept, and keeps nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import date, datetime, tzinfo
from typing import Any

from sessions_lib import messages, query, text
from sessions_lib.messages import content, model_calls, places, usage
from sessions_lib.messages import tool_calls as calls
from sessions_lib.query import Query
from sessions_lib.store import family
from sessions_lib.store.records import (
    DamagedLine,
    Hit,
    Metadata,
    Page,
    SessionInfo,
    given_title,
    hits_newest_first,
    newest_first,
    tag_counts,
    tag_key,
    tags_of,
    verdict,
)

Infos = list[SessionInfo]  # the method ``list`` hides the type of that name inside the class
Hits = list[Hit]
Ids = list[str]
Names = list[str]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Scanned:
    """One session as read: its row, its messages, when each was said."""

    info: SessionInfo
    messages: Sequence[content.Message]
    times: Sequence[datetime | None]


def scanned(
    session: str,
    meta: Metadata,
    said: Sequence[content.Message],
    *,
    damaged: Sequence[DamagedLine] = (),
    size_bytes: int = 0,
    written: datetime | None = None,
    fault: str | None = None,
) -> Scanned:
    """A session as its row says it; ``written`` is when its messages were last written, for one without any time."""
    moments = messages.effective_times(said)
    inherited = min(meta.inherited, len(said))
    paired = calls.pair(said)
    created = meta.created or next((moment for moment in moments if moment), None)
    models = [name for message in said for name in _models(message)]
    info = SessionInfo(
        id=session,
        title=text.display_title(meta.title, messages.first_prompt(said), session),
        tags=tags_of(meta.values),
        messages=len(said),
        turns=messages.turn_count(said),
        own_messages=len(said) - inherited,
        created=created,
        last_active=next((moment for moment in reversed(moments) if moment), created)
        or (None if meta.was_imported else written),
        models=tuple(dict.fromkeys(models)),
        parent=meta.parent,
        inherited=inherited,
        tokens=usage.total(said),
        own_tokens=usage.total(said[inherited:]),
        tool_calls=len(paired.steps),
        errors=sum(message.get("role") == "tool" and bool(message.get("is_error")) for message in said),
        damaged=len(damaged),
        unanswered=len(paired.unanswered),
        size_bytes=size_bytes,
        meta=dict(meta.values),
        tools=tuple(dict.fromkeys(step.call.name for step in paired.steps if step.call.name)),
        fault=fault,
        place=places.place(said, inherited) if meta.parent else "",
    )
    return Scanned(info, said, moments)


def _models(message: Mapping[str, Any]) -> list[str]:
    """The models that worked on an answer, its own first."""
    if message.get("role") != "assistant":
        return []
    own = message["model"] if isinstance(message.get("model"), str) else ""
    return list(filter(None, (own, *(name for name, _ in model_calls.by_model(message.get("usage"), own)))))


def passes(asked: Query, row: SessionInfo) -> bool:
    """True if the session passes the part of the query that is about sessions."""
    if (asked.is_fork and row.parent is None) or (asked.not_fork and row.parent is not None):
        return False
    if (asked.has_error and not row.errors) or (asked.has_damage and not (row.damaged or row.fault)):
        return False
    if asked.untagged and row.tags:
        return False
    return (
        all(any(query.name_matches(wanted, tag) for tag in row.tags) for wanted in asked.tags)
        and (not asked.any_tags or any(query.name_matches(w, tag) for w in asked.any_tags for tag in row.tags))
        and not any(query.name_matches(unwanted, tag) for unwanted in asked.not_tags for tag in row.tags)
        and all(any(query.name_matches(wanted, tool) for tool in row.tools) for wanted in asked.tools)
        and (not asked.models or any(query.name_matches(m, model) for m in asked.models for model in row.models))
        and (not asked.verdicts or any(query.name_matches(v, verdict(row.meta)) for v in asked.verdicts))
    )


def title_text(row: SessionInfo) -> str:
    """What a search looks at beside the messages: the title that was given, and the tags."""
    return "\n".join(filter(None, (given_title(row.meta), *row.tags)))


def hits_in(asked: Query, session: Scanned) -> Iterator[Hit]:
    """What ``asked`` finds in one session, in no order that counts."""
    row = session.info
    if not passes(asked, row):
        return
    if (hit := title_hit(asked, row, session.times)) is not None:
        yield hit
    if not asked.asks_about_messages:
        return
    for index in range(len(session.messages) - 1, -1, -1):
        message, when = session.messages[index], session.times[index]
        if query.match(asked, message, when or row.last_active):
            yield message_hit(asked, row, index, message, when, places.turn_of(session.messages, index))
            if not asked.needles:
                return


def message_hit(
    asked: Query, row: SessionInfo, index: int, message: content.Message, when: datetime | None, turn: int
) -> Hit:
    """The hit for a message of ``turn`` that matches; ``when`` its own time, if it has one."""
    piece = query.snippet(content.searchable(message), asked)
    return Hit(row.id, index, piece.text, str(message.get("role")), when or row.last_active, piece.marks, turn)


def title_hit(asked: Query, row: SessionInfo, moments: Sequence[datetime | None]) -> Hit | None:
    """The hit for the session itself: its title or tags hold all that is looked for, or no message is asked about.

    A query for roles is about messages only; with days, one of the session's messages has to be of them.
    """
    if asked.roles or (asked.asks_about_messages and not asked.needles):
        return None
    said = title_text(row)
    if not query.text_matches(asked, said):
        return None
    asks_days = asked.since is not None or asked.until is not None
    if asks_days and not any(query.time_matches(asked, moment or row.last_active) for moment in moments):
        return None
    piece = query.snippet(said or row.title, asked)
    return Hit(row.id, None, piece.text, "", row.last_active, piece.marks)


def _is_active(asked: Query, session: Scanned) -> bool:
    """True if one of the session's messages is of the days asked for; without messages, its own last activity."""
    moments = session.times or [session.info.last_active]
    return any(query.time_matches(asked, moment or session.info.last_active) for moment in moments)


def is_found(asked: Query, session: Scanned) -> bool:
    """True if ``asked`` finds the session; a blank query finds all."""
    if asked.is_blank:
        return True
    if asked.asks_about_messages and not asked.needles and not asked.roles:
        return passes(asked, session.info) and _is_active(asked, session)
    return next(hits_in(asked, session), None) is not None


_ASCII_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_KEYS: dict[str, Callable[[SessionInfo], Any]] = {
    "last_active": lambda row: row.last_active,
    "title": lambda row: row.title.translate(_ASCII_LOWER),
    "created": lambda row: row.created,
    "turns": lambda row: row.turns,
    "messages": lambda row: row.messages,
    "tokens": lambda row: row.tokens.total if row.tokens.answers else 0,
    "own_tokens": lambda row: row.own_tokens.total if row.own_tokens.answers else 0,
    "tool_calls": lambda row: row.tool_calls,
    "errors": lambda row: row.errors,
    "size_bytes": lambda row: row.size_bytes,
    "id": lambda row: row.id,
}


def in_order(rows: Iterable[SessionInfo], order: str, *, descending: bool) -> Infos:
    """``rows`` by ``order`` (see ``SessionCatalog.page``); unknown last, equal ones by id."""
    key, by_id = _KEYS[order], sorted(rows, key=lambda row: row.id)
    known = sorted((row for row in by_id if key(row) is not None), key=key, reverse=descending)
    return [*known, *(row for row in by_id if key(row) is None)]


class PlainCatalog:
    """A ``SessionCatalog`` that reads every session at every question."""

    is_in_memory = True

    def __init__(self, read_all: Callable[[], Iterable[Scanned]]) -> None:
        """Over the sessions that ``read_all`` reads."""
        self._read_all = read_all

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
        return newest_first([session.info for session in self._read_all() if _is_active(asked, session)])

    def ids(self, asked: Query) -> Ids:
        """The ids of all sessions that ``asked`` finds (a blank query: all), newest first."""
        return [row.id for row in newest_first(self._found(asked))]

    def _found(self, asked: Query) -> Infos:
        return [session.info for session in self._read_all() if is_found(asked, session)]

    def page(
        self, asked: Query, order: str = "last_active", *, descending: bool = True, offset: int = 0, limit: int = 50
    ) -> Page:
        """One page of the sessions that ``asked`` finds (a blank query: all); see ``SessionCatalog.page``."""
        rows = self._found(asked)
        if order != "family":
            shown = in_order(rows, order, descending=descending)[offset : offset + limit]
            return Page(shown, [0] * len(shown), len(rows))
        listed = newest_first(rows)
        by_id = {row.id: row for row in listed}
        lineage = [(row.id, row.parent) for row in listed if row.parent in by_id]
        placed = list(family.in_order(by_id, lineage))[offset : offset + limit]
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
