"""The text index: which messages may hold a word.

It is SQLite's FTS5 without stored text and without positions. It knows whole words; a query means parts of words
too, so the list of all words is kept beside it and a part is looked for as every word that holds it. Chinese, Japanese
and Korean runs, which have no blanks, are indexed as overlapping pairs of characters. What the index says is only
"perhaps here" (see ``search``); because both sides are folded and cut by the same functions, nothing true is missed.

Deleted texts leave no trace a search could find; their words stay in the index until a fifth of it is dead or
the catalog is rebuilt.

Does not refresh the catalog.
"""

from __future__ import annotations

import itertools
import re
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from operator import add
from pathlib import Path
from typing import Any

from sessions_lib import query
from sessions_lib.errors import SessionError
from sessions_lib.messages import content
from sessions_lib.query import Query
from sessions_lib.store.folder import jsonl, scan
from sessions_lib.store.folder.index.schema import transaction

SMALL_BYTES = 4_000_000  # up to here new words are collected in Python, beyond it they are read back from the index
BATCH_BYTES = 32_000_000
MAX_TERMS = 1_000  # a part of a word that more words hold says nothing
MAX_LISTS = 200  # of words, which few messages added each
REBUILD_FROM_DEAD = 20_000

_CJK = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3040-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_BETWEEN = "\u0080-\u00bf\u1680\u2000-\u206f\u3000-\u3004\u3008-\u3020\u3030"
_RUN = re.compile(f"[{_CJK}]+")
_NOT_ASCII = re.compile(f"[{_CJK}]+|[{_BETWEEN}]+")
_PIECE = re.compile(f"(?P<cjk>[{_CJK}]+)|(?P<word>[^\x00-/:-@\\[-`{{-\x7f{_BETWEEN}{_CJK}]+)")
_TOKEN = re.compile(f"[^\x00-/:-@\\[-`{{-\x7f{_BETWEEN}]+")


def index_text(folded: str) -> str:
    """Folded text as it goes into the index: CJK runs as pairs, blanks for punctuation beyond ASCII."""
    if folded.isascii():
        return folded.replace("\0", " ")
    return _NOT_ASCII.sub(_spaced, folded).replace("\0", " ")


def _spaced(found: re.Match[str]) -> str:
    run = found[0]
    if not _RUN.match(run):
        return " "
    return f" {' '.join(map(add, run, run[1:]))} {run[-1]} "


@dataclass(slots=True)
class Vocabulary:
    """All words in the index, as texts with a line a word, to find those that hold a part."""

    lists: list[str]
    last: int  # the newest of the stored lists that is in it
    made: int  # how often the stored lists were made anew
    state: tuple[Any, ...]

    @classmethod
    def load(cls, db: sqlite3.Connection, before: Vocabulary | None = None) -> Vocabulary:
        """The words as the catalog has them now; of ``before`` what is still right is taken over."""
        made = int(fact(db, "terms_made"))
        kept = before if before and before.made == made else cls([], 0, made, ())
        found = db.execute("SELECT list, terms FROM terms WHERE list>? ORDER BY list", (kept.last,)).fetchall()
        lists = [*kept.lists, *(f"\n{terms}\n" for _, terms in found)]
        return cls(lists, found[-1][0] if found else kept.last, made, _state(db))

    def is_current(self, db: sqlite3.Connection) -> bool:
        """True if nothing was indexed since."""
        return self.state == _state(db)

    def holding(self, part: str, *, at_end: bool) -> list[str] | None:
        """The words that hold ``part`` (``at_end``: end with it); ``None`` if they are too many."""
        wanted, found = part + ("\n" if at_end else ""), set()
        for terms in self.lists:
            at = 0
            while (at := terms.find(wanted, at)) >= 0:
                start, end = terms.rfind("\n", 0, at) + 1, terms.find("\n", at)
                found.add(terms[start:end])
                if len(found) > MAX_TERMS:
                    return None
                at = end
        return sorted(found)

    def expression(self, asked: Query) -> str | None:
        """The FTS5 expression that every matching message satisfies; ``None`` if the words say nothing."""
        parts = [part for needle in asked.needles for part in self._parts(needle)]
        return " AND ".join(dict.fromkeys(parts)) or None

    def _parts(self, needle: str) -> Iterator[str]:
        for found in _PIECE.finditer(needle):
            piece = found[0]
            starts, ends = found.start() == 0, found.end() == len(needle)
            if found["cjk"]:
                yield from (
                    (quoted(a + b) for a, b in itertools.pairwise(piece)) if len(piece) > 1 else [quoted(piece) + "*"]
                )
            elif not starts:
                yield quoted(piece) + ("*" if ends else "")
            elif (terms := self.holding(piece, at_end=not ends)) is not None:
                # No word holds it: an expression that nothing satisfies.
                yield f"({' OR '.join(map(quoted, terms))})" if terms else quoted(piece)


