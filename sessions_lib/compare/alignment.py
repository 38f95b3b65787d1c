"""Two to four lists → rows: what belongs together side by side, gaps where a list has nothing.

Each item is given by its keys, strongest first. Items with an equal first key are lined up first (the longest common
subsequence), then, between those, items with an equal second key, and so on. What is left stands alone, or is paired by
likeness or by its place between those that were lined up. Order is kept in every list.

Does not know what the items are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from rapidfuzz.distance import LCSseq

Keys = Sequence[Hashable]
Row = tuple[int | None, ...]
Pair = tuple[int | None, int | None]
Gap = tuple[int, int, int, int]  # from, to in one list; from, to in the other
Likeness = Callable[[int, int], float]

_MOST_GUESSES = 2500  # pairs of one gap that are tried by likeness: 50 by 50, and fewer around the diagonal beyond that
_MOST_TABLE = 4_000_000  # larger gaps stay gaps


def by_keys(lists: Sequence[Sequence[Keys]]) -> list[Row]:
    """Rows of items with equal keys; where only one list has an item, the earlier list's come first.

    >>> by_keys([[("x",), ("y",)], [("y",), ("z",)]])
    [(0, None), (1, 0), (None, 1)]
    """
    return by_likeness(lists, None)


def by_likeness(
    lists: Sequence[Sequence[Keys]],
    alike: Callable[[int, int, int, int], float] | None,
    *,
    then_by_place: bool = False,
) -> list[Row]:
    """As ``by_keys``; what no key lines up is paired where ``alike`` says more than 0, for the largest sum.

    ``alike(list, item, other list, other item)`` is asked for every pair of a short gap (about 50 items on both sides),
    and in a longer one for pairs in about the same place. With ``then_by_place``, what is left between two rows is
    paired in order, and a gap with as many items on both sides is paired so without asking.

    >>> by_likeness([[("x",), ("y",)], [("a",), ("b",), ("y",)]], None, then_by_place=True)
    [(0, 0), (None, 1), (1, 2)]
    """
    rows: list[Row] = [(i,) for i in range(len(lists[0]))]
    for column in range(1, len(lists)):
        # A row is known by the first list that has an item in it.
        heads = [next((at, item) for at, item in enumerate(row) if item is not None) for row in rows]
        keys = [lists[at][item] for at, item in heads]
        guess = None if alike is None else _guess(alike, heads, column)
        empty = (None,) * column
        rows = [
            (*(rows[left] if left is not None else empty), right)
            for left, right in _pairs(keys, lists[column], guess, then_by_place)
        ]
    return rows


def _guess(alike: Callable[[int, int, int, int], float], heads: Sequence[tuple[int, int]], column: int) -> Likeness:
    return lambda left, right: alike(*heads[left], column, right)


def _pairs(a: Sequence[Keys], b: Sequence[Keys], guess: Likeness | None, then_by_place: bool) -> list[Pair]:
    """Items of two lists in pairs, by the first key, then inside each gap by the next one."""
    kinds = [keys[-1] for keys in a]
    if len(set(kinds)) == len(kinds) and kinds == [keys[-1] for keys in b]:
        return [(at, at) for at in range(len(a))]  # nothing to choose: one of each kind, in the same order
    levels = min((len(keys) for keys in (*a, *b)), default=0)
    gaps: list[Gap] = [(0, len(a), 0, len(b))]
    matched: list[Pair] = []
    for level in range(levels):
        gaps, found = _match([k[level] for k in a], [k[level] for k in b], gaps)
        matched += found
    for gap in gaps:
        guessed = _by_guess(gap, guess) if guess and not (then_by_place and gap[1] - gap[0] == gap[3] - gap[2]) else []
        matched += guessed
        if then_by_place:
            matched += _by_place(gap, guessed)
    return _with_the_rest(sorted(matched, key=lambda pair: pair[0] or 0), len(a), len(b))


def _by_place(gap: Gap, guessed: Sequence[Pair]) -> list[Pair]:
    """The items between the ``guessed`` pairs of a gap, the first beside the first."""
    a0, a1, b0, b1 = gap
    found: list[Pair] = []
    for left, right in [*guessed, (a1, b1)]:
        assert left is not None
        assert right is not None
        found += zip(range(a0, left), range(b0, right), strict=False)
        a0, b0 = left + 1, right + 1
    return found


def _match(a: Sequence[Hashable], b: Sequence[Hashable], gaps: Sequence[Gap]) -> tuple[list[Gap], list[Pair]]:
    """Equal items inside each gap, and the gaps that are left."""
    left: list[Gap] = []
    found: list[Pair] = []
    for a0, a1, b0, b1 in gaps:
        at_a, at_b = a0, b0
        if a1 > a0 and b1 > b0:
            for block in LCSseq.opcodes(a[a0:a1], b[b0:b1]).as_matching_blocks():
                i, j = a0 + block.a, b0 + block.b
                left.append((at_a, i, at_b, j))
                found += [(i + n, j + n) for n in range(block.size)]
                at_a, at_b = i + block.size, j + block.size
        left.append((at_a, a1, at_b, b1))
    return [gap for gap in left if gap[1] > gap[0] and gap[3] > gap[2]], found


def _by_guess(gap: Gap, guess: Likeness) -> list[Pair]:
    """The pairs of one gap that are most alike in sum, order kept."""
    a0, a1, b0, b1 = gap
    rows, columns = a1 - a0, b1 - b0
    if rows * columns > _MOST_TABLE:
        return []
    reach = max(2.0, _MOST_GUESSES / rows / 2) if rows * columns > _MOST_GUESSES else columns
    best = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    value = [
        [guess(a0 + i, b0 + j) if abs(j - i * columns / rows) <= reach else 0.0 for j in range(columns)]
        for i in range(rows)
    ]
    for i in range(rows - 1, -1, -1):
        for j in range(columns - 1, -1, -1):
            best[i][j] = max(best[i + 1][j], best[i][j + 1], best[i + 1][j + 1] + value[i][j])
    pairs: list[Pair] = []
    i = j = 0
    while i < rows and j < columns:
        if value[i][j] > 0 and best[i][j] == best[i + 1][j + 1] + value[i][j]:
            pairs.append((a0 + i, b0 + j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def _with_the_rest(pairs: Sequence[Pair], size_a: int, size_b: int) -> list[Pair]:
    """``pairs`` with every unpaired item in its place, those of the first list first."""
    rows: list[Pair] = []
    at_a = at_b = 0
    for left, right in [*pairs, (size_a, size_b)]:
        assert left is not None
        assert right is not None
        rows += [(i, None) for i in range(at_a, left)]
        rows += [(None, j) for j in range(at_b, right)]
        rows.append((left, right))
        at_a, at_b = left + 1, right + 1
    return rows[:-1]
