"""The README is true: its commands, its Python, its names, its links."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sessions_lib.cli import commands

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_command_stands_in_the_readme_and_no_other() -> None:
    rows = re.findall(r"^\| `forkbook (\w+)", README, re.MULTILINE)

    assert sorted(rows) == sorted(commands.COMMANDS)


def test_the_test_command_is_the_one_that_is_run_before_every_change() -> None:
    found = re.findall("^python3 -m venv .+ && .+/pytest$", README, re.MULTILINE)

    assert found == ["python3 -m venv .venv && .venv/bin/pip install -e '.[test]' && .venv/bin/pytest"]
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert 'command=$(grep -m 1 -E "^python3 -m venv .+ && .+/pytest$" README.md)' in ci
    assert 'bash -c "${command% && *}"' in ci
    assert '\nbash -c "$command" || again || failed=1\n' in ci
    app = "python3 -m venv .venv && .venv/bin/pip install -e . && .venv/bin/streamlit run app.py"
    assert f"\n{app}\n" in README


def test_the_tour_of_the_library_runs(tmp_path: Path) -> None:
    tour, *_ = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len([line for line in tour.splitlines() if line.strip()]) <= 13
    trial = next(block for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "Trial(" in block)
    env = {"PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}

    done = subprocess.run(
        [sys.executable, "-c", tour + trial], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert "['tides-2', 'tides']" in done.stdout or "['tides', 'tides-2']" in done.stdout
    assert "The same variant twice" in done.stdout
    assert "Is it safe to leave Ember?" in (tmp_path / "tides.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("named", re.findall(r"`(tests/[\w/]+\.py(?:::\w+)?)`", README))
def test_every_test_that_is_named_exists(named: str) -> None:
    path, _, function = named.partition("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))

    found = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert not function or function in found


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\((?!https?:)([^)#]+)", README))))
def test_every_file_that_is_linked_exists(link: str) -> None:
    if link.startswith(".github/") and not (ROOT / link).exists():
        pytest.skip("the picture is taken from the finished app")
    assert (ROOT / link).exists()
