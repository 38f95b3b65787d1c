"""A session: what it promises about its two files."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_lib import Session, SessionManager
from sessions_lib.errors import (
    ForkPointForbidden,
    InvalidMessage,
    NewerVersion,
    SessionError,
    SessionExists,
    SessionLocked,
    SessionNotFound,
    StorageError,
)
from sessions_lib.store import tagging
from tests.record import GULL, LIGHTHOUSES, METRES, TALLER, call, result, said, write

WALK = [
    {"role": "user", "content": "Plan a walk."},
    {"role": "assistant", "content": "Coast or hills?"},
    {"role": "user", "content": "Coast."},
    {"role": "assistant", "content": "Ten kilometres, start at nine."},
]


@pytest.fixture
def manager(tmp_path: Path) -> SessionManager:
    return SessionManager(tmp_path / "store")


@pytest.fixture
def walk(manager: SessionManager) -> Session:
    write(manager.folder / "a.jsonl", *WALK)
    (manager.folder / "a.meta.json").write_text('{"title":"Walk","tags":["mar"]}')
    return manager.open("a")


# ---------------------------------------------------------------- appending


def test_a_message_is_on_disk_when_append_returns(manager: SessionManager) -> None:
    session = manager.create("Walk")

    stored = session.append(WALK[0])

    assert json.loads((manager.folder / "Walk.jsonl").read_bytes()) == stored
    assert list(stored) == ["role", "content", "id", "timestamp"]
    assert stored["timestamp"].endswith("Z")
    assert session.messages == [stored]


def test_memory_holds_what_a_reader_of_the_file_sees(manager: SessionManager) -> None:
    session = manager.create("odd")

    session.append({"role": "tool", "content": "key \ud83d cut", "score": float("nan"), "pair": (1, 2), 3: "three"})

    assert session.messages == manager.open("odd").messages
    assert session.messages[0]["content"] == "key \ufffd cut"
    assert session.messages[0]["score"] is None


def test_what_is_no_message_is_refused_and_nothing_is_written(manager: SessionManager) -> None:
    session = manager.create("a")

    for wrong in ({"content": "no role"}, {"role": 7}, {"role": "user", "content": object()}, ["role"]):
        with pytest.raises(InvalidMessage):
            session.append(wrong)  # type: ignore[arg-type]  # the wrong type is the point

    assert session.messages == []
    assert not (manager.folder / "a.jsonl").exists()


def test_several_messages_are_added_together_or_not_at_all(manager: SessionManager) -> None:
    session = manager.create("a")

    with pytest.raises(InvalidMessage):
        session.extend([WALK[0], {"content": "no role"}])

    assert session.messages == []
    session.extend(WALK)
    assert said(manager.open("a").messages) == said(WALK)


def test_a_write_first_reads_what_others_added(walk: Session, manager: SessionManager) -> None:
    assert len(walk.messages) == 4
    manager.open("a").append({"role": "user", "content": "from elsewhere"})

    walk.append({"role": "user", "content": "from here"})

    assert said(walk.messages)[4:] == ["from elsewhere", "from here"]
    assert walk.messages == manager.open("a").messages


def test_refresh_reads_only_what_was_added_and_says_if_there_was_any(walk: Session, manager: SessionManager) -> None:
    assert len(walk.messages) == 4
    assert walk.refresh() is False

    manager.open("a").append(TALLER)

    assert walk.refresh() is True
    assert said(walk.messages)[4:] == [TALLER["content"]]
    walk.fork("b", at=5)
    assert len(manager.open("b").messages) == 5


def test_a_line_finished_by_its_writer_is_read_whole_afterwards(manager: SessionManager) -> None:
    path = write(manager.folder / "a.jsonl", LIGHTHOUSES, '{"role":"assistant","content":"still wri', end="")
    session = manager.open("a")
    before = path.read_bytes()
    assert [one.kind for one in session.report.damaged] == ["torn"]
    assert (manager.list()[0].damaged, manager.search("lighthouses")[0].session) == (1, "a")
    assert path.read_bytes() == before

    with path.open("ab") as file:
        file.write(b'ting"}\n')

    session.refresh()
    assert said(session.messages) == [LIGHTHOUSES["content"], "still writing"]
    assert session.report.damaged == []


def test_a_file_replaced_under_an_open_session_is_read_again(walk: Session, manager: SessionManager) -> None:
    assert len(walk.messages) == 4
    sibling = write(manager.folder / "other.tmp", LIGHTHOUSES)
    os.replace(sibling, manager.folder / "a.jsonl")

    walk.append(TALLER)

    assert said(walk.messages) == [LIGHTHOUSES["content"], TALLER["content"]]
    assert said(manager.open("a").messages) == said(walk.messages)


def test_a_session_deleted_while_open_takes_no_message_and_does_not_come_back(
    walk: Session, manager: SessionManager
) -> None:
    manager.delete("a")

    for write_something in (lambda: walk.append(TALLER), lambda: walk.add_tag("x"), walk.fork):
        with pytest.raises(SessionNotFound, match="was deleted"):
            write_something()

    assert manager.list() == []
    assert not (manager.folder / "a.jsonl").exists()
    assert not (manager.folder / "a.meta.json").exists()


def test_a_folder_that_disappears_is_named(walk: Session, manager: SessionManager) -> None:
    assert len(walk.messages) == 4
    manager.folder.rename(manager.folder.with_name("gone"))

    with pytest.raises(StorageError, match="not there any more"):
        walk.append(TALLER)

    assert len(walk.messages) == 4
    assert not manager.folder.exists()


READ_ONLY = """
import os, sys
from sessions_lib import SessionManager
from sessions_lib.errors import SessionError
os.setuid(65534)
manager = SessionManager(sys.argv[1])
session = manager.open("a")
print(len(session.messages), [info.id for info in manager.list()], len(manager.search("walk")))
for act in (lambda: session.append({"role": "user", "content": "x"}), lambda: session.add_tag("t"), lambda: manager.create("n"),
            lambda: manager.delete("a"), lambda: session.fork("f")):
    try:
        act()
    except SessionError as error:
        print(type(error).__name__, sys.argv[1] in str(error))
