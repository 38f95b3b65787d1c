"""The part of a Codex thread that stands in another file: a fork by reference, or a thread taken back and gone on.

``history_base`` in ``session_meta`` (or ``forked_from_id`` with ``forked_from_ordinal_exclusive``) names the thread and
the first ``ordinal`` that is not inherited. The file is looked for beside the source, then in its Codex folder by name.

Does not interpret records.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sessions_lib.errors import SessionError
from sessions_lib.importers.imported import ImportReport, word
from sessions_lib.importers.source import Source, load
from sessions_lib.messages import encoding

Record = dict[str, Any]
_MAX_DEPTH = 50  # forks of forks; a circle of references ends here


@dataclass(frozen=True, slots=True)
class Base:
    """What a thread inherits: the records, oldest first, the thread they belong to, and the oldest thread of all."""

    thread: str
    root: str
    records: list[Record] = field(default_factory=list)


def base_of(source: Source, meta: Record, own: list[Record], report: ImportReport) -> Base | None:
    """What the thread of ``meta`` inherits by reference, or ``None`` if its file holds everything (or is alone)."""
    named = _named(meta, own)
    if named is None:
        return None
    found = _inherited(source, *named, 0)
    if found is None:
        report.warn(f"it goes on from thread {named[0]}, whose file is not there: only its own part was imported")
    return found


def _named(meta: Record, own: list[Record]) -> tuple[str, int] | None:
    """The thread and the first ordinal that is not inherited."""
    base = meta.get("history_base")
    if isinstance(base, dict):
        thread, end = word(base.get("thread_id")), base.get("end_ordinal_exclusive")
    else:
        thread, end = word(meta.get("forked_from_id")), meta.get("forked_from_ordinal_exclusive")
        ordinals = [r["ordinal"] for r in own if r.get("type") != "session_meta" and isinstance(r.get("ordinal"), int)]
        if not isinstance(end, int) or not ordinals or ordinals[0] < end:
            return None  # the inherited part was copied into the file
    return (thread, end) if thread and isinstance(end, int) and end > 0 else None


def _inherited(source: Source, thread: str, end: int, depth: int) -> Base | None:
    if depth > _MAX_DEPTH or source.member is not None:
        return None
    for path in _candidates(source.path, thread):
        try:
            lines = [record for _, record in load(Source(path)).lines]
        except SessionError:
            continue
        metas = [r["payload"] for r in lines if r.get("type") == "session_meta" and isinstance(r.get("payload"), dict)]
        if not metas or metas[0].get("id") != thread:
            continue
        own = [record for record in lines if record.get("type") != "session_meta"]
        kept = [record for index, record in enumerate(own, 1) if _ordinal(record, index) < end]
        if not kept and own:
            continue  # another file of the thread, which starts later
        named = _named(metas[0], lines)
        above = _inherited(Source(path), *named, depth + 1) if named is not None else None
        if above is None:
            return Base(thread, thread, kept)
        return Base(thread, above.root, [*above.records, *kept])
    return None


def _ordinal(record: Record, index: int) -> int:
    """The record's ordinal; without one, its place in the file, the header being 0."""
    ordinal = record.get("ordinal")
    return ordinal if isinstance(ordinal, int) else index


def _candidates(path: Path, thread: str) -> Iterator[Path]:
    beside = [one for one in sorted(path.parent.glob("*.jsonl")) if one != path]
    yield from (one for one in beside if thread in one.name or _first_id(one) == thread)
    home = next((above.parent for above in path.parents if above.name in ("sessions", "archived_sessions")), None)
    if home is not None and thread.replace("-", "").isalnum():
        for folder in ("sessions", "archived_sessions"):
            yield from (one for one in sorted((home / folder).rglob(f"*{thread}*.jsonl")) if one.parent != path.parent)


def _first_id(path: Path) -> str:
    try:
        with path.open("rb") as file:
            record = encoding.decode(file.readline())
    except (OSError, ValueError):
        return ""
    payload = record.get("payload") if isinstance(record, dict) else None
    return word(payload.get("id")) if isinstance(payload, dict) else ""
