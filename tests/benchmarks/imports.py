"""Import of Claude Code files: against merely parsing their lines, against ``claude-code-log``, and its memory.

The parser is ``orjson`` where it is installed, else ``msgspec``; ``claude-code-log`` is found on the ``PATH`` or named by
``$CLAUDE_CODE_LOG``. Every run imports into a new folder: where many files were just deleted, making new ones is slow.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from sessions_lib import importers
from sessions_lib.store.folder import disk
from sessions_lib.store.manager import SessionManager
from tests.benchmarks.compare import text
from tests.benchmarks.harness import Raced, Row, race, setting

FILES, TURNS = 60, 60
BIG_TURNS = 3000


def claude_code(rng: random.Random, session: str, turns: int = TURNS) -> Iterator[dict[str, Any]]:
    """A session as Claude Code writes it: a line a block, tokens repeated, tool results stored twice; 3 kB a line."""
    yield {"type": "summary", "summary": "s", "leafUuid": "none"}
    parent: str | None = None
    for turn in range(turns):
        for step, (kind, blocks) in enumerate(turn_blocks(rng, f"{session}-{turn}")):
            uuid = f"{session}-{turn}-{step}"
            message: dict[str, Any] = {"role": kind, "content": blocks}
            record: dict[str, Any] = {
                "parentUuid": parent,
                "isSidechain": False,
                "userType": "external",
                "cwd": "/home/dev/project",
            }
            record |= {"sessionId": session, "version": "2.1.7", "gitBranch": "main", "type": kind, "message": message}
            if kind == "assistant":
                message |= {"id": f"msg_{session}_{turn}_{step // 3}", "type": "message", "model": "m"}
                message |= {"stop_reason": None, "stop_sequence": None}
                spent = {"input_tokens": 9, "cache_creation_input_tokens": 40, "cache_read_input_tokens": 900}
                message["usage"] = {**spent, "output_tokens": 50 + step, "service_tier": "standard"}
            elif isinstance(blocks, list):
                record["toolUseResult"] = {"stdout": blocks[0]["content"], "stderr": "", "interrupted": False}
            yield {**record, "uuid": uuid, "timestamp": "2026-03-01T10:00:00.000Z"}
            parent = uuid


def turn_blocks(rng: random.Random, name: str) -> list[tuple[str, Any]]:
    call = {"type": "tool_use", "id": f"toolu_{name}", "name": "Bash", "input": {"command": text(rng, 12)}}
    return [
        ("user", text(rng, 30)),
        ("assistant", [{"type": "thinking", "thinking": text(rng, 60), "signature": "x" * 300}]),
        ("assistant", [call]),
        ("user", [{"type": "tool_result", "tool_use_id": f"toolu_{name}", "content": text(rng, 1100)}]),
        ("assistant", [{"type": "text", "text": text(rng, 150)}]),
    ]


def write(path: Path, session: str, turns: int = TURNS) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for line in claude_code(random.Random(session), session, turns):
            file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


def parser() -> tuple[str, Callable[[bytes], Any]]:
    try:
        import orjson
    except ImportError:
        return "msgspec (orjson is not installed)", msgspec.json.Decoder().decode
    return "orjson", orjson.loads


class Folders:
    """A new folder for each run."""

    def __init__(self, home: Path) -> None:
        self.home, self._numbers = home, itertools.count()

    def new(self) -> Path:
        return self.home / f"run-{next(self._numbers)}"


def rows() -> Iterator[Row]:
    """Reading and importing against parsing, the command against its peer, memory."""
    home = setting.home / "imports"
    source = home / "projects" / "-home-dev-project"
    for number in range(FILES):
        write(source / f"s{number}.jsonl", f"s{number}")
    yield from against_parsing(source, Folders(home))
    yield against_peer(source, Folders(home / "peer"))
    yield memory(home)


def against_parsing(source: Path, folders: Folders) -> Iterator[Row]:
    name, loads = parser()
    files = sorted(source.iterdir())

    def parse() -> None:
        for path in files:
            with path.open("rb") as file:
                assert sum(loads(line) is not None for line in file) == 1 + 5 * TURNS

    def read() -> None:
        for path in files:
            (found,), _ = importers.read(path)
            assert len(found.messages) == 4 * TURNS

    def bring() -> None:
        steps = list(importers.import_paths(SessionManager(folders.new()), [source]))
        assert sum(step.result.added_messages for step in steps if step.result) == FILES * 4 * TURNS

    def bring_without_waiting() -> None:
        with disk_that_never_waits():
            bring()

    raced = race({"parse": parse, "read": read, "import": bring, "no wait": bring_without_waiting}, setting.rounds)
    whole, quick = raced["import"], raced["no wait"]
    told = f"{raced['parse'].cpu:.3f} s for {sum(path.stat().st_size for path in files) / 1e6:.0f} MB"
    yield Row(
        f"import: convert Claude Code files / parse their lines with {name}, cpu", raced["read"].cpu_ratio, 4, told
    )
    yield Row("import: a folder into sessions / parse its lines, cpu", whole.cpu_ratio, 4, without(quick, "cpu"))
    yield Row("import: the same, wall time", whole.wall_ratio, 4, without(quick, "wall"))


def without(quick: Raced, which: str) -> str:
    ratio = quick.cpu_ratio if which == "cpu" else quick.wall_ratio
    return f"{ratio:.2f} without waiting for the disk (fdatasync)"


@contextlib.contextmanager
def disk_that_never_waits() -> Iterator[None]:
    """What the promise that an import is on disk costs is told apart from the rest."""
    kept = disk.sync_all
    disk.sync_all = lambda *_: None
    try:
        yield
    finally:
        disk.sync_all = kept


def against_peer(source: Path, folders: Folders) -> Row:
    """Whole commands, each starting Python."""
    name = "import: forkbook import / claude-code-log, whole commands, wall time"
    peer = os.environ.get("CLAUDE_CODE_LOG") or shutil.which("claude-code-log")
    if peer is None:
        return Row(name, None, 1 / 3, "not installed: pip install claude-code-log")
    environment = {**os.environ, "HOME": str(folders.home)}

    def ours() -> None:
        command = [sys.executable, "-m", "sessions_lib.cli", "import", str(source), "--dir", str(folders.new())]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        assert f"Imported {FILES} sessions and {FILES * 4 * TURNS:,} messages" in done.stderr, done.stderr

    def theirs() -> None:
        out = folders.new()
        out.mkdir(parents=True)
        # One page, and not a second one for each session.
        command = [peer, str(source), "-o", str(out / "all.html"), "--no-cache", "--no-individual-sessions"]
        subprocess.run(command, capture_output=True, check=True, env=environment)
        assert any(path.stat().st_size > 1_000_000 for path in out.rglob("*")), "nothing was converted"

    found = race({"theirs": theirs, "ours": ours}, max(1, setting.rounds // 2))
    note = f"{found['ours'].wall:.2f} s / {found['theirs'].wall:.2f} s; cpu {found['ours'].cpu_ratio:.3f}"
    return Row(name, found["ours"].wall_ratio, 1 / 3, note)


def memory(home: Path) -> Row:
    """Peak memory of importing one large file with sixty others, against importing it alone."""
    name = "import: peak memory of a large file among 60 others / alone"
    if not Path("/proc/self/status").exists():
        return Row(name, None, 1.15, "only measured on Linux")
    alone, among = home / "alone", home / "among"
    write(alone / "big.jsonl", "big", BIG_TURNS)
    write(among / "big.jsonl", "big", BIG_TURNS)
    for number in range(FILES):
        write(among / f"s{number}.jsonl", f"s{number}")
    peaks = {folder: peak(folder, home / f"into-{folder.name}") for folder in (alone, among)}
    size = (alone / "big.jsonl").stat().st_size
    return Row(
        name, peaks[among] / peaks[alone], 1.15, f"{peaks[alone] / size:.1f} times the file of {size / 1e6:.0f} MB"
    )


def peak(source: Path, target: Path) -> int:
    """Bytes that the process needed at most; ``ru_maxrss`` of a child would start at what its parent had."""
    code = (
        "import re, sys; from pathlib import Path; from sessions_lib import importers, SessionManager\n"
        "assert all(step.result for step in importers.import_paths(SessionManager(sys.argv[2]), [sys.argv[1]]))\n"
        "print(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1])"
    )
    command = [sys.executable, "-c", code, str(source), str(target)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout) * 1024
