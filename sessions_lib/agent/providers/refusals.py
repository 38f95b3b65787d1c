"""What providers refuse, and the one thing that is changed then: the table, and nowhere else an ``if model ==``.

A refusal is read for what it names. Only that is changed, in the request as Chat Completions spells it, and said in a
sentence before the answer. Tools are never dropped: ``ToolsRefused`` asks the person.

Does not send anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sessions_lib.messages import content

Request = dict[str, Any]
STATUSES = (400, 404, 405, 415, 422, 500, 501)  # of a refusal that names a setting, as seen; 5xx of local servers
_WIRES = ("responses", "chat")
_NO_ROUTE = (404, 405, 501)
_ONCE = ("items",)  # what is true of this request alone: the next one may have other reasoning to send
_PICTURE = "this model takes no pictures"
_SKIP = "skip_thought_signature_validator"  # Google's own word for a call that another model made


@dataclass(frozen=True, slots=True)
class Rule:
    """``names`` is what a refusal says; ``change`` makes the request that is sent instead, or ``None`` if it cannot.

    ``said`` is the sentence for the person, ``key`` what a session remembers of it.
    """

    key: str
    names: re.Pattern[str]
    change: Callable[[Request], Request | None]
    said: str


def _without(*keys: str) -> Callable[[Request], Request | None]:
    def change(request: Request) -> Request | None:
        if not any(key in request for key in keys):
            return None
        return {key: value for key, value in request.items() if key not in keys}

    return change


def _without_of_responses(key: str) -> Callable[[Request], Request | None]:
    def change(request: Request) -> Request | None:
        if request.get("wire") != "responses" or key in request.get("without", ()):
            return None
        return {**request, "without": [*request.get("without", ()), key]}

    return change


def _effort_none(request: Request) -> Request | None:
    """No effort was asked for: the one that takes tools. One that was is kept, over the other wire."""
    if "reasoning_effort" in request or request.get("wire") == "responses" or not request.get("tools"):
        return None
    return {**request, "reasoning_effort": "none", "effort_is_ours": True}


def _responses(request: Request) -> Request | None:
    if request.get("wire") == "responses":
        return None
    kept = {key: value for key, value in request.items() if key != "stream_options"}
    if kept.get("reasoning_effort") == "none" and kept.get("effort_is_ours"):
        del kept["reasoning_effort"]
    return {**kept, "wire": "responses"}


def _chat(request: Request) -> Request | None:
    return {**request, "wire": "chat"} if request.get("wire") == "responses" else None


def _renamed(request: Request) -> Request | None:
    if "max_tokens" not in request:
        return None
    kept = {key: value for key, value in request.items() if key != "max_tokens"}
    return {**kept, "max_completion_tokens": request["max_tokens"]}


def _without_pictures(request: Request) -> Request | None:
    found = False
    said = []
    for message in request["messages"]:
        parts = message.get("content")
        if isinstance(parts, list) and any(part.get("type") == "image_url" for part in parts):
            found = True
            texts = [
                part.text if part.kind == "text" else f"[{part.label}: {_PICTURE}]" for part in content.parts(message)
            ]
            message = {**message, "content": "\n".join(texts)}
        said.append(message)
    return {**request, "messages": said} if found else None


def _role(role: str) -> Callable[[Request], Request | None]:
    def change(request: Request) -> Request | None:
        said = [
            {**message, "role": role} if message["role"] in ("system", "developer") else message
            for message in request["messages"]
        ]
        return {**request, "messages": said} if said != request["messages"] else None

    return change


def _system_as_user(request: Request) -> Request | None:
    """The system prompt in front of the first prompt: templates without one."""
    first, *rest = request["messages"]
    if first["role"] not in ("system", "developer") or not rest or rest[0]["role"] != "user":
        return None
    given = rest[0]["content"]
    joined = f"{first['content']}\n\n{given}" if isinstance(given, str) else [_text(first["content"]), *given]
    return {**request, "messages": [{**rest[0], "content": joined}, *rest[1:]]}


def _text(text: Any) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _without_items(request: Request) -> Request | None:
    said = [{key: value for key, value in one.items() if key != "items"} for one in request["messages"]]
    return {**request, "messages": said} if said != request["messages"] else None


def _signed(request: Request) -> Request | None:
    """Google's word on the calls that no model of theirs signed."""
    mark = {"extra_content": {"google": {"thought_signature": _SKIP}}}
    said = [
        {**one, "tool_calls": [{**mark, **call} for call in one["tool_calls"]]} if one.get("tool_calls") else one
        for one in request["messages"]
    ]
    return {**request, "messages": said} if said != request["messages"] else None


def _with_reasoning(request: Request) -> Request | None:
    said = [
        {**one, "reasoning_content": ""} if one.get("tool_calls") and "reasoning_content" not in one else one
        for one in request["messages"]
    ]
    return {**request, "messages": said} if said != request["messages"] else None


def _rule(key: str, names: str, change: Callable[[Request], Request | None], said: str) -> Rule:
    return Rule(key, re.compile(names, re.IGNORECASE | re.DOTALL), change, said)


_REFUSED = (
    r"(not support|n't support|unsupported|unrecognized|unknown|unexpected|not permitted|not allowed|extra|invalid)"
)

