"""Claude Code: ``~/.claude/projects/FOLDER/SESSION.jsonl``, and the JSON of its web version (``loglines``).

A file is a tree of records by ``uuid`` and ``parentUuid``:

* One answer is several lines, one a content block, with the same ``message.id`` and the same ``usage``: one message,
  its usage once (the largest, because earlier lines may report a part). Its results may hang on side branches.
* Records that say nothing pass the line on: progress, hooks, snapshots, ``isMeta`` notices, local commands, what a
  resume leaves behind ("No response requested."). A slash command that the model answered is a prompt.
* A compaction starts anew with ``logicalParentUuid``; its summary is kept as an answer (the model wrote it) with
  ``source.kind`` ``compaction``. Where a parent is missing, or no record names one, the order of the file is taken.
* A rewind leaves real branches: one session each. ``forkedFrom`` names the session a file was copied from.
* Sub-agents (``isSidechain``), inline or in their own file, become sessions of their own: ``subagent_of`` in their
  metadata names the caller, and they are tagged ``sub-agent``.
* What ``claude -p --output-format stream-json`` prints is read too: no parents, ``session_id``, ``parent_tool_use_id``.

Message ids are ``cc_`` and the API's message id (answers) or the record's ``uuid``, so copies share identities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sessions_lib import names, times
from sessions_lib.importers import callers
from sessions_lib.importers.branches import Branch, branches, without_cycles
from sessions_lib.importers.claude import blocks, kinds
from sessions_lib.importers.claude.records import Facts, Node, Reader, Record, facts_of, is_side
from sessions_lib.importers.claude.thread import messages_of
from sessions_lib.importers.imported import SUB_AGENT, Imported, ImportReport, common, word
from sessions_lib.importers.reader import Reader as Importer
from sessions_lib.importers.source import Records, Source
from sessions_lib.messages import content
from sessions_lib.messages.content import Message

_TYPES = frozenset(
    {"user", "assistant", "system", "summary", "progress", "attachment", "file-history-snapshot", "queue-operation"}
    | {"permission-mode", "ai-title", "custom-title", "agent-name", "last-prompt", "mode", "pr-link", "tag"}
)


def read(source: Source, records: Records, report: ImportReport) -> list[Imported]:
    """The conversations in a Claude Code file: the main one, its abandoned branches, and its sub-agents."""
    listed = _records(records)
    main: list[Node] = []
    side: list[Node] = []
    reader = Reader(report)
    for number, record in listed:
        node = reader.node_of(record, number)
        if node is not None:
            (side if is_side(record) else main).append(node)
    facts = facts_of(listed, source)
    is_agent_file = bool(side) and not any(node.kind in kinds.SAID - {kinds.QUEUED} for node in main)
    found: list[Imported] = []
    if not is_agent_file:
        found += _conversations(main, facts, report)
    if side:
        found += _agents(side, found, facts, report, source if is_agent_file else None)
    return found


def _records(records: Records) -> list[tuple[int, Record]]:
    if not records.is_document:
        return records.lines
    listed = records.document.get("loglines") if isinstance(records.document, dict) else None
    return [(n, r) for n, r in enumerate(listed or [], 1) if isinstance(r, dict)]


# ---------------------------------------------------------------- the tree


def _conversations(nodes: list[Node], facts: Facts, report: ImportReport) -> list[Imported]:
    key = f"claude-code:{facts.session}"
    found: list[Imported] = []
    keys: list[str] = []
    for number, branch in enumerate(_branches(nodes, report)):
        line = [nodes[index] for index in branch.records]
        messages = messages_of(line, report if number == 0 else ImportReport())
        shared = (
            common([m["id"] for m in found[branch.parent].messages], [m["id"] for m in messages])
            if (branch.parent is not None)
            else 0
        )
        own_key = key if number == 0 else f"{key}#{_first_own(messages, shared)}"
        keys.append(own_key)
        if branch.parent is not None:
            parent_key: str | None = keys[branch.parent]
        else:
            parent_key = f"claude-code:{facts.forked_from}" if facts.forked_from else None
        if parent_key == own_key:
            parent_key = None
        found.append(
            Imported(
                key=own_key,
                conversation=key,
                title=facts.title,
                messages=messages,
                parent_key=parent_key,
                shared=shared,
                source=facts.provenance(),
                created=times.parse(messages[0].get("timestamp")) if messages else None,
            )
        )
    return [imported for imported in found if len(imported.messages) > imported.shared]


def _branches(nodes: list[Node], report: ImportReport) -> list[Branch]:
    if _is_one_line(nodes):
        return [Branch(list(range(len(nodes))), None, 0)]
    return branches(_parents(nodes, report), _says(nodes))


def _is_one_line(nodes: Sequence[Node]) -> bool:
    """True if each record names the one before it as its parent: most files, and there is no tree to grow."""
    before = None
    seen: set[str] = set()
    for node in nodes:
        uuid = node.record.get("uuid")
        if node.record.get("parentUuid") != before or not isinstance(uuid, str):
            return False
        seen.add(uuid)
        before = uuid
    return len(seen) == len(nodes)


def _says(nodes: Sequence[Node]) -> list[bool]:
    """Which nodes make a branch real: prompts, and of an answer its first line, wherever its text or calls stand.

    The other lines of the answer may hang beside its results, which is how parallel calls are written down.
    """
    says = [node.kind == kinds.PROMPT for node in nodes]
    first: dict[Any, int] = {}
    for index, node in enumerate(nodes):
        if node.kind == kinds.ANSWER:
            start = first.setdefault(word(node.record["message"].get("id")) or index, index)
            says[start] = says[start] or blocks.says_something(node.blocks)
    return says


def _first_own(messages: list[Message], shared: int) -> str:
    return str(messages[shared]["id"]) if shared < len(messages) else str(len(messages))


def _parents(nodes: Sequence[Node], report: ImportReport) -> list[int | None]:
    """Each node's parent. A missing parent: the record before it in the file, with a warning; no parent: see below."""
    place: dict[str, int] = {}
    for index, node in enumerate(nodes):
        uuid = node.record.get("uuid")
        if isinstance(uuid, str):
            place.setdefault(uuid, index)
    uses_parents = any(word(node.record.get("parentUuid")) in place for node in nodes)
    answered = False
    parents: list[int | None] = []
    for index, node in enumerate(nodes):
        before = index - 1 if index else None
        named = node.record.get("parentUuid") or node.record.get("logicalParentUuid")
        parent: int | None
        if isinstance(named, str) and named in place and place[named] != index:
            parent = place[named]
        elif isinstance(named, str) and named:
            parent = before
            if before is not None:
                report.warn(f"line {node.line}: its parent is not in the file; the file's order is taken there")
        elif uses_parents and answered and node.kind == kinds.PROMPT and "parentUuid" in node.record:
            parent = None  # the first prompt was edited: a branch that shares nothing
        else:
            parent = before
        answered = answered or (node.kind == kinds.ANSWER)
        parents.append(parent)
    for index in without_cycles(parents):
        report.warn(f"line {nodes[index].line}: its parents lead back to itself; it is taken as a start")
    return parents


