"""The plain scan of a folder: what is in it, and what a query finds. The truth that every faster answer must equal.

A session is a regular file ``ID.jsonl`` or ``ID.meta.json`` (or both) whose stem is a valid id. Links, directories,
sockets, backups and names that are no id are not sessions. A file that cannot be read costs its own row a mark
(``SessionInfo.fault``), nobody else anything.

* **Last active** is the time of the last message that has one (a message without a time has that of its turn); in a
  session where none has, when it was created; where that is unknown too, the file time of its messages, but
  for one that was imported, whose file time is that of the import. Titles, tags
  and forks never change it. Copied messages keep their times.
* **Order** is newest first: by last active, sessions without any time last, equal times by id. Hits: by the time of
  their message (without one, of their session), then by session, then the later message first.

Reads every file at every call. Does not write, and keeps nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, tzinfo
from pathlib import Path
from typing import Any

from sessions_lib import messages, names, query, text
from sessions_lib.errors import SessionError, StorageError
from sessions_lib.messages import content, model_calls, places, usage
from sessions_lib.messages import tool_calls as calls
from sessions_lib.query import Query
from sessions_lib.store import records
from sessions_lib.store.folder import jsonl, metadata
from sessions_lib.store.records import Hit, SessionInfo, given_title, hits_newest_first, newest_first, tags_of, verdict

MESSAGES = ".jsonl"
METADATA = metadata.SUFFIX


def session_ids(folder: Path) -> list[str]:
    """The ids of all sessions of ``folder``, sorted; a folder that is not there has none."""
    found = set()
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                stem = stem_of(entry.name)
                if stem and names.is_id(stem) and entry.is_file(follow_symlinks=False):
                    found.add(stem)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StorageError(folder, f"cannot be read as a folder of sessions ({error.strerror or error})") from error
    return sorted(found)


def stem_of(name: str) -> str:
    """The part of a file name that would be the session's id; ``""`` if it is not a session's file."""
    ending = METADATA if name.endswith(METADATA) else MESSAGES
    return name[: -len(ending)] if name.endswith(ending) else ""


@dataclass(frozen=True, slots=True)
class Contents:
    """One session as read: its messages, when each was said, its metadata, its row."""

    info: SessionInfo
    messages: Sequence[content.Message]
    times: Sequence[datetime | None]


def read(folder: Path, session: str) -> Contents:
    """One session of ``folder``, read whole; what cannot be read is empty and named in ``info.fault``."""
    found = metadata.read(folder / f"{session}{METADATA}")
    lines, fault = jsonl.Lines(), found.fault and f"the metadata {found.fault}"
    try:
        lines = jsonl.read(folder / f"{session}{MESSAGES}")
    except FileNotFoundError:
        pass
    except (OSError, SessionError) as error:
        fault = unreadable(error)
    moments = messages.effective_times(lines.messages)
    info = _info(folder, session, lines, moments, dict(found.values))
    return Contents(replace(info, fault=fault), lines.messages, moments)


def _models(message: Mapping[str, Any]) -> list[str]:
    """The models that worked on an answer, its own first."""
    if message.get("role") != "assistant":
        return []
    own = message["model"] if isinstance(message.get("model"), str) else ""
    return list(filter(None, (own, *(name for name, _ in model_calls.by_model(message.get("usage"), own)))))


def unreadable(error: OSError | SessionError) -> str:
    """Why the messages of a session could not be read, for its row."""
    return f"the messages cannot be read ({getattr(error, 'strerror', None) or error})"


def _info(
    folder: Path, session: str, lines: jsonl.Lines, moments: list[datetime | None], meta: dict[str, Any]
) -> SessionInfo:
    said = lines.messages
    origin = records.Metadata(meta)
    inherited = min(origin.inherited, len(said))
    paired = calls.pair(said)
    created = origin.created or next((moment for moment in moments if moment), None)
    models = [name for message in said for name in _models(message)]
    return SessionInfo(
        id=session,
        title=text.display_title(origin.title, messages.first_prompt(said), session),
        tags=tags_of(meta),
        messages=len(said),
        turns=messages.turn_count(said),
        own_messages=len(said) - inherited,
        created=created,
        last_active=next((moment for moment in reversed(moments) if moment), created)
        or (None if origin.was_imported else file_time(folder, session)),
        models=tuple(dict.fromkeys(models)),
        parent=origin.parent,
        inherited=inherited,
        tokens=usage.total(said),
        own_tokens=usage.total(said[inherited:]),
        tool_calls=len(paired.steps),
        errors=sum(message.get("role") == "tool" and bool(message.get("is_error")) for message in said),
        damaged=len(lines.damaged),
        unanswered=len(paired.unanswered),
        size_bytes=lines.size,
        meta=meta,
        tools=tuple(dict.fromkeys(step.call.name for step in paired.steps if step.call.name)),
        place=places.place(said, inherited) if origin.parent else "",
    )


def file_time(folder: Path, session: str) -> datetime | None:
    """The file time of a session's messages."""
    try:
        return datetime.fromtimestamp(int(os.lstat(folder / f"{session}{MESSAGES}").st_mtime), UTC)
    except (OSError, ValueError, OverflowError):
        return None


def info(folder: Path, session: str) -> SessionInfo:
    """One session's row."""
    return read(folder, session).info


def scan(folder: Path) -> list[SessionInfo]:
    """All sessions of ``folder``, newest first."""
    return newest_first([info(folder, session) for session in session_ids(folder)])


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


def search(folder: Path, asked: Query, limit: int | None = None) -> list[Hit]:
    """What ``asked`` finds in ``folder``, newest first: every message, and each title or tags that match.

    A query about sessions and days only (no word) finds one hit a session: its newest message that passes, or the
    session itself.
    """
    if asked.is_blank:
        return []
    found = [hit for session in session_ids(folder) for hit in hits_in(asked, read(folder, session))]
    return hits_newest_first(found)[:limit]


def hits_in(asked: Query, session: Contents) -> Iterator[Hit]:
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
            turn = places.turn_of(session.messages, index)
            yield message_hit(asked, row, index, message, when, turn)
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


def active_on(folder: Path, day: date, zone: tzinfo | None = None) -> list[SessionInfo]:
    """The sessions with a message of ``day`` in ``zone`` (default: this machine's), newest first."""
    since, until = query.day_bounds(day, zone)
    wanted = replace(Query(), since=since, until=until)
    found = []
    for session in session_ids(folder):
        one = read(folder, session)
        moments = one.times or [one.info.last_active]
        if any(query.time_matches(wanted, moment or one.info.last_active) for moment in moments):
            found.append(one.info)
    return newest_first(found)
