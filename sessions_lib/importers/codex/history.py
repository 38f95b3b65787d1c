"""The files of other threads that a Codex thread comes from: what it inherits, and whose copy it starts with.

A fork starts with a copy of its parent's records, or refers to them: ``history_base`` in ``session_meta`` (or
``forked_from_id`` with ``forked_from_ordinal_exclusive``) names the thread and the first ``ordinal`` that is not
inherited. A copy of a copy names only its own parent, and need not hold the headers of the others; so the parent's
file says which thread is the oldest, and whether anything was copied at all.

Does not interpret records but for the first messages of a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sessions_lib.errors import SessionError
from sessions_lib.importers.codex.items import Reader
from sessions_lib.importers.codex.kinds import ROOT
from sessions_lib.importers.codex.parts import numbers
from sessions_lib.importers.codex.rollouts import rollouts_of
from sessions_lib.importers.imported import ImportReport, word
from sessions_lib.importers.source import Source, load
from sessions_lib.messages import content_key
from sessions_lib.messages.content import Message

Record = dict[str, Any]
_MAX_DEPTH = 50  # forks of forks; a circle of references ends here


@dataclass(frozen=True, slots=True)
class Base:
    """What a thread inherits by reference: the records, oldest first, their thread, and the oldest thread of all."""

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
    if depth > _MAX_DEPTH:
        return None
    for found in rollouts_of(source, thread):
        try:
            lines = [record for _, record in load(found.source).lines]
        except SessionError:
            continue
        metas = [r["payload"] for r in lines if r.get("type") == "session_meta" and isinstance(r.get("payload"), dict)]
        own = [record for record in lines if record.get("type") != "session_meta"]
        kept = [record for index, record in enumerate(own, 1) if _ordinal(record, index) < end]
        if not metas or (not kept and own):
            continue  # another file of the thread, which starts later
        named = _named(metas[0], lines)
        above = _inherited(found.source, *named, depth + 1) if named is not None else None
        if above is None:
            return Base(thread, oldest(found.source, metas, first_messages(metas[0], found.records())), kept)
        return Base(thread, above.root, [*above.records, *kept])
    return None


def _ordinal(record: Record, index: int) -> int:
    """The record's ordinal; without one, its place in the file, the header being 0."""
    ordinal = record.get("ordinal")
    return ordinal if isinstance(ordinal, int) else index


def oldest(source: Source, metas: Sequence[Record], said: Sequence[Message], depth: int = 0) -> str:
    """The thread that the first messages of ``source`` were said in: its own, or the oldest it has a copy of.

    ``metas`` are the headers in the file, its own first; ``said`` its first two messages.
    """
    thread, parent = word(metas[0].get("id")), parent_of(metas[0])
    if parent is None or depth > _MAX_DEPTH:
        return thread
    embedded = [other for other in metas[1:] if word(other.get("id")) not in ("", thread)]
    is_marked = bool(metas[0].get("forked_from_id")) or bool(embedded)
    above = next(iter(rollouts_of(source, parent)), None)
    if above is None:
        last = embedded[-1] if embedded else metas[0]
        return (parent_of(last) or word(last.get("id"))) if is_marked else thread
    # A thread that copies nothing may still ask what its parent was asked: without a mark that it copies, the prompt
    # alone does not make it a copy.
    first = first_messages(above.metas[0], above.records())
    shared = sum(1 for _ in _alike(said, first))
    if shared < (1 if is_marked else 2):
        return thread
    return oldest(above.source, above.metas, first, depth + 1)


def _alike(said: Sequence[Message], other: Sequence[Message]) -> Iterator[Message]:
    for one, two in zip(said[:2], other[:2], strict=False):
        if content_key(one) != content_key(two):
            return
        yield one


def first_messages(meta: Record, records: Iterable[Record]) -> list[Message]:
    """The first two messages in ``records``; no more of them is read."""
    reader = Reader(ImportReport(), seed="", agent_path=agent_path_of(meta), parents_totals=None)
    for record in records:
        reader.take(record)
        if len(reader.line.messages) > 2:
            break
    else:
        reader.finish()
    return reader.line.messages[:2]


def totals_of(source: Source, thread: str) -> list[dict[str, int]]:
    """Every total that the file of ``thread`` counts."""
    above = next(iter(rollouts_of(source, thread)), None)
    counts = (
        (record["payload"].get("info") for record in above.records() if record["type"] == "event_msg") if above else ()
    )
    return [total for info in counts if isinstance(info, dict) and (total := numbers(info.get("total_token_usage")))]


def parent_of(meta: Record) -> str | None:
    """The thread that the one of ``meta`` was forked from, or called by."""
    spawned = spawn_of(meta)
    for named in (meta.get("forked_from_id"), spawned.get("parent_thread_id"), meta.get("parent_thread_id")):
        if word(named) and named != meta.get("id"):
            return word(named)
    return None


def spawn_of(meta: Record) -> Record:
    """What the header of a sub-agent says of how it was called; empty for other threads."""
    told = meta.get("source")
    agent = told.get("subagent") if isinstance(told, dict) else None
    spawned = agent.get("thread_spawn") if isinstance(agent, dict) else None
    return spawned if isinstance(spawned, dict) else {}


def is_sub_agent(meta: Record) -> bool:
    """True if the thread was called by another one."""
    told = meta.get("source")
    return (isinstance(told, dict) and told.get("subagent") is not None) or meta.get("thread_source") == "subagent"


def agent_path_of(meta: Record) -> str:
    """Who speaks in the thread, as agents call each other: ``/root``, ``/root/scout``."""
    path = word(spawn_of(meta).get("agent_path")) or word(meta.get("agent_path"))
    return path or (f"{ROOT}/{word(meta.get('id'))}" if is_sub_agent(meta) else ROOT)
