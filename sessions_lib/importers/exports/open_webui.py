"""Open WebUI: an exported chat, or a list of them: ``chat.history.messages``, a tree by ``parentId``.

The line to ``currentId`` is the session, the others are forks (several models that were asked at once, too). An
answer's steps are taken from ``output`` where it has them, else from the ``<details>`` in its text, never from both.

Message ids are ``ow_``, a short hash of the chat's id and the message's own id.
"""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Mapping
from typing import Any

from sessions_lib import times
from sessions_lib.importers.chat.parts import file_part
from sessions_lib.importers.imported import Imported, ImportReport, fill_times, iso, objects, set_usage, word
from sessions_lib.importers.reader import Reader
from sessions_lib.importers.source import Records, Source
from sessions_lib.importers.steps import Steps, attached, joined
from sessions_lib.importers.trees import lines
from sessions_lib.messages import content, encoding, items, usage
from sessions_lib.messages.content import Message

_DETAILS = re.compile(r"<details\s+type=\"(\w+)\"([^>]*)>(.*?)</details>\s*", re.DOTALL)
_ATTRIBUTE = re.compile(r"(\w+)=\"([^\"]*)\"")
_SUMMARY = re.compile(r"<summary>.*?</summary>\s*", re.DOTALL)


def looks_like(records: Records) -> bool:
    """True for chats with a tree of messages."""
    listed = records.items if records.is_list else [records.whole]
    return any(_tree(item) is not None for item in listed)


def _chat(item: Mapping[str, Any]) -> Mapping[str, Any]:
    chat = item.get("chat")
    return chat if isinstance(chat, Mapping) else item


def _tree(item: Mapping[str, Any]) -> Mapping[str, Any] | None:
    history = _chat(item).get("history")
    tree = history.get("messages") if isinstance(history, Mapping) else None
    return tree if isinstance(tree, Mapping) else None


def read(source: Source, records: Records, report: ImportReport) -> list[Imported]:
    """Every chat: the line that is shown, then the others."""
    listed = records.document if records.is_list else [records.whole]
    found: list[Imported] = []
    for item in listed:
        if not isinstance(item, Mapping) or _tree(item) is None:
            report.skipped["entry without messages"] += 1
            continue
        made = _lines(item, report)
        if not made:
            report.skipped["chat without messages"] += 1
        found += made
    return found


def _lines(item: Mapping[str, Any], report: ImportReport) -> list[Imported]:
    chat = _chat(item)
    nodes = {key: node for key, node in (_tree(item) or {}).items() if isinstance(node, Mapping)}
    first = next(iter(nodes.items()), ("", {}))
    made_of = hashlib.blake2b(encoding.encode([first[0], first[1].get("content")]), digest_size=8).hexdigest()
    own = word(item.get("id")) or word(chat.get("id")) or made_of
    key, prefix = f"open-webui:{own}", hashlib.blake2b(own.encode("utf-8", "replace"), digest_size=4).hexdigest()
    made = {node: _messages(f"ow_{prefix}_{node}", message, report) for node, message in nodes.items()}
    parents = {node: word(message.get("parentId")) or None for node, message in nodes.items()}
    history = chat["history"]

    def when(node: str) -> float:
        moment = times.parse(nodes[node].get("timestamp"))
        return moment.timestamp() if moment else 0.0

    title = item.get("title") or chat.get("title")
    began = item.get("created_at") or chat.get("timestamp")
    params = chat.get("params")
    system = word(chat.get("system")) or (word(params.get("system")) if isinstance(params, Mapping) else "")
    told = item.get("meta")
    tags = told.get("tags") if isinstance(told, Mapping) else None
    found: list[Imported] = []
    current = word(history.get("currentId")) or None
    for line in lines(parents, current, when, lambda path: [m for node in path for m in made[node]]):
        fill_times(line.messages, iso(began))
        found.append(
            Imported(
                key=line.key(key),
                conversation=key,
                title=title if isinstance(title, str) and title.strip() else None,
                tags=tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else (),
                messages=line.messages,
                parent_key=None if line.parent is None else found[line.parent].key,
                shared=line.shared,
                meta={"system": system} if system.strip() else {},
                created=times.parse(began),
            )
        )
    return found