def quoted(term: str) -> str:
    """``term`` as a string of FTS5."""
    return '"' + term.replace('"', '""') + '"'


def fact(db: sqlite3.Connection, name: str) -> Any:
    """One of the numbers that the catalog keeps about itself."""
    found = db.execute("SELECT value FROM facts WHERE name=?", (name,)).fetchone()
    return found[0]


def _state(db: sqlite3.Connection) -> tuple[Any, ...]:
    return tuple(
        db.execute("SELECT name, value FROM facts WHERE name IN ('whole_row', 'bulk', 'indexings') ORDER BY name")
    )


# SQLite would rather walk all sessions by time.
_WAITING = "FROM sessions INDEXED BY sessions_waiting WHERE indexed < messages"


def unindexed_bytes(db: sqlite3.Connection) -> int:
    """About how many bytes of messages wait to be indexed; at least 1 while anything does."""
    waiting = db.execute(f"SELECT count(*), total(offset * (messages - indexed) / messages) {_WAITING}").fetchone()
    return max(int(waiting[1]), int(waiting[0]), int(bool(fact(db, "bulk"))))


def index(db: sqlite3.Connection, folder: Path, *, seconds: float) -> None:
    """Index what is waiting, newest sessions first, and stop after about ``seconds``."""
    until = time.monotonic() + seconds
    if (waiting := unindexed_bytes(db)) == 0:
        return
    _clear_if_dead(db)
    is_bulk = bool(fact(db, "bulk")) or waiting > SMALL_BYTES
    while time.monotonic() < until:
        with transaction(db):
            if is_bulk and not fact(db, "bulk"):
                db.execute("UPDATE facts SET value=1 WHERE name='bulk'")
                _merge_as_it_grows(db, False)
            count, terms = _index_batch(db, folder, until, is_bulk)
            # What could not be read now goes on waiting: a search scans it.
            is_done = not count or not db.execute(f"SELECT 1 {_WAITING} LIMIT 1").fetchone()
            if not is_bulk:
                _add_terms(db, terms)
            elif is_done:
                _read_terms(db)
        if is_done:
            return


def _clear_if_dead(db: sqlite3.Connection) -> None:
    dead, made = fact(db, "dead_rows"), fact(db, "next_row")
    if dead < REBUILD_FROM_DEAD or dead * 5 < made:
        return
    with transaction(db):
        db.execute("INSERT INTO said(said) VALUES('delete-all')")
        _merge_as_it_grows(db, True)
        db.execute("UPDATE sessions SET indexed=0")
        db.execute("UPDATE facts SET value=0 WHERE name IN ('dead_rows', 'whole_row', 'bulk')")
        _store_terms(db, set())


