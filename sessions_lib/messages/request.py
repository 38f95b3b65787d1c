"""The messages of a session as any Chat Completions provider accepts them, also the strictest.

* One system message, in front: templates of local models take none anywhere else. What another tool noted among the
  messages (a command that the person ran, what another agent wrote) is no instruction: it is told where it stands, as
  the user's.
* No two messages of one role behind each other, but for results: neighbours are joined, with a blank line between.
* Every call answered exactly once, right behind its message, in call order; ids of nine letters and digits, which
  Mistral wants and all others take. Nothing empty: what says nothing is left out, or a word says that it is empty.
* A result of megabytes is sent short, with a sentence for the model; the whole stays in the session.
* A provider's own keys go back to the model that made them, and to no other.

Pure functions: no message that is given is changed, and an equal list gives an equal request.
"""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sessions_lib.messages import content, tool_calls
from sessions_lib.messages.content import Message
from sessions_lib.messages.message import clean, note

LONGEST_RESULT = 100_000  # characters of a tool's result that are sent
TAIL = 20_000  # of them the last ones
_NO_TOOL_NAME = re.compile(r"[^A-Za-z0-9_-]")  # OpenAI refuses a history with any other tool name, or a longer one
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")  # and any other name of a person
_NINE = re.compile(r"[A-Za-z0-9]{9}")
_SENT_PARTS = ("text", "image_url", "input_audio", "file")
_EMPTY, _NO_OUTPUT = "(empty)", "(no output)"
_LETTERS_A_TOKEN = 3
SEND_FROM = "send_from"  # in the metadata of a session: the message from which on its history is sent
SEND_EVERYTHING = "send_everything"  # in the metadata of a session: its summaries replace nothing
_SUMMARY = "(What was said before, summed up:)"
_BEGUN = "(The assistant spoke first.)"

IsOwn = Callable[[Message], bool]


def for_request(
    messages: Sequence[Message], system: str | None = None, *, is_own: IsOwn | None = None, keeps_ids: bool = False
) -> list[Message]:
    """The messages as any Chat Completions provider accepts them, with all system texts in front, ``system`` first.

    Only the provider's keys; an unanswered call gets an error that says the outcome is unknown; orphan and duplicate
    results, roles no provider knows, and assistant messages with neither text nor calls are left out; arguments that
    are no JSON object become ``{}``. ``is_own`` says of a stored message that the model to be asked made it: its opaque
    values (see ``wire`` in ``message``) go back with it. ``keeps_ids`` leaves the ids of calls as they are, but for
    very long ones: for a file that is read by people.
    """
    messages = [*_modern(messages)]
    answers = {(step.call.message, step.call.position): step for step in tool_calls.pair(messages).steps}
    last_prompt = max((index for index, message in enumerate(messages) if message.get("role") == "user"), default=-1)
    systems = [system] if system and system.strip() else []
    ids, sent = _CallIds(are_kept=keeps_ids), list[Message]()
    for index, message in enumerate(messages):
        role = message.get("role")
        if role == "assistant":
            own = _owned(message, is_within_turn=index > last_prompt) if is_own and is_own(message) else None
            sent += _assistant(message, index, answers, ids, own)
        elif role == "user":
            sent.append(_user(message))
        elif note(message):
            sent += [_user(message)] if _text_of(message).strip() else []
        elif role in ("system", "developer"):
            systems.append(_text_of(message))
    head = "\n\n".join(dict.fromkeys(clean(text).strip("\n") for text in systems if text.strip()))
    return [*([{"role": "system", "content": head}] if head else []), *_without_neighbours(sent)]


def _modern(stored: Sequence[Message]) -> Iterator[Message]:
    """``stored`` with the calls and results of the legacy form (``function_call``, role ``function``) in today's."""
    waiting: dict[str, str] = {}  # tool -> the id its call was given
    for index, message in enumerate(stored):
        function = message.get("function_call")
        if message.get("role") == "assistant" and isinstance(function, Mapping) and not message.get("tool_calls"):
            waiting[content.as_text(function.get("name"))] = f"function_{index}"
            yield {**message, "tool_calls": [{"id": f"function_{index}", "type": "function", "function": function}]}
        elif message.get("role") == "function":
            yield {**message, "role": "tool", "tool_call_id": waiting.pop(content.as_text(message.get("name")), "")}
        else:
            yield message


def summed_up(stored: Sequence[Message]) -> int | None:
    """The index of the newest summary that stands for all before it; ``None`` if there is none."""
    for index in range(len(stored) - 1, -1, -1):
        source = stored[index].get("source")
        if isinstance(source, Mapping) and source.get("kind") == "compaction" and _text_of(stored[index]).strip():
            return index
    return None


