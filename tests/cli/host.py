"""A process that has the command line imported and runs each command in a child of its own.

A command line of a hundred tests is a hundred starts of Python; a fork of a process that is warm costs a twentieth. The
child has its own standard streams, environment, working folder and exit code, like any process.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import sys
import time
import traceback
from typing import Any

WARM = (
    "click",
    "pydantic",
    "openai",
    "httpx2",
    "sessions_lib.cli.commands",
    "sessions_lib.agent.agent",
)


def main() -> None:
    """Answer one JSON line with one JSON line: ``{"argv", "env", "cwd", "out"}`` → the exit code."""
    for name in WARM:
        importlib.import_module(name)
    from sessions_lib.cli import commands

    for name in commands.COMMANDS:
        commands.command(name)
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _run(json.loads(line))
        answers.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        answers.flush()


def _run(asked: dict[str, Any]) -> None:
    """Be the command: never returns."""
    code = 70
    try:
        os.environ.clear()
        os.environ.update(asked["env"])
        time.tzset()
        os.chdir(asked["cwd"])
        for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
            opened = os.open(f"{asked['out']}/{name}", os.O_WRONLY | os.O_TRUNC if descriptor else os.O_RDONLY)
            os.dup2(opened, descriptor)
            raw = os.fdopen(descriptor, "wb" if descriptor else "rb", closefd=False)
            setattr(sys, name, io.TextIOWrapper(raw, "utf-8"))
        sys.argv = asked["argv"]
        from sessions_lib import cli

        (cli.main_pi_agent if asked["argv"][0] == "pi-agent" else cli.main)()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:  # noqa: BLE001 - what Python does at the top of a program
        traceback.print_exc()
        code = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
