"""The demo's sessions: what they show, that they are marked, and that removing them removes nothing else."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sessions_lib import SessionManager, demo, prices
from sessions_lib.agent import demo_world
from sessions_lib.messages import for_request
from sessions_lib.store.records import SessionInfo
from sessions_lib.trials import Trial, table
from tests.model_server import problems


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> SessionManager:
    manager = SessionManager(tmp_path_factory.mktemp("demo"))
    demo.load(manager)
    return manager


def infos(manager: SessionManager) -> dict[str, SessionInfo]:
    return {info.id: info for info in manager.list()}


def test_every_session_is_marked_and_says_something(loaded: SessionManager) -> None:
    found = infos(loaded)

    assert len(found) == 72
    assert all(info.meta["demo"] is True for info in found.values())
    assert all(info.turns >= 1 for info in found.values())


def test_loading_twice_makes_nothing_twice(loaded: SessionManager) -> None:
    assert demo.is_loaded(loaded)
    assert demo.load(loaded) == []
    assert len(loaded.list()) == 72


def test_two_loads_at_once_make_one_demo(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(lambda _: demo.load(SessionManager(tmp_path / "folder")), range(4)))

    assert sorted(map(len, made)) == [0, 0, 0, 32]
    assert len(SessionManager(tmp_path / "folder").list()) == 72


def test_the_quest_was_really_played_and_its_forks_go_on_from_it(loaded: SessionManager) -> None:
    found = infos(loaded)

    assert (found["quest-1"].messages, found["quest-1"].turns, found["quest-1"].models) == (10, 2, ("demo",))
    assert (found["quest-2"].parent, found["quest-2"].inherited) == ("quest-1", 10)
    assert (found["quest-3"].parent, found["quest-3"].inherited) == ("quest-1", 6)
    assert demo_world.purse(loaded.open("quest-1").messages) == 12
    assert demo_world.purse(loaded.open("quest-2").messages) == 6


def test_the_architecture_pair_parts_after_the_first_answer(loaded: SessionManager) -> None:
    design, branch = loaded.open("auth-design"), loaded.open("jwt-branch")

    assert [m["content"] for m in design.messages[:2]] == [m["content"] for m in branch.messages[:2]]
    assert design.messages[2]["content"] == "Redesign using OAuth2"
    assert branch.messages[2]["content"] == "How to handle token refresh in JWT?"
    assert (branch.title, branch.parent) == ("jwt_branch", "auth-design")


def test_dates_are_relative_to_today_and_cover_ninety_days(loaded: SessionManager) -> None:
    now = datetime.now(UTC)
    ages = [now - info.last_active for info in loaded.list() if info.last_active]

    assert len(ages) == 72
    assert min(ages) > timedelta(0)
    assert timedelta(80) < max(ages) < timedelta(91)


def test_there_is_something_of_everything_to_look_at(loaded: SessionManager) -> None:
    found = infos(loaded).values()
    stored = [message for info in found for message in loaded.open(info.id).messages]

    assert len({tag for info in found for tag in info.tags}) >= 20
    assert {model for info in found for model in info.models} >= {
        "demo",
        "sample-large",
        "sample-small",
        "sample-local",
    }
    assert any(info.tokens.total is None for info in found)
    assert sum(info.errors for info in found) >= 4
    assert {message.get("finish_reason") for message in stored} >= {"stop", "tool_calls", "length", None}
    assert any(message.get("interrupted") for message in stored)


def test_the_damaged_file_shows_what_recovery_keeps(loaded: SessionManager) -> None:
    session = loaded.open("crashed-backup")

    assert len(session.messages) == 4
    assert [damage.line for damage in session.report.damaged] == [3, 6]
    assert [call.name for call in session.report.unanswered] == ["backup"]


def test_every_session_of_the_demo_can_be_gone_on_with(loaded: SessionManager) -> None:
    for info in loaded.list():
        request = for_request([*loaded.open(info.id).messages, {"role": "user", "content": "Go on"}])
        assert problems(request) == [], info.id


def test_the_trial_is_finished_and_says_one_thing_of_each_kind(loaded: SessionManager) -> None:
    trial = Trial.load(loaded.store, "orders-as-json")
    rows = table.rows(trial)

    assert trial.open_repeats() == []
    assert [(row.variant.name, table.share(row.rate)) for row in rows] == [
        ("as it is", "4 of 10"), ("as it is again", "3 of 10"), ("with an example", "10 of 10"), ("warmer", "5 of 10"),
    ]  # fmt: skip
    better, alike, noise = table.verdicts(rows)
    assert better.startswith("with an example is better than as it is: 10 of 10 against 4 of 10")
    assert alike.startswith("warmer and as it is are not told apart by 10 repeats")
    assert noise == "The same variant twice: 4 of 10 and 3 of 10. So much is noise."
    for row in rows:
        for result in row.results:
            session = loaded.open(result.session)
            money = prices.of(session.messages, session.meta, session.inherited)
            own = session.messages[session.inherited :]
            assert trial.result_of(row.variant, result.repeat, own, money) == result
            assert (session.meta["forked_from"]["session"], session.inherited) == ("orders-as-json", 2)


def test_a_trial_of_ones_own_keeps_its_name_and_the_demos_comes_again_after_it_was_removed(tmp_path: Path) -> None:
    manager = SessionManager(tmp_path)
    own = manager.create(session_id="mine")
    own.append({"role": "user", "content": "q"})
    Trial(own, 1, ["x"], repeats=3, name="orders-as-json").save()
    demo.load(manager)
    demo.remove(manager)

    assert manager.store.trials() == ["orders-as-json"]
    assert Trial.load(manager.store, "orders-as-json").session_id == "mine"
    assert len(demo.load(manager)) == 32
    assert manager.store.trials() == ["orders-as-json", "orders-as-json-2"]


def test_removing_the_demo_removes_only_the_demo_and_can_be_undone(tmp_path: Path) -> None:
    manager = SessionManager(tmp_path)
    manager.create(session_id="quest-1", title="Mine").append({"role": "user", "content": "precious"})
    ids = demo.load(manager)
    fork = manager.fork("quest-2", "my-fork")

    assert "quest-1" not in ids
    assert "quest-1-2" in ids
    assert sorted(demo.remove(manager)) == sorted(ids)
    assert sorted(infos(manager)) == ["my-fork", "quest-1"]
    assert manager.store.trials() == []
    assert manager.open("quest-1").messages[0]["content"] == "precious"
    assert len(fork.messages) == 18
    assert not demo.is_loaded(manager)
    manager.restore("quest-2")
    assert len(manager.open("quest-2").messages) == 18
