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

import streamlit as st

from pages.shared.safe_markdown import safe_label
from sessions_lib.errors import SessionError
from sessions_lib.store.manager import SessionManager
from sessions_lib.store.session import Session
from sessions_lib.store.store import SessionStore


def manager() -> SessionManager:
    """The manager of the folder the environment names."""
    return SessionManager()


def store() -> SessionStore:
    """Where the sessions are kept, open for the process."""
    found = manager().store
    return _kept_open(found.name, found)


@st.cache_resource(max_entries=4, show_spinner=False)
def _kept_open(name: str, _store: SessionStore) -> SessionStore:
    return _store


@contextmanager
def errors_told() -> Iterator[None]:
    """Show what goes wrong inside as one sentence on the page, and go on behind the block."""
    try:
        yield
    except SessionError as error:
        st.error(safe_label(str(error)), icon=":material/error:")


def why_read_only(session_id: str | None) -> str:
    """Why nothing can be written here now, in one sentence with what to do; empty if it can. Not escaped."""
    return store().why_read_only(session_id)


@dataclass
class _Kept:
    session: Session
    mutex: threading.Lock = field(default_factory=threading.Lock)


@st.cache_resource(max_entries=32, show_spinner=False)
def _kept(name: str, session_id: str, _store: SessionStore) -> _Kept:
    session = Session.open(_store, session_id)
    _ = session.messages
    return _Kept(session)


def current(session_id: str) -> Session:
    """The session as its files are now; only what was added since is read. ``SessionError`` if it is gone.

    Shared by all visitors of the process: read it, and open another (``manager().open``) to write or to hold it.
    """
    kept_in = store()
    kept = _kept(kept_in.name, session_id, kept_in)
    try:
        with kept.mutex:
            kept.session.refresh()
    except SessionError:
        _kept.clear(kept_in.name, session_id, kept_in)
        raise
    return kept.session


@dataclass(frozen=True)
class Child:
    """A session forked from another, which kept the first ``at`` messages of it; ``title`` if it was given one."""

    id: str
    parent: str
    at: int
    created: str
    title: str | None


def children(session_id: str) -> list[Child]:
    """The sessions forked from ``session_id``, by where they part, then oldest first."""
    found = [
        Child(session, session_id, meta.inherited, str(meta.created or ""), meta.title)
        for session, meta in store().metas().items()
        if meta.parent == session_id
    ]
    return sorted(found, key=lambda child: (child.at, child.created, child.id))


def known_tags() -> list[str]:
    """Every tag in use in the folder, in alphabetical order, for suggestions."""
    found = {tag.casefold(): tag for meta in store().metas().values() for tag in meta.tags}
    return sorted(found.values(), key=str.casefold)


def title_of(session_id: str) -> str:
    """The title of a session for a label; its id if it cannot be read. Not escaped."""
    meta = store().metas().get(session_id)
    if meta is not None and meta.title:
        return meta.title
    try:
        return current(session_id).title
    except SessionError:
        return session_id
