"""``forkbook chat`` and ``pi-agent chat``: prompts in, answers out, against a real server on loopback and in a real terminal."""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import pty
import select
import signal
import subprocess
import termios
import time
from collections.abc import Iterator
from typing import Any

import pytest
from PIL import Image

from sessions_lib.store.manager import SessionManager
from tests import model_server
from tests.cli.terminal import Terminal
from tests.model_server import SILENCE, ModelServer, ask, chunk, say, status
from tests.record import GULL, LIGHTHOUSES, call

QUEST = "I need to get into the Cave of Echoes. Find out what it takes, and get what you can."
TOOLS = '''
from sessions_lib import tool

@tool
def tide(port: str) -> str:
    """How high the water stands."""
    return f"2.1 m at {port}"
'''


def stored(terminal: Terminal, name: str = "a") -> list[tuple[str, Any]]:
    return [(m["role"], m.get("content")) for m in SessionManager(terminal.folder).open(name).messages]


def test_the_answer_is_data_and_everything_else_is_talk(terminal: Terminal) -> None:
    done = terminal.run("chat", "--once", QUEST)

    assert done.returncode == 0
    assert done.stdout.startswith("The Cave of Echoes takes two things")
    assert "offline demo model answers" in done.stderr
    steps = [line for line in done.stderr.splitlines() if " -> " in line]
    assert [step.split(" -> ")[0].strip() for step in steps] == ['talk_to(npc="elder")', 'buy(item="torch")']
    (info,) = SessionManager(terminal.folder).list()
    assert info.messages == 6


@pytest.mark.any_store
def test_a_session_goes_on_where_it_was(terminal: Terminal) -> None:
    terminal.session("a", LIGHTHOUSES, GULL)
    with ModelServer(say("Cape Ember.")) as server:
        env = {"OPENAI_BASE_URL": server.url, "OPENAI_MODEL": "tiny"}

        assert (
            terminal.ok("chat", "--session", "a", program="pi-agent", stdin="Which is taller?\n", **env)
            == "Cape Ember.\n"
        )
        assert [m["content"] for m in server.sent[0]] == [LIGHTHOUSES["content"], GULL["content"], "Which is taller?"]
        assert "tools" not in server.requests[0]


def test_each_line_of_a_pipe_is_a_prompt_and_blank_ones_are_not(terminal: Terminal) -> None:
    terminal.ok("new", "--id", "a")
    with ModelServer(say("one"), say("two")) as server:
        printed = terminal.ok("chat", "a", "--base-url", server.url, stdin="first\n\n  \nsecond\n")

    assert printed == "one\ntwo\n"
    assert stored(terminal) == [("user", "first"), ("assistant", "one"), ("user", "second"), ("assistant", "two")]


def test_tools_of_a_file_are_offered_run_and_shown(terminal: Terminal) -> None:
    (terminal.work / "tools.py").write_text(TOOLS)
    with ModelServer(ask(("c1", "tide", {"port": "Ember"})), say("Low.")) as server:
        done = terminal.run("chat", "--tools", "tools.py", "--base-url", server.url, "--model", "m", "--once", "Tide?")

    assert (done.returncode, done.stdout) == (0, "Low.\n")
    assert '  tide(port="Ember") -> 2.1 m at Ember\n' in done.stderr
    assert [tool["function"]["name"] for tool in server.requests[0]["tools"]] == ["tide"]
    assert "no-such.py" in terminal.told("chat", "--tools", "no-such.py", "--once", "hi")


NOISY = '''
import os, subprocess, sys, threading
from sessions_lib import tool

print("loading")

@tool
def noisy() -> str:
    """Prints in every way there is."""
    print("printed")
    sys.stdout.write("written\\n")
    os.write(1, b"raw\\n")
    subprocess.run([sys.executable, "-c", "print('a program')"], check=True)
    thread = threading.Thread(target=os.system, args=("echo a shell",))
    thread.start()
    thread.join()
    return "ok"
'''


