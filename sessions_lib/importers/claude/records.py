"""Claude Code's records: what each one is, and what a file says about itself. Used by ``claude``.

Does not connect records.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sessions_lib.importers.claude import blocks as claude_blocks
from sessions_lib.importers.claude import kinds
from sessions_lib.importers.claude.queue import Queue
from sessions_lib.importers.imported import ImportReport, texts_in, word
from sessions_lib.importers.source import Source
from sessions_lib.messages import content

Record = dict[str, Any]

_NAMING = frozenset({"custom-title", "ai-title", "summary"})
# Kinds of records that hold nothing that was said: settings, snapshots, names, what the program tells itself.
_SILENT = frozenset(
    {"progress", "file-history-snapshot", "permission-mode", "agent-name", "agent-color", "last-prompt", "mode", "tag"}
    | {"pr-link", "cost-state", "agent_metadata", "saved_hook_context", "content-replacement", "worktree-state"}
    | {"attribution-snapshot", "bridge-session", "rate_limit_event", "stream_event", "control_request", "result"}
    | {"control_response", "tool_progress", "auth_status", "task-summary", "agent-setting", "atis-latch", "started"}
    | {"file-history-delta", "speculation-accept", "hook_started", "hook_response", "keep_alive", *_NAMING}
)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(slots=True)
class Node:
    """A record of the tree: what kind it is, and what there is to know of it to place it."""

    record: Record
    line: int
    kind: str  # one of ``kinds``, or why it says nothing
    blocks: list[Any] = field(default_factory=list)


class Reader:
    """Records in the order of the file → the nodes of its tree; what says nothing is counted in ``report``."""

    def __init__(self, report: ImportReport) -> None:
        """Nothing was read yet."""
        self._report = report
        self._queue = Queue()
        self._read: dict[str, list[Any]] = {}  # what the records of each uuid said
        self._texts: set[str] = set()

    def node_of(self, record: Record, line: int) -> Node | None:
        """The tree's node for ``record``, or ``None`` if it is no part of the tree."""
        kind, message = content.as_text(record.get("type")), record.get("message")
        if self._is_copy(record):
            self._report.skipped["repeated record"] += 1
            return None
        if isinstance(message, dict) and (kind == "assistant" or kind == "user"):
            blocks = claude_blocks.blocks_of(message)
            said = kinds.of_answer(record, message, blocks) if kind == "assistant" else kinds.of_user(record, blocks)
            return self._node(record, line, said, blocks)
        if kind == "queue-operation":
            return self._handed_over(record, line)
        attached = record.get("attachment")
        if kind == "attachment" and isinstance(attached, dict) and attached.get("type") == "queued_command":
            return self._attached(record, attached, line)
        if kind in ("user", "assistant"):
            self._report.skipped[f"{kind} record without a message"] += 1
        elif kind == "system":
            self._report.skipped[f"system: {record.get('subtype') or 'notice'}"] += 1
        elif kind in _SILENT or kind == "attachment" or not (texts := self._news_in(record)):
            self._report.skipped[kind or "record without a type"] += 1
        else:
            self._report.unknown[kind or "record without a type"] += 1
            return Node(record, line, kinds.UNKNOWN, [{"type": "text", "text": "\n".join(texts)}])
        return Node(record, line, "nothing") if isinstance(record.get("uuid"), str) else None

    def _node(self, record: Record, line: int, kind: str, blocks: list[Any]) -> Node:
        if kind not in kinds.SAID:
            self._report.skipped[kind] += 1
        self._texts.update(texts_in(blocks))
        return Node(record, line, kind, blocks)

    def _is_copy(self, record: Record) -> bool:
        """True if a record with this ``uuid`` said the same before: a resume copies them, at another time."""
        uuid, message = record.get("uuid"), record.get("message")
        if not isinstance(uuid, str) or not isinstance(message, dict):
            return False
        said = [record.get("type"), message]
        before = self._read.setdefault(uuid, said)
        return before is not said and before == said

    def _handed_over(self, record: Record, line: int) -> Node | None:
        blocks = self._queue.take(record)
        kind = kinds.of_queued(blocks, record.get("origin")) if blocks else ""
        if not blocks or kind not in kinds.SAID:
            self._report.skipped["queue-operation"] += 1
            return None
        return self._node({**record, "content": blocks}, line, kind, blocks)

    def _attached(self, record: Record, attached: Record, line: int) -> Node:
        blocks = claude_blocks.blocks_of({"content": attached.get("prompt")})
        kind = kinds.of_queued(blocks, attached.get("origin") or record.get("origin"))
        if attached.get("commandMode", "prompt") != "prompt":
            kind = kinds.NOTICE
        if kind in kinds.SAID and not self._queue.is_news(blocks):
            return Node(record, line, "nothing")
        return self._node(record, line, kinds.PROMPT if kind == kinds.QUEUED else kind, blocks)

    def _news_in(self, record: Record) -> list[str]:
        """The texts in a record of an unknown kind that no record before it told."""
        news = [text for text in texts_in(record) if text not in self._texts]
        self._texts.update(news)
        return news


