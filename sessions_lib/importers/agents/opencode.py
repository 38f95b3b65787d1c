"""opencode: ``opencode export ID``, the folders of its storage, and since 1.2 its database.

All three hold the same: a session, its messages, and the parts of each. ``step-finish`` tells the tokens and the money
of each request to the model. What a ``revert`` took back is a branch. A sub-agent's session names its caller, and the
call of the task tool names the session that it made. Texts that opencode put beside a prompt (``synthetic``) are notes.

Message ids are ``oc_``, and the message's own id where that is unique, else behind the session's.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any

from sessions_lib import times
from sessions_lib.errors import StorageError
from sessions_lib.importers import databases
from sessions_lib.importers.belonging import messages_of
from sessions_lib.importers.chat.parts import file_part
from sessions_lib.importers.imported import (
    SUB_AGENT,
    Imported,
    ImportReport,
    fill_times,
    iso,
    set_usage,
    texts_in,
    word,
)
from sessions_lib.importers.notes import note
from sessions_lib.importers.reader import Reader
from sessions_lib.importers.source import Records, Source
from sessions_lib.importers.steps import Steps, attached, joined
from sessions_lib.importers.unique_ids import is_unique
from sessions_lib.messages import content, encoding
from sessions_lib.messages.content import Message

Info = dict[str, Any]
Said = list[tuple[Info, list[Info]]]
_SILENT = frozenset({"snapshot", "patch", "agent", "step-start", "step-finish", "compaction", "retry", "subtask"})
_MAX_RECORD = 64_000_000


def looks_like(records: Records) -> bool:
    """True for an export, a session of the storage, or the database."""
    if records.is_database:
        return {"session", "message", "part"} <= databases.tables(records).keys()
    whole = records.whole
    if isinstance(whole.get("info"), dict) and isinstance(whole.get("messages"), list):
        return "id" in whole["info"]
    return _is_session(whole) and not {"sessionID", "messages", "role"} & whole.keys()


def _is_session(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("time"), dict) and "created" in value["time"] and word(value.get("id")) != ""


def read(source: Source, records: Records, report: ImportReport) -> list[Imported]:
    """The session, or all of the database."""
    if records.is_database:
        return _of_database(source, report)
    whole = records.whole
    if "messages" in whole:
        listed = [one for one in whole["messages"] if isinstance(one, dict) and isinstance(one.get("info"), dict)]
        return _session(whole["info"], [(one["info"], _dicts(one.get("parts"))) for one in listed], report)
    said: Said = []
    for message, parts in messages_of(source):
        if (info := _record(message, report)) is not None:
            said.append((info, [part for one in parts if (part := _record(one, report)) is not None]))
    return _session(dict(whole), said, report)


def _record(source: Source, report: ImportReport) -> Info | None:
    try:
        with source.open() as file:
            value = encoding.decode(file.read(_MAX_RECORD))
    except (ValueError, StorageError) as error:
        report.damaged[str(source.label)] = [(1, f"it cannot be read ({type(error).__name__})")]
        return None
    return value if isinstance(value, dict) else None


def _dicts(value: Any) -> list[Info]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _of_database(source: Source, report: ImportReport) -> list[Imported]:
    with databases.opened(source) as connection:
        said: dict[str, Said] = {}
        parts: dict[str, list[Info]] = {}
        for row in databases.rows(connection, "SELECT * FROM part ORDER BY message_id, id"):
            parts.setdefault(row["message_id"], []).append({"id": row["id"], **_data(row, report)})
        for row in databases.rows(connection, "SELECT * FROM message ORDER BY session_id, time_created, id"):
            said.setdefault(row["session_id"], []).append(
                ({"id": row["id"], **_data(row, report)}, parts.pop(row["id"], []))
            )
        sessions = list(databases.rows(connection, "SELECT * FROM session ORDER BY rowid"))
    found: list[Imported] = []
    for row in sessions:
        told = {"created": row.get("time_created"), "updated": row.get("time_updated")}
        revert = _data({"data": row["revert"]}, report) if row.get("revert") else None
        named = {"id": row["id"], "parentID": row.get("parent_id"), "title": row.get("title"), "time": told}
        info = {**named, "directory": row.get("directory"), "version": row.get("version"), "revert": revert}
        found += _session(info, said.get(row["id"], []), report)
    return found


def _data(row: Mapping[str, Any], report: ImportReport) -> Info:
    try:
        value = encoding.decode(content.as_text(row.get("data")).encode())
    except ValueError:
        value = None
    if not isinstance(value, dict):
        report.skipped["row that is no object"] += 1
        return {}
    return value


# ---------------------------------------------------------------- a session


def _session(info: Info, said: Said, report: ImportReport) -> list[Imported]:
    own = word(info.get("id"))
    said = sorted(said, key=_when)
    made = [_messages(own, message, parts, report) for message, parts in said]
    revert = info.get("revert")
    target = word(revert.get("messageID")) if isinstance(revert, dict) else ""
    kept = next(
        (number for number, (message, _) in enumerate(said) if target and message.get("id") == target), len(made)
    )
    caller = word(info.get("parentID"))
    key, title, told = f"opencode:{own}", info.get("title"), info.get("time")
    created = told.get("created") if isinstance(told, dict) else None
    found: list[Imported] = []
    for end in dict.fromkeys((kept, len(made))):
        messages = [dict(message) for one in made[:end] for message in one]
        shared = sum(map(len, made[:kept])) if found else 0
        if not messages or (found and len(messages) == shared):
            continue
        fill_times(messages, iso(created))
        found.append(
            Imported(
                key=f"{key}#{messages[shared]['id']}" if found else key,
                conversation=key,
                title=title if isinstance(title, str) and title.strip() else None,
                tags=(SUB_AGENT,) if caller else (),
                messages=messages,
                parent_key=key if found else None,
                shared=shared,
                meta={"subagent_of": {"key": f"opencode:{caller}"}} if caller and not found else {},
                source={
                    **{name: info[name] for name in ("directory", "version") if word(info.get(name))},
                    **({"agent": own} if caller else {}),
                },
                created=times.parse(created),
            )
        )
    return found


def _when(one: tuple[Info, list[Info]]) -> tuple[float, str]:
    told = one[0].get("time")
    created = told.get("created") if isinstance(told, dict) else None
    return (float(created) if isinstance(created, int | float) else 0.0, word(one[0].get("id")))


def _messages(session: str, info: Info, parts: Sequence[Info], report: ImportReport) -> list[Message]:
    own = word(info.get("id"))
    plain: Info = {"id": f"oc_{own}" if is_unique(own) else f"oc_{session}_{own}"}
    told = info.get("time")
    if (moment := iso(told.get("created") if isinstance(told, dict) else None)) is not None:
        plain["timestamp"] = moment
    if info.get("role") == "assistant":
        return _answer(plain, info, parts, report)
    said: list[Any] = []
    notes: list[str] = []
    for part in parts:
        kind = word(part.get("type"))
        if kind == "text":
            is_own = part.get("synthetic") is not True and part.get("ignored") is not True
            (said if is_own else notes).append(content.as_text(part.get("text")))
        elif kind == "file":
            said.append(_file(part))
        elif kind == "subtask":
            said.append(content.as_text(part.get("prompt")))
        elif kind not in _SILENT and (texts := texts_in(part)):
            report.unknown[kind] += 1
            notes += texts
        else:
            report.skipped[f"part: {kind}"] += 1
    said = [part for part in said if not isinstance(part, str) or part.strip()]
    beside = {**plain, "id": f"{plain['id']}:note"} if said else plain
    prompt = [{"role": "user", "content": joined(said), **plain}] if said else []
    return [*prompt, *note("\n\n".join(notes), "put beside a prompt", beside)]


def _file(part: Info) -> Any:
    url, kind, name = word(part.get("url")), word(part.get("mime")), word(part.get("filename"))
    if url.startswith("data:text/"):
        head, _, body = url.partition(",")
        if not head.endswith(";base64"):
            return attached(name, urllib.parse.unquote(body))
    return file_part(url, kind, name)


def _answer(plain: Info, info: Info, parts: Sequence[Info], report: ImportReport) -> list[Message]:
    model = info.get("model")
    if name := word(info.get("modelID")) or (word(model.get("modelID")) if isinstance(model, dict) else ""):
        plain["model"] = name
    steps = Steps(plain)
    is_counted = False
    for number, part in enumerate(parts):
        kind = word(part.get("type"))
        if kind == "text":
            steps.say(content.as_text(part.get("text")))
        elif kind == "reasoning":
            steps.think(content.as_text(part.get("text")))
        elif kind == "tool":
            _tool(steps, part, f"{plain['id']}:call{number}")
        elif kind == "step-start":
            steps.next()
        elif kind == "step-finish":
            spent = _spent(part)
            is_counted = is_counted or bool(spent)
            steps.tell(**spent)
        elif kind == "file":
            steps.say(_file(part))
        elif kind == "subtask":
            steps.say(content.as_text(part.get("prompt")))
        elif kind not in _SILENT and (texts := texts_in(part)):
            report.unknown[kind] += 1
            steps.unknown(kind, texts)
        else:
            report.skipped[f"part: {kind}"] += 1
    error = info.get("error")
    if isinstance(error, dict):
        data = error.get("data")
        if error.get("name") == "MessageAbortedError":
            steps.tell(interrupted=True)
        else:
            steps.say(content.as_text(data.get("message") if isinstance(data, dict) else error.get("name")))
            steps.tell(finish_reason="error")
    if not is_counted:
        steps.tell(**_spent(info))
    if info.get("summary") is True:
        steps.tell(source={"kind": "compaction"})
    return steps.messages()


def _tool(steps: Steps, part: Info, spare_id: str) -> None:
    told = part.get("state")
    state: Info = told if isinstance(told, dict) else {}
    call_id, name = word(part.get("callID")) or spare_id, content.as_text(part.get("tool"))
    steps.call(call_id, name, state.get("input"), with_results=True)
    if state.get("status") not in ("completed", "error"):
        return
    more: Info = {"is_error": True} if state["status"] == "error" else {}
    moments = state.get("time")
    began, ended = (moments.get("start"), moments.get("end")) if isinstance(moments, dict) else (None, None)
    if isinstance(began, int) and isinstance(ended, int) and ended >= began:
        more["duration_ms"] = ended - began
    details = state.get("metadata")
    child = word(details.get("sessionId")) or word(details.get("sessionID")) if isinstance(details, dict) else ""
    if child:
        more["source"] = {"agent": child}
    said = state.get("error" if more.get("is_error") else "output")
    steps.result(call_id, content.as_text(said), name, **more)


def _spent(told: Info) -> Info:
    """The tokens and money of a request, as keys of a message; ``input`` holds no cached tokens."""
    tokens = told.get("tokens")
    made: Message = {}
    if isinstance(tokens, dict):
        cache = tokens.get("cache")
        read, written = (cache.get("read"), cache.get("write")) if isinstance(cache, dict) else (None, None)
        sent, output, thought = tokens.get("input"), tokens.get("output"), tokens.get("reasoning")
        counts = [value for value in (sent, output, thought, read, written) if type(value) is int]
        if type(sent) is int and type(output) is int and any(counts):
            inside = tokens.get("total") == sent + output + sum(v for v in (read, written) if type(v) is int)
            generated = output if inside or type(thought) is not int else output + thought
            asked = sent + sum(value for value in (read, written) if type(value) is int)
            counted: Info = {
                "prompt_tokens": asked,
                "completion_tokens": generated,
                "total_tokens": asked + generated,
                "prompt_tokens_details": {"cached_tokens": read, "cache_write_tokens": written},
                "completion_tokens_details": {"reasoning_tokens": thought},
            }
            set_usage(made, counted)
            made["usage_reported"] = tokens
    cost = told.get("cost")
    if isinstance(cost, int | float) and not isinstance(cost, bool) and cost > 0:  # 0 where no price is known
        made["cost_usd"] = cost
    return made


READER = Reader(
    "opencode",
    "opencode",
    looks_like,
    read,
    places=(".local/share/opencode/storage", ".local/share/opencode/opencode.db"),
)
