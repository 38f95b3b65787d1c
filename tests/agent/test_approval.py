"""Tools a person can trust: nothing that changes the world runs before a yes, and then once, whatever ends in between."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import Agent, Session, SessionManager, tool
from sessions_lib.agent import approval, runs
from sessions_lib.agent.approval import Decision
from sessions_lib.agent.events import ApprovalAsked
from sessions_lib.errors import SessionError
from tests.model_server import ModelServer, ask, say

ROOT = Path(__file__).resolve().parents[2]
BUY = ask(("call_1", "buy", {"item": "torch"}))


class Shop:
    def __init__(self) -> None:
        self.sold: list[str] = []

        @tool
        def buy(item: str) -> str:
            """Buy an item."""
            self.sold.append(item)
            return f"You have a {item}."

        @tool(effect=False)
        def look() -> str:
            """Look around."""
            return "A shop."

        self.tools = [buy, look]


@pytest.fixture
def shop() -> Shop:
    return Shop()


def agent_on(server: ModelServer, folder: Path, shop: Shop, **more: Any) -> Agent:
    return Agent(session_id="a", base_url=server.url, model="tiny", tools=shop.tools, save_dir=folder, **more)


def test_without_a_callback_tools_run_as_ever(tmp_path: Path, shop: Shop) -> None:
    with ModelServer(BUY, say("Done.")) as server:
        assert agent_on(server, tmp_path, shop).chat("Buy.") == "Done."
    assert shop.sold == ["torch"]


@pytest.mark.parametrize(
    ("said", "sold"), [(True, ["torch"]), (False, []), (Decision(is_allowed=False, reason="too dear"), [])]
)
def test_a_callback_is_asked_before_it_runs(tmp_path: Path, shop: Shop, said: Any, sold: list[str]) -> None:
    asked = []

    def approve(call: Any, tool: Any) -> Any:
        asked.append((call.name, tool.effect, list(shop.sold)))
        return said

    with ModelServer(ask(("c0", "look", {})), BUY, say("Done.")) as server:
        agent_on(server, tmp_path, shop, approve=approve).chat("Buy.")

    assert asked == [("buy", True, [])]
    assert shop.sold == sold
    result = server.requests[-1]["messages"][-1]["content"]
    assert result == (
        "You have a torch."
        if sold
        else "Denied by the person, and not run: too dear"
        if isinstance(said, Decision)
        else "Denied by the person, and not run."
    )


def test_a_process_that_ends_at_the_question_leaves_it_asked_and_no_damage(tmp_path: Path, shop: Shop) -> None:
    def gone(call: Any, tool: Any) -> bool:
        raise SystemExit

    with ModelServer(BUY, say("Done.")) as server:
        agent = agent_on(server, tmp_path, shop, approve=gone)
        with pytest.raises(SystemExit):
            agent.chat("Buy.")
        session = Session.open(tmp_path, "a")
        assert [call.name for call in approval.waiting(session)] == ["buy"]
        assert session.store.faults("a") == []
        list(agent_on(server, tmp_path, shop, approve=lambda *_: True).stream(None))

    assert shop.sold == ["torch"]


def test_always_holds_for_the_tool_in_this_session_and_not_in_a_fork(tmp_path: Path, shop: Shop) -> None:
    asked = []

    def approve(call: Any, tool: Any) -> Decision:
        asked.append(call.id)
        return Decision(is_allowed=True, always=True)

    with ModelServer(*[BUY, say("Done.")] * 3) as server:
        agent = agent_on(server, tmp_path, shop, approve=approve)
        agent.chat("Buy.")
        agent.chat("And again.")
        agent.fork("b").chat("And here.")

    assert len(asked) == 2
    assert len(shop.sold) == 3


def test_a_run_ends_in_the_question_and_goes_on_with_what_was_decided(tmp_path: Path, shop: Shop) -> None:
    with ModelServer(BUY, say("Done.")) as server:
        SessionManager(tmp_path).create(session_id="a", base_url=server.url, model="tiny")
        store = SessionManager(tmp_path).store
        settings = runs.Settings(store, tools=tuple(shop.tools), asks_later=True)
        run = runs.start("a", "Buy.", settings)
        run.wait(20)
        assert run.state == "waiting"
        assert shop.sold == []
        (call,) = approval.waiting(Session.open(store, "a"))
        again = runs.start("a", None, settings)
        again.wait(20)
        assert (again.state, shop.sold, len(server.requests)) == ("waiting", [], 1)
        decided = runs.start(
            "a",
            None,
            runs.Settings(
                store, tools=tuple(shop.tools), asks_later=True, decisions={call.id: Decision(is_allowed=True)}
            ),
        )
        decided.wait(20)

    assert (decided.state, shop.sold) == ("done", ["torch"])
    session = Session.open(store, "a")
    assert approval.waiting(session) == []
    assert [message["role"] for message in session.messages] == ["user", "assistant", "tool", "assistant"]
    with pytest.raises(SessionError, match="no prompt waiting"):
        runs.start("a", None, settings)


def test_a_prompt_instead_of_a_yes_leaves_the_call_not_run(tmp_path: Path, shop: Shop) -> None:
    with ModelServer(BUY, say("Well.")) as server:
        list(agent_on(server, tmp_path, shop, asks_later=True).stream("Buy."))
        agent_on(server, tmp_path, shop, asks_later=True).chat("What is there?")

    said = Session.open(tmp_path, "a").messages
    assert [message["role"] for message in said] == ["user", "assistant", "tool", "user", "assistant"]
    assert said[2]["content"] == approval.WENT_ON
    assert shop.sold == []


def test_calls_behind_the_question_wait_with_it(tmp_path: Path, shop: Shop) -> None:
    both = ask(("c1", "buy", {"item": "torch"}), ("c2", "look", {}), ("c3", "buy", {"item": "rope"}))
    with ModelServer(both, say("Done.")) as server:
        events = list(agent_on(server, tmp_path, shop, asks_later=True).stream("Buy."))
        assert [event.call.id for event in events if isinstance(event, ApprovalAsked)] == ["c1"]
        session = Session.open(tmp_path, "a")
        assert [call.id for call in approval.waiting(session)] == ["c1", "c2", "c3"]
        list(
            agent_on(server, tmp_path, shop, asks_later=True, decisions={"c1": Decision(is_allowed=True)}).stream(None)
        )
        assert [call.id for call in approval.waiting(Session.open(tmp_path, "a"))] == ["c3"]
        list(
            agent_on(server, tmp_path, shop, asks_later=True, decisions={"c3": Decision(is_allowed=False)}).stream(None)
        )

    assert shop.sold == ["torch"]
    assert [
        message.get("tool_call_id") for message in Session.open(tmp_path, "a").messages if message["role"] == "tool"
    ] == ["c1", "c2", "c3"]


def test_all_tools_ask_where_the_session_says_so(tmp_path: Path, shop: Shop) -> None:
    with ModelServer(ask(("c0", "look", {})), say("Done.")) as server:
        agent = agent_on(server, tmp_path, shop, asks_later=True)
        agent.session.update_meta({approval.ASK: "all"})
        list(agent.stream("Look."))

    assert [call.name for call in approval.waiting(Session.open(tmp_path, "a"))] == ["look"]


def test_a_call_that_waits_survives_a_kill_and_runs_once(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(
        f"from sessions_lib import tool\n@tool\ndef buy(item: str) -> str:\n    '''Buy.'''\n    open({str(tmp_path / 'sold')!r}, 'a').write(item + '\\n')\n    return 'Sold.'\n"
    )
    program = (
        "import sys, time\n"
        "from sessions_lib import SessionManager, Session\n"
        "from sessions_lib.agent import approval, runs, tools\n"
        "from sessions_lib.agent.approval import Decision\n"
        f"store = SessionManager({str(tmp_path / 'folder')!r}).store\n"
        f"offered = tuple(tools.from_file({str(tmp_path / 'tools.py')!r}))\n"
        "calls = approval.waiting(Session.open(store, 'a'))\n"
        "decisions = {call.id: Decision(is_allowed=True) for call in calls}\n"
        "run = runs.start('a', None if calls else 'Buy.', runs.Settings(store, tools=offered, asks_later=True, decisions=decisions))\n"
        "run.wait()\n"
        "print(run.state, flush=True)\n"
        "time.sleep(60 if not calls else 0)\n"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with ModelServer(BUY, say("Done.")) as server:
        SessionManager(tmp_path / "folder").create(session_id="a", base_url=server.url, model="tiny")
        server_process = subprocess.Popen([sys.executable, "-c", program], env=env, stdout=subprocess.PIPE, text=True)
        assert server_process.stdout is not None
        assert server_process.stdout.readline() == "waiting\n"
        server_process.send_signal(signal.SIGKILL)
        server_process.communicate()
        assert not (tmp_path / "sold").exists()
        after = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=60)
        assert after.stdout == "done\n"
        once_more = subprocess.run(
            [sys.executable, "-c", program.replace("None if calls else 'Buy.'", "None")],
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
        )

    assert "no prompt waiting" in once_more.stderr
    assert (tmp_path / "sold").read_text() == "torch\n"


def test_two_who_say_yes_at_once_buy_one(tmp_path: Path, shop: Shop) -> None:
    with ModelServer(BUY, say("Done."), say("Done.")) as server:
        SessionManager(tmp_path).create(session_id="a", base_url=server.url, model="tiny")
        store = SessionManager(tmp_path).store
        settings = runs.Settings(store, tools=tuple(shop.tools), asks_later=True)
        runs.start("a", "Buy.", settings).wait(20)
        yes = runs.Settings(
            store, tools=tuple(shop.tools), asks_later=True, decisions={"call_1": Decision(is_allowed=True)}
        )
        first = runs.start("a", None, yes)
        with pytest.raises(SessionError):  # it is being answered, or has nothing left to answer
            runs.start("a", None, yes)
        first.wait(20)

    assert shop.sold == ["torch"]


def test_a_yes_without_the_tool_runs_nothing_and_the_call_goes_on_waiting(tmp_path: Path, shop: Shop) -> None:
    yes = {"call_1": Decision(is_allowed=True)}
    with ModelServer(BUY, say("Done.")) as server:
        list(agent_on(server, tmp_path, shop, asks_later=True).stream("Buy."))
        without = Agent(session_id="a", base_url=server.url, model="tiny", tools=[], save_dir=tmp_path, asks_later=True, decisions=yes)  # fmt: skip
        with pytest.raises(SessionError, match="buy waits for a yes, but is not among the tools that are on"):
            list(without.stream(None))
        assert [call.id for call in approval.waiting(Session.open(tmp_path, "a"))] == ["call_1"]
        list(agent_on(server, tmp_path, shop, asks_later=True, decisions=yes).stream(None))

    assert shop.sold == ["torch"]


@pytest.mark.parametrize("tools", [[], ["buy"]])
def test_a_no_is_read_as_a_no_whatever_tools_there_are(tmp_path: Path, shop: Shop, tools: list[str]) -> None:
    no = {"call_1": Decision(is_allowed=False, reason="too dear")}
    with ModelServer(BUY, say("Done.")) as server:
        list(agent_on(server, tmp_path, shop, asks_later=True).stream("Buy."))
        offered = [tool for tool in shop.tools if tool.name in tools]
        without = Agent(session_id="a", base_url=server.url, model="tiny", tools=offered, save_dir=tmp_path, decisions=no)  # fmt: skip
        list(without.stream(None))

    assert shop.sold == []
    assert Session.open(tmp_path, "a").messages[2]["content"] == "Denied by the person, and not run: too dear"