def test_standard_output_is_the_answers_alone_whatever_a_tool_prints(terminal: Terminal) -> None:
    (terminal.work / "tools.py").write_text(NOISY)
    with ModelServer(ask(("c1", "noisy", {})), say("Low."), say("High.")) as server:
        done = terminal.run(
            "chat", "--tools", "tools.py", "--base-url", server.url, "-m", "m", stdin="Tide?\nAnd now?\n"
        )

    assert (done.returncode, done.stdout) == (0, "Low.\nHigh.\n")
    for printed in ("loading", "printed", "written", "raw", "a program", "a shell"):
        assert printed in done.stderr.splitlines() or f"  noisy(){printed}" in done.stderr


def test_a_new_session_remembers_what_answered_it_and_goes_on_there(terminal: Terminal) -> None:
    with ModelServer(say("1"), say("2"), models=["small"]) as server, ModelServer() as other:
        env = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-secret-key"}
        terminal.ok("chat", "--system", "Be brief.", "--temperature", "0.5", "--once", "Hi", **env)
        (info,) = SessionManager(terminal.folder).list()
        terminal.ok("chat", info.id, "--once", "Again", OPENAI_BASE_URL=other.url, OPENAI_API_KEY="sk-other-key")

    meta = SessionManager(terminal.folder).open(info.id).meta
    wanted = {"base_url": server.url, "model": "small", "system": "Be brief.", "temperature": 0.5}
    assert {key: meta[key] for key in wanted} == wanted
    assert other.requests == []
    assert [(r["model"], r["temperature"], r["messages"][0]["content"]) for r in server.requests] == [
        ("small", 0.5, "Be brief.")
    ] * 2
    assert server.keys == ["Bearer sk-secret-key", "Bearer none"]
    assert not [name for name, data in terminal.files().items() if b"sk-secret" in data]


def test_a_session_of_the_demo_goes_on_with_the_demo(terminal: Terminal) -> None:
    terminal.ok("chat", "--once", QUEST)
    (info,) = SessionManager(terminal.folder).list()
    with ModelServer() as server:
        done = terminal.run("chat", info.id, "--once", "Buy the rope", OPENAI_BASE_URL=server.url, OPENAI_API_KEY="k")

    assert done.returncode == 0
    assert "offline demo model answers" in done.stderr
    assert server.requests == []


def test_a_session_whose_key_or_server_is_missing_says_so_and_stops(terminal: Terminal) -> None:
    manager = SessionManager(terminal.folder)
    manager.create(session_id="a", base_url="https://api.openai.com/v1", model="gpt-5")
    manager.create(session_id="b", base_url="http://127.0.0.1:9/v1", model="m")
    with ModelServer() as other:
        env = {"OPENAI_BASE_URL": other.url, "OPENAI_API_KEY": "sk-other"}
        assert "wants an API key; nothing was sent" in terminal.told("chat", "a", "--once", "Hi", **env)
        assert "wants an API key; nothing was sent" in terminal.told("chat", "a", "--once", "Hi")
        assert "127.0.0.1:9/v1 cannot be reached" in terminal.told("chat", "b", "--once", "Hi", **env)

    assert other.requests == []
    assert (stored(terminal, "a"), stored(terminal, "b")) == ([], [("user", "Hi")])
    assert "wants an API key" in terminal.told("chat", "--once", "Hi", OPENAI_MODEL="gpt-5")
    assert len(SessionManager(terminal.folder).list()) == 2, "no session was made for it"


def test_a_wait_the_server_asks_for_is_told(terminal: Terminal) -> None:
    busy = model_server.Reply(status=429, kind="application/json", body=b"{}", headers={"retry-after": "2"})
    long = model_server.Reply(status=429, kind="application/json", body=b"{}", headers={"retry-after": "120"})
    with ModelServer(busy, say("2.1 m"), long) as server:
        done = terminal.run("chat", "--once", "Tide?", "--base-url", server.url, "--model", "m")
        told = terminal.told("chat", "--once", "Tide?", "--base-url", server.url, "--model", "m")

    assert (done.returncode, done.stdout) == (0, "2.1 m\n")
    assert f"{server.url} asks to wait 2 s (429); Ctrl-C stops.\n" in done.stderr
    assert f"{server.url} asks to wait 2 min 0 s (429). Ask again then." in told


