"""Where sessions are kept: what every store can do, and which one a place means.

A store keeps sessions as messages and metadata; whoever asks never sees a file, a byte, a lock or SQL. What returns is
kept for good. Reading and forking never wait and never write; a second writer gets ``SessionLocked``.

Does not know what is said, and does not decide who may delete.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import date, tzinfo
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from sessions_lib.errors import Holder, SessionError
from sessions_lib.messages.content import Message
from sessions_lib.prices import Spent
from sessions_lib.query import Query
from sessions_lib.store.folder import store as folder_store
from sessions_lib.store.numbers import Numbers
from sessions_lib.store.records import (
    Contents,
    Fault,
    Forked,
    Hit,
    Metadata,
    NewSession,
    Page,
    Revision,
    SessionInfo,
    TrashEntry,
)

Progress = Callable[[int, int], None]  # how many of how many are done
Change = Callable[[dict[str, Any]], Mapping[str, Any]]
Infos = list[SessionInfo]  # a method ``list`` hides the type of that name inside the class
Hits = list[Hit]
Names = list[str]


class Hold(Protocol):
    """The right to write one session, from when it was taken until ``release``; it belongs to a run, not a thread."""

    @property
    def is_held(self) -> bool:
        """True until ``release``; never in a child made by ``fork()``."""

    def release(self) -> None:
        """Let the next writer in, from any thread; twice does nothing."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class SessionCatalog(Protocol):
    """Questions about many sessions; an answer is never older than its question."""

    def list(self, limit: int | None = None) -> Infos: ...
    def info(self, session: str) -> SessionInfo | None: ...
    def infos(self, ids: Iterable[str]) -> dict[str, SessionInfo]: ...
    def ids(self, asked: Query) -> Names: ...
    def page(
        self, asked: Query, order: str = ..., *, descending: bool = ..., offset: int = ..., limit: int = ...
    ) -> Page:
        """One page of what ``asked`` finds, in one of the orders of ``plain``, or ``family``: forks below parents."""

    def search(self, asked: Query, limit: int | None = None) -> Hits: ...
    def find_by_tag(self, tag: str) -> Infos: ...
    def find_by_date(self, day: date, zone: tzinfo | None = None) -> Infos: ...
    def costs(self, ids: Iterable[str]) -> dict[str, tuple[Spent, Spent]]:
        """What was spent in each of the sessions ``ids`` that are there, and what its copied start had cost."""

    def tags(self) -> dict[str, int]: ...
    def models(self) -> Names: ...
    def lineage(self) -> dict[str, tuple[str, int]]:
        """Each fork's parent, and how many messages it copied."""

    @property
    def numbers(self) -> Numbers: ...

    # A page asks many questions of one moment; a server reads a large store behind its pages.
    @property
    def is_in_memory(self) -> bool:
        """True if nothing of it is kept: another process begins anew."""

    def at_one_moment(self, on_progress: Progress | None = None) -> AbstractContextManager[None]: ...
    def mark(self) -> object:
        """Equal to an earlier one exactly if no session changed since: the key of answers that are kept."""

    def watch(self) -> None: ...
    def waiting(self) -> int: ...
    def as_known(self) -> AbstractContextManager[None]:
        """Inside, answers are of what was read so far, while ``catch_up`` reads what waits in another thread."""

    def catch_up(self, on_progress: Progress | None = None) -> None: ...
    def unindexed_bytes(self) -> int: ...
    def index(
        self, seconds: float | None = None, on_progress: Progress | None = None, stop: threading.Event | None = None
    ) -> None: ...


