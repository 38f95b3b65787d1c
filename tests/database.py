"""A real PostgreSQL server for tests: thrown away when they end, on loopback, with a password. Debian's binaries."""

from __future__ import annotations

import atexit
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from sessions_lib.store.store import SessionStore, open_store

PASSWORD = "tide-and-ember"  # never to be seen anywhere
MISSING = "PostgreSQL is not installed here (Debian: apt-get install postgresql)"
_numbers = itertools.count(1)


def binaries() -> Path | None:
    """The folder of ``initdb`` and ``pg_ctl``, ``None`` if they are not installed."""
    places = [*sorted(Path("/usr/lib/postgresql").glob("*/bin")), *map(Path, os.environ["PATH"].split(":"))]
    return next((place for place in places if (place / "initdb").exists() and (place / "pg_ctl").exists()), None)


class Server:
    """A server of its own folder; it is made when it is first asked for."""

    def __init__(self, *, is_durable: bool = False) -> None:
        self.is_durable = is_durable
        self.port = 0
        self._folder: Path | None = None
        self._has_template = False

    def _as_its_user(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        place = binaries()
        assert place is not None, MISSING
        runuser = shutil.which("runuser", path=f"{os.environ['PATH']}:/usr/sbin:/sbin") or "runuser"
        prefix = [runuser, "-u", "postgres", "--"] if os.getuid() == 0 else []
        whole = [*prefix, str(place / command[0]), *command[1:]]
        return subprocess.run(whole, cwd="/tmp", capture_output=True, check=check, timeout=60)

    def folder(self) -> Path:
        """The folder of its data; started if it was not."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="postgres-"))
            password = self._folder / "password"
            password.write_text(PASSWORD)
            if os.getuid() == 0:
                for path in (self._folder, password):
                    shutil.chown(path, "postgres")
            data = str(self._folder / "data")
            made = ["-U", "forkbook", "-A", "scram-sha-256", "--pwfile", str(password), "-E", "UTF8", "-N"]
            self._as_its_user("initdb", "-D", data, "--locale=C.UTF-8", *made)
            atexit.register(self.remove)
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self.port = free.getsockname()[1]
            self.start()
        return self._folder

    def start(self) -> None:
        """Start it, and wait until it answers."""
        assert self._folder is not None
        settings = f"-p {self.port} -c listen_addresses=127.0.0.1 -k {self._folder} -c max_connections=200"
        settings += "" if self.is_durable else " -c fsync=off -c full_page_writes=off"
        data, log = self._folder / "data", self._folder / "log"
        done = self._as_its_user("pg_ctl", "-D", str(data), "-l", str(log), "-w", "-o", settings, "start", check=False)
        assert done.returncode == 0, log.read_text() if log.exists() else done.stderr

    def stop(self, mode: str = "fast") -> None:
        """Stop it: ``fast`` ends every connection, ``immediate`` as if it had crashed."""
        self._as_its_user("pg_ctl", "-D", str(self.folder() / "data"), "-m", mode, "-w", "stop", check=False)

    def kill(self) -> None:
        """Kill its first process and wait until the others have seen it."""
        file = self.folder() / "data" / "postmaster.pid"
        process = int(file.read_text().split()[0])
        os.kill(process, signal.SIGKILL)
        deadline = time.monotonic() + 10
        while self._as_its_user("pg_isready", "-p", str(self.port), "-h", "127.0.0.1", check=False).returncode == 0:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        file.unlink(missing_ok=True)

    def remove(self) -> None:
        """Stop it and delete what it kept."""
        if self._folder is not None:
            self.stop("immediate")
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def address(self, database: str = "postgres", user: str = "forkbook", password: str = PASSWORD) -> str:
        """The address of one of its databases, with the password."""
        self.folder()
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}"

    def execute(self, statement: str, database: str = "postgres") -> None:
        """Do it as the owner of all."""
        import psycopg

        with psycopg.connect(self.address(database), autocommit=True) as connection:
            connection.execute(statement)

    def new_database(self) -> str:
        """The address of a database of sessions without any."""
        from sessions_lib.store.postgres.database import Database

        if not self._has_template:
            self.execute("create database empty_one")
            empty = Database(self.address("empty_one"))
            empty.run(lambda connection: None)
            empty.close()
            self._has_template = True
        name = f"d{next(_numbers)}"
        self.execute(f"create database {name} template empty_one strategy file_copy")
        return self.address(name)


SERVER = Server()


def is_there() -> bool:
    """True if tests can have a server; on a machine that has to have one, they fail without."""
    return binaries() is not None or bool(os.environ.get("CI"))


needs_server = pytest.mark.skipif(not is_there(), reason=MISSING)


class Place(str):
    """The address of a database where tests use a folder: ``write(place / "a.jsonl", …)`` stores what another tool did."""

    def __truediv__(self, name: str) -> File:
        return File(self, name)

    def mkdir(self, **_: Any) -> None:
        """It is there."""

    def glob(self, pattern: str) -> list[File]:
        """The lines (``*.jsonl``) or the metadata (``*.meta.json``) of every session."""
        return [self / (session + pattern.removeprefix("*")) for session in sorted(open_store(str(self)).ids())]


class _There:
    def mkdir(self, **_: Any) -> None:
        """It is there."""


class File:
    """The lines or the metadata of a session of a database, as a file of them would be written and read."""

    def __init__(self, place: Place, name: str) -> None:
        self.parent, self.name, self.stem = _There(), name, name.rpartition(".")[0]
        self._place = place
        self._session, self._is_meta = name.partition(".")[0], name.endswith(".meta.json")

    @property
    def _store(self) -> SessionStore:
        return open_store(str(self._place))

    def exists(self) -> bool:
        """True if the session is there."""
        return self._session in self._store.ids()

    def write_text(self, text: str, encoding: str = "utf-8") -> None:
        """Store it whole."""
        self.write_bytes(text.encode(encoding))

    def write_bytes(self, raw: bytes) -> None:
        """Store it whole, in place of what there was."""
        store, values = self._store, {}
        if self.exists():
            values = dict(store.open(self._session).meta.values)
            if not self._is_meta:
                with store.hold(self._session) as hold:
                    store.delete(self._session, hold)
        if not self.exists():
            store.create(self._session, self._session, values)
        if self._is_meta:
            with store.changing_meta(self._session, lambda _: json.loads(raw), store.open(self._session)):
                pass
        elif raw:
            store.put_lines(self._session, raw.decode("utf-8", "surrogateescape").split("\n"))

    def read_bytes(self) -> bytes:
        """Its lines."""
        found = self._store.lines(self._session, range(1, 100_000))
        return "".join(f"{line}\n" for line in found.values()).encode("utf-8", "surrogateescape")

    def read_text(self, encoding: str = "utf-8") -> str:
        """Its lines."""
        return self.read_bytes().decode(encoding)
