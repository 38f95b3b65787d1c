"""The folder may stand before its command, as with git."""

from __future__ import annotations

import click
import pytest

from sessions_lib.cli import commands
from tests.cli.terminal import Terminal


def parts(name: str) -> list[str]:
    """The commands of a group; nothing for a command itself."""
    command = commands.command(name)
    return list(command.commands) if isinstance(command, click.Group) else [""]


LEAVES = [(name, part) for name in commands.COMMANDS for part in parts(name)]


@pytest.mark.parametrize(("name", "part"), LEAVES)
def test_every_command_takes_its_folder_before_and_behind_its_name(
    name: str, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, folders = commands.command(name), []
    command = command.commands[part] if isinstance(command, click.Group) else command
    monkeypatch.setattr(command, "callback", lambda **given: folders.append(given["folder"]))
    needed = ["a" for param in command.params if isinstance(param, click.Argument) and param.required]

    for before, behind in (
        (["--dir", "x"], []),
        (["--dir=x"], []),
        ([], ["--dir", "x"]),
        (["--dir", "y"], ["--dir", "x"]),
        ([], []),
    ):
        commands.program.main([*before, name, *filter(None, [part]), *behind, *needed], standalone_mode=False)

    assert folders == ["x", "x", "x", "x", None]


def test_a_folder_named_first_is_the_folder_of_the_command(terminal: Terminal) -> None:
    (terminal.work / "chat.jsonl").write_text('{"role":"user","content":"Is the ferry running?"}\n', encoding="utf-8")

    done = terminal.run("--dir", "other", "import", "chat.jsonl")

    assert done.returncode == 0, done.stderr
    listed = terminal.run("list", "--json", "--dir=other").stdout
    assert listed.count("Is the ferry running?") == 1
    assert terminal.run("--dir", "other", "list", "--json").stdout == listed
    assert terminal.run("--dir", "none", "list", "--json", "--dir", "other").stdout == listed
    for arguments in (["--dir", "other", "sessions", "list"], ["sessions", "--dir", "other", "list"]):
        assert "Is the ferry running?" in terminal.run(*arguments, program="pi-agent").stdout
    assert terminal.run("list").stdout == ""


def test_an_option_of_a_command_alone_stands_behind_it(terminal: Terminal) -> None:
    done = terminal.run("--tag", "x", "list")

    assert done.returncode == 2
    assert "No such option '--tag'" in done.stderr


def test_the_home_of_nobody_is_no_folder(terminal: Terminal) -> None:
    (terminal.work / "chat.jsonl").write_text('{"role":"user","content":"q"}\n', encoding="utf-8")
    told = "~nosuchuser/x: there is no user of that name here; nothing was changed. Name another folder.\n"

    for command in (["list"], ["new", "a"], ["import", "chat.jsonl"], ["show", "a"], ["stats"], ["purge", "--yes"]):
        assert terminal.told(*command, "--dir", "~nosuchuser/x") == told

    assert terminal.run("list", SESSIONS_DIR="~nosuchuser/x").stderr == told
    assert terminal.run("chat", "--tools", "~nosuchuser/x.py").returncode == 1
    assert not list(terminal.work.glob("~*"))
