"""The two documents this project answers: their code runs as written, and their files and ours are the same files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import Agent, Session, SessionManager
from sessions_lib.agent import demo_model, demo_world
from tests import database

# Pi's session management, sections 1 to 6, word for word but for the name of the package.
ONE = """
from pi_agent import Agent, Session

session = Session(name="project_review")
agent = Agent(name="reviewer", session=session)

agent.chat("Review main.py")
agent.chat("What security issues are there?")

print(len(session.messages))  # 4 (2 user + 2 assistant)
"""
TWO_SAVE = """
from pi_agent import Agent

agent = Agent(name="tutor")
agent.chat("Teach me Python decorators")

agent.session.save("decorator_session.json")
"""
TWO_LOAD = """
from pi_agent import Agent

agent = Agent(name="tutor")
agent.session.load("decorator_session.json")

agent.chat("How does it differ from class method decorators?")
"""
TWO_AUTO = """
agent = Agent(name="tutor", auto_save=True, save_dir="./sessions/")
"""
THREE = """
from pi_agent import Agent

agent = Agent(name="architect")
agent.chat("Design a user authentication system architecture")
# Agent gave JWT approach

branch1 = agent.branch(name="jwt_branch")

agent.chat("Redesign using OAuth2")
# Agent gave OAuth2 approach

branch1.chat("How to handle token refresh in JWT?")

# Two independent sessions
print(agent.session.messages)       # JWT -> OAuth2 path
print(branch1.session.messages)     # JWT -> refresh path
"""
FOUR = """
pi-agent sessions list
pi-agent sessions show decorator_session
pi-agent chat --session decorator_session
pi-agent sessions delete old_session
pi-agent sessions export decorator_session --format markdown --output chat.md
"""
FIVE_TAGS = """
agent.session.add_tag("python")
agent.session.add_tag("decorator")
agent.session.add_tag("advanced")
"""
FIVE_SEARCH = """
from pi_agent import SessionManager

manager = SessionManager()
sessions = manager.find_by_tag("python")
sessions = manager.find_by_date("2026-08-28")
sessions = manager.search("decorator closure")
"""
FIVE_SHELL = """
pi-agent sessions search "decorator"
pi-agent sessions list --tag python --date 2026-08-28
"""
SIX = """
agent.session.export("chat.md", format="markdown")
agent.session.export("chat.json", format="json")
new_agent = Agent(name="continuer")
new_agent.session.import_from(agent.session)
new_agent.chat("Continue the discussion, dive deeper into metaclasses")
"""

# Sessions from scratch, word for word; ``chat`` and ``run_tool`` are the two functions it leaves to others.
SCRATCH = """
# Sessions from scratch: a JSONL file per conversation. Standard library only.
import json
import shutil
from pathlib import Path

DIR = Path("sessions")

def path_of(session_id):
    return DIR / f"{session_id}.jsonl"

# 1. Load: one JSON message per line. No file yet means a new, empty session.
def load(session_id):
    path = path_of(session_id)
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]

# 2. Save as you go: append each message the moment it exists. A crash mid-run loses nothing.
def append(session_id, message):
    DIR.mkdir(exist_ok=True)
    with path_of(session_id).open("a", encoding="utf-8") as log:
        log.write(json.dumps(message) + "\\n")

# 3. Fork: copy the file. From here on, each session only appends to its own.
def fork(source, target):
    shutil.copyfile(path_of(source), path_of(target))

# 4. The loop from level 2, with its history loaded first and every new message written down.
def run_session(session_id, prompt, max_turns=10):
    messages = load(session_id)

    def add(message):
        messages.append(message)
        append(session_id, message)

    add({"role": "user", "content": prompt})
    for _ in range(max_turns):
        choice = chat(messages)  # one model call, as in level 2
        add(choice["message"])
        if choice["finish_reason"] != "tool_calls":
            return choice["message"].get("content") or ""
        for call in choice["message"].get("tool_calls", []):
            add({"role": "tool", "tool_call_id": call["id"], "content": run_tool(call)})

    raise RuntimeError(f"No answer after {max_turns} turns")
"""
QUEST = """
# Day 1, then day 2 on the same id, then a fork to try another way.
run_session("quest-1", "I need to get into the Cave of Echoes. Find out what it takes, and get what you can.")
run_session("quest-1", "I got the Silver Key from the mayor's daughter. What now?")
fork("quest-1", "quest-2")
run_session("quest-2", "Suppose the key doesn't fit. Is there another way in?")
"""


@pytest.fixture
def home(tmp_path: Path, address: str | None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home and working folder, and no endpoint: the offline demo answers."""
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL", "SESSIONS_DIR"):
        monkeypatch.delenv(name, raising=False)
    if address is not None:
        monkeypatch.setenv("SESSIONS_DIR", address)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*snippets: str, **known: Any) -> dict[str, Any]:
    """The names the snippets leave behind, run one after the other with only the package's name changed."""
    names: dict[str, Any] = dict(known)
    for snippet in snippets:
        exec(snippet.replace("from pi_agent import", "from sessions_lib import"), names)
    return names


