"""Qwen Code: ``~/.qwen/projects/FOLDER/chats/SESSION.jsonl``, a tree of records with Gemini's contents in them.

Its older files are those of Gemini CLI. A record's ``message`` has ``role`` and ``parts``; ``tool_result`` records hold
the results. What was taken back is a branch. System records say something only where they hold a text.

Message ids are ``qw_`` and the record's UUID.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sessions_lib import times
from sessions_lib.importers.chat import gemini
from sessions_lib.importers.imported import Imported, ImportReport, fill_times, iso, word
from sessions_lib.importers.notes import unknown
from sessions_lib.importers.reader import Reader
from sessions_lib.importers.source import Records, Source
from sessions_lib.importers.steps import numbered
from sessions_lib.importers.trees import lines
from sessions_lib.messages.content import Message

Record = Mapping[str, Any]
_SAID = ("user", "assistant", "tool_result")
_SILENT = ("ui_telemetry", "slash_command", "at_command", "file_history_snapshot")


def looks_like(records: Records) -> bool:
    """True for records with a ``uuid`` and a message in Gemini's parts."""
    return not records.is_list and any("uuid" in item and _is_said(item) for item in records.items)


def _is_said(record: Record) -> bool:
    message = record.get("message")
    return word(record.get("type")) in _SAID and isinstance(message, dict) and isinstance(message.get("parts"), list)


def read(source: Source, records: Records, report: ImportReport) -> list[Imported]:
    """The line that ends last in the file, then its other branches."""
    listed = [record for _, record in records.lines]
    nodes = {word(r.get("uuid")) or f"line{number}": r for number, r in enumerate(listed)}
    parents = {node: word(record.get("parentUuid")) or None for node, record in nodes.items()}
    place = {node: float(number) for number, node in enumerate(nodes)}

    def said(path: Sequence[str]) -> list[Message]:
        return _messages([(node, nodes[node]) for node in path], report if not found else ImportReport())

    session = next((r["sessionId"] for r in listed if word(r.get("sessionId"))), source.name.rsplit(".", 1)[0])
    first: Record = listed[0] if listed else {}
    key = f"qwen-code:{session}"
    found: list[Imported] = []
    for line in lines(parents, None, place.__getitem__, said):
        fill_times(line.messages, iso(first.get("timestamp")))
        found.append(
            Imported(
                key=line.key(key),
                conversation=key,
                title=None,
                messages=line.messages,
                parent_key=None if line.parent is None else found[line.parent].key,
                shared=line.shared,
                source={name: first[name] for name in ("cwd", "version") if word(first.get(name))},
                created=times.parse(first.get("timestamp")),
            )
        )
    return found


def _messages(path: Sequence[tuple[str, Record]], report: ImportReport) -> list[Message]:
    made: list[Message] = []
    reader = gemini.Contents(report)
    for node, record in path:
        plain: dict[str, Any] = {"id": f"qw_{node}"}
        if (moment := iso(record.get("timestamp"))) is not None:
            plain["timestamp"] = moment
        if not _is_said(record):
            if record.get("subtype") in _SILENT:
                report.skipped[word(record.get("subtype"))] += 1
            else:
                label = word(record.get("subtype")) or word(record.get("type")) or "record without a type"
                payload = record.get("systemPayload", record)
                made += unknown(payload if isinstance(payload, dict) else {"text": payload}, label, plain, report)
            continue
        if record["type"] == "assistant" and word(record.get("model")):
            plain["model"] = record["model"]
        before = len(reader.messages)
        usage = record.get("usageMetadata")
        reader.take({**record["message"], **({"usageMetadata": usage} if isinstance(usage, dict) else {})})
        made += numbered([{**message, **plain} for message in reader.messages[before:]])
    return made


READER = Reader("qwen-code", "Qwen Code", looks_like, read, aliases=("qwen", "qwen_code"), places=(".qwen/projects",))
