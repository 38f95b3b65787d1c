"""The commands by name. ``sessions`` holds the seeds' spelling of five of them.

Only the module of the command that is asked for is imported; ``--help`` imports them all.

Does not hold a command: they stand in the modules it names.
"""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import Any

import click

from sessions_lib.cli import options

COMMANDS = {
    "open": "app.open_app",
    "list": "look.list_sessions",
    "show": "look.show",
    "chat": "chat.chat",
    "new": "change.new",
    "fork": "change.fork",
    "merge": "join.merge",
    "diff": "look.diff",
    "verdict": "join.verdict",
    "trial": "trial.trial",
    "tag": "change.tag",
    "search": "look.search",
    "stats": "numbers.stats",
    "models": "models.models",
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
SEEDS = ("list", "show", "search", "delete", "export")


class _Commands(click.Group):
    """A group whose commands are imported when they are asked for."""

    def __init__(self, *args: Any, named: Collection[str] = COMMANDS, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.named = named

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.named, *self.commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return command(cmd_name) if cmd_name in self.named else super().get_command(ctx, cmd_name)


def command(name: str) -> click.Command:
    """The command of that name."""
    module, _, attribute = COMMANDS[name].partition(".")
    found: click.Command = getattr(import_module(f"sessions_lib.cli.{module}"), attribute)
    return found


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="forkbook", prog_name="forkbook", message="%(prog)s %(version)s")
@options.folder_of_all
def program() -> None:
    """A notebook for agent sessions: chat, resume, fork, compare, measure.

    A session is named by its id, any start of it that no other has, or its title.
    """


@program.group("sessions", cls=_Commands, named=SEEDS)
@options.folder_of_all
def seeds() -> None:
    """The same commands as other programs spell them: list, show, search, delete, export."""