def shell(home: Path, line: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    """One command line as bash runs it, with the program installed under its own name."""
    program = home / "bin" / "pi-agent"
    if not program.exists():
        program.parent.mkdir()
        program.write_text(f"#!{sys.executable}\nfrom sessions_lib.cli import main_pi_agent\nmain_pi_agent()\n")
        program.chmod(0o755)
    path = {"PATH": f"{program.parent}:{os.environ['PATH']}", "PYTHONPATH": str(Path(__file__).parent.parent)}
    return subprocess.run(
        ["bash", "-c", line], input=typed, capture_output=True, text=True, env={**os.environ, **path}, timeout=120
    )


def written(home: Path) -> SessionManager:
    return SessionManager(os.environ.get("SESSIONS_DIR") or home / ".pi-agent" / "sessions")


def test_one_a_session_in_memory_counts_four_messages(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = run(ONE)

    assert capsys.readouterr().out == "4\n"
    assert [m["role"] for m in names["session"].messages] == ["user", "assistant", "user", "assistant"]
    assert not (home / ".pi-agent").exists()


@pytest.mark.any_store
def test_two_a_saved_session_is_loaded_by_a_new_agent_and_gone_on_with(home: Path) -> None:
    saved = run(TWO_SAVE)["agent"].session.messages
    loaded = run(TWO_LOAD)["agent"].session

    assert loaded.messages[:2] == saved
    assert [m["content"] for m in loaded.messages][2] == "How does it differ from class method decorators?"
    assert len(loaded.messages) == 4
    assert loaded.title == "decorator_session"


def test_two_auto_save_writes_to_the_folder_that_was_named(home: Path) -> None:
    agent = run(TWO_AUTO, Agent=Agent)["agent"]
    agent.chat("Teach me Python decorators")

    assert [path.suffix for path in sorted((home / "sessions").glob("*.jsonl"))] == [".jsonl"]
    assert len(SessionManager(home / "sessions").list()) == 1


@database.needs_server
def test_two_auto_save_writes_to_the_database_that_was_named(home: Path) -> None:
    address = database.SERVER.new_database()
    agent = run(TWO_AUTO.replace("./sessions/", address), Agent=Agent)["agent"]
    agent.chat("Teach me Python decorators")

    assert [len(SessionManager(address).open(info.id).messages) for info in SessionManager(address).list()] == [2]
    assert list(home.iterdir()) == []


@pytest.mark.any_store
def test_three_a_branch_and_its_agent_are_independent(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = run(THREE)
    prompts = [
        [m["content"] for m in names[name].session.messages if m["role"] == "user"] for name in ("agent", "branch1")
    ]

    assert prompts == [
        ["Design a user authentication system architecture", "Redesign using OAuth2"],
        ["Design a user authentication system architecture", "How to handle token refresh in JWT?"],
    ]
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert {info.title for info in written(home).list()} >= {"jwt_branch"}


@pytest.mark.any_store
def test_four_the_commands_run_as_written(home: Path) -> None:
    manager = written(home)
    for session_id in ("decorator_session", "old_session"):
        manager.create(session_id=session_id).append({"role": "user", "content": "Teach me decorators"})
    typed = {"chat": "And closures?\n", "delete": "y\n"}

    for line in FOUR.split("\n")[1:-1]:
        done = shell(home, line, next((text for word, text in typed.items() if f" {word} " in line), ""))
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), (line, done.stderr)

    assert [info.id for info in manager.list()] == ["decorator_session"]
    assert [entry.session for entry in manager.trash()] == ["old_session"]
    assert "And closures?" in (home / "chat.md").read_text()


@pytest.mark.any_store
def test_five_tags_and_searches_find_the_session(home: Path) -> None:
    agent = Agent(name="tutor")
    agent.session.append({"role": "user", "content": "Is a decorator a closure?", "timestamp": "2026-08-28T12:00:00Z"})
    run(FIVE_TAGS, agent=agent)
    manager = SessionManager()

    names = run(FIVE_SEARCH)
    assert [hit.session for hit in names["sessions"]] == [agent.session.id]
    assert [info.id for info in manager.find_by_tag("python")] == [agent.session.id]
    assert [info.id for info in manager.find_by_date("2026-08-28")] == [agent.session.id]
    assert agent.session.tags == ["python", "decorator", "advanced"]
    for line in FIVE_SHELL.split("\n")[1:-1]:
        done = shell(home, line)
        assert (done.returncode, agent.session.id in done.stdout) == (0, True), (line, done.stdout, done.stderr)


@pytest.mark.any_store
def test_six_a_session_is_exported_and_shared_with_another_agent(home: Path) -> None:
    agent = run(TWO_SAVE)["agent"]
    new_agent = run(SIX, agent=agent, Agent=Agent)["new_agent"]

    assert "Teach me Python decorators" in (home / "chat.md").read_text()
    assert json.loads((home / "chat.json").read_text())["messages"][0]["content"] == "Teach me Python decorators"
    assert new_agent.session.messages[:2] == agent.session.messages
    assert len(new_agent.session.messages) == 4
    assert len(agent.session.messages) == 2


# ------------------------------------------------------------------ the from-scratch sessions


def stubs() -> dict[str, Any]:
    """The two functions the seed leaves to others: one model call, one tool call; the village gives both."""
    from sessions_lib.agent import tools
    from sessions_lib.messages.tool_calls import Call

    def chat(messages: list[dict[str, Any]]) -> dict[str, Any]:
        said = demo_model.reply(messages, ["talk_to", "buy"])
        if not said.tool:
            return {"finish_reason": "stop", "message": {"role": "assistant", "content": said.text}}
        function = {"name": said.tool, "arguments": json.dumps(said.arguments)}
        call = {"id": f"call_{len(messages)}", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        return {"finish_reason": "tool_calls", "message": message}

    def run_tool(call: dict[str, Any]) -> str:
        function = call["function"]
        found = tools.call(demo_world.TOOLS, Call(0, 0, call["id"], function["name"], function["arguments"]))
        return str(found["content"])

    return {"chat": chat, "run_tool": run_tool}


def test_the_scratch_quest_runs_and_its_files_are_sessions_of_ours(home: Path) -> None:
    run(SCRATCH, QUEST, **stubs())
    manager = SessionManager(home / "sessions")

    assert {info.id: info.messages for info in manager.list()} == {"quest-1": 10, "quest-2": 14}
    assert manager.open("quest-1").report.damaged == []
    assert [m["role"] for m in manager.open("quest-1").messages[:6]] == [
        *("user", "assistant", "tool", "assistant", "tool", "assistant"),
    ]


def test_our_agent_goes_on_in_a_scratch_session_and_the_scratch_loop_in_ours(home: Path) -> None:
    names = run(SCRATCH, QUEST, **stubs())
    before = (home / "sessions" / "quest-1.jsonl").read_bytes()

    ours = Agent(session_id="quest-1", save_dir="sessions")
    assert "12 of 20 gold are left" in ours.chat("How much gold is left?")
    fork = ours.fork("quest-3")
    fork.chat("Buy the rope — “quickly”, \u2028 please \u0085 🙂")

    assert (home / "sessions" / "quest-1.jsonl").read_bytes().startswith(before)
    for session_id in ("quest-1", "quest-3"):
        assert names["load"](session_id) == Session.open(home / "sessions", session_id).messages
    names["run_session"]("quest-3", "How much gold is left?")
    answer = Session.open(home / "sessions", "quest-3").messages[-1]["content"]
    assert "6 of 20 gold are left" in answer


def test_a_fork_the_scratch_way_and_ours_share_their_start(home: Path) -> None:
    names = run(SCRATCH, QUEST, **stubs())
    Agent(session_id="quest-1", save_dir="sessions").fork("ours")
    names["fork"]("quest-1", "theirs")

    ours, theirs = (Session.open(home / "sessions", session_id) for session_id in ("ours", "theirs"))
    assert ours.messages == theirs.messages
    assert ours.path is not None
    assert theirs.path is not None
    assert ours.path.read_bytes() == theirs.path.read_bytes()


# ------------------------------------------------------------------ what they warn of


def test_a_process_killed_in_a_tool_call_loses_nothing_and_resumes_on_day_two(home: Path) -> None:
    program = textwrap.dedent("""
        import os, signal
        from sessions_lib import Agent, tool

        @tool(effect=False)
        def talk_to(npc: str) -> str:
            "Talk to someone."
            os.kill(os.getpid(), signal.SIGKILL)
            return ""

        Agent(session_id="quest-1", model="demo", tools=[talk_to], save_dir="sessions").chat(
            "I need to get into the Cave of Echoes."
        )
    """)
    path = {"PYTHONPATH": str(Path(__file__).parent.parent)}
    killed = subprocess.run([sys.executable, "-c", program], env={**os.environ, **path}, check=False, timeout=120)
    assert killed.returncode == -9
    assert [m["role"] for m in Session.open(home / "sessions", "quest-1").messages] == ["user", "assistant"]
    assert [call.name for call in Session.open(home / "sessions", "quest-1").report.unanswered] == ["talk_to"]

    day_2 = Agent(session_id="quest-1", save_dir="sessions")
    answer = day_2.chat("I got the Silver Key from the mayor's daughter. What now?")

    assert "Turn the key **to the left**" in answer
    assert day_2.session.report.unanswered == []
    assert [m["role"] for m in day_2.session.messages][:4] == ["user", "assistant", "tool", "user"]
