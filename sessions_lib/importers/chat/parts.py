"""Pieces of other libraries' messages as ours: files, links, a call's arguments, a result.

Does not know whose messages they are.
"""

from __future__ import annotations

from typing import Any

from sessions_lib.messages import content, encoding


def file_part(url: str, kind: str, name: str = "") -> dict[str, Any]:
    """A file as a part: a picture, a file whose bytes are there, or a link, which is text."""
    if kind.startswith("image/") and url:
        return {"type": "image_url", "image_url": {"url": url}}
    if url.startswith("data:"):
        return {"type": "file", "file": {"filename": name or kind or "file", "file_data": url}}
    return {"type": "file_link", "text": " ".join(filter(None, ("File:", name or kind, url))), "url": url}


def data_url(kind: str, data: Any) -> str:
    """``data`` in base64 as a URL; ``""`` if it is no text."""
    return f"data:{kind or 'application/octet-stream'};base64,{data}" if isinstance(data, str) and data else ""


def joined(found: list[Any]) -> Any:
    """The content of a message with these parts: a string where there is only text, ``None`` for none."""
    if all(isinstance(part, str) for part in found):
        return "\n\n".join(filter(None, found)) or None
    return [{"type": "text", "text": part} if isinstance(part, str) else part for part in found if part != ""]


def arguments(given: Any) -> str:
    """What a call was given as the JSON text that a call holds."""
    return given if isinstance(given, str) and given else encoding.encode({} if given in (None, "") else given).decode()


def result(given: Any) -> str:
    """What a tool returned, as text."""
    return content.as_text(given)
