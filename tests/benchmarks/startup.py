"""Start-up: ``forkbook list`` on a hundred sessions against a Python that only imports what a command line needs."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sessions_lib import SessionManager
from tests.benchmarks.harness import Row, installed, race, setting

SESSIONS = 100
BAR = 3.0


def rows() -> Iterator[Row]:
    """The ratio, with the catalog as the first listing leaves it and without one."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "sessions"
        manager = SessionManager(folder)
        for number in range(SESSIONS):
            session = manager.create(f"Session {number}", ["python"] if number % 3 else [])
            said = f"message {number} of a session that is not long, but says something"
            session.extend({"role": role, "content": said} for role in ("user", "assistant") * 3)

        def run(*arguments: str) -> str:
            asked = [sys.executable, *arguments]
            return subprocess.run(asked, env=installed(), capture_output=True, text=True, check=True).stdout

        def base() -> str:
            return run("-c", "import click, sqlite3, json")

        def listing() -> str:
            return run("-m", "sessions_lib.cli", "list", "--dir", str(folder))

        def first_listing() -> str:
            for path in folder.glob(".catalog.sqlite*"):
                path.unlink()
            return listing()

        listed = listing().splitlines()[1:]
        assert [line.split()[0] for line in listed] == [info.id for info in manager.list()]
        found = race({"base": base, "list": listing, "first": first_listing}, max(setting.rounds, 7))
        note = 'base: python -c "import click, sqlite3, json"'
        yield Row("2 forkbook list, 100 sessions", found["list"].cpu_ratio, BAR, note)
        yield Row("2 forkbook list, 100 sessions, no catalog yet", found["first"].cpu_ratio, None, note)
