"""Runs: watched by many, stopped at any moment, each message on disk exactly once."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import Session, SessionManager, tool
from sessions_lib.agent import runs
from sessions_lib.errors import ProviderError, SessionError, SessionLocked, SessionNotFound, StorageError
from sessions_lib.store.folder import locks
from sessions_lib.store.store import open_store
from tests.model_server import DROP, SILENCE, ModelServer, Reply, ask, chunk, say, status

SILENT_AFTER_TWO = Reply([chunk({"content": "The "}), chunk({"content": "tide"}), SILENCE])


@pytest.fixture
def folder(tmp_path: Path, address: str | None) -> Any:
    SessionManager(address or tmp_path).create(session_id="a")
    return address or tmp_path


def settings(folder: Path, server: ModelServer, **options: Any) -> runs.Settings:
    return runs.Settings(open_store(folder), model="tiny", base_url=server.url, **options)


def on_disk(folder: Path, session_id: str = "a") -> list[tuple[str, Any]]:
    return [(m["role"], m.get("content")) for m in Session.open(folder, session_id).messages]


def until(claim: Any) -> None:
    """Wait until ``claim()`` is true; the suite's timeout ends it otherwise."""
    while not claim():
        time.sleep(0.005)


@pytest.mark.any_store
def test_a_run_answers_while_nobody_watches(folder: Path) -> None:
    with ModelServer(say("At noon.")) as server:
        run = runs.start("a", "When?", settings(folder, server))
        assert run.wait(30)

    assert (run.state, run.answer, run.error) == ("done", "At noon.", None)
    assert on_disk(folder) == [("user", "When?"), ("assistant", "At noon.")]


@pytest.mark.any_store
def test_the_prompt_is_stored_when_start_returns(folder: Path) -> None:
    with ModelServer(Reply(is_silent=True)) as server:
        run = runs.start("a", "When?", settings(folder, server))
        assert on_disk(folder) == [("user", "When?")]
        run.stop()
        run.wait(30)


def test_any_number_of_watchers_see_the_text_so_far_and_what_follows_from_one_request(folder: Path) -> None:
    with ModelServer(say(" ".join(f"w{n}" for n in range(60)), pause_s=0.01)) as server:
        run = runs.start("a", "Count", settings(folder, server))
        seen: list[list[runs.Snapshot]] = [[], [], []]
        threads = [threading.Thread(target=lambda into=into: into.extend(run.follow(0.01))) for into in seen]
        threads[0].start()
        until(lambda: run.text)
        for thread in threads[1:]:
            thread.start()
        for thread in threads:
            thread.join()
        until(lambda: server.completed == 1)

    assert len(server.requests) == 1
    for snapshots in seen:
        texts = [snapshot.text for snapshot in snapshots if snapshot.state == "running" and snapshot.text]
        assert texts == sorted(texts, key=len)
        assert snapshots[-1].state == "done"
        assert [snapshot.version for snapshot in snapshots] == sorted(snapshot.version for snapshot in snapshots)
    assert seen[2][0].text.startswith("w0 ")
    assert len(on_disk(folder)) == 2


def test_a_run_is_found_again_and_looking_starts_nothing(folder: Path) -> None:
    with ModelServer(SILENT_AFTER_TWO) as server:
        assert runs.of(open_store(folder), "a") is None
        run = runs.start("a", "When?", settings(folder, server))
        until(lambda: run.text == "The tide")
        assert runs.of(open_store(folder), "a") is run
        assert runs.of(open_store(folder / "." / ".."), "a") is None
        assert runs.live(open_store(folder)) == [run]
        run.stop()
        run.wait(30)

    assert runs.live(open_store(folder)) == []
    assert runs.of(open_store(folder), "a") is run
    assert len(server.requests) == 1


@pytest.mark.parametrize("reply", [SILENT_AFTER_TWO, Reply(is_silent=True)], ids=["in the middle", "from the start"])
def test_stop_ends_a_run_whose_provider_is_silent(folder: Path, reply: Reply) -> None:
    said = "The tide" if reply.chunks else ""
    with ModelServer(reply) as server:
        run = runs.start("a", "When?", settings(folder, server))
        server.has_request.wait(30)
        until(lambda: run.text == said)
        run.stop()
        ended = run.wait(30)

        assert ended
        assert (run.state, run.answer, run.error) == ("stopped", said, None)
        messages = Session.open(folder, "a").messages
        assert [(m["content"], m.get("interrupted")) for m in messages[1:]] == ([(said, True)] if said else [])
        assert locks.holder(folder, "a") is None
        assert server.wait_aborted()
        until(lambda: not [thread for thread in threading.enumerate() if thread.name == "model-read"])
        assert len(server.requests) == 1  # nothing was sent again behind the person's back


