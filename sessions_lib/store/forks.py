"""Where a session may be forked, and what the fork's metadata says.

Pure functions: the stores copy.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sessions_lib import messages, text, times
from sessions_lib.errors import ForkPointForbidden
from sessions_lib.messages import places, tool_calls
from sessions_lib.messages.content import Message
from sessions_lib.store.records import MARK_AT, Metadata, bare_title

_FORK = re.compile(r"(?:-fork(?:-\d+)?)+\Z")  # what earlier forks added to an id
_INHERITED_SETTINGS = (
    "system",
    "model",
    "base_url",
    "wire",
    "temperature",
    "effort",
    "refused",
    "send_everything",
    "send_from",
    "tags",
)


@dataclass(frozen=True, slots=True)
class ForkPoint:
    """A point where a fork is allowed.

    ``at`` messages, the id of the last one (``None`` for none), how many messages stand behind it, the parent's display
    title, and the point in turns: ``after turn 2``.
    """

    at: int
    message_id: str | None
    left_out: int
    title: str
    place: str


def point(session: str, title: str, said: Sequence[Message], at: int | None, then: Sequence[Message] = ()) -> ForkPoint:
    """The fork point after ``at`` messages (``None``: the last allowed), or ``ForkPointForbidden`` with the nearest.

    What stands behind ``then``, the fork's own first messages, has to be allowed where there are any.
    """
    if at is None:
        at = tool_calls.last_fork_point(said)
    elif not 0 <= at <= len(said) or not tool_calls.is_fork_point([*said[:at], *then], at + len(then)):
        raise ForkPointForbidden(session, at, tool_calls.nearest_fork_points(said, at), len(said))
    message_id = messages.last_id(said[:at]) if at else None
    return ForkPoint(at, message_id, len(said) - at, title, places.place(said, at))


def meta(session: str, parent: Metadata, point: ForkPoint, title: str | None, mark: str) -> dict[str, Any]:
    """The metadata of a fork of ``session``: its lineage, and the parent's settings and tags.

    Without a ``title`` it is the parent's name with one mark: ``mark``, else where the fork was taken.
    """
    name = bare_title(point.title, parent.values)
    made = text.marked_title(name, mark) if mark else text.fork_title(name, point.place)
    return {
        "title": title or made,
        MARK_AT: len(made) - len(mark) - 3 if mark and not title else None,
        **{key: value for key, value in parent.values.items() if key in _INHERITED_SETTINGS},
        "created": times.now(),
        "forked_from": {"session": session, "messages": point.at, "message_id": point.message_id},
    }


def base_id(parent: str, meta: Mapping[str, Any]) -> str:
    """What the id of a fork of ``parent`` is made of: the parent's, without its number and a secret of its title."""
    from sessions_lib.redaction import ids  # only a new session needs its rules

    return f"{_FORK.sub('', ids.without_secrets(parent, [str(meta['title'])]))[:100] or 'session'}-fork"


@dataclass(frozen=True, slots=True)
class Change:
    """A fork in which something else was said: ``at`` messages are copied, ``then`` are its own; ``mark`` says what."""

    at: int
    then: list[Message]
    mark: str


def change(said: Sequence[Message], index: int, content: Any) -> Change:
    """The fork of ``said`` in which the message ``index`` says ``content``, and nothing comes after its step.

    The changed message says that a person wrote it and which one it stands for (``edited``). Of an answer only words
    stay: no calls, no reasoning, and no tokens were spent on it. A result keeps the other results of its step.
    """
    old = said[index]
    role, was = old.get("role"), messages.last_id(said[: index + 1])
    kept = ("role", "tool_call_id", "name", "effect") if role == "tool" else ("role", "name")
    made: Message = {key: old[key] for key in kept if key in old}
    made |= {"content": content, "edited": {"by": "person", "was": was}}
    then = [made]
    what = "prompt"
    if role == "tool":
        what = f"result of {old['name']}" if isinstance(old.get("name"), str) else "result"
        rest = itertools.takewhile(lambda message: message.get("role") == "tool", said[index + 1 :])
        then += [{key: value for key, value in message.items() if key != "id"} for message in rest]
    elif role == "assistant":
        what = "answer"
        made["usage"] = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    turn = messages.turn_count(said[: index + 1])
    return Change(index, [messages.stamped(message) for message in then], f"{what} changed in turn {turn}")


def numbered(title: str, taken: Collection[str | None]) -> str:
    """``title``, with a number if it is ``taken``.

    >>> numbered("Tides · after turn 2", ["Tides · after turn 2"])
    'Tides · after turn 2 (2)'
    """
    number, made = 2, title
    while made in taken:
        made, number = f"{title} ({number})", number + 1
    return made
