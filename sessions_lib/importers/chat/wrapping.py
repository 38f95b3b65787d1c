"""How files hold conversations: the list of messages in an object, in which dialect they are, whose rows they are.

Does not convert messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sessions_lib.importers.chat import ai_sdk, anthropic, gemini
from sessions_lib.importers.imported import ImportReport
from sessions_lib.messages.content import Message

MESSAGE_LISTS = ("messages", "traj", "conversation", "history", "trajectory", "dialog", "contents")
SYSTEM = ("system", "systemInstruction", "system_instruction")
# Another library's messages, by the name of the format; what is none of these are OpenAI's.
DIALECTS: dict[str, tuple[Callable[[Sequence[Any]], bool], Callable[[Sequence[Any], ImportReport], list[Message]]]] = {
    "ai-sdk": (ai_sdk.looks_like, ai_sdk.convert),
    "gemini-api": (gemini.looks_like, gemini.convert),
    "anthropic-api": (anthropic.looks_like, anthropic.convert),
}


def dialect_of(listed: Sequence[Any]) -> str:
    """The format of these messages, ``""`` for OpenAI's own."""
    return next((name for name, (looks_like, _) in DIALECTS.items() if looks_like(listed)), "")


def messages_in(value: Mapping[str, Any]) -> list[Any] | None:
    """The list of messages in an object, under any of the names that tools give it; ``None`` if there is none."""
    return next((list(value[key]) for key in MESSAGE_LISTS if _has_messages(value.get(key))), None)


def _has_messages(value: Any) -> bool:
    return isinstance(value, list) and any(is_message(item) or _is_content(item) for item in value)


def is_message(value: Any) -> bool:
    """True for an object with a role that is a name."""
    return isinstance(value, Mapping) and isinstance(value.get("role"), str) and value["role"] != ""


def _is_content(value: Any) -> bool:
    """True for one of Gemini's contents, which need no role."""
    return isinstance(value, Mapping) and isinstance(value.get("parts"), list) and gemini.looks_like([value])


def system_in(value: Mapping[str, Any]) -> str:
    """The system prompt that stands beside the messages of a request, ``""`` if there is none."""
    for key in SYSTEM:
        given = value.get(key)
        if isinstance(given, str | list | Mapping):
            text = anthropic.text_of(given) if key == "system" and not isinstance(given, Mapping) else ""
            text = text or gemini.text_of(given)
            if text.strip():
                return text
    return ""


def by_chat(items: Sequence[Any]) -> list[list[Any]]:
    """Rows of a table of messages, cut into conversations by their ``chatId``; one list where they name none."""
    chats: dict[str, list[Any]] = {}
    for item in items:
        named = item.get("chatId", item.get("chat_id")) if isinstance(item, Mapping) else None
        chats.setdefault(named if isinstance(named, str) else "", []).append(item)
    return list(chats.values())
