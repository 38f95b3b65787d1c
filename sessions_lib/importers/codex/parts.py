"""The parts of Codex's items: texts, images, outputs, counts, and what is injected. Used by ``items``.

Pure functions.
"""

from __future__ import annotations

import json
import re
from typing import Any

from sessions_lib.messages import content
from sessions_lib.messages.content import Message

Record = dict[str, Any]

INJECTED = re.compile(
    r"\s*<(environment_context|user_instructions|permissions instructions|collaboration_mode|turn_aborted|skill|skills"
    r"|skills_instructions|apps_instructions|plugins_instructions|subagent_notification|user_shell_command"
    r"|model_switch|personality_spec|INSTRUCTIONS)(?:\s[^>]*)?>.*</\1>\s*\Z",
    re.DOTALL,
)
INSTRUCTIONS = re.compile(
    r"\s*# AGENTS\.md instructions for .*</INSTRUCTIONS>\s*(?:<environment_context>.*)?\Z", re.DOTALL
)
_IMAGE_TAG = re.compile(r"\s*</?image(?:\s[^>]*)?>\s*\Z")
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


def text_of(parts: list[Any]) -> str:
    """The texts of an item's content, without the tags that Codex puts around images."""
    texts = [content.as_text(part.get("text")) for part in parts if isinstance(part, dict) and "text" in part]
    has_images = any(isinstance(part, dict) and part.get("type") == "input_image" for part in parts)
    return "\n".join(text for text in texts if not (has_images and _IMAGE_TAG.match(text)))


def image(part: Record) -> Record:
    """An image of an item as a part of a message."""
    return {"type": "image_url", "image_url": {"url": content.as_text(part.get("image_url"))}}


def listed(value: Any) -> list[Any]:
    """``value`` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def numbers(value: Any) -> dict[str, int]:
    """The token counts in ``value``; empty if there are none."""
    if not isinstance(value, dict):
        return {}
    return {k: value[k] for k in COUNTED if isinstance(value.get(k), int) and not isinstance(value[k], bool)}


def output_of(output: Any) -> tuple[Any, bool]:
    """A result's content and whether it failed: a string, ``{"content", "success"}``, or a list of parts."""
    is_error = False
    if isinstance(output, dict):
        is_error = output.get("success") is False
        output = output.get("content", output.get("content_items", output))
    if isinstance(output, list):
        return _joined(output), is_error
    text = content.as_text(output)
    if text.startswith("{") and '"exit_code"' in text:
        try:
            told = json.loads(text)
        except (ValueError, RecursionError):
            return text, is_error
        metadata = told.get("metadata") if isinstance(told, dict) else None
        code = metadata.get("exit_code") if isinstance(metadata, dict) else None
        is_error = is_error or (isinstance(code, int) and code != 0)
    return text, is_error


def _joined(parts: list[Any]) -> Any:
    """A result in parts: its texts joined, or parts of a message where there is an image."""
    objects = [part if isinstance(part, dict) else {"text": content.as_text(part)} for part in parts]
    if not any(part.get("type") == "input_image" for part in objects):
        return "\n".join(content.as_text(part.get("text", part)) for part in objects)
    return [
        image(part)
        if part.get("type") == "input_image"
        else {"type": "text", "text": content.as_text(part.get("text"))}
        for part in objects
    ]
