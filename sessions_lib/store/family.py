"""Parents and children: the one walk up a line of parents, and the one down to the forks.

Metadata is edited by hand, so a parent may be gone, and parents may lead in a ring: every walk ends.

Does not read files: it is given what a listing knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from sessions_lib.store.records import NEVER, SessionInfo


def line(session: str, parents: Mapping[str, str | None]) -> list[str]:
    """``session``, its parent, that one's parent …, up to one without; a parent that is gone is the last.

    >>> line("c", {"c": "b", "b": "a"})
    ['c', 'b', 'a']
    """
    found = {session: None}
    while (parent := parents.get(session)) is not None and parent not in found:
        found[parent] = None
        session = parent
    return list(found)


def ring(session: str, parents: Mapping[str, str | None]) -> list[str]:
    """The sessions of the ring that the line of ``session`` ends in; usually none."""
    ancestors = line(session, parents)
    parent = parents.get(ancestors[-1])
    return [] if parent is None else ancestors[ancestors.index(parent) :]


def tree(sessions: Iterable[str], lineage: Sequence[tuple[str, str]]) -> Iterator[tuple[str, int]]:
    """(id, depth) of ``sessions`` with forks under their parents, depth first; a ring starts a family.

    ``lineage`` are the (fork, parent) of which both are listed; the forks of a parent come in this order. The listing
    is read only as far as the answer is.
    """
    parents = {session: parent for session, parent in lineage if session != parent}
    children: dict[str, list[str]] = {}
    for session, parent in parents.items():
        children.setdefault(parent, []).append(session)
    placed: set[str] = set()
    for session in sessions:
        if session in placed:
            continue
        waiting = [(line(session, parents)[-1], 0)]
        while waiting:
            one, depth = waiting.pop()
            if one not in placed:
                placed.add(one)
                yield one, depth
                waiting += [(child, depth + 1) for child in reversed(children.get(one, []))]


def relatives(parents: Mapping[str, str | None], sessions: Iterable[str]) -> list[str]:
    """The ids in ``parents`` (id → parent) that have an ancestor in common with one of ``sessions``, order kept.

    A parent that is gone counts: both forks of a deleted session are one family.
    """
    roots = {_root(session, parents) for session in sessions}
    return [session for session in parents if _root(session, parents) in roots]


def _root(session: str, parents: Mapping[str, str | None]) -> str:
    return min(ring(session, parents), default="") or line(session, parents)[-1]


def kin(lineage: Mapping[str, str], session: str) -> list[str]:
    """``session`` and its relatives, those that are gone too; ``lineage`` gives the parent of each fork."""
    return relatives({session: None, **dict.fromkeys(lineage.values()), **lineage}, [session])


def family_of(by_id: Mapping[str, SessionInfo], session_id: str) -> list[SessionInfo]:
    """``session_id`` and all its relatives among ``by_id``, parents before children, the oldest first."""
    found = relatives({one: info.parent for one, info in by_id.items()}, [session_id])
    found.sort(key=lambda one: (by_id[one].created or NEVER, one))
    here = set(found)
    lineage = [(one, parent) for one in found if (parent := by_id[one].parent) is not None and parent in here]
    return [by_id[one] for one, _ in tree(found, lineage)]


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