def _messages(message_id: str, message: Mapping[str, Any], report: ImportReport) -> list[Message]:
    plain: dict[str, Any] = {"id": message_id}
    if (moment := iso(message.get("timestamp"))) is not None:
        plain["timestamp"] = moment
    role = word(message.get("role"))
    text = message.get("content")
    if role == "assistant":
        return _answer(plain, message, report)
    parts: list[Any] = [text] if isinstance(text, str) and text.strip() else []
    if isinstance(text, list):
        parts = [part["text"] if isinstance(part, dict) and part.get("type") == "text" else part for part in text]
    parts += [_file(file) for file in objects(message.get("files"))]
    if not parts:
        report.skipped[f"empty {role or 'message'}"] += 1
        return []
    return [{"role": role if role in ("user", "system") else "system", "content": joined(parts), **plain}]


def _file(file: Mapping[str, Any]) -> Any:
    inner = file.get("file")
    data = inner.get("data") if isinstance(inner, Mapping) else None
    named = file.get("name") or (inner.get("filename") if isinstance(inner, Mapping) else None)
    if file.get("type") == "image" and word(file.get("url")):
        return file_part(file["url"], "image/png")
    return attached(named or file.get("url"), data.get("content") if isinstance(data, Mapping) else None)


def _answer(plain: dict[str, Any], message: Mapping[str, Any], report: ImportReport) -> list[Message]:
    if model := word(message.get("model")):
        plain["model"] = model
    steps = Steps(plain)
    listed = message.get("output")
    if isinstance(listed, list) and any(isinstance(item, Mapping) for item in listed):
        _take_items(steps, [item for item in listed if isinstance(item, Mapping)])
    else:
        _take_text(steps, content.as_text(message.get("content")))
    error = message.get("error")
    if said := error.get("content") if isinstance(error, Mapping) else error:
        steps.say(content.as_text(said))
        steps.tell(source={"error": error})
    if message.get("done") is False:
        steps.tell(interrupted=True)
    made = steps.messages()
    if not made:
        report.skipped["empty answer"] += 1
        return []
    reported = message.get("usage") or message.get("info")
    counted = usage.parse(reported)
    if counted is not None and counted.total:  # nothing but zeros: it was not counted
        set_usage(next(one for one in reversed(made) if one["role"] == "assistant"), reported)
    return made


def _take_items(steps: Steps, listed: list[Mapping[str, Any]]) -> None:
    names: dict[str, str] = {}
    for one in items.to_messages(listed):
        if one["role"] == "tool":
            steps.result(one["tool_call_id"], one["content"], names.get(one["tool_call_id"], ""))
            continue
        steps.think(content.reasoning(one))
        for item in one[items.ITEMS]:
            if item.get("type") == "reasoning" and not item.get("summary"):
                steps.think(content.text({"content": item.get("content")}))
        said = "\n\n".join(content.text(item) for item in one[items.ITEMS] if item.get("type") != "reasoning")
        steps.say(said)
        for call in one.get("tool_calls", ()):
            names[call["id"]] = call["function"]["name"]
            steps.call(call["id"], call["function"]["name"], call["function"]["arguments"])


def _take_text(steps: Steps, text: str) -> None:
    """A text with its thoughts and calls folded into ``<details>``."""
    at = 0
    for number, found in enumerate(_DETAILS.finditer(text)):
        steps.say(text[at : found.start()].strip())
        at = found.end()
        told = {name: html.unescape(value) for name, value in _ATTRIBUTE.findall(found[2])}
        inside = _SUMMARY.sub("", found[3]).strip()
        if found[1] == "reasoning":
            steps.think("\n".join(line.removeprefix(">").removeprefix(" ") for line in inside.split("\n")))
        elif found[1] == "tool_calls":
            call_id = told.get("id") or f"call{number}"
            steps.call(call_id, told.get("name", ""), _value(told.get("arguments", "")))
            if told.get("done") != "false":
                steps.result(call_id, content.as_text(_value(told.get("result", "") or inside)), told.get("name", ""))
        else:
            steps.say(inside)
    steps.say(text[at:].strip() if at else text)


def _value(text: str) -> Any:
    """What stands in an attribute: a string that holds JSON is that string."""
    try:
        value = encoding.decode(text.encode())
    except ValueError:
        return text
    return value if isinstance(value, str) else text


READER = Reader("open-webui", "Open WebUI chat", looks_like, read, aliases=("openwebui", "open_webui"))
