"""One writer: a lease in a row of the database, renewed while its process lives, and free a while after it died.

A lease that ran out is still its holder's as long as nobody else took it: a process that slept goes on, or learns that
another one has written. Times are the server's alone, so clocks may differ. The rows are in an unlogged table: taking
one does not wait for the disk.

Does not write sessions.
"""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from sessions_lib import times
from sessions_lib.errors import Holder, SessionError, SessionLocked
from sessions_lib.store.postgres.database import Connection, Database

LEASE_S = 15.0  # how long after its last sign of life a writer is waited for
_RENEWALS = 3  # in this time
_PAUSE_S = 0.02
_HOST = socket.gethostname()

_TAKE = """
insert into forkbook.lease(name, token, until, pid, host, since)
values(%(name)s, %(token)s, clock_timestamp() + %(for)s * interval '1 second', %(pid)s, %(host)s, %(since)s)
on conflict (name) do update set token = excluded.token, until = excluded.until, pid = excluded.pid,
  host = excluded.host, since = excluded.since, stop = false
where lease.until <= clock_timestamp() or lease.token = excluded.token
returning token"""
_RENEW = """
update forkbook.lease set until = clock_timestamp() + %(for)s * interval '1 second'
where name = %(name)s and token = %(token)s returning stop"""
_RELEASE = "update forkbook.lease set until = '-infinity' where name = %(name)s and token = %(token)s"


class Lease:
    """The lease of one name, taken when it is made; a context manager; releasing twice does nothing."""

    def __init__(self, database: Database, name: str, session: str, timeout_s: float) -> None:
        """Take it, waiting at most ``timeout_s``; ``SessionLocked`` names who has it after that."""
        self._database, self.session, self._owner = database, session, os.getpid()
        self.name, self.token = name.lower(), uuid.uuid4()
        self.on_stop: Callable[[], None] | None = None
        self._is_held = False
        deadline = time.monotonic() + timeout_s
        while not database.run(self._taken):
            if time.monotonic() >= deadline:
                raise SessionLocked(session, holder(database, name) or Holder())
            time.sleep(_PAUSE_S)
        self._is_held = True
        _renewing.add(self)

    @property
    def _values(self) -> dict[str, object]:
        who = {"pid": os.getpid(), "host": _HOST, "since": times.now()}
        return {"name": self.name, "token": self.token, "for": LEASE_S, **who}

    def _taken(self, connection: Connection) -> bool:
        return connection.execute(_TAKE, self._values).fetchone() is not None

    def renew(self) -> bool:
        """Keep it for another while; False if another writer has taken it since it ran out."""
        found = self._database.run(lambda connection: connection.execute(_RENEW, self._values).fetchone())
        if found is None:  # taken by another, or a restart of the server has emptied the table
            return self._database.run(self._taken)
        if found[0] and self.on_stop is not None:
            self.on_stop()
        return True

    @property
    def is_held(self) -> bool:
        """True until ``release``; never in a child made by ``fork()``: the lease is its parent's."""
        return self._is_held and self._owner == os.getpid()

    def release(self) -> None:
        """Let the next writer in, from any thread."""
        was_held, self._is_held = self.is_held, False
        if was_held:
            _renewing.remove(self)
            _release(self._database, self._values)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def __del__(self) -> None:
        # The collector may come in the middle of anything, also of the pool: the thread asks the database.
        if getattr(self, "_is_held", False) and self.is_held:
            _renewing.left.append((self._database, self._values))


def _release(database: Database, values: dict[str, object]) -> None:
    with suppress(SessionError):  # it runs out by itself
        database.run(lambda connection: connection.execute(_RELEASE, values))


class _Renewing:
    """The thread that renews what this process holds; it ends when nothing is held."""

    def __init__(self) -> None:
        self.left: deque[tuple[Database, dict[str, object]]] = deque()  # held by nobody any more, and not released
        self._lock = threading.RLock()
        self._held: weakref.WeakSet[Lease] = weakref.WeakSet()
        self._thread: threading.Thread | None = None
        self._process = os.getpid()

    def add(self, lease: Lease) -> None:
        with self._lock:
            if self._process != os.getpid():  # a child has none of its parent's threads
                self._held, self._thread, self._process = weakref.WeakSet(), None, os.getpid()
            self._held.add(lease)
            if self._thread is None:
                self._thread = threading.Thread(target=self._go_on, name="leases", daemon=True)
                self._thread.start()

    def remove(self, lease: Lease) -> None:
        with self._lock:
            self._held.discard(lease)

    def _go_on(self) -> None:
        while True:
            time.sleep(LEASE_S / _RENEWALS)
            while self.left:
                _release(*self.left.popleft())
            with self._lock:
                held = list(self._held)
                if not held:
                    self._thread = None
                    return
            for lease in held:
                with suppress(SessionError):  # the database is away: the next append says so
                    lease.renew()
            held.clear()


_renewing = _Renewing()


def holder(database: Database, name: str) -> Holder | None:
    """Who has the lease of ``name`` now."""
    asked = "select pid, host, since from forkbook.lease where name = %s and until > clock_timestamp()"
    found = database.row(asked, (name.lower(),))
    return None if found is None else Holder(*found)
