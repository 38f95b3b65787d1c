"""One database: its address without the password, a pool of connections, one sentence for whatever it refuses.

Connections are in autocommit, and nothing of a session of the server is relied on (no prepared statements, no settings
but those of one transaction, no locks that outlive one): it works behind a pooler in transaction mode, pgbouncer's.

What a restart of the server, or of the network, interrupts is done again: whoever asks gives work that can be.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg
from psycopg import errors, pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from sessions_lib.errors import SessionError, StorageError
from sessions_lib.store.postgres import schema

Connection = psycopg.Connection[tuple[Any, ...]]
T = TypeVar("T")

CONNECTIONS = 12  # of one process, at most
RETRY_S = 15.0  # a server that restarts is waited for
CONNECT_S = 5
_PAUSE_S = 0.1
# What the server says while it stops, or is not yet there again.
_AWAY = (errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow)
_SIGNS = {  # of a refusal to connect: what the server's own words hold → what a person reads, and what to do
    "password authentication failed": ("the password was refused", "password"),
    "no password supplied": ("it asks for a password, and none was given", "password"),
    "does not exist": ("there is no such database or role", "database"),
    "no pg_hba.conf entry": ("the server does not let this role in from here", "rights"),
    "is not permitted to log in": ("this role may not log in", "rights"),
    "permission denied": ("this role may not connect", "rights"),
    "definition of service": ("there is no such service in the service file", "database"),
}
_NEXT = {
    "password": "Put it in PGPASSWORD, ~/.pgpass or a service file, then retry.",
    "database": "Check the address; createdb makes a database.",
    "rights": "Ask whoever keeps the database.",
    "": "Check that it runs and can be reached, then retry.",
}


class Database:
    """A database of sessions; nothing is connected before the first question. ``person`` is who asks, if signed in."""

    def __init__(self, address: str, person: str | None = None) -> None:
        """The database at ``address``, ``postgresql://…``; ``SessionError`` if that is none."""
        self.person = person
        try:
            self._given = conninfo_to_dict(address)
        except psycopg.ProgrammingError:  # its words may hold the password
            what = "This is no address of a PostgreSQL database. Write it as postgresql://host/database."
            raise SessionError(what) from None
        self.where = shown(self._given)
        self._lock = threading.Lock()
        self._pool: ConnectionPool[Connection] | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """What a connection is made with; the password, if one was given, is among it."""
        return {
            "connect_timeout": CONNECT_S,
            "application_name": "forkbook",
            "keepalives_idle": 10,
            "tcp_user_timeout": 20_000,
            **{key: value for key, value in self._given.items() if value is not None},
        }

    def _opened(self) -> ConnectionPool[Connection]:
        with self._lock:
            if self._pool is None:
                first = connect(self.settings, self.where)  # a pool would try for long, and say only that it did
                try:
                    schema.migrate(first, self.where)
                except psycopg.Error as error:
                    raise told(error, self.where) from error
                finally:
                    first.close()
                self._pool = ConnectionPool(
                    make_conninfo(**self.settings),
                    kwargs={"autocommit": True, "prepare_threshold": None},
                    min_size=0,
                    max_size=CONNECTIONS,
                    max_idle=120,
                    timeout=RETRY_S,
                    reconnect_timeout=RETRY_S,
                    name="forkbook",
                    open=True,
                )
            return self._pool

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection for one statement or one transaction; what the database refuses is raised as it is."""
        with self._opened().connection() as connection:
            if self.person is None:
                yield connection
                return
            with connection.transaction():
                connection.execute("select set_config('forkbook.person', %s, true)", (self.person,))
                yield connection

    def run(self, work: Callable[[Connection], T]) -> T:
        """What ``work`` gives on a connection; it is done again if the server went away meanwhile.

        ``StorageError`` in one sentence for whatever else the database refuses.
        """
        deadline = time.monotonic() + RETRY_S
        while True:
            try:
                with self.connection() as connection:
                    return work(connection)
            except (psycopg.OperationalError, PoolTimeout, PoolClosed) as error:
                if not _is_away(error) or time.monotonic() >= deadline:
                    raise told(error, self.where) from error
                self._drop_broken()
                time.sleep(_PAUSE_S)
            except psycopg.Error as error:
                raise told(error, self.where) from error

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of one statement."""
        return self.run(lambda connection: connection.execute(statement, values or None).fetchall())

    def row(self, statement: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """The first row of one statement, if there is any."""
        return self.run(lambda connection: connection.execute(statement, values or None).fetchone())

    def in_transaction(self, work: Callable[[Connection], T]) -> T:
        """``run``, all or nothing."""

        def whole(connection: Connection) -> T:
            with connection.transaction():
                return work(connection)

        return self.run(whole)

    def _drop_broken(self) -> None:
        pool = self._pool
        if pool is not None:
            with suppress(psycopg.Error, PoolTimeout):
                pool.check()

    def close(self) -> None:
        """Close what is open; the next question opens it again."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()


def shown(given: Mapping[str, Any]) -> str:
    """The address as a person reads it, and as the key of runs and caches: without password and settings."""
    if given.get("service"):
        return f"postgresql://?service={given['service']}"
    usual = {option.keyword.decode(): (option.val or b"").decode() for option in pq.Conninfo.get_defaults()}
    user, host, port, name = (str(given.get(key) or usual[key]) for key in ("user", "host", "port", "dbname"))
    address = f"postgresql://{user}@{host or 'localhost'}" + (f":{port}" if port != "5432" else "")
    return f"{address}/{name or user}"


def connect(settings: Mapping[str, Any], where: str) -> Connection:
    """A connection of its own; ``StorageError`` says why there is none."""
    try:
        return psycopg.connect(make_conninfo(**settings), autocommit=True, prepare_threshold=None)
    except psycopg.Error as error:
        raise told(error, where) from error


def _is_away(error: Exception) -> bool:
    if isinstance(error, (*_AWAY, PoolTimeout, PoolClosed)):
        return True
    return isinstance(error, psycopg.OperationalError) and error.sqlstate is None


def told(error: Exception, where: str) -> SessionError:
    """What a person is told of ``error``: a sentence without the password, and what to do."""
    if isinstance(error, errors.InsufficientPrivilege):
        return StorageError(
            where, "this role has no right to do that", "Whoever keeps the database grants it, as the README says."
        )
    if isinstance(error, errors.DiskFull | errors.OutOfMemory | errors.InsufficientResources):
        return StorageError(where, "the database has no room left", "Free space there, then retry.")
    if isinstance(error, errors.ReadOnlySqlTransaction):
        return StorageError(where, "the database is read-only", "Give the address of one that can be written.")
    if isinstance(error, errors.QueryCanceled):
        return StorageError(where, "the database gave the question up: it took too long", "Ask for less.")
    if isinstance(error, psycopg.OperationalError | PoolTimeout | PoolClosed):
        said = str(error)
        for sign, (reason, kind) in _SIGNS.items():
            if sign in said:
                return StorageError(where, reason, _NEXT[kind])
        return StorageError(where, "the database cannot be reached", _NEXT[""])
    reason = str(getattr(getattr(error, "diag", None), "message_primary", None) or type(error).__name__)
    return StorageError(where, f"the database refused ({reason[:200]})", "Run forkbook check.")