def _index_batch(db: sqlite3.Connection, folder: Path, until: float, is_bulk: bool) -> tuple[int, set[str]]:
    """Index sessions until the batch is full or the time is up: how many, and the new words unless read back later."""
    texts: list[tuple[int, str]] = []
    read: list[tuple[int, int]] = []
    size = 0
    until -= 0.4 * (until - time.monotonic())  # for what is done with what was read
    waiting = db.execute(f"SELECT n, id, messages, indexed, offset {_WAITING} ORDER BY last_active DESC, id").fetchall()
    for n, session, count, indexed, offset in waiting:
        found = _texts(db, folder, n, session, indexed)
        if found is None:
            continue
        texts += found
        read.append((count, n))
        size += offset * (count - indexed) // count
        if size > BATCH_BYTES or time.monotonic() > until:
            break
    # A row below the one before makes FTS5 write what it holds, and many small parts cost more to merge than to make.
    db.executemany("INSERT INTO said(rowid, text) VALUES(?, ?)", sorted(texts))
    db.executemany("UPDATE sessions SET indexed=? WHERE n=?", read)
    return len(read), set() if is_bulk else {term for _, text in texts for term in _TOKEN.findall(text)}


def _texts(db: sqlite3.Connection, folder: Path, n: int, session: str, indexed: int) -> list[tuple[int, str]] | None:
    """(row, text) of the messages of a session from number ``indexed`` on; ``None`` if they cannot be read now."""
    rows = db.execute(
        "SELECT row, number, start, place FROM messages WHERE session=? AND number>=? ORDER BY number", (n, indexed)
    ).fetchall()
    if not rows:
        return None
    try:
        said = jsonl.read(folder / f"{session}{scan.MESSAGES}", rows[0][2]).messages[rows[0][3] :]
    except (OSError, SessionError):
        return None
    return [
        (row[0], index_text(query.fold(text)))
        for row, message in zip(rows, said, strict=False)
        if (text := content.searchable(message))
    ]


def _add_terms(db: sqlite3.Connection, terms: set[str]) -> None:
    """Keep the words of a few messages as a list of their own, and all rows indexed so far become searchable."""
    if terms := terms - {""}:
        db.execute("INSERT INTO terms(terms) VALUES(?)", ("\n".join(sorted(terms)),))
        first, last = db.execute("SELECT min(list), max(list) FROM terms").fetchone()
        if last - first > MAX_LISTS:
            _join_terms(db, first)
    _now_searchable(db)


def _join_terms(db: sqlite3.Connection, first: int) -> None:
    """Make one list of the short ones; of all, once the short ones are no longer short beside the first."""
    lists = dict(db.execute("SELECT list, terms FROM terms"))
    long = lists.pop(first)
    words = {word for terms in lists.values() for word in terms.split("\n")}
    if sum(map(len, words)) * 4 > len(long):
        _store_terms(db, words | set(long.split("\n")))
    else:
        _store_terms(db, set(long.split("\n")), words)


def _read_terms(db: sqlite3.Connection) -> None:
    """Store the list of all words as the index has them, after making it as small as it gets."""
    db.execute("INSERT INTO said(said) VALUES('optimize')")
    _merge_as_it_grows(db, True)
    _store_terms(db, {term for (term,) in db.execute("SELECT term FROM said_terms")})
    db.execute("UPDATE facts SET value=0 WHERE name='bulk'")
    _now_searchable(db)


def _merge_as_it_grows(db: sqlite3.Connection, does: bool) -> None:
    """While very much is indexed, merging the index again and again costs more than doing it once, at the end."""
    db.execute("INSERT INTO said(said, rank) VALUES('automerge', ?)", (4 if does else 0,))
    db.execute("INSERT INTO said(said, rank) VALUES('crisismerge', ?)", (16 if does else 1_000,))


def _store_terms(db: sqlite3.Connection, *lists: set[str]) -> None:
    db.execute("DELETE FROM terms")
    for words in lists:
        db.execute("INSERT INTO terms(terms) VALUES(?)", ("\n".join(sorted(words - {""})),))
    db.execute("UPDATE facts SET value=value+1 WHERE name='terms_made'")


def _now_searchable(db: sqlite3.Connection) -> None:
    db.execute("UPDATE facts SET value=(SELECT value - 1 FROM facts WHERE name='next_row') WHERE name='whole_row'")
    db.execute("UPDATE facts SET value=value+1 WHERE name='indexings'")