@pytest.mark.any_store
def test_stop_in_a_later_step_ends_the_request_too(folder: Path) -> None:
    @tool
    def look() -> str:
        """Looks."""
        return "high"

    with ModelServer(ask(("c1", "look", {})), Reply(is_silent=True)) as server:
        run = runs.start("a", "Go", settings(folder, server, tools=(look,)))
        until(lambda: len(server.requests) == 2)
        run.stop()
        run.wait(30)

        assert server.wait_aborted()
    assert (run.state, [role for role, _ in on_disk(folder)]) == ("stopped", ["user", "assistant", "tool"])


@pytest.mark.any_store
def test_after_a_stop_the_same_prompt_is_answered_again(folder: Path) -> None:
    with ModelServer(SILENT_AFTER_TWO, say("At noon.")) as server:
        run = runs.start("a", "When?", settings(folder, server))
        until(lambda: run.text == "The tide")
        run.stop()
        run.wait(30)
        again = runs.start("a", None, settings(folder, server))
        again.wait(30)

    assert on_disk(folder) == [("user", "When?"), ("assistant", "The tide"), ("assistant", "At noon.")]
    assert server.sent[1] == [{"role": "user", "content": "When?"}]


def test_stop_in_a_tool_says_that_its_outcome_is_unknown_and_does_not_wait_for_it(folder: Path) -> None:
    is_running, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    @tool
    def slow() -> str:
        """Takes long."""
        is_running.set()
        may_end.wait(30)
        ended.set()
        return "too late"

    with ModelServer(ask(("c1", "slow", {}), ("c2", "slow", {}))) as server:
        run = runs.start("a", "Go", settings(folder, server, tools=(slow,)))
        is_running.wait(30)
        assert [(step.call.name, step.result) for step in run.steps] == [("slow", None)]
        run.stop()
        assert run.wait(30)
        assert not ended.is_set()
        before = on_disk(folder)
        may_end.set()
        ended.wait(30)

    results = [m for m in Session.open(folder, "a").messages if m["role"] == "tool"]
    assert ["unknown" in m["content"] for m in results] == [True, False]
    assert results[1]["content"] == "Not run: the run was stopped before this call."
    assert run.state == "stopped"
    assert on_disk(folder) == before


def test_the_text_and_the_steps_of_a_run_are_there_to_be_drawn(folder: Path) -> None:
    @tool(effect=False)
    def look() -> str:
        """Looks."""
        return "high"

    with ModelServer(ask(("c1", "look", {})), SILENT_AFTER_TWO) as server:
        run = runs.start("a", "Go", settings(folder, server, tools=(look,)))
        until(lambda: run.text == "The tide")
        snapshot = run.snapshot()
        run.stop()
        run.wait(30)

    (step,) = snapshot.steps
    assert step.result is not None
    assert (step.call.name, step.result["content"]) == ("look", "high")
    assert (snapshot.state, snapshot.stored) == ("running", 3)
    assert run.snapshot().stored == 4


@pytest.mark.any_store
def test_a_second_start_is_refused_and_stores_nothing(folder: Path) -> None:
    with ModelServer(SILENT_AFTER_TWO) as server:
        run = runs.start("a", "When?", settings(folder, server))
        until(lambda: run.text == "The tide")
        with pytest.raises(SessionLocked):
            runs.start("a", "Me too", settings(folder, server))
        run.stop()
        run.wait(30)

    assert on_disk(folder) == [("user", "When?"), ("assistant", "The tide")]


