"""What a file is, judged by its content: a format that can be imported, or one that is known but not supported yet.

The name of a file decides nothing. Formats are tried from the most particular to the most general.

Does not convert anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sessions_lib.importers.chat.wrapping import DIALECTS, dialect_of, is_message, messages_in
from sessions_lib.importers.imported import word
from sessions_lib.importers.source import SQLITE, Records, Source

TOOLS = {
    "claude-code": "Claude Code",
    "codex": "Codex",
    "pi": "Pi",
    "astorlm": "astorlm",
    "forkbook": "Forkbook",
    "openai-chat": "OpenAI Chat messages",
    "openai-finetune": "OpenAI fine-tuning examples",
    "ai-sdk": "AI SDK messages",
    "anthropic-api": "Anthropic API messages",
    "gemini-api": "Gemini API contents",
    "chatgpt": "ChatGPT export",
}
ALIASES = {
    "claude": "claude-code",
    "claude_code": "claude-code",
    "openai": "openai-chat",
    "chat": "openai-chat",
    "openai_chat": "openai-chat",
    "finetune": "openai-finetune",
    "fine-tuning": "openai-finetune",
    "chatgpt-export": "chatgpt",
    "json": "forkbook",
    "aisdk": "ai-sdk",
    "ai_sdk": "ai-sdk",
    "anthropic": "anthropic-api",
}
_LOOKED_AT = 400  # records looked at; a session's kind shows long before

_CLAUDE_TYPES = frozenset(
    {"user", "assistant", "system", "summary", "progress", "attachment", "file-history-snapshot", "queue-operation"}
    | {"permission-mode", "ai-title", "custom-title", "agent-name", "last-prompt", "mode", "pr-link", "tag"}
)
_CODEX_TYPES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_CODEX_ITEMS = frozenset(
    {"message", "reasoning", "function_call", "function_call_output", "local_shell_call", "custom_tool_call"}
    | {"custom_tool_call_output", "web_search_call"}
)


@dataclass(frozen=True, slots=True)
class Kind:
    """What a file looked like: ``format`` if it can be imported, else ``""``; its name, and what importing it needs."""

    format: str
    name: str
    needed: str = ""

    @property
    def found(self) -> str:
        """The kind as a refusal says it."""
        if self.format:
            return f"looks like {self.name}"
        if self.needed:
            return f"looks like {self.name}, which cannot be imported yet ({self.needed})"
        return self.name


_UNKNOWN = Kind("", "JSON of an unknown kind")


def kind_of(source: Source, records: Records) -> Kind:
    """The kind of file ``records`` were read from."""
    if records.head.startswith(SQLITE):
        return _sqlite(source)
    if records.is_document:
        return _document(records.document, source)
    if records.lines:
        if len(records.lines) == 1 and not records.damaged and not records.odd:
            as_document = _document(records.lines[0][1], source)
            if as_document != _UNKNOWN:
                return as_document
        return _lines([record for _, record in records.lines[:_LOOKED_AT]], source)
    return _nothing(records)


def _nothing(records: Records) -> Kind:
    if not records.head.strip(b"\xef\xbb\xbf\0 \t\r\n"):
        return Kind("", "an empty file")
    if records.head.startswith((b"\x28\xb5\x2f\xfd", b"\x1f\x8b")):
        return Kind("", "a compressed file (Codex packs old rollouts so)", "unpack it first, with zstd -d or gunzip")
    if b"# aider chat started at" in records.head:
        return Kind(
            "", "an aider chat history", "its Markdown keeps no roles; headings and quotes would be guessed from"
        )
    if records.odd:
        return Kind("", "JSON without any object")
    if records.head.lstrip().startswith((b"{", b"[")):
        return Kind("", "JSON that is cut off or damaged")
    if b"\0" in records.head:
        return Kind("", "a binary file")
    return Kind("", "a text file, not JSON")


def _sqlite(source: Source) -> Kind:
    with source.open() as file:
        schema = file.read(1 << 20)
    if b"agent_messages" in schema and b"agent_sessions" in schema:
        return Kind("", "an OpenAI Agents SDK database", "read the rows of agent_messages, Responses items, by session")
    if b"opencode" in schema or b"CREATE TABLE `part`" in schema or b'CREATE TABLE "part"' in schema:
        return Kind("", "an opencode database", "join its session, message and part tables")
    return Kind("", "an SQLite database", "know which tool wrote it")


# ---------------------------------------------------------------- whole documents


def _document(value: Any, source: Source) -> Kind:
    if isinstance(value, Mapping):
        return _object(value, source)
    if isinstance(value, list):
        if not value:
            return Kind("", "an empty JSON list")
        objects = [item for item in value[:_LOOKED_AT] if isinstance(item, Mapping)]
        return _list(objects) if objects else Kind("", "a JSON list without any object")
    return Kind("", "a JSON value that is no object or list")


def _list(items: Sequence[Mapping[str, Any]]) -> Kind:
    if any(isinstance(item.get("chat_messages"), list) for item in items):
        return Kind("", "a claude.ai export", "chat_messages and their content blocks, one session a conversation")
    if any("mapping" in item for item in items):
        return Kind("chatgpt", TOOLS["chatgpt"])
    if any("conversation_id" in item and ("is_anonymous" in item or "rating" in item) for item in items):
        return _CHATGPT_REST
    if any(isinstance(item.get("conversations"), list) for item in items):
        return _SHAREGPT
    if any(_is_open_webui(item) for item in items):
        return _OPEN_WEBUI
    if any(isinstance(item.get("messageId"), int) and "sessionId" in item for item in items):
        return Kind("", "a prompt log of Gemini CLI, not a session")
    if any(item.get("type") in ("function_call", "function_call_output") and "role" not in item for item in items):
        return _RESPONSES
    return _chat(items) or _UNKNOWN


def _chat(items: Sequence[Mapping[str, Any]]) -> Kind | None:
    """Messages, or objects with messages, by whose they are; ``None`` if they are neither."""
    listed: list[Sequence[Any]] = [found for item in items if (found := messages_in(item)) is not None] or [items]
    if not any(is_message(message) for messages in listed for message in messages) and not any(map(dialect_of, listed)):
        return None
    format = next(filter(None, map(dialect_of, listed)), "openai-chat")
    return Kind(format, TOOLS[format])


_RESPONSES = Kind("", "a list of OpenAI Responses items", "join its function calls and outputs to messages")
_CHATGPT_REST = Kind("", "a part of a ChatGPT export without conversations")
_GEMINI = Kind("", "a Gemini CLI session", "turn its toolCalls, thoughts and tokens into messages")
_SHAREGPT = Kind("", "ShareGPT training data", "its from/value pairs name no tool-call ids; they would be made up")
_OPEN_WEBUI = Kind("", "an Open WebUI chat", "walk its history.messages tree by parentId, one session a leaf")


def _object(value: Mapping[str, Any], source: Source) -> Kind:
    if "forkbook" in value and isinstance(value.get("messages"), list):
        return Kind("forkbook", TOOLS["forkbook"])
    if isinstance(value.get("loglines"), list):
        return Kind("claude-code", TOOLS["claude-code"])
    if "mapping" in value and isinstance(value["mapping"], Mapping):
        return Kind("chatgpt", TOOLS["chatgpt"])
    if isinstance(value.get("session"), Mapping) and isinstance(value.get("items"), list):
        return Kind("codex", TOOLS["codex"])
    if isinstance(value.get("chat_messages"), list):
        return Kind("", "a claude.ai export", "chat_messages and their content blocks, one session a conversation")
    if _is_open_webui(value):
        return _OPEN_WEBUI
    if isinstance(value.get("conversations"), list):
        return _SHAREGPT
    if isinstance(value.get("history"), list) and "folders" in value:
        return Kind("", "a ChatbotUI export", "take each history entry as a session")
    messages = value.get("messages")
    if isinstance(messages, list):
        if "conversationId" in value or any(isinstance(m, Mapping) and "messageId" in m for m in messages):
            return Kind("", "a LibreChat export", "walk its nested children or parentMessageId, one session a leaf")
        if any(isinstance(m, Mapping) and m.get("type") in ("gemini", "user", "info") for m in messages):
            return _GEMINI
    if isinstance(value.get("chunkedPrompt"), Mapping):
        return Kind("", "a prompt of Google AI Studio", "turn the chunks of its chunkedPrompt into messages")
    if isinstance(value.get("candidates"), list) and any("content" in c for c in value["candidates"] if c):
        return Kind("", "a response of the Gemini API", "the request it answers, which it does not hold")
    if messages_in(value) is not None and (chat := _chat([value])) is not None:
        return chat
    if {"user_settings", "chatgpt_plus_user", "export_files"} & value.keys() or _names_assets(value):
        return _CHATGPT_REST
    if isinstance(value.get("output"), list) and value.get("object") == "response":
        return _RESPONSES
    if isinstance(value.get("entries"), list) and any(
        isinstance(entry, Mapping) and "sessionId" in entry for entry in value["entries"]
    ):
        return Kind("", "Claude Code's index of sessions, not a session")
    if "sessionID" in value or ("time" in value and "id" in value and "role" not in value):
        return Kind("", "a part of opencode's storage", "join its session, message and part folders")
    return _lines([value], source)


def _is_open_webui(value: Mapping[str, Any]) -> bool:
    chat = value.get("chat") if isinstance(value.get("chat"), Mapping) else value
    history = chat.get("history") if isinstance(chat, Mapping) else None
    return isinstance(history, Mapping) and isinstance(history.get("messages"), Mapping)


def _names_assets(value: Mapping[str, Any]) -> bool:
    names = list(value)[:20]
    return bool(names) and all(name.startswith(("file-", "file_")) and isinstance(value[name], str) for name in names)


# ---------------------------------------------------------------- lines


def _lines(records: Sequence[Mapping[str, Any]], source: Source) -> Kind:
    if _is_claude_code(records[:20]):  # the most common one, and none of the others starts like it
        return Kind("claude-code", TOOLS["claude-code"])
    if _is_pi(records):
        return Kind("pi", TOOLS["pi"])
    if _is_codex(records):
        return Kind("codex", TOOLS["codex"])
    if _is_claude_code(records):
        return Kind("claude-code", TOOLS["claude-code"])
    if any(record.get("type") in ("item.started", "item.completed", "thread.started") for record in records):
        return Kind("", "the event stream of codex exec", "import the rollout file it names instead")
    if any(record.get("type") == "gemini" for record in records):
        return _GEMINI
    if any("agentId" in record and word(record.get("type")).startswith("agent_") for record in records):
        return Kind("", "Claude Code's journal of a workflow, not a session")
    if any("display" in record and "pastedContents" in record for record in records):
        return Kind("", "a prompt history of Claude Code, not a session")
    if any({"session_id", "ts", "text"} <= record.keys() for record in records):
        return Kind("", "a prompt history of Codex, not a session")
    if any("conversations" in record for record in records):
        return _SHAREGPT
    if any({"thread_name", "updated_at"} <= record.keys() for record in records):
        return Kind("", "Codex's list of threads, not a session")
    if any("preferred_output" in record for record in records):
        return Kind("", "OpenAI preference data", "one session for each of the two outputs, linked as forks")
    if any("custom_id" in record and ("body" in record or "response" in record) for record in records):
        return Kind("", "an OpenAI batch file", "join each request's messages to the answer in the output file")
    if any({"prompt", "completion"} <= record.keys() and "role" not in record for record in records):
        return Kind("", "old fine-tuning data (prompt and completion)", "know the roles, which it does not name")
    if any(record.get("object") in ("chat.completion", "chat.completion.chunk") for record in records):
        return Kind("", "a Chat Completions response", "the request it answers, which it does not hold")
    if any(messages_in(record) is not None for record in records):
        chat = _chat(records)
        return chat if chat and chat.format in DIALECTS else Kind("openai-finetune", TOOLS["openai-finetune"])
    messages = [record for record in records if is_message(record)]
    if messages:
        return _chat_lines(messages, source)
    if dialect_of(records):
        return _chat(records) or _UNKNOWN
    if any("sessionID" in record for record in records):
        return Kind("", "a part of opencode's storage", "join its session, message and part folders")
    return _UNKNOWN


def _chat_lines(messages: Sequence[Mapping[str, Any]], source: Source) -> Kind:
    if any("message_id" in message for message in messages):
        return Kind("", "a Mistral Vibe session", "turn its argument objects and meta.json into ours")
    if any("pinned" in message or "hide" in message or "call_id" in message for message in messages):
        return Kind("", "a gptme conversation", "its tool calls are text inside answers; they would be guessed from")
    if dialect_of(messages) in ("ai-sdk", "gemini-api"):
        return _chat(messages) or _UNKNOWN
    if is_astorlm(source, messages):
        return Kind("astorlm", TOOLS["astorlm"])
    if any("id" in message and "timestamp" in message for message in messages):
        return Kind("forkbook", TOOLS["forkbook"])
    return Kind("openai-chat", TOOLS["openai-chat"])


def is_astorlm(source: Source, messages: Sequence[Mapping[str, Any]]) -> bool:
    """True for content blocks in Anthropic's way, or metadata beside with ``createdAt``."""
    blocks = [part for m in messages if isinstance(m.get("content"), list) for part in m["content"]]
    if any(
        isinstance(part, Mapping) and part.get("type") in ("tool_use", "tool_result", "thinking") for part in blocks
    ):
        return True
    meta = source.metadata()
    return "createdAt" in meta and "version" not in meta


def _is_pi(records: Sequence[Mapping[str, Any]]) -> bool:
    if any(record.get("type") == "session" and "id" in record for record in records[:5]):
        return True
    return any(
        record.get("type") == "message" and isinstance(record.get("message"), Mapping) and "uuid" not in record
        for record in records
    )


def _is_codex(records: Sequence[Mapping[str, Any]]) -> bool:
    if any(
        word(record.get("type")) in _CODEX_TYPES and isinstance(record.get("payload"), Mapping) for record in records
    ):
        return True
    if any(record.get("record_type") == "state" for record in records[:5]):
        return True
    head = records[0] if records else {}
    return (
        "role" not in head
        and "timestamp" in head
        and "id" in head
        and any(word(record.get("type")) in _CODEX_ITEMS and "uuid" not in record for record in records[1:])
    )


def _is_claude_code(records: Sequence[Mapping[str, Any]]) -> bool:
    for record in records:
        if word(record.get("type")) not in _CLAUDE_TYPES:
            continue
        if record["type"] in ("user", "assistant"):
            if isinstance(record.get("message"), Mapping):
                return True
        elif {"sessionId", "leafUuid", "uuid", "messageId"} & record.keys():
            return True
    return False
