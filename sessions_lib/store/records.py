"""What everybody passes around about sessions: rows of a listing, hits, metadata, damage, trash.

Does not know where sessions are kept, and reads and writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from sessions_lib import text, times
from sessions_lib.messages import usage
from sessions_lib.messages.content import Message
from sessions_lib.snippets import Range

MARK_AT = "title_mark_at"  # in metadata: where the mark of a made title begins, if its words do not tell
META_VERSION = 1
WAITING = "waiting_for_yes"  # in metadata: the ids of the calls that wait for a person, in order
UNFINISHED = "unfinished"  # a deleted session of which a part is still, or again, in its place
NEVER = datetime(1, 1, 1, tzinfo=UTC)
NOTHING = usage.Totals()
_AT_ONCE = timedelta(seconds=2)

# ---------------------------------------------------------------- metadata


@dataclass(frozen=True, slots=True)
class Metadata:
    """What is known about a session beside its messages; ``values`` is the object as it stands.

    ``fault`` says why it could not be read, if it could not; ``values`` are empty then. ``where`` is what a person
    calls its place.
    """

    values: Mapping[str, Any] = field(default_factory=dict)
    fault: str | None = None
    where: str = field(default="", compare=False)

    @property
    def title(self) -> str | None:
        """The title a person gave, or ``None``."""
        title = self.values.get("title")
        return title if isinstance(title, str) and title.strip() else None

    @property
    def tags(self) -> list[str]:
        """The tags in the order they were added."""
        tags = self.values.get("tags")
        return [tag for tag in tags if isinstance(tag, str) and tag.strip()] if isinstance(tags, list) else []

    @property
    def created(self) -> datetime | None:
        """When the session was made; other tools' spellings are read too.

        An import used to write its own time where a source told none; that is no time of the session.
        """
        moments = (times.parse(self.values.get(key)) for key in ("created", "created_at", "createdAt"))
        made = next((moment for moment in moments if moment), None)
        imported = times.parse(self._imported_from.get("at")) if made is not None and self.was_imported else None
        return None if made and imported and abs(imported - made) < _AT_ONCE else made

    @property
    def was_imported(self) -> bool:
        """True for a session made of another tool's file: the time of its own file says nothing about it."""
        return bool(self._imported_from)

    @property
    def parent(self) -> str | None:
        """The id of the session this one was forked from, or ``None``."""
        parent = self._forked_from.get("session")
        return parent if isinstance(parent, str) and parent else None

    @property
    def inherited(self) -> int:
        """How many messages were copied from the parent."""
        count = self._forked_from.get("messages")
        return count if isinstance(count, int) and not isinstance(count, bool) and count > 0 else 0

    @property
    def waits(self) -> bool:
        """True if a stored call waits for a person's yes: that it has no result is no fault."""
        return bool(self.values.get(WAITING))

    @property
    def system(self) -> str | None:
        """The system prompt, or ``None``."""
        system = self.values.get("system")
        return system if isinstance(system, str) and system.strip() else None

    @property
    def _imported_from(self) -> Mapping[str, Any]:
        origin = self.values.get("imported_from")
        return origin if isinstance(origin, Mapping) else {}

    @property
    def _forked_from(self) -> Mapping[str, Any]:
        origin = self.values.get("forked_from")
        return origin if isinstance(origin, Mapping) else {}


def bare_title(title: str, meta: Mapping[str, Any]) -> str:
    """``title``, a session's, without the mark that a fork or a merge gave it; ``meta`` is the session's."""
    return text.unmarked(title, meta.get(MARK_AT))


def given_title(meta: Mapping[str, Any]) -> str:
    """The title in ``meta``, or ``""``."""
    return (Metadata(meta).title or "").strip()


def verdict(meta: Mapping[str, Any]) -> str:
    """The verdict in ``meta`` as a name, or ``""``."""
    given = meta.get("verdict")
    if isinstance(given, Mapping):
        given = given.get("verdict") or given.get("name")
    return given if isinstance(given, str) else ""


# ---------------------------------------------------------------- one session


@dataclass(frozen=True, slots=True)
class Revision:
    """A session's state at one moment: equal exactly if nothing changed since. Compare it; its parts are the store's.

    ``messages`` is ``None`` as long as no message was stored.
    """

    messages: object = None
    meta: object = None


