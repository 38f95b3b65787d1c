"""The command line in real processes: what it prints where, how it ends, and what never reaches a terminal."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import socket
import subprocess
import sys
import time
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sessions_lib.cli import commands
from sessions_lib.export import export
from sessions_lib.manager import SessionManager
from tests.cli import Terminal
from tests.record import GULL, LIGHTHOUSES, call, write

ROOT = Path(__file__).resolve().parents[1]
EVIL_IDS = ["../outside", "..", ".", "", "/etc/passwd", "a/b", "a\\b", "C:\\x", "~root", "a\nb", "CON", "x" * 300]


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(tmp_path)


def session(terminal: Terminal, name: str = "a", *lines: Any) -> Path:
    return write(terminal.folder / f"{name}.jsonl", *(lines or (LIGHTHOUSES, GULL)))


# --- every command ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", commands.COMMANDS)
def test_every_command_has_help_with_an_example_and_takes_a_folder(terminal: Terminal, name: str) -> None:
    shown = terminal.ok(name, "--help", COLUMNS="200")

    assert f"Example: forkbook {name}" in shown
    assert "--dir FOLDER" in shown
    first = shown.split("\n\n")[1].strip()
    assert first.endswith((".", ".\n")), first
    assert "\n" not in first, "the first paragraph is one sentence on one line"


def test_no_arguments_and_unknown_ones_are_called_wrongly(terminal: Terminal) -> None:
    for arguments in (
        [],
        ["nonsense"],
        ["show"],
        ["list", "--nonsense"],
        ["show", "a", "--last", "x"],
        ["purge", "--older-than", "old"],
    ):
        done = terminal.run(*arguments)
        assert done.returncode == 2, arguments
        assert "Traceback" not in done.stderr


def test_the_plain_reading_of_a_call_gives_what_typer_gives(terminal: Terminal) -> None:
    session(terminal)
    terminal.ok("tag", "a", "north", "cold")
    folder = str(terminal.folder)

    for plain, typer in (
        (
            ["list", "--tag", "north", "-t", "cold", "--dir", folder],
            ["list", "--tag=north", "-tcold", f"--dir={folder}"],
        ),
        (["show", "a", "--json"], ["show", "--json", "--", "a"]),
        (["search", "gull", "point"], ["search", "--", "gull", "point"]),
    ):
        assert terminal.ok(*plain) == terminal.ok(*typer) != ""


def test_listing_imports_no_streamlit_pandas_openai_or_pydantic(terminal: Terminal) -> None:
    session(terminal)
    code = (
        "import sys; sys.argv = ['forkbook', 'list']\n"
        "import atexit; atexit.register(lambda: print(sorted({m.split('.')[0] for m in sys.modules}), file=sys.stderr))\n"
        "from sessions_lib.cli import main; main()"
    )

    done = subprocess.run([sys.executable, "-c", code], env=terminal.env(), capture_output=True, text=True, check=True)

    imported = set(json.loads(done.stderr.splitlines()[-1].replace("'", '"')))
    assert "sessions_lib" in imported
    assert not imported & {"streamlit", "pandas", "openai", "httpx2", "pydantic", "numpy"}


# --- list and show ----------------------------------------------------------------------------------------------


def test_an_empty_folder_is_said_to_be_empty_and_not_made(terminal: Terminal) -> None:
    done = terminal.run("list")

    assert (done.returncode, done.stdout) == (0, "")
    assert "0 sessions" in done.stderr
    assert "forkbook demo" in done.stderr
    assert not terminal.folder.exists()


def test_every_session_is_listed_however_many_and_the_total_is_said(terminal: Terminal) -> None:
    for number in range(250):
        text = ("needle" if number == 0 else "hay") + f" {number}"
        session(
            terminal,
            f"s{number:03}",
            {"role": "user", "content": text, "timestamp": f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z"},
        )

    done = terminal.run("list")

    assert [line.split()[0] for line in done.stdout.splitlines()[1:]] == [f"s{n:03}" for n in range(249, -1, -1)]
    assert "250 sessions" in done.stderr
    assert [hit["session"] for hit in terminal.records("search", "needle")] == ["s000"]


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_a_session_is_one_row_that_fits_the_terminal_whatever_its_title(terminal: Terminal, columns: str) -> None:
    session(terminal, "a", {"role": "user", "content": "# File: tide.py\n\n```python\nprint(1)\n```\n| a | b |"})
    session(terminal, "b", {"role": "user", "content": "北海道の灯台" * 40})
    terminal.ok("new", "line\none | two\x1b[31m\t" + "x" * 300, "--tag", "many words " * 5)

    rows = terminal.ok("list", COLUMNS=columns).splitlines()

    assert len(rows) == 4
    assert all(len(row) + sum(ord(char) > 0x2E80 for char in row) <= int(columns) for row in rows)


def test_filters_of_a_list_all_have_to_pass(terminal: Terminal) -> None:
    day = {"role": "user", "content": "x", "timestamp": "2026-08-28T12:00:00Z"}
    session(terminal, "a", day)
    session(terminal, "b", day)
    session(terminal, "c", {**day, "timestamp": "2026-08-20T12:00:00Z"})
    for name in ("a", "c"):
        terminal.ok("tag", name, "Python")

    listed = terminal.records("list", "--tag", "python", "--date", "2026-08-28", TZ="UTC")

    assert [row["id"] for row in listed] == ["a"]
    assert listed[0]["tags"] == ["Python"]
    assert terminal.told("list", "--date", "soon") == "'soon' is not a day. Write it as 2026-08-28.\n"


def test_json_is_one_object_a_line_with_unknown_as_null(terminal: Terminal) -> None:
    session(terminal)

    (row,) = terminal.records("list")

    assert (row["id"], row["turns"], row["messages"], row["parent"]) == ("a", 1, 2, None)
    assert row["tokens"]["total"] is None


def test_a_session_is_found_by_the_start_of_its_id_and_by_its_title(terminal: Terminal) -> None:
    session(terminal, "alpha-1")
    session(terminal, "alpha-2")
    terminal.ok("new", "Project review")

    assert terminal.ok("show", "alpha-1").splitlines()[0] == "List the lighthouses on the north shore."
    assert terminal.ok("show", "project rev" + "iew").splitlines()[0] == "Project review"
    assert terminal.ok("show", "proj").splitlines()[0] == "Project review"
    assert "alpha-1, alpha-2" in terminal.told("show", "alpha")
    assert terminal.told("show", "beta") == "There is no session 'beta'. See: forkbook list\n"


def test_show_names_messages_calls_results_and_where_the_fork_was(terminal: Terminal) -> None:
    session(terminal, "a", LIGHTHOUSES, call("c1"), {"role": "tool", "tool_call_id": "c1", "content": "2.1 m"}, GULL)
    terminal.ok("fork", "a", "--at", "3", "--id", "b")
    terminal.ok("chat", "b", "--once", "hello")

    shown = terminal.ok("show", "b")

    assert "message 1 · User\nList the lighthouses on the north shore." in shown
    assert '-> tide(port="Ember")' in shown
    assert "--- Forked from a after message 3 ---" in shown
    assert shown.index("2.1 m") < shown.index("--- Forked") < shown.index("hello")
    assert "lighthouses" not in terminal.ok("show", "b", "--last", "1").split("\n\n", 1)[1]


def test_damage_is_told_beside_the_data(terminal: Terminal) -> None:
    session(terminal, "a", LIGHTHOUSES, '{"role": "assist')

    done = terminal.run("show", "a")

    assert done.returncode == 0
    assert "a.jsonl:2" in done.stderr
    assert "forkbook check a" in done.stderr
    assert terminal.told("check", "a").endswith("See: forkbook repair a\n")


def test_control_characters_that_were_stored_never_reach_the_terminal(terminal: Terminal) -> None:
    evil = "\x1b]0;owned\x07\x1b[2Jhello \x9b31m\x7f\u202e"
    file = session(
        terminal,
        "a",
        {"role": "user", "content": evil},
        {**call("c1", name=evil), "model": evil},
        {"role": "tool", "tool_call_id": "c1", "name": evil, "content": evil},
        f'"{evil}"',
    )
    terminal.ok("tag", "a", "plain")
    meta = terminal.folder / "a.meta.json"
    meta.write_text(json.dumps({**json.loads(meta.read_text()), "tags": [evil], "title": evil}))
    before = file.read_bytes()

    for arguments in (
        ["list"],
        ["list", "--json"],
        ["show", "a"],
        ["show", "a", "--json"],
        ["search", "hello"],
        ["search", "hello", "--json"],
        ["diff", "a", "a"],
        ["diff", "a", "a", "--json"],
        ["check"],
        ["check", "--json"],
        ["repair", "a"],
        ["tag", "a"],
        ["fork", "a", "--at", "1"],
        ["chat", "a", "--once", "hello"],
        ["delete", "a"],
        ["show", evil],
        ["export", "a", "--format", evil],
    ):
        done = terminal.run(*arguments)
        assert not set(done.stdout + done.stderr) & set("\x1b\x07\x9b\x7f\u202e"), arguments
        assert "Traceback" not in done.stderr

    terminal.ok("export", "a", "--format", "json", "-o", "a.json")
    assert json.loads((terminal.work / "a.json").read_text(encoding="utf-8"))["messages"][0]["content"] == evil
    assert file.read_bytes()[: len(before)] == before


def test_an_export_printed_into_a_terminal_cannot_steer_it(terminal: Terminal) -> None:
    session(terminal, "a", {"role": "user", "content": "\x1b]0;owned\x07hello \x9b31m\u202e"})

    for arguments in (["export", "a", "--format", "json", "-o", "-"], ["show", "a"]):
        controller, side = pty.openpty()
        process = subprocess.Popen(
            terminal.command("forkbook", *arguments),
            stdin=subprocess.DEVNULL,
            stdout=side,
            stderr=side,
            env=terminal.env(),
        )
        os.close(side)
        shown = b""
        with contextlib.suppress(OSError), open(controller, "rb", buffering=0) as screen:  # ends with an error on Linux
            while piece := screen.read(4096):
                shown += piece
        assert process.wait(60) == 0
        assert "hello" in (text := shown.decode())
        assert not set(text) & set("\x1b\x07\x9b\u202e")


# --- ids and folders --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("evil", EVIL_IDS)
def test_an_id_that_is_none_is_refused_everywhere_and_nothing_is_touched(terminal: Terminal, evil: str) -> None:
    session(terminal, "ok")
    write(terminal.folder.parent / "outside.jsonl", LIGHTHOUSES)
    before = terminal.files()

    for arguments in (
        ["show", evil],
        ["chat", evil, "--once", "hi"],
        ["fork", evil],
        ["fork", "ok", "--id", evil],
        ["new", "--id", evil],
        ["tag", evil, "x"],
        ["export", evil],
        ["check", evil],
        ["repair", evil, "--write"],
        ["delete", evil, "--yes"],
        ["restore", evil],
        ["diff", "ok", evil],
    ):
        if arguments[:2] == ["fork", "ok"] and evil == "":
            continue  # no id asked for: the fork gets one
        done = terminal.run(*arguments)
        assert done.returncode == 1, arguments
        assert "Traceback" not in done.stderr
        assert done.stderr.strip().count("\n") == 0, done.stderr

    assert {name: data for name, data in terminal.files().items() if not name.startswith("sessions/.")} == before


def test_a_folder_that_is_none_is_one_sentence(terminal: Terminal) -> None:
    file = terminal.work / "file"
    file.write_text("x")

    for arguments in (["list"], ["new", "x"], ["chat", "--once", "hi"], ["demo"]):
        assert str(file) in terminal.told(*arguments, "--dir", str(file)), arguments

    assert file.read_text() == "x"


@pytest.mark.parametrize("program", ["forkbook", "pi-agent"])
def test_a_pipe_that_closes_early_is_no_traceback(terminal: Terminal, program: str) -> None:
    session(terminal, "a", *({"role": "user", "content": f"{number} " * 400} for number in range(300)))

    done = subprocess.run(
        f"{' '.join(_quoted(terminal.command(program, 'show', 'a')))} | head -n 1",
        shell=True, env=terminal.env(), capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert "Error" not in done.stderr
    assert "Traceback" not in done.stderr


def _quoted(words: list[str | bytes]) -> list[str]:
    import shlex

    return [shlex.quote(str(word)) for word in words]


# --- a locale without UTF-8 -------------------------------------------------------------------------------------

ASCII = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}


def test_a_locale_without_utf8_changes_no_file_and_breaks_no_output(terminal: Terminal) -> None:
    session(terminal, "a", {"role": "user", "content": "Que horas às 北海道? 🌊"})

    for arguments, typed in (
        (["tag", "a", "maré"], ""),
        (["new", "Sessão 北"], ""),
        (["chat", "a", "--once", "Olá 北"], ""),
        (["chat", "a"], "maré\n"),
        (["list"], ""),
        (["show", "a"], ""),
        (["search", "北海道"], ""),
        (["diff", "a", "a"], ""),
        (["export", "a", "--format", "json", "--output", "às.json"], ""),
        (["export", "a", "--format", "md"], ""),
        (["delete", "sessao", "--yes"], ""),
    ):
        done = terminal.run_fresh(*arguments, stdin=typed, **ASCII)
        assert done.returncode == 0, (arguments, done.stderr)
        assert done.stdout + done.stderr

    stored = [json.loads(line) for line in (terminal.folder / "a.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [m["content"] for m in stored if m["role"] == "user"] == ["Que horas às 北海道? 🌊", "Olá 北", "maré"]
    assert json.loads((terminal.folder / "a.meta.json").read_text(encoding="utf-8"))["tags"] == ["maré"]
    assert json.loads((terminal.work / "às.json").read_text(encoding="utf-8"))["messages"] == stored
    assert [path.suffix for path in terminal.work.glob("Que horas às 北海道*")] == [".md"]


# --- search -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("query", "found"), [("", []), ("   ", []), ("x", ["a"])])
def test_a_blank_query_finds_nothing_and_one_letter_what_holds_it(
    terminal: Terminal, query: str, found: list[str]
) -> None:
    session(terminal, "a", {"role": "user", "content": "xyz"})
    session(terminal, "b", {"role": "user", "content": "abc"})

    assert [hit["session"] for hit in terminal.records("search", query)] == found


def test_hits_are_counted_and_limited(terminal: Terminal) -> None:
    session(terminal, "a", *({"role": "user", "content": f"tide {number}"} for number in range(5)))

    assert "5 hits in 1 session" in terminal.run("search", "tide").stderr
    assert len(terminal.records("search", "tide", "--limit", "2")) == 2
    assert "is no filter" in terminal.run("search", "after:lunch").stderr


def test_a_query_that_finds_nothing_says_what_to_leave_out(terminal: Terminal) -> None:
    session(terminal, "a", {"role": "user", "content": "tide"})
    session(terminal, "b", {"role": "user", "content": "tide"})
    terminal.ok("tag", "b", "north")

    told = terminal.run("search", "tide", "tag:south").stderr.splitlines()

    assert told == ["0 hits in 0 sessions", "Without tag:south: 2 sessions"]
    assert terminal.run("search", "ebb").stderr.splitlines() == ["0 hits in 0 sessions"]


# --- making, forking, deleting ----------------------------------------------------------------------------------


def test_new_and_fork_print_the_id_alone(terminal: Terminal) -> None:
    assert terminal.ok("new", "Sessão de maré") == "sessao-de-mare\n"
    session(terminal, "quest-1")
    assert terminal.ok("fork", "quest-1", "--id", "quest-2", "--title", "West") == "quest-2\n"
    assert SessionManager(terminal.folder).open("quest-2").title == "West"
    assert "quest-2" in terminal.told("fork", "quest-1", "--id", "quest-2")
    assert (terminal.folder / "quest-2.jsonl").read_bytes() == (terminal.folder / "quest-1.jsonl").read_bytes()


def test_a_forbidden_fork_point_names_the_allowed_ones(terminal: Terminal) -> None:
    session(terminal, "a", LIGHTHOUSES, call("c1"), {"role": "tool", "tool_call_id": "c1", "content": "2.1 m"}, GULL)

    assert "after message 1 or 3" in terminal.told("fork", "a", "--at", "2")


def test_tags_are_added_taken_away_and_printed(terminal: Terminal) -> None:
    session(terminal)

    assert terminal.ok("tag", "a", "  Python ", "python", "résumé, café #1") == "Python\nrésumé, café #1\n"
    assert terminal.ok("tag", "a", "-r", "PYTHON") == "résumé, café #1\n"
    assert "empty" in terminal.told("tag", "a", " ")


def test_delete_wants_the_exact_id_and_an_answer(terminal: Terminal) -> None:
    session(terminal, "old_session")
    before = terminal.files()

    assert "perhaps old_session" in terminal.told("delete", "old", "--yes")
    assert "--yes" in terminal.told("delete", "old_session")
    assert "not deleted" in terminal.told("delete", "old_session", stdin="n\n")
    assert {k: v for k, v in terminal.files().items() if ".locks" not in k} == before

    terminal.ok("delete", "old_session", stdin="y\n")
    assert terminal.ok("list") == ""
    assert [entry["session"] for entry in terminal.records("list", "--trash")] == ["old_session"]
    assert terminal.ok("restore", "old_session") == "old_session\n"
    assert len(terminal.records("list")) == 1
    terminal.ok("delete", "old_session", "--yes")
    assert terminal.ok("list") == ""


def test_nothing_is_erased_for_its_file_time_or_without_an_answer(terminal: Terminal) -> None:
    old = session(terminal, "old", {"role": "user", "content": "keep", "timestamp": "2020-01-01T00:00:00Z"})
    now = datetime.now(UTC).isoformat()
    young = session(terminal, "young", {"role": "user", "content": "new", "timestamp": now})
    for file in (old, young):
        os.utime(file, (1_577_836_800, 1_577_836_800))
    for arguments in (["list"], ["search", "keep"], ["show", "old"], ["list", "--trash"]):
        terminal.ok(*arguments)

    assert [row["session"] for row in terminal.records("purge", "--older-than", "30d", "--dry-run")] == ["old"]
    asked = terminal.run("purge", "--older-than", "30d")
    assert (asked.returncode, "old" in asked.stdout, "young" in asked.stdout) == (1, True, False)
    os.utime(old)
    assert [row["session"] for row in terminal.records("purge", "--older-than", "30d", "--dry-run")] == ["old"]
    assert old.exists()

    terminal.ok("purge", "--older-than", "30d", "--yes")
    assert (old.exists(), young.exists()) == (False, True)


def test_purge_takes_the_trash_only_and_one_entry_if_told(terminal: Terminal) -> None:
    for name in ("a", "b", "c"):
        session(terminal, name)
    for name in ("a", "b"):
        terminal.ok("delete", name, "--yes")

    terminal.ok("purge", "a", "--yes")
    assert [entry["session"] for entry in terminal.records("list", "--trash")] == ["b"]
    terminal.ok("purge", "--yes")
    assert terminal.records("list", "--trash") == []
    assert [row["id"] for row in terminal.records("list")] == ["c"]


# --- export, check, repair --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("format", "extension"),
    [("md", "md"), ("markdown", "md"), ("json", "json"), ("html", "html"), ("jsonl", "jsonl"), ("finetune", "jsonl")],
)
def test_an_export_without_a_name_is_a_new_file_here_with_a_valid_name(
    terminal: Terminal, format: str, extension: str
) -> None:
    session(terminal)
    (terminal.folder / "a.meta.json").write_text('{"title":"Sessão de maré / 50% \\"ok\\" 北"}', encoding="utf-8")
    found = SessionManager(terminal.folder).open("a")

    first = terminal.ok("export", "a", "--format", format)
    second = terminal.ok("export", "a", "--format", format)

    assert (first, second) == (f"Sessão de maré 50% ok 北.{extension}\n", f"Sessão de maré 50% ok 北 (2).{extension}\n")
    family = SessionManager(terminal.folder).family("a")
    expected = export(found.messages, {**found.meta, "id": "a"}, format, family=family)
    assert (terminal.work / first.strip()).read_text(encoding="utf-8") == expected
    assert terminal.ok("export", "a", "--format", format, "-o", "-") == expected
    assert sorted(path.name for path in terminal.work.iterdir()) == sorted([first.strip(), second.strip()])


def test_what_is_made_to_be_shared_is_redacted_unless_told_otherwise(terminal: Terminal) -> None:
    session(terminal, "a", {"role": "user", "content": "write to ana@example.org about project Heron"})

    shared = terminal.run("export", "a", "-o", "-")

    assert "ana@example.org" not in shared.stdout
    assert "e-mail address (1x)" in shared.stderr
    assert "ana@example.org" not in shared.stderr
    assert "ana@example.org" in terminal.ok("export", "a", "-o", "-", "--no-redact")
    assert "ana@example.org" in terminal.ok("export", "a", "-o", "-", "--format", "json")
    assert "ana@example.org" not in terminal.ok("export", "a", "-o", "-", "--format", "json", "--redact")
    assert "Heron" not in terminal.ok("export", "a", "-o", "-", "--pattern", "Her[o]n")


def test_check_counts_and_repair_writes_only_when_told(terminal: Terminal) -> None:
    file = session(terminal, "a", LIGHTHOUSES, '{"role": "assist')
    session(terminal, "b")
    for name in ("a", "b"):
        terminal.ok("tag", name, "x")
    before = file.read_bytes()

    faults = terminal.run("check", "--json")
    assert faults.returncode == 1
    assert [(f["session"], f["line"]) for f in map(json.loads, faults.stdout.splitlines())] == [("a", 2)]
    terminal.ok("check", "b")
    assert "Nothing was written" in terminal.run("repair", "a").stderr
    assert file.read_bytes() == before

    terminal.ok("repair", "a", "--write")
    terminal.ok("check", "--all")
    assert "nothing to repair" in terminal.run("repair", "a", "--write").stderr
    assert [entry["kind"] for entry in terminal.records("list", "--trash")] == ["repaired"]


# --- diff, import, demo -----------------------------------------------------------------------------------------


def test_one_session_is_compared_with_its_parent(terminal: Terminal) -> None:
    session(terminal)
    terminal.ok("fork", "a", "--id", "b")
    terminal.ok("chat", "b", "--once", "hello")

    assert terminal.ok("diff", "b") == terminal.ok("diff", "a", "b")
    (found,) = terminal.records("diff", "b")
    assert [branch["id"] for branch in found["branches"]] == ["a", "b"]
    assert found["shared"]["messages"] == 2
    assert "2 to 4" in terminal.told("diff", "a")


def test_what_cannot_be_imported_is_named_and_leaves_no_session(terminal: Terminal) -> None:
    claude = {
        "type": "user",
        "uuid": "u1",
        "parentUuid": None,
        "isSidechain": False,
        "sessionId": "s1",
        "timestamp": "2026-03-01T10:00:00.000Z",
        "message": {"role": "user", "content": "q"},
    }
    write(terminal.work / "claude.jsonl", claude)
    write(terminal.work / "empty.jsonl")
    (terminal.work / "array.json").write_text('[{"title":"x","mapping":{}}]')
    (terminal.work / "text.txt").write_text("hello\n")
    (terminal.work / "folder").mkdir()

    for name, arguments in {
        "claude.jsonl": ["--from", "codex"], "empty.jsonl": [], "array.json": [], "text.txt": [], "folder": [], "missing.jsonl": [],
    }.items():  # fmt: skip
        done = terminal.run("import", name, *arguments)
        assert done.returncode == 1, name
        assert name in done.stderr
        assert "Traceback" not in done.stderr
    assert terminal.run("import", "claude.jsonl", "--from", "nonsense").returncode == 2
    assert terminal.records("list") == []


def test_importing_twice_adds_nothing_and_a_bad_file_stops_no_other(terminal: Terminal) -> None:
    write(terminal.work / "in" / "chat.jsonl", LIGHTHOUSES, GULL)
    write(terminal.work / "in" / "bad.jsonl", "not json at all")

    assert "Would import 1 session" in terminal.run("import", "in", "--dry-run").stderr
    assert terminal.records("list") == []
    assert "Imported 1 session and 2 messages" in terminal.run("import", "in").stderr
    assert "Imported 0 sessions and 0 messages" in terminal.run("import", "in").stderr
    assert len(terminal.records("list")) == 1
    assert "Name a file" in terminal.told("import")


def test_without_a_path_the_folders_of_other_tools_are_offered_and_only_read(terminal: Terminal) -> None:
    said = {"role": "user", "content": "How high is the tide?"}
    line = {
        "type": "user",
        "uuid": "u1",
        "parentUuid": None,
        "sessionId": "s1",
        "timestamp": "2026-03-01T10:00:00.000Z",
        "message": said,
    }
    place = terminal.home / ".claude" / "projects"
    write(place / "harbour" / "s1.jsonl", line)
    before = {path: path.read_bytes() for path in terminal.home.rglob("*") if path.is_file()}

    told = terminal.told("import")
    assert str(place) in told
    assert "Nothing was imported" in told
    terminal.ok("import", stdin="y\n")
    assert [row["title"] for row in terminal.records("list")] == ["How high is the tide?"]
    terminal.ok("import", "--yes")
    assert len(terminal.records("list")) == 1
    assert {path: path.read_bytes() for path in terminal.home.rglob("*") if path.is_file()} == before


def test_the_demo_comes_and_goes_and_leaves_the_rest(terminal: Terminal) -> None:
    session(terminal, "mine")

    made = terminal.ok("demo").splitlines()
    assert "quest-1" in made
    assert terminal.ok("demo") == ""
    assert sorted(terminal.ok("demo", "--remove").splitlines()) == sorted(made)
    assert [row["id"] for row in terminal.records("list")] == ["mine"]


# --- merge and verdict ------------------------------------------------------------------------------------------


def branches(terminal: Terminal) -> None:
    """``b`` and ``c`` are forks of ``a`` after its 2 messages, with a turn of their own each."""
    session(
        terminal,
        "a",
        {**LIGHTHOUSES, "timestamp": "2026-01-01T00:00:00Z"},
        {**GULL, "timestamp": "2026-01-01T00:00:01Z"},
    )
    for minute, name in enumerate(("b", "c"), 1):
        terminal.ok("fork", "a", "--id", name)
        fork = SessionManager(terminal.folder).open(name)
        fork.append({"role": "user", "content": f"in {name}?", "timestamp": f"2026-01-01T00:0{minute}:00Z"})
        fork.append({"role": "assistant", "content": f"yes, {name}", "timestamp": f"2026-01-01T00:0{minute}:01Z"})


def test_a_merge_makes_a_new_session_and_a_dry_run_none(terminal: Terminal) -> None:
    branches(terminal)
    before = terminal.files()

    assert terminal.ok("merge", "b", "c", "--by-time", "--dry-run") == "turn 3: in c?\n"
    assert terminal.files() == before

    assert terminal.ok("merge", "b", "c", "--by-time", "--id", "both") == "both\n"
    shown = [message["content"] for message in terminal.records("show", "both")]
    assert shown == [LIGHTHOUSES["content"], GULL["content"], "in b?", "yes, b", "in c?", "yes, c"]
    assert {name: data for name, data in terminal.files().items() if "/both." not in name} == before
    assert "nothing would change" in terminal.told("merge", "both", "c", "--by-time")
    assert "itself" in terminal.told("merge", "b", "b", "--by-time")


def test_chosen_turns_are_copied_behind_the_last(terminal: Terminal) -> None:
    branches(terminal)

    (made,) = terminal.records("merge", "c", "b", "--turns", "2", "--title", "Home")

    assert (made["title"], [message["content"] for message in made["added"]]) == ("Home", ["in b?", "yes, b"])
    assert [m["content"] for m in terminal.records("show", made["id"])][-2:] == ["in b?", "yes, b"]
    for wrong in (["--turns", "x"], [], ["--turns", "2", "--by-time"]):
        assert terminal.run("merge", "c", "b", *wrong).returncode == 2
    assert "9" in terminal.told("merge", "c", "b", "--turns", "9")


def test_a_verdict_is_found_again(terminal: Terminal) -> None:
    branches(terminal)

    terminal.ok("verdict", "b", "c", "--why", "shorter", "--tag", "best")

    assert {hit["session"] for hit in terminal.records("search", "verdict:won")} == {"b"}
    assert [row["tags"] for row in terminal.records("list", "--tag", "best")] == [["best"]]
    assert "won" in next(line for line in terminal.ok("list").splitlines() if line.startswith("b "))
    assert "at least one other" in terminal.told("verdict", "b", "b")


# --- stats and the app ------------------------------------------------------------------------------------------


def test_tokens_are_counted_once_however_many_forks_hold_them(terminal: Terminal) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14}
    session(terminal, "a", LIGHTHOUSES, {**GULL, "id": "m1", "model": "tiny", "usage": usage})
    for name in ("b", "c"):
        terminal.ok("fork", "a", "--id", name)
    terminal.ok("tag", "a", "north")

    (figures,) = terminal.records("stats")

    assert (figures["sessions"], figures["forks"], figures["tokens"]["total"], figures["sent_again"]) == (3, 2, 14, 28)
    assert [(row["model"], row["total"], row["reasoning"]) for row in terminal.records("stats", "--by", "model")] == [
        ("tiny", 14, None)
    ]
    assert [(row["tag"], row["total"]) for row in terminal.records("stats", "tag:north", "--by", "tag")] == [
        ("north", 14)
    ]
    shown = terminal.ok("stats")
    assert "14 (1 of 1 answers reported usage)" in shown
    assert "of which reasoning -" in shown
    assert terminal.run("stats", "--by", "colour").returncode == 2


def test_the_demo_opens_the_app_on_a_folder_of_its_own_that_goes_with_it(terminal: Terminal) -> None:
    session(terminal, "mine")
    before = terminal.files()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    app = subprocess.Popen(
        terminal.command("forkbook", "demo", "--open"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env=terminal.env(STREAMLIT_SERVER_PORT=str(port), TMPDIR=str(terminal.home)), text=True,
    )  # fmt: skip
    try:
        answer = ""
        for _ in range(600):
            with (
                contextlib.suppress(OSError),
                urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=5) as page,
            ):
                answer = page.read().decode()
                break
            assert app.poll() is None, app.stdout and app.stdout.read()
            time.sleep(0.2)
        (place,) = terminal.home.glob("forkbook-demo-*")

        assert answer == "ok"
        assert (place / "quest-1.jsonl").exists()
    finally:
        app.terminate()
        shown, _ = app.communicate(timeout=60)

    assert app.returncode == 0
    assert "Traceback" not in shown
    assert not place.exists()
    assert {name: data for name, data in terminal.files().items() if name.startswith("sessions/")} == before


def test_work_on_many_files_shows_a_bar_in_a_terminal_only(terminal: Terminal) -> None:
    for number in range(60):
        write(terminal.work / "in" / f"{number}.jsonl", LIGHTHOUSES, GULL, {"role": "user", "content": str(number)})

    assert "%" not in (done := terminal.run("import", "in", "--dry-run")).stderr + done.stdout

    controller, side = pty.openpty()
    process = subprocess.Popen(
        terminal.command("forkbook", "import", "in"), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=side,
        env=terminal.env(), cwd=terminal.work,
    )  # fmt: skip
    os.close(side)
    shown = b""
    with contextlib.suppress(OSError), open(controller, "rb", buffering=0) as screen:
        while piece := screen.read(4096):
            shown += piece
    assert process.wait(60) == 0
    assert b"100%" in shown
    assert b"Imported 60 sessions" in shown
