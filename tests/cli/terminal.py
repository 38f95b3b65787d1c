"""What the tests of the command line share: running it as a person does, in a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from tests.record import GULL, LIGHTHOUSES, write

ROOT = Path(__file__).resolve().parents[2]


class Terminal:
    """Runs commands on one folder of sessions; ``home`` is a home folder with nothing in it."""

    def __init__(self, place: Path, address: Any = None) -> None:
        self.folder = place / "sessions"
        self.where = str(address or self.folder)
        self._place = address or self.folder
        self.home = place / "home"
        self.work = place / "work"
        self.streams = place / "streams"
        for made in (self.home, self.work, self.streams):
            made.mkdir()

    def env(self, **more: str) -> dict[str, str]:
        """The environment of every command: this folder, that home, no endpoint, no colour."""
        left_out = ("OPENAI", "SESSIONS", "COLUMNS", "HTTP_PROXY", "HTTPS_PROXY")
        kept = {key: value for key, value in os.environ.items() if not key.upper().startswith(left_out)}
        return {**kept, "SESSIONS_DIR": self.where, "HOME": str(self.home), "NO_COLOR": "1", **more}

    def run(
        self, *arguments: str, program: str = "forkbook", stdin: str = "", **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Run ``program`` with ``arguments`` in the working folder; standard input is empty unless given."""
        streams = {name: self.streams / name for name in ("stdin", "stdout", "stderr")}
        for name, path in streams.items():
            path.write_text(stdin if name == "stdin" else "", encoding="utf-8")
        argv = [program, *arguments]
        code = _host().run({"argv": argv, "env": self.env(**env), "cwd": str(self.work), "out": str(self.streams)})
        texts = [streams[name].read_text(encoding="utf-8") for name in ("stdout", "stderr")]
        return subprocess.CompletedProcess(argv, code, *texts)

    def run_fresh(
        self, *arguments: str, program: str = "forkbook", stdin: str = "", **env: str
    ) -> subprocess.CompletedProcess[str]:
        """The same in a Python that starts for it: for what depends on the locale or on imports."""
        return subprocess.run(
            self.command(program, *arguments),
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            env=self.env(**env),
            cwd=self.work,
            timeout=120,
            check=False,
        )

    def watched(self, *arguments: str, program: str = "forkbook") -> str:
        """All that a command shows to a person: both its streams are one terminal."""
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            self.command(program, *arguments), stdin=theirs, stdout=theirs, stderr=theirs, env=self.env(), cwd=self.work
        ) as process:
            os.close(theirs)
            shown = b""
            with contextlib.suppress(OSError):  # how a terminal says that nobody writes to it any more
                while part := os.read(ours, 65_536):
                    shown += part
            os.close(ours)
        assert process.returncode == 0, shown
        return shown.decode()

    def ok(self, *arguments: str, **options: Any) -> str:
        """What a command printed; it must have ended with 0."""
        done = self.run(*arguments, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def told(self, *arguments: str, **options: Any) -> str:
        """The sentence of a command that must have ended with 1, and without a traceback."""
        done = self.run(*arguments, **options)
        assert done.returncode == 1, (done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        assert done.stderr.strip()
        return done.stderr

    def records(self, *arguments: str, **options: Any) -> list[dict[str, Any]]:
        """What a command printed with ``--json``, one object a line."""
        return [json.loads(line) for line in self.ok(*arguments, "--json", **options).splitlines()]

    def session(self, name: str, *lines: Any) -> Path:
        """Write the session ``name`` as another tool would: its lines, or two messages; return its file."""
        return write(self._place / f"{name}.jsonl", *(lines or (LIGHTHOUSES, GULL)))

    def files(self) -> dict[str, bytes]:
        """Every file that commands could have written, with its bytes; not the locks and the catalog."""
        root = self.folder.parent
        return {
            str(path.relative_to(root)): path.read_bytes()
            for path in sorted(root.rglob("*"))
            if path.is_file() and self.streams not in path.parents and not path.match(".locks/*")
            and not path.name.startswith(".catalog")
        }  # fmt: skip

    @staticmethod
    def command(program: str, *arguments: str) -> list[str]:
        """The command as the console scripts start it."""
        entry = {"forkbook": "main", "pi-agent": "main_pi_agent"}[program]
        return [sys.executable, "-c", f"from sessions_lib.cli import {entry}; {entry}()", *arguments]


class _Host:
    def __init__(self) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.cli.host"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            cwd=ROOT,
        )

    def run(self, asked: dict[str, Any]) -> int:
        """The exit code of one command."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            self._log.seek(0)
            raise RuntimeError(self._log.read().decode())
        return int(answer)


@cache
def _host() -> _Host:
    """The one process that runs the commands; it ends with the tests, when nobody writes to it any more."""
    return _Host()
