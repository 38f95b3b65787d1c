"""astorlm: ``ID.jsonl`` (one message a line, Anthropic's content blocks) and ``ID.meta.json`` (``parentId``, times).

An answer's ``tool_use`` blocks become calls, a user message's ``tool_result`` blocks become results. The messages have
no times; ``createdAt`` of the session is theirs. Message ids are ``al_`` and the message's own id, made unique where it
is only a number, or a hash chained over what was said before: forks share them.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from sessions_lib import messages, times
from sessions_lib.importers.chat import anthropic
from sessions_lib.importers.chat.reader import FAMILY, are_lines
from sessions_lib.importers.imported import Imported, ImportReport, fill_times, iso
from sessions_lib.importers.reader import Reader
from sessions_lib.importers.source import Records, Source
from sessions_lib.importers.unique_ids import unique
from sessions_lib.messages.content import Message


def read(source: Source, records: Records, report: ImportReport) -> list[Imported]:
    """The one session in an astorlm file."""
    meta = source.metadata()
    own = meta.get("id") if isinstance(meta.get("id"), str) else source.name.rsplit(".", 1)[0]
    listed = records.document if isinstance(records.document, list) else [record for _, record in records.lines]
    found: list[Message] = []
    names_of: dict[str, str] = {}
    before = ""
    for record in listed:
        if not messages.is_message(record):
            report.skipped["entry that is no message"] += 1
            continue
        said = json.dumps([before, record["role"], record.get("content")], sort_keys=True)
        before = hashlib.blake2b(said.encode("utf-8", "replace"), digest_size=12).hexdigest()
        message_id = f"al_{record['id']}" if isinstance(record.get("id"), str) and record["id"] else f"al_{before}"
        found += anthropic.messages_of(record, message_id, names_of, report)
    fill_times(found, iso(meta.get("createdAt")))
    if not found:
        return []
    parent = meta.get("parentId")
    told = meta.get("metadata")
    inner: dict[str, Any] = told if isinstance(told, dict) else {}
    title = inner.get("title") or inner.get("name")
    return [
        Imported(
            key=f"astorlm:{own}",
            conversation=f"astorlm:{own}",
            title=title if isinstance(title, str) and title.strip() else None,
            messages=unique(found),
            parent_key=f"astorlm:{parent}" if isinstance(parent, str) and parent else None,
            source={"id": own},
            meta={"astorlm": inner} if inner else {},
            created=times.parse(meta.get("createdAt")),
            keeps_as_is=True,
        )
    ]


def looks_like(records: Records) -> bool:
    """True for lines of messages with content blocks in Anthropic's way, or metadata beside with ``createdAt``."""
    if not are_lines(records) or not records.source:
        return False
    blocks = [part for m in records.items if isinstance(m.get("content"), list) for part in m["content"]]
    if any(isinstance(part, dict) and part.get("type") in ("tool_use", "tool_result", "thinking") for part in blocks):
        return True
    meta = records.source.metadata()
    return "createdAt" in meta and "version" not in meta


READER = Reader("astorlm", "astorlm", looks_like, read, family=FAMILY)
