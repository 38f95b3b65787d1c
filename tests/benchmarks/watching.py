"""``forkbook import --watch`` over 10,000 files of Claude Code, as people run it: what it costs while nothing is written,
and how long a new line takes to be found by a search.

The command alone, in a process of its own: its processor time over a minute of nothing, of which a part
of looking at everything anew is added (every five minutes, measured by itself); and the time from a line that is written
to the search of another process that finds it, ten times, each line another file's.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sessions_lib import importers
from sessions_lib.importers.watcher import LOOK_AGAIN_S
from sessions_lib.store.manager import SessionManager
from tests.benchmarks.harness import Row, installed, setting
from tests.benchmarks.imports import write

QUIET_S = 60
LINES = 10


def rows() -> Iterator[Row]:
    """Idle, then found."""
    with tempfile.TemporaryDirectory(dir=setting.home) as temporary:
        home = Path(temporary)
        files = [make(home, number) for number in range(setting.sessions)]
        folder = home / "sessions"
        manager = SessionManager(folder)
        sum(1 for _ in importers.import_paths(manager, [home / ".claude" / "projects"]))
        manager.catalog.index()
        looked = time.process_time()
        steps = list(importers.import_paths(manager, [home / ".claude" / "projects"]))
        look_s = time.process_time() - looked
        assert len(steps) == setting.sessions
        assert all(step.result and step.result.is_unchanged for step in steps)
        with command(home, folder) as process:
            yield idle(process.pid, look_s)
            yield found(files, manager)
        shutil.rmtree(folder / ".locks", ignore_errors=True)


def make(home: Path, number: int) -> Path:
    """A session of two turns, in one of a hundred projects."""
    session = f"{number:08}-0000-4000-8000-000000000000"
    path = home / ".claude" / "projects" / f"-home-p{number % 100}" / f"{session}.jsonl"
    write(path, session, 2)
    return path


@contextmanager
def command(home: Path, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The running command, when it has looked at everything once."""
    arguments = [sys.executable, "-m", "sessions_lib.cli", "import", "--watch", "--yes", "--dir", str(folder)]
    env = {**installed(), "HOME": str(home)}
    process = subprocess.Popen(arguments, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        before = -1.0
        while (now := spent(process.pid)) != before or now < 0.5:
            before = now
            time.sleep(2)
            assert process.poll() is None, "it ended"
        yield process
    finally:
        process.terminate()
        process.wait()


def spent(pid: int) -> float:
    """Processor seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def idle(pid: int, look_s: float) -> Row:
    before = spent(pid)
    time.sleep(QUIET_S)
    quiet = (spent(pid) - before) / QUIET_S
    share = quiet + look_s / LOOK_AGAIN_S
    return Row(
        f"watch: idle over {setting.sessions:,} files, of a core",
        share,
        0.01,
        f"{quiet:.2%}, and {look_s:.2f} s of processor every {LOOK_AGAIN_S:.0f} s",
    )


def found(files: list[Path], manager: SessionManager) -> Row:
    """The longest of ten, against two seconds."""
    waits = []
    for number in range(LINES):
        path = files[number * len(files) // LINES]
        word = f"quokka{number}x{time.time_ns()}"
        last = json.loads(path.read_text().splitlines()[-1])
        said = {"role": "user", "content": word}
        record = {**last, "parentUuid": last["uuid"], "uuid": word, "type": "user", "message": said}
        with path.open("a") as file:
            file.write(json.dumps(record) + "\n")
        started = time.perf_counter()
        while not manager.search(word):
            assert time.perf_counter() - started < 60, "the line was never found"
            time.sleep(0.02)
        waits.append(time.perf_counter() - started)
        time.sleep(0.1 * number)  # at any moment of the watch's rest
    note = f"{statistics.median(waits):.2f} s in the median of {LINES}, {max(waits):.2f} s at most"
    return Row("watch: a line written is found by a search / 2 s", max(waits) / 2, 1, note)
