"""A real PostgreSQL server for tests: thrown away when they end, on loopback, with a password. Debian's binaries."""

from __future__ import annotations

import atexit
import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

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
        prefix = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
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
