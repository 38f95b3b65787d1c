"""Installed from what is published, in a fresh environment and away from any clone, one command opens the app."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import ROOT, make_app

PROGRAM = "installed/bin/forkbook"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``installed/``: an environment that holds the wheel, made of the source archive, and no more."""
    folder = tmp_path_factory.mktemp("package")
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    venv.create(folder / "installed", with_pip=True)
    for command in (
        [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)],
        [str(folder / "installed/bin/pip"), "install", "--quiet", "--find-links", str(folder), "forkbook"],
    ):
        done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode and not os.environ.get("CI"):
            pytest.skip(f"the package registry cannot be reached: {done.stderr[-300:]}")
        assert done.returncode == 0, done.stderr
    assert len([*folder.glob("forkbook-*.tar.gz")]) == len([*folder.glob("forkbook-*.whl")]) == 1
    return folder


@pytest.fixture
def opened(chromium, place, tmp_path) -> Iterator[object]:
    """The app that ``forkbook open`` started in a working directory with another project's configuration."""
    app = make_app(chromium, tmp_path)
    work = tmp_path / "work"
    (work / ".streamlit").mkdir(parents=True)
    (work / ".streamlit" / "config.toml").write_text(
        '[server]\nbaseUrlPath = "other"\n[client]\nshowErrorDetails = "full"\n'
    )
    (work / "pages").mkdir()
    env = {key: value for key, value in app.env.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    forkbook = str(place / PROGRAM)
    subprocess.run([forkbook, "demo"], env=env, check=True, capture_output=True)
    with app.log.open("ab") as log:
        app.process = subprocess.Popen(
            [forkbook, "open", "--session", "quest-2", "--no-browser", "--dir", "../folder"],
            cwd=work, env=env, stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    assert app.process.stdout is not None
    app.address = app.process.stdout.readline().decode().strip()  # type: ignore[attr-defined] # of this test alone
    app.port = int(app.address.split(":")[2].split("/")[0])  # type: ignore[attr-defined]
    yield app
    try:
        app.check()
    finally:
        app.stop()


def test_an_installed_program_opens_the_app_on_a_session_from_any_folder(opened, tmp_path):
    page = opened.open("/" + opened.address.split("/", 3)[3])

    expect(page.get_by_text("Forked from").first).to_be_visible()
    assert page.url.endswith("/chat?session=quest-2")
    for name in ("Sessions", "Compare", "Stats"):
        page.get_by_role("link", name=name, exact=True).first.click()
        opened.settle(page)
        expect(page.get_by_role("heading", name=name, exact=True).first).to_be_visible()
    assert f"Your sessions are in {opened.folder}." in opened.log.read_text()
    assert not (tmp_path / ".streamlit").exists()


def test_the_app_of_a_package_looks_as_in_a_clone_and_listens_on_this_machine_alone(opened):
    page = opened.open("/chat?session=quest-2")

    assert page.evaluate("getComputedStyle(document.querySelector('[data-testid=stApp]')).color") == "rgb(31, 32, 51)"
    with socket.socket() as other:  # answered, too, by a server that listens on every address
        other.settimeout(5)
        with pytest.raises(OSError, match="refused"):
            other.connect(("127.0.0.2", opened.port))


def test_a_port_that_is_taken_is_said_and_without_one_another_is_found(place, opened, tmp_path):
    forkbook = str(place / PROGRAM)
    asked = [forkbook, "open", "--no-browser", "--port", str(opened.port)]
    done = subprocess.run(asked, env=opened.env, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 1
    assert f"Port {opened.port} is taken. Leave out --port for a free one, or choose another." in done.stderr