# In the order they are tried: the first that the refusal names, and that changes anything.
RULES = [
    _rule(
        "effort", r"(function )?tools?.{0,160}reasoning_effort|reasoning_effort.{0,160}(function )?tool", _effort_none,
        "This model takes tools with reasoning effort “none” only over Chat Completions, so it is asked with that.",
    ),
    _rule(
        "responses",
        r"v1/responses|responses api|reasoning_effort.{0,80}(none|unsupported value|tool)",
        _responses, "This model is asked over the Responses API instead, as its server wants it.",
    ),
    _rule(
        "stream_options", r"stream_options|include_usage", _without("stream_options"),
        "This server takes no stream_options: it may not say how many tokens it took.",
    ),
    _rule(
        "temperature", r"temperature", _without("temperature"),
        "This model takes no temperature, so it answers with its own.",
    ),
    _rule("top_p", r"top_p", _without("top_p"), "This model takes no top_p, so it answers with its own."),
    _rule(
        "reasoning_effort", rf"{_REFUSED}.{{0,80}}reasoning[_.]effort|reasoning.?effort.{{0,80}}{_REFUSED}",
        _without("reasoning_effort"), "This model takes no reasoning effort, so it thinks as it does by itself.",
    ),
    _rule(
        "max_tokens", r"max_tokens.{0,80}max_completion_tokens", _renamed,
        "This model names its limit max_completion_tokens; the limit is the same.",
    ),
    _rule(
        "parallel_tool_calls", r"parallel_tool_calls", _without("parallel_tool_calls"),
        "This server takes no parallel_tool_calls, so it decides that by itself.",
    ),
    _rule("tool_choice", r"tool_choice", _without("tool_choice"), "This server takes no tool_choice."),
    _rule(
        "items", r"encrypted_content|invalid_encrypted|reasoning item|\brs_\w+|item.{0,40}not found",
        _without_items, "The model does not take its earlier reasoning back, so it is asked without.",
    ),
    _rule(
        "include", r"encrypted content|reasoning\.encrypted_content|\binclude\b", _without_of_responses("include"),
        "This server keeps no reasoning for later turns.",
    ),
    _rule(
        "summary", r"reasoning.{0,20}summar|summaries", _without_of_responses("summary"),
        "This server tells no summary of its reasoning.",
    ),
    _rule("store", r"\bstore\b", _without_of_responses("store"), "This server takes no “store”."),
    _rule(
        "pictures",
        r"image_url|image input|images?\b.{0,60}not support|not support.{0,60}image|multimodal|vision",
        _without_pictures, "This model takes no pictures: it is told that there was one, and does not see it.",
    ),
    _rule(
        "signature", r"thought_signature", _signed,
        "Another model made the earlier calls, which this one is told.",
    ),
    _rule(
        "reasoning", r"reasoning_content", _with_reasoning,
        "The earlier calls were made without reasoning that this model could have back.",
    ),
    _rule(
        "developer", r"system.{0,60}(role|not support)|role.{0,60}system", _role("developer"),
        "This model takes its system prompt as the developer's.",
    ),
    _rule(
        "system", r"developer", _role("system"), "This server takes its system prompt as the system's.",
    ),
    _rule(
        "no_system", r"system.{0,60}(role|not support)|role.{0,60}(system|developer)", _system_as_user,
        "This model takes no system prompt: it stands in front of the first prompt.",
    ),
    _rule(  # the last: only where nothing else is named
        "chat",
        r"\A(?!.*(model|item|param|argument|tool|content)).*(not found|cannot post|not allowed|no route|unknown path)",
        _chat, "This server does not speak the Responses API, so it is asked over Chat Completions.",
    ),
]  # fmt: skip
_TOOLS = re.compile(
    r"not support.{0,30}(tool|function)|(tool|function)s?\b.{0,60}(not support|unsupported|not allowed|not available)"
    r"|enable-auto-tool-choice|tool-call-parser|unrecognized.{0,40}\btools\b|--jinja",
    re.IGNORECASE | re.DOTALL,
)


def changed(request: Request, words: str, before: Mapping[str, Any], status: int = 400) -> tuple[Rule, Request] | None:
    """The rule that the ``words`` of a refusal name, and the request it makes; ``None`` if there is none.

    ``before`` are the rules by which it was changed already: none is tried twice.
    """
    tried = {*before, *(_WIRES if wire_in(before) else ())}  # nobody is sent from wire to wire
    if status not in _NO_ROUTE or names_tools(words):
        tried.add("chat")
    for rule in RULES:
        if rule.key not in tried and rule.names.search(words) and (made := rule.change(request)) is not None:
            return rule, made
    return None


def lasting(keys: Iterable[str]) -> list[str]:
    """Those of ``keys`` that hold for the next request, too."""
    return [key for key in keys if key not in _ONCE]


def wire_in(keys: Iterable[str]) -> str | None:
    """The wire that a server was found to want; ``None`` if it was not asked to change."""
    return next((key for key in keys if key in _WIRES), None)


def remembered(request: Request, keys: Iterable[str]) -> tuple[list[Rule], Request]:
    """``request`` as it was taken last time, by the rules of these ``keys``, and those that changed it."""
    used, keys = [], set(keys)
    for rule in RULES:
        if rule.key in keys and (made := rule.change(request)) is not None:
            request = made
            used.append(rule)
    return used, request


def sent(request: Request) -> Request:
    """``request`` without what only this table reads in it."""
    return {key: value for key, value in request.items() if key not in ("wire", "without", "effort_is_ours")}


def names_tools(words: str) -> bool:
    """True if a refusal says that this server or model takes no tools."""
    return bool(_TOOLS.search(words))
