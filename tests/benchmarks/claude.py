"""2,000 sessions of Claude Code, from nothing: their token totals against ``ccusage``, index and totals against
``agentsview``. Both are found on the ``PATH``, or named by ``$CCUSAGE`` and ``$AGENTSVIEW``.

``ccusage`` only reads usage, and so do the totals here; tests compare them with what the importer stores.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from sessions_lib import importers
from sessions_lib.importers.claude import usage as claude_usage
from sessions_lib.messages import usage
from sessions_lib.store.manager import SessionManager
from tests.benchmarks.harness import Row, race, setting
from tests.benchmarks.imports import write

TURNS = 10


def rows() -> Iterator[Row]:
    """Totals, then everything."""
    home = setting.home / "claude"
    source = home / ".claude" / "projects" / "-home-dev-project"
    count = min(2_000, setting.sessions)
    for number in range(count):
        if not (path := source / f"{number:08}-0000-4000-8000-000000000000.jsonl").exists():
            write(path, path.stem, TURNS)
    size = sum(path.stat().st_size for path in source.iterdir()) / 1e6
    yield totals(home, source, f"{count} sessions, {size:.0f} MB")
    yield everything(home, source, f"{count} sessions, {size:.0f} MB")


def found(name: str) -> str | None:
    """The peer's program."""
    return os.environ.get(name.upper()) or shutil.which(name)


def totals(home: Path, source: Path, told: str) -> Row:
    name = "17 token totals of Claude Code sessions from nothing / ccusage session"
    if (peer := found("ccusage")) is None:
        return Row(name, None, 0.5, "ccusage was not found")
    ours: dict[str, int] = {}

    def ccusage() -> int:
        asked = [peer, "session", "--json", "--offline"]
        done = subprocess.run(asked, env=_as_home(home), capture_output=True, check=True)
        said = json.loads(done.stdout)["totals"]
        return int(said["outputTokens"])

    def sum_up() -> None:
        ours["output"] = usage.total(claude_usage.answers(source.iterdir())).output or 0

    assert (sum_up(), ours["output"])[1] == ccusage(), "the totals differ"
    raced = race({"ccusage": ccusage, "ours": sum_up}, min(3, setting.rounds))["ours"]
    return Row(name, raced.wall_ratio, 0.5, f"{raced.wall:.2f} s; {told}")


def everything(home: Path, source: Path, told: str) -> Row:
    name = "18 import, text index and totals of the same / agentsview sync"
    if (peer := found("agentsview")) is None:
        return Row(name, None, 0.2, "agentsview was not found")

    def agentsview() -> None:
        with tempfile.TemporaryDirectory(dir=home) as data:
            env = {**_as_home(home), "AGENTSVIEW_NO_DAEMON": "1", "AGENTSVIEW_DATA_DIR": data}
            subprocess.run([peer, "sync"], env=env, capture_output=True, check=True)

    def ours() -> None:
        with tempfile.TemporaryDirectory(dir=home) as folder:
            manager = SessionManager(folder)
            for _ in importers.import_paths(manager, [source]):
                pass
            manager.catalog.index()
            assert len(manager.catalog.list()) >= min(2_000, setting.sessions)

    work: dict[str, Callable[[], None]] = {"agentsview": agentsview, "ours": ours}
    raced = race(work, 1)["ours"]
    return Row(name, raced.wall_ratio, 0.2, f"{raced.wall:.1f} s; {told}")


def _as_home(home: Path) -> dict[str, str]:
    return {**os.environ, "HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / ".claude")}
