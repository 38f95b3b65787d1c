"""ATIF: a trajectory of the Agent Trajectory Interchange Format, of any version 1, and the ones of its sub-agents.

A step is a message; an agent's ``observation`` holds the results of its calls. ``is_copied_context`` marks what was
said in another session; our own exports come back with the keys that they kept under ``extra``.

Message ids are those of our own exports, else ``at_``, the trajectory's id and the number of the step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessions_lib import times
from sessions_lib.importers.imported import SUB_AGENT, Imported, ImportReport, fill_times, iso, objects, set_usage, word
from sessions_lib.importers.reader import Reader
from sessions_lib.importers.source import Records, Source
from sessions_lib.importers.steps import Steps, joined
from sessions_lib.messages import content
from sessions_lib.messages.content import Message

Record = Mapping[str, Any]
_OURS = ("id", "title", "tags", "forked_from", "merged_from", "imported_from", "version", "created")


def looks_like(records: Records) -> bool:
    """True for a trajectory, by its version."""
    return any(_is_one(item) for item in records.items)


def _is_one(item: Record) -> bool:
    return word(item.get("schema_version")).startswith("ATIF-") and isinstance(item.get("steps"), list)


def read(source: Source, records: Records, report: ImportReport) -> list[Imported]:
    """Each trajectory, and those of its sub-agents behind it."""
    listed = records.document if records.is_list else [records.whole or None]
    if not records.is_document and not records.whole:
        listed = [record for _, record in records.lines]
    waiting: list[tuple[Any, str]] = [(one, "") for one in listed]
    found: list[Imported] = []
    while waiting:
        one, caller = waiting.pop(0)
        if not isinstance(one, Mapping) or not isinstance(one.get("steps"), list):
            report.skipped["entry that is no trajectory"] += 1
            continue
        made = _trajectory(one, caller, f"{source.name}:{len(found)}", report)
        key = made.key if made is not None else caller
        found += [made] if made is not None else []
        below = one.get("subagent_trajectories")
        waiting[:0] = [(child, key) for child in (below if isinstance(below, list) else ())]
    return found


def _trajectory(one: Record, caller: str, spare: str, report: ImportReport) -> Imported | None:
    own = word(one.get("trajectory_id")) or word(one.get("session_id")) or spare
    told, agent = one.get("extra"), one.get("agent")
    extra: dict[str, Any] = dict(told) if isinstance(told, Mapping) else {}
    named: Record = agent if isinstance(agent, Mapping) else {}
    model = word(named.get("model_name"))
    is_ours = named.get("name") == "forkbook" or "imported_from" in extra
    messages: list[Message] = []
    system = ""
    for number, step in enumerate(one["steps"]):
        if not isinstance(step, Mapping):
            report.skipped["entry that is no step"] += 1
            continue
        if (
            number == 0
            and step.get("source") == "system"
            and not step.get("extra")
            and isinstance(step.get("message"), str)
        ):
            system = step["message"]
            continue
        messages += _messages(f"at_{own}_{content.as_text(step.get('step_id')) or number}", step, model, report)
    if not messages:
        report.skipped["trajectory without messages"] += 1
        return None
    fill_times(messages, None)
    tags, title = extra.get("tags"), extra.get("title")
    key = f"atif:{own}"
    kept = {name: value for name, value in extra.items() if name not in _OURS} if is_ours else {}
    meta: dict[str, Any] = {**kept, **({"system": system} if system.strip() else {})}
    if caller:
        meta["subagent_of"] = {"key": caller}
    copied = sum(1 for step in one["steps"] if isinstance(step, Mapping) and step.get("is_copied_context") is True)
    return Imported(
        key=key,
        conversation=key,
        title=title if isinstance(title, str) and title.strip() else None,
        tags=((SUB_AGENT,) if caller else ())
        + (tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else ()),
        messages=messages,
        meta=meta,
        source={
            **{f"agent_{name}": named[name] for name in ("name", "version") if word(named.get(name))},
            **({"agent": own} if caller else {}),
            **({"copied_steps": copied} if copied else {}),
        },
        created=times.parse(messages[0].get("timestamp")),
    )


def _messages(message_id: str, step: Record, model: str, report: ImportReport) -> list[Message]:
    told = step.get("extra")
    extra: dict[str, Any] = dict(told) if isinstance(told, Mapping) else {}
    plain: dict[str, Any] = {"id": message_id, **{key: extra[key] for key in extra if key not in ("role", "content")}}
    if (moment := iso(step.get("timestamp"))) is not None:
        plain["timestamp"] = moment
    said = _said(step.get("message"))
    kind = word(step.get("source"))
    if kind == "agent":
        return _answer(plain, said, step, model)
    role = word(extra.get("role"))
    results = _results(step)
    if role == "tool" and results:
        return [{**plain, "role": "tool", "tool_call_id": word(extra.get("tool_call_id")), **results[0][1]}]
    if kind not in ("user", "system"):
        report.unknown[kind or "step without a source"] += 1
    if said in (None, ""):
        report.skipped["step without a message"] += 1
        return []
    return [{**plain, "role": kind if kind == "user" else role or "system", "content": said}]


def _said(said: Any) -> Any:
    """A text, or the parts where there is more."""
    if not isinstance(said, list):
        return content.as_text(said) if said is not None else None
    parts: list[Any] = []
    for part in said:
        source = part.get("source") if isinstance(part, Mapping) else None
        if isinstance(source, Mapping) and part.get("type") == "image":
            parts.append({"type": "image_url", "image_url": {"url": content.as_text(source.get("path"))}})
        elif isinstance(part, Mapping) and part.get("type") == "text":
            parts.append(content.as_text(part.get("text")))
        else:
            parts.append(part)
    return joined(parts)


def _results(step: Record) -> list[tuple[str, Message]]:
    observed = step.get("observation")
    listed = observed.get("results") if isinstance(observed, Mapping) else None
    found: list[tuple[str, Message]] = []
    for one in listed if isinstance(listed, list) else ():
        if isinstance(one, Mapping):
            told = one.get("extra")
            kept = dict(told) if isinstance(told, Mapping) else {}
            agents = one.get("subagent_trajectory_ref")
            if isinstance(agents, list) and agents and isinstance(agents[0], Mapping):
                child = word(agents[0].get("trajectory_id")) or word(agents[0].get("session_id"))
                kept |= {"source": {"agent": child}} if child else {}
            found.append((word(one.get("source_call_id")), {"content": _said(one.get("content")) or "", **kept}))
    return found


def _answer(plain: dict[str, Any], said: Any, step: Record, model: str) -> list[Message]:
    plain = {**plain, **({"model": name} if (name := word(step.get("model_name")) or model) else {})}
    own: dict[str, Any] = {key: plain[key] for key in ("id", "timestamp", "model") if key in plain}
    steps = Steps(own)
    steps.think(word(step.get("reasoning_content")))
    for part in said if isinstance(said, list) else [said] if said else []:
        steps.say(part)
    names: dict[str, str] = {}
    for number, call in enumerate(objects(step.get("tool_calls"))):
        if call:
            call_id = word(call.get("tool_call_id")) or f"{own['id']}:call{number}"
            told = call.get("extra")
            raw = told.get("arguments") if isinstance(told, Mapping) else None
            names[call_id] = word(call.get("function_name"))
            steps.call(call_id, names[call_id], raw if isinstance(raw, str) else call.get("arguments"))
    for number, (call_id, result) in enumerate(_results(step)):
        call_id = call_id or next(iter(names), f"{own['id']}:observed{number}")
        result = {"name": names.get(call_id, ""), **result}
        steps.result(call_id, result.pop("content"), **{key: value for key, value in result.items() if value != ""})
    made = steps.messages()
    if not made:
        made = [{"role": "assistant", "content": None, **own}]
    made[0] = {**plain, **made[0]}
    _count(made[0], step.get("metrics"))
    return made


def _count(message: Message, metrics: Any) -> None:
    if not isinstance(metrics, Mapping):
        return
    told = metrics.get("extra")
    kept = told.get("usage") if isinstance(told, Mapping) else None
    if isinstance(kept, Mapping):  # what was reported, in one of our own exports
        message["usage"] = dict(kept)
        return
    sent, output, cached = (metrics.get(name) for name in ("prompt_tokens", "completion_tokens", "cached_tokens"))
    counted: dict[str, Any] = {"prompt_tokens": sent, "completion_tokens": output}
    counted = {name: value for name, value in counted.items() if type(value) is int}
    if len(counted) == 2:
        counted["total_tokens"] = sum(counted.values())
    if type(cached) is int:
        counted["prompt_tokens_details"] = {"cached_tokens": cached}
    set_usage(message, counted)
    if "usage_reported" in message:
        message["usage_reported"] = dict(metrics)
    if isinstance(metrics.get("cost_usd"), int | float):
        message["cost_usd"] = metrics["cost_usd"]


READER = Reader("atif", "ATIF trajectory", looks_like, read, aliases=("harbor",))
