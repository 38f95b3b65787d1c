"""Files that are known and cannot be imported, each with what importing it would need; and those that are none.

Does not read a conversation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessions_lib.importers.chat.wrapping import is_message, messages_in
from sessions_lib.importers.imported import word
from sessions_lib.importers.reader import Reader, known
from sessions_lib.importers.source import Records


def _is_gemini_log(records: Records) -> bool:
    return records.is_list and any(isinstance(m.get("messageId"), int) and "sessionId" in m for m in records.items)


def _is_sharegpt(records: Records) -> bool:
    if records.is_lines:
        return any("conversations" in item for item in records.items)
    return any(isinstance(item.get("conversations"), list) for item in records.items)


def _is_chatgpt_rest(records: Records) -> bool:
    if records.is_list:
        return any("conversation_id" in m and ("is_anonymous" in m or "rating" in m) for m in records.items)
    whole = records.whole
    return bool({"user_settings", "chatgpt_plus_user", "export_files"} & whole.keys()) or _names_assets(whole)


def _names_assets(value: Mapping[str, Any]) -> bool:
    names = list(value)[:20]
    return bool(names) and all(name.startswith(("file-", "file_")) and isinstance(value[name], str) for name in names)


def _is_gemini_response(records: Records) -> bool:
    listed = records.whole.get("candidates")
    return isinstance(listed, list) and any(isinstance(c, Mapping) and "content" in c for c in listed)


def _is_claude_index(records: Records) -> bool:
    listed = records.whole.get("entries")
    return isinstance(listed, list) and any(isinstance(entry, Mapping) and "sessionId" in entry for entry in listed)


def _has(*names: str) -> Any:
    """A test for lines of which any has all of ``names``."""
    return lambda records: not records.is_list and any(set(names) <= item.keys() for item in records.items)


def _is_batch(records: Records) -> bool:
    return any("custom_id" in item and ("body" in item or "response" in item) for item in records.items)


def _is_old_tuning(records: Records) -> bool:
    return any({"prompt", "completion"} <= item.keys() and "role" not in item for item in records.items)


def _lines_of(*kinds: str) -> Any:
    return lambda records: not records.is_list and any(item.get("type") in kinds for item in records.items)


def _says(*names: str) -> Any:
    """A test for lines of messages of which any has one of ``names``."""
    return lambda records: (
        not records.is_list
        and not any(messages_in(item) is not None for item in records.items)
        and any(is_message(item) and not item.keys().isdisjoint(names) for item in records.items)
    )


def _is_opencode(records: Records) -> bool:
    return not records.is_list and any("sessionID" in item for item in records.items)


REFUSED = (
    known("a part of opencode's storage", _is_opencode, "join its session, message and part folders"),
    known("a part of a ChatGPT export without conversations", _is_chatgpt_rest),
    known("ShareGPT training data", _is_sharegpt, "its from/value pairs name no tool-call ids; they would be made up"),
    known(
        "a ChatbotUI export",
        lambda records: isinstance(records.whole.get("history"), list) and "folders" in records.whole,
        "take each history entry as a session",
    ),
    known("a prompt log of Gemini CLI, not a session", _is_gemini_log),
    known(
        "a prompt of Google AI Studio",
        lambda records: isinstance(records.whole.get("chunkedPrompt"), Mapping),
        "turn the chunks of its chunkedPrompt into messages",
    ),
    known("a response of the Gemini API", _is_gemini_response, "the request it answers, which it does not hold"),
    known("Claude Code's index of sessions, not a session", _is_claude_index),
    known(
        "the event stream of codex exec",
        _lines_of("item.started", "item.completed", "thread.started"),
        "import the rollout file it names instead",
    ),
    known(
        "Claude Code's journal of a workflow, not a session",
        lambda records: any("agentId" in m and word(m.get("type")).startswith("agent_") for m in records.items),
    ),
    known("a prompt history of Claude Code, not a session", _has("display", "pastedContents")),
    known("a prompt history of Codex, not a session", _has("session_id", "ts", "text")),
    known("Codex's list of threads, not a session", _has("thread_name", "updated_at")),
    known(
        "OpenAI preference data", _has("preferred_output"), "one session for each of the two outputs, linked as forks"
    ),
    known("an OpenAI batch file", _is_batch, "join each request's messages to the answer in the output file"),
    known("old fine-tuning data (prompt and completion)", _is_old_tuning, "know the roles, which it does not name"),
    known(
        "a Chat Completions response",
        lambda records: any(m.get("object") in ("chat.completion", "chat.completion.chunk") for m in records.items),
        "the request it answers, which it does not hold",
    ),
    known("a Mistral Vibe session", _says("message_id"), "turn its argument objects and meta.json into ours"),
    known(
        "a gptme conversation",
        _says("pinned", "hide", "call_id"),
        "its tool calls are text inside answers; they would be guessed from",
    ),
)


def nothing_in(records: Records) -> Reader:
    """What a file without any object is."""
    name, needed = _nothing(records)
    return known(name, lambda _: True, needed)


def _nothing(records: Records) -> tuple[str, str]:
    if records.is_database:
        return "an SQLite database", "know which tool wrote it"
    if records.is_document:
        if not isinstance(records.document, list | Mapping):
            return "a JSON value that is no object or list", ""
        if records.document == []:
            return "an empty JSON list", ""
        return ("a JSON list without any object" if not records.items else "JSON of an unknown kind"), ""
    if records.lines:
        return "JSON of an unknown kind", ""
    if not records.head.strip(b"\xef\xbb\xbf\0 \t\r\n"):
        return "an empty file", ""
    if records.head.startswith((b"\x28\xb5\x2f\xfd", b"\x1f\x8b")):
        return "a compressed file (Codex packs old rollouts so)", "unpack it first, with zstd -d or gunzip"
    if b"# aider chat started at" in records.head:
        return "an aider chat history", "its Markdown keeps no roles; headings and quotes would be guessed from"
    if records.odd:
        return "JSON without any object", ""
    if records.head.lstrip().startswith((b"{", b"[")):
        return "JSON that is cut off or damaged", ""
    return ("a binary file" if b"\0" in records.head else "a text file, not JSON"), ""