class SessionStore(Protocol):
    """A place where sessions are kept. ``name`` is the key of runs and caches, ``where`` what a person calls it."""

    name: str
    where: str

    @property
    def catalog(self) -> SessionCatalog: ...

    # one session: ``Contents`` is what its reader knows of it, brought up to date in place
    def ids(self) -> set[str]: ...
    def metas(self) -> Mapping[str, Metadata]: ...
    def open(self, session_id: str) -> Contents:
        """What is known without reading its messages; ``SessionNotFound`` if there is no such session."""

    def read(self, session_id: str, known: Contents, *, messages: bool) -> bool:
        """Read what is new; True if anything was. ``SessionNotFound`` if the session was deleted since."""

    def revision(self, session_id: str) -> Revision | None: ...
    def size_bytes(self, session_id: str) -> int | None: ...

    # writing
    def create(self, wanted: str | None, base: str, meta: Mapping[str, Any]) -> str:
        """Make an empty session: exactly ``wanted`` (``SessionExists``), else an id made of ``base``; its id."""

    def create_many(self, new: Sequence[NewSession]) -> None: ...
    def append(
        self, session_id: str, messages: Sequence[Message], known: Contents, hold: Hold, *, again: bool = False
    ) -> list[Message]:
        """Add them, all or none, and return them as they are kept. ``again``: a torn end may be the first of them."""

    def replace(
        self, session_id: str, messages: Sequence[Message], known: Contents, hold: Hold, *, kept_as: str
    ) -> None:
        """Put ``messages`` in place of those there are, which go to the trash as ``kept_as``."""

    def changing_meta(self, session_id: str, change: Change, known: Contents) -> AbstractContextManager[None]:
        """What is done inside, and then what ``change`` makes of the metadata; a running session can be changed, too.

        If the metadata cannot be changed (``NewerVersion``, or what ``change`` raises), that is said before anything is
        done; if what is done inside fails, the metadata stays.
        """

    def fork(
        self,
        session_id: str,
        new_id: str | None,
        at: int | None,
        title: str | None,
        *,
        mark: str = "",
        known: Contents | None = None,
        then: Sequence[Message] = (),
    ) -> Forked:
        """Copy the first ``at`` messages (``None``: up to the last allowed point), ids kept; ``ForkPointForbidden``.

        ``then`` are its first own messages, there as soon as it is: what was changed in the fork.
        """

    def hold(self, session_id: str, timeout_s: float = 1.0) -> Hold: ...
    def holder(self, session_id: str) -> Holder | None: ...
    def alone(self, what: str, timeout_s: float) -> Hold:
        """The right to do what only one may do at a time: an ``import``, loading the ``demo``."""

    # trials: repeats of one prompt in several variants, each kept as one object beside the sessions
    def trials(self) -> Names: ...
    def trial(self, name: str) -> dict[str, Any] | None: ...
    def put_trial(self, name: str, values: Mapping[str, Any] | None) -> None:
        """Keep ``values`` under ``name`` in place of what was there; ``None`` takes them away."""

    # the trash
    def delete(self, session_id: str, hold: Hold) -> TrashEntry: ...
    def trash(self) -> list[TrashEntry]: ...
    def trashed(self, entry: TrashEntry, *, messages: bool) -> Contents: ...
    def restore(self, name: str) -> str:
        """Bring back the newest deleted session of this id, or the entry of this name; its id."""

    def purge(self, entries: Sequence[TrashEntry]) -> dict[TrashEntry, SessionError]:
        """Delete ``entries`` for good; why, for those that could not be."""

    # health
    def faults(self, session_id: str) -> list[Fault]: ...
    def repair(self, session_id: str) -> list[Fault]:
        """Mend what can be mended, which is returned; the original goes to the trash."""

    def line_count(self, session_id: str) -> int: ...
    def lines(self, session_id: str, numbers: Collection[int]) -> dict[int, str]:
        """The lines ``numbers`` (from 1) as they are kept; bytes that are no text are lone surrogates."""

    def put_lines(self, session_id: str, lines: Sequence[str]) -> None:
        """Store ``lines`` as the lines of a session that has none yet, damage and all; the last may be torn."""

    def why_read_only(self, session_id: str | None) -> str:
        """Why nothing can be written now, in a sentence; empty if it can."""

    def readable_by_others(self) -> list[str]:
        """What of it other accounts of this machine can read, by name: the files of another program, perhaps."""

    def path(self, session_id: str) -> Path | None:
        """The file of the messages, where they are in one: for a person's own tools."""

    def is_own(self, path: Path) -> bool:
        """True if ``path`` is a file of this store."""


_ADDRESS = re.compile(r"(postgres(?:ql)?)://", re.IGNORECASE)


def is_address(where: str) -> bool:
    """True if ``where`` is the address of a database, not a folder."""
    return _ADDRESS.match(where) is not None


def open_store(where: str | Path) -> SessionStore:
    """The store at ``where``, a folder or an address; nothing is made yet, and everybody in this process shares it."""
    if not is_address(str(where)):
        return folder_store.of(Path(where))
    try:
        from sessions_lib.store.postgres import store as postgres_store  # its driver is an extra
    except ImportError as error:
        what = "Sessions in PostgreSQL need its driver. Install it: pip install 'forkbook[team]'"
        raise SessionError(what) from error
    return postgres_store.of(str(where))
