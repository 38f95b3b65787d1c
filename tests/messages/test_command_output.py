"""A command's output is told from the head that its tool put before it."""

from __future__ import annotations

import pytest

from sessions_lib.messages import command_output
from sessions_lib.messages.command_output import CommandOutput

RUNNING = (
    "Chunk ID: a2\nWall time: 1.0 seconds\nProcess running with session ID 7\nOriginal token count: 0\nOutput:\n{}"
)
EXITED = "Chunk ID: a2\nWall time: 1.0 seconds\nProcess exited with code 1\nOriginal token count: 9\nOutput:\n{}"


def test_a_head_is_split_from_what_was_printed() -> None:
    assert command_output.split(EXITED.format("a\nOutput:\nb")) == CommandOutput(1, "a\nOutput:\nb")
    assert command_output.split(RUNNING.format("")) == CommandOutput(None, "", is_running=True)
    assert command_output.split("Exit code: 0\nWall time: 0.1 seconds\nOutput:\n2\n") == CommandOutput(0, "2\n")
    assert command_output.split("Wall time: 0.1 seconds\nOutput: 2") == CommandOutput(None, "2")
    assert command_output.split("Exit code: 3") == CommandOutput(3, "")


@pytest.mark.parametrize(
    "text", ["", "Output:\na", "a\nExit code: 1\nOutput:\nb", "Chunk ID: a2\nhello\nOutput:\nx", "Chunk ID: a2"]
)
def test_a_text_without_a_whole_head_has_none(text: str) -> None:
    assert command_output.split(text) is None
    assert command_output.gist(text) == text


def test_the_gist_is_what_was_printed_or_how_it_ended() -> None:
    assert command_output.gist(EXITED.format("no such file")) == "no such file"
    assert command_output.gist(EXITED.format("\n")) == "exit code 1"
    assert command_output.gist(RUNNING.format("")) == "still running"
    assert command_output.gist("Wall time: 0.1 seconds\nOutput:\n") == "no output"
    assert command_output.gist('{"output":"a\\nb","metadata":{"exit_code":0}}') == "a\nb"
    assert command_output.gist('{"output":"","metadata":{"exit_code":2}}') == "exit code 2"
    assert command_output.gist('{"output":7}') == '{"output":7}'
