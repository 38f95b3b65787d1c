"""Pi: ``~/.pi/agent/sessions/--FOLDER--/TIME_ID.jsonl``, versions 1 (a list), 2 and 3 (a tree by ``parentId``).

The leaf that ends last in the file is the main line; every other one becomes a session, linked as a fork. A header with
``parentSession`` (or ``branchedFrom``) names the file it was copied from.

* Compaction, branch summaries: the history stays, the summary is kept as an answer (the model wrote it) with
  ``source.kind``. Shell commands of the person and messages of extensions are ``system`` notes with their raw record.
  Why an answer failed is part of its text.
* Tokens that were spent beside answers (summaries, tools that ask a model, ``usage`` entries) count: on the summary, or
  on an empty answer that no provider is ever sent.
* Labels become tags and ``bookmarks`` (message id, label). Context edits are kept in ``context_edits``; they took
  nothing from what was said. Model and thinking changes are counted.

Message ids are ``pi_`` and a hash of the entry without its ids, so copies share identities, and so does a version 1
file that Pi rewrote as version 3.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any

from sessions_lib import times
from sessions_lib.importers.branches import Branch, branches, without_cycles
from sessions_lib.importers.imported import Imported, ImportReport, as_call, fill_times, iso, set_usage, word
from sessions_lib.importers.reader import Reader
from sessions_lib.importers.source import Records, Source
from sessions_lib.messages import content, encoding
from sessions_lib.messages.content import Message

Entry = dict[str, Any]

FINISH_REASONS = {"stop": "stop", "length": "length", "toolUse": "tool_calls", "error": "error"}
_SAID = ("message", "custom_message", "branch_summary", "compaction", "usage")
_FILE = re.compile(r"([0-9A-Za-z-]+)\.jsonl?\Z")


def read(source: Source, records: Records, report: ImportReport) -> list[Imported]:
    """The conversation that ends last in a Pi file, then its other branches."""
    header: Entry = next((record for _, record in records.lines if record.get("type") == "session"), {})
    entries = [(number, record) for number, record in records.lines if record.get("type") != "session"]
    session = content.as_text(header.get("id")) or source.name.rsplit(".", 1)[0]
    key = f"pi:{session}"
    parents = _parents(entries, report)
    said = [_is_said(entry) for _, entry in entries]
    ids = _ids([entry for _, entry in entries])
    title = _title([entry for _, entry in entries])
    found: list[Imported] = []
    keys: list[str] = []
    for number, branch in enumerate(branches(parents, said)):
        messages, shared = _line(branch, entries, ids, report if number == 0 else ImportReport())
        keys.append(key if number == 0 else f"{key}#{messages[shared]['id'] if shared < len(messages) else number}")
        parent_key = keys[branch.parent] if branch.parent is not None else _parent_key(header)
        path = [entries[index][1] for index in branch.records]
        fill_times(messages, iso(header.get("timestamp")))
        labels = _labels(
            [entry for _, entry in entries], dict(zip((word(e.get("id")) for _, e in entries), ids, strict=True))
        )
        own_labels = [mark for mark in labels if any(m["id"] == mark["message_id"] for m in messages)]
        found.append(
            Imported(
                key=keys[-1],
                conversation=key,
                title=title,
                tags=tuple(dict.fromkeys(mark["label"] for mark in own_labels)),
                messages=messages,
                parent_key=parent_key,
                shared=shared,
                meta=_meta(path, own_labels),
                source={k: header[k] for k in ("cwd", "version") if header.get(k) is not None},
                created=times.parse(header.get("timestamp")),
            )
        )
    return [imported for imported in found if len(imported.messages) > imported.shared]


def _parent_key(header: Entry) -> str | None:
    """The session that the header's path names: the id stands at the end of its file's name."""
    path = header.get("parentSession") or header.get("branchedFrom")
    if not isinstance(path, str) or not path:
        return None
    name = path.replace("\\", "/").rsplit("/", 1)[-1]
    found = _FILE.search(name.split("_", 1)[-1])
    return f"pi:{found.group(1) if found else name}"


def _is_said(entry: Entry) -> bool:
    return entry.get("type") in _SAID and (entry["type"] != "message" or isinstance(entry.get("message"), dict))


def _parents(entries: Sequence[tuple[int, Entry]], report: ImportReport) -> list[int | None]:
    """Each entry's parent; version 1 has none, and where one is missing the order of the file is taken."""
    place: dict[str, int] = {}
    for index, (_, entry) in enumerate(entries):
        if isinstance(entry.get("id"), str):
            place.setdefault(entry["id"], index)
    parents: list[int | None] = []
    for index, (number, entry) in enumerate(entries):
        named = entry.get("parentId")
        before = index - 1 if index else None
        if isinstance(named, str) and named in place and place[named] != index:
            parents.append(place[named])
        elif isinstance(named, str) and named and before is not None:
            report.warn(f"line {number}: its parent is not in the file; the file's order is taken there")
            parents.append(before)
        else:
            parents.append(before if "parentId" not in entry else None)
    for index in without_cycles(parents):
        report.warn(f"line {entries[index][0]}: its parents lead back to itself; it is taken as a start")
    return parents