@pytest.mark.parametrize(
    ("reply", "said"),
    [(status(401, "bad key"), "API key"), (status(404, "no such model"), "no model"), (status(500, "oops"), "500")],
)
def test_a_refusal_is_one_sentence_and_the_prompt_can_be_asked_again(
    terminal: Terminal, reply: model_server.Reply, said: str
) -> None:
    terminal.ok("new", "--id", "a")
    with ModelServer(*[reply] * 3, say("2.1 m")) as server:
        server.queue[1:3] = [reply, reply] if said == "500" else []

        told = terminal.told("chat", "a", "--base-url", server.url, "--model", "m", "--once", "Tide?")
        assert said in told.splitlines()[-1]
        assert stored(terminal) == [("user", "Tide?")]

        assert terminal.ok("chat", "a", "--base-url", server.url, "--model", "m", stdin="\n") == "2.1 m\n"
    assert stored(terminal) == [("user", "Tide?"), ("assistant", "2.1 m")]


def test_a_server_that_is_not_there_and_a_wrong_address_are_named(terminal: Terminal) -> None:
    assert "127.0.0.1:9" in terminal.told("chat", "--once", "hi", "--base-url", "http://127.0.0.1:9/v1", "--model", "m")
    terminal.ok("delete", SessionManager(terminal.folder).list()[0].id, "--yes")
    assert "not the address" in terminal.told("chat", "--once", "hi", "--base-url", "nope")
    assert "empty" in terminal.told("chat", "--once", "")
    assert "no session 'b'" in terminal.told("chat", "b", "--once", "hi")
    assert terminal.ok("chat", stdin="") == ""
    assert terminal.ok("list") == "", "none of these makes a session"


def test_what_was_recovered_is_told_and_the_request_is_valid(terminal: Terminal) -> None:
    terminal.session("a", LIGHTHOUSES, call("c1"), '{"role":"tool","tool_ca')
    with ModelServer(say("Once more.")) as server:
        done = terminal.run("chat", "a", "--base-url", server.url, "--model", "m", "--once", "Well?")

    assert (done.returncode, done.stdout) == (0, "Once more.\n")
    assert "a.jsonl:3" in done.stderr
    assert "Unanswered: tide" in done.stderr
    assert model_server.problems(server.sent[0]) == []


def test_a_cut_answer_says_so(terminal: Terminal) -> None:
    with ModelServer(say("The tide", finish="length")) as server:
        done = terminal.run("chat", "--base-url", server.url, "--model", "m", "--once", "Tide?")

    assert (done.returncode, done.stdout) == (0, "The tide\n")
    assert "not whole" in done.stderr


def test_a_session_that_is_being_written_is_refused_and_a_fork_named(terminal: Terminal) -> None:
    terminal.session("a", LIGHTHOUSES, GULL)
    with SessionManager(terminal.folder).open("a").hold():
        told = terminal.told("chat", "a", "--once", "hi")

    assert f"process {os.getpid()}" in told
    assert "forkbook fork a" in told
    assert len(stored(terminal)) == 2


# --- a terminal, and signals ------------------------------------------------------------------------------------


