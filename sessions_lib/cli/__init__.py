"""The command line: ``forkbook``, and the same program as ``pi-agent`` with the seeds' ``sessions`` commands.

Each command parses, makes one library call and prints. Data goes to standard output, talk to standard error. Exit 0:
fine; 1: told why in one sentence; 2: called wrongly. Nothing stored reaches a terminal unescaped (``printing``).

Does not compute: what two commands share beyond printing belongs in the library. Imports of the library are inside the
commands, so that ``forkbook list`` never waits for what only ``forkbook chat`` needs.
"""

from __future__ import annotations

from sessions_lib.cli.edge import run

__all__ = ["main", "main_pi_agent"]


def main() -> None:
    """Run ``forkbook`` with the arguments of this process, and exit."""
    run("forkbook")


def main_pi_agent() -> None:
    """Run ``pi-agent`` with the arguments of this process, and exit."""
    run("pi-agent")
