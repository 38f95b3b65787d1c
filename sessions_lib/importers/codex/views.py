"""One thing told several ways: Codex writes what was said for the model and for the screen, each in its own records.

Does not know records.
"""

from __future__ import annotations

from collections import Counter


def squeezed(text: str) -> str:
    """``text`` without blanks and line breaks, in which the views differ.

    >>> squeezed("Is it\\n running?") == squeezed("Is it running?")
    True
    """
    return "".join(text.split())


class Views:
    """What the views told so far, by key; what one tells is new if no other told it as often."""

    def __init__(self) -> None:
        """Nothing was told yet."""
        self._seen: dict[str, Counter[str]] = {}
        self._taken: Counter[str] = Counter()

    def has(self, view: str, key: str) -> bool:
        """True if another view told ``key``, and ``view`` did not yet."""
        return self._seen.get(view, Counter())[key] < self._taken[key]

    def is_new(self, view: str, key: str) -> bool:
        """Note that ``view`` tells ``key``; true if it is to be taken, false if another view gave it already."""
        seen = self._seen.setdefault(view, Counter())
        seen[key] += 1
        if seen[key] <= self._taken[key]:
            return False
        self._taken[key] = seen[key]
        return True

    def clear(self) -> None:
        """Forget everything: what is told from now on is news."""
        self._seen.clear()
        self._taken.clear()
