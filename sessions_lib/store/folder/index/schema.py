"""The catalog's SQLite file: opened privately, made anew when it is damaged or old, done without when it cannot be.

``.catalog.sqlite`` is a cache: delete it and no answer changes. It is made 0600 before SQLite sees it (its ``-wal`` and
``-shm`` take its permissions), never through a link, in WAL mode so that reading never waits for a writer.

Does not know what a session is.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

NAME = ".catalog.sqlite"
VERSION = 27
WAIT_MS = 5_000  # for another process's batch, which takes well under a second

SCHEMA = """
CREATE TABLE facts(name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE sessions(
  n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, changed INTEGER NOT NULL,
  size INTEGER, mtime INTEGER, inode INTEGER, meta_size INTEGER, meta_mtime INTEGER, meta_inode INTEGER,
  offset INTEGER NOT NULL, lines INTEGER NOT NULL, mark BLOB, open_line INTEGER NOT NULL, last_id TEXT,
  turn_from INTEGER NOT NULL, turn_time INTEGER, first_time INTEGER, said_time INTEGER,
  max_time INTEGER, prompt TEXT,
  meta TEXT NOT NULL, title TEXT NOT NULL, title_text TEXT NOT NULL, tags TEXT NOT NULL,
  created INTEGER, last_active INTEGER, newest INTEGER, parent TEXT, inherited INTEGER NOT NULL, place TEXT NOT NULL,
  messages INTEGER NOT NULL, turns INTEGER NOT NULL, models TEXT NOT NULL, tools TEXT NOT NULL, verdict TEXT NOT NULL,
  settings TEXT NOT NULL, uses_settings INTEGER NOT NULL,
  input INTEGER, cached INTEGER, output INTEGER, reasoning INTEGER, total INTEGER,
  reported INTEGER NOT NULL, answers INTEGER NOT NULL,
  own_input INTEGER, own_cached INTEGER, own_output INTEGER, own_reasoning INTEGER, own_total INTEGER,
  own_reported INTEGER NOT NULL, own_answers INTEGER NOT NULL,
  calls INTEGER NOT NULL, errors INTEGER NOT NULL, damaged INTEGER NOT NULL, unanswered INTEGER NOT NULL,
  fault TEXT, indexed INTEGER NOT NULL, last_row INTEGER NOT NULL, waiting TEXT NOT NULL);
CREATE INDEX sessions_by_time ON sessions(last_active DESC, id);
CREATE INDEX sessions_by_newest ON sessions(newest DESC);
CREATE INDEX sessions_waiting ON sessions(n) WHERE indexed < messages;
CREATE INDEX sessions_by_last_row ON sessions(last_row);
CREATE INDEX sessions_by_title ON sessions(title_text) WHERE title_text<>'';
CREATE INDEX sessions_totals ON sessions(parent, messages, total, offset, damaged, fault);
CREATE INDEX sessions_by_change ON sessions(changed);
CREATE INDEX sessions_by_parent ON sessions(parent) WHERE parent IS NOT NULL;
CREATE TABLE gone(id TEXT PRIMARY KEY, changed INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE names(kind TEXT, name TEXT, session INTEGER, spelled TEXT,
  PRIMARY KEY(kind, name, session)) WITHOUT ROWID;
CREATE INDEX names_by_session ON names(session, kind);
CREATE TABLE messages(
  row INTEGER PRIMARY KEY, session INTEGER NOT NULL, number INTEGER NOT NULL, start INTEGER NOT NULL,
  length INTEGER NOT NULL, place INTEGER NOT NULL, role TEXT NOT NULL, time INTEGER, counts INTEGER NOT NULL,
  identity INTEGER NOT NULL, model TEXT, input INTEGER, cached INTEGER, output INTEGER, reasoning INTEGER,
  total INTEGER, several INTEGER NOT NULL, calls INTEGER NOT NULL, error INTEGER NOT NULL, duration_ms INTEGER,
  first_token_ms INTEGER, context INTEGER, turn INTEGER NOT NULL, tier TEXT NOT NULL, host TEXT NOT NULL,
  step INTEGER NOT NULL, read INTEGER NOT NULL, written INTEGER NOT NULL, written_1h INTEGER NOT NULL,
  searches INTEGER NOT NULL);
CREATE INDEX messages_by_session ON messages(session, number);
CREATE INDEX messages_by_identity ON messages(identity);
CREATE INDEX messages_again ON messages(session, number) WHERE counts=0;
CREATE INDEX messages_first_token ON messages(first_token_ms) WHERE first_token_ms IS NOT NULL AND counts=1;
CREATE TABLE model_calls(
  session INTEGER, message INTEGER, model TEXT, input INTEGER, cached INTEGER, output INTEGER, reasoning INTEGER,
  total INTEGER, tier TEXT, host TEXT, step INTEGER, read INTEGER, written INTEGER, written_1h INTEGER,
  searches INTEGER);
CREATE INDEX model_calls_by_session ON model_calls(session, message);
CREATE TABLE calls(
  session INTEGER, message INTEGER, position INTEGER, id TEXT, name TEXT, result INTEGER, error INTEGER,
  effect INTEGER, duration_ms INTEGER, PRIMARY KEY(session, message, position)) WITHOUT ROWID;
CREATE TABLE activity(
  session INTEGER, quarter INTEGER, model TEXT, counts INTEGER, own INTEGER, tier TEXT, host TEXT, step INTEGER,
  messages INTEGER, turns INTEGER, answers INTEGER, reported INTEGER,
  tool_calls INTEGER, tool_results INTEGER, errors INTEGER, input INTEGER, cached INTEGER, output INTEGER,
  reasoning INTEGER, total INTEGER, fresh INTEGER, read INTEGER, written INTEGER, written_1h INTEGER,
  generated INTEGER, searches INTEGER, cost REAL, is_priced INTEGER DEFAULT 0);
CREATE INDEX activity_by_session ON activity(session, quarter);
CREATE INDEX activity_to_price ON activity(session) WHERE is_priced=0;
CREATE TABLE terms(list INTEGER PRIMARY KEY AUTOINCREMENT, terms TEXT NOT NULL);
CREATE VIRTUAL TABLE said USING fts5(text, content='', detail=none, columnsize=0, tokenize='ascii');
CREATE VIRTUAL TABLE said_terms USING fts5vocab(said, row);
INSERT INTO said(said, rank) VALUES('hashsize', 67108864);
INSERT INTO facts VALUES('change', 0), ('next_row', 1), ('dead_rows', 0), ('whole_row', 0), ('bulk', 0),
  ('prices', ''), ('indexings', 0), ('terms_made', 0), ('stats', x'');
"""


def open_catalog(folder: Path) -> tuple[sqlite3.Connection, Path | None]:
    """A connection to the catalog of ``folder`` and its path; in memory, and ``None``, where no file can be used."""
    path = folder / NAME
    for attempt in ("as it is", "anew"):
        try:
            if attempt == "anew":
                remove(path)
            return _open_file(path), path
        except sqlite3.OperationalError:
            break  # locked by somebody, a full or read-only disk: the file may be fine, so it stays
        except sqlite3.DatabaseError:
            continue
        except OSError:
            break
    return in_memory(), None


def in_memory() -> sqlite3.Connection:
    """An empty catalog that no file holds."""
    connection = _connect(":memory:")
    connection.executescript(SCHEMA)
    return connection


def _connect(name: str) -> sqlite3.Connection:
    connection = sqlite3.connect(name, timeout=WAIT_MS / 1000, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA trusted_schema=OFF")
    return connection


def _open_file(path: Path) -> sqlite3.Connection:
    for name in (path, *_companions(path)):
        if os.path.lexists(name):
            _check_private(name)
    # A file that is there is never opened here: closing it would take away the locks of this process's other
    # connections to it (https://sqlite.org/howtocorrupt.html, 2.2), and another process would delete their log.
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    if stat.S_IMODE(os.lstat(path).st_mode) != 0o600:  # a umask took more away
        os.chmod(path, 0o600)
    connection = _connect(str(path))
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=OFF")  # a cache: a crash of the machine may cost it, never an answer
        connection.execute("PRAGMA cache_size=-65536")
        found = connection.execute("PRAGMA user_version").fetchone()[0]
        if found != VERSION:
            _make(connection, found)
        connection.execute("SELECT value FROM facts WHERE name='change'").fetchone()[0]
    except BaseException:
        connection.close()
        raise
    return connection


def _make(connection: sqlite3.Connection, found: int) -> None:
    """The tables of this version; whatever another version left is dropped, inside one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if connection.execute("PRAGMA user_version").fetchone()[0] == VERSION:
            connection.execute("ROLLBACK")  # another process was faster
            return
        drop_all(connection)
        for statement in SCHEMA.split(";\n"):
            if statement.strip():
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version={VERSION}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def drop_all(connection: sqlite3.Connection) -> None:
    """Drop every table of the catalog."""
    virtual = "SELECT name FROM sqlite_master WHERE type='table' AND sql LIKE 'CREATE VIRTUAL%' ORDER BY rowid DESC"
    plain = "SELECT name FROM sqlite_master WHERE type='table' AND name NOT LIKE 'sqlite_%'"
    for query in (virtual, plain):
        for (name,) in connection.execute(query).fetchall():
            connection.execute(f'DROP TABLE IF EXISTS "{name}"')


def _companions(path: Path) -> list[Path]:
    return [path.with_name(path.name + ending) for ending in ("-wal", "-shm", "-journal")]


def _check_private(path: Path) -> None:
    """Refuse what is no regular file of ours; take away the permissions that others have."""
    state = os.lstat(path)
    if not stat.S_ISREG(state.st_mode):
        raise OSError(f"{path.name} is not a regular file")
    if stat.S_IMODE(state.st_mode) & 0o077:
        os.chmod(path, 0o600)


def remove(path: Path) -> None:
    """Delete the catalog's files, and nothing that is no regular file."""
    for name in (path, *_companions(path)):
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISREG(os.lstat(name).st_mode):
                os.unlink(name)


@contextlib.contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Everything inside, or nothing of it."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def still_there(path: Path, inode: int) -> bool:
    """True if ``path`` is still the file that was opened."""
    try:
        return os.lstat(path).st_ino == inode
    except OSError:
        return False
