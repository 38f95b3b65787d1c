"""Chat messages: our JSON export, our own JSONL, lists of messages, requests, fine-tuning examples, others' dialects.

* ``{"forkbook": 1, "id", "meta", "messages"}``, what our JSON export writes: messages and metadata come back equal.
* JSONL with one message a line, our own (metadata beside it is read too) or any other tool's.
* A JSON list of messages, an object with ``messages`` (or ``history`` and the like), or a list of such objects: one
  session each. Rows with a ``chatId`` are one session a chat.
* Fine-tuning JSONL: one ``{"messages": […]}`` a line; its other keys are kept in the metadata under ``example``.
* The AI SDK's messages, Anthropic's and Gemini's become chat messages (``ai_sdk``, ``anthropic``, ``gemini``). The
  system prompt beside the messages of a request becomes the session's.

Chat messages are stored without a change: unknown keys, ``null``, missing and empty stay apart, and none gets an id or
a time it did not have. Ids that are only numbers within a conversation are made unique, but for our own files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sessions_lib import messages, times
from sessions_lib.importers.chat.wrapping import (
    DIALECTS,
    MESSAGE_LISTS,
    SYSTEM,
    by_chat,
    dialect_of,
    is_message,
    messages_in,
    system_in,
)
from sessions_lib.importers.imported import Imported, ImportReport
from sessions_lib.importers.reader import Reader
from sessions_lib.importers.source import Records, Source
from sessions_lib.importers.unique_ids import unique
from sessions_lib.messages.content import Message

# Made anew for the new session, or about this folder only.
_OWN_KEYS = ("version", "id", "title", "tags", "imported_from", "forked_from")


def read(source: Source, records: Records, report: ImportReport) -> list[Imported]:
    """The conversations in a file of chat messages, in its order."""
    if records.is_document:
        return _document(records.document, report)
    if len(records.lines) == 1 and not messages.is_message(records.first):
        return _document(records.first, report)
    lines = [record for _, record in records.lines]
    if any(_listed(record) is not None for record in lines[:50]):
        return _many(lines, report)
    return _chats(lines, source.metadata(), report)


def _document(document: Any, report: ImportReport) -> list[Imported]:
    if isinstance(document, dict):
        return _many([document], report)
    if not isinstance(document, list):
        return []
    if any(isinstance(item, dict) and _listed(item) is not None for item in document):
        return _many(document, report)
    return _chats(document, {}, report)


def _chats(rows: Sequence[Any], meta: Mapping[str, Any], report: ImportReport) -> list[Imported]:
    """The conversation that is a list of messages, or the several whose rows lie in one table."""
    chats = [_said(chat, report) for chat in by_chat(rows)]
    return [_one(said, meta, None, is_ours="version" in meta) for said in chats if said]


def _listed(item: Mapping[str, Any]) -> list[Any] | None:
    if isinstance(item.get("messages"), list):
        return list(item["messages"])
    return messages_in(item)


def _said(items: Sequence[Any], report: ImportReport) -> list[Message]:
    """Chat messages as they are, those of other libraries as chat messages."""
    if (dialect := dialect_of(items)) != "":
        return DIALECTS[dialect][1](items, report)
    said = [item for item in items if messages.is_message(item)]
    if len(said) < len(items):
        report.skipped["entry that is no message"] += len(items) - len(said)
    return said


def _many(items: Sequence[Any], report: ImportReport) -> list[Imported]:
    found = []
    for item in items:
        listed = _listed(item) if isinstance(item, dict) else None
        is_ours = isinstance(item, dict) and "forkbook" in item
        said = [] if listed is None else [*filter(messages.is_message, listed)] if is_ours else _said(listed, report)
        if not said:
            report.skipped["entry without messages"] += 1
            continue
        meta = item.get("meta") if isinstance(item.get("meta"), dict) else {}
        if is_ours:
            found.append(_one(said, meta, item.get("id"), is_ours=True))
            continue
        system = system_in(item)
        named = (*MESSAGE_LISTS, "meta", "title", "id", *(SYSTEM if system else ()))
        rest = {key: value for key, value in item.items() if key not in named}
        own = item.get("id") if isinstance(item.get("id"), str) else None
        title = item.get("title") if isinstance(item.get("title"), str) else meta.get("title")
        told = {**({"system": system} if system else {}), **meta, "title": title}
        found.append(_one(said, {**told, **({"example": rest} if rest else {})}, own))
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


# ---------------------------------------------------------------- recognition

FAMILY = "chat"


def _conversations(records: Records) -> Sequence[Sequence[Any]]:
    """The lists of messages in a file; its own objects are one where they hold none."""
    found = [listed for item in records.items if (listed := messages_in(item)) is not None]
    return found or [list(records.items)]


def are_lines(records: Records) -> bool:
    """True for messages, one a line."""
    return (
        not records.is_list
        and any(map(is_message, records.items))
        and not any(messages_in(item) is not None for item in records.items)
    )


def _is_export(records: Records) -> bool:
    return "forkbook" in records.whole and isinstance(records.whole.get("messages"), list)


def _are_ours(records: Records) -> bool:
    return are_lines(records) and any({"role", "id", "timestamp"} <= item.keys() for item in records.items)


def _are_tuning(records: Records) -> bool:
    return records.is_lines and any(messages_in(item) is not None for item in records.items)


def _are_chats(records: Records) -> bool:
    return any(is_message(message) for listed in _conversations(records) for message in listed)


def _in(dialect: str) -> Callable[[Records], bool]:
    """A test for messages in ``dialect``."""
    return lambda records: any(dialect_of(listed) == dialect for listed in _conversations(records))


def _are_anthropics(records: Records) -> bool:
    return not are_lines(records) and _in("anthropic-api")(records)


_FINETUNE = ("finetune", "fine-tuning")
EXPORT = Reader("forkbook", "Forkbook", _is_export, read, ("json",), family=FAMILY)
LINES = Reader("forkbook", "Forkbook", _are_ours, read, ("json",), family=FAMILY)
AI_SDK = Reader("ai-sdk", "AI SDK messages", _in("ai-sdk"), read, ("aisdk", "ai_sdk"), family=FAMILY)
GEMINI = Reader("gemini-api", "Gemini API contents", _in("gemini-api"), read, family=FAMILY)
ANTHROPIC = Reader("anthropic-api", "Anthropic API messages", _are_anthropics, read, ("anthropic",), family=FAMILY)
FINETUNE = Reader("openai-finetune", "OpenAI fine-tuning examples", _are_tuning, read, _FINETUNE, family=FAMILY)
OPENAI = Reader(
    "openai-chat", "OpenAI Chat messages", _are_chats, read, ("openai", "chat", "openai_chat"), family=FAMILY
)
