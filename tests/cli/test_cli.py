"""The command line in real processes: what it prints where, how it ends, and what never reaches a terminal."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sessions_lib.cli import commands
from tests.cli.terminal import Terminal
from tests.record import GULL, LIGHTHOUSES, call, write

EVIL_IDS = ["../outside", "..", ".", "", "/etc/passwd", "a/b", "a\\b", "C:\\x", "~root", "a\nb", "CON", "x" * 300]


# --- every command ---------------------------------------------------------------------------------------------------


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


def test_options_are_spelled_as_programs_of_their_kind_spell_them(terminal: Terminal) -> None:
    terminal.session("a")
    terminal.ok("tag", "a", "north", "cold")
    folder = str(terminal.folder)

    for one, other in (
        (
            ["list", "--tag", "north", "-t", "cold", "--dir", folder],
            ["list", "--tag=north", "-tcold", f"--dir={folder}"],
        ),
        (["show", "a", "--json"], ["show", "--json", "--", "a"]),
        (["search", "gull", "point"], ["search", "--", "gull", "point"]),
    ):
        assert terminal.ok(*one) == terminal.ok(*other) != ""


def test_listing_imports_no_streamlit_pandas_openai_or_pydantic(terminal: Terminal) -> None:
    terminal.session("a")
    code = (
        "import sys; sys.argv = ['forkbook', 'list']\n"
        "import atexit; atexit.register(lambda: print(sorted({m.split('.')[0] for m in sys.modules}), file=sys.stderr))\n"
        "from sessions_lib.cli import main; main()"
    )

    done = subprocess.run([sys.executable, "-c", code], env=terminal.env(), capture_output=True, text=True, check=True)

    imported = set(json.loads(done.stderr.splitlines()[-1].replace("'", '"')))
    assert "sessions_lib" in imported
    assert not imported & {"streamlit", "pandas", "openai", "httpx2", "pydantic", "numpy"}


# --- list and show ---------------------------------------------------------------------------------------------------


def test_an_empty_folder_is_said_to_be_empty_and_not_made(terminal: Terminal) -> None:
    done = terminal.run("list")

    assert (done.returncode, done.stdout) == (0, "")
    assert "0 sessions" in done.stderr
    assert "forkbook demo" in done.stderr
    assert not terminal.folder.exists()


def test_every_session_is_listed_however_many_and_the_total_is_said(terminal: Terminal) -> None:
    for number in range(250):
        text = ("needle" if number == 0 else "hay") + f" {number}"
        terminal.session(
            f"s{number:03}",
            {"role": "user", "content": text, "timestamp": f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z"},
        )

    done = terminal.run("list")

    assert [line.split()[0] for line in done.stdout.splitlines()[1:]] == [f"s{n:03}" for n in range(249, -1, -1)]
    assert "250 sessions" in done.stderr
    assert [hit["session"] for hit in terminal.records("search", "needle")] == ["s000"]


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_a_session_is_one_row_that_fits_the_terminal_whatever_its_title(terminal: Terminal, columns: str) -> None:
    terminal.session("a", {"role": "user", "content": "# File: tide.py\n\n```python\nprint(1)\n```\n| a | b |"})
    terminal.session("b", {"role": "user", "content": "北海道の灯台" * 40})
    terminal.ok("new", "line\none | two\x1b[31m\t" + "x" * 300, "--tag", "many words " * 5)

    rows = terminal.ok("list", COLUMNS=columns).splitlines()

    assert len(rows) == 4
    assert all(len(row) + sum(ord(char) > 0x2E80 for char in row) <= int(columns) for row in rows)


@pytest.mark.any_store
def test_filters_of_a_list_all_have_to_pass(terminal: Terminal) -> None:
    day = {"role": "user", "content": "x", "timestamp": "2026-08-28T12:00:00Z"}
    terminal.session("a", day)
    terminal.session("b", day)
    terminal.session("c", {**day, "timestamp": "2026-08-20T12:00:00Z"})
    for name in ("a", "c"):
        terminal.ok("tag", name, "Python")

    listed = terminal.records("list", "--tag", "python", "--date", "2026-08-28", TZ="UTC")

    assert [row["id"] for row in listed] == ["a"]
    assert listed[0]["tags"] == ["Python"]
    for far in ("0001-01-01", "0900-01-01", "9999-12-31"):
        assert terminal.records("list", "--date", far) == []
        assert terminal.records("search", f"on:{far}") == []
        assert terminal.run("stats", f"before:{far}").returncode == 0
    assert terminal.told("list", "--date", "soon") == "'soon' is not a day. Write it as 2026-08-28.\n"


@pytest.mark.any_store
def test_json_is_one_object_a_line_with_unknown_as_null(terminal: Terminal) -> None:
    terminal.session("a")

    (row,) = terminal.records("list")

    assert (row["id"], row["turns"], row["messages"], row["parent"]) == ("a", 1, 2, None)
    assert row["tokens"]["total"] is None


@pytest.mark.any_store
def test_a_session_is_found_by_the_start_of_its_id_and_by_its_title(terminal: Terminal) -> None:
    terminal.session("alpha-1")
    terminal.session("alpha-2")
    terminal.ok("new", "Project review")

    assert terminal.ok("show", "alpha-1").splitlines()[0] == "List the lighthouses on the north shore."
    assert terminal.ok("show", "project rev" + "iew").splitlines()[0] == "Project review"
    assert terminal.ok("show", "proj").splitlines()[0] == "Project review"
    assert "alpha-1, alpha-2" in terminal.told("show", "alpha")
    assert terminal.told("show", "beta") == "There is no session 'beta'. See: forkbook list\n"


@pytest.mark.any_store
def test_show_names_messages_calls_results_and_where_the_fork_was(terminal: Terminal) -> None:
    terminal.session("a", LIGHTHOUSES, call("c1"), {"role": "tool", "tool_call_id": "c1", "content": "2.1 m"}, GULL)
    terminal.ok("fork", "a", "--at", "3", "--id", "b")
    terminal.ok("chat", "b", "--once", "hello")

    shown = terminal.ok("show", "b")

    assert "turn 1 · message 1 · User\nList the lighthouses on the north shore." in shown
    assert '-> tide(port="Ember")' in shown
    assert "--- Forked from a inside turn 1 ---" in shown
    assert shown.index("2.1 m") < shown.index("--- Forked") < shown.rindex("hello")
    assert "lighthouses" not in terminal.ok("show", "b", "--last", "1").split("\n\n", 1)[1]


def test_damage_is_told_beside_the_data(terminal: Terminal) -> None:
    terminal.session("a", LIGHTHOUSES, '{"role": "assist')

    done = terminal.run("show", "a")

    assert done.returncode == 0
    assert "a.jsonl:2" in done.stderr
    assert "forkbook check a" in done.stderr
    assert terminal.told("check", "a").endswith("See: forkbook repair a\n")


def test_control_characters_that_were_stored_never_reach_the_terminal(terminal: Terminal) -> None:
    evil = "\x1b]0;owned\x07\x1b[2Jhello \x9b31m\x7f\u202e"
    file = terminal.session(
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
    terminal.session("a", {"role": "user", "content": "\x1b]0;owned\x07hello \x9b31m\u202e"})

    for arguments in (["export", "a", "--format", "json", "-o", "-"], ["show", "a"]):
        text = terminal.watched(*arguments)

        assert "hello" in text
        assert not set(text) & set("\x1b\x07\x9b\u202e")


# --- ids and folders -------------------------------------------------------------------------------------------------


@pytest.mark.any_store
@pytest.mark.parametrize("evil", EVIL_IDS)
def test_an_id_that_is_none_is_refused_everywhere_and_nothing_is_touched(terminal: Terminal, evil: str) -> None:
    terminal.session("ok")
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
    terminal.session("a", *({"role": "user", "content": f"{number} " * 400} for number in range(300)))

    done = subprocess.run(
        f"{' '.join(_quoted(terminal.command(program, 'show', 'a')))} | head -n 1",
        shell=True, env=terminal.env(), capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert "Error" not in done.stderr
    assert "Traceback" not in done.stderr


CLOSED = "<&- >&- 2>&-"


@pytest.mark.parametrize(
    ("arguments", "code", "closed"),
    [
        *(("list", 0, one) for one in CLOSED.split()),
        *(("delete a", 1, one) for one in CLOSED.split()),
        ("show a", 0, CLOSED),
        ("delete a", 1, CLOSED),
        ("chat a", 0, CLOSED),
        ("chat a --once hi", 0, CLOSED),
        ("search x", 0, CLOSED),
    ],
)
def test_streams_that_are_closed_are_empty_and_no_traceback(
    terminal: Terminal, arguments: str, code: int, closed: str
) -> None:
    terminal.session("a")

    line = f"{' '.join(_quoted(terminal.command('forkbook', *arguments.split())))} {closed}"
    done = subprocess.run(
        ["bash", "-c", line], env=terminal.env(), capture_output=True, text=True, stdin=subprocess.DEVNULL
    )

    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_a_full_disk_under_the_output_is_one_sentence(terminal: Terminal) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full on this system")
    terminal.session("a", *({"role": "user", "content": "word " * 2000} for _ in range(9)))

    for arguments in (["list"], ["show", "a"], ["export", "a", "-o", "-"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                terminal.command("forkbook", *arguments),
                env=terminal.env(),
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
            )
        assert done.returncode == 1, arguments
        assert "No space left on device" in done.stderr
        assert "Traceback" not in done.stderr


def test_an_empty_folder_name_is_not_the_default_folder(terminal: Terminal) -> None:
    terminal.session("a")

    assert "names no folder" in terminal.told("list", "--dir", "")
    assert "names no folder" in terminal.told("delete", "a", "--yes", "--dir", " ")


def _quoted(words: list[str | bytes]) -> list[str]:
    import shlex

    return [shlex.quote(str(word)) for word in words]


# --- a locale without UTF-8 ------------------------------------------------------------------------------------------

ASCII = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}


def test_a_locale_without_utf8_changes_no_file_and_breaks_no_output(terminal: Terminal) -> None:
    terminal.session("a", {"role": "user", "content": "Que horas às 北海道? 🌊"})

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
        (["fork", "a", "--title", "größe"], ""),
        (["export", "a", "--format", "html", "--family", "--output", "öut"], ""),
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
    assert 'href="gr%C3%B6%C3%9Fe.html"' in next(terminal.work.glob("öut/Que*.html")).read_text(encoding="utf-8")


# --- search ----------------------------------------------------------------------------------------------------------


@pytest.mark.any_store
@pytest.mark.parametrize(("query", "found"), [("", []), ("   ", []), ("x", ["a"])])
def test_a_blank_query_finds_nothing_and_one_letter_what_holds_it(
    terminal: Terminal, query: str, found: list[str]
) -> None:
    terminal.session("a", {"role": "user", "content": "xyz"})
    terminal.session("b", {"role": "user", "content": "abc"})

    assert [hit["session"] for hit in terminal.records("search", query)] == found


@pytest.mark.any_store
def test_hits_are_counted_and_limited(terminal: Terminal) -> None:
    terminal.session("a", *({"role": "user", "content": f"tide {number}"} for number in range(5)))

    assert "5 hits in 1 session" in terminal.run("search", "tide").stderr
    assert len(terminal.records("search", "tide", "--limit", "2")) == 2
    assert "is no filter" in terminal.run("search", "after:lunch").stderr


def test_a_query_that_finds_nothing_says_what_to_leave_out(terminal: Terminal) -> None:
    terminal.session("a", {"role": "user", "content": "tide"})
    terminal.session("b", {"role": "user", "content": "tide"})
    terminal.ok("tag", "b", "north")

    told = terminal.run("search", "tide", "tag:south").stderr.splitlines()

    assert told == ["0 hits in 0 sessions", "Without tag:south: 2 sessions"]
    assert terminal.run("search", "ebb").stderr.splitlines() == ["0 hits in 0 sessions"]


def test_a_search_names_what_could_not_be_read(terminal: Terminal) -> None:
    terminal.session("good", {"role": "user", "content": "needle"})
    assert "could be read" not in terminal.run("search", "needle").stderr
    terminal.session("bad", b'\xff\xfe{"role":')

    found = terminal.run("search", "needle")

    assert found.returncode == 0
    assert found.stdout.startswith("good turn 1")
    assert "Not all of it could be read and searched: bad. See: forkbook check bad" in found.stderr


def test_a_number_too_large_for_a_database_is_a_number_like_others(terminal: Terminal) -> None:
    terminal.session("a")

    assert terminal.ok("list", "--limit", str(10**30)).splitlines()[1].startswith("a ")
    assert terminal.ok("search", "gull", "--limit", str(10**30)).startswith("a turn 1")


def test_the_first_and_the_last_moment_of_the_calendar_are_shown_in_every_zone(terminal: Terminal) -> None:
    terminal.session("first", {**LIGHTHOUSES, "timestamp": "0001-01-01T00:00:00Z"})
    terminal.session("last", {**LIGHTHOUSES, "timestamp": "9999-12-31T23:59:59Z"})

    for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago"):
        for command in (
            ["list"],
            ["show", "first"],
            ["show", "last"],
            ["search", "lighthouses"],
            ["stats", "--by", "day"],
        ):
            assert terminal.run_fresh(*command, TZ=zone).returncode == 0, (command, zone)
