"""What was said: messages, their content, tool calls and usage; pure functions over the Chat Completions dict."""

from __future__ import annotations

from sessions_lib.messages.identity import (
    chained,
    content_key,
    has_id,
    identities,
    identity,
    ids,
    last_id,
    made_of,
    next_id,
    said,
)
from sessions_lib.messages.message import (
    awaits_answer,
    clean,
    effective_times,
    first_prompt,
    is_message,
    new_id,
    note,
    stamped,
    turn_count,
    turns,
)
from sessions_lib.messages.request import for_request

__all__ = [
    "awaits_answer",
    "chained",
    "clean",
    "content_key",
    "effective_times",
    "first_prompt",
    "for_request",
    "has_id",
    "identities",
    "identity",
    "ids",
    "is_message",
    "last_id",
    "made_of",
    "new_id",
    "next_id",
    "note",
    "said",
    "stamped",
    "turn_count",
    "turns",
]
