"""Real processes, really killed: nothing that was acknowledged is lost, and the next writer goes on cleanly."""

from __future__ import annotations

import json
import multiprocessing
import random
import subprocess
import sys
import time
from multiprocessing.context import ForkServerContext
from pathlib import Path

import pytest

from sessions_lib import SessionManager, messages
from sessions_lib.messages import encoding
from sessions_lib.store.folder import jsonl, metadata
from tests import crash_child
from tests.record import GULL, LIGHTHOUSES, check, is_valid_request, repair, said, write

KILLS = 300
PER_SESSION = 6


def _kill_one_writer(context: ForkServerContext, folder: Path, session_id: str, kill: int) -> set[str]:
    """Start a writer, kill it at a moment, and return the ids it had acknowledged.

    Every other kill waits for a random while; the rest strike when the file is seen growing, in the middle of a write.
    """
    chance = random.Random(kill)
    reading, writing = context.Pipe(duplex=False)
    child = context.Process(target=crash_child.main, args=(str(folder), session_id, kill, writing))
    child.start()
    writing.close()
    acknowledged = [reading.recv_bytes().decode()]  # it is writing now
    if kill % 2:
        time.sleep(chance.uniform(0, 0.05))
    else:
        _wait_until_it_grows(folder / f"{session_id}.jsonl", by=200_000)
    child.kill()
    try:
        while True:
            acknowledged.append(reading.recv_bytes().decode())
    except EOFError:  # an id cut by the kill was not acknowledged
        reading.close()
    child.join()
    return set(acknowledged)


def _wait_until_it_grows(path: Path, by: int) -> None:
    size, deadline = path.stat().st_size, time.monotonic() + 5
    while path.stat().st_size < size + by and time.monotonic() < deadline:
        pass


@pytest.mark.timeout(1500)
def test_a_kill_at_any_moment_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.crash_child"])
    torn = 0
    acknowledged: set[str] = set()
    for kill in range(KILLS):
        session_id = f"s{kill // PER_SESSION}"
        acknowledged |= _kill_one_writer(context, tmp_path, session_id, kill)

        session = SessionManager(tmp_path).open(session_id)
        found = {message["id"] for message in session.messages}
        assert acknowledged <= found, f"kill {kill} lost {acknowledged - found}"
        assert len(found) == len(session.messages)
        torn += bool(session.report.damaged) and session.report.damaged[-1].kind == "torn"
        assert is_valid_request(messages.for_request(session.messages))

        stored = session.append({"role": "user", "content": f"after kill {kill}"})
        acknowledged.add(stored["id"])
        assert (tmp_path / f"{session_id}.jsonl").read_bytes().endswith(encoding.encode(stored) + b"\n")
        if kill % PER_SESSION == PER_SESSION - 1:
            (tmp_path / f"{session_id}.jsonl").unlink()  # tens of megabytes each
            acknowledged = set()

    assert torn > 0, "no kill tore a line: the harness no longer tests what it is for"


