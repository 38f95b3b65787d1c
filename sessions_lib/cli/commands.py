"""The commands by name. ``sessions`` holds the seeds' spelling of five of them.

A command's parameters cost about a millisecond each to build, so only the command that is asked for is built; all of
them are for ``--help`` and for a name that is not known.

Does not hold a command: they stand in the modules it names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer

HELP = "A notebook for agent sessions: chat, resume, fork, compare, measure."
COMMANDS = {
    "list": "look.list_sessions",
    "show": "look.show",
    "chat": "chat.chat",
    "new": "change.new",
    "fork": "change.fork",
    "merge": "join.merge",
    "diff": "look.diff",
    "verdict": "join.verdict",
    "tag": "change.tag",
    "search": "look.search",
    "stats": "numbers.stats",
    "index": "files.index",
    "export": "files.export",
    "import": "bring.bring",
    "check": "files.check",
    "repair": "files.repair",
    "delete": "change.delete",
    "restore": "change.restore",
    "purge": "change.purge",
    "demo": "demo.demo",
}
LOOKING = ("list", "show", "search")  # read plain calls of these without Typer: see ``quick``
SEEDS = ("list", "show", "search", "delete", "export")


def tree(arguments: Sequence[str] = ()) -> typer.Typer:
    """The program for ``arguments``: with the one command they begin with, or with all."""
    asked = arguments[0] if arguments else ""
    app = _group(HELP)
    app.callback()(_root)
    _add(app, [asked] if asked in COMMANDS else [] if asked == "sessions" else COMMANDS)
    if asked not in COMMANDS:
        sessions = _group("The same commands as other programs spell them: list, show, search, delete, export.")
        _add(sessions, SEEDS)
        app.add_typer(sessions, name="sessions")
    return app


def _group(text: str) -> typer.Typer:
    return typer.Typer(
        help=text,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def _add(app: typer.Typer, named: Iterable[str]) -> None:
    for name in named:
        app.command(name)(function(name))


def function(name: str) -> Callable[..., Any]:
    """The function behind a command."""
    module, _, attribute = COMMANDS[name].partition(".")
    found: Callable[..., Any] = getattr(import_module(f"sessions_lib.cli.{module}"), attribute)
    return found


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"forkbook {version('forkbook')}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """A notebook for agent sessions: chat, resume, fork, compare, measure."""
