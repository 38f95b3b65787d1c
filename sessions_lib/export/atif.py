"""A session as a trajectory of the Agent Trajectory Interchange Format (ATIF 1.8), which training and evaluation read.

Source: https://github.com/harbor-framework/harbor/blob/main/rfcs/0001-trajectory-format.md. A step is a system prompt,
a prompt, or an answer with its tool calls and their results. The steps that a fork copied from its parent have
``is_copied_context``: whoever trains on several branches must leave them out. The format forbids keys of its own, so
what it has no name for stands in ``extra``: of a message all its other keys, of the session its metadata.

Metrics are what was reported, and money as it is computed here; unknown is left out, never 0.

Does not need the package ``atif``, whose models say that a trajectory is one.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sessions_lib import messages, names, prices, times
from sessions_lib.export import facts
from sessions_lib.messages import content, model_calls, tool_calls, usage
from sessions_lib.messages.content import Message, Part

SCHEMA = "ATIF-v1.8"
_PICTURES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_SOUNDS = ("wav", "mpeg", "mp4", "aac", "ogg", "flac", "webm", "aiff", "mp3")
_SOURCES = {"user": "user", "assistant": "agent"}
_NAMED = {"role", "content", "timestamp", "tool_calls", "tool_call_id"}  # keys that a step says otherwise
_NAMED_OF_ANSWERS = {"model", "reasoning_content", "reasoning", "refusal", "usage"}


def trajectory(said: Sequence[Message], meta: Mapping[str, Any]) -> dict[str, Any]:
    """The session as one trajectory; ``meta`` is its metadata with its ``id``."""
    steps = list(_steps(said, meta))
    origin = meta.get("imported_from")
    tool = origin.get("tool") if isinstance(origin, Mapping) else None
    tools = meta.get("tools")
    agent = {
        "name": content.as_text(tool) or "forkbook",
        "version": "unknown" if tool else _version(),
        "model_name": content.as_text(meta.get("model")) or None,
        "tool_definitions": tools if isinstance(tools, list) and all(isinstance(one, dict) for one in tools) else None,
    }
    return _known(
        schema_version=SCHEMA,
        session_id=content.as_text(meta.get("id")) or None,
        trajectory_id=content.as_text(meta.get("id")) or None,
        agent=_known(**agent),
        steps=[{"step_id": number, **step} for number, step in enumerate(steps, start=1)],
        final_metrics=_sums(said, meta, len(steps)),
        extra={"title": facts.title(said, meta), **{key: value for key, value in meta.items() if key != "id"}},
    )


def _version() -> str:
    from importlib import metadata

    try:
        return metadata.version("forkbook")
    except metadata.PackageNotFoundError:  # a clone that was never installed
        return "unknown"


def _known(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _steps(said: Sequence[Message], meta: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The steps in order, without numbers: the system prompt, then a step a message, results with their answers."""
    system = meta.get("system")
    if isinstance(system, str) and system.strip():
        yield {"source": "system", "message": system}
    pairing = tool_calls.pair(said)
    steps: dict[int, list[tool_calls.Step]] = {}
    for step in pairing.steps:
        steps.setdefault(step.call.message, []).append(step)
    answered = {step.result_message for step in pairing.steps}
    origin = facts.fork_point(meta)
    inherited = origin[1] if origin else 0
    moments, settings = messages.effective_times(said), prices.settings_of(meta)
    for index, message in enumerate(said):
        if index in answered:
            continue  # it stands in the step of its call
        role = message.get("role")
        source = _SOURCES.get(str(role), "system")
        is_answer = source == "agent"
        named = _NAMED | (_NAMED_OF_ANSWERS if is_answer else set())
        extra = {key: value for key, value in message.items() if key not in named}
        if source == "system" and role != "system":
            extra["role"] = role
        yield _known(
            timestamp=_time(message),
            source=source,
            message="" if role == "tool" else _said(message),
            **(_answered(message, steps.get(index, []), moments[index], settings) if is_answer else {}),
            **({"observation": {"results": [_result(message)]}} if role == "tool" else {}),  # a result without a call
            extra=extra or None,
            is_copied_context=True if index < inherited else None,
        )


