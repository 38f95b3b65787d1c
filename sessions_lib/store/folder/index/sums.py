"""What is summed ahead, from the rows of messages: which copy of a message counts, and the sums of each session.

A message that stands in several files counts once (``messages.counts``): in the session that wrote it rather than in
one that inherited it, then in the one whose id comes first, then where it stands first. ``activity`` holds the sums of
a session by quarter of an hour, model and what else a price depends on, copies apart (``counts``, ``own``), so that
numbers over 10,000 sessions are sums over their 20,000 rows and not over 500,000 messages (11 ms against 160 to 400,
measured on 508,617).

The protocol: whoever changes rows of messages calls ``settle`` with the identities of the messages that came or went,
in the same transaction. It sets ``counts`` anew for exactly these identities, and makes the rows of ``activity`` anew
for the changed sessions and for those where another copy counts now. Nothing is ever added to stored sums.

Does not begin or end transactions.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection
from datetime import date

from sessions_lib.price_table import Billed
from sessions_lib.store.numbers import COUNTS, TOKENS

# Every zone's days begin at a multiple of 15 minutes UTC. Quarters are counted so that 96 make ``date.toordinal()``:
# from before the first day there is, so that SQLite's division, which rounds towards zero, always rounds down.
QUARTER_US = 900_000_000
DAY_0_US = date(1970, 1, 1).toordinal() * 96 * QUARTER_US  # from there to 1970
QUARTER = f"((coalesce(m.time, s.last_active) + {DAY_0_US}) / {QUARTER_US})"

_COUNT_ONCE = """
UPDATE messages SET counts = 1 - counts WHERE row IN (
  SELECT row FROM (
    SELECT m.row, m.counts, row_number() OVER (
      PARTITION BY m.identity ORDER BY m.number >= s.inherited DESC, s.id, m.number) = 1 AS is_first
    FROM messages m JOIN sessions s ON s.n=m.session WHERE m.identity IN (SELECT value FROM json_each(?)))
  WHERE counts <> is_first)
RETURNING session"""
# What no model wrote (prompts, results) stands under none; an answer that names none stands under ''.
_MODEL = "CASE WHEN m.role='assistant' THEN coalesce(m.model, '') END"
_COLUMNS = ", ".join(
    [*("session", "quarter", "model", "counts", "own", "tier", "host", "step"), *COUNTS, *TOKENS, *Billed._fields]
)
_CHOSEN = "m.session IN (SELECT value FROM json_each(?))"
_KEY = "m.counts, m.number >= s.inherited AS own"
_GROUP = "m.session, quarter, named, m.counts, own"


def billed(c: str) -> tuple[str, ...]:
    """What is billed of a row ``c`` of messages or of calls, in the order of ``Billed``."""
    fresh = f"coalesce({c}.input, 0) - {c}.read - {c}.written - {c}.written_1h"
    return fresh, f"{c}.read", f"{c}.written", f"{c}.written_1h", f"coalesce({c}.output, 0)", f"{c}.searches"


def _tokens(c: str, condition: str) -> str:
    """The sums of ``TOKENS`` and of what is billed over the rows ``c`` that meet ``condition``."""
    every = (*(f"{c}.{name}" for name in TOKENS), *billed(c))
    return ", ".join(f"sum({column}) FILTER (WHERE {condition})" for column in every)


_ACTIVITY = f"""
INSERT INTO activity({_COLUMNS})
SELECT m.session, {QUARTER} AS quarter, {_MODEL} AS named, {_KEY}, m.tier, m.host, m.step, count(*),
  sum(m.role='user'), sum(m.role='assistant'), sum(m.total IS NOT NULL), sum(m.calls), sum(m.role='tool'),
  sum(m.error), {_tokens("m", "NOT m.several")}
FROM messages m JOIN sessions s ON s.n=m.session WHERE {_CHOSEN} GROUP BY {_GROUP}, m.tier, m.host, m.step"""
# The tokens of an answer that several models made are each model's own.
_BY_CALL = f"""
INSERT INTO activity({_COLUMNS})
SELECT m.session, {QUARTER} AS quarter, c.model AS named, {_KEY}, c.tier, c.host, c.step, 0, 0, 0, 0, 0, 0, 0,
  {_tokens("c", "1")}
FROM model_calls c JOIN messages m ON m.session=c.session AND m.number=c.message JOIN sessions s ON s.n=m.session
WHERE {_CHOSEN} GROUP BY {_GROUP}, c.tier, c.host, c.step"""


def settle(db: sqlite3.Connection, identities: Collection[int], change: int) -> None:
    """Bring ``counts`` and ``activity`` up to date after messages of ``identities`` came or went in ``change``."""
    sessions = {n for (n,) in db.execute("SELECT n FROM sessions WHERE changed=?", (change,))}
    if identities:
        sessions |= {n for (n,) in db.execute(_COUNT_ONCE, (json.dumps(list(identities)),))}
    chosen = (json.dumps(list(sessions)),)
    db.execute("DELETE FROM activity WHERE session IN (SELECT value FROM json_each(?))", chosen)
    db.execute(_ACTIVITY, chosen)
    db.execute(_BY_CALL, chosen)


def of_session(db: sqlite3.Connection, session: int, first: int = 0) -> tuple[int | None, ...]:
    """Tokens, reports and answers of the messages of ``session`` from number ``first`` on, copies too."""
    tokens = ", ".join(f"sum({name})" for name in TOKENS)
    answers = "FROM messages WHERE session=? AND number>=? AND role='assistant'"
    found: tuple[int | None, ...] = db.execute(
        f"SELECT {tokens}, count(total), count(*) {answers}", (session, first)
    ).fetchone()
    return found
