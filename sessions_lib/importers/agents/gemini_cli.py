"""Gemini CLI: ``~/.gemini/tmp/PROJECT/chats/session-….json``, and since 2026 ``.jsonl``, which is a log of changes.

* In the log the record of an id that comes again replaces it. ``$rewindTo`` takes that record and what follows back:
  they stay, as a branch. ``$set`` changes the header; messages that it sets (a compression) take nothing away here.
* ``cached`` tokens are inside ``input``, ``thoughts`` beside ``output``, tokens of tools beside ``input``.
* What the program said itself (``info``, ``warning``, ``error``) are notes. Sub-agents name their caller.

Message ids are ``gm_`` and the record's own id, made unique where it is only a name within the session.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessions_lib import times
from sessions_lib.importers.chat.parts import data_url, file_part
from sessions_lib.importers.imported import SUB_AGENT, Imported, ImportReport, fill_times, iso, set_usage, word
from sessions_lib.importers.notes import note, unknown
from sessions_lib.importers.reader import Reader
from sessions_lib.importers.source import Records, Source
from sessions_lib.importers.steps import Steps, joined
from sessions_lib.importers.unique_ids import is_unique
from sessions_lib.messages import content
from sessions_lib.messages.content import Message

_NOTES = ("info", "warning", "error")
Record = dict[str, Any]


def looks_like(records: Records) -> bool:
    """True for a document with Gemini's messages, or the log of one."""
    listed = records.whole.get("messages")
    if isinstance(listed, list):
        if records.whole.keys() >= {"sessionId", "projectHash"}:
            return True
        return any(isinstance(m, dict) and m.get("type") == "gemini" and "content" in m for m in listed)
    if records.is_list:
        return False
    if any({"sessionId", "projectHash"} <= item.keys() and "type" not in item for item in records.items[:5]):
        return True
    return any(item.get("type") == "gemini" and "content" in item for item in records.items)


class _Log:
    """The messages of a log as they stand at its end, and the lines that were taken back."""

    def __init__(self) -> None:
        self.header: Record = {}
        self.line: list[str] = []  # the ids of the line that stands
        self.taken_back: list[tuple[list[str], int]] = []  # a line as it was, and how much of it stands
        self.records: dict[str, Record] = {}

    def take(self, record: Mapping[str, Any]) -> None:
        if "$rewindTo" in record:
            target = word(record["$rewindTo"])
            kept = self.line.index(target) if target in self.line else 0
            if kept < len(self.line):
                self.taken_back.append((list(self.line), kept))
            self.line = self.line[:kept]
            return
        if word(record.get("type")) and ("id" in record or "content" in record):
            self._message(dict(record))
            return
        told = record.get("$set") if isinstance(record.get("$set"), Mapping) else record
        assert isinstance(told, Mapping)
        self.header |= {key: value for key, value in told.items() if key not in ("messages", "$set")}
        listed = told.get("messages")
        known = {(one.get("type"), content.as_text(one.get("content"))) for one in self.records.values()}
        for message in listed if isinstance(listed, list) else ():
            if not isinstance(message, dict):
                continue
            is_said = (message.get("type"), content.as_text(message.get("content"))) in known
            if message.get("id") in self.records or "$set" not in record or not is_said:
                self._message(message)

    def _message(self, record: Record) -> None:
        own = content.as_text(record.get("id")) or f"{len(self.records)}"
        if (own in self.records and own not in self.line and self.records[own] != record) or own not in self.records:
            self.line.append(own)
        self.records[own] = record


def read(source: Source, records: Records, report: ImportReport) -> list[Imported]:
    """The line that stands, then what was taken back."""
    log = _Log()
    for record in [records.whole] if records.whole else [record for _, record in records.lines]:
        log.take(record)
    session = word(log.header.get("sessionId")) or source.name.rsplit(".", 1)[0]
    key = f"gemini-cli:{session}"
    made = {own: _messages(_id(session, own), record, report) for own, record in log.records.items()}
    title = log.header.get("summary")
    is_agent = log.header.get("kind") == "subagent"
    caller = source.path.parent.name if source.member is None else source.member.split("/")[-2:-1]
    meta: Record = {"subagent_of": {"key": f"gemini-cli:{caller}"} if isinstance(caller, str) else {}}
    found: list[Imported] = []
    for line, kept in [(log.line, 0), *log.taken_back]:
        messages = [dict(message) for own in line for message in made[own]]
        shared = sum(len(made[own]) for own in line[:kept])
        if len(messages) <= shared:
            continue
        fill_times(messages, iso(log.header.get("startTime")))
        is_main = line is log.line
        found.append(
            Imported(
                key=key if is_main or not found else f"{key}#{messages[shared]['id']}",
                conversation=key,
                title=title if isinstance(title, str) and title.strip() else None,
                tags=(SUB_AGENT,) if is_agent else (),
                messages=messages,
                parent_key=None if is_main or not found else key,
                shared=0 if is_main or not found else shared,
                meta=meta if is_agent else {},
                source={"directories": log.header["directories"]} if log.header.get("directories") else {},
                created=times.parse(log.header.get("startTime")),
            )
        )
    return found


