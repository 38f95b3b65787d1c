"""The tree of commands. ``sessions`` holds the seeds' spelling of five of them.

Does not hold a command: they stand in the modules it names.
"""

from __future__ import annotations

from typing import Annotated

import typer

from sessions_lib.cli import change, chat, files, look

app = typer.Typer(
    help="A notebook for agent sessions: chat, resume, fork, compare, measure.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
sessions = typer.Typer(
    help="List, show, search, delete and export sessions.", no_args_is_help=True, rich_markup_mode=None
)

app.command("list")(look.list_sessions)
app.command("show")(look.show)
app.command("chat")(chat.chat)
app.command("new")(change.new)
app.command("fork")(change.fork)
app.command("tag")(change.tag)
app.command("search")(look.search)
app.command("export")(files.export)
app.command("check")(files.check)
app.command("repair")(files.repair)
app.command("delete")(change.delete)
app.command("restore")(change.restore)
app.command("purge")(change.purge)

sessions.command("list")(look.list_sessions)
sessions.command("show")(look.show)
sessions.command("search")(look.search)
sessions.command("delete")(change.delete)
sessions.command("export")(files.export)
app.add_typer(sessions, name="sessions")


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"forkbook {version('forkbook')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """A notebook for agent sessions: chat, resume, fork, compare, measure."""