def _as_at_a_terminal() -> None:
    """Its own terminal, and Ctrl-C heard, which a shell lets its background jobs ignore."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Screen:
    """A command in a pseudo-terminal: what it shows, and keys to press."""

    def __init__(self, terminal: Terminal, *arguments: str, **env: str) -> None:
        self._controller, side = pty.openpty()
        self.process = subprocess.Popen(
            terminal.command("forkbook", *arguments),
            stdin=side, stdout=side, stderr=side, env=terminal.env(TERM="dumb", **env), cwd=terminal.work, start_new_session=True,
            preexec_fn=_as_at_a_terminal,
        )  # fmt: skip
        os.close(side)
        self.shown = ""

    def wait_for(self, text: str, times: int = 1) -> None:
        """Read until ``text`` was shown so many times."""
        deadline = time.monotonic() + 60
        while self.shown.count(text) < times:
            assert time.monotonic() < deadline, self.shown
            try:
                piece = os.read(self._controller, 65536)
            except OSError:
                piece = b""  # the other side has been closed
            assert piece, self.shown
            self.shown += piece.decode("utf-8", "replace")

    def press(self, keys: str) -> None:
        """Type ``keys``."""
        os.write(self._controller, keys.encode())

    def end(self, key: str) -> int:
        """Press ``key`` until the command ends, and return its exit code.

        Once is enough for a person. A test may press it in the instant between the prompt and the reading of keys,
        where Python's own ``input`` can miss it.
        """
        self.press(key)
        with contextlib.suppress(OSError):  # how Linux says that the other side has been closed
            while True:
                if not select.select([self._controller], [], [], 3)[0]:
                    self.press(key)
                elif piece := os.read(self._controller, 65536):
                    self.shown += piece.decode("utf-8", "replace")
                else:
                    break
        os.close(self._controller)
        assert "Traceback" not in self.shown
        return self.process.wait(60)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


def test_ctrl_c_in_an_answer_ends_the_chat_and_keeps_what_was_said(terminal: Terminal, server: ModelServer) -> None:
    terminal.ok("new", "--id", "a")
    server.queue.append(model_server.Reply([chunk({"content": "The tide is "}), SILENCE]))
    screen = Screen(terminal, "chat", "a", "--base-url", server.url, "--model", "m")

    screen.wait_for("> ")
    screen.press("Tide?\n")
    screen.wait_for("The tide is")

    assert screen.end("\x03") == 0
    assert "what was said is saved in a" in screen.shown
    messages = SessionManager(terminal.folder).open("a").messages
    assert [(m["role"], m["content"]) for m in messages] == [("user", "Tide?"), ("assistant", "The tide is ")]
    assert messages[1]["interrupted"] is True


@pytest.mark.parametrize("key", ["\x04", "\x03"])
def test_ctrl_d_and_ctrl_c_at_the_prompt_end_it_cleanly(terminal: Terminal, server: ModelServer, key: str) -> None:
    server.queue.append(say("Low."))
    screen = Screen(terminal, "chat", "--base-url", server.url, "--model", "m")

    screen.wait_for("> ")
    screen.press("Tide?\n")
    screen.wait_for("> ", times=2)

    assert screen.end(key) == 0
    (info,) = SessionManager(terminal.folder).list()
    assert stored(terminal, info.id) == [("user", "Tide?"), ("assistant", "Low.")]
    assert f"forkbook chat {info.id}" in screen.shown


def test_in_a_terminal_an_error_is_said_and_an_empty_line_asks_again(terminal: Terminal, server: ModelServer) -> None:
    terminal.ok("new", "--id", "a")
    server.queue += [status(401, "bad key"), say("2.1 m")]
    screen = Screen(terminal, "chat", "a", "--base-url", server.url, "--model", "m")

    screen.wait_for("> ")
    screen.press("Tide?\n")
    screen.wait_for("An empty line asks again")
    screen.wait_for("> ", times=2)
    screen.press("\n")
    screen.wait_for("> ", times=3)

    assert screen.end("\x04") == 0
    assert stored(terminal) == [("user", "Tide?"), ("assistant", "2.1 m")]


def test_in_a_terminal_a_session_that_is_taken_can_be_forked_instead(terminal: Terminal, server: ModelServer) -> None:
    terminal.session("a", LIGHTHOUSES, GULL)
    with SessionManager(terminal.folder).open("a").hold():
        screen = Screen(terminal, "chat", "a", "--base-url", server.url, "--model", "m")
        screen.wait_for("> ")
        screen.press("Which is taller?\n")
        screen.wait_for("[y/N]")
        screen.press("y\n")
        screen.wait_for("> ", times=2)

        assert screen.end("\x04") == 0

    assert len(stored(terminal)) == 2
    assert stored(terminal, "a-fork")[2:] == [("user", "Which is taller?"), ("assistant", "Yes.")]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_script_that_is_stopped_keeps_what_was_said_and_ends_with_one(
    terminal: Terminal, server: ModelServer, number: signal.Signals
) -> None:
    terminal.ok("new", "--id", "a")
    server.queue.append(model_server.Reply([chunk({"content": "The tide is "}), SILENCE]))
    process = subprocess.Popen(
        terminal.command("forkbook", "chat", "a", "--base-url", server.url, "--model", "m", "--once", "Tide?"),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=terminal.env(), text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.read(12) == "The tide is "

    process.send_signal(number)
    _, told = process.communicate(timeout=60)

    assert process.returncode == 1
    assert told.strip().splitlines()[-1] == "Stopped; what was said is saved in a."
    assert "Traceback" not in told
    assert stored(terminal) == [("user", "Tide?"), ("assistant", "The tide is ")]


def test_in_a_terminal_a_spent_budget_is_asked_about_before_the_next_request(
    terminal: Terminal, server: ModelServer
) -> None:
    (terminal.work / "own.toml").write_text("[model.served]\ninput = 100_000\noutput = 100_000\n")
    env = {"FORKBOOK_PRICES": str(terminal.work / "own.toml")}
    address = ["--base-url", server.url, "--model", "served"]
    terminal.ok("new", "--id", "a")

    warned = terminal.run("chat", "a", *address, "--budget", "1.5", "--once", "one", **env)
    refused = terminal.told("chat", "a", *address, "--once", "two", **env)
    screen = Screen(terminal, "chat", "a", *address, **env)
    screen.wait_for("> ")
    screen.press("three\n")
    screen.wait_for("Go on all the same?")
    screen.press("y\n")
    screen.wait_for("> ", times=2)

    assert screen.end("\x04") == 0
    assert "(15 tokens, $1.50)" in warned.stderr
    assert "This session spent $1.50 of a budget of $1.50; nothing was sent" in refused
    assert stored(terminal) == [("user", "one"), ("assistant", "Yes."), ("user", "three"), ("assistant", "Yes.")]


def test_a_fork_says_what_sending_its_history_once_more_costs(terminal: Terminal, server: ModelServer) -> None:
    (terminal.work / "own.toml").write_text("[model.served]\ninput = 100_000\noutput = 100_000\ncached = 10_000\n")
    env = {"FORKBOOK_PRICES": str(terminal.work / "own.toml")}
    address = ["--base-url", server.url, "--model", "served"]
    terminal.ok("new", "--id", "a")
    terminal.ok("chat", "a", *address, "--once", "one", **env)
    terminal.ok("fork", "a", "--id", "b")

    told = terminal.run("chat", "b", *address, stdin="", **env).stderr

    again = "The history is about 15 tokens: $1.50 to send it once more, $0.15 where the provider still has it cached."
    assert again in told
    assert again not in terminal.run("chat", "a", *address, stdin="", **env).stderr


def test_a_picture_and_a_text_go_with_the_first_prompt(terminal: Terminal) -> None:
    picture = io.BytesIO()
    Image.new("RGB", (2, 2)).save(picture, "PNG")
    (terminal.work / "a.png").write_bytes(picture.getvalue())
    (terminal.work / "notes.txt").write_text("Tide at nine.")
    (terminal.work / "a.pdf").write_bytes(b"%PDF-1.7")
    with ModelServer() as server:
        where = ("--base-url", server.url, "--model", "m")
        refused = terminal.run("chat", "--once", "Look.", "--attach", "a.pdf", *where)
        terminal.ok("chat", "--once", "Look.", "--attach", "a.png", "--attach", "notes.txt", *where)

    assert refused.returncode == 1
    assert "a.pdf is neither a picture" in refused.stderr
    assert len(server.requests) == 1
    words, shown, text = server.requests[0]["messages"][0]["content"]
    assert (words["text"], text["text"]) == ("Look.", "notes.txt:\n\nTide at nine.")
    assert shown["image_url"]["url"].startswith("data:image/png;base64,")
    (listed,) = [json.loads(line) for line in terminal.ok("list", "--json").splitlines()]
    assert listed["title"].startswith("Look.")
    assert terminal.ok("search", "iVBOR") == ""


def test_a_file_that_is_not_there_is_no_question_of_space(terminal: Terminal) -> None:
    refused = terminal.run("chat", "--once", "Look.", "--attach", "gone.png")

    assert refused.returncode == 1
    assert refused.stderr == "gone.png: No such file or directory. Check the name.\n"
