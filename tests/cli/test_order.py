"""Options may stand before their command, as with git."""

from __future__ import annotations

import pytest

from sessions_lib.cli import commands
from sessions_lib.cli.order import in_order
from tests.cli.terminal import Terminal


@pytest.mark.parametrize("name", commands.COMMANDS)
def test_every_command_takes_its_options_before_and_behind_its_name(name: str) -> None:
    for options in (["--dir", "x"], ["--dir=x"]):
        assert in_order([*options, name, "a"]) == [name, *options, "a"]
        assert in_order([name, *options, "a"]) == [name, *options, "a"]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["--json", "--dir", "x", "list"], ["list", "--json", "--dir", "x"]),
        (["-n", "1", "list", "--dir", "x"], ["list", "-n", "1", "--dir", "x"]),
        (["-n1", "list"], ["list", "-n1"]),
        (["--dir", "import", "list"], ["list", "--dir", "import"]),
        (["--dir", "list", "import", "list"], ["import", "--dir", "list", "list"]),
        (["--from", "codex", "--dir", "x", "import", "a"], ["import", "--from", "codex", "--dir", "x", "a"]),
        (["-y", "--dir", "x", "delete", "a"], ["delete", "-y", "--dir", "x", "a"]),
        (["--no-redact", "export", "a"], ["export", "--no-redact", "a"]),
        (["--dir", "x", "sessions", "list"], ["sessions", "list", "--dir", "x"]),
        (["sessions", "--dir", "x", "list"], ["sessions", "list", "--dir", "x"]),
        (["--json", "sessions", "--dir", "x", "show", "a"], ["sessions", "show", "--json", "--dir", "x", "a"]),
        (["--dir", "x", "lst"], ["lst", "--dir", "x"]),
        (["--dir", "x", "--help"], ["--help"]),
        (["--version"], ["--version"]),
        (["--help", "list"], ["--help", "list"]),
        (["--dir", "x"], []),
        (["--dir"], []),
        (["--bogus", "list"], ["--bogus", "list"]),
        (["show", "--dir", "x"], ["show", "--dir", "x"]),
        (["sessions"], ["sessions"]),
        ([], []),
    ],
)
def test_options_come_behind_the_command_they_are_of(typed: list[str], expected: list[str]) -> None:
    assert in_order(typed) == expected


def test_a_folder_named_first_is_the_folder_of_the_command(terminal: Terminal) -> None:
    (terminal.work / "chat.jsonl").write_text('{"role":"user","content":"Is the ferry running?"}\n', encoding="utf-8")

    done = terminal.run("--dir", "other", "import", "chat.jsonl")

    assert done.returncode == 0, done.stderr
    assert (
        terminal.run("--dir", "other", "--json", "list").stdout == terminal.run("list", "--json", "--dir=other").stdout
    )
    assert "Is the ferry running?" in terminal.run("--dir", "other", "sessions", "list", program="pi-agent").stdout
    assert terminal.run("list").stdout == ""


def test_the_home_of_nobody_is_no_folder(terminal: Terminal) -> None:
    (terminal.work / "chat.jsonl").write_text('{"role":"user","content":"q"}\n', encoding="utf-8")
    told = "~nosuchuser/x: there is no user of that name here; nothing was changed. Name another folder.\n"

    for command in (["list"], ["new", "a"], ["import", "chat.jsonl"], ["show", "a"], ["stats"], ["purge", "--yes"]):
        assert terminal.told(*command, "--dir", "~nosuchuser/x") == told

    assert terminal.run("list", SESSIONS_DIR="~nosuchuser/x").stderr == told
    assert terminal.run("chat", "--tools", "~nosuchuser/x.py").returncode == 1
    assert not list(terminal.work.glob("~*"))
