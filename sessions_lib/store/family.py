"""Parents and children: who is related to whom, and in which order a family is told.

Does not read files: it is given what a listing knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from sessions_lib.store.records import NEVER, SessionInfo


def newest_pair(listed: Sequence[SessionInfo]) -> tuple[str, str] | None:
    """A parent and its newest fork; where all parents are gone, two forks of the same one; ``None`` without forks."""
    newest = sorted(listed, key=lambda info: info.created or NEVER, reverse=True)
    known = {info.id for info in listed}
    for info in newest:
        if info.parent in known and info.parent != info.id:
            return str(info.parent), info.id
    for info in newest:
        sibling = next((one for one in newest if one.parent == info.parent and one.id != info.id), None)
        if info.parent is not None and sibling is not None:
            return sibling.id, info.id
    return None


def relatives(parents: Mapping[str, str | None], sessions: Iterable[str]) -> list[str]:
    """The ids in ``parents`` (id → parent) that have an ancestor in common with one of ``sessions``, order kept.

    A parent that is gone counts: both forks of a deleted session are one family.
    """

    def root(session: str) -> str:
        seen = {session}
        while (parent := parents.get(session)) is not None and parent not in seen:
            seen.add(parent)
            session = parent
        return min(seen) if parents.get(session) in seen else session

    roots = {root(session) for session in sessions}
    return [session for session in parents if root(session) in roots]


def family_of(by_id: dict[str, SessionInfo], session_id: str) -> list[SessionInfo]:
    """``session_id`` and all its relatives among ``by_id``, parents before children; a circle of parents ends.

    Forks of a session that is not there any more are one family (see ``relatives``).
    """
    kin = relatives({one: info.parent for one, info in by_id.items()}, [session_id])
    first = datetime.min.replace(tzinfo=UTC)
    kin.sort(key=lambda one: (by_id[one].created or first, one))
    here = set(kin)
    children: dict[str | None, list[str]] = {}
    for one in kin:
        parent = by_id[one].parent
        children.setdefault(parent if parent in here else None, []).append(one)
    found: dict[str, SessionInfo] = {}
    waiting = [*children.get(None, []), *kin]  # all of them again: nothing leads into a circle of parents
    while waiting:
        one = waiting.pop(0)
        if one not in found:
            found[one] = by_id[one]
            waiting[:0] = children.get(one, [])
    return list(found.values())


def in_order(newest_first: Iterable[str], lineage: Sequence[tuple[str, str]]) -> Iterator[tuple[str, int]]:
    """(id, depth) with forks under their parents; a circle starts a family.

    ``lineage`` are the (fork, parent) of which both are listed, the newest fork first.
    """
    parents = {session: parent for session, parent in lineage if session != parent}
    children: dict[str, list[str]] = {}
    for session, parent in parents.items():
        children.setdefault(parent, []).append(session)
    placed: set[str] = set()
    for session in newest_first:
        if session in placed:
            continue
        root, way = session, {session}
        while (above := parents.get(root)) is not None and above not in way:
            root = above
            way.add(root)
        waiting = [(root, 0)]
        while waiting:
            one, depth = waiting.pop()
            if one in placed:
                continue
            placed.add(one)
            yield one, depth
            waiting += [(child, depth + 1) for child in reversed(children.get(one, []))]
