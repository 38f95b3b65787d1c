"""The branches of families → a map: a lane a branch, a dot a turn, the shared trunk once, forks as links.

Lanes are numbered from the top: a branch, then what left it, latest first, so that no link crosses a lane. Across, a
place is a turn, counted from the start of the conversation; long stretches in which no branch begins or ends take the
place of two, so that a long family is still read in one look.

A parent that is gone is a lane of its own, with what its children still hold of it.

Does not read files or draw: places are units, and whoever draws says how wide one is.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sessions_lib import messages, names
from sessions_lib.compare import metrics
from sessions_lib.compare.metrics import Figure
from sessions_lib.messages import tool_calls
from sessions_lib.messages.content import Message
from sessions_lib.store import family

MOST_LANES = 60
FEW_LANES = 6  # drawn before the others are asked for
_FULL = 36  # places across; a wider map has its uneventful stretches shortened
_STRETCH = 5  # turns that are worth shortening


@dataclass(frozen=True, slots=True)
class TurnMark:
    """One turn of a branch: its number (from 1), its messages as a half-open range, tokens out, its prompt.

    ``failed`` is how many of its tool results say that the tool failed.

    A turn that the fork cut is two: what was copied of it, and its rest (``is_rest``).
    """

    number: int
    start: int
    end: int
    tokens: Figure
    prompt: str
    is_rest: bool = False
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Branch:
    """A session as the map sees it; ``inherited`` messages are its parent's. ``turns`` are all, inherited ones too.

    ``verdict`` is ``won``, ``lost`` or empty.
    """

    id: str
    title: str
    parent: str | None
    inherited: int
    turns: tuple[TurnMark, ...]
    is_missing: bool = False
    is_running: bool = False
    verdict: str = ""


@dataclass(frozen=True, slots=True)
class Dot:
    """A turn on the map; ``size`` is from 0 (no tokens) to 1 (the most on this map), ``None`` if unknown."""

    lane: int
    x: float
    turn: TurnMark
    size: float | None


@dataclass(frozen=True, slots=True)
class Link:
    """Where a branch leaves another: from a place on one lane to its own first place."""

    from_lane: int
    from_x: float
    lane: int
    x: float


@dataclass(frozen=True, slots=True)
class Stretch:
    """``turns`` of a lane that are not drawn one by one: the line from ``x`` to ``end``, between two dots."""

    lane: int
    x: float
    end: float
    turns: int


@dataclass(frozen=True, slots=True)
class Lane:
    """A branch's line from its first own turn to its last; ``x`` is ``None`` if it has none of its own yet.

    ``turns`` and ``tokens`` (out) are its own.
    """

    branch: Branch
    depth: int
    x: float | None
    end: float | None
    turns: int
    tokens: Figure


@dataclass(frozen=True, slots=True)
class Map:
    """All lanes, dots, links and stretches; ``width`` in places; ``left_out`` branches did not fit."""

    lanes: tuple[Lane, ...]
    dots: tuple[Dot, ...]
    links: tuple[Link, ...]
    stretches: tuple[Stretch, ...]
    width: float
    left_out: int


def branch(
    session: str,
    title: str,
    said: Sequence[Message],
    *,
    parent: str | None = None,
    inherited: int = 0,
    is_running: bool = False,
    verdict: str = "",
) -> Branch:
    """A branch from its messages."""
    inherited = min(inherited, len(said))
    turns = []
    for number, (start, end) in enumerate(tool_calls.each_turn(said), start=1):
        prompt = names.one_line(names.request_in(messages.first_prompt(said[start:end])), 90)
        cuts = [start, inherited, end] if start < inherited < end else [start, end]
        for first, last in itertools.pairwise(cuts):
            tokens = metrics.tokens_out(said[first:last])
            failed = sum(bool(message.get("is_error")) for message in said[first:last])
            turns.append(TurnMark(number, first, last, tokens, prompt, is_rest=first > start, failed=failed))
    return Branch(session, title, parent, inherited, tuple(turns), is_running=is_running, verdict=verdict)


def layout(family: Iterable[Branch], *, keep: Collection[str] = (), most: int = MOST_LANES, unread: int = 0) -> Map:
    """The map of ``family`` (or several), in the order given where nothing else decides.

    Of more than ``most`` branches, those of ``keep`` and their ancestors stay, then the first ones given. ``unread``
    are branches that were not even given: they count among those left out.
    """
    known = _with_missing_parents({one.id: one for one in family})
    chosen = choose({name: one.parent for name, one in known.items()}, keep, most)
    here = {one: known[one] for one in chosen}
    left = _without_rings({one: found for one in chosen if (found := _leaves(here[one], here)) is not None})
    order = _lane_order(here, left)
    number = {one: lane for lane, (one, _) in enumerate(order)}
    places = _Places([known[one] for one, _ in order])
    largest = max((turn.tokens.value or 0 for one, _ in order for turn in _own(known[one])), default=0)
    lanes, dots, links, stretches = [], [], [], []
    for lane, (one, depth) in enumerate(order):
        own = _own(here[one])
        xs = [places.x(turn.number) for turn in own]
        lanes.append(
            Lane(
                here[one],
                depth,
                xs[0] if xs else None,
                xs[-1] if xs else None,
                len(own),
                metrics.added([turn.tokens for turn in own]),
            )
        )
        for turn, x in zip(own, xs, strict=True):
            if places.is_drawn(turn.number):
                tokens = turn.tokens.value
                dots.append(Dot(lane, x, turn, None if tokens is None else tokens / largest if largest else 0.0))
        stretches += places.stretches(lane, own)
        if one in left:
            host, turn_number = left[one]
            x = places.x(turn_number)
            links.append(Link(number[host], x, lane, xs[0] if xs else x + 0.6))
    return Map(
        tuple(lanes), tuple(dots), tuple(links), tuple(stretches), places.width, len(known) - len(chosen) + unread
    )


def _own(one: Branch) -> list[TurnMark]:
    """The turns that the branch wrote in, the rest of the one that the fork cut included."""
    return [turn for turn in one.turns if turn.start >= one.inherited]


def _with_missing_parents(known: dict[str, Branch]) -> dict[str, Branch]:
    """``known`` and, for each parent that is gone, what the child that copied most still holds of it."""
    found: dict[str, Branch] = {}
    for one in known.values():
        if one.parent is None or one.parent in known:
            continue
        before = found.get(one.parent)
        held = before.turns[-1].end if before and before.turns else -1
        if one.inherited > held:
            kept = tuple(turn for turn in one.turns if turn.start < one.inherited)
            found[one.parent] = Branch(one.parent, f"{one.parent} (deleted)", None, 0, kept, is_missing=True)
    return {**found, **known}


def choose(parents: Mapping[str, str | None], keep: Collection[str], most: int) -> list[str]:
    """The branches that a map of ``most`` lanes draws: ``keep`` and their ancestors, then the first of ``parents``.

    ``parents`` gives the parent of each branch; the answer is in its order.
    """
    chosen: dict[str, None] = {}
    for one in [*(one for one in keep if one in parents), *parents]:
        if one not in keep and len(chosen) >= most:
            break
        new = [ancestor for ancestor in family.line(one, parents) if ancestor not in chosen]
        if one in keep or len(chosen) + len(new) <= most:
            chosen.update(dict.fromkeys(new))
    return [one for one in parents if one in chosen]


def _lane_order(known: dict[str, Branch], left: dict[str, tuple[str, int]]) -> list[tuple[str, int]]:
    """Every branch with its depth: a branch, then what left it, latest first."""
    latest_first = sorted(left, key=lambda fork: left[fork][1])[::-1]
    return list(
        family.tree((name for name in known if name not in left), [(fork, left[fork][0]) for fork in latest_first])
    )


def _without_rings(left: dict[str, tuple[str, int]]) -> dict[str, tuple[str, int]]:
    """``left`` without those that lead back to themselves (metadata edited by hand)."""
    hosts = {name: host for name, (host, _) in left.items()}
    return {name: host for name, host in left.items() if not family.ring(name, hosts)}


def _leaves(one: Branch, known: dict[str, Branch]) -> tuple[str, int] | None:
    """The branch whose lane this one leaves, and the turn it leaves after; ``None`` if it shares nothing.

    A fork of a fork may have left before its parent had a turn of its own: then it leaves the grandparent's lane.
    """
    if not one.inherited or one.parent not in known:
        return None
    host, seen = known[one.parent], {one.id}
    while one.inherited <= host.inherited and host.parent in known and host.id not in seen:
        seen.add(host.id)
        host = known[host.parent]
    turn = next((turn for turn in reversed(one.turns) if turn.start < one.inherited), None)
    return None if turn is None or host.id in seen else (host.id, turn.number)


class _Places:
    """Turn number → place across, long uneventful stretches shortened."""

    def __init__(self, family: Sequence[Branch]) -> None:
        last = max((one.turns[-1].number for one in family if one.turns), default=0)
        self._x: dict[int, float] = {}
        self._hidden: dict[int, float] = {}  # turn -> where its stretch begins
        eventful = self._eventful(family) if last > _FULL else set(range(1, last + 1))
        place, number = 0.0, 1
        while number <= last:
            end = number
            while end <= last and end not in eventful:
                end += 1
            if end - number >= _STRETCH:
                for step, hidden in enumerate(range(number, end)):
                    self._x[hidden] = place + 2 * step / (end - number)
                    self._hidden[hidden] = place
                place, number = place + 2, end
            else:
                self._x[number] = place
                place, number = place + 1, number + 1
        self.width = max(place, 1.0)

    @staticmethod
    def _eventful(family: Sequence[Branch]) -> set[int]:
        """The turns at which a branch begins or ends, with their neighbours."""
        found = {1, 2}
        for one in family:
            own = _own(one)
            for turn in filter(None, (own[0] if own else None, own[-1] if own else None)):
                found |= {turn.number - 1, turn.number, turn.number + 1}
        return found

    def x(self, number: int) -> float:
        """The place of a turn."""
        return self._x.get(number, 0.0)

    def is_drawn(self, number: int) -> bool:
        """True unless the turn lies in a shortened stretch."""
        return number not in self._hidden

    def stretches(self, lane: int, own: Sequence[TurnMark]) -> list[Stretch]:
        """The shortened stretches of a lane."""
        counts: dict[float, int] = {}
        for turn in own:
            if turn.number in self._hidden:
                counts[self._hidden[turn.number]] = counts.get(self._hidden[turn.number], 0) + 1
        return [Stretch(lane, place - 0.5, place + 1.5, turns) for place, turns in counts.items()]