def _ids(entries: Sequence[Entry]) -> list[str]:
    """An id for each entry that its copies share, and that stays when Pi rewrites an old file with ids of its own."""
    made: list[str] = []
    seen: set[str] = set()
    for entry in entries:
        said = {key: value for key, value in entry.items() if key not in ("id", "parentId", "fromId")}
        message_id = "pi_" + hashlib.blake2b(encoding.encode(said), digest_size=12).hexdigest()
        while message_id in seen:
            message_id += "~"
        seen.add(message_id)
        made.append(message_id)
    return made


def _title(entries: Sequence[Entry]) -> str | None:
    named = [entry.get("name") for entry in entries if entry.get("type") == "session_info"]
    return next((name for name in reversed(named) if isinstance(name, str) and name.strip()), None)


def _labels(entries: Sequence[Entry], ids: dict[Any, str]) -> list[dict[str, str]]:
    """The labels that stand at the end, each with the message it marks; a label without text clears one."""
    standing: dict[str, str] = {}
    for entry in entries:
        if entry.get("type") == "label" and (target := ids.get(word(entry.get("targetId")))):
            standing.pop(target, None)
            label = entry.get("label")
            if isinstance(label, str) and label.strip():
                standing[target] = " ".join(label.split())[:100]
    return [{"message_id": target, "label": label} for target, label in standing.items()]


def _meta(path: Sequence[Entry], labels: list[dict[str, str]]) -> dict[str, Any]:
    edits = [entry for entry in path if entry.get("type") in ("context_edit", "context_transform")]
    meta: dict[str, Any] = {"bookmarks": labels} if labels else {}
    return {**meta, "context_edits": edits} if edits else meta


# ---------------------------------------------------------------- messages


def _line(
    branch: Branch, entries: Sequence[tuple[int, Entry]], ids: Sequence[str], report: ImportReport
) -> tuple[list[Message], int]:
    """The messages of ``branch``, and how many of them its parent branch has too."""
    messages: list[Message] = []
    shared = 0
    for position, index in enumerate(branch.records):
        if position == branch.shared:
            shared = len(messages)
        entry = entries[index][1]
        made = _messages(entry, ids[index])
        if not made:
            report.skipped[content.as_text(entry.get("type")) or "entry without a type"] += 1
        messages += made
    return messages, shared


def _messages(entry: Entry, message_id: str) -> list[Message]:
    kind = entry.get("type")
    if kind == "message" and isinstance(entry.get("message"), dict):
        return _said(entry, entry["message"], message_id)
    if kind in ("branch_summary", "compaction"):
        return [_summary(entry, entry, message_id, kind)]
    if kind == "custom_message":
        return [_note(entry, entry, message_id, "custom_message", _content(entry.get("content")))]
    if kind == "usage":
        return _spent(entry, entry.get("usage"), message_id, "usage")
    return []


def _base(entry: Entry, said: Entry, role: str, message_id: str, text: Any) -> Message:
    message: Message = {"role": role, "content": text, "id": message_id}
    moment = iso(said.get("timestamp") if said is not entry else None) or iso(entry.get("timestamp"))
    if moment:
        message["timestamp"] = moment
    return message


def _said(entry: Entry, said: Entry, message_id: str) -> list[Message]:
    role = said.get("role")
    if role == "user":
        return [_base(entry, said, "user", message_id, _content(said.get("content")))]
    if role == "assistant":
        return [_answer(entry, said, message_id)]
    if role == "toolResult":
        return _result(entry, said, message_id)
    if role in ("branchSummary", "compactionSummary"):
        return [_summary(entry, said, message_id, "branch_summary" if role == "branchSummary" else "compaction")]
    if role == "bashExecution":
        code = said.get("exitCode")
        failed = f" (exit code {code})" if isinstance(code, int) and code else ""
        text = f"Ran `{content.as_text(said.get('command'))}`{failed}\n```\n{content.as_text(said.get('output'))}\n```"
        return [_note(entry, said, message_id, "bashExecution", text)]
    return [_note(entry, said, message_id, content.as_text(role) or "message", _content(said.get("content")))]


