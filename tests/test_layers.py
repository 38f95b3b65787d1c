"""The library's layers: a package imports only from its own row and the rows above; heavy packages stay where they are."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LIBRARY = ROOT / "sessions_lib"
ROWS = [
    ["errors", "names", "times", "text", "unseen"],
    ["answers", "answer_markdown", "messages", "query", "redaction", "own_prices"],
    ["price_table", "prices", "snippets"],
    ["store"],
    ["agent", "compare", "stats", "importers", "trials"],
    ["export", "adapters"],
    ["demo"],
    ["cli"],
]
# Packages that only these modules may import, and those inside a function, so that nothing else waits for them.
ONLY_IN = {
    "streamlit": (),
    "openai": ("agent",),
    "httpx2": ("agent",),
    "pandas": ("stats",),
    "numpy": ("stats",),
    "pyarrow": ("export",),
    "watchdog": ("importers",),
    "genai_prices": ("price_table",),
    "psycopg": ("store",),
    "psycopg_pool": ("store",),
    "orjson": (),  # msgspec is the one JSON library
    "pages": (),
    "app": (),
}


@dataclass(frozen=True)
class Import:
    """One import: who, what (a module of the library, or a package), on which line, and whether at import time."""

    module: str
    target: str
    line: int
    is_at_import_time: bool


@cache
def modules() -> list[Path]:
    return sorted(LIBRARY.rglob("*.py"))


def name_of(path: Path) -> str:
    """``export``, ``importers.pi``, ``cli``: the dotted name inside the library; ``""`` for its ``__init__``."""
    parts = path.relative_to(LIBRARY).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def row_of(module: str) -> int | None:
    """The row of the package that a module is in: ``store.folder.jsonl`` is in the row of ``store``."""
    package = module.partition(".")[0]
    return next((row for row, packages in enumerate(ROWS) if package in packages), None)


def imports_of(path: Path) -> Iterator[Import]:
    module = name_of(path)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    known = {name_of(other) for other in modules()}
    at_import_time = set(_at_import_time(tree))
    for node in ast.walk(tree):
        for target in _targets(node, path, known):
            yield Import(module, target, node.lineno, node in at_import_time)  # type: ignore[attr-defined]  # imports have lines


def _at_import_time(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run when the module is imported: not in functions, not under ``TYPE_CHECKING``."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        yield child
        yield from _at_import_time(child)


def _targets(node: ast.AST, path: Path, known: set[str]) -> list[str]:
    if isinstance(node, ast.Import):
        return [_inside(alias.name) for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = node.module or ""
    if node.level:  # a relative import
        package = (path.parent if node.level == 1 else path.parents[node.level - 1]).relative_to(ROOT)
        base = ".".join([*package.parts, *([base] if base else [])])
    if base != "sessions_lib" and not base.startswith("sessions_lib."):
        return [base.partition(".")[0]]
    below = base.partition(".")[2]
    names = [f"{below}.{alias.name}".lstrip(".") for alias in node.names]
    return [f"sessions_lib.{name}" if name in known else f"sessions_lib.{below}".rstrip(".") for name in names]


def _inside(name: str) -> str:
    return name if name.startswith("sessions_lib") else name.partition(".")[0]


def library_target(found: Import) -> str | None:
    return found.target.partition(".")[2] if found.target.startswith("sessions_lib.") else None


def test_every_module_has_a_row() -> None:
    assert [name_of(path) for path in modules() if name_of(path) and row_of(name_of(path)) is None] == []


@pytest.mark.parametrize("path", [path for path in modules() if name_of(path)], ids=name_of)
def test_a_module_imports_from_its_own_row_and_the_rows_above(path: Path) -> None:
    row = row_of(name_of(path))
    assert row is not None

    from_below = [
        f"line {found.line}: {target} (row {row_of(target)}) from row {row}"
        for found in imports_of(path)
        if (target := library_target(found)) is not None
        and target
        != "export.export"  # Session.export asks for it when called; a test below holds that it is not loaded before
        and (row_of(target) or 0) > row
    ]

    assert from_below == []


def test_no_modules_need_each_other_to_be_imported() -> None:
    graph = {
        name_of(path): {
            target
            for found in imports_of(path)
            if found.is_at_import_time and (target := library_target(found)) and target != name_of(path)
        }
        for path in modules()
    }

    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"a circle of imports: {' → '.join(error.args[1])}")

    assert (
        order.index("errors")
        < order.index("store.folder.jsonl")
        < order.index("store.session")
        < order.index("store.manager")
    )


@pytest.mark.parametrize("path", modules(), ids=lambda path: name_of(path) or "sessions_lib")
def test_heavy_packages_are_imported_where_they_belong(path: Path) -> None:
    owner = name_of(path).partition(".")[0]
    wrong = []
    for found in imports_of(path):
        if found.target not in ONLY_IN:
            continue
        belongs = owner in ONLY_IN[found.target]
        if not belongs or (found.is_at_import_time and found.target in ("openai", "httpx2")):
            wrong.append(f"line {found.line}: {found.target}")

    assert wrong == []


def loaded_by(program: str, folder: Path) -> set[str]:
    """The packages in ``sys.modules`` after ``program`` ran in a fresh Python."""
    ending = "\nimport sys; print('loaded', *sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    wrapped = f"try:\n    {program}\nexcept SystemExit as end:\n    assert not end.code, end.code{ending}"
    environment = {**os.environ, "SESSIONS_DIR": str(folder), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", wrapped], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.rpartition("loaded ")[2].split())


HEAVY = {"genai_prices", "streamlit", "pandas", "numpy", "openai", "httpx2", "markdown_it", "psycopg", "psycopg_pool"}


def test_listing_waits_for_no_heavy_package(tmp_path: Path) -> None:
    answer = '{"role":"assistant","model":"gpt-5","usage":{"prompt_tokens":9,"completion_tokens":9},"content":"a"}'
    (tmp_path / "a.jsonl").write_text('{"role":"user","content":"q"}\n' + answer + "\n")
    program = "import sys; sys.argv = ['forkbook', 'list'{}]; from sessions_lib.cli import main; main()"

    loaded = loaded_by(program.format(""), tmp_path)

    assert "sessions_lib" in loaded
    assert loaded & HEAVY == set()
    assert "genai_prices" in loaded_by(program.format(", '--cost'"), tmp_path)


def test_a_session_waits_for_no_heavy_package(tmp_path: Path) -> None:
    program = (
        "from sessions_lib import SessionManager; SessionManager().create('a').append({'role': 'user', 'content': 'q'})"
    )

    assert loaded_by(program, tmp_path) & HEAVY == set()
    assert (tmp_path / "a.jsonl").exists()


def test_an_agent_waits_for_no_page_and_no_table(tmp_path: Path) -> None:
    program = "from sessions_lib import Agent; Agent(session_id='a')"

    assert loaded_by(program, tmp_path) & {"streamlit", "pandas", "numpy"} == set()


# --- the wall around where sessions are kept --------------------------------------------------------------------------

# What only some places may import, by the beginning of what is imported.
BORDERS = {
    "sqlite3": ("sessions_lib/store/folder/", "sessions_lib/importers/", "sessions_lib/adapters/"),
    "fcntl": ("sessions_lib/store/folder/",),
    "psycopg": ("sessions_lib/store/postgres/",),
    "psycopg_pool": ("sessions_lib/store/postgres/",),
    "sessions_lib.store.postgres": (
        "sessions_lib/store/postgres/",
        "sessions_lib/store/store.py",  # picks the store of a place
    ),
    "sessions_lib.store.folder": (
        "sessions_lib/store/folder/",
        "sessions_lib/store/store.py",  # picks the store of a place
        "sessions_lib/store/documents.py",  # reads a file of messages that a person names
    ),
    "streamlit": ("app.py", "pages/"),
    "pandas": ("sessions_lib/stats.py", "pages/"),
}
# Whose files end like ours: the store of folders, and those who read other tools' or a person's own files.
ENDINGS = (".jsonl", ".meta.json")
KNOW_ENDINGS = (
    "sessions_lib/store/folder/",
    "sessions_lib/importers/",
    "sessions_lib/adapters/claude_agent.py",  # lays out what it mirrors as Claude Code does
    "sessions_lib/cli/bring.py",
    "sessions_lib/demo/",
)
# The file of a session and the folder of a store are for the seeds, and for a person's own tools.
HIDDEN = {("session", "path"), ("found", "path"), ("manager", "folder"), ("store", "folder")}


def trespasses(name: str, source: str) -> list[str]:
    """What the file ``name`` knows and should not: imports, endings of files, paths of sessions."""
    found = []
    for node in ast.walk(ast.parse(source)):
        for target in _imported(node):
            for border, places in BORDERS.items():
                if (target + ".").startswith(border + ".") and not name.startswith(places):
                    found.append(f"{name}:{node.lineno}: imports {target}")
        if isinstance(node, ast.Constant) and node.value in ENDINGS and not name.startswith(KNOW_ENDINGS):
            found.append(f"{name}:{node.lineno}: knows {node.value}")
        if isinstance(node, ast.Attribute) and not name.startswith("sessions_lib/store/"):
            owner = node.value
            owned = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
            if (owned.lstrip("_"), node.attr) in HIDDEN:
                found.append(f"{name}:{node.lineno}: asks for {owned}.{node.attr}")
    return found


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def test_nobody_looks_over_the_wall_of_the_store() -> None:
    files = [ROOT / "app.py", *sorted((ROOT / "pages").rglob("*.py")), *modules()]

    found = [
        trespass
        for path in files
        for trespass in trespasses(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    ]

    assert found == []


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("pages/stats.py", "import sqlite3"),
        ("sessions_lib/stats.py", "import sqlite3"),
        ("sessions_lib/agent/runs.py", "import fcntl"),
        ("sessions_lib/store/session.py", "from sessions_lib.store.folder import jsonl"),
        ("pages/shared/session_queries.py", "from sessions_lib.store.folder.index.catalog import Catalog"),
        ("sessions_lib/cli/look.py", "def f():\n    from sessions_lib.store import folder"),
        ("sessions_lib/store/folder/store.py", "import psycopg"),
        ("sessions_lib/store/manager.py", "from psycopg_pool import ConnectionPool"),
        ("pages/sessions.py", "from sessions_lib.store.postgres.database import Database"),
        ("sessions_lib/cli/look.py", "import streamlit as st"),
        ("sessions_lib/cli/numbers.py", "import pandas as pd"),
        ("sessions_lib/export/export.py", "name = session_id + '.jsonl'"),
        ("pages/chat.py", "size = session.path.stat()"),
        ("pages/chat.py", "self._manager.folder"),
    ],
)
def test_each_border_is_seen_when_it_is_crossed(name: str, source: str) -> None:
    assert len(trespasses(name, source)) == 1


def test_no_folder_is_too_full_to_be_seen_through() -> None:
    folders = {path.parent for path in [*modules(), *(ROOT / "pages").rglob("*.py")]}

    assert {folder.name: count for folder in folders if (count := len(list(folder.glob("*.py")))) > 20} == {}


LONGEST_FILE = 350
# Files that are longer as yet, and how long they may be: none is to be added.
LONGER = {
    "pages/chat_parts/chat_composer.py": 395,
    "sessions_lib/agent/agent.py": 462,
    "sessions_lib/store/folder/store.py": 440,
    "sessions_lib/store/memory.py": 399,
    "sessions_lib/store/postgres/store.py": 416,
}


def test_no_file_is_too_long_to_be_read_at_once() -> None:
    files = [ROOT / "app.py", *(ROOT / "pages").rglob("*.py"), *modules()]
    lengths = {path.relative_to(ROOT).as_posix(): len(path.read_text(encoding="utf-8").splitlines()) for path in files}

    assert {name: lines for name, lines in lengths.items() if lines > LONGER.get(name, LONGEST_FILE)} == {}
    assert [name for name in LONGER if lengths.get(name, 0) <= LONGEST_FILE] == []
