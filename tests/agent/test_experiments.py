"""Experiments: every branch asked, several ways tried, the best one brought home and said to be so."""

from __future__ import annotations

from pathlib import Path

import pytest

from sessions_lib import SessionManager, messages, stats
from sessions_lib.agent import experiments, runs
from sessions_lib.agent.experiments import Variant
from sessions_lib.compare import verdicts
from sessions_lib.errors import ForkPointForbidden, SessionError, SessionExists
from sessions_lib.store import merge_sessions
from tests.model_server import SILENCE, ModelServer, Reply, chunk, say, status
from tests.record import LIGHTHOUSES, call, is_valid_request, result, said, write


@pytest.fixture
def manager(tmp_path: Path) -> SessionManager:
    manager = SessionManager(tmp_path)
    a = manager.create("a", tags=["walk"])
    a.append({"role": "user", "content": "Plan a walk.", "timestamp": "2026-03-01T10:00:00Z"})
    a.append({"role": "assistant", "content": "Coast or hills?", "timestamp": "2026-03-01T10:00:01Z"})
    for name, clock in (("b", "11"), ("c", "12"), ("d", "13")):
        fork = a.fork(name)
        fork.append({"role": "user", "content": f"{name}1", "timestamp": f"2026-03-01T{clock}:00:00Z"})
        fork.append({"role": "assistant", "content": f"{name}1!", "timestamp": f"2026-03-01T{clock}:00:01Z"})
    return manager


def settings_for(manager: SessionManager, server: ModelServer, model: str = "tiny") -> runs.Settings:
    return runs.Settings(manager.store, model=model, base_url=server.url, api_key="k")


def contents(manager: SessionManager, session_id: str) -> list[object]:
    return said(manager.open(session_id).messages)


# ---------------------------------------------------------------- ask every branch


def test_one_prompt_is_answered_in_every_branch_each_in_its_own_file(manager: SessionManager) -> None:
    with ModelServer(say("Yes."), say("Yes."), say("Yes.")) as server:
        asked = experiments.ask(["a", "b", "c"], "And then?", lambda one: settings_for(manager, server))
        assert all(one.run is not None and one.run.wait(20) for one in asked)

    assert [one.session for one in asked] == ["a", "b", "c"]
    for one in "abc":
        assert contents(manager, one)[-2:] == ["And then?", "Yes."]
    assert contents(manager, "d")[-1] == "d1!"


def test_a_branch_that_is_locked_deleted_or_fails_says_so_and_the_others_go_on(manager: SessionManager) -> None:
    with ModelServer(say("Fine.")) as good, ModelServer(status(401)) as refusing, manager.open("b").hold():
        manager.delete("c")
        asked = experiments.ask(
            ["a", "b", "c", "d"], "And then?", lambda one: settings_for(manager, refusing if one == "d" else good)
        )
        for one in asked:
            assert one.run is None or one.run.wait(20)

    assert asked[0].run is not None
    assert asked[0].run.state == "done"
    assert "being written by process" in str(asked[1].error)
    assert "There is no session 'c'" in str(asked[2].error)
    assert asked[3].run is not None
    assert asked[3].run.state == "failed"
    assert asked[3].run.error
    assert contents(manager, "a")[-1] == "Fine."
    assert contents(manager, "b")[-1] == "b1!"
    assert contents(manager, "d")[-1] == "And then?"


def test_one_branch_is_stopped_and_keeps_what_it_said(manager: SessionManager) -> None:
    slow = Reply([chunk({"role": "assistant", "content": "Half"}), SILENCE])
    with ModelServer(slow) as silent, ModelServer(say("Whole.")) as quick:
        asked = experiments.ask(["a", "b"], "Go", lambda one: settings_for(manager, silent if one == "a" else quick))
        stopped, done = asked[0].run, asked[1].run
        assert stopped is not None
        assert done is not None
        next(one for one in stopped.follow() if one.text)
        stopped.stop()
        assert stopped.wait(20)
        assert done.wait(20)

    assert manager.open("a").messages[-1]["interrupted"] is True
    assert contents(manager, "a")[-1] == "Half"
    assert contents(manager, "b")[-1] == "Whole."


