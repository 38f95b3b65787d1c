"""Codex: ``~/.codex/sessions/YYYY/MM/DD/rollout-….jsonl``, its four generations.

Until autumn 2025 the items stand bare behind a header (in the very first version in one JSON document: ``{"session",
"items"}``); then each is wrapped in ``response_item``; and the screen's view (``event_msg``) stands beside them, or
alone; from 0.147 on that view is ``item_completed``. A text that stands in several is taken once (``items``).

* Injected items (developer rules, environment, AGENTS.md, the start block of Codex Desktop) are counted, never prompts.
* ``total_token_usage`` is cumulative: each answer gets what was added since the last one, so sums equal the last value.
  Tokens that no answer stands for are kept on an empty answer, which no provider is ever sent.
* ``compacted``: the history stays; the summary is kept as an answer with ``source.kind`` ``compaction``.
* A rollback of turns leaves a branch. A fork names its parent, whether its file starts with a copy of the parent's
  items or refers to them (``history``): then they are read from the parent's file.
* Sub-agents name their caller in ``subagent_of`` and are tagged ``sub-agent``.

Items have no ids: message ids are ``cx_`` and a hash chained over what was said before, seeded with the oldest thread
that the file has a copy of, so copies share identities although Codex stamps them anew.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from sessions_lib import names, times
from sessions_lib.importers.codex.history import (
    agent_path_of,
    base_of,
    first_messages,
    is_sub_agent,
    oldest,
    parent_of,
    spawn_of,
    totals_of,
)
from sessions_lib.importers.codex.items import Reader
from sessions_lib.importers.codex.rollouts import wrapped
from sessions_lib.importers.imported import SUB_AGENT, Imported, ImportReport, fill_times, word
from sessions_lib.importers.reader import Reader as Importer
from sessions_lib.importers.source import Records, Source
from sessions_lib.messages import content

Record = dict[str, Any]

_TYPES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_ITEMS = frozenset(
    {"message", "reasoning", "function_call", "function_call_output", "local_shell_call", "custom_tool_call"}
    | {"custom_tool_call_output", "web_search_call"}
)


def read(source: Source, records: Records, report: ImportReport) -> list[Imported]:
    """The conversation in a rollout, then the turns that were rolled back, each as a branch."""
    listed = _listed(records)
    lines = [wrapped(record) for record in listed]
    metas = [record["payload"] for record in lines if record["type"] == "session_meta"]
    meta: Record = metas[0] if metas else {}
    thread = content.as_text(meta.get("id")) or source.name.rsplit(".", 1)[0]
    parent, seed, totals = parent_of(meta), thread, None
    base = base_of(source, meta, listed, report)
    if base is not None:
        parent, seed = (base.thread if base.thread != thread else None), base.root
    elif parent is not None:
        seed, totals = oldest(source, metas, first_messages(meta, lines)), partial(totals_of, source, parent)
    reader = Reader(ImportReport(), seed=seed, agent_path=agent_path_of(meta), parents_totals=totals)
    for record in base.records if base is not None else ():
        reader.take(wrapped(record))
    reader.report = report
    for record in lines:
        reader.take(record)
    reader.finish()
    return _imported(reader, meta, thread, parent)


def _listed(records: Records) -> list[Record]:
    if not records.is_document and not (len(records.lines) == 1 and isinstance(records.first.get("items"), list)):
        return [record for _, record in records.lines]
    document = records.document if records.is_document else records.first
    header = document.get("session") if isinstance(document, dict) else None
    items = document.get("items") if isinstance(document, dict) else None
    listed = [header if isinstance(header, dict) else {}, *(items if isinstance(items, list) else [])]
    return [record for record in listed if isinstance(record, dict)]


def _imported(reader: Reader, meta: Record, thread: str, parent: str | None) -> list[Imported]:
    is_agent = is_sub_agent(meta)
    key = f"codex:{thread}"
    provenance = {
        name: meta[name]
        for name in ("cwd", "cli_version", "originator", "model_provider")
        if isinstance(meta.get(name), str)
    }
    more: Record = {}
    if is_agent:
        caller = word(spawn_of(meta).get("parent_thread_id")) or word(meta.get("parent_thread_id")) or parent
        more = {"subagent_of": {"key": f"codex:{caller}"} if caller else {}}
    found = [
        Imported(
            key=key,
            conversation=key,
            title=_title(reader, meta, is_agent),
            tags=(SUB_AGENT,) if is_agent else (),
            messages=reader.line.messages,
            parent_key=f"codex:{parent}" if parent else None,
            meta=more,
            source=provenance,
            created=times.parse(meta.get("timestamp")),
        )
    ]
    for line, shared in reader.line.rolled_back:
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
    spawned, told = spawn_of(meta), meta.get("source")
    agent = (
        spawned.get("agent_nickname")
        or spawned.get("agent_role")
        or (told if isinstance(told, dict) else {}).get("subagent")
    )
    prompt = next((content.text(m) for m in reader.line.messages if m["role"] == "user"), "")
    return names.one_line(f"Sub-agent: {agent if isinstance(agent, str) else names.title_from(prompt)}")


# ---------------------------------------------------------------- recognition


def looks_like(records: Records) -> bool:
    """True for wrapped records, a list of states, or bare items behind a header."""
    if records.is_list:
        return False
    if isinstance(records.whole.get("session"), dict) and isinstance(records.whole.get("items"), list):
        return True
    items = records.items
    if any(word(record.get("type")) in _TYPES and isinstance(record.get("payload"), dict) for record in items):
        return True
    if any(record.get("record_type") == "state" for record in items[:5]):
        return True
    head = items[0] if items else {}
    return (
        "role" not in head
        and {"timestamp", "id"} <= head.keys()
        and any(word(record.get("type")) in _ITEMS and "uuid" not in record for record in items[1:])
    )


READER = Importer("codex", "Codex", looks_like, read, places=(".codex/sessions",))
