"""OpenAI's Responses: a list of items, as programs keep it, or one response with what it was asked (``input``).

Items are kept whole beside the messages they make (``messages.items``), so that reasoning survives.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessions_lib import messages, times
from sessions_lib.importers.imported import Imported, ImportReport, fill_times, iso, set_usage, word
from sessions_lib.importers.reader import Reader
from sessions_lib.importers.source import Records, Source
from sessions_lib.importers.unique_ids import unique
from sessions_lib.messages import items
from sessions_lib.messages.content import Message

_PARTS = ("input_text", "output_text", "input_image", "input_file")


def looks_like(records: Records) -> bool:
    """True for a list or lines of items that are no chat messages, or for a response."""
    if records.whole:
        return records.whole.get("object") == "response" and isinstance(records.whole.get("output"), list)
    return any(_is_item(item) for item in records.items)


def _is_item(item: Mapping[str, Any]) -> bool:
    kind = word(item.get("type"))
    if "role" not in item:
        return kind in ("function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output")
    parts = item.get("content")
    return isinstance(parts, list) and any(isinstance(p, Mapping) and p.get("type") in _PARTS for p in parts)


def read(source: Source, records: Records, report: ImportReport) -> list[Imported]:
    """The conversation that the items are."""
    whole = records.whole
    if whole:
        asked = whole.get("input")
        asked = [{"role": "user", "content": asked}] if isinstance(asked, str) and asked else asked
        listed = [*(asked if isinstance(asked, list) else ()), *whole["output"]]
    else:
        listed = records.document if records.is_list else [record for _, record in records.lines]
    found = conversation(listed, report)
    if not found:
        return []
    moment = whole.get("created_at")
    if whole:
        last = found[-1]
        if last["role"] == "assistant":
            if word(whole.get("model")):
                last["model"] = whole["model"]
            set_usage(last, whole.get("usage"))
        fill_times(found, iso(moment))
    system = whole.get("instructions")
    found = unique(found)
    key = f"responses:{word(whole.get('id')) or messages.ids(found[:1])[0]}"
    return [
        Imported(
            key=key,
            conversation=key,
            title=None,
            messages=found,
            meta={"system": system} if isinstance(system, str) and system.strip() else {},
            created=times.parse(moment),
            keeps_as_is=True,
        )
    ]


def conversation(listed: list[Any], report: ImportReport) -> list[Message]:
    """The messages of ``listed``, with the names of the tools on their results."""
    known = [item for item in listed if isinstance(item, Mapping)]
    if len(known) < len(listed):
        report.skipped["entry that is no item"] += len(listed) - len(known)
    found = items.to_messages(known)
    names: dict[str, str] = {}
    for message in found:
        for call in message.get("tool_calls", ()):
            names[call["id"]] = call["function"]["name"]
        if message["role"] == "tool" and message["tool_call_id"] in names:
            message["name"] = names[message["tool_call_id"]]
    return found


READER = Reader("responses", "OpenAI Responses items", looks_like, read, aliases=("openai-responses",))
