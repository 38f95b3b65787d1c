"""The folder of sessions as the pages see it: its manager, a session as it is now, who was forked from whom.

The folder comes from the environment (``$SESSIONS_DIR``). What is kept between runs of a page is kept for the process,
bounded, and checked against the files each time; nothing here belongs to one visitor.

Does not write.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import streamlit as st

from pages.shared.safe_markdown import safe_label
from sessions_lib import names
from sessions_lib.errors import SessionError
from sessions_lib.store.folder import metadata
from sessions_lib.store.manager import SessionManager
from sessions_lib.store.records import Metadata
from sessions_lib.store.session import Session


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


def why_read_only(session_id: str | None) -> str:
    """Why nothing can be written here now, in one sentence with what to do; empty if it can. Not escaped."""
    home = manager().folder
    if not home.is_dir():
        return ""  # it is made when the first session is
    paths = [home] if session_id is None else [home, home / f"{session_id}.jsonl"]
    for path in paths:
        if path.exists() and not os.access(path, os.W_OK):
            return f"Read only: {path} cannot be written. Fix its permissions, then reload."
    disk = os.statvfs(home)
    if disk.f_flag & os.ST_RDONLY:
        return f"Read only: {home} is on a disk that is mounted read-only."
    return f"Read only: the disk of {home} is full. Free space, then reload." if disk.f_bavail == 0 else ""


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
    """A session forked from another, which kept the first ``at`` messages of it; ``title`` if it was given one."""

    id: str
    parent: str
    at: int
    created: str
    title: str | None


@dataclass
class _Metas:
    """The metadata of every session of a folder, each read again only when its file changed."""

    folder_changed_ns: int = -1
    stamps: dict[str, tuple[int, int]] = field(default_factory=dict)
    metas: dict[str, Metadata] = field(default_factory=dict)
    mutex: threading.Lock = field(default_factory=threading.Lock)


@st.cache_resource(max_entries=8, show_spinner=False)
def _metas_of(folder: Path) -> _Metas:
    return _Metas()


def _metas() -> dict[str, Metadata]:
    folder = manager().folder
    known = _metas_of(folder)
    with known.mutex:
        try:
            # Metadata is replaced by a rename, which changes the time of the folder.
            changed_ns = folder.stat().st_mtime_ns
        except OSError:
            return {}
        if changed_ns != known.folder_changed_ns:
            _read_changed(folder, known)
            known.folder_changed_ns = changed_ns
        return dict(known.metas)


def _read_changed(folder: Path, known: _Metas) -> None:
    found: dict[str, tuple[int, int]] = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            session = entry.name.removesuffix(metadata.SUFFIX)
            if session != entry.name and names.is_id(session):
                state = entry.stat(follow_symlinks=False)
                found[session] = (state.st_mtime_ns, state.st_ino)
    for session in known.metas.keys() - found.keys():
        del known.metas[session]
    for session, stamp in found.items():
        if known.stamps.get(session) != stamp:
            known.metas[session] = metadata.read(folder / f"{session}{metadata.SUFFIX}")
    known.stamps = found


def children(session_id: str) -> list[Child]:
    """The sessions forked from ``session_id``, by where they part, then oldest first."""
    found = [
        Child(session, session_id, meta.inherited, str(meta.created or ""), meta.title)
        for session, meta in _metas().items()
        if meta.parent == session_id
    ]
    return sorted(found, key=lambda child: (child.at, child.created, child.id))


def known_tags() -> list[str]:
    """Every tag in use in the folder, in alphabetical order, for suggestions."""
    found = {tag.casefold(): tag for meta in _metas().values() for tag in meta.tags}
    return sorted(found.values(), key=str.casefold)


def title_of(session_id: str) -> str:
    """The title of a session for a label; its id if it cannot be read. Not escaped."""
    meta = _metas().get(session_id)
    if meta is not None and meta.title:
        return meta.title
    try:
        return current(session_id).title
    except SessionError:
        return session_id