def is_side(record: Record) -> bool:
    """True for a line of a sub-agent."""
    return record.get("isSidechain") is True or isinstance(record.get("parent_tool_use_id"), str)


@dataclass(slots=True)
class Facts:
    """What the file says about itself."""

    session: str = ""
    title: str | None = None
    cwd: str | None = None
    git_branch: str | None = None
    version: str | None = None
    forked_from: str | None = None

    def provenance(self, **more: Any) -> dict[str, Any]:
        """What ``imported_from`` says beside the key."""
        known = {"cwd": self.cwd, "git_branch": self.git_branch, "version": self.version, **more}
        return {name: value for name, value in known.items() if value is not None}


def _word(record: Record, key: str) -> str | None:
    value = record.get(key)
    return value if isinstance(value, str) and value else None


def facts_of(listed: Sequence[tuple[int, Record]], source: Source) -> Facts:
    """What the records of a file say about it: its session, title, folder, branch, version and parent."""
    facts = Facts()
    sessions: list[str] = []
    naming: list[Record] = []
    session = None
    misses = True
    for _, record in listed:
        told = record.get("sessionId") or record.get("session_id")
        if told != session and isinstance(told, str) and told:
            session = told
            sessions.append(told)
        if misses:
            facts.cwd = facts.cwd or _word(record, "cwd")
            facts.git_branch = facts.git_branch or _word(record, "gitBranch")
            facts.version = facts.version or _word(record, "version")
            misses = not (facts.cwd and facts.git_branch and facts.version)
        if "forkedFrom" in record and facts.forked_from is None and isinstance(record["forkedFrom"], dict):
            facts.forked_from = _word(record["forkedFrom"], "sessionId")
        if word(record.get("type")) in _NAMING:
            naming.append(record)
    facts.title = _title(naming, listed) if naming else None
    # A resumed file may start with records of the session it was copied from: its name tells its own. Where the file
    # was renamed, it is the first that it names, which stays so when another one follows.
    stem = source.name.rsplit(".", 1)[0]
    is_named = stem in sessions or not sessions or _UUID.fullmatch(stem)
    facts.session = stem if is_named else sessions[0]
    return facts


def _title(naming: Sequence[Record], listed: Sequence[tuple[int, Record]]) -> str | None:
    """The person's title, else the one Claude Code made, else the last summary of something in this file."""
    uuids = {word(record.get("uuid")) for _, record in listed} - {""}
    own = made = summary = None
    for record in naming:
        if record["type"] == "custom-title":
            own = record.get("customTitle") or record.get("title")
        elif record["type"] == "ai-title":
            made = record.get("aiTitle") or record.get("title")
        elif word(record.get("leafUuid")) in uuids:
            summary = record.get("summary")
    return next((t for t in (own, made, summary) if isinstance(t, str) and t.strip()), None)
