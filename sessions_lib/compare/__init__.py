"""Where conversations parted, and what each branch cost.

>>> from sessions_lib.compare import Branch, compare
"""

from __future__ import annotations

from sessions_lib.compare.comparison import (
    LETTERS,
    MOST,
    Branch,
    Comparison,
    Order,
    Parted,
    Row,
    Shared,
    compare,
    shared_start,
)

__all__ = [
    "LETTERS",
    "MOST",
    "Branch",
    "Comparison",
    "Order",
    "Parted",
    "Row",
    "Shared",
    "compare",
    "shared_start",
]
