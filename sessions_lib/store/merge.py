"""Two lists of messages become one: the shared start once, then whole turns by time.

* A message that is in both (by identity) is in the result once, so merging twice changes nothing. Two messages of one
  id that say different things are two.
* Turns stay whole: a prompt with all that answers it, calls with their results.
* A turn's time is its first known message time, never earlier than the turn before it; turns before the first known
  time take that one. Where nothing has a time, all of the first list goes before the second. At equal times, too.
* A turn that the fork cut keeps its rest right behind the shared start. A turn that is partly there receives its new
  messages in place, each behind the message it followed.

Pure functions. Does not write, and never changes a message it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sessions_lib import messages as m
from sessions_lib.errors import SessionError
from sessions_lib.messages.content import Message
from sessions_lib.messages.tool_calls import each_turn

_FIRST = datetime.min.replace(tzinfo=UTC)
_LAST = datetime.max.replace(tzinfo=UTC)


def merge(first: Sequence[Message], second: Sequence[Message]) -> list[Message]:
    """``first`` with what only ``second`` has, in the order the module describes; ids are written where they lack."""
    ours, theirs = with_ids(first), with_ids(second)
    key = _keys(ours, theirs)
    known = set(map(key, ours))
    if all(key(message) in known for message in theirs):
        return ours
    start = shared_start(ours, theirs)
    rest_of_ours, our_turns = _turns_after(ours, start)
    rest_of_theirs, their_turns = _turns_after(theirs, start)
    shared_and_rests = [*ours[:start], *rest_of_ours]
    wholly_new = []
    previous = key(theirs[start - 1]) if start else None
    for turn in [rest_of_theirs, *their_turns]:
        if all(key(message) not in known for message in turn):
            if turn is rest_of_theirs:
                shared_and_rests += turn
            else:
                wholly_new.append(turn)
        else:
            _into_place(turn, previous, known, [shared_and_rests, *our_turns], key)
        previous = key(turn[-1]) if turn else previous
    return shared_and_rests + _by_time(our_turns, wholly_new)


def graft(first: Sequence[Message], second: Sequence[Message], turns: Sequence[int], source: str) -> list[Message]:
    """``first``, then the chosen ``turns`` of ``second`` (numbers from 1) in their order there.

    Each copied message says where it is from: ``"copied_from": {"session", "turn"}``. A message that ``first`` has
    already, and a turn chosen twice, is there once. ``SessionError`` names a turn that ``second`` does not have.
    """
    ours, theirs = with_ids(first), with_ids(second)
    key = _keys(ours, theirs)
    known = set(map(key, ours))
    ranges = list(each_turn(theirs))
    for number in turns:
        if not 1 <= number <= len(ranges):
            raise SessionError(f"There is no turn {number} in {source!r}: it has turns 1 to {len(ranges)}.")
    added = [
        {**message, "copied_from": message.get("copied_from") or {"session": source, "turn": number}}
        for number in sorted(set(turns))
        for message in theirs[ranges[number - 1][0] : ranges[number - 1][1]]
        if key(message) not in known
    ]
    return [*ours, *added]


def with_ids(messages: Sequence[Message]) -> list[Message]:
    """Copies of ``messages``, each with its ``id`` (see ``messages.ids``)."""
    return [
        message if m.has_id(message) else {**message, "id": own}
        for message, own in zip(messages, m.ids(messages), strict=True)
    ]


def _keys(*lists: Sequence[Message]) -> Callable[[Message], str]:
    """The identity of each message of ``lists``, which is worked out once."""
    found = {
        id(message): identity
        for messages in lists
        for message, identity in zip(messages, m.identities(messages), strict=True)
    }
    return lambda message: found[id(message)]


def shared_start(first: Sequence[Message], second: Sequence[Message]) -> int:
    """How many messages, from the top, both lists share by identity."""
    count = 0
    for one, other in zip(m.identities(first), m.identities(second), strict=False):
        if one != other:
            break
        count += 1
    return count


def _turns_after(messages: list[Message], start: int) -> tuple[list[Message], list[list[Message]]]:
    """The rest of the turn that the shared start cut, and the whole turns behind it."""
    after = messages[start:]
    cut = next((index for index, message in enumerate(after) if message.get("role") == "user"), len(after))
    if start == 0 and cut < len(after):
        cut = 0  # nothing is shared: what stands before the first prompt belongs to the first turn
    return after[:cut], [after[cut:][a:b] for a, b in each_turn(after[cut:])]


def _into_place(
    turn: list[Message],
    previous: str | None,
    known: set[str],
    places: list[list[Message]],
    key: Callable[[Message], str],
) -> None:
    for message in turn:
        if key(message) not in known:
            place, index = next(
                ((p, i + 1) for p in places for i, there in enumerate(p) if key(there) == previous),
                (places[0], len(places[0])),
            )
            if message.get("role") != "tool":  # the rest of our own turn stays in one piece
                index = _end_of_step(place, index)
            place.insert(index, message)
            known.add(key(message))
        previous = key(message)


def _end_of_step(place: list[Message], index: int) -> int:
    while index < len(place) and place[index].get("role") == "tool":
        index += 1
    return index


def _by_time(first: list[list[Message]], second: list[list[Message]]) -> list[Message]:
    merged: list[Message] = []
    waiting = list(zip(_turn_times(second, _LAST), second, strict=True))
    for moment, turn in zip(_turn_times(first, _FIRST), first, strict=True):
        while waiting and waiting[0][0] < moment:
            merged += waiting.pop(0)[1]
        merged += turn
    for _, turn in waiting:
        merged += turn
    return merged


def _turn_times(turns: Sequence[Sequence[Message]], unknown: datetime) -> list[datetime]:
    """When each turn was said, in an order that never steps back; ``unknown`` where no turn has a time."""
    own = [next((moment for moment in m.effective_times(turn) if moment), None) for turn in turns]
    latest = next((moment for moment in own if moment), unknown)
    found = []
    for moment in own:
        latest = max(latest, moment) if moment else latest
        found.append(latest)
    return found


def with_source(meta: Mapping[str, Any], source: str) -> dict[str, Any]:
    """``meta`` with the session ``source`` among those that were merged into it; ``SessionError`` where it is odd."""
    sources = meta.get("merged_from")
    if sources is None:
        sources = []
    if not isinstance(sources, list) or not all(isinstance(one, str) for one in sources):
        raise SessionError(
            f"The metadata of {str(meta.get('id'))[:60]!r} is odd: merged_from is no list of session ids. "
            "Nothing was changed. Correct it in the file, or take it out, and merge again."
        )
    return {**meta, "merged_from": list(dict.fromkeys([*sources, source]))}
