"""LibreChat: an exported conversation, its messages in a list by ``parentMessageId`` or nested in ``children``.

The line that ends last is the session, the others are forks. An answer is ``text``, or ``content`` with parts: text,
thoughts (``think``), calls with what they gave. There are no tokens.

Message ids are ``lc_`` and the message's own id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessions_lib import times
from sessions_lib.importers.imported import Imported, ImportReport, fill_times, iso, texts_in, word
from sessions_lib.importers.reader import Reader
from sessions_lib.importers.source import Records, Source
from sessions_lib.importers.steps import Steps, attached, joined
from sessions_lib.importers.trees import lines
from sessions_lib.messages import content
from sessions_lib.messages.content import Message

_ROOT = "00000000-0000-0000-0000-000000000000"


def looks_like(records: Records) -> bool:
    """True for a conversation of messages that are named by ``messageId``."""
    return any(_is_one(item) for item in (records.items if records.is_list else [records.whole]))


def _is_one(item: Mapping[str, Any]) -> bool:
    listed = item.get("messages")
    if not isinstance(listed, list):
        return False
    return "conversationId" in item or any(isinstance(m, Mapping) and "messageId" in m for m in listed)


def read(source: Source, records: Records, report: ImportReport) -> list[Imported]:
    """Every conversation: the line that ends last, then the others."""
    listed = records.document if records.is_list else [records.whole]
    return [one for item in listed if isinstance(item, Mapping) and _is_one(item) for one in _lines(item, report)]


def _flat(listed: list[Any]) -> list[Mapping[str, Any]]:
    """All messages, however deep they stand, a message before its children."""
    found: list[Mapping[str, Any]] = []
    waiting: list[tuple[Any, str | None]] = [(message, None) for message in reversed(listed)]
    while waiting:
        message, parent = waiting.pop()
        if not isinstance(message, Mapping):
            continue
        found.append({**message, "parentMessageId": parent} if parent is not None else message)
        children = message.get("children")
        if isinstance(children, list):
            waiting += [(child, word(message.get("messageId")) or None) for child in reversed(children)]
    return found


def _lines(item: Mapping[str, Any], report: ImportReport) -> list[Imported]:
    messages = _flat(item["messages"])
    nodes: dict[str, Mapping[str, Any]] = {}
    parents: dict[str, str | None] = {}
    for number, message in enumerate(messages):
        node = word(message.get("messageId")) or f"{word(item.get('conversationId'))}:{number}"
        named = word(message.get("parentMessageId"))
        nodes[node] = message
        parents[node] = named if named and named != _ROOT else None
    told = item.get("options")
    options: Mapping[str, Any] = told if isinstance(told, Mapping) else {}
    model = word(options.get("model"))
    made = {node: _messages(f"lc_{node}", message, model, report) for node, message in nodes.items()}

    def when(node: str) -> float:
        moment = times.parse(nodes[node].get("createdAt"))
        return moment.timestamp() if moment else 0.0

    own = word(item.get("conversationId")) or next(iter(nodes), "")
    key, title, system = f"librechat:{own}", item.get("title"), word(options.get("promptPrefix"))
    began = next((m["createdAt"] for m in messages if m.get("createdAt")), None)
    found: list[Imported] = []
    for line in lines(parents, None, when, lambda path: [m for node in path for m in made[node]]):
        fill_times(line.messages, None)
        found.append(
            Imported(
                key=line.key(key),
                conversation=key,
                title=title if isinstance(title, str) and title.strip() else None,
                messages=line.messages,
                parent_key=None if line.parent is None else found[line.parent].key,
                shared=line.shared,
                meta={"system": system} if system.strip() else {},
                source={name: item[name] for name in ("endpoint",) if word(item.get(name))},
                created=times.parse(began),
            )
        )
    if not found:
        report.skipped["conversation without messages"] += 1
    return found


def _messages(message_id: str, message: Mapping[str, Any], model: str, report: ImportReport) -> list[Message]:
    plain: dict[str, Any] = {"id": message_id}
    if (moment := iso(message.get("createdAt"))) is not None:
        plain["timestamp"] = moment
    parts = message.get("content")
    listed = [part for part in parts if isinstance(part, Mapping)] if isinstance(parts, list) else []
    if not listed and word(message.get("text")).strip():
        listed = [{"type": "text", "text": message["text"]}]
    by_user = message.get("isCreatedByUser")
    if by_user is True or (by_user is None and word(message.get("sender")).lower() == "user"):
        said = [_text(part) for part in listed]
        files = message.get("files")
        for file in files if isinstance(files, list) else ():
            if isinstance(file, Mapping):
                said.append(attached(file.get("filename"), file.get("text")))
        said = [part for part in said if part]
        return [{"role": "user", "content": joined(said), **plain}] if said else []
    if named := word(message.get("model")) or model:
        plain["model"] = named
    steps = Steps(plain)
    for number, part in enumerate(listed):
        _take(steps, part, f"{message_id}:call{number}", report)
    if message.get("unfinished") is True:
        steps.tell(interrupted=True)
    if message.get("error") is True:
        steps.tell(source={"kind": "error"})
    return steps.messages()


def _text(part: Mapping[str, Any]) -> str:
    said = part.get(word(part.get("type")) or "text")
    said = said.get("value") if isinstance(said, Mapping) else said
    return said if isinstance(said, str) else "\n".join(texts_in(part))


def _take(steps: Steps, part: Mapping[str, Any], spare_id: str, report: ImportReport) -> None:
    kind = word(part.get("type"))
    call = part.get("tool_call")
    if kind == "think":
        steps.think(_text(part))
    elif kind == "tool_call" and isinstance(call, Mapping):
        inner = call.get("function")
        told: Mapping[str, Any] = {**inner, **call} if isinstance(inner, Mapping) else call
        call_id, name = word(call.get("id")) or spare_id, content.as_text(told.get("name"))
        steps.call(call_id, name, told.get("args", told.get("arguments")))
        if (output := told.get("output")) is not None:
            steps.result(call_id, content.as_text(output), name)
    elif kind in ("text", "error", ""):
        steps.say(_text(part))
    elif kind in ("image_file", "image_url", "agent_update"):
        steps.say(dict(part) if kind != "agent_update" else "")
    elif texts := texts_in(part):
        report.unknown[kind] += 1
        steps.unknown(kind, texts)
    else:
        report.skipped[f"part: {kind}"] += 1


READER = Reader("librechat", "LibreChat export", looks_like, read)
