"""One session: append, load, fork, eight writers at once. Sizes of 1, 10 and 95 MB show what grows.

Peers that are not installed are lines that say so; ``README.md`` says how to install them.
"""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sessions_lib import SessionManager
from sessions_lib.errors import SessionLocked
from sessions_lib.messages import encoding
from sessions_lib.store.folder import jsonl
from sessions_lib.store.session import Session
from tests.benchmarks import corpus
from tests.benchmarks.harness import Row, milliseconds, race, setting

BIG = 95
MESSAGE = {"role": "assistant", "content": "The tide table says low water at nine. " * 60, "model": "m-1"}


def has(package: str) -> bool:
    """True if ``package`` can be imported."""
    return importlib.util.find_spec(package) is not None


def rows() -> Iterator[Row]:
    """All rows about one session."""
    files = {size: corpus.long_session(setting.home / f"big-{size}.jsonl", size) for size in (1, 10, BIG)}
    with tempfile.TemporaryDirectory(dir=setting.home) as home:
        yield from appending(Path(home))
        yield from loading(files)
        yield from forking(Path(home), files)
        yield from writers(Path(home))


def appending(home: Path, count: int = 300) -> Iterator[Row]:
    """Each message on disk before the next."""
    manager = SessionManager(home / "append")
    ready = encoding.encode({**MESSAGE, "id": "msg_" + "0" * 24, "timestamp": "2026-11-29T19:40:01.123Z"}) + b"\n"

    def limit() -> None:
        descriptor = os.open(home / "raw", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for _ in range(count):
            os.write(descriptor, ready)
            os.fdatasync(descriptor)
        os.close(descriptor)

    def ours() -> None:
        session = manager.create()
        with session.hold():
            for _ in range(count):
                session.append(MESSAGE)

    candidates = {"limit": limit, "ours": ours}
    if has("agents"):
        candidates["agents"] = lambda: asyncio.run(_agents_append(home / "agents.db", count))
    found = race(candidates, setting.rounds)
    each = found["ours"].wall / count * 1000
    yield Row("1 append on disk / write + fdatasync", found["ours"].wall_ratio, 1.25, f"{each:.2f} ms a message")
    if "agents" in found:
        yield Row("1 append on disk / Agents SDK add_items", found["ours"].wall / found["agents"].wall, 0.5)
    else:
        yield Row("1 append on disk / Agents SDK add_items", None, 0.5, "openai-agents was not found")


async def _agents_append(path: Path, count: int) -> None:
    from agents import SQLiteSession

    session = SQLiteSession(os.urandom(4).hex(), path)
    for _ in range(count):
        await session.add_items([MESSAGE])
    session.close()


def seed_load(path: Path) -> list[Any]:
    """The loader of the from-scratch tutorial."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def loading(files: dict[int, Path]) -> Iterator[Row]:
    """A whole session, and its end."""
    big = files[BIG]
    expected = seed_load(big)
    assert jsonl.read(big).messages == expected
    del expected

    def lines_with(loads: Any) -> None:
        gc.disable()
        with big.open("rb") as file:
            kept = [loads(line) for line in file]
        gc.enable()
        del kept

    candidates: dict[str, Any] = {"seed": lambda: seed_load(big), "ours": lambda: jsonl.read(big)}
    if has("orjson"):
        import orjson

        candidates = {"orjson": lambda: lines_with(orjson.loads), **candidates}
    found = race(candidates, min(3, setting.rounds))
    mine = found["ours"]
    orjson_ratio = mine.wall / found["orjson"].wall if "orjson" in found else None
    yield Row(
        "2 load 95 MB / orjson.loads a line",
        orjson_ratio,
        1.0,
        milliseconds(mine) if orjson_ratio else "orjson was not found",
    )
    yield Row("2 load 95 MB / the seeds' load", mine.wall / found["seed"].wall, 0.45, milliseconds(mine))
    yield from _agents_reading(big)
    yield Row("4 peak memory of loading 95 MB / its size", peak(big), 1.6)


def _agents_reading(big: Path) -> Iterator[Row]:
    """The same messages out of the Agents SDK's database."""
    name = "2 load 95 MB / Agents SDK get_items"
    if not has("agents"):
        yield Row(name, None, 0.5, "openai-agents was not found")
        return
    from agents import SQLiteSession

    database = big.with_suffix(".agents.db")
    session = SQLiteSession("big", database)
    if not asyncio.run(session.get_items(1)):
        asyncio.run(session.add_items(jsonl.read(big).messages))
    assert len(asyncio.run(session.get_items())) == len(jsonl.read(big).messages)
    get = {"agents": lambda: asyncio.run(session.get_items()), "ours": lambda: jsonl.read(big)}
    found = race(get, min(3, setting.rounds))
    yield Row(name, found["ours"].wall_ratio, 0.5, milliseconds(found["ours"]))
    session.close()


def peak(path: Path) -> float | None:
    """Peak memory of a process that keeps every message of ``path``, without what the interpreter itself takes.

    Read from Linux's ``VmHWM``: ``ru_maxrss`` of a child starts at what its parent had.
    """
    if not Path("/proc/self/status").exists():
        return None
    code = (
        "import re, sys; from pathlib import Path; from sessions_lib.store.folder import jsonl\n"
        "kept = jsonl.read(Path(sys.argv[1])).messages if sys.argv[2] == 'read' else []\n"
        "print(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1])"
    )
    used = [
        int(subprocess.run([sys.executable, "-c", code, str(path), how], capture_output=True, check=True).stdout)
        for how in ("read", "nothing")
    ]
    assert used[0] > used[1], "keeping 95 MB of messages takes memory"
    return (used[0] - used[1]) * 1024 / path.stat().st_size


def forking(home: Path, files: dict[int, Path]) -> Iterator[Row]:
    """A copy of a file, and of half a file."""
    manager = SessionManager(home / "fork")
    for size, path in files.items():
        manager.create(session_id=f"big-{size}")
        shutil.copyfile(path, manager.folder / f"big-{size}.jsonl")
    source = manager.folder / f"big-{BIG}.jsonl"
    read = jsonl.read(source)
    middle = next(at for at in range(len(read.messages) // 2, 0, -1) if read.messages[at - 1]["role"] == "user")
    size, half = source.stat().st_size, read.ends[middle - 1]
    target = home / "copy"

    def clean() -> None:
        target.unlink(missing_ok=True)
        for path in manager.folder.glob("fork*"):
            path.unlink()

    def copy(count: int) -> None:
        with source.open("rb") as reading, target.open("wb") as writing:
            done = 0
            while done < count:
                done += os.copy_file_range(reading.fileno(), writing.fileno(), count - done)
            os.fdatasync(writing.fileno())

    session = Session.open(manager.folder, f"big-{BIG}")
    whole = race({"copy": lambda: copy(size), "fork": lambda: session.fork("fork1")}, setting.rounds, clean)["fork"]
    yield Row("5 fork 95 MB / copy_file_range + fdatasync", whole.wall_ratio, 1.1, milliseconds(whole))
    fork = lambda: session.fork("fork2", at=middle)  # noqa: E731  (as short as the base beside it)
    part = race({"copy": lambda: copy(half), "fork": fork}, setting.rounds, clean)["fork"]
    yield Row("5 fork at the middle / prefix copy with known offset", part.wall_ratio, 2.2, milliseconds(part))
    clean()


def _write(folder: Path, writer: int, count: int) -> None:
    session = SessionManager(folder).open("shared")
    for number in range(count):
        while True:
            try:
                session.append({"role": "user", "content": f"{writer} {number} " + "x" * 2000})
                break
            except SessionLocked:  # on a busy disk seven others may take longer than the second an append waits
                continue


async def _agents_write(path: Path, count: int) -> None:
    from agents import SQLiteSession

    session = SQLiteSession("shared", path)
    for _ in range(count):
        await session.add_items([{"role": "user", "content": "x" * 2000}])


def _agents_writer(path: Path, count: int) -> None:
    asyncio.run(_agents_write(path, count))


def writers(home: Path, count: int = 40) -> Iterator[Row]:
    """Eight processes append to one session; nothing may be lost, broken, doubled or out of a writer's order."""
    manager = SessionManager(home / "writers")

    def race_of(target: Any, arguments: list[tuple[Any, ...]]) -> None:
        with multiprocessing.get_context("spawn").Pool(8) as pool:
            pool.starmap(target, arguments)

    def ours() -> None:
        (manager.folder / "shared.jsonl").unlink(missing_ok=True) if manager.exists("shared") else manager.create(
            session_id="shared"
        )
        race_of(_write, [(manager.folder, writer, count) for writer in range(8)])
        said = [message["content"].split()[:2] for message in jsonl.read(manager.folder / "shared.jsonl").messages]
        assert len(said) == 8 * count
        assert all([int(n) for w, n in said if int(w) == writer] == list(range(count)) for writer in range(8))

    candidates: dict[str, Any] = {"ours": ours}
    if has("agents"):
        candidates["agents"] = lambda: race_of(_agents_writer, [(home / "writers.db", count)] * 8)
    found = race(candidates, min(3, setting.rounds))
    speed = found["agents"].wall / found["ours"].wall if "agents" in found else None
    note = f"{8 * count} messages whole, in order" + ("" if speed else "; openai-agents was not found")
    yield Row("19 eight writers on one session, speed / Agents SDK", speed, 8, note, at_least=True)