@dataclass(slots=True)
class Contents:
    """A session as it was at ``revision``; its store brings it up to date in place.

    ``messages`` and ``damaged`` are empty until they were read (``is_read``); ``glued`` are lines that held several
    messages, all read. ``where`` is what a person calls the place of the messages. ``places`` is the store's own.
    """

    meta: Metadata
    revision: Revision
    where: str = ""
    messages: list[Message] = field(default_factory=list)
    damaged: list[DamagedLine] = field(default_factory=list)
    glued: list[DamagedLine] = field(default_factory=list)
    is_read: bool = False
    places: Any = None


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session to be made whole: its id, its metadata, and its messages as ``encoding.encode_lines`` writes them."""

    id: str
    meta: Mapping[str, Any]
    lines: bytes


@dataclass(frozen=True, slots=True)
class Forked:
    """A fork that was made: its id, and how many messages of the parent stand behind the fork point."""

    id: str
    left_out: int


# ---------------------------------------------------------------- lists


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """One session in a list; ``own`` is what was written in it, ``inherited`` how many messages it copied.

    ``place`` is where it left its ``parent``, in turns: ``after turn 2``; empty without a parent.

    ``title`` is the display title: the one given, else taken from the first prompt, else the id. ``models`` (all that
    worked on an answer) and ``tools`` are in order of first use. ``errors`` are tool results that say they failed.
    Unknown tokens are ``None``.
    ``fault`` says why the messages or the metadata could not be read, where they could not.
    """

    id: str
    title: str
    tags: tuple[str, ...] = ()
    messages: int = 0
    turns: int = 0
    own_messages: int = 0
    created: datetime | None = None
    last_active: datetime | None = None
    models: tuple[str, ...] = ()
    parent: str | None = None
    inherited: int = 0
    tokens: usage.Totals = NOTHING
    own_tokens: usage.Totals = NOTHING
    tool_calls: int = 0
    errors: int = 0
    damaged: int = 0
    unanswered: int = 0
    size_bytes: int = 0
    meta: dict[str, Any] = field(default_factory=dict)
    tools: tuple[str, ...] = ()
    fault: str | None = None
    place: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a listing, the depth of each row under its parent (order ``family``), and the number of all rows."""

    rows: list[SessionInfo]
    depths: list[int]
    total: int


@dataclass(frozen=True, slots=True)
class Hit:
    """One place a query found: ``message`` is its index, ``None`` where title, tags or the session itself match.

    ``turn`` is the number of its turn, from 1.

    ``marks`` are the half-open ranges of ``snippet`` that match. ``when`` is the time of the message, or the last
    activity of the session.
    """

    session: str
    message: int | None
    snippet: str
    role: str
    when: datetime | None
    marks: tuple[Range, ...] = ()
    turn: int | None = field(default=None, compare=False)  # follows from the message


def newest_first(rows: Sequence[SessionInfo]) -> list[SessionInfo]:
    """``rows`` by last active, the latest first; without any time last; equal times by id."""
    return sorted(sorted(rows, key=lambda row: row.id), key=lambda row: row.last_active or NEVER, reverse=True)


def hits_newest_first(hits: Sequence[Hit]) -> list[Hit]:
    """``hits`` by the time of their message (without one, of their session), then session, then the later message."""
    by_place = sorted(hits, key=lambda hit: (hit.session, hit.message is not None, -(hit.message or 0)))
    return sorted(by_place, key=lambda hit: hit.when or NEVER, reverse=True)


# ---------------------------------------------------------------- damage


@dataclass(frozen=True, slots=True)
class DamagedLine:
    """A line that is no message as it stands: its number (from 1), what is wrong, and the kind of fault in a word.

    Kinds: ``torn``, ``not JSON``, ``not a message``, ``UTF-16``, ``too deep``, ``undecodable``, ``NUL``, ``glued``. Of
    the last three the messages were read all the same.
    """

    line: int
    reason: str
    kind: str


def as_told(damaged: Sequence[DamagedLine]) -> list[DamagedLine]:
    """``damaged`` as a person is told of it: a file in UTF-16 is one fault, not one a line."""
    told: list[DamagedLine] = []
    last = -1
    for damage in damaged:
        # Little-endian UTF-16 ends in a NUL behind the last newline.
        if damage.kind == "UTF-16" or (damage.kind == "NUL" and damage.line == last + 1):
            told += [damage] if last < 0 else []
            last = damage.line
        else:
            told.append(damage)
    return told


LEFT_ALONE = (
    "UTF-16",
    "too deep",
    "orphan result",
    "duplicate result",
    "bad arguments",
    "duplicate id",
    "newer version",
    "unreadable",
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong: session, where, line (from 1, ``None`` for the whole), kind, what it means."""

    session: str
    file: str
    line: int | None
    kind: str
    text: str

    @property
    def can_be_repaired(self) -> bool:
        """True if ``repair`` does something about it."""
        return self.kind not in LEFT_ALONE

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{where}: {self.kind}: {self.text}"


# ---------------------------------------------------------------- trash


@dataclass(frozen=True, slots=True)
class TrashEntry:
    """One thing in the trash: its own name, the session, why it is there, since when, its title, its bytes."""

    entry: str
    session: str
    kind: str
    when: datetime
    title: str | None
    size_bytes: int

    @property
    def is_session(self) -> bool:
        """True for a deleted session, not the original of a merge or a repair."""
        return self.kind in ("deleted", UNFINISHED)


@dataclass(frozen=True, slots=True)
class Purgeable:
    """What a purge would delete for good: a session, or (``entry``) one that lies in the trash."""

    session: str
    title: str | None
    last_active: datetime | None
    size_bytes: int
    entry: TrashEntry | None = None
