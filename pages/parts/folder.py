"""The folder of sessions as the pages see it: its manager, a session as it is now, who was forked from whom.

The folder comes from the environment (``$SESSIONS_DIR``). What is kept between runs of a page is kept for the process,
bounded, and checked against the files each time; nothing here belongs to one visitor.

Does not write.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import streamlit as st

from pages.parts.safe_markdown import safe_label
from sessions_lib import listing, metadata
from sessions_lib.errors import SessionError
from sessions_lib.manager import SessionManager
from sessions_lib.session import Session


def manager() -> SessionManager:
    """The manager of the folder the environment names."""
    return SessionManager()


@contextmanager
def errors_told() -> Iterator[None]:
    """Show what goes wrong inside as one sentence on the page, and go on behind the block."""
    try:
        yield
    except SessionError as error:
        st.error(safe_label(str(error)), icon=":material/error:")


@dataclass
class _Kept:
    session: Session
    mutex: threading.Lock = field(default_factory=threading.Lock)


@st.cache_resource(max_entries=32, show_spinner=False)
def _kept(folder: Path, session_id: str) -> _Kept:
    session = Session.open(folder, session_id)
    _ = session.messages
    return _Kept(session)


def current(session_id: str) -> Session:
    """The session as its files are now; only what was added since is read. ``SessionError`` if it is gone.

    Shared by all visitors of the process: read it, and open another (``manager().open``) to write or to hold it.
    """
    folder = manager().folder
    kept = _kept(folder, session_id)
    try:
        with kept.mutex:
            kept.session.refresh()
    except SessionError:
        _kept.clear(folder, session_id)
        raise
    return kept.session


@dataclass(frozen=True)
class Child:
    """A session forked from another, which kept the first ``at`` messages of it."""

    id: str
    parent: str
    at: int
    created: str


@st.cache_resource(max_entries=8, show_spinner=False)
def _lineage(folder: Path, changed_ns: int) -> dict[str, list[Child]]:
    found: dict[str, list[Child]] = {}
    for session in listing.session_ids(folder):
        meta = metadata.read(folder / f"{session}{metadata.SUFFIX}")
        if meta.parent:
            child = Child(session, meta.parent, meta.inherited, str(meta.created or ""))
            found.setdefault(meta.parent, []).append(child)
    for children in found.values():
        children.sort(key=lambda child: (child.at, child.created, child.id))
    return found


def children(session_id: str) -> list[Child]:
    """The sessions forked from ``session_id``, by where they part, then oldest first."""
    folder = manager().folder
    try:
        # Metadata is replaced by a rename, which changes the time of the folder.
        changed_ns = folder.stat().st_mtime_ns
    except OSError:
        return []
    return _lineage(folder, changed_ns).get(session_id, [])


def title_of(session_id: str) -> str:
    """The title of a session for a label; its id if it cannot be read. Not escaped."""
    try:
        return current(session_id).title
    except SessionError:
        return session_id


@st.cache_resource(max_entries=8, show_spinner=False)
def _tags(folder: Path, changed_ns: int) -> list[str]:
    found: dict[str, str] = {}
    for session in listing.session_ids(folder):
        for tag in metadata.read(folder / f"{session}{metadata.SUFFIX}").tags:
            found.setdefault(tag.casefold(), tag)
    return sorted(found.values(), key=str.casefold)


def known_tags() -> list[str]:
    """Every tag in use in the folder, in alphabetical order, for suggestions."""
    folder = manager().folder
    try:
        return _tags(folder, folder.stat().st_mtime_ns)
    except OSError:
        return []