def _summary(entry: Entry, said: Entry, message_id: str, kind: str) -> Message:
    message = _base(entry, said, "assistant", message_id, content.as_text(said.get("summary")))
    keys = ("fromId", "firstKeptEntryId", "firstKeptEntryIndex", "tokensBefore", "details")
    message["source"] = {"kind": kind, **{key: said[key] for key in keys if key in said}}
    set_usage(message, said.get("usage"))
    return message


def _note(entry: Entry, said: Entry, message_id: str, kind: str, text: Any) -> Message:
    message = _base(entry, said, "system", message_id, text)
    raw = {key: value for key, value in said.items() if key not in ("content", "output", "type", "role")}
    return {**message, "source": {"kind": kind, **raw}}


def _spent(entry: Entry, usage: Any, message_id: str, kind: str) -> list[Message]:
    message = _base(entry, entry, "assistant", message_id, None)
    message["source"] = {"kind": kind}
    set_usage(message, usage)
    return [message] if "usage" in message else []


def _answer(entry: Entry, said: Entry, message_id: str) -> Message:
    blocks = said.get("content")
    blocks = [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks
    texts, thoughts, calls, others = [], [], [], []
    for block in blocks if isinstance(blocks, list) else []:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "text":
            texts.append(content.as_text(block.get("text")))
        elif kind == "thinking":
            thoughts.append(content.as_text(block.get("thinking")))
        elif kind == "toolCall":
            given = block.get("arguments")
            arguments = given if isinstance(given, str) else encoding.encode(given or {}).decode()
            calls.append(as_call(content.as_text(block.get("id")), content.as_text(block.get("name")), arguments))
        else:
            others.append(block)
    texts.append(word(said.get("errorMessage")))  # what the person saw; it is no part of what the model said
    message = _base(entry, said, "assistant", message_id, "\n\n".join(text for text in texts if text) or None)
    if reasoning := "\n\n".join(thought for thought in thoughts if thought):
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = calls
    if isinstance(said.get("model"), str):
        message["model"] = said["model"]
    reason = said.get("stopReason")
    if reason == "aborted":
        message["interrupted"] = True
    elif isinstance(reason, str):
        message["finish_reason"] = FINISH_REASONS.get(reason, reason)
    set_usage(message, said.get("usage"))
    kept = {key: said[key] for key in ("provider", "errorMessage") if isinstance(said.get(key), str)}
    if others:
        kept["blocks"] = others
    if kept:
        message["source"] = kept
    return message


def _result(entry: Entry, said: Entry, message_id: str) -> list[Message]:
    message = _base(entry, said, "tool", message_id, _content(said.get("content")))
    result: Message = {"role": "tool", "tool_call_id": content.as_text(said.get("toolCallId")), **message}
    if isinstance(said.get("toolName"), str):
        result["name"] = said["toolName"]
    if said.get("isError") is True:
        result["is_error"] = True
    return [result, *_spent(entry, said.get("usage"), message_id + "_usage", "tool usage")]


def _content(said: Any) -> Any:
    """Text, or OpenAI's parts where there is an image."""
    if not isinstance(said, list):
        return content.as_text(said)
    if all(isinstance(part, dict) and part.get("type") == "text" for part in said):
        return "\n".join(content.as_text(part.get("text")) for part in said)
    return [_part(part) for part in said]


def _part(part: Any) -> Any:
    if isinstance(part, dict) and part.get("type") == "image":
        source = part["source"] if isinstance(part.get("source"), dict) else part
        kind = source.get("mimeType") or source.get("media_type") or "image/png"
        return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{content.as_text(source.get('data'))}"}}
    if isinstance(part, dict):
        return part
    return {"type": "text", "text": content.as_text(part)}


# ---------------------------------------------------------------- recognition


def looks_like(records: Records) -> bool:
    """True for a header of Pi's among the first lines, or messages in its wrapping."""
    if records.is_list:
        return False
    if any(
        record.get("type") == "session" and "id" in record and "messages" not in record for record in records.items[:5]
    ):
        return True
    return any(
        record.get("type") == "message" and isinstance(record.get("message"), dict) and "uuid" not in record
        for record in records.items
    )


READER = Reader("pi", "Pi", looks_like, read, places=(".pi/agent/sessions",))