def _answered(
    message: Message, steps: Sequence[tool_calls.Step], when: datetime | None, settings: tuple[str, str]
) -> dict[str, Any]:
    """What only an agent's step has: model, reasoning, calls, their results, metrics."""
    calls, results, taken = [], [], set[str]()
    for step in steps:
        call = step.call
        call_id = names.unique_id(call.id or f"call-{call.position + 1}", taken)
        taken.add(call_id.lower())
        given = tool_calls.arguments(call)
        extra = None if given is not None else {"arguments": call.arguments}  # no object: as the model wrote it
        calls.append(
            _known(tool_call_id=call_id, function_name=call.name or "unnamed tool", arguments=given or {}, extra=extra)
        )
        if step.result is not None:
            results.append({"source_call_id": call_id, **_result(step.result)})
    made = model_calls.of(message)
    return {
        "model_name": content.as_text(message.get("model")) or None,
        "reasoning_content": content.reasoning(message) or None,
        "tool_calls": calls or None,
        "observation": {"results": results} if results else None,
        "metrics": _metrics(message, prices.spent((call, when, prices.host_of(message, settings)) for call in made)),
        "llm_call_count": len(made) if len(made) > 1 else None,
    }


def _result(message: Message) -> dict[str, Any]:
    extra = {key: value for key, value in message.items() if key not in {"role", "content", "tool_call_id"}}
    return _known(content=_said(message), extra=extra or None)


def _metrics(message: Message, money: prices.Spent) -> dict[str, Any] | None:
    tokens = usage.of(message)
    if tokens is None:
        return None
    return _known(
        prompt_tokens=tokens.input,
        completion_tokens=tokens.output,
        cached_tokens=tokens.cached,
        cost_usd=money.cost,
        extra={"usage": message["usage"]},
    )


def _sums(said: Sequence[Message], meta: Mapping[str, Any], steps: int) -> dict[str, Any]:
    """The sums over all steps, and in ``extra`` those of what this session wrote itself."""
    origin = facts.fork_point(meta)
    inherited = min(origin[1], len(said)) if origin else 0
    own = _totals(said, meta, inherited) if inherited else None
    return {**_totals(said, meta, 0), "total_steps": steps, **_known(extra={"own": own} if own is not None else None)}


def _totals(said: Sequence[Message], meta: Mapping[str, Any], start: int) -> dict[str, Any]:
    tokens = usage.total(said[start:])
    return _known(
        total_prompt_tokens=tokens.input,
        total_completion_tokens=tokens.output,
        total_cached_tokens=tokens.cached,
        total_cost_usd=prices.of(said, meta, start).cost,
    )


def _time(message: Message) -> str | None:
    moment = times.parse(message.get("timestamp"))
    return times.iso(moment) if moment else None


def _said(message: Message) -> str | list[dict[str, Any]]:
    """A text, or the parts where there are pictures or sounds: those the format has no type for are named."""
    parts = content.parts(message)
    if all(part.kind == "text" for part in parts):
        return facts.said(message)
    given = message.get("content")
    items = given if isinstance(given, list) else [given]
    return [_part(part, item) for part, item in zip(parts, items, strict=True)]


def _part(part: Part, item: Any) -> dict[str, Any]:
    if part.kind == "text":
        return {"type": "text", "text": part.text}
    if part.kind == "image" and (kind := _picture_type(part.url)):
        return {"type": "image", "source": {"media_type": kind, "path": part.url}}
    sound = item.get("input_audio") if isinstance(item, Mapping) else None
    if isinstance(sound, Mapping) and sound.get("format") in _SOUNDS:
        kind = f"audio/{'mpeg' if sound['format'] == 'mp3' else sound['format']}"
        address = f"data:{kind};base64,{content.as_text(sound.get('data'))}"
        return {"type": "audio", "source": {"media_type": kind, "path": address}}
    address = f" {part.url[:500]}" if part.url and not part.url.startswith("data:") else ""
    return {"type": "text", "text": f"[{part.label}]{address}"}


def _picture_type(url: str) -> str | None:
    kind = url[5:].partition(";")[0].lower() if url.startswith("data:") else mimetypes.guess_type(url)[0]
    return kind if kind in _PICTURES else None
