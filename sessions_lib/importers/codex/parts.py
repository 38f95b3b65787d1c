"""The parts of Codex's items: texts, images, counts.

Pure functions.
"""

from __future__ import annotations

import re
from typing import Any

from sessions_lib.messages import content
from sessions_lib.messages.content import Message

Record = dict[str, Any]

_IMAGE_TAG = re.compile(r"\s*</?image(?:\s[^>]*)?>\s*\Z")
_IMAGES = ("input_image", "image")
COUNTED = (
    "input_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "output_tokens",
    "reasoning_output_tokens",
    "total_tokens",
)


def first_said(message: Message) -> list[Any]:
    """What identifies a message from its first line on: a growing answer, or a view with images, keeps its id."""
    if message["role"] == "tool":
        return [message["tool_call_id"], content.text(message)]
    text = content.text(message)
    if text or message["role"] == "user":
        return [text]
    calls = message.get("tool_calls")
    return [calls[0]["id"], calls[0]["function"]] if calls else [message.get("reasoning_content")]


def texts_of(parts: list[Any]) -> list[str]:
    """The texts of an item's content, one a part, without the tags that Codex puts around images."""
    texts = [content.as_text(part.get("text")) for part in parts if isinstance(part, dict) and "text" in part]
    has_images = any(isinstance(part, dict) and part.get("type") in _IMAGES for part in parts)
    return [text for text in texts if text and not (has_images and _IMAGE_TAG.match(text))]


def images_of(parts: list[Any]) -> list[Record]:
    """The images of an item's content that are in the file, as parts of a message."""
    return [image(part) for part in parts if isinstance(part, dict) and part.get("type") in _IMAGES]


def image(part: Record) -> Record:
    """An image of an item as a part of a message."""
    return {"type": "image_url", "image_url": {"url": content.as_text(part.get("image_url") or part.get("url"))}}


def listed(value: Any) -> list[Any]:
    """``value`` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def parts_of(value: Any) -> list[Any]:
    """The parts of a content that may be one text."""
    return [{"text": value}] if isinstance(value, str) else listed(value)


def numbers(value: Any) -> dict[str, int]:
    """The token counts in ``value``; empty if there are none."""
    if not isinstance(value, dict):
        return {}
    return {k: value[k] for k in COUNTED if isinstance(value.get(k), int) and not isinstance(value[k], bool)}
