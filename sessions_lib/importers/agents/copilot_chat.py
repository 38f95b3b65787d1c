"""GitHub Copilot in VS Code: "Chat: Export Chat", and the files of ``chatSessions``, newer ones logs of changes.

A request has a prompt and a response of parts: Markdown, thoughts, tools, edits. What tools were given and gave stands
in the metadata of the result (``toolCallRounds``); where it is missing, a call holds what was shown of it.

In the log ``kind`` 0 is the whole state, 1 sets a value, 2 appends to a list (cut to ``i`` before), 3 takes one away.

Message ids are ``vs_`` and the request's own id.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from sessions_lib import times
from sessions_lib.importers.imported import Imported, ImportReport, fill_times, iso, objects, set_usage, texts_in, word
from sessions_lib.importers.reader import Reader
from sessions_lib.importers.source import Records, Source
from sessions_lib.importers.steps import Steps, attached, joined
from sessions_lib.messages import content
from sessions_lib.messages.content import Message

Record = Mapping[str, Any]
_SILENT = frozenset(
    {"mcpServersStarting", "progressMessage", "progressTaskSerialized", "progressTask", "prepareToolInvocation"}
    | {"undoStop", "codeblockUri", "confirmation", "references", "codeCitation", "command", "treeData", "extensions"}
    | {"elicitation", "elicitationSerialized", "workspaceEdit", "notebookEditGroup", "agentDetection", "multiDiffData"}
)


def looks_like(records: Records) -> bool:
    """True for a chat with ``requests``, or the log of one."""
    return any(_is_chat(item) or _is_chat(item.get("v")) for item in records.items[:5])


def _is_chat(value: Any) -> bool:
    if not isinstance(value, Mapping) or not isinstance(value.get("requests"), list):
        return False
    asked = [one for one in value["requests"] if isinstance(one, Mapping)]
    return any("response" in one or "requestId" in one for one in asked) or "responderUsername" in value


def read(source: Source, records: Records, report: ImportReport) -> list[Imported]:
    """The chat."""
    chat = records.whole if _is_chat(records.whole) else _replayed([record for _, record in records.lines], report)
    requests = objects(chat.get("requests"))
    first: Record = requests[0] if requests else {}
    own = word(chat.get("sessionId")) or word(first.get("requestId")) or source.name.rsplit(".", 1)[0]
    messages = [m for number, one in enumerate(requests) for m in _messages(f"vs_{own}_{number}", one, report)]
    began = chat.get("creationDate") or first.get("timestamp")
    fill_times(messages, iso(began))
    title = chat.get("customTitle")
    key = f"copilot-chat:{own}"
    return [
        Imported(
            key=key,
            conversation=key,
            title=title if isinstance(title, str) and title.strip() else None,
            messages=messages,
            created=times.parse(began),
        )
    ] if messages else []  # fmt: skip


def _replayed(changes: Sequence[Record], report: ImportReport) -> Record:
    """The state at the end of a log; a change that leads nowhere is counted."""
    state: Any = {}
    for change in changes:
        kind, path, value = change.get("kind"), change.get("k"), copy.deepcopy(change.get("v"))
        if kind == 0:
            state = value
            continue
        try:
            *above, last = path if isinstance(path, list) else []
            at = state
            for step in above:
                at = at[step]
            if kind == 1:
                at[last] = value
            elif kind == 2:
                if isinstance(at, dict):
                    at.setdefault(last, [])
                if type(change.get("i")) is int:
                    del at[last][change["i"] :]
                at[last].extend(value if isinstance(value, list) else [])
            elif kind == 3:
                del at[last]
            else:
                report.skipped["change of an unknown kind"] += 1
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            report.skipped["change that leads nowhere"] += 1
    return state if isinstance(state, Mapping) else {}


def _messages(spare_id: str, request: Record, report: ImportReport) -> list[Message]:
    own = word(request.get("requestId"))
    plain: dict[str, Any] = {"id": f"vs_{own}" if own else spare_id}
    if (moment := iso(request.get("timestamp"))) is not None:
        plain["timestamp"] = moment
    message = request.get("message")
    if isinstance(message, Mapping):
        text = word(message.get("text")) or "".join(word(part.get("text")) for part in objects(message.get("parts")))
    else:
        text = word(message)
    told = request.get("variableData")
    variables = told.get("variables") if isinstance(told, Mapping) else None
    files = [attached(v.get("name")) for v in objects(variables) if v.get("kind") == "file"]
    parts = [*([text] if text.strip() else []), *files]
    prompt = [{"role": "user", "content": joined(parts), **plain}] if parts else []
    return [*prompt, *_answer({**plain, "id": f"{plain['id']}_answer"}, request, report)]


def _answer(plain: dict[str, Any], request: Record, report: ImportReport) -> list[Message]:
    model = word(request.get("modelId"))
    if model:
        plain["model"] = model.removeprefix("copilot/")
    result = request.get("result")
    details = result.get("metadata") if isinstance(result, Mapping) else None
    given, gave = _told(details if isinstance(details, Mapping) else {})
    steps = Steps(plain)
    text = ""
    listed = request.get("response")
    for number, part in enumerate(listed if isinstance(listed, list) else []):
        said = _text(part)
        if said is not None:
            text += said  # one answer comes in many pieces
            continue
        if not isinstance(part, Mapping) or word(part.get("kind")) in _SILENT:
            report.skipped[f"part: {part.get('kind') if isinstance(part, Mapping) else 'of no kind'}"] += 1
            continue
        steps.say(text)
        text = ""
        _take(steps, part, f"{plain['id']}:call{number}", given, gave, report)
    steps.say(text)
    error = result.get("errorDetails") if isinstance(result, Mapping) else None
    if isinstance(error, Mapping) and word(error.get("message")):
        steps.say(error["message"])
        steps.tell(finish_reason="error")
    if request.get("isCanceled") is True:
        steps.tell(interrupted=True)
    made = steps.messages()
    usage = details.get("usage") if isinstance(details, Mapping) else None
    if made and isinstance(usage, Mapping):
        set_usage(next(one for one in reversed(made) if one["role"] == "assistant"), dict(usage))
    return made


def _text(part: Any) -> str | None:
    """A piece of the answer's Markdown, ``None`` for anything else."""
    if not isinstance(part, Mapping):
        return None
    kind = part.get("kind")
    if kind in (None, "markdownContent", "markdownVuln"):
        value = part.get("value", part.get("content"))
        return _string(value) if value is not None else None
    if kind == "inlineReference":
        named = part.get("inlineReference")
        where = named.get("location", named) if isinstance(named, Mapping) else {}
        uri = where.get("uri", where) if isinstance(where, Mapping) else {}
        path = word(uri.get("path")) if isinstance(uri, Mapping) else ""
        name = word(part.get("name")) or (word(named.get("name")) if isinstance(named, Mapping) else "")
        return f"`{name or path.rsplit('/', 1)[-1]}`" if name or path else ""
    return None


