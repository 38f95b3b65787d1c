"""Numbers over a folder as pandas frames, straight from the catalog: each message once.

A message that stands in several files (a fork's copied start) counts once, in the session that wrote it; what forks
send again is told beside it (``Figures.sent_again``) and never added. So a tag's, a model's or a day's tokens are those
of messages written in its sessions, on it, by it; ``own_…`` and whole columns of ``sessions`` are per file.

Tokens have one meaning for all providers (``usage``): ``input`` is everything sent with the ``cached`` part inside it,
``output`` everything generated with ``reasoning`` inside it, ``total`` their sum. They are ``Int64``: ``<NA>`` is
unknown, never 0. ``reported`` of ``answers`` say how many answers reported usage. The dict as reported stays in the
file. Money is ``cost`` (Float64: US dollars, ``<NA>`` where nothing was priced), and beside it the tokens that have
none: ``unpriced`` (of models without a price) and ``unmetered`` (of local servers and the demo), int64.

Times are UTC; days are those of ``zone`` (default: this machine's). Durations are milliseconds.

Every function takes a ``Query`` (``query.parse``): its words and session filters choose sessions, its days choose
messages. A blank query is the whole folder.

Does not draw, and never reads a session's file itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta, tzinfo
from typing import Any

import pandas as pd

from sessions_lib import prices, query, times
from sessions_lib.query import Query
from sessions_lib.store import family, tagging
from sessions_lib.store.numbers import BY_DAY, BY_NAME, COUNTS, MESSAGES, MONEY, SESSIONS, TOKENS, TOOLS, Figures
from sessions_lib.store.store import SessionCatalog

ALL = Query()
NO_TAG = "untagged"
NO_MODEL = "unknown model"

_TIME_COLUMNS = ("created", "last_active", "time")


def figures(catalog: SessionCatalog, asked: Query = ALL) -> Figures:
    """The figures of what ``asked`` chooses."""
    return catalog.numbers.figures(asked)


def period_before(asked: Query, zone: tzinfo | None = None, now: datetime | None = None) -> Query | None:
    """The same query for the period of equal length, in days, before its range; ``None`` for one without a start,
    or without days before it.

    A range without an end lasts until the end of today (or of the day of ``now``) in ``zone``.
    """
    if asked.since is None:
        return None
    first = times.local_day(asked.since, zone)
    moment = now or times.parse(times.now())
    assert moment is not None  # the clock's own text is a time
    today = times.local_day(moment, zone)
    until = times.local_day(asked.until, zone) if asked.until else today + timedelta(days=1)
    days = max(1, (until - first).days)
    if days >= first.toordinal():
        return None  # it would begin before the calendar does
    return replace(asked, since=query.midnight(first - timedelta(days=days), zone), until=query.midnight(first, zone))


# ---------------------------------------------------------------- frames


def sessions(catalog: SessionCatalog, asked: Query = ALL) -> pd.DataFrame:
    """A row a session, newest first.

    ``id``, ``title``, ``parent`` (string), ``tags``, ``models`` (lists of str); ``created``, ``last_active``
    (datetime, UTC); ``messages``, ``turns``, ``inherited``, ``tool_calls``, ``errors``, ``damaged``, ``unanswered``,
    ``size_bytes`` (int64); ``input`` … ``total`` of the whole file and ``own_input`` … ``own_total`` of what was
    written in it (Int64); ``reported``, ``answers``, ``own_reported``, ``own_answers`` (int64); money of the whole file
    and ``own_…``. Never sum the whole-file columns over sessions: forks repeat their start.
    """
    counts = SESSIONS[SESSIONS.index("messages") : SESSIONS.index("input")]
    answers = ("reported", "answers", "own_reported", "own_answers")
    tokens = (*TOKENS, *(f"own_{name}" for name in TOKENS))
    texts = ("id", "title", "parent")
    money = (*MONEY, *(f"own_{name}" for name in MONEY))
    frame = _frame(catalog.numbers.sessions(asked), SESSIONS, whole=counts + answers, maybe=tokens, texts=texts)
    return frame[[*texts, "tags", "models", "created", "last_active", *counts, *tokens, *answers, *money]]


def messages(catalog: SessionCatalog, asked: Query = ALL) -> pd.DataFrame:
    """A row a message, each once, oldest first; messages without a time have that of their session.

    ``session``, ``role``, ``model`` (string, ``<NA>`` where not known); ``number`` (index in its session, int64);
    ``time`` (datetime, UTC); ``input`` … ``total``, ``duration_ms``, ``first_token_ms`` (Int64); money; ``tool_calls``
    (made by it), ``error`` (1 for a failed tool's result) (int64).
    """
    return _frame(
        catalog.numbers.messages(asked),
        MESSAGES,
        whole=("number", "tool_calls", "error"),
        maybe=(*TOKENS, "duration_ms", "first_token_ms"),
        texts=("session", "role", "model"),
    )


def tools(catalog: SessionCatalog, asked: Query = ALL) -> pd.DataFrame:
    """A row a tool, the most called first; each call once.

    ``tool`` (string); ``calls``, ``failures`` (results that say so), ``unanswered``, ``sessions`` (int64);
    ``duration_ms`` (sum over the ``timed`` calls that recorded it, Int64), ``timed`` (int64).
    """
    return _frame(
        catalog.numbers.tools(asked),
        TOOLS,
        whole=("calls", "failures", "unanswered", "sessions", "timed"),
        maybe=("duration_ms",),
        texts=("tool",),
    )


def by_day(
    catalog: SessionCatalog, asked: Query = ALL, zone: tzinfo | None = None, split: str | None = None
) -> pd.DataFrame:
    """A row a day with messages, oldest first; ``split`` by ``"tag"`` or ``"model"`` gives a row a day and name.

    ``day`` (datetime.date in ``zone``), ``name`` if split; ``sessions`` (active that day), ``messages``, ``turns``,
    ``answers``, ``reported``, ``tool_calls``, ``tool_results``, ``errors`` (int64); ``input`` … ``total`` (Int64);
    money. A session with two tags stands under both: do not sum over tags.
    """

    names = _names(catalog, split)
    found = catalog.numbers.by_day(asked, zone, split)
    rows = sorted(((date.fromordinal(day), names.get(name, name), *sums) for day, name, *sums in found), key=_first_two)
    frame = _frame(rows, BY_DAY, whole=("sessions", *COUNTS), maybe=TOKENS, texts=("name",))
    return frame if split else frame.drop(columns="name")


def by_tag(catalog: SessionCatalog, asked: Query = ALL) -> pd.DataFrame:
    """A row a tag (and one for sessions without any), most sessions first.

    ``tag`` (string); ``sessions``, ``forks``, ``wins`` (sessions that won by verdict), ``messages``, ``turns``, …
    (int64); ``input`` … ``total`` (Int64); money. A session with two tags stands under both: do not sum over tags.
    """
    return _by_name(catalog, asked, "tag")


def by_model(catalog: SessionCatalog, asked: Query = ALL) -> pd.DataFrame:
    """A row a model, most tokens first: what it answered and spent. Columns as in ``by_tag``, with ``model``.

    Messages no model wrote (prompts, tool results) are not in it; answers that name none are ``unknown model``. A model
    that only took part in the answers of another (an advisor) has its tokens here, and no answers.
    """
    return _by_name(catalog, asked, "model")


def by_tool(catalog: SessionCatalog, asked: Query = ALL) -> pd.DataFrame:
    """A row a tool, most tokens first: the answers that called it. Columns as in ``by_tag``, with ``tool``.

    An answer that called two tools stands under both: do not sum over tools.
    """
    return _by_name(catalog, asked, "tool")


def _by_name(catalog: SessionCatalog, asked: Query, split: str) -> pd.DataFrame:
    names = _names(catalog, split)
    rows = [(names.get(name, name), *sums) for name, *sums in catalog.numbers.by_name(asked, split)]
    columns = (split, *BY_NAME[1:])
    frame = _frame(rows, columns, whole=("sessions", "forks", "wins", *COUNTS), maybe=TOKENS, texts=(split,))
    order = ["sessions", "messages"] if split == "tag" else ["total", "answers"]
    return frame.sort_values([*order, split], ascending=[False, False, True], na_position="last", ignore_index=True)


def families(catalog: SessionCatalog, asked: Query = ALL) -> pd.DataFrame:
    """A row a family (a session and everything forked from it), most tokens first; each message once.

    ``root`` (the id of the oldest ancestor that is there), ``title`` (its title) (string); ``sessions`` (int64),
    ``turns`` (int64), ``total`` and ``sent_again`` (tokens of copies, beside ``total``) (Int64); money of each
    message once.
    """

    rows = catalog.numbers.by_session(asked)
    parents = {session: parent for session, parent, *_ in rows}
    titles = {session: title for session, _, title, *_ in rows}
    whole = {session: total for session, _, _, total, *_ in rows}
    once = {session: counts for session, _, _, _, *counts in rows}
    members: dict[str, list[str]] = {}
    for session in parents:
        oldest = [one for one in family.line(session, parents) if one in parents][-1]
        members.setdefault(oldest, []).append(session)
    columns = ("root", "title", "sessions", "turns", "total", "sent_again", *MONEY)
    made = []
    for root, kin in members.items():
        turns = sum(once[one][0] for one in kin)
        totals = [once[one][1] for one in kin if once[one][1] is not None]
        files = [whole[one] for one in kin if whole[one] is not None]
        answers = sum(once[one][2] for one in kin)  # without any, nothing was spent: known, and 0
        total = sum(totals) if totals or not answers else None
        again = sum(files) - (total or 0) if files and not (asked.since or asked.until) else None
        money = prices.add(prices.Spent(*once[one][3:]) for one in kin)
        spent = (money.cost if answers else 0.0, money.unpriced, money.unmetered)
        made.append((root, titles[root], len(kin), turns, total, again, *spent))
    frame = _frame(made, columns, whole=("sessions", "turns"), maybe=("total", "sent_again"), texts=("root", "title"))
    return frame.sort_values(["total", "root"], ascending=[False, True], na_position="last", ignore_index=True)


def context(catalog: SessionCatalog, session: str) -> pd.DataFrame:
    """A row a turn of one session: why a resumed session costs more every day.

    ``turn`` (from 1), ``message`` (the prompt's index) (int64); ``time`` (datetime, UTC); ``inherited`` (bool);
    ``answers`` (int64); ``context`` (input of the turn's last answer: how long the conversation is by now), ``input``,
    ``output``, ``total`` (spent in the turn), ``so_far`` (``total`` of all turns up to here) (Int64); its money.
    """

    turns: list[list[Any]] = []
    prompts = 0
    parts: list[list[prices.Spent]] = []
    for number, role, time, own, length, *tokens in catalog.numbers.context(session):
        *tokens, cost, unpriced, unmetered = tokens
        prompts += role == "user"
        if not turns or (role == "user" and prompts > 1):
            turns.append([len(turns) + 1, number, time, not own, 0, None, None, None, None, None])
            parts.append([])
        parts[-1].append(prices.Spent(cost, unpriced, unmetered))
        if role == "assistant":
            turn = turns[-1]
            turn[4] += 1
            turn[5] = length if length is not None else turn[5]
            for place, value in zip((6, 7, 8), tokens, strict=True):
                if value is not None:
                    turn[place] = (turn[place] or 0) + value
    so_far = None
    for turn in turns:
        spent = turn[8] if turn[4] else 0
        so_far = turn[9] = so_far if spent is None else (so_far or 0) + spent
    for turn, costs in zip(turns, parts, strict=True):
        money = prices.add(costs)
        turn += [money.cost, money.unpriced, money.unmetered]
    tokens_of_turn = ("context", "input", "output", "total", "so_far")
    columns = ("turn", "message", "time", "inherited", "answers", *tokens_of_turn, *MONEY)
    maybe = ("context", "input", "output", "total", "so_far")
    frame = _frame(turns, columns, whole=("turn", "message", "answers"), maybe=maybe)
    return frame.astype({"inherited": bool})


def trial(results: Iterable[Any], checks: Sequence[str]) -> pd.DataFrame:
    """A row a repeat of a trial: what it took, and what each of ``checks`` (by its name) says of it.

    ``variant``, ``session``, ``state`` (string); ``repeat`` (int64); ``passed`` (boolean); ``tokens`` (Int64),
    ``seconds``, ``dollars`` (float, NaN for unknown); a column a check (object: True, False, a score or why not).
    """
    columns = ("variant", "repeat", "session", "state", "passed", "tokens", "seconds", "dollars")
    rows = [(*(getattr(one, name) for name in columns), *one.verdicts) for one in results]
    rows = [row if len(row) == len(columns) + len(checks) else (*row, *[None] * len(checks)) for row in rows]
    frame = _frame(
        rows, (*columns, *checks), whole=("repeat",), maybe=("tokens",), texts=("variant", "session", "state")
    )
    return frame.astype({"passed": "boolean", "seconds": "float", "dollars": "float"})


# ---------------------------------------------------------------- pieces


def _names(catalog: SessionCatalog, split: str | None) -> dict[str, str]:
    """What a person sees for a tag's folded name, or for none; models are called what they are called."""
    if split == "tag":
        return {**{tagging.tag_key(tag): tag for tag in catalog.tags()}, "": NO_TAG}
    return {"": NO_MODEL} if split == "model" else {}


def _first_two(row: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(row[:2])


def _frame(
    rows: Sequence[Sequence[Any]],
    columns: Sequence[str],
    *,
    whole: Sequence[str] = (),
    maybe: Sequence[str] = (),
    texts: Sequence[str] = (),
) -> pd.DataFrame:
    """``rows`` with the documented dtypes, also when there are none."""
    values = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    made: dict[str, Any] = {}
    for name, column in zip(columns, values, strict=True):
        if name in _TIME_COLUMNS:
            made[name] = pd.to_datetime(pd.array(column, dtype="Int64"), unit="us", utc=True)
        elif name in whole:
            made[name] = pd.array(column, dtype="int64")
        elif name in maybe:
            made[name] = pd.array(column, dtype="Int64")
        elif name.removeprefix("own_") == "cost":
            made[name] = pd.array(column, dtype="Float64")
        elif name.removeprefix("own_") in MONEY:
            made[name] = pd.array(column, dtype="int64")
        elif name in texts:
            made[name] = pd.array(column, dtype="string")
        else:
            made[name] = pd.Series(column, dtype=object)
    for prefix in ("", "own_"):  # where there was no answer, nothing was spent: known, and 0 (see ``usage.Totals``)
        if prefix + "answers" in made:
            nothing = (made[prefix + "answers"] == 0) & pd.isna(made[prefix + "total"])
            for name in filter(made.__contains__, (prefix + token for token in (*TOKENS, "cost"))):
                made[name][pd.isna(made[name]) & nothing] = 0
    return pd.DataFrame(made, columns=list(columns))
