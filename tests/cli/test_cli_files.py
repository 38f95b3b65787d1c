"""Commands about files and numbers: export, check, repair, diff, import, stats, the demo."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import subprocess
import urllib.request
from pathlib import Path
from urllib.parse import unquote

import pytest

from sessions_lib.cli import look
from sessions_lib.export.export import export
from sessions_lib.store.folder.index import fulltext
from sessions_lib.store.folder.index.catalog import Catalog
from sessions_lib.store.manager import SessionManager
from tests.cli.terminal import Terminal
from tests.importers.files import claude, spent, text
from tests.record import GULL, LIGHTHOUSES, write

# --- export, check, repair -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("format", "extension"),
    [("md", "md"), ("markdown", "md"), ("json", "json"), ("html", "html"), ("jsonl", "jsonl"), ("finetune", "jsonl")],
)
def test_an_export_without_a_name_is_a_new_file_here_with_a_valid_name(
    terminal: Terminal, format: str, extension: str
) -> None:
    terminal.session("a")
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
    terminal.session("a", {"role": "user", "content": "write to ana@example.org about project Heron"})

    shared = terminal.run("export", "a", "-o", "-")

    assert "ana@example.org" not in shared.stdout
    assert "e-mail address (1x)" in shared.stderr
    assert "ana@example.org" not in shared.stderr
    assert "ana@example.org" in terminal.ok("export", "a", "-o", "-", "--no-redact")
    assert "ana@example.org" in terminal.ok("export", "a", "-o", "-", "--format", "json")
    assert "ana@example.org" not in terminal.ok("export", "a", "-o", "-", "--format", "json", "--redact")
    assert "Heron" not in terminal.ok("export", "a", "-o", "-", "--pattern", "Her[o]n")


def test_web_pages_of_one_call_link_to_each_other_and_none_to_what_is_not_there(terminal: Terminal) -> None:
    manager = SessionManager(terminal.folder)
    root = manager.create("Tides? & ports", session_id="root")
    root.extend([LIGHTHOUSES, GULL])
    root.fork("child", title="Tides? & ports").fork("grandchild", title="Third")

    both = terminal.ok("export", "root", "child", "--format", "html", "-o", "pages").splitlines()
    alone = terminal.ok("export", "root", "--format", "html", "-o", "-")
    whole = terminal.ok("export", "child", "--family", "--format", "html", "-o", "all").splitlines()

    assert [Path(name).name for name in both] == ["Tides & ports.html", "Tides & ports (2).html"]
    pages = [(terminal.work / name).read_text(encoding="utf-8") for name in both]
    assert 'href="Tides%20%26%20ports%20%282%29.html"' in pages[0]
    assert 'href="Tides%20%26%20ports.html"' in pages[1]
    assert all("Third" in page and "Third.html" not in page for page in pages)
    assert "Third" in alone
    assert ".html" not in alone
    assert sorted(Path(name).name for name in whole) == ["Third.html", "Tides & ports (2).html", "Tides & ports.html"]
    links = re.findall(r'href="([^#"]+)"', (terminal.work / "all" / "Third.html").read_text(encoding="utf-8"))
    assert sorted(map(unquote, links)) == ["Tides & ports (2).html", "Tides & ports.html"]


def test_several_sessions_go_into_new_files_of_a_folder(terminal: Terminal) -> None:
    terminal.session("a")
    terminal.session("b")

    first = terminal.ok("export", "a", "b", "-o", "out", "--format", "json").splitlines()
    second = terminal.ok("export", "a", "b", "-o", "out", "--format", "json").splitlines()

    assert len({*first, *second}) == 4
    assert (terminal.work / "out").stat().st_mode & 0o777 == 0o700
    assert terminal.run("export", "a", "b", "-o", "-").returncode == 2


@pytest.mark.any_store
def test_check_counts_and_repair_writes_only_when_told(terminal: Terminal) -> None:
    file = terminal.session("a", LIGHTHOUSES, '{"role": "assist')
    terminal.session("b")
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


# --- diff, import, demo ----------------------------------------------------------------------------------------------


@pytest.mark.any_store
def test_one_session_is_compared_with_its_parent(terminal: Terminal) -> None:
    terminal.session("a")
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


def test_a_dry_run_says_what_claude_code_spent(terminal: Terminal) -> None:
    asked = claude("user", "u", None, "hello")
    answer = claude("assistant", "a", "u", text("hi"), usage=spent(1_000, 234, read=500))
    advice = {"iterations": [{"type": "advisor_message", "model": "m-2", **spent(2_000, 100)}]}
    advised = claude("assistant", "b", "a", text("hi"), usage={**spent(10, 5), **advice})
    write(terminal.work / "in" / "s1.jsonl", asked, answer)
    write(terminal.work / "advised" / "s2.jsonl", asked, answer, advised)

    assert "1,734 tokens in 1 answer: 1,500 in, 234 out" in terminal.run("import", "in", "--dry-run").stderr
    assert "By model: m-2 2,100, m-1 1,749." in terminal.run("import", "advised", "--dry-run").stderr
    assert "Claude Code reports" not in terminal.run("import", "in").stderr


@pytest.mark.any_store
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


@pytest.mark.any_store
def test_the_demo_comes_and_goes_and_leaves_the_rest(terminal: Terminal) -> None:
    terminal.session("mine")

    made = terminal.ok("demo").splitlines()
    assert "quest-1" in made
    assert terminal.ok("demo") == ""
    assert sorted(terminal.ok("demo", "--remove").splitlines()) == sorted(made)
    assert [row["id"] for row in terminal.records("list")] == ["mine"]


# --- stats and the app -----------------------------------------------------------------------------------------------


@pytest.mark.any_store
def test_tokens_are_counted_once_however_many_forks_hold_them(terminal: Terminal) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14}
    terminal.session("a", LIGHTHOUSES, {**GULL, "id": "m1", "model": "tiny", "usage": usage})
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


def test_a_list_shows_what_each_session_spent_itself(terminal: Terminal) -> None:
    terminal.session("a", LIGHTHOUSES, {**GULL, "usage": {"prompt_tokens": 30, "completion_tokens": 4}})
    terminal.ok("fork", "a", "--id", "b")

    shown = {line.split()[0]: line for line in terminal.ok("list").splitlines()}

    assert " 34 " in shown["a"]
    assert " 34 " not in shown["b"]
    assert " 0 " in shown["b"]


def test_the_demo_opens_the_app_on_a_folder_of_its_own_that_goes_with_it(terminal: Terminal) -> None:
    terminal.session("mine")
    before = terminal.files()
    app = subprocess.Popen(
        terminal.command("forkbook", "demo", "--open"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env=terminal.env(TMPDIR=str(terminal.home)), text=True,
    )  # fmt: skip
    assert app.stdout is not None
    try:
        address = next((line.strip() for line in app.stdout if line.startswith("http://localhost:")), "")
        with urllib.request.urlopen(f"{address.replace('localhost', '127.0.0.1')}_stcore/health", timeout=60) as page:
            answer = page.read().decode()
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


# --- index -----------------------------------------------------------------------------------------------------------


def test_index_makes_everything_searchable_at_once(terminal: Terminal) -> None:
    terminal.session("a")
    terminal.session("b")

    done = terminal.run("index")

    assert (done.returncode, done.stdout) == (0, "")
    assert "2 sessions" in done.stderr
    assert Catalog(terminal.folder).unindexed_bytes() == 0


def test_index_of_a_folder_that_is_not_there_makes_none(terminal: Terminal) -> None:
    assert "0 sessions" in terminal.run("index").stderr
    assert not terminal.folder.exists()


def test_index_says_where_none_can_be_kept(terminal: Terminal) -> None:
    terminal.session("a")
    (terminal.folder / ".catalog.sqlite").mkdir()
    (terminal.folder / ".catalog.sqlite" / "something").touch()

    done = terminal.run("index")

    assert done.returncode == 1
    assert "no index can be kept" in done.stderr
    assert "a turn" in terminal.ok("search", "gull")


def test_a_search_says_how_much_it_read_without_an_index(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal.session("a")
    monkeypatch.setattr(look, "WORTH_INDEXING", 0)

    def search() -> None:
        look.search.main(["gull", "--dir", str(terminal.folder)], standalone_mode=False)

    with monkeypatch.context() as without_time:
        without_time.setattr(fulltext, "index", lambda *_, **__: None)
        search()
    before = capsys.readouterr()
    terminal.ok("index")
    search()
    after = capsys.readouterr()

    assert "forkbook index" in before.err
    assert "forkbook index" not in after.err
    assert before.out == after.out != ""


def test_check_tells_what_others_can_read(terminal: Terminal) -> None:
    terminal.session("a")
    terminal.folder.chmod(0o755)
    (terminal.folder / "a.jsonl").chmod(0o644)

    told = terminal.run("check").stderr

    assert "1 file can be read by others on this machine: a.jsonl. To close them: chmod 600" in told
