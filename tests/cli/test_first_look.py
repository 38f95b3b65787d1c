"""A folder that nobody has read yet: what a person in a terminal sees at once, and what a script waits for."""

from __future__ import annotations

import os
import re

from tests.cli.terminal import Terminal
from tests.record import GULL, LIGHTHOUSES, write

STILL = "600 sessions are still being read"


def fill(terminal: Terminal) -> None:
    terminal.folder.mkdir()
    for number in range(600):
        path = write(terminal.folder / f"s{number:03}.jsonl", LIGHTHOUSES, GULL)
        os.utime(path, (number + 1, number + 1))


def test_a_person_sees_the_newest_files_before_all_are_read_and_then_the_right_list(terminal: Terminal) -> None:
    fill(terminal)

    shown = terminal.watched("list", "-n", "5")

    first, then = shown.split(STILL)[1].split("Reading", 1)
    assert re.findall(r"s\d{3}", first) == ["s599", "s598", "s597", "s596", "s595"]
    assert len(re.findall(r"s\d{3}", then)) == 5
    assert "5 sessions in" in then
    assert STILL not in terminal.watched("list", "-n", "5")


def test_a_search_says_what_it_found_so_far_and_then_everything(terminal: Terminal) -> None:
    fill(terminal)

    shown = terminal.watched("search", "lighthouses")

    assert STILL in shown
    assert "s599 turn 1" in shown.split(STILL)[1].split("Reading")[0]
    assert "600 hits in 600 sessions" in shown


def test_a_script_gets_only_the_whole_answer(terminal: Terminal) -> None:
    fill(terminal)

    done = terminal.run("list")
    assert len(re.findall(r"^s\d{3} ", done.stdout, re.M)) == 600
    assert STILL not in done.stdout + done.stderr