def _string(value: Any) -> str:
    return content.as_text(value.get("value")) if isinstance(value, Mapping) else content.as_text(value)


def _told(details: Record) -> tuple[dict[str, tuple[str, Any]], dict[str, str]]:
    """What tools were given, and what they gave, by call."""
    given: dict[str, tuple[str, Any]] = {}
    for one in objects(details.get("toolCallRounds")):
        for call in objects(one.get("toolCalls")):
            given[word(call.get("id"))] = word(call.get("name")), call.get("arguments")
    gave: dict[str, str] = {}
    results = details.get("toolCallResults")
    for call_id, one in results.items() if isinstance(results, Mapping) else ():
        parts = one.get("content") if isinstance(one, Mapping) else None
        texts = [
            _string(part) if isinstance(_value(part), str) else "\n".join(texts_in(part)) for part in objects(parts)
        ]
        gave[call_id] = "\n".join(texts)
    return given, gave


def _value(part: Any) -> Any:
    return part.get("value") if isinstance(part, Mapping) else part


def _take(
    steps: Steps,
    part: Record,
    spare_id: str,
    given: Mapping[str, tuple[str, Any]],
    gave: Mapping[str, str],
    report: ImportReport,
) -> None:
    kind = word(part.get("kind"))
    if kind == "thinking":
        value = part.get("value")
        steps.think("\n".join(map(content.as_text, value)) if isinstance(value, list) else _string(value))
    elif kind in ("toolInvocationSerialized", "toolInvocation"):
        call_id = word(part.get("toolCallId")) or spare_id
        by_id = next((one for one in given if one and (one == call_id or one.split("__")[0] == call_id)), call_id)
        name, arguments = given.get(by_id, (word(part.get("toolId")), None))
        shown = _string(part.get("pastTenseMessage") or part.get("invocationMessage") or "")
        data = part.get("toolSpecificData")
        details = part.get("resultDetails")
        asked = (
            arguments if arguments is not None else _asked(data, details, _string(part.get("invocationMessage") or ""))
        )
        steps.call(call_id, name or "tool", asked)
        output = details.get("output") if isinstance(details, Mapping) else None
        said = gave.get(by_id)
        if said is None and isinstance(output, list):
            said = "\n".join(_string(one) for one in output)
        elif said is None and output is not None:
            said = _string(output)
        if said is None and part.get("isComplete") is True:
            said = shown
        if said is not None:
            failed = isinstance(details, Mapping) and details.get("isError") is True
            steps.result(call_id, said, name or "tool", **({"is_error": True} if failed else {}))
    elif kind == "textEditGroup":
        uri = part.get("uri")
        path = word(uri.get("path")) or word(uri.get("fsPath")) if isinstance(uri, Mapping) else ""
        edits = [e for group in _edits(part) for e in (group if isinstance(group, list) else [group])]
        texts = [word(edit.get("text")) for edit in edits if isinstance(edit, Mapping)]
        steps.say({"type": "file_edit", "text": "\n".join([f"Edited {path}", *filter(None, texts)])})
    elif kind == "warning":
        steps.say(_string(part.get("content") or ""))
    elif texts := texts_in(part):
        report.unknown[kind] += 1
        steps.unknown(kind, texts)
    else:
        report.skipped[f"part: {kind}"] += 1


def _edits(part: Record) -> list[Any]:
    listed = part.get("edits")
    return listed if isinstance(listed, list) else []


def _asked(data: Any, details: Any, shown: str) -> Any:
    """What a tool was given, as far as the part of the screen holds it."""
    told: Record = data if isinstance(data, Mapping) else {}
    line = told.get("commandLine", told.get("command"))
    if isinstance(line, Mapping):
        line = line.get("userEdited") or line.get("toolEdited") or line.get("original")
    if isinstance(line, str):
        return {"command": line}
    if isinstance(told.get("rawInput"), Mapping):
        return told["rawInput"]
    asked = details.get("input") if isinstance(details, Mapping) else None
    if isinstance(asked, str) and asked.strip().startswith("{"):
        return asked
    return {"input": asked if isinstance(asked, str) else shown}


READER = Reader("copilot-chat", "GitHub Copilot chat in VS Code", looks_like, read, aliases=("copilot", "vscode"))
