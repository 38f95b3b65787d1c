"""Where the command line meets the system: its texts, its errors, its signals, its exit codes.

Does not know any command.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn, TextIO

from sessions_lib.errors import SessionError
from sessions_lib.text import visible

if TYPE_CHECKING:
    from sessions_lib.agent.cancellation import Stop


def run(program: str) -> NoReturn:
    """Run ``program`` with the arguments of this process and exit: 0 fine, 1 told why, 2 called wrongly."""
    _open_texts()
    try:
        _call(program, _texts(sys.argv[1:]))
        sys.stdout.flush()
        sys.exit(0)
    except SessionError as error:
        _tell(str(error))
    except BrokenPipeError:
        _quiet_pipe()
    except OSError as error:
        _tell(f"{error.filename or 'The output'}: {error.strerror or error}. {_next_step(error)}")
    except KeyboardInterrupt:
        _tell("Stopped.")
    sys.exit(1)


@contextmanager
def stoppable() -> Iterator[Stop]:
    """Within it Ctrl-C, a closed terminal and SIGTERM stop the answer, which keeps what was said, however often."""
    from sessions_lib.agent.cancellation import Stop

    stop = Stop()
    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def answer_apart() -> Iterator[TextIO]:
    """Standard output for the answer alone: within it, what tools and their programs print goes to standard error."""
    sys.stdout.flush()
    try:
        kept = os.dup(1)
    except OSError:  # there is none
        yield sys.stdout
        return
    os.dup2(2, 1)
    try:
        with open(kept, "w", encoding=sys.stdout.encoding, errors=sys.stdout.errors, closefd=False) as answers:
            yield answers
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _call(program: str, arguments: list[str]) -> None:
    import click

    from sessions_lib.cli import commands

    try:
        code = commands.program.main(arguments, prog_name=program, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        raise KeyboardInterrupt from None
    if isinstance(code, int):  # of --help, or of a call without a command
        sys.exit(code)


def _open_texts() -> None:
    """Make the standard streams take and give any text, whatever the locale says; one that was closed is empty."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - it lives as long as the process
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if isinstance(sys.stdin, io.TextIOWrapper):
        encoding = sys.stdin.encoding or "utf-8"
        # A locale of plain ASCII says only that nobody set one: what is typed or piped is UTF-8 all the same.
        sys.stdin.reconfigure(encoding="utf-8" if "ascii" in encoding.lower() or "646" in encoding else encoding)
        sys.stdin.reconfigure(errors="replace")


def _texts(arguments: Sequence[str]) -> list[str]:
    """The arguments as UTF-8 texts; Python hands out their bytes as lone surrogates where the locale is not UTF-8."""
    return [os.fsencode(argument).decode("utf-8", "replace") for argument in arguments]


def _next_step(error: OSError) -> str:
    match error:
        case FileNotFoundError() | NotADirectoryError():
            return "Check the name."
        case IsADirectoryError():
            return "Name a file in it."
        case PermissionError():
            return "Fix its permissions, or choose another place."
        case _:
            return "Free space or choose another place."


def _tell(sentence: str) -> None:
    try:
        print(visible(sentence), file=sys.stderr)
    except OSError:
        _quiet_pipe()


def _quiet_pipe() -> None:
    """Nobody reads any more: let Python's last flush go nowhere instead of complaining."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())
