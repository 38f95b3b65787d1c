"""GitHub Copilot CLI: ``~/.copilot/session-state/SESSION/events.jsonl``, one event a line.

An answer names the calls it asks for (``toolRequests``), each call ends in ``tool.execution_complete``. Answers tell at
most their output tokens, which are kept beside; what a run spent on each model stands in ``session.shutdown``, and is
kept on an empty answer that no provider is ever sent. Answers of sub-agents (``parentToolCallId``) are a session that
names the call.

Message ids are ``cp_`` and the event's own id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessions_lib import times
from sessions_lib.importers.imported import (
    SUB_AGENT,
    TOKENS_ONLY,
    Imported,
    ImportReport,
    as_call,
    fill_times,
    iso,
    objects,
    set_usage,
    word,
)
from sessions_lib.importers.notes import note, unknown
from sessions_lib.importers.reader import Reader
from sessions_lib.importers.source import Records, Source
from sessions_lib.importers.steps import arguments, attached, joined
from sessions_lib.messages import content
from sessions_lib.messages.content import Message

Record = Mapping[str, Any]
_NOTES = ("session.info", "session.warning", "session.error", "system.notification")
_SILENT = ("session.", "assistant.turn_", "hook.", "permission.", "tool.execution_", "assistant.intent", "subagent.")
_SAYING = ("session.compaction_complete", "session.task_complete", "session.handoff")


def looks_like(records: Records) -> bool:
    """True for events of Copilot CLI."""
    return not records.is_list and any(
        word(item.get("type")) in ("session.start", "user.message", "assistant.message")
        and isinstance(item.get("data"), dict)
        for item in records.items
    )


def read(source: Source, records: Records, report: ImportReport) -> list[Imported]:
    """The session, then those of its sub-agents."""
    session = _Session(report)
    for _, record in records.lines:
        session.take(record)
    own = word(session.start.get("sessionId")) or source.path.parent.name
    key = f"copilot-cli:{own}"
    told = session.start.get("context")
    where = {k: told[k] for k in ("cwd", "repository", "branch") if word(told.get(k))} if isinstance(told, dict) else {}
    created = session.start.get("startTime")
    found: list[Imported] = []
    for call_id, messages in session.lines.items():
        fill_times(messages, iso(created))
        agent = {"subagent_of": {"key": key, "tool_call_id": call_id}}
        if messages:
            found.append(
                Imported(
                    key=f"{key}:agent:{call_id}" if call_id else key,
                    conversation=f"{key}:agent:{call_id}" if call_id else key,
                    title=f"Sub-agent: {session.agents.get(call_id, 'agent')}" if call_id else session.title,
                    tags=(SUB_AGENT,) if call_id else (),
                    messages=messages,
                    meta=agent if call_id else {},
                    source=where,
                    created=times.parse(created),
                )
            )
    return found


class _Session:
    def __init__(self, report: ImportReport) -> None:
        self.start: dict[str, Any] = {}
        self.title: str | None = None
        self.lines: dict[str, list[Message]] = {"": []}  # the call that made a sub-agent -> its messages
        self.agents: dict[str, str] = {}
        self._report = report
        self._model = ""
        self._names: dict[str, str] = {}
        self._asked: dict[str, str] = {}  # a call -> what its tool was given as a prompt
        self._begun: dict[str, str] = {}
        self._uncounted: list[Message] = []  # answers since the last sum of all tokens

    def take(self, record: Record) -> None:
        data = record.get("data")
        told: Record = data if isinstance(data, dict) else {}
        kind = word(record.get("type"))
        plain: dict[str, Any] = {"id": f"cp_{content.as_text(record.get('id'))}"}
        if (moment := iso(record.get("timestamp"))) is not None:
            plain["timestamp"] = moment
        line = self._line(word(told.get("parentToolCallId")))
        if kind in ("session.start", "session.resume"):
            self.start = self.start or dict(told)
            self._model = word(told.get("selectedModel")) or self._model
        elif kind == "session.model_change":
            self._model = word(told.get("newModel")) or self._model
        elif kind == "session.title_changed":
            self.title = word(told.get("title")) or self.title
        elif kind == "user.message":
            line += _prompt(told, plain)
        elif kind == "assistant.message":
            self._answer(line, told, plain)
        elif kind == "tool.execution_start":
            self._begun[word(told.get("toolCallId"))] = word(record.get("timestamp"))
            self._names.setdefault(word(told.get("toolCallId")), word(told.get("toolName")))
        elif kind == "tool.execution_complete":
            line.append(self._result(told, plain, record))
        elif kind == "subagent.started":
            self.agents[word(told.get("toolCallId"))] = word(told.get("agentDisplayName")) or word(
                told.get("agentName")
            )
        elif kind == "assistant.usage":
            self._count(told)
        elif kind == "session.shutdown":
            self._sum(told, plain)
        elif kind == "abort":
            if line and line[-1]["role"] == "assistant":
                line[-1]["interrupted"] = True
        elif kind in _NOTES:
            line += note(word(told.get("message")) or word(told.get("content")), kind, plain)
        elif kind.startswith(_SILENT) and kind not in _SAYING:
            self._report.skipped[kind] += 1
        elif kind == "session.compaction_complete" and word(told.get("summaryContent")):
            source = {"kind": "compaction"}
            line.append({"role": "assistant", "content": told["summaryContent"], **plain, "source": source})
        else:
            line += unknown(told, kind or "event without a type", plain, self._report)

    def _line(self, call_id: str) -> list[Message]:
        if call_id and call_id not in self.lines:
            asked = self._asked.get(call_id, "")
            prompt = [{"role": "user", "content": asked, "id": f"cp_{call_id}_prompt"}] if asked else []
            self.lines[call_id] = prompt
        return self.lines[call_id]

    def _answer(self, line: list[Message], told: Record, plain: Record) -> None:
        answer: Message = {"role": "assistant", "content": word(told.get("content")) or None, **plain}
        if thought := word(told.get("reasoningText")):
            answer["reasoning_content"] = thought
        calls = []
        for call in objects(told.get("toolRequests")):
            if call:
                call_id, name = content.as_text(call.get("toolCallId")), content.as_text(call.get("name"))
                self._names[call_id] = name
                given = call.get("arguments")
                if isinstance(given, dict) and word(given.get("prompt")):
                    self._asked[call_id] = given["prompt"]
                calls.append(as_call(call_id, name, arguments(given)))
        if calls:
            answer["tool_calls"] = calls
        if not answer["content"] and not calls and not answer.get("reasoning_content"):
            self._report.skipped["empty answer"] += 1
            return
        if model := word(told.get("model")) or self._model:
            answer["model"] = model
        if type(told.get("outputTokens")) is int:  # half of what it spent: the whole is told when the run ends
            answer["source"] = {"output_tokens": told["outputTokens"]}
        line.append(answer)
        self._uncounted.append(answer)

    def _result(self, told: Record, plain: Record, record: Record) -> Message:
        call_id = content.as_text(told.get("toolCallId"))
        given, error = told.get("result"), told.get("error")
        said = (given.get("detailedContent") or given.get("content")) if isinstance(given, dict) else given
        if isinstance(given, dict) and word(given.get("content")):
            said = given["content"]
        if said in (None, "") and error is not None:
            said = error.get("message") if isinstance(error, dict) else error
        made: Message = {"role": "tool", "tool_call_id": call_id, "content": content.as_text(said), **plain}
        if name := self._names.get(call_id):
            made["name"] = name
        if told.get("success") is False:
            made["is_error"] = True
        began, ended = times.parse(self._begun.get(call_id)), times.parse(record.get("timestamp"))
        if began and ended and ended >= began:
            made["duration_ms"] = round((ended - began).total_seconds() * 1000)
        return made

    def _count(self, told: Record) -> None:
        if self._uncounted and (counted := _tokens(told)):
            answer = self._uncounted.pop()
            set_usage(answer, counted)
            answer["usage_reported"] = dict(told)

    def _sum(self, told: Record, plain: Record) -> None:
        """The tokens of a whole run stand for those of its answers."""
        metrics = told.get("modelMetrics")
        told_of = metrics.items() if isinstance(metrics, dict) else ()
        spent = [(model, one.get("usage")) for model, one in told_of if isinstance(one, dict)]
        sums: dict[str, Record] = {model: tokens for model, tokens in spent if isinstance(tokens, dict)}
        counted = {model: tokens for model, one in sums.items() if (tokens := _tokens(one))}
        if not counted or not self._uncounted:
            return
        self._uncounted = []
        for number, (model, tokens) in enumerate(counted.items()):
            made: Message = {"role": "assistant", "content": None, **plain, "model": model}
            made["id"] = f"{plain['id']}:{number}"
            made["source"] = {"kind": TOKENS_ONLY}
            set_usage(made, tokens)
            made["usage_reported"] = dict(sums[model])
            self.lines[""].append(made)


def _prompt(told: Record, plain: Record) -> list[Message]:
    parts: list[Any] = [word(told.get("content"))]
    for file in objects(told.get("attachments")):
        parts.append(attached(file.get("displayName") or file.get("path"), file.get("text") or file.get("content")))
    parts = [part for part in parts if part]
    return [{"role": "user", "content": joined(parts), **plain}] if parts else []


def _tokens(told: Record) -> dict[str, Any]:
    """Tokens in OpenAI's meaning: what was read from a cache is inside what was sent."""
    sent, output = told.get("inputTokens"), told.get("outputTokens")
    if type(sent) is not int or type(output) is not int or not sent + output:
        return {}
    details = {"cached_tokens": told.get("cacheReadTokens"), "cache_write_tokens": told.get("cacheWriteTokens")}
    counts = {"prompt_tokens": sent, "completion_tokens": output, "total_tokens": sent + output}
    return {**counts, "prompt_tokens_details": {name: count for name, count in details.items() if count is not None}}


READER = Reader(
    "copilot-cli",
    "GitHub Copilot CLI",
    looks_like,
    read,
    aliases=("copilot_cli",),
    places=(".copilot/session-state",),
)
