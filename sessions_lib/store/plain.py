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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sessions_lib import messages, prices, query, snippets, text
from sessions_lib.messages import content, model_calls, places, usage
from sessions_lib.messages import tool_calls as calls
from sessions_lib.prices import Spent
from sessions_lib.query import Query
from sessions_lib.store.records import (
    DamagedLine,
    Hit,
    Metadata,
    SessionInfo,
    given_title,
    verdict,
)
from sessions_lib.store.tagging import tags_of


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


def money(session: Scanned, first: int = 0, end: int | None = None) -> Spent:
    """What the messages of ``session`` from number ``first`` up to ``end`` cost, copies too."""
    settings = prices.settings_of(session.info.meta)
    return prices.spent(
        (call, session.times[number] or session.info.last_active, prices.host_of(message, settings))
        for number, message in enumerate(session.messages[:end])
        if number >= first
        for call in model_calls.of(message)
    )


def own_cost(session: Scanned) -> float | None:
    """The dollars that were spent in the session itself: 0 where nothing was answered, ``None`` if unknown."""
    return money(session, session.info.inherited).cost if session.info.own_tokens.answers else 0.0


def costs_pass(asked: Query, session: Scanned) -> bool:
    """True if what was spent in the session itself is within the bounds asked for; an unknown cost is in none."""
    if not asked.cost:
        return True
    own = own_cost(session)
    return own is not None and all(query.COMPARISONS[sign](own, bound) for sign, bound in asked.cost)


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
    if not passes(asked, row) or not costs_pass(asked, session):
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
    piece = snippets.snippet(content.searchable(message), asked)
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
    piece = snippets.snippet(said or row.title, asked)
    return Hit(row.id, None, piece.text, "", row.last_active, piece.marks)


def is_active(asked: Query, session: Scanned) -> bool:
    """True if one of the session's messages is of the days asked for; without messages, its own last activity."""
    moments = session.times or [session.info.last_active]
    return any(query.time_matches(asked, moment or session.info.last_active) for moment in moments)


def is_found(asked: Query, session: Scanned) -> bool:
    """True if ``asked`` finds the session; a blank query finds all."""
    if asked.is_blank:
        return True
    if asked.asks_about_messages and not asked.needles and not asked.roles:
        return passes(asked, session.info) and costs_pass(asked, session) and is_active(asked, session)
    return next(hits_in(asked, session), None) is not None