@pytest.mark.any_store
def test_of_many_starts_at_once_one_is_accepted(folder: Path) -> None:
    with ModelServer(say("Yes.", pause_s=0.5)) as server:
        barrier = threading.Barrier(6)
        outcomes: list[Any] = []

        def press(number: int) -> None:
            barrier.wait()
            try:
                outcomes.append(runs.start("a", f"p{number}", settings(folder, server)))
            except SessionLocked as error:
                outcomes.append(error)

        threads = [threading.Thread(target=press, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (accepted,) = [one for one in outcomes if isinstance(one, runs.Run)]
        accepted.wait(30)

    assert len(server.requests) == 1
    assert [role for role, _ in on_disk(folder)] == ["user", "assistant"]


def test_several_sessions_run_at_once_each_with_its_own_settings(tmp_path: Path) -> None:
    names = ["a", "b", "c"]
    for name in names:
        SessionManager(tmp_path).create(session_id=name)
    servers = {name: ModelServer(say(f"I am {name}.", pause_s=0.05)) for name in names}
    started = [runs.start(name, "Who?", settings(tmp_path, servers[name], api_key=f"key-of-{name}")) for name in names]
    for run in started:
        run.wait(30)

    for name in names:
        assert servers[name].keys == [f"Bearer key-of-{name}"]
        assert on_disk(tmp_path, name) == [("user", "Who?"), ("assistant", f"I am {name}.")]
        servers[name].close()
    assert "key-of-" not in repr([runs.of(open_store(tmp_path), name).__dict__ for name in names])
    assert not [file for file in tmp_path.rglob("*") if file.is_file() and b"key-of-" in file.read_bytes()]


def test_a_key_of_the_environment_goes_to_no_other_address(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-server")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with ModelServer() as server:
        runs.start("a", "Hm?", settings(folder, server)).wait(30)

    assert server.keys == ["Bearer none"]


@pytest.mark.any_store
def test_a_failed_run_says_why_and_leaves_the_prompt(folder: Path) -> None:
    with ModelServer(status(401)) as server:
        run = runs.start("a", "When?", settings(folder, server))
        run.wait(30)

    assert run.state == "failed"
    assert "wants an API key (401)" in (run.error or "")
    assert on_disk(folder) == [("user", "When?")]
    assert list(run.follow())[-1].state == "failed"


def test_a_run_whose_stream_breaks_shows_its_text_once(folder: Path) -> None:
    with ModelServer(Reply([chunk({"content": "The tide"}), DROP])) as server:
        run = runs.start("a", "When?", settings(folder, server))
        run.wait(30)

    assert (run.state, run.text) == ("failed", "")
    assert run.snapshot().stored == 2
    assert on_disk(folder) == [("user", "When?"), ("assistant", "The tide")]


@pytest.mark.any_store
def test_what_could_not_be_stored_can_still_be_seen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append = Session.append

    def full_disk(session: Session, message: Any) -> Any:
        if message["role"] == "assistant":
            raise StorageError(folder / "a.jsonl", "no space left")
        return append(session, message)

    monkeypatch.setattr(Session, "append", full_disk)
    with ModelServer(say("At noon.")) as server:
        run = runs.start("a", "When?", settings(folder, server))
        run.wait(30)

    assert (run.state, run.text) == ("failed", "At noon.")
    assert "no space left" in (run.error or "")


def test_a_session_deleted_while_it_is_answered_is_not_brought_back(folder: Path) -> None:
    with ModelServer(say("At noon.", pause_s=0.2)) as server:
        run = runs.start("a", "When?", settings(folder, server))
        for name in ("a.jsonl", "a.meta.json"):
            (folder / name).unlink()
        run.wait(30)

    assert run.state == "failed"
    assert "deleted" in (run.error or "")
    assert not (folder / "a.jsonl").exists()


def test_a_session_that_does_not_exist_and_an_empty_prompt_are_refused(folder: Path) -> None:
    with ModelServer() as server:
        with pytest.raises(SessionNotFound):
            runs.start("b", "When?", settings(folder, server))
        with pytest.raises(SessionError, match="empty"):
            runs.start("a", "", settings(folder, server))
        with pytest.raises(ProviderError, match="not the address"):
            runs.start("a", "When?", runs.Settings(open_store(folder), base_url="not an address"))

    assert [file.name for file in folder.iterdir() if file.suffix == ".jsonl"] == []
    assert server.requests == []


def test_memory_is_bounded_however_many_runs_there_were(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "KEPT", 2)
    with ModelServer() as server:
        for number in range(5):
            SessionManager(folder).create(session_id=f"s{number}")
            runs.start(f"s{number}", "Hm?", settings(folder, server)).wait(30)

    assert [runs.of(open_store(folder), f"s{number}") is None for number in range(5)] == [
        True,
        True,
        False,
        False,
        False,
    ]


def test_the_demo_answers_a_run_with_its_own_tools(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL"):
        monkeypatch.delenv(name, raising=False)
    run = runs.start("a", "Buy a torch", runs.Settings(open_store(folder)))
    run.wait(60)

    assert run.answer == "Bought a torch for 8 gold. 12 gold left. You carry a torch."
    assert len(on_disk(folder)) == 4


def test_a_process_that_ends_properly_keeps_what_was_said(folder: Path) -> None:
    program = (
        "import sys, time\nfrom sessions_lib.agent import runs\nfrom sessions_lib.store.store import open_store\n"
        f"run = runs.start('a', 'When?', runs.Settings(open_store({str(folder)!r}), model='tiny', base_url=sys.argv[1]))\n"
        "while run.text != 'The tide': time.sleep(0.01)\n"
    )
    with ModelServer(SILENT_AFTER_TWO) as server:
        subprocess.run([sys.executable, "-c", program, server.url], check=True, timeout=120)

    assert on_disk(folder) == [("user", "When?"), ("assistant", "The tide")]


def test_a_process_that_is_killed_leaves_the_prompt_and_the_next_run_is_valid(folder: Path) -> None:
    program = (
        "import os, signal, sys, time\nfrom sessions_lib.agent import runs\nfrom sessions_lib.store.store import open_store\n"
        f"run = runs.start('a', 'When?', runs.Settings(open_store({str(folder)!r}), model='tiny', base_url=sys.argv[1]))\n"
        "while run.text != 'The tide': time.sleep(0.01)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    with ModelServer(SILENT_AFTER_TWO, say("At noon.")) as server:
        killed = subprocess.run([sys.executable, "-c", program, server.url], check=False, timeout=120)
        assert killed.returncode == -9
        assert on_disk(folder) == [("user", "When?")]
        runs.start("a", None, settings(folder, server)).wait(30)

    assert on_disk(folder) == [("user", "When?"), ("assistant", "At noon.")]
