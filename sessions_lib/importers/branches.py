"""A tree of records → its lines: what was said on each branch, from the start to a leaf.

A branch is real if at least two children of a record lead to something that was said. Side branches without any
(results of parallel calls, progress, what a resume left behind) belong to the line they hang on.

Does not know any tool's format.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Branch:
    """One line: its record indices as they were said, the branch it parts from (``None``: the main one), and where.

    The first ``shared`` of ``records`` are also the parent branch's.
    """

    records: list[int]
    parent: int | None
    shared: int


@dataclass(slots=True)
class _Tree:
    children: list[list[int]]
    roots: list[int]
    enter: list[int]  # enter[a] <= enter[b] < leave[a]: b is a or below it
    leave: list[int]
    last_said: list[int]  # the last record at or below that says something, -1 if none does


def branches(parents: Sequence[int | None], says: Sequence[bool]) -> list[Branch]:
    """The branches of a tree given by each record's parent index; ``says`` marks the records that count as said.

    Parents must form no cycle. The branch that ends last in the file is the main one and comes first; a branch comes
    behind the one it parts from.
    """
    tree = _grow(parents, says)
    found: list[Branch] = []
    waiting: list[tuple[list[int], int | None, list[int]]] = []
    own, partings = _walk(tree, tree.roots)
    _add(tree, found, waiting, [], own, partings, None)
    while waiting:
        start, parent, shared = waiting.pop(0)
        own, partings = _walk(tree, start)
        _add(tree, found, waiting, shared, own, partings, parent)
    return found


def _add(
    tree: _Tree,
    found: list[Branch],
    waiting: list[tuple[list[int], int | None, list[int]]],
    shared: list[int],
    own: list[int],
    partings: list[tuple[int, int]],
    parent: int | None,
) -> None:
    whole = [*shared, *sorted(own)]
    position = len(found)
    found.append(Branch(whole, parent, len(shared)))
    for other, chosen in partings:
        start, end = tree.enter[chosen], tree.leave[chosen]
        waiting.append(([other], position, [i for i in whole if not start <= tree.enter[i] < end]))


def _walk(tree: _Tree, starts: Iterable[int]) -> tuple[list[int], list[tuple[int, int]]]:
    """All records from ``starts`` down on one line, and the real branches left out: (its first record, the chosen)."""
    records: list[int] = []
    partings: list[tuple[int, int]] = []
    open_records: list[int] = []
    level: Iterable[int] = starts
    while True:
        real = [child for child in level if tree.last_said[child] >= 0]
        if len(real) > 1:
            chosen = max(real, key=tree.last_said.__getitem__)
            partings += [(child, chosen) for child in real if child != chosen]
            open_records += [child for child in level if child == chosen or tree.last_said[child] < 0]
        else:
            open_records += level
        if not open_records:
            return records, partings
        index = open_records.pop()
        records.append(index)
        level = tree.children[index]


def _grow(parents: Sequence[int | None], says: Sequence[bool]) -> _Tree:
    count = len(parents)
    children: list[list[int]] = [[] for _ in range(count)]
    roots: list[int] = []
    for index, parent in enumerate(parents):
        (roots if parent is None else children[parent]).append(index)
    enter, leave = [0] * count, [0] * count
    order: list[int] = []
    open_records = roots[::-1]
    while open_records:
        index = open_records.pop()
        enter[index] = len(order)
        order.append(index)
        open_records += children[index][::-1]
    last_said = [index if is_said else -1 for index, is_said in enumerate(says)]
    for index in reversed(order):
        last, end = last_said[index], enter[index] + 1
        for child in children[index]:
            last, end = max(last, last_said[child]), max(end, leave[child])
        last_said[index], leave[index] = last, end
    return _Tree(children, roots, enter, leave, last_said)


def without_cycles(parents: list[int | None]) -> list[int]:
    """Break every cycle in ``parents`` in place by making one of its records a root; the records so changed."""
    state = [0] * len(parents)  # 0 not seen, 1 on the present walk, 2 known to reach a root
    changed = []
    for start in range(len(parents)):
        walk: list[int] = []
        at: int | None = start
        while at is not None and state[at] == 0:
            state[at] = 1
            walk.append(at)
            at = parents[at]
        if at is not None and state[at] == 1:
            parents[at] = None
            changed.append(at)
        for index in walk:
            state[index] = 2
    return changed
