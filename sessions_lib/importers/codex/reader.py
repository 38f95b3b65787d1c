"""Codex: ``~/.codex/sessions/YYYY/MM/DD/rollout-….jsonl``, its three generations.

Until autumn 2025 the items stand bare behind a header (in the very first version in one JSON document: ``{"session",
"items"}``); then each is wrapped in ``response_item``; and the screen's view (``event_msg``) stands beside them, or
alone. A text that stands in both is taken once.

* One message an answer: reasoning, then text, then calls; a text behind calls, or behind a text, starts another.
* Injected items (developer rules, environment, AGENTS.md) are counted, never prompts: one is injected if it is wrapped
  in a tag we know and the screen did not show it as typed.
* ``total_token_usage`` is cumulative: each answer gets what was added since the last one, so sums equal the last value.
  Tokens that no answer stands for are kept on an empty answer, which no provider is ever sent.
* ``compacted``: the history stays; the summary is kept as an answer with ``source.kind`` ``compaction``.
* A rollback of turns leaves a branch. A fork names its parent, whether its file starts with a copy of the parent's
  items or refers to them (``history``): then they are read from the parent's file.
* Sub-agents name their caller in ``subagent_of`` and are tagged ``sub-agent``.

Items have no ids: message ids are ``cx_`` and a hash chained over what was said before, seeded with the oldest thread
of the family, so copies share identities although Codex stamps them anew.
"""

from __future__ import annotations

from typing import Any

from sessions_lib import names, times
from sessions_lib.importers.codex.history import base_of
from sessions_lib.importers.codex.items import Reader
from sessions_lib.importers.imported import SUB_AGENT, Imported, ImportReport, fill_times
from sessions_lib.importers.source import Records, Source
from sessions_lib.messages import content

Record = dict[str, Any]


def read(source: Source, records: Records, report: ImportReport) -> list[Imported]:
    """The conversation in a rollout, then the turns that were rolled back, each as a branch."""
    listed = _listed(records)
    lines = [(number, _wrapped(record)) for number, record in listed]
    metas = [record["payload"] for _, record in lines if record["type"] == "session_meta"]
    meta: Record = metas[0] if metas else {}
    thread = content.as_text(meta.get("id")) or source.name.rsplit(".", 1)[0]
    parent, is_agent = _parent(meta)
    ancestors = [content.as_text(other.get("id")) for other in metas if other.get("id") not in (None, meta.get("id"))]
    base = base_of(source, meta, [record for _, record in listed], report)
    if base is not None:
        parent = base.thread if base.thread != thread else None
    seed = base.root if base is not None else ancestors[-1] if ancestors else (parent or thread)
    reader = Reader(ImportReport(), seed=seed, is_reference=bool(parent) and base is None)
    for record in base.records if base is not None else ():
        reader.take(_wrapped(record), 0)
    reader.report = report
    for number, record in lines:
        reader.take(record, number)
    reader.finish()
    return _imported(reader, meta, thread, parent, is_agent)


def _listed(records: Records) -> list[tuple[int, Record]]:
    if not records.is_document and not (len(records.lines) == 1 and isinstance(records.first.get("items"), list)):
        return records.lines
    document = records.document if records.is_document else records.first
    header = document.get("session") if isinstance(document, dict) else None
    items = document.get("items") if isinstance(document, dict) else None
    listed = [header if isinstance(header, dict) else {}, *(items if isinstance(items, list) else [])]
    return [(number, record) for number, record in enumerate(listed) if isinstance(record, dict)]


def _imported(reader: Reader, meta: Record, thread: str, parent: str | None, is_agent: bool) -> list[Imported]:
    key = f"codex:{thread}"
    provenance = {
        name: meta[name]
        for name in ("cwd", "cli_version", "originator", "model_provider")
        if isinstance(meta.get(name), str)
    }
    more: Record = {}
    if is_agent:
        more = {"subagent_of": {"key": f"codex:{parent}"} if parent else {}}
    found = [
        Imported(
            key=key,
            conversation=key,
            title=_title(reader, meta, is_agent),
            tags=(SUB_AGENT,) if is_agent else (),
            messages=reader.messages,
            parent_key=f"codex:{parent}" if parent else None,
            meta=more,
            source=provenance,
            created=times.parse(meta.get("timestamp")),
        )
    ]
    for line, shared in reader.rolled_back:
        found.append(
            Imported(
                key=f"{key}#{line[shared]['id']}",
                conversation=key,
                title=found[0].title,
                messages=line,
                parent_key=key,
                shared=shared,
                source=provenance,
                created=times.parse(line[0].get("timestamp")),
            )
        )
    for imported in found:
        fill_times(imported.messages, times.iso(found[0].created) if found[0].created else None)
    return [imported for imported in found if imported.messages]


def _title(reader: Reader, meta: Record, is_agent: bool) -> str | None:
    if reader.title:
        return reader.title
    if not is_agent:
        return None
    told = meta.get("source")
    agent = told.get("subagent") if isinstance(told, dict) else None
    spawned = agent.get("thread_spawn") if isinstance(agent, dict) else None
    name = spawned.get("agent_nickname") or spawned.get("agent_role") if isinstance(spawned, dict) else agent
    prompt = next((content.text(m) for m in reader.messages if m["role"] == "user"), "")
    return names.one_line(f"Sub-agent: {name if isinstance(name, str) else names.title_from(prompt)}")


def _parent(meta: Record) -> tuple[str | None, bool]:
    """The thread this one comes from, and whether it is a sub-agent's."""
    told = meta.get("source")
    agent = told.get("subagent") if isinstance(told, dict) else None
    spawned = agent.get("thread_spawn") if isinstance(agent, dict) else None
    parent = spawned.get("parent_thread_id") if isinstance(spawned, dict) else None
    parent = meta.get("forked_from_id") or parent or meta.get("parent_thread_id")
    is_agent = agent is not None or meta.get("thread_source") == "subagent"
    return (parent if isinstance(parent, str) and parent and parent != meta.get("id") else None), is_agent


def _wrapped(record: Record) -> Record:
    """A record in the wrapped form: the first generation's header and items have no ``payload``."""
    if isinstance(record.get("payload"), dict):
        return {**record, "type": content.as_text(record.get("type"))}
    kind = record.get("type")
    if kind is None and "record_type" not in record and "id" in record:
        return {"type": "session_meta", "timestamp": record.get("timestamp"), "payload": record}
    if isinstance(kind, str) and "payload" not in record:
        return {"type": "response_item", "timestamp": record.get("timestamp"), "payload": record}
    return {"type": content.as_text(kind or record.get("record_type")), "payload": {}}
