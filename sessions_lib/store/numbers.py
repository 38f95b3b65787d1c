"""Sums over sessions, each message once: what a store can be asked.

A message that stands in several sessions counts in the one that wrote it rather than in one that inherited it, then in
the one whose id comes first, then where it stands first. A query's words and session filters choose sessions, its days
choose messages; a message without a time has that of its session, and where nobody knows one, it is in no day.

Rows are tuples, their columns those below; times are microseconds since 1970, unknown is ``None``. ``stats`` makes
frames of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo
from typing import Any, Protocol

from sessions_lib.messages import usage
from sessions_lib.prices import NOTHING, Spent
from sessions_lib.query import Query

COUNTS = ("messages", "turns", "answers", "reported", "tool_calls", "tool_results", "errors")
TOKENS = usage.SUMS
MONEY = ("cost", "unpriced", "unmetered")  # as in ``prices.Spent``: dollars, and tokens that have none
NO_MONEY: tuple[None, int, int] = (None, 0, 0)
SESSIONS = (
    *("id", "title", "parent", "tags", "models", "created", "last_active", "messages", "turns", "inherited"),
    *("tool_calls", "errors", "damaged", "unanswered", "size_bytes"),
    *TOKENS,
    *(f"own_{name}" for name in TOKENS),
    *("reported", "answers", "own_reported", "own_answers"),
    *MONEY,
    *(f"own_{name}" for name in MONEY),
)
MESSAGES = (
    *("session", "number", "role", "model", "time", *TOKENS, *MONEY),
    *("tool_calls", "error", "duration_ms", "first_token_ms"),
)
TOOLS = ("tool", "calls", "failures", "unanswered", "sessions", "duration_ms", "timed")
BY_DAY = ("day", "name", "sessions", *COUNTS, *TOKENS, *MONEY)
BY_NAME = ("name", "sessions", "forks", "wins", *COUNTS, *TOKENS, *MONEY)
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a range, each message once.

    ``sessions`` have a message in the range, ``forks`` are those of them that are forks. ``sent_again`` are tokens of
    copies, ``money_again`` their money: beside ``tokens`` and ``money``, never part of them. ``first_token_ms`` is the
    median over answers that recorded it.
    """

    sessions: int
    forks: int
    messages: int
    turns: int
    tokens: usage.Totals
    sent_again: int | None
    tool_calls: int
    tool_results: int
    errors: int
    first_token_ms: float | None
    money: Spent = NOTHING
    money_again: Spent = NOTHING

    @property
    def error_rate(self) -> float | None:
        """The share of tool results that say the tool failed; ``None`` without results."""
        return self.errors / self.tool_results if self.tool_results else None


class Numbers(Protocol):
    """The numbers of a store; the rows of each method have the columns of its name, above."""

    def figures(self, asked: Query) -> Figures:
        """The figures of what ``asked`` chooses."""

    def sessions(self, asked: Query) -> Rows:
        """Whole sessions, newest first; ``tags`` and ``models`` are lists."""

    def messages(self, asked: Query) -> Rows:
        """Each message once, oldest first."""

    def tools(self, asked: Query) -> Rows:
        """The most called first."""

    def by_day(self, asked: Query, zone: tzinfo | None, split: str | None) -> Rows:
        """Oldest first; ``day`` is an ordinal in ``zone``, ``name`` a model or a ``tag_key`` (``""``: none)."""

    def by_name(self, asked: Query, split: str) -> Rows:
        """In no order, split by ``model`` (what it answered and spent), ``tag``, or ``tool`` (the answers that
        called it).

        An answer that called two tools stands under both.
        """

    def by_session(self, asked: Query) -> Rows:
        """In no order; ``in_file`` are the tokens of all messages, what follows is of those that count here."""

    def context(self, session: str) -> Rows:
        """Every message of one session; ``context`` is how long the conversation was at the end of an answer."""
