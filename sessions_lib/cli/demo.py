"""``demo``: sessions to look at, in the folder or in one of their own.

Does not make them: ``sessions_lib.demo`` does.
"""

from __future__ import annotations

import tempfile

import click

from sessions_lib.cli import app, options, printing


@click.command("demo")
@click.option(
    "--open", "open_app", is_flag=True, help="Start the app on the demo alone, in a folder that goes when it ends."
)
@click.option("--remove", "remove", is_flag=True, help="Take the demo's sessions away again.")
@options.folder
def demo(open_app: bool, remove: bool, folder: str | None) -> None:
    """Load the demo's sessions.

    Example: forkbook demo --open
    """
    from sessions_lib import demo as made

    if open_app:
        if remove or folder:
            raise click.UsageError("--open has a folder of its own: leave out --remove and --dir.")
        _open()
        return
    found = options.manager(folder)
    ids = made.remove(found) if remove else made.load(found)
    for one in ids:
        printing.data(one)
    if remove:
        printing.talk(f"Moved {printing.count(len(ids), 'session')} of the demo to the trash; everything else stays.")
    elif ids:
        printing.talk(
            f"Loaded {printing.count(len(ids), 'session')} and a finished trial. Try: forkbook diff quest-2, "
            "forkbook trial show orders-as-json"
        )
    else:
        printing.talk("The demo is loaded already. To take it away: forkbook demo --remove")


def _open() -> None:
    """Serve the app on a fresh folder with the demo until it is stopped; the folder is gone then."""
    from sessions_lib import demo as made

    with tempfile.TemporaryDirectory(prefix="forkbook-demo-") as place:
        made.load(options.manager(place))
        printing.talk(f"The demo is in {place} until this ends (Ctrl-C). Your own sessions stay out of it.")
        app.serve(place)
