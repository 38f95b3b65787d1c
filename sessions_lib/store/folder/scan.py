"""The plain scan of a folder: which sessions are in it, and each read whole for the plain answers (``plain``).

A session is a regular file ``ID.jsonl`` or ``ID.meta.json`` (or both) whose stem is a valid id. Links, directories,
sockets, backups and names that are no id are not sessions. A file that cannot be read costs its own row a mark
(``SessionInfo.fault``), nobody else anything.

Reads every file at every call. Does not write, and keeps nothing.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from sessions_lib import names
from sessions_lib.errors import SessionError, StorageError
from sessions_lib.store.folder import jsonl, metadata
from sessions_lib.store.plain import Scanned, scanned
from sessions_lib.store.plain_catalog import PlainCatalog

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


def read(folder: Path, session: str) -> Scanned:
    """One session of ``folder``, read whole; what cannot be read is empty and named in ``info.fault``."""
    meta = metadata.read(folder / f"{session}{METADATA}")
    lines, fault = jsonl.Lines(), meta.fault and f"the metadata {meta.fault}"
    try:
        lines = jsonl.read(folder / f"{session}{MESSAGES}")
    except FileNotFoundError:
        pass
    except (OSError, SessionError) as error:
        fault = unreadable(error)
    return scanned(
        session,
        meta,
        lines.messages,
        damaged=lines.damaged,
        size_bytes=lines.size,
        written=file_time(folder, session),
        fault=fault,
    )


def unreadable(error: OSError | SessionError) -> str:
    """Why the messages of a session could not be read, for its row."""
    return f"the messages cannot be read ({getattr(error, 'strerror', None) or error})"


def file_time(folder: Path, session: str) -> datetime | None:
    """The file time of a session's messages."""
    try:
        return datetime.fromtimestamp(int(os.lstat(folder / f"{session}{MESSAGES}").st_mtime), UTC)
    except (OSError, ValueError, OverflowError):
        return None


def plain(folder: Path) -> PlainCatalog:
    """The plain answers over ``folder``: every file is read at every question."""
    return PlainCatalog(lambda: (read(folder, session) for session in session_ids(folder)))