def to_send(stored: Sequence[Message], meta: Mapping[str, Any]) -> list[Message]:
    """What of ``stored`` goes to the model: from its newest summary on, or from the turn that the session's metadata
    names (``SEND_FROM``); all of it where that says so (``SEND_EVERYTHING``)."""
    if meta.get(SEND_EVERYTHING):
        return list(stored)
    start = next((at for at, message in enumerate(stored) if message.get("id") == meta.get(SEND_FROM)), 0)
    return from_summary(stored[start:] if meta.get(SEND_FROM) else stored)


def newest_that_fit(stored: Sequence[Message], tokens: int | None) -> int:
    """The index of the turn from which the newest turns are likely to fit into ``tokens`` of context, leaving room for
    an answer; without a number, the newer half of the text. The last turn is always kept."""
    starts = [start for start, _ in tool_calls.each_turn(stored)]
    sizes = [len(content.searchable(message)) // _LETTERS_A_TOKEN + 10 for message in stored]
    room = tokens * 6 // 10 if tokens else sum(sizes) // 2
    for start in starts:
        if sum(sizes[start:]) <= room:
            return start
    return starts[-1] if starts else 0


def from_summary(stored: Sequence[Message]) -> list[Message]:
    """``stored`` from its newest summary on, and what the tool that made it kept beside it.

    The file keeps all. A prompt that the summary would leave no word of stays: the last one is always sent.
    """
    index = summed_up(stored)
    if index is None:
        return list(stored)
    kept_from = (stored[index].get("source") or {}).get("firstKeptEntryId")
    first = next(
        (at for at in range(index) if isinstance(kept_from, str) and str(stored[at].get("id", "")).endswith(kept_from)),
        index,
    )
    summary = {**stored[index], "role": "user", "content": f"{_SUMMARY}\n\n{_text_of(stored[index])}"}
    return [summary, *stored[first:index], *stored[index + 1 :]]


def without_superseded(stored: Sequence[Message]) -> list[Message]:
    """``stored`` without interrupted answers that another answer follows, or that are to be answered again now.

    Two assistant messages in a row, or one at the end, are refused by some providers; the file keeps both.
    """
    kept = []
    for index, message in enumerate(stored):
        following = stored[index + 1].get("role") if index + 1 < len(stored) else "assistant"
        is_cut = message.get("role") == "assistant" and message.get("interrupted") and not message.get("tool_calls")
        if not (is_cut and following == "assistant"):
            kept.append(message)
    return kept


def user_first(request: Sequence[Message]) -> list[Message]:
    """``request`` with a word of the user's in front of an assistant that spoke first: templates want one there."""
    start = next((index for index, message in enumerate(request) if message["role"] != "system"), len(request))
    if start == len(request) or request[start]["role"] == "user":
        return list(request)
    return [*request[:start], {"role": "user", "content": _BEGUN}, *request[start:]]


def left_out_of(result: Mapping[str, Any]) -> int:
    """How many characters of a tool's result a request leaves out; 0 for most."""
    text = _text_of(result)
    return max(0, len(text) - LONGEST_RESULT)


def _without_neighbours(sent: Sequence[Message]) -> Iterator[Message]:
    last: Message | None = None
    for message in sent:
        is_whole = last is not None and ("items" in last or "items" in message)  # they say more than their text
        if last is not None and last["role"] == message["role"] != "tool" and not is_whole:
            last = _joined(last, message)
            continue
        if last is not None:
            yield last
        last = message
    if last is not None:
        yield last


def _joined(first: Message, second: Message) -> Message:
    """Two messages of one role as one; of assistants, only the second can have calls."""
    joined = {**first, **second, "content": _joined_content(first["content"], second["content"])}
    if first.get("name") != second.get("name"):
        joined.pop("name", None)
    return joined


def _joined_content(first: Any, second: Any) -> Any:
    if not first or not second:
        return first or second
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    return [*_as_parts(first), *_as_parts(second)]


def _as_parts(said: Any) -> list[Any]:
    return said if isinstance(said, list) else [{"type": "text", "text": said}]


# --- what people and tools said --------------------------------------------------------------------------------------


def _user(message: Message) -> Message:
    sent: Message = {"role": "user", "content": _user_content(message) or _EMPTY}
    name = message.get("name")
    return {**sent, "name": name} if isinstance(name, str) and _NAME.fullmatch(name) else sent


def _user_content(message: Message) -> Any:
    """Text as text, parts a provider knows as they are, others as a placeholder."""
    given = message.get("content")
    if not isinstance(given, list):
        return clean(content.text(message))
    sent = []
    for item, part in zip(given, content.parts(message), strict=True):
        if part.kind == "text":
            sent += [{"type": "text", "text": clean(part.text)}] if part.text else []
        elif isinstance(item, dict) and item.get("type") in _SENT_PARTS and isinstance(item.get(item["type"]), dict):
            sent.append({"type": item["type"], item["type"]: clean(item[item["type"]])})
        elif part.kind == "image" and part.url:
            sent.append({"type": "image_url", "image_url": {"url": clean(part.url)}})
        else:
            sent.append({"type": "text", "text": clean(f"[{part.label}]")})
    if all(item["type"] == "text" for item in sent):  # a plain text is taken by all
        return "\n".join(item["text"] for item in sent)
    return sent


def _text_of(message: Mapping[str, Any]) -> str:
    """What ``message`` says as text alone, with a placeholder for what is none."""
    found = [part.text if part.kind == "text" else f"[{part.label}]" for part in content.parts(message)]
    return str(clean("\n".join(found)))


def _result_text(step: tool_calls.Step) -> str:
    if step.result is None:
        return tool_calls.UNKNOWN_OUTCOME
    text = _text_of(step.result)
    if not text.strip():
        return _NO_OUTPUT
    if len(text) <= LONGEST_RESULT:
        return text
    missing = len(text) - LONGEST_RESULT
    return (
        f"{text[: LONGEST_RESULT - TAIL]}\n\n[{missing:,} of the {len(text):,} characters of this result are left out "
        f"here. Ask for a smaller part if you need them.]\n\n{text[-TAIL:]}"
    )


# --- what the model said ---------------------------------------------------------------------------------------------


def _assistant(
    message: Message,
    index: int,
    answers: Mapping[tuple[int, int], tool_calls.Step],
    ids: _CallIds,
    own: Mapping[str, Any] | None,
) -> list[Message]:
    """The message and the results of its calls; nothing if it has neither text nor calls."""
    said = clean(content.text(message))
    listed = message.get("tool_calls")
    made, results = list[dict[str, Any]](), list[Message]()
    ids.begin_message()
    for call in tool_calls.calls_of(message, index):
        call_id = ids.of(clean(call.id))
        stored = listed[call.position] if own is not None and isinstance(listed, list) else {}
        made.append(_call(call, call_id, stored))
        text = _result_text(answers[index, call.position])
        results.append({"role": "tool", "tool_call_id": call_id, "content": text})
    if not made and not said.strip() and not (own or {}).get("items"):
        return []
    sent: Message = {"role": "assistant", "content": said if said.strip() else None, **clean(dict(own or {}))}
    return [{**sent, "tool_calls": made}, *results] if made else [sent]


def _call(call: tool_calls.Call, call_id: str, stored: Mapping[str, Any]) -> dict[str, Any]:
    """The call as it is sent; with what else ``stored`` has in it, if that is the provider's own."""
    given = clean(call.arguments) if tool_calls.arguments(call) and call.arguments.strip() else "{}"
    function = stored.get("function") if isinstance(stored.get("function"), Mapping) else {}
    more = {key: value for key, value in stored.items() if key not in ("id", "type", "function", "custom")}
    inner = {key: value for key, value in (function or {}).items() if key not in ("name", "arguments")}
    name = _NO_TOOL_NAME.sub("_", call.name)[:64] or "unnamed"
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": given, **clean(inner)},
        **clean(more),
    }


