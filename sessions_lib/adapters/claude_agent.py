"""A session store of the Claude Agent SDK: ``ClaudeAgentOptions(session_store=ForkbookStore())``.

What the SDK mirrors is opaque to it and to us: its entries are kept line by line, laid out as Claude Code lays out its
own files, and the importer of Claude Code makes sessions of them a moment later, and as they grow. The SDK's program
keeps its own copy besides; deleting through the SDK takes the mirror away and moves the session to the trash.

Does not import the SDK: the protocol asks for methods alone.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import shutil
import threading
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from sessions_lib import importers
from sessions_lib.errors import SessionError
from sessions_lib.store.manager import SessionManager
from sessions_lib.store.store import is_address

Key = Mapping[str, str]  # project_key, session_id, perhaps subpath
Entry = dict[str, Any]
_MIRROR = ".claude-agent"  # in the folder of sessions: hidden from whoever lists it
_END = ".jsonl"
_PAUSE_S = 0.5  # between two imports of what grows
_PATIENCE_S = 30.0  # for another process that is writing


class ForkbookStore:
    """The store on ``save_dir`` (a folder, else where sessions are kept).

    ``mirror`` is the folder for the SDK's own lines; without it one beside the sessions.
    """

    def __init__(self, save_dir: str | Path | None = None, mirror: str | Path | None = None) -> None:
        self._manager = SessionManager(save_dir)
        where = self._manager.store.where
        beside = Path.home() / ".pi-agent" if is_address(where) else Path(where)
        self._mirror = Path(mirror).expanduser() if mirror else beside / _MIRROR
        self._known: dict[Path, tuple[int, set[str]]] = {}  # of a file: the size at which its uuids were read
        self._mutex = threading.Lock()
        self._timer: threading.Timer | None = None
        self._grown = set(self._mirror.glob(f"*/*{_END}"))  # a process that was killed left some behind
        atexit.register(self.flush)

    # ------------------------------------------------------------ what the SDK asks for

    async def append(self, key: Key, entries: Sequence[Entry]) -> None:
        """Keep ``entries``, each ``uuid`` once, in order; they are on the disk when this returns."""
        if entries:
            await asyncio.shield(asyncio.to_thread(self._append, key, list(entries)))

    async def load(self, key: Key) -> list[Entry] | None:
        """The entries of ``key`` as they came; ``None`` if there are none."""
        return await asyncio.to_thread(_entries, self._path(key))

    async def list_sessions(self, project_key: str) -> list[dict[str, Any]]:
        """The sessions of a project: ``session_id``, and ``mtime`` in milliseconds."""
        found = sorted((self._mirror / _name(project_key)).glob(f"*{_END}"))
        return [
            {"session_id": unquote(one.name.removesuffix(_END)), "mtime": one.stat().st_mtime_ns // 1_000_000}
            for one in found
        ]

    async def list_subkeys(self, key: Key) -> list[str]:
        """The subpaths of a session: the transcripts of its sub-agents."""
        folder = self._path({**key, "subpath": ""})
        folder = folder.with_name(folder.name.removesuffix(_END))
        found = sorted(folder.rglob(f"*{_END}"))
        return [unquote(one.relative_to(folder).as_posix().removesuffix(_END)) for one in found]

    async def delete(self, key: Key) -> None:
        """Take the entries of ``key`` away, with those of its subpaths; the session goes to the trash."""
        await asyncio.shield(asyncio.to_thread(self._delete, key))

    # ------------------------------------------------------------ sessions

    def flush(self) -> None:
        """Make sessions of all that was mirrored, now; what could not be read is a warning."""
        with self._mutex:
            grown, self._grown, self._timer = self._grown, set(), None
            try:
                for step in importers.import_paths(self._manager, sorted(grown), "claude-code") if grown else ():
                    if step.error:
                        warnings.warn(f"Kept, and not a session yet: {step.error}", stacklevel=2)
            except SessionError as error:  # another import is running, or the disk refuses
                self._grown |= grown
                warnings.warn(f"Kept, and to be tried again with the next entries: {error}", stacklevel=2)

    def _soon(self, path: Path) -> None:
        self._grown.add(path)
        if self._timer is None:
            self._timer = threading.Timer(_PAUSE_S, self.flush)
            self._timer.daemon = True  # what it would have done is done at the end of the program
            self._timer.start()

    # ------------------------------------------------------------ files

    def _path(self, key: Key) -> Path:
        parts = [key["project_key"], key["session_id"], *filter(None, key.get("subpath", "").split("/"))]
        *folders, last = map(_name, parts)
        return self._mirror.joinpath(*folders, f"{last}{_END}")

    def _append(self, key: Key, entries: list[Entry]) -> None:
        path = self._path(key)
        with self._manager.store.alone("claude-agent", _PATIENCE_S):
            self._mirror.parent.mkdir(parents=True, exist_ok=True)
            for folder in reversed([one for one in path.parents if one.is_relative_to(self._mirror)]):
                folder.mkdir(mode=0o700, exist_ok=True)
            known = self._uuids(path)
            new = [entry for entry in entries if entry.get("uuid") not in known]
            with open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), "ab") as file:
                end = b"\n" if _is_torn(path) else b""
                file.write(end + b"".join(json.dumps(one, separators=(",", ":")).encode() + b"\n" for one in new))
                file.flush()
                os.fsync(file.fileno())
            known.update(str(one["uuid"]) for one in new if one.get("uuid"))
            self._known[path] = (path.stat().st_size, known)
        self._soon(path)

    def _uuids(self, path: Path) -> set[str]:
        size, known = self._known.get(path, (0, set()))
        if path.exists() and path.stat().st_size != size:  # of another process, or not read yet
            known = {str(entry["uuid"]) for entry in _entries(path) or () if entry.get("uuid")}
        return known

    def _delete(self, key: Key) -> None:
        path = self._path(key)
        folder = path.with_name(path.name.removesuffix(_END))
        self.flush()
        with self._manager.store.alone("claude-agent", _PATIENCE_S):
            path.unlink(missing_ok=True)
            shutil.rmtree(folder, ignore_errors=True)
        for session, meta in [*self._manager.store.metas().items()]:
            origin = meta.values.get("imported_from")
            source = Path(str(origin.get("path"))) if isinstance(origin, Mapping) else None
            if source is not None and (source == path.absolute() or folder.absolute() in source.parents):
                self._manager.delete(session)


def _name(text: str) -> str:
    """``text`` as a name in a folder, to be read back."""
    name = quote(text, safe="")
    return name.replace(".", "%2E", 1) if name.startswith(".") else name


def _is_torn(path: Path) -> bool:
    return path.stat().st_size > 0 and path.read_bytes()[-1:] != b"\n"


def _entries(path: Path) -> list[Entry] | None:
    """The entries in ``path``; a line that a kill cut off was never acknowledged."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return None
    found = []
    for line in lines:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found
