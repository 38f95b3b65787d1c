"""The rollout files around a source: where the file of another thread is, and how it begins.

Looked for beside the source (in a folder or a zip), by name and by the thread in the first line, then by name in the
folder of Codex that the source is in.

Does not interpret records.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from sessions_lib.errors import SessionError
from sessions_lib.importers.imported import word
from sessions_lib.importers.source import Source
from sessions_lib.messages import content, encoding

Record = dict[str, Any]
_HOMES = ("sessions", "archived_sessions")


@dataclass(frozen=True, slots=True)
class Rollout:
    """A file whose first line is a header: its headers up to the first other record."""

    source: Source
    metas: list[Record]

    def records(self) -> Iterator[Record]:
        """The records of the file one by one, as it is read."""
        yield from _records(self.source)


def rollouts_of(source: Source, thread: str) -> Iterator[Rollout]:
    """The files of ``thread`` that can be found from ``source``."""
    for candidate in _candidates(source, thread):
        metas = _metas(candidate)
        if metas and metas[0].get("id") == thread:
            yield Rollout(candidate, metas)


def wrapped(record: Record) -> Record:
    """A record in the wrapped form: the first generation's header and items have no ``payload``."""
    if isinstance(record.get("payload"), dict):
        return {**record, "type": content.as_text(record.get("type"))}
    kind = record.get("type")
    if kind is None and "record_type" not in record and "id" in record:
        return {"type": "session_meta", "timestamp": record.get("timestamp"), "payload": record}
    if isinstance(kind, str) and "payload" not in record:
        outer = kind if kind in ("token_usage_record", "compacted") else "response_item"
        return {"type": outer, "timestamp": record.get("timestamp"), "payload": record}
    return {"type": content.as_text(kind or record.get("record_type")), "payload": {}}


def _records(source: Source) -> Iterator[Record]:
    try:
        with source.open() as file:
            for line in file:
                try:
                    record = encoding.decode(line)
                except ValueError:
                    continue
                if isinstance(record, dict):
                    yield wrapped(record)
    except SessionError:
        return


def _metas(source: Source) -> list[Record]:
    metas: list[Record] = []
    for record in _records(source):
        if record["type"] != "session_meta":
            break
        metas.append(record["payload"])
    return metas


def _candidates(source: Source, thread: str) -> Iterator[Source]:
    stamp = _stamp(source.path if source.member else source.path.parent)
    beside = _in_zip(source.path, stamp) if source.member else _in_folder(source.path.parent, stamp)
    others = [one for one in beside if one.label != source.label]
    named = [one for one in others if thread in one.name]
    yield from named
    if not named:
        yield from (one for one in others if _first_id(one, _stamp(one.path)) == thread)
    if source.member is None:
        far = (one for one in _in_home(source.path) if thread in one.name and one.path.parent != source.path.parent)
        yield from far


def _in_home(path: Path) -> Iterator[Source]:
    """The rollouts in the folder of Codex that ``path`` is in: a folder a day, and the archive."""
    home = next((above.parent for above in path.parents if above.name in _HOMES), None)
    for folder in _HOMES if home is not None else ():
        root = Path(home or ".", folder)
        for day in (root, *root.glob("*"), *root.glob("*/*"), *root.glob("*/*/*")):
            if day.suffix != ".jsonl" and day.is_dir():
                yield from _in_folder(day, _stamp(day))


def _stamp(path: Path) -> int:
    """What changes when something appears in the folder ``path``, or the file is written to."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


# A folder of a thousand sub-agents is listed once, not once for each of them that asks for its parent.
@lru_cache(maxsize=2048)
def _in_folder(folder: Path, stamp: int) -> list[Source]:
    try:
        return [Source(path) for path in sorted(folder.glob("*.jsonl"))]
    except OSError:
        return []


@lru_cache(maxsize=8)
def _in_zip(path: Path, stamp: int) -> list[Source]:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return []
    return [Source(path, name) for name in names if name.endswith(".jsonl")]


@lru_cache(maxsize=4096)
def _first_id(source: Source, stamp: int) -> str:
    metas = _metas(source)
    return word(metas[0].get("id")) if metas else ""