def test_the_lock_of_a_killed_process_is_gone_with_it(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", LIGHTHOUSES)
    code = "import sys,time; from sessions_lib import SessionManager as M; h=M(sys.argv[1]).open('a').hold(); print('ready',flush=True); time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    child.kill()
    child.wait()
    child.stdout.close()

    SessionManager(tmp_path).open("a").append(GULL)

    assert said(SessionManager(tmp_path).open("a").messages) == said([LIGHTHOUSES, GULL])


def test_a_repair_that_is_killed_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    code = "import sys; from sessions_lib.store.store import open_store; print('go',flush=True); open_store(sys.argv[1]).repair('a'); print('done',flush=True)"
    chance = random.Random(3)
    many = [json.dumps({"role": "user", "content": "x" * 2000, "id": f"m{i}"}) for i in range(2000)]
    for _ in range(12):
        write(tmp_path / "a.jsonl", *many[:1000], "torn {", *many[1000:])
        child = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(chance.uniform(0, 0.08))
        child.kill()
        child.wait()
        child.stdout.close()

        assert [m["id"] for m in SessionManager(tmp_path).open("a").messages] == [f"m{i}" for i in range(2000)]
        assert [info.id for info in SessionManager(tmp_path).list()] == ["a"]
    repair(tmp_path, "a", write=True)
    assert check(tmp_path, "a") == []


def _append_many(folder: str, session_id: str, name: str, size: int, barrier: object) -> None:
    barrier.wait()  # type: ignore[attr-defined]  # a multiprocessing barrier has no public type
    session = SessionManager(folder).open_or_create(session_id)
    for number in range(200):
        while True:
            try:
                session.append(
                    {"role": "user", "content": f"{name}-{number}-" + "x" * (size if number % 10 else 20_000)}
                )
                break
            except Exception as error:
                if type(error).__name__ != "SessionLocked":
                    raise


@pytest.mark.parametrize("is_new", [False, True])
def test_eight_processes_append_and_no_line_is_lost_or_interleaved(tmp_path: Path, is_new: bool) -> None:
    if not is_new:
        write(tmp_path / "c.jsonl", LIGHTHOUSES)
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(8)
    workers = [context.Process(target=_append_many, args=(str(tmp_path), "c", f"p{n}", 500, barrier)) for n in range(8)]

    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert [worker.exitcode for worker in workers] == [0] * 8
    found = jsonl.read(tmp_path / "c.jsonl")
    assert found.damaged == found.glued == []
    heads = [str(m["content"]).split("-x")[0].rstrip("-") for m in found.messages if m != LIGHTHOUSES]
    assert sorted(heads) == sorted(f"p{n}-{i}" for n in range(8) for i in range(200))
    for n in range(8):
        mine = [head for head in heads if head.startswith(f"p{n}-")]
        assert mine == [f"p{n}-{i}" for i in range(200)]


def _tag_many(folder: str, name: str) -> None:
    session = SessionManager(folder).open("a")
    for number in range(25):
        session.add_tag(f"{name}-{number}")


def test_tags_added_by_two_processes_all_survive_and_readers_never_see_half_a_file(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", LIGHTHOUSES)
    SessionManager(tmp_path).open("a").rename("start")
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_tag_many, args=(str(tmp_path), name)) for name in ("p", "q")]

    for worker in workers:
        worker.start()
    reads = 0
    while any(worker.is_alive() for worker in workers):
        found = metadata.read(tmp_path / "a.meta.json")
        assert found.fault is None
        assert found.title == "start"
        reads += 1
    for worker in workers:
        worker.join()

    assert reads > 10
    assert sorted(SessionManager(tmp_path).open("a").tags) == sorted(f"{n}-{i}" for n in "pq" for i in range(25))


def _tag_in_a_crowd(folder: str, name: str, barrier: object) -> None:
    barrier.wait()  # type: ignore[attr-defined]  # a multiprocessing barrier has no public type
    for number in range(10):
        SessionManager(folder).open("a").add_tag(f"{name}-{number}")


def test_a_change_of_metadata_waits_its_turn_however_many_want_it(tmp_path: Path) -> None:
    SessionManager(tmp_path).create(session_id="a")
    context = multiprocessing.get_context("forkserver")
    barrier = context.Barrier(10)
    children = [context.Process(target=_tag_in_a_crowd, args=(str(tmp_path), f"p{i}", barrier)) for i in range(10)]
    for child in children:
        child.start()
    for child in children:
        child.join()

    assert [child.exitcode for child in children] == [0] * 10
    assert len(SessionManager(tmp_path).open("a").tags) == 100


def _killed_at_rename(folder: Path, act: str, number: int) -> None:
    code = (
        "import os, sys; from sessions_lib import SessionManager; folder, act, number = sys.argv[1:]; "
        "rename, left = os.rename, [int(number)]\n"
        "def killed(*paths):\n"
        "    left[0] -= 1\n"
        "    if not left[0]: os._exit(9)\n"
        "    rename(*paths)\n"
        "os.rename = killed; getattr(SessionManager(folder), act)('a')"
    )
    assert subprocess.run([sys.executable, "-c", code, str(folder), act, str(number)], check=False).returncode == 9


@pytest.mark.parametrize("act", ["delete", "restore"])
@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("is_deleted_again", [False, True])
def test_a_delete_or_restore_killed_half_way_is_ended_by_the_next_restore(
    tmp_path: Path, act: str, number: int, is_deleted_again: bool
) -> None:
    manager = SessionManager(tmp_path)
    manager.create("A", ["mar"], "a").append(LIGHTHOUSES)
    if act == "restore":
        manager.delete("a")

    _killed_at_rename(tmp_path, act, number)
    if manager.exists("a") and is_deleted_again:
        manager.delete("a")
    if not manager.exists("a") or manager.trash():
        manager.restore("a")

    assert [(s.messages, s.title, s.tags) for s in manager.list()] == [(1, "A", ("mar",))]
    assert manager.trash() == []