print(len(session.messages))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another account")
def test_a_folder_that_cannot_be_written_is_read_and_every_write_says_why(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents[:2]:
        parent.chmod(0o755)
    store = tmp_path / "store"
    write(store / "a.jsonl", *WALK)
    (store / "a.meta.json").write_text('{"title":"Walk"}')
    store.chmod(0o555)
    for file in store.iterdir():
        file.chmod(0o444)

    ran = subprocess.run([sys.executable, "-c", READ_ONLY, str(store)], capture_output=True, text=True)

    assert ran.stderr == ""
    assert ran.stdout.splitlines() == ["4 ['a'] 2", *["StorageError True"] * 5, "4"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another account")
def test_a_folder_that_cannot_be_looked_into_is_never_called_empty(tmp_path: Path) -> None:
    write(tmp_path / "store" / "a.jsonl", *WALK)
    (tmp_path / "store").chmod(0o700)
    code = (
        "import os, sys; from sessions_lib import SessionManager; os.setuid(65534)\n"
        "try: SessionManager(sys.argv[1]).open('a')\n"
        "except Exception as error: print(type(error).__name__)"
    )

    ran = subprocess.run([sys.executable, "-c", code, str(tmp_path / "store")], capture_output=True, text=True)

    assert (ran.stdout, ran.stderr) == ("StorageError\n", "")


QUOTA = """
import resource, sys
from sessions_lib import SessionManager
from sessions_lib.errors import StorageError
session = SessionManager(sys.argv[1]).open("a")
count = len(session.messages)
resource.setrlimit(resource.RLIMIT_FSIZE, (900, resource.RLIM_INFINITY))
try:
    session.append({"role": "user", "content": "x" * 5000})
except StorageError:
    print("refused", len(session.messages) == count)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
session.append({"role": "user", "content": "after"})
print(len(session.messages) - count, session.messages == SessionManager(sys.argv[1]).open("a").messages)
"""


def test_a_full_disk_leaves_memory_as_the_file_and_the_next_write_goes_on(
    walk: Session, manager: SessionManager
) -> None:
    ran = subprocess.run([sys.executable, "-c", QUOTA, str(manager.folder)], capture_output=True, text=True, check=True)

    assert ran.stdout.splitlines() == ["refused True", "1 True"]


# ---------------------------------------------------------------- one writer


def test_another_writer_is_named_and_reading_and_forking_do_not_wait(walk: Session, manager: SessionManager) -> None:
    with walk.hold():
        walk.append(TALLER)
        other = manager.open("a")

        with pytest.raises(SessionLocked) as refused:
            other.append(METRES)

        assert refused.value.holder.pid == os.getpid()
        assert str(os.getpid()) in str(refused.value)
        assert refused.value.holder.host
        assert refused.value.holder.since
        assert "fork" in str(refused.value)
        assert len(other.messages) == 5
        assert len(other.fork("b").messages) == 5
        other.add_tag("while running")
    other.append(METRES)
    assert said(manager.open("a").messages)[4:] == [TALLER["content"], METRES["content"]]


def test_a_hold_can_be_released_from_any_thread(walk: Session, manager: SessionManager) -> None:
    hold = walk.hold()

    thread = threading.Thread(target=hold.release)
    thread.start()
    thread.join()

    manager.open("a").append(TALLER)
    walk.append(METRES)
    assert len(manager.open("a").messages) == 6


def test_twenty_threads_write_the_first_messages_of_a_new_session(manager: SessionManager) -> None:
    barrier = threading.Barrier(20)
    failures: list[BaseException] = []

    def write_one(number: int) -> None:
        try:
            barrier.wait()
            manager.open_or_create("new").append({"role": "user", "content": f"m{number}"})
        except BaseException as error:  # noqa: BLE001 — any failure fails the test below
            failures.append(error)

    threads = [threading.Thread(target=write_one, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert sorted(said(manager.open("new").messages)) == sorted(f"m{number}" for number in range(20))
    assert [info.id for info in manager.list()] == ["new"]


def test_one_object_can_be_written_from_many_threads(manager: SessionManager) -> None:
    session = manager.create("a")
    threads = [
        threading.Thread(
            target=lambda n=n: [session.append({"role": "user", "content": f"{n}-{i}"}) for i in range(10)]
        )
        for n in range(8)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(said(session.messages)) == sorted(f"{n}-{i}" for n in range(8) for i in range(10))
    assert session.messages == manager.open("a").messages


# ---------------------------------------------------------------- metadata


def test_tags_differ_by_more_than_case_and_blanks(walk: Session, manager: SessionManager) -> None:
    walk.add_tag("  Python ")
    walk.add_tag("python")
    walk.add_tag("résumé, café #1")

    assert walk.tags == ["mar", "Python", "résumé, café #1"]
    assert manager.open("a").tags == walk.tags
    assert [info.id for info in manager.find_by_tag("PYTHON")] == ["a"]
    walk.remove_tag("PYTHON ")
    assert walk.tags == ["mar", "résumé, café #1"]
    walk.change_tags(add=["Mar"], remove=["MAR", "none"])
    assert walk.tags == ["résumé, café #1", "Mar"]
    walk.change_tags(remove=["Mar"])
    walk.change_tags(add=["mar"])
    walk.change_tags(remove=["résumé, café #1"], add=["résumé, café #1"])
    assert walk.tags == ["mar", "résumé, café #1"]
    for empty in ("", "   ", "\n"):
        with pytest.raises(SessionError, match="cannot be empty"):
            walk.add_tag(empty)


def test_metadata_changed_from_two_windows_both_survive(walk: Session, manager: SessionManager) -> None:
    other = manager.open("a")

    walk.add_tag("one")
    other.rename("Two")
    other.update_meta({"temperature": 0.5})

    found = manager.open("a")
    assert (found.title, found.tags, found.meta["temperature"]) == ("Two", ["mar", "one"], 0.5)


def test_unknown_keys_of_metadata_are_kept(walk: Session, manager: SessionManager) -> None:
    (manager.folder / "a.meta.json").write_text('{"title":"Walk","created_at":"2026-03-01T10:00:00Z","x":{"y":1}}')

    walk.rename("Hike")

    meta = json.loads((manager.folder / "a.meta.json").read_text())
    assert (meta["title"], meta["x"], meta["created_at"]) == ("Hike", {"y": 1}, "2026-03-01T10:00:00Z")


def test_damaged_metadata_hides_nothing_and_is_kept_aside_by_the_first_write(manager: SessionManager) -> None:
    for broken in ('{"title":"Lighthou', "[]", "\0\0", '"x"'):
        write(manager.folder / "torn.jsonl", LIGHTHOUSES, GULL)
        (manager.folder / "torn.meta.json").write_text(broken)
        session = manager.open("torn")
        assert (len(session.messages), session.title, session.tags) == (2, LIGHTHOUSES["content"], [])
        assert session.report.metadata

        session.add_tag("x")

        assert json.loads((manager.folder / "torn.meta.json").read_text())["tags"] == ["x"]
        entry = manager.trash()[0]
        assert entry.kind == "metadata"
        assert (manager.folder / ".trash" / entry.entry / "torn.meta.json").read_text() == broken


def test_counts_come_from_the_messages_and_never_from_metadata(manager: SessionManager) -> None:
    write(manager.folder / "stale.jsonl", LIGHTHOUSES, GULL, TALLER)
    (manager.folder / "stale.meta.json").write_text('{"title":"Old","message_count":1,"tags":["mar"]}')

    info = manager.list()[0]

    assert (info.messages, info.tags) == (3, ("mar",))


def test_metadata_of_a_newer_version_is_read_and_never_rewritten(walk: Session, manager: SessionManager) -> None:
    newer = '{"version":2,"title":"Future","tags":["t"]}'
    (manager.folder / "a.meta.json").write_text(newer)
    session = manager.open("a")

    with pytest.raises(NewerVersion, match="newer Forkbook"):
        session.add_tag("x")

    assert session.title == "Future"
    assert (manager.folder / "a.meta.json").read_text() == newer


def test_a_title_may_be_anything_and_a_blank_one_gives_the_prompt_back(walk: Session, manager: SessionManager) -> None:
    for title in ("CON", "a:b?c*", "x" * 300, "<b>t</b>", "T\n# Fake", "‮txt.exe"):
        walk.rename(title)
        assert manager.open("a").title == title
    walk.rename("  ")
    assert walk.title == "Plan a walk."
    assert "title" not in walk.meta


@settings(max_examples=60, deadline=None)
@given(st.text(min_size=1), st.lists(st.text(min_size=1, max_size=30), max_size=4))
def test_any_title_and_tags_survive(tmp_path_factory: pytest.TempPathFactory, title: str, tags: list[str]) -> None:
    manager = SessionManager(tmp_path_factory.mktemp("s"))
    session = manager.create("x")
    kept = [tag for tag in tags if "".join(c if c.isprintable() else " " for c in tag).split()]

    session.rename(title)
    for tag in kept:
        session.add_tag(tag)

    again = manager.open("x")
    assert again.meta.get("title") == (title if title.strip() else None)
    assert {tagging.clean_tag(tag).casefold() for tag in kept} == {tag.casefold() for tag in again.tags}
    assert again.tags == session.tags


# ---------------------------------------------------------------- forks


def test_a_fork_is_a_file_of_its_own_with_the_bytes_of_the_prefix(walk: Session, manager: SessionManager) -> None:
    raw = (manager.folder / "a.jsonl").read_bytes()
    meta = (manager.folder / "a.meta.json").read_bytes()

    child = walk.fork("b", at=2)
    child.append({"role": "user", "content": "Hills."})
    child.add_tag("x")
    child.rename("Hills")
    child.messages[0]["content"] = "changed"

    assert (manager.folder / "b.jsonl").read_bytes().startswith(b"".join(raw.splitlines(keepends=True)[:2]))
    assert (manager.folder / "a.jsonl").read_bytes() == raw
    assert (manager.folder / "a.meta.json").read_bytes() == meta
    assert (walk.title, walk.tags, said(walk.messages)) == ("Walk", ["mar"], said(WALK))
    manager.delete("a")
    assert said(manager.open("b").messages) == ["Plan a walk.", "Coast or hills?", "Hills."]


def test_a_fork_knows_its_parent_its_point_and_what_it_left_out(walk: Session) -> None:
    child = walk.fork("b", at=2)

    assert (child.parent, child.inherited, child.title) == ("a", 2, "Walk · after turn 1")
    assert child.meta["forked_from"]["message_id"].startswith("h_")
    assert child.report.left_out == 2
    assert child.tags == ["mar"]


def test_a_fork_of_a_fork_is_one_name_with_one_mark_and_takes_tags_and_settings_over(manager: SessionManager) -> None:
    first = manager.create("Refactor auth", tags=["sprint"], session_id="auth", system="Be brief.", model="tiny")
    first.extend(WALK)

    second = first.fork()
    third = second.fork(at=3)
    fourth = third.fork(at=1)
    again = fourth.fork(at=0)

    forks = [second, third, fourth, again]
    assert [(fork.id, fork.title) for fork in forks] == [
        ("auth-fork", "Refactor auth · after turn 2"),
        ("auth-fork-2", "Refactor auth · inside turn 2"),
        ("auth-fork-3", "Refactor auth · inside turn 1"),
        ("auth-fork-4", "Refactor auth · from the start"),
    ]
    kept = [(fork.tags, fork.meta["system"], fork.meta["model"]) for fork in forks]
    assert kept == [(["sprint"], "Be brief.", "tiny")] * 4


def test_forks_of_one_name_are_numbered_and_only_they(walk: Session, manager: SessionManager) -> None:
    titles = [walk.fork(at=at).title for at in (2, 4, 2)]
    titles += [manager.fork("a", at=2).title, manager.fork("a-fork-3", at=2).title, walk.fork(title="Hills").title]

    assert titles == [
        "Walk · after turn 1",
        "Walk · after turn 2",
        "Walk · after turn 1 (2)",
        "Walk · after turn 1 (3)",
        "Walk · after turn 1 (4)",
        "Hills",
    ]


def test_a_title_a_person_gave_is_the_name_of_its_forks(walk: Session) -> None:
    child = walk.fork(at=2)
    child.rename("Over the hills · in snow")

    assert child.fork().title == "Over the hills · in snow · after turn 1"
    assert walk.fork(at=2, title="My own").fork().title == "My own · after turn 1"


def test_a_fork_named_by_what_it_does_otherwise_gives_its_forks_the_name_alone(walk: Session) -> None:
    child = walk.fork(at=2, mark="a small model")

    assert child.title == "Walk · a small model"
    assert child.fork(at=2).title == "Walk · after turn 1"
    assert child.fork(at=2, mark="a large model").title == "Walk · a large model"
    child.rename("Walked · a small model")
    assert child.fork(at=2).title == "Walked · a small model · after turn 1"


def test_copied_messages_keep_their_times_and_the_fork_is_made_now(manager: SessionManager) -> None:
    old = [{**message, "timestamp": "2026-01-05T09:00:00Z"} for message in WALK]
    write(manager.folder / "a.jsonl", *old)

    child = manager.fork("a", "b")

    assert [message["timestamp"] for message in child.messages] == ["2026-01-05T09:00:00Z"] * 4
    assert child.meta["created"] > "2026-11"
    assert {info.id for info in manager.find_by_date("2026-01-05")} == {"a", "b"}
    assert {str(info.last_active) for info in manager.list()} == {"2026-01-05 09:00:00+00:00"}


def test_a_fork_never_lands_on_a_session_that_exists(walk: Session, manager: SessionManager) -> None:
    write(manager.folder / "b.jsonl", {"role": "user", "content": "precious"})

    for taken in ("b", "B", "a"):
        with pytest.raises(SessionExists):
            walk.fork(taken)

    assert said(manager.open("b").messages) == ["precious"]
    assert said(manager.open("a").messages) == said(WALK)


def test_unnamed_forks_get_ids_and_titles_of_their_own(walk: Session) -> None:
    forks = [walk.fork(), walk.fork(), walk.fork(at=4)]

    assert len({fork.id for fork in forks}) == 3
    assert len({fork.title for fork in forks}) == 3
    forks[0].append({"role": "user", "content": "only in fork"})
    assert len(walk.messages) == 4


def test_a_fork_of_a_fork_and_of_an_empty_one_is_whole(walk: Session, manager: SessionManager) -> None:
    walk.fork("b", at=2).fork("c").append({"role": "user", "content": "Hills then."})
    d = manager.open("c").fork("d")

    assert (len(manager.open("c").messages), len(d.messages)) == (3, 3)
    assert [manager.open(one).parent for one in "dcb"] == ["c", "b", "a"]
    assert [info.id for info in manager.family("d")] == ["a", "b", "c", "d"]
    assert manager.create("empty").fork("e").fork("f").messages == []


def test_a_fork_that_would_end_in_a_tool_call_is_refused_with_the_nearest_points(manager: SessionManager) -> None:
    stored = [LIGHTHOUSES, call("c1", "c2"), result("c1", "one"), result("c2", "two"), GULL]
    raw = write(manager.folder / "a.jsonl", *stored).read_bytes()
    session = manager.open("a")

    for at in (2, 3):
        with pytest.raises(ForkPointForbidden) as refused:
            session.fork("b", at=at)
        assert refused.value.allowed == (1, 4)
        assert "after message 1 or 4" in str(refused.value)
    with pytest.raises(ForkPointForbidden):
        session.fork("b", at=6)

    assert not manager.exists("b")
    assert session.fork("c", at=4).messages == stored[:4]
    assert (manager.folder / "a.jsonl").read_bytes() == raw


def test_a_running_session_is_forked_at_its_last_allowed_point(manager: SessionManager) -> None:
    write(manager.folder / "a.jsonl", LIGHTHOUSES, GULL, TALLER, call("c1"))

    child = manager.fork("a", "b")

    assert (len(child.messages), child.report.left_out) == (3, 1)


def test_a_fork_in_the_middle_of_a_glued_line_keeps_its_first_half(manager: SessionManager) -> None:
    write(manager.folder / "a.jsonl", LIGHTHOUSES, json.dumps(GULL) + json.dumps(TALLER))

    child = manager.fork("a", "b", at=2)
    child.append(METRES)

    assert said(manager.open("b").messages) == said([LIGHTHOUSES, GULL, METRES])
    assert manager.open("b").report.damaged == []


def test_a_fork_of_a_session_in_memory_is_in_memory() -> None:
    session = Session(name="project_review")
    session.extend(WALK)

    child = session.fork(at=2)
    child.append({"role": "user", "content": "Hills."})

    assert (child.path, session.path) == (None, None)
    assert [m["id"] for m in child.messages[:2]] == [m["id"] for m in session.messages[:2]]
    assert len(session.messages) == 4


# ---------------------------------------------------------------- joining, saving, loading


def test_merging_changes_this_session_and_keeps_its_original(walk: Session, manager: SessionManager) -> None:
    child = walk.fork("b", at=2)
    child.append({"role": "user", "content": "Hills."})
    before, other = (manager.folder / "a.jsonl").read_bytes(), (manager.folder / "b.jsonl").read_bytes()

    walk.merge(child)

    assert said(manager.open("a").messages) == [*said(WALK), "Hills."]
    assert (manager.folder / "b.jsonl").read_bytes() == other
    entry = manager.trash()[0]
    assert (entry.kind, (manager.folder / ".trash" / entry.entry / "a.jsonl").read_bytes()) == ("merged", before)
    assert walk.meta["merged_from"] == ["b"]
    after = (manager.folder / "a.jsonl").read_bytes()
    walk.merge(child)
    walk.merge(walk)
    assert (manager.folder / "a.jsonl").read_bytes() == after
    walk.append(TALLER)
    assert said(manager.open("a").messages)[-1] == TALLER["content"]


def test_import_from_appends_what_is_missing_and_keeps_ids(walk: Session, manager: SessionManager) -> None:
    new = manager.create("continuer")

    assert new.import_from(walk) == 4
    assert new.import_from(walk) == 0

    walk.append(TALLER)
    assert new.import_from(walk) == 1
    assert [m["id"] for m in new.messages][-1] == walk.messages[-1]["id"]
    assert said(new.messages) == said(walk.messages)


def test_a_saved_session_loads_into_an_empty_one_with_everything(
    tmp_path: Path, walk: Session, manager: SessionManager
) -> None:
    walk.append({"role": "assistant", "content": "", "refusal": "no", "x": {"k": [1, 2.5, None, True]}})
    walk.save(tmp_path / "s.json")

    again = manager.create()
    again.load(tmp_path / "s.json")

    assert said(again.messages) == said(walk.messages)
    assert again.messages[-1] == walk.messages[-1]
    assert (again.title, again.tags) == ("Walk", ["mar"])
    with pytest.raises(SessionError, match="would mix two conversations"):
        again.load(tmp_path / "s.json")


def test_saving_gives_an_untitled_session_the_name_of_the_file(tmp_path: Path) -> None:
    session = Session()
    session.append(LIGHTHOUSES)

    session.save(tmp_path / "decorator_session.json")

    assert session.title == "decorator_session"
    assert stat.S_IMODE((tmp_path / "decorator_session.json").stat().st_mode) == 0o600


def test_any_jsonl_of_messages_loads_and_anything_else_says_what_it_is(tmp_path: Path) -> None:
    write(tmp_path / "m.jsonl", *WALK)
    write(tmp_path / "bad.jsonl", {"type": "summary"}, LIGHTHOUSES)
    (tmp_path / "text.txt").write_text("hello")
    session = Session()

    for wrong in ("bad.jsonl", "text.txt", "missing.json"):
        with pytest.raises(SessionError, match=wrong):
            session.load(tmp_path / wrong)

    assert session.messages == []
    session.load(tmp_path / "m.jsonl")
    assert said(session.messages) == said(WALK)


# ---------------------------------------------------------------- privacy


def test_everything_is_for_its_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    was = os.umask(0o022)
    try:
        manager = SessionManager(tmp_path / "store")
        session = manager.create("a", tags=["t"])
        session.extend(WALK)
        session.add_tag("x")
        child = session.fork("b", at=2)
        child.append(TALLER)
        session.merge(child)
        session.export(manager.folder / "chat.md")
        manager.delete("b")
        manager.list()
        manager.search("walk")
    finally:
        os.umask(was)

    for path in [manager.folder, *manager.folder.rglob("*")]:
        expected = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == expected, path


@pytest.mark.parametrize("umask", [0, 0o022, 0o277, 0o777])
def test_new_folders_above_the_sessions_are_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    was = os.umask(umask)
    try:
        manager = SessionManager(tmp_path / "new" / "and" / "store")
        session = manager.create("a")
        session.extend(WALK)
        session.fork("b", at=2).add_tag("x")
        session.export(tmp_path / "new" / "chat.md")
        manager.search("walk")
        manager.delete("b")
    finally:
        os.umask(was)

    for path in tmp_path.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_a_file_others_could_read_is_closed_by_a_change_of_its_metadata(manager: SessionManager) -> None:
    path = write(manager.folder / "a.jsonl", *WALK)
    path.chmod(0o644)

    manager.open("a").add_tag("x")

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_files_that_others_can_read_are_told(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    manager = SessionManager(folder)
    manager.create("mine").append(TALLER)
    theirs = write(folder / "theirs.jsonl", *WALK)
    theirs.chmod(0o644)

    assert manager.store.readable_by_others() == []  # nobody else may enter the folder
    folder.chmod(0o755)
    assert manager.store.readable_by_others() == ["theirs.jsonl"]
    theirs.chmod(0o600)
    assert manager.store.readable_by_others() == []
    assert SessionManager(tmp_path / "nowhere").store.readable_by_others() == []


def test_a_file_others_could_read_is_closed_by_the_first_append(manager: SessionManager) -> None:
    path = write(manager.folder / "a.jsonl", *WALK)
    path.chmod(0o644)

    manager.open("a").append(TALLER)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_in_the_folder_leads_no_read_write_or_delete_outside(tmp_path: Path, manager: SessionManager) -> None:
    secret = write(tmp_path / "secret.txt", "top secret")
    manager.folder.mkdir()
    (manager.folder / "link.jsonl").symlink_to("../secret.txt")
    (manager.folder / "link.meta.json").symlink_to("../secret.txt")

    for act in (
        lambda: manager.open("link").append(TALLER),
        lambda: manager.open("link").export(tmp_path / "out.md"),
        lambda: manager.open("link").fork("f"),
    ):
        with pytest.raises(SessionError):
            act()
    with contextlib.suppress(SessionError):
        manager.delete("link")

    assert secret.read_text() == "top secret\n"
    assert not (tmp_path / "out.md").exists()


def test_reading_never_writes(walk: Session, manager: SessionManager) -> None:
    write(manager.folder / "torn.jsonl", LIGHTHOUSES, call("c1"), '{"role":"user","con', end="")
    before = {path.name: path.read_bytes() for path in manager.folder.iterdir() if path.is_file()}

    for name in ("a", "torn"):
        session = manager.open(name)
        assert session.messages
        assert session.turns
        assert session.report is not None
    manager.list()
    manager.search("north")
    manager.tags()

    after = {path.name: path.read_bytes() for path in manager.folder.iterdir() if path.is_file()}
    assert {name: after[name] for name in before} == before
