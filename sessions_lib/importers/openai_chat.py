"""Chat Completions messages as they are: our JSON export, our own JSONL, lists of messages, fine-tuning examples.

* ``{"forkbook": 1, "id", "meta", "messages"}``, what our JSON export writes: messages and metadata come back equal.
* JSONL with one message a line, our own (metadata beside it is read too) or any other tool's.
* A JSON list of messages, an object with ``messages`` (or ``history`` and the like), or a list of such objects: one
  session each.
* Fine-tuning JSONL: one ``{"messages": […]}`` a line; its other keys are kept in the metadata under ``example``.

Messages are stored without a change: unknown keys, ``null``, missing and empty stay apart, and none gets an id or a
time it did not have. Ids that are only numbers within a conversation are made unique, but for our own files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sessions_lib import messages, times
from sessions_lib.importers.imported import Imported, ImportReport
from sessions_lib.importers.recognise import MESSAGE_LISTS, messages_in
from sessions_lib.importers.source import Records, Source
from sessions_lib.importers.unique_ids import unique
from sessions_lib.messages.content import Message

# Made anew for the new session, or about this folder only.
_OWN_KEYS = ("version", "id", "title", "tags", "imported_from", "forked_from")


def read(source: Source, records: Records, report: ImportReport) -> list[Imported]:
    """The conversations in a file of chat messages, in its order."""
    if records.is_document:
        return _document(records.document, source, report)
    if len(records.lines) == 1 and not messages.is_message(records.first):
        return _document(records.first, source, report)
    if any(_listed(record) is not None for _, record in records.lines[:50]):
        return _many([record for _, record in records.lines], source, report)
    said = _good([record for _, record in records.lines], report)
    meta = source.metadata()
    return [_one(said, meta, None, is_ours="version" in meta)] if said else []


def _document(document: Any, source: Source, report: ImportReport) -> list[Imported]:
    if isinstance(document, dict):
        return _many([document], source, report)
    if not isinstance(document, list):
        return []
    if any(isinstance(item, dict) and _listed(item) is not None for item in document):
        return _many(document, source, report)
    said = _good(document, report)
    return [_one(said, {}, None)] if said else []


def _listed(item: Mapping[str, Any]) -> list[Any] | None:
    if isinstance(item.get("messages"), list):
        return list(item["messages"])
    return messages_in(item)


def _good(items: Sequence[Any], report: ImportReport) -> list[Message]:
    said = [item for item in items if messages.is_message(item)]
    if len(said) < len(items):
        report.skipped["entry that is no message"] += len(items) - len(said)
    return said


def _many(items: Sequence[Any], source: Source, report: ImportReport) -> list[Imported]:
    found = []
    for item in items:
        listed = _listed(item) if isinstance(item, dict) else None
        said = _good(listed, report) if listed is not None else []
        if not said:
            report.skipped["entry without messages"] += 1
            continue
        meta = item.get("meta") if isinstance(item.get("meta"), dict) else {}
        if "forkbook" in item:
            found.append(_one(said, meta, item.get("id"), is_ours=True))
            continue
        rest = {key: value for key, value in item.items() if key not in (*MESSAGE_LISTS, "meta", "title", "id")}
        own = item.get("id") if isinstance(item.get("id"), str) else None
        title = item.get("title") if isinstance(item.get("title"), str) else meta.get("title")
        found.append(_one(said, {**meta, "title": title, **({"example": rest} if rest else {})}, own))
    return found


def _one(said: list[Message], meta: Mapping[str, Any], own: Any, *, is_ours: bool = False) -> Imported:
    own = own if isinstance(own, str) and own else meta.get("id")
    # The first message names the conversation: copies, and copies that grew, start alike and are compared whole.
    first, formerly = messages.ids(unique(said[:1]))[0], messages.ids(said[:1])[0]
    named = f"forkbook:{own}:" if isinstance(own, str) and own else "chat:"
    key = f"{named}{first}"
    forked_from = meta.get("forked_from")
    parent = forked_from.get("session") if isinstance(forked_from, dict) else None
    title = meta.get("title")
    tags = meta.get("tags")
    earlier = meta.get("imported_from")
    return Imported(
        key=key,
        conversation=key,
        title=title if isinstance(title, str) and title.strip() else None,
        tags=tuple(tag for tag in tags if isinstance(tag, str) and tag.strip()) if isinstance(tags, list) else (),
        messages=said if is_ours else unique(said),
        parent_key=f"forkbook:{parent}:{first}" if isinstance(parent, str) and parent else None,
        meta={name: value for name, value in meta.items() if name not in _OWN_KEYS},
        source={
            **({"id": own} if isinstance(own, str) and own else {}),
            **({"forked_from": forked_from} if forked_from is not None else {}),
            **({"earlier": earlier} if earlier is not None else {}),
        },
        created=times.parse(meta.get("created")),
        keeps_as_is=True,
        formerly=f"{named}{formerly}" if formerly != first else "",
    )
