"""Another tool's SQLite database, read without a trace: nothing is written into it or beside it.

A database that its tool has open is read together with what waits in its write-ahead log. Only tables are looked at,
never views or triggers, which could do anything.

Does not know what the tables mean.
"""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sessions_lib.importers.belonging import LOG
from sessions_lib.importers.source import Records, Source


@contextlib.contextmanager
def opened(source: Source) -> Iterator[sqlite3.Connection]:
    """A connection that only reads; ``ValueError`` if the database cannot be read."""
    try:
        with contextlib.ExitStack() as stack:
            path = source.path.absolute()
            if source.member is not None:
                path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "database"
                with source.open() as file:
                    path.write_bytes(file.read())
            log = path.with_name(path.name + LOG)
            mode = "mode=ro" if log.exists() and log.stat().st_size else "immutable=1"
            connection = stack.enter_context(contextlib.closing(sqlite3.connect(f"{path.as_uri()}?{mode}", uri=True)))
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            yield connection
    except sqlite3.Error as error:
        raise ValueError(f"a database that cannot be read: {error}") from error


def tables(records: Records) -> dict[str, set[str]]:
    """The tables of a database with their columns; none for any other file."""
    if not records.is_database or records.source is None:
        return {}
    with opened(records.source) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: columns(connection, name) for name in names}


def columns(connection: sqlite3.Connection, table: str) -> set[str]:
    """The columns of ``table``."""
    return {name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))}


def rows(connection: sqlite3.Connection, query: str, *given: Any) -> Iterator[dict[str, Any]]:
    """The rows of ``query``, each by the names of its columns."""
    found = connection.execute(query, given)
    names = [column[0] for column in found.description]
    for row in found:
        yield dict(zip(names, row, strict=True))