def test_an_empty_prompt_is_sent_to_nobody(manager: SessionManager) -> None:
    with pytest.raises(SessionError, match="prompt is empty"):
        experiments.ask(["a"], "  \n", lambda one: runs.Settings(manager.store))

    assert contents(manager, "a")[-1] == "Coast or hills?"


# ---------------------------------------------------------------- try in parallel


def test_variants_are_tried_in_forks_whose_titles_say_what_differs(manager: SessionManager) -> None:
    variants = [Variant(model="small"), Variant(model="large"), Variant(model="large", temperature=0.2)]
    with ModelServer(say("x"), say("x"), say("x")) as server:
        asked = experiments.try_in_parallel(
            manager, "b", 2, "Hills?", variants, lambda one: settings_for(manager, server)
        )
        assert all(one.run is not None and one.run.wait(20) for one in asked)
        models = sorted((str(request.get("model")), request.get("temperature", 1.0)) for request in server.requests)

    assert models == [("large", 0.2), ("large", 1.0), ("small", 1.0)]
    forks = [manager.open(one.session) for one in asked]
    assert [fork.title.rsplit(" · ", 1)[1] for fork in forks] == ["small", "large", "large, temperature 0.2"]
    assert [(fork.parent, fork.inherited, said(fork.messages)[2:]) for fork in forks] == [("b", 2, ["Hills?", "x"])] * 3
    assert [fork.meta.get("model") for fork in forks] == ["small", "large", "large"]
    assert contents(manager, "b") == ["Plan a walk.", "Coast or hills?", "b1", "b1!"]


def test_equal_variants_are_numbered() -> None:
    assert experiments.differences([Variant(), Variant()]) == ["try 1", "try 2"]
    assert experiments.differences([Variant(system="Be brief."), Variant(system="Rhyme.")]) == [
        "“Be brief.”",
        "“Rhyme.”",
    ]


def test_a_key_is_not_sent_to_the_address_of_another_variant(manager: SessionManager) -> None:
    with ModelServer(say("x")) as one, ModelServer(say("x")) as other:
        asked = experiments.try_in_parallel(
            manager,
            "a",
            2,
            "?",
            [Variant(model="m"), Variant(base_url=other.url, model="n")],
            lambda _: settings_for(manager, one),
        )
        assert all(branch.run is not None and branch.run.wait(20) for branch in asked)

        assert one.keys == ["Bearer k"]
        assert "Bearer k" not in other.keys


def test_nothing_is_forked_where_a_fork_is_forbidden_or_the_number_is_wrong(manager: SessionManager) -> None:
    write(manager.folder / "t.jsonl", LIGHTHOUSES, call("c1"), result("c1"))
    before = {info.id for info in manager.list()}

    with pytest.raises(ForkPointForbidden):
        experiments.try_in_parallel(
            manager, "t", 2, "?", [Variant(), Variant()], lambda _: runs.Settings(manager.store)
        )
    for count in (1, 5):
        with pytest.raises(SessionError, match="Try 2 to 4"):
            experiments.try_in_parallel(
                manager, "a", 2, "?", [Variant()] * count, lambda _: runs.Settings(manager.store)
            )

    assert {info.id for info in manager.list()} == before


# ---------------------------------------------------------------- bring it home


def test_chosen_turns_are_copied_behind_the_last_and_say_where_they_are_from(manager: SessionManager) -> None:
    manager.open("c").extend([{"role": "user", "content": "c2"}, {"role": "assistant", "content": "c2!"}])
    raw = {one: (manager.folder / f"{one}.jsonl").read_bytes() for one in "bc"}

    plan = merge_sessions.preview(manager, "b", "c", [3, 2, 3])
    assert manager.list() == [info for info in manager.list() if info.id in "abcd"]
    merged = merge_sessions.join(manager, plan)

    assert said(merged.messages) == ["Plan a walk.", "Coast or hills?", "b1", "b1!", "c1", "c1!", "c2", "c2!"]
    assert [message.get("copied_from") for message in merged.messages[3:6]] == [
        None,
        {"session": "c", "turn": 2},
        {"session": "c", "turn": 2},
    ]
    assert plan.turns == ["turn 3: c1", "turn 4: c2"]
    assert (merged.meta["merged_from"], merged.parent, merged.inherited, merged.tags) == (["b", "c"], "b", 4, ["walk"])
    assert is_valid_request(messages.for_request(merged.messages))
    assert {one: (manager.folder / f"{one}.jsonl").read_bytes() for one in "bc"} == raw
    with pytest.raises(SessionError, match="has nothing"):
        merge_sessions.preview(manager, merged.id, "c", [2, 3])


