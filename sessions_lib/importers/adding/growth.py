"""A source that has grown: which of its messages are new, and what is new of an answer that was imported half-written.

A later part of an answer has the answer's id with ``+2``, ``+3``…: what was said, thought, called and spent since.
Where tokens were known before their answer, an empty answer stands in for it; when the answer comes, its tokens are
those that the stand-in does not have. So the parts together hold what the answer holds, each word and token once.

Pure functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sessions_lib import messages
from sessions_lib.importers.adding.told import Told
from sessions_lib.importers.imported import TOKENS_ONLY, UNKNOWN_KIND
from sessions_lib.messages import content, model_calls
from sessions_lib.messages.content import Message
from sessions_lib.messages.model_calls import ModelCall

_JOINT = "\n\n"  # between the texts, and between the thoughts, of one answer
_KEPT = ("timestamp", "model", "finish_reason")


def whole_id(message_id: str) -> str:
    """The id of the answer that ``message_id`` is a later part of, or itself."""
    base, plus, number = message_id.rpartition("+")
    return base if plus and number.isdigit() else message_id


def is_stand_in(message: Message) -> bool:
    """True for an empty answer that only holds tokens."""
    return _kind(message) == TOKENS_ONLY


def may_go(message: Message) -> bool:
    """True for what a source may tell otherwise when it has grown: tokens, and texts of records nobody knows."""
    return _kind(message) in (TOKENS_ONLY, UNKNOWN_KIND)


def _kind(message: Message) -> str:
    source = message.get("source")
    return content.as_text(source.get("kind")) if isinstance(source, Mapping) else ""


def what_is_new(
    stored: Sequence[Message], stored_ids: Sequence[str], source: Sequence[Message], line: Sequence[str]
) -> list[Message]:
    """The messages of the source that are not stored, and the rests of its answers that are stored in part, in order.

    ``stored_ids`` and ``line`` are what the messages are known by.
    """
    parts: dict[str, list[Message]] = {}
    for message, message_id in zip(stored, stored_ids, strict=True):
        parts.setdefault(whole_id(message_id), []).append(message)
    known = set(line)
    told = Told(message for message_id, made in parts.items() if message_id not in known for message in made)
    left = [_untold(whole, parts.get(message_id), told) for whole, message_id in zip(source, line, strict=True)]
    added: list[Message] = []
    for whole, message_id, calls in zip(source, line, left, strict=True):
        calls = told.without(calls)
        if message_id not in parts and (calls or not is_stand_in(whole)):
            added.append(_spending(whole, calls))
        elif message_id not in parts:
            continue  # its tokens are on the answer they were told with first
        elif (rest := _rest_of(whole, parts[message_id], calls)) is not None:
            added.append(rest)
    return added


def in_pieces(source: Sequence[Message], stored: Sequence[Sequence[Message]]) -> list[Message]:
    """``source`` with the answers that are stored elsewhere in the pieces they are stored in.

    So a new session shares the identities of those it is a copy of, and each token counts once: where it holds less of
    an answer than another session does, the answer's tokens stay with the other one.
    """
    known: dict[str, list[Message]] = {}
    for said in stored:
        for message_id, pieces in _pieces(said).items():
            if len(pieces) > len(known.get(message_id, ())):
                known[message_id] = pieces
    made: list[Message] = []
    for whole in source:
        pieces = known.get(str(whole.get("id")), [])
        if whole.get("role") != "assistant" or not pieces:
            made.append(whole)
            continue
        calls = Told(pieces).without(model_calls.of(whole))
        if len(pieces) == 1 and messages.identities(pieces) == messages.identities([whole]):
            made.append(whole)  # a copy, whatever one of the two reports beside what is said
        elif not _holds(whole, pieces):
            made.append(_spending(whole, calls))
        else:
            rest = _rest_of(whole, pieces, calls)
            made += pieces if rest is None else [*pieces, rest]
    return made


def _pieces(said: Sequence[Message]) -> dict[str, list[Message]]:
    """The answers of a stored session by their ids, each in its parts."""
    found: dict[str, list[Message]] = {}
    for message in said:
        if messages.has_id(message) and message.get("role") == "assistant":
            found.setdefault(whole_id(message["id"]), []).append(message)
    return {message_id: parts for message_id, parts in found.items() if parts[0]["id"] == message_id}


def _untold(whole: Message, parts: Sequence[Message] | None, told: Told) -> list[ModelCall]:
    """What ``whole`` took and its stored ``parts`` do not tell; what they tell beyond it goes to ``told``."""
    if parts is None:
        return model_calls.of(whole)
    own = Told(parts)
    left = own.without(model_calls.of(whole))
    told.add(own)
    return left


def _spending(message: Message, calls: list[ModelCall]) -> Message:
    """``message``, with these calls as its usage where they are not its own."""
    own = model_calls.of(message)
    if calls == own:
        return message
    left = {key: value for key, value in message.items() if key not in ("usage", "usage_reported")}
    _set_calls(left, calls)
    return left


def _set_calls(message: Message, calls: Sequence[ModelCall]) -> None:
    own = content.as_text(message.get("model"))
    unnamed = [ModelCall("", c.tokens, c.written, c.written_1h, c.tier) if c.model == own else c for c in calls]
    if (spent := model_calls.as_usage(unnamed)) is not None:
        message["usage"] = spent


def _rest_of(whole: Message, parts: Sequence[Message], calls: Sequence[ModelCall]) -> Message | None:
    """What ``whole`` has beyond its stored ``parts``, as a message of its own; ``None`` if nothing."""
    if whole.get("role") != "assistant" or not messages.has_id(whole):
        return None
    text = _beyond(content.text(whole), [content.text(part) for part in parts])
    thought = _beyond(content.reasoning(whole), [content.reasoning(part) for part in parts])
    made = _calls_beyond(_called(whole), [call for part in parts for call in _called(part)])
    blocks = _blocks_beyond(whole, parts)
    is_cut = bool(whole.get("interrupted")) and not any(part.get("interrupted") for part in parts)
    calls = [call for call in calls if call.tokens.total]
    if not (text or thought or made or blocks or is_cut or calls):
        return None
    rest: Message = {"role": "assistant", "content": text or None, **{k: whole[k] for k in _KEPT if k in whole}}
    if thought:
        rest["reasoning_content"] = thought
    if made:
        rest["tool_calls"] = made
    if is_cut:
        rest["interrupted"] = True
    if blocks:
        rest["source"] = {"blocks": blocks}
    elif not (text or thought or made or is_cut):
        rest["source"] = {"kind": TOKENS_ONLY}
    rest["id"] = f"{whole['id']}+{len(parts) + 1}"
    _set_calls(rest, calls)
    return rest


def _holds(whole: Message, parts: Sequence[Message]) -> bool:
    """True if ``whole`` has all that its ``parts`` have: they are pieces of it."""
    texts = [content.text(part) for part in parts], [content.reasoning(part) for part in parts]
    return (
        _is_start(content.text(whole), texts[0])
        and _is_start(content.reasoning(whole), texts[1])
        and not _calls_beyond([call for part in parts for call in _called(part)], _called(whole))
    )


def _is_start(text: str, pieces: Sequence[str]) -> bool:
    for piece in pieces:
        if not text.startswith(piece):
            return False
        text = text[len(piece) :].removeprefix(_JOINT) if piece else text
    return True


def _beyond(text: str, pieces: Sequence[str]) -> str:
    """What ``text`` says behind its ``pieces``; all of it, if it was written anew."""
    left = text
    for piece in pieces:
        if not left.startswith(piece):
            return "" if text in pieces else text
        left = left[len(piece) :].removeprefix(_JOINT) if piece else left
    return left


def _called(message: Message) -> list[Any]:
    listed = message.get("tool_calls")
    return [call for call in listed if isinstance(call, dict)] if isinstance(listed, list) else []


def _calls_beyond(calls: Sequence[Any], stored: Sequence[Any]) -> list[Any]:
    """The calls that are not stored. Ids repeat: each stored call stands for one, an equal one before one of its id."""
    left = list(stored)
    found = []
    for call in calls:
        if call in left:
            left.remove(call)
        else:
            found.append(call)
    beyond = []
    for call in found:
        same = next((other for other in left if other.get("id") == call.get("id")), None)
        if same is None:
            beyond.append(call)
        else:  # the same call, written anew
            left.remove(same)
    return beyond


def _blocks_beyond(whole: Message, parts: Sequence[Message]) -> list[Any]:
    known = [block for part in parts for block in _blocks(part)]
    return [block for block in _blocks(whole) if block not in known]


def _blocks(message: Message) -> list[Any]:
    source = message.get("source")
    listed = source.get("blocks") if isinstance(source, Mapping) else None
    return listed if isinstance(listed, list) else []