def _owned(message: Message, *, is_within_turn: bool) -> dict[str, Any]:
    """The provider's own keys of a message it made, as its ``wire`` names them; reasoning within the last turn only."""
    mark = message.get("wire")
    keys = mark.get("keys") if isinstance(mark, Mapping) else None
    named = [key for key in keys if isinstance(key, str)] if isinstance(keys, list) else []
    wanted = [key for key in named if key != "reasoning_content" or is_within_turn]
    return {key: message[key] for key in wanted if message.get(key) is not None and key not in ("role", "content")}


class _CallIds:
    """Ids of calls in the form that all take, each one different, and the same in every request of a session."""

    def __init__(self, *, are_kept: bool) -> None:
        self._are_kept = are_kept
        self._seen: dict[str, int] = {}
        self._used: set[str] = set()

    def begin_message(self) -> None:
        """Where ids are kept, they are told apart within one message only."""
        if self._are_kept:
            self._seen.clear()
            self._used.clear()

    def of(self, call_id: str) -> str:
        """The id to send for the next call of the id ``call_id``: itself, if it is of the form and new."""
        number = self._seen[call_id] = self._seen.get(call_id, 0) + 1
        is_good = 0 < len(call_id) <= 40 if self._are_kept else _NINE.fullmatch(call_id)
        sent = call_id if number == 1 and is_good else ""
        while not sent or sent in self._used:
            sent = _nine(f"{number} {call_id} {sent}")
        self._used.add(sent)
        return sent


def _nine(text: str) -> str:
    digits = string.digits + string.ascii_letters
    number = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=12).digest())
    return "".join(digits[number // 62**place % 62] for place in range(9))
