"""What a message says: its parts, its text, its reasoning, and all of it that a search looks at.

``content`` may be a string, ``null``, absent, or a list of parts (OpenAI's kinds, or anything another tool left). Every
function here takes any message and never raises.

Does not shorten or escape: that happens where text is drawn.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Message = dict[str, Any]
_KEY = re.compile(r'(?<=[{,])\s*"(?:[^"\\]|\\.)*"\s*:')  # in JSON that is cut off or damaged


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a content: ``kind`` is ``text`` or what it is called in the file; ``url`` for images only.

    ``label`` is a short placeholder for what is not text: ``image/png, 12 kB``.
    """

    kind: str
    text: str = ""
    url: str = ""
    label: str = ""


def parts(message: Mapping[str, Any]) -> list[Part]:
    """The parts of ``message``'s content, in order; a string is one text part, ``null`` and absent are none."""
    content = message.get("content")
    if content is None:
        return []
    if isinstance(content, list):
        return [_part(item) for item in content]
    return [_part(content)] if content != "" else []


def _part(item: Any) -> Part:
    if isinstance(item, str):
        return Part("text", text=item)
    if not isinstance(item, Mapping):
        return Part("text", text=as_text(item))
    kind = item.get("type") if isinstance(item.get("type"), str) else "unknown"
    if kind in ("text", "input_text", "output_text") and isinstance(item.get("text"), str):
        return Part("text", text=item["text"])
    if kind == "refusal" and isinstance(item.get("refusal"), str):
        return Part("text", text=item["refusal"])
    if kind in ("image_url", "input_image"):
        image = item.get("image_url")
        url = image.get("url") if isinstance(image, Mapping) else image
        url = url if isinstance(url, str) else ""
        return Part("image", url=url, label=_image_label(url))
    if kind == "input_audio" and isinstance(item.get("input_audio"), Mapping):
        audio = item["input_audio"]
        size = len(str(audio.get("data") or "")) * 3 // 4
        return Part("audio", label=f"audio {audio.get('format') or ''}".strip() + f", {size_text(size)}")
    if kind == "file":
        file = item.get("file") if isinstance(item.get("file"), Mapping) else {}
        name = file.get("filename") or file.get("file_id") or "" if isinstance(file, Mapping) else ""
        return Part("file", label=f"file {name}".strip())
    if isinstance(item.get("text"), str):
        return Part("text", text=item["text"])
    return Part(str(kind), label=str(kind))


def _image_label(url: str) -> str:
    if url.startswith("data:"):
        kind = url[5:60].split(";")[0].split(",")[0] or "image"
        return f"{kind}, {size_text(max(0, len(url) - url.find(',') - 1) * 3 // 4)}"
    return "image on another server" if url else "image"


def size_text(size_bytes: int) -> str:
    """``12 kB``: a size for people."""
    if size_bytes < 1000:
        return f"{size_bytes} B"
    if size_bytes < 1_000_000:
        return f"{size_bytes / 1000:.0f} kB"
    return f"{size_bytes / 1_000_000:.1f} MB"


def as_text(value: Any) -> str:
    """``value`` as text: a string as it is, anything else as JSON, ``null`` as no text."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):  # nested deeper than Python goes, or a number of thousands of digits
        return "[cannot be shown]"


def text(message: Mapping[str, Any]) -> str:
    """What ``message`` says: its text parts joined by newlines, else its refusal; ``""`` if neither."""
    content = message.get("content")
    if isinstance(content, str) and content:
        return content
    said = "\n".join(part.text for part in parts(message) if part.kind == "text")
    return said or as_text(message.get("refusal"))


def reasoning(message: Mapping[str, Any]) -> str:
    """The model's reasoning where the provider sent it (``reasoning_content`` or ``reasoning``), else ``""``."""
    for key in ("reasoning_content", "reasoning"):
        if isinstance(message.get(key), str) and message[key]:
            return str(message[key])
    return ""


def searchable(message: Mapping[str, Any]) -> str:
    """All that was said in ``message``: text, refusal, reasoning, the names of tools and the values of their arguments.

    JSON keys, those of arguments too, roles, ids and base64 are not in it.
    """
    pieces = [text(message), reasoning(message)]
    if (refusal := as_text(message.get("refusal"))) and refusal != pieces[0]:
        pieces.append(refusal)
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function", call.get("custom")) if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            arguments = function.get("arguments", function.get("input"))
            pieces += [as_text(function.get("name")), _arguments_text(arguments)]
    return "\n".join(piece for piece in pieces if piece)


def _arguments_text(arguments: Any) -> str:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return _KEY.sub(" ", str(arguments))
    return "\n".join(_leaves(arguments))


def _leaves(value: Any) -> list[str]:
    """The values of nested arguments as text, without iterating deeper than Python can."""
    found: list[str] = []
    open_values = [value]
    while open_values:
        item = open_values.pop()
        if isinstance(item, Mapping):
            open_values += reversed(list(item.values()))
        elif isinstance(item, list):
            open_values += item[::-1]
        elif item is not None:
            found.append(as_text(item))
    return found