def _id(session: str, own: str) -> str:
    return f"gm_{own}" if is_unique(own) else f"gm_{session}_{own}"


def _messages(message_id: str, record: Record, report: ImportReport) -> list[Message]:
    plain: Record = {"id": message_id}
    if (moment := iso(record.get("timestamp"))) is not None:
        plain["timestamp"] = moment
    kind = word(record.get("type"))
    if kind == "user":
        said = _content(record.get("content"), report)
        return [{"role": "user", "content": said, **plain}] if said else []
    if kind in _NOTES:
        return note(content.as_text(_content(record.get("content"), report)), kind, plain)
    if kind == "gemini":
        return _answer(plain, record, report)
    return unknown(record, kind or "record without a type", plain, report)


def _content(said: Any, report: ImportReport) -> Any:
    """A string, or parts where there is more than text."""
    if isinstance(said, str):
        return said if said.strip() else None
    parts: list[Any] = []
    for part in said if isinstance(said, list) else [said]:
        data = part.get("inlineData") if isinstance(part, dict) else None
        if isinstance(part, str):
            parts.append(part)
        elif isinstance(data, dict):
            kind = word(data.get("mimeType"))
            parts.append(file_part(data_url(kind, data.get("data")), kind))
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            parts.append(part["text"])
        elif part:
            report.skipped["part without a text"] += 1
    return joined([part for part in parts if part != ""])


def _answer(plain: Record, record: Record, report: ImportReport) -> list[Message]:
    if model := word(record.get("model")):
        plain["model"] = model
    steps = Steps(plain)
    for thought in _list(record.get("thoughts")):
        steps.think("\n".join(filter(None, (word(thought.get("subject")), word(thought.get("description"))))))
    said = _content(record.get("content"), report)
    for part in said if isinstance(said, list) else [said] if said else []:
        steps.say(part)
    calls = _list(record.get("toolCalls"))
    ids = [word(call.get("id")) or f"{plain['id']}:call{number}" for number, call in enumerate(calls)]
    for call_id, call in zip(ids, calls, strict=True):
        steps.call(call_id, content.as_text(call.get("name")), call.get("args"))
    for call_id, call in zip(ids, calls, strict=True):
        said = _result(call)
        if said is not None:
            failed = {"is_error": True} if call.get("status") in ("error", "cancelled") else {}
            steps.result(call_id, said, content.as_text(call.get("name")), **failed)
    made = steps.messages()
    tokens = record.get("tokens")
    counted = _usage(tokens) if isinstance(tokens, dict) else {}
    if counted and not made:
        made = [{"role": "assistant", "content": None, **plain}]
    if counted:
        set_usage(made[0], counted)
        made[0]["usage_reported"] = tokens
    return made


def _list(value: Any) -> list[Record]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _result(call: Record) -> Any:
    """What a call gave: of a function's response what it says, else what was shown; ``None`` if it has not ended."""
    responses: list[Record] = []
    given = call.get("result")
    for part in given if isinstance(given, list) else [given]:
        answered = part.get("functionResponse") if isinstance(part, dict) else None
        if isinstance(answered, dict):
            responses.append(answered)
    texts = []
    for answered in responses:
        said = answered.get("response")
        inner = said.get("output", said.get("error")) if isinstance(said, dict) and len(said) == 1 else None
        texts.append(content.as_text(said if inner is None else inner))
    if texts:
        return "\n".join(texts)
    shown = given or call.get("resultDisplay")
    if shown not in (None, [], ""):
        return content.as_text(shown)
    return "" if call.get("status") in ("success", "error", "cancelled") else None


def _usage(tokens: Mapping[str, Any]) -> Record:
    """The tokens of an answer in OpenAI's meaning; empty if none were counted."""

    def count(name: str) -> int | None:
        value = tokens.get(name)
        return value if type(value) is int and value >= 0 else None

    sent, written = count("input"), count("output")
    if sent is None and written is None:
        return {}
    made: Record = {}
    if sent is not None:
        made["prompt_tokens"] = sent + (count("tool") or 0)
    if written is not None:
        made["completion_tokens"] = written + (count("thoughts") or 0)
    if sent is not None and written is not None:
        made["total_tokens"] = made["prompt_tokens"] + made["completion_tokens"]
    if (cached := count("cached")) is not None:
        made["prompt_tokens_details"] = {"cached_tokens": cached}
    if (thoughts := count("thoughts")) is not None:
        made["completion_tokens_details"] = {"reasoning_tokens": thoughts}
    return made


READER = Reader("gemini-cli", "Gemini CLI", looks_like, read, aliases=("gemini_cli", "gemini"), places=(".gemini/tmp",))