# ---------------------------------------------------------------- sub-agents


def _agents(
    side: list[Node], main: list[Imported], facts: Facts, report: ImportReport, file: Source | None
) -> list[Imported]:
    """A session for each sub-agent: records of one agent id, or connected by their parents.

    ``main`` are the conversations of the same file, ``file`` is the file if it is the sub-agent's own.
    """
    root = f"claude-code:{facts.session}"
    groups = _groups(side, is_own_file=file is not None)
    said = {name: messages_of(nodes, report) for name, nodes in groups.items()}
    made = {root: callers.calls_in([message for one in main for message in one.messages])}
    made |= {f"{root}{callers.INSIDE}{name}": callers.calls_in(messages) for name, messages in said.items()}
    found = []
    for name, messages in said.items():
        if not messages:
            continue
        key = f"{root}{callers.INSIDE}{name}"
        prompt = content.text(messages[0]).strip()
        origin = facts.provenance(agent=name, workflow=_workflow(file) if file else None)
        parent: dict[str, Any] = {"key": root}
        if told := word(groups[name][0].record.get("parent_tool_use_id")) or (_told_beside(file) if file else ""):
            parent["tool_call_id"] = told
        for owner, calls in made.items():
            if owner != key and (call := callers.call_of(parent, origin, prompt, calls)) is not None:
                parent = {"key": owner, "tool_call_id": call}
                break
        found.append(
            Imported(
                key=key,
                conversation=key,
                title=names.one_line(f"Sub-agent: {names.title_from(prompt) or name}"),
                messages=messages,
                tags=(SUB_AGENT,),
                meta={"subagent_of": parent},
                source=origin,
                created=times.parse(messages[0].get("timestamp")),
            )
        )
    return found


def _groups(side: list[Node], *, is_own_file: bool) -> dict[str, list[Node]]:
    """The records of each sub-agent, by its name."""
    groups: dict[str, list[Node]] = {}
    group_of: dict[str, str] = {}
    for node in side:
        record = node.record
        name = record.get("agentId") or record.get("parent_tool_use_id")
        if not isinstance(name, str):
            above = group_of.get(word(record.get("parentUuid")))
            name = above or ("" if is_own_file and groups else str(record.get("uuid") or f"line{node.line}"))
            if is_own_file and groups and not above:
                name = next(iter(groups))
        groups.setdefault(name, []).append(node)
        if isinstance(record.get("uuid"), str):
            group_of[record["uuid"]] = name
    return groups


def _told_beside(file: Source) -> str:
    """The call that made the sub-agent of ``file``, as the ``.meta.json`` beside it tells."""
    return word(file.metadata().get("toolUseId"))


def _workflow(file: Source) -> str | None:
    """The workflow whose sub-agent ``file`` is: its folder's name, inside ``workflows``."""
    folder = file.label.parent
    return folder.name if folder.parent.name == "workflows" else None


# ---------------------------------------------------------------- recognition


def looks_like(records: Records) -> bool:
    """True for records of Claude Code, or the JSON of its web version."""
    if records.is_list:
        return False
    if isinstance(records.whole.get("loglines"), list):
        return True
    told = (record.get("message") for record in records.items)
    if any(isinstance(message, dict) and isinstance(message.get("parts"), list) for message in told):
        return False  # those are Qwen Code's
    return any(map(_is_record, records.items))


def _is_record(record: Mapping[str, Any]) -> bool:
    kind = word(record.get("type"))
    if kind in ("user", "assistant"):
        return isinstance(record.get("message"), dict)
    return kind in _TYPES and not record.keys().isdisjoint({"sessionId", "leafUuid", "uuid", "messageId"})


READER = Importer(
    "claude-code", "Claude Code", looks_like, read, aliases=("claude", "claude_code"), places=(".claude/projects",)
)