def test_both_are_interleaved_by_time_and_the_shared_start_is_there_once(manager: SessionManager) -> None:
    manager.open("b").append({"role": "user", "content": "b2", "timestamp": "2026-03-01T14:00:00Z"})

    merged = merge_sessions.join(manager, merge_sessions.preview(manager, "b", "c"), "m")

    assert said(merged.messages) == ["Plan a walk.", "Coast or hills?", "b1", "b1!", "c1", "c1!", "b2"]
    assert (merged.id, merged.parent, merged.inherited) == ("m", "b", 4)


def test_merging_a_fork_with_its_parent_doubles_nothing(manager: SessionManager) -> None:
    merged = merge_sessions.join(manager, merge_sessions.preview(manager, "a", "b"))

    assert contents(manager, merged.id) == contents(manager, "b")
    with pytest.raises(SessionError, match="has nothing"):
        merge_sessions.preview(manager, "b", "a")


def test_what_cannot_be_merged_is_said(manager: SessionManager) -> None:
    for act, words in (
        (lambda: merge_sessions.preview(manager, "a", "a"), "with itself"),
        (lambda: merge_sessions.preview(manager, "b", "c", [7]), "has turns 1 to 2"),
        (lambda: merge_sessions.preview(manager, "b", "c", [0]), "has turns 1 to 2"),
        (lambda: merge_sessions.preview(manager, "b", "c", []), "No turn was chosen"),
        (lambda: merge_sessions.preview(manager, "b", "zz"), "There is no session"),
    ):
        with pytest.raises(SessionError, match=words):
            act()
    with pytest.raises(SessionExists):
        merge_sessions.join(manager, merge_sessions.preview(manager, "b", "c"), "a")


def test_sessions_without_ids_or_times_are_merged(manager: SessionManager) -> None:
    write(manager.folder / "x.jsonl", {"role": "user", "content": "X"}, {"role": "assistant", "content": "X!"})
    write(manager.folder / "y.jsonl", {"role": "user", "content": "Y"}, call("c1"), result("c1"))

    merged = merge_sessions.join(manager, merge_sessions.preview(manager, "x", "y"))

    assert said(merged.messages) == ["X", "X!", "Y", None, "2.1 m"]
    assert all(message["id"] for message in merged.messages)


# ---------------------------------------------------------------- verdict


def test_a_verdict_is_kept_in_each_branch_and_found_again(manager: SessionManager) -> None:
    with manager.open("c").hold():
        assert verdicts.give(manager, "b", ["c", "d"], why="Shorter.", tags=["best"]) == []

    won = manager.open("b").meta["verdict"]
    assert (won["verdict"], won["against"], won["why"]) == ("won", ["c", "d"], "Shorter.")
    assert manager.open("b").tags == ["walk", "best"]
    assert {hit.session for hit in manager.search("verdict:won")} == {"b"}
    assert {hit.session for hit in manager.search("verdict:lost")} == {"c", "d"}
    manager.open("b").append({"role": "assistant", "content": "x", "model": "tiny"})
    assert stats.by_model(manager.catalog).set_index("model")["wins"].to_dict()["tiny"] == 1
    verdicts.take_back(manager, ["b"])
    assert manager.search("verdict:won") == []


def test_a_verdict_on_a_deleted_branch_names_it_and_writes_the_others(manager: SessionManager) -> None:
    manager.delete("c")

    failed = verdicts.give(manager, "b", ["c", "d"])

    assert len(failed) == 1
    assert "'c'" in failed[0]
    assert verdicts.of(manager.open("d").meta) is not None
    with pytest.raises(SessionError):
        verdicts.give(manager, "b", [])
