"""``open``: the app in the browser, from any working directory, with the settings it comes with.

In a clone the app is ``app.py`` and ``pages/`` beside the library; a wheel carries both in ``sessions_lib/app``.

Does not draw: the pages do.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import webbrowser
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import quote

import click

from sessions_lib.cli import options, printing
from sessions_lib.errors import SessionError

USUAL_PORT = 8501  # Streamlit's own
_PATIENCE_S = 60.0
_PATHS = ("SESSIONS_TOOLS",)  # variables that name a file: the app runs in another working directory


@click.command("open")
@click.option("--session", metavar="SESSION", help="Open this session in Chat.")
@click.option(
    "--port", type=click.IntRange(1, 65535), help=f"Listen here; without it {USUAL_PORT}, or a free one if it is taken."
)
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@options.folder
def open_app(session: str | None, port: int | None, no_browser: bool, folder: str | None) -> None:
    """Start the app and open it in the browser; Ctrl-C ends it.

    Example: forkbook open --session quest-1
    """
    manager = options.manager(folder)
    view = f"/chat?session={quote(manager.resolve(session))}" if session else "/"
    place = folder or os.environ.get("SESSIONS_DIR")
    printing.talk(f"Your sessions are in {manager.store.where}.")
    serve(place, port, view=view, browser=not no_browser)


def serve(place: str | Path | None, port: int | None = None, *, view: str = "/", browser: bool = True) -> None:
    """Run the app on the sessions at ``place`` until it is stopped, and show ``view`` once it answers.

    A terminal's Ctrl-C and SIGTERM end both. ``SessionError`` if the app is not there or ``port`` is taken.
    """
    app = _app()
    port = _port(port)
    address = f"http://localhost:{port}{view}"
    # The app's own folder is its working directory: the configuration of another project in yours does not reach it.
    command = [sys.executable, "-m", "streamlit", "run", str(app), "--server.port", str(port)]
    env = {**os.environ, **{name: _absolute(os.environ[name]) for name in _PATHS if os.environ.get(name)}}
    if place:
        env["SESSIONS_DIR"] = _absolute(str(place))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    server = subprocess.Popen(command, cwd=app.parent, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        _wait(server, port)
        printing.data(address)
        printing.talk("Ctrl-C ends it.")
        if browser and _has_screen():
            webbrowser.open(address)
        server.wait()
    except KeyboardInterrupt:
        printing.talk("Stopped.")
    finally:
        server.terminate()
        server.wait()
    if server.returncode > 0:
        raise SessionError("The app ended by itself; what it said stands above.")


def _app() -> Path:
    library = Path(__file__).resolve().parents[1]
    for found in (library / "app" / "app.py", library.parent / "app.py"):
        if found.is_file():
            return found
    raise SessionError("The app is not installed beside the library. Install Forkbook again: pip install forkbook")


def _port(wanted: int | None) -> int:
    """``wanted``, which has to be free; else the usual one, or any that is free."""
    for port in (wanted,) if wanted else (USUAL_PORT, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise SessionError(f"Port {wanted} is taken. Leave out --port for a free one, or choose another.")


def _wait(server: subprocess.Popen[bytes], port: int) -> None:
    """Until the server answers; ``SessionError`` if it ends or stays silent."""
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline and server.poll() is None:
        try:
            here = HTTPConnection("127.0.0.1", port, timeout=2)  # past any proxy
            here.request("GET", "/_stcore/health")
            if here.getresponse().status == 200:
                return
        except (OSError, HTTPException):
            time.sleep(0.1)
    raise SessionError("The app did not start; what it said stands above. Try again, or with another --port.")


def _absolute(place: str) -> str:
    from sessions_lib.store.store import is_address

    return place if is_address(place) else str(options.path(place).absolute())


def _has_screen() -> bool:
    """True if a browser would be seen: over ssh a text browser would take the terminal."""
    named = any(os.environ.get(name) for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"))
    return named or sys.platform == "darwin"
