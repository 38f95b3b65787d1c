"""Faults that other programs had in the field, by kind: every case of the set beside the project is replayed.

What a case says of the record, of imports, forks, merges, searches, numbers and exports is checked here, each with
values typed in by hand. Every case with files is also read, listed, searched, exported and sent, whatever its kind.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
from collections.abc import Callable
from datetime import UTC
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from sessions_lib import SessionManager, importers, messages, stats
from sessions_lib.compare import comparison
from sessions_lib.errors import SessionError
from sessions_lib.messages import content, usage
from sessions_lib.messages.request import from_summary, user_first
from tests.importers.files import CORPUS
from tests.model_server import problems

CASES = CORPUS.parent / "cases" / "cases.jsonl"


def cases() -> dict[str, dict[str, Any]]:
    if not CASES.exists():
        return {}
    read = [json.loads(line) for line in CASES.read_text(encoding="utf-8").split("\n") if line]
    return {case["id"]: case for case in read}


READ = cases()


class Folder:
    """The files of a case: ours in a folder of sessions, the others beside it."""

    def __init__(self, place: Path, case: dict[str, Any]) -> None:
        self.place, self.manager = place, SessionManager(place / "store")
        self.manager.folder.mkdir(exist_ok=True)
        for file in case["input"].get("files") or ():
            if not isinstance(file, dict) or not ("text" in file or "b64" in file):
                continue
            path = self.of(file["path"])
            if file["path"].endswith("/"):
                path.mkdir(parents=True)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            raw = base64.b64decode(file["b64"]) if "b64" in file else file["text"].encode("utf-8", "surrogatepass")
            path.write_bytes(raw)

    def of(self, name: str) -> Path:
        return (self.place if name.startswith("in/") else self.manager.folder) / name

    def bytes(self, name: str = "a.jsonl") -> bytes:
        return self.of(name).read_bytes()

    def load(self, session: str = "a") -> Any:
        return self.manager.open(session)

    def said(self, session: str = "a") -> list[Any]:
        return [message.get("content") for message in self.load(session).messages]

    def request(self, session: str = "a") -> list[dict[str, Any]]:
        """What the next prompt would be sent with; the strictest server takes it."""
        stored = self.load(session).messages
        asked = messages.for_request([*stored, {"role": "user", "content": "And now?"}])
        assert problems(user_first(asked)) == []
        return messages.for_request(stored)

    def damaged(self, session: str = "a") -> list[int]:
        return [one.line for one in self.load(session).report.damaged]

    def add(self, session: str, text: str, role: str = "user", **more: Any) -> None:
        self.load(session).append({"role": role, "content": text, **more})

    def export(self, session: str = "a", format: str = "markdown", **options: Any) -> str:
        path = self.place / f"{session}.{format}"
        self.load(session).export(path, format, **options)
        return path.read_text(encoding="utf-8")

    def bring(self, name: str = "in") -> list[Any]:
        """Import what lies under ``name``; what was imported and is no longer new gives nothing more."""
        steps = list(importers.import_paths(self.manager, [self.place / name]))
        again = list(importers.import_paths(self.manager, [self.place / name]))
        assert sum(step.result.added_messages for step in again if step.result) == 0
        return steps

    def total(self) -> int | None:
        return stats.figures(self.manager.catalog).tokens.total


CHECKS: dict[str, Callable[[Folder], None]] = {}


def check(*ids: str) -> Callable[[Callable[[Folder], None]], Callable[[Folder], None]]:
    def keep(function: Callable[[Folder], None]) -> Callable[[Folder], None]:
        CHECKS.update(dict.fromkeys(ids, function))
        return function

    return keep


@pytest.mark.parametrize("name", [pytest.param(name, id=name) for name in READ] or ["none"])
def test_a_case_with_files_is_read_listed_searched_exported_and_sent(tmp_path: Path, name: str) -> None:
    if name not in READ:
        pytest.fail("the cases are not there") if os.environ.get("CI") else pytest.skip("the cases are not there")
    folder = Folder(tmp_path, READ[name])
    before = {path: path.read_bytes() for path in folder.manager.folder.glob("*.jsonl") if path.is_file()}

    infos = folder.manager.list()
    folder.manager.search("the")
    stats.figures(folder.manager.catalog)
    for info in infos:
        folder.request(info.id)
        for format in ("markdown", "html", "json"):
            folder.export(info.id, format).encode("utf-8")

    assert {path: path.read_bytes() for path in before} == before
    if (tmp_path / "in").exists():
        folder.bring()
        for info in folder.manager.list():
            folder.request(info.id)


# --- torn or corrupt lines ----------------------------------------------------------------------------------------------


@check("TORN-01")
def torn_tail(f: Folder) -> None:
    before = f.bytes()
    assert f.said()[-1] == "Gull Point and Cape Ember."
    assert (len(f.request()), f.damaged(), [i.id for i in f.manager.list()]) == (2, [3], ["a"])
    assert f.bytes() == before


@check("TORN-02")
def torn_then_written(f: Folder) -> None:
    before = f.bytes()
    f.add("a", "Again: which is taller?")
    assert (len(f.said()), f.said()[-1], len(f.damaged())) == (3, "Again: which is taller?", 1)
    assert f.bytes().startswith(before)


@check("TORN-04")
def torn_middle(f: Folder) -> None:
    assert (len(f.said()), f.said()[-1], f.damaged()) == (4, "Obrigado.", [2])


@check("TORN-07")
def glued(f: Folder) -> None:
    assert f.said()[0] == "List the lighthouses on the north shore."
    assert f.said()[-1] == "Cape Ember, by six metres."
    assert len(f.said()) == 4 or f.damaged() == [2]


@check("TORN-09")
def no_messages(f: Folder) -> None:
    assert (len(f.said()), f.damaged()) == (2, [4, 5, 6, 7, 8, 9, 10])
    assert [hit.session for hit in f.manager.search("Gull")] == ["a"]


@check("TORN-10")
def torn_first(f: Folder) -> None:
    (info,) = f.manager.list()
    assert (info.messages, info.damaged, f.damaged(), info.title) == (2, 1, [1], "Which one is taller?")


@check("TORN-11")
def damaged_metadata(f: Folder) -> None:
    infos = {info.id: info for info in f.manager.list()}
    assert {"torn": 2, "none": 1, "stale": 3}.items() <= {name: i.messages for name, i in infos.items()}.items()
    assert (len(infos), infos["stale"].tags) == (4, ("mar",))
    raw = f.bytes("torn.meta.json")
    f.load("torn").add_tag("x")
    assert json.loads(f.bytes("torn.meta.json"))["tags"] == ["x"]
    assert any(path.read_bytes() == raw for path in (f.manager.folder / ".trash").rglob("*") if path.is_file())


# --- encoding -----------------------------------------------------------------------------------------------------------


@check("ENC-01")
def line_separators(f: Folder) -> None:
    said = "before\u2028after\u0085end\u2029."
    assert (len(f.said()), f.said()[1], f.damaged()) == (2, said, [])
    assert f.manager.search("after")
    assert json.loads(f.export(format="json"))["messages"][1]["content"] == said


@check("ENC-02")
def half_emoji(f: Folder) -> None:
    assert len(f.said()) == 4
    assert json.dumps(f.request(), ensure_ascii=False).encode("utf-8")
    assert f.export()
    assert f.manager.search("key")


@check("ENC-04")
def byte_order_mark(f: Folder) -> None:
    assert (f.load().messages[0]["role"], len(f.said()), f.damaged()) == ("user", 2, [])
    assert {info.id for info in f.manager.list()} == {"a", "b"}
    f.add("a", "x")
    assert (len(f.said()), b"\xef\xbb\xbf" in f.bytes()[3:]) == (3, False)


@check("ENC-07")
def one_bad_byte(f: Folder) -> None:
    assert {"List the lighthouses on the north shore.", "Which one is taller?"} <= set(f.said())
    assert f.damaged() == [2]
    assert [hit.session for hit in f.manager.search("taller")] == ["a"]


@check("ENC-10")
def escape_codes(f: Folder) -> None:
    said = f.said()[0]
    assert json.loads(f.export(format="json"))["messages"][0]["content"] == said
    assert not set("\x1b\x07\x9b") & set(f.manager.list()[0].title + f.export())


@check("ENC-11")
def not_a_number(f: Folder) -> None:
    session = f.manager.create("n")
    session.append({"role": "user", "content": "q"})
    message = {"role": "tool", "tool_call_id": "c1", "content": "ok", "metadata": {"score": float("nan")}}
    with contextlib.suppress(ValueError):
        session.append(message)
    for line in (f.manager.folder / f"{session.id}.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=lambda name: pytest.fail(name))


# --- dangling tool calls ------------------------------------------------------------------------------------------------


@check("TOOL-01", "TOOL-10")
def unanswered(f: Folder) -> None:
    before = f.bytes()
    for _ in range(3):
        calls = [call["id"] for m in f.request() for call in m.get("tool_calls", ())]
        assert [m["tool_call_id"] for m in f.request() if m["role"] == "tool"] == calls
        assert len(calls) == 1
    assert f.bytes() == before
    f.add("a", "Still there?")
    assert [m["role"] for m in f.request()] == ["user", "assistant", "tool", "user"]


@check("TOOL-02")
def one_of_three(f: Folder) -> None:
    calls = [call["id"] for m in f.request() for call in m.get("tool_calls", ())]
    answers = {m["tool_call_id"]: m["content"] for m in f.request() if m["role"] == "tool"}
    assert (list(answers), answers[calls[1]]) == (calls, "2.4 m")
    assert "2.4 m" not in (answers[calls[0]], answers[calls[2]])


@check("TOOL-05")
def orphan(f: Folder) -> None:
    assert not [m for m in f.request() if m["role"] == "tool"]
    assert [m for m in f.load().messages if m["role"] == "tool"]


@check("TOOL-06")
def twice(f: Folder) -> None:
    assert [m["content"] for m in f.request() if m["role"] == "tool"] == ["42 boats"]


@check("TOOL-09")
def broken_arguments(f: Folder) -> None:
    calls = [call for m in f.request() for call in m.get("tool_calls", ())]
    assert all(isinstance(json.loads(call["function"]["arguments"]), dict) for call in calls)
    assert "notes/tide" in f.export()


@check("TOOL-11")
def null_content(f: Folder) -> None:
    assert len(f.said()) == 6
    assert f.manager.search("None") == []
    assert "None" not in f.export()
    assert f.request()[1]["content"] is None


@check("TOOL-13")
def parts(f: Folder) -> None:
    assert f.manager.search("gulls")
    assert "two gulls" in f.export()


# --- odd ids ------------------------------------------------------------------------------------------------------------


@check("PATH-01")
def ids_that_lead_outside(f: Folder) -> None:
    outside = f.place / "outside.jsonl"
    outside.write_text('{"role":"user","content":"o"}\n')
    f.manager.create("ok").append({"role": "user", "content": "q"})
    for name in ("../outside", "..", ".", "", "/etc/passwd", "a/b", "a\\b", "C:\\x", "a\x00b", "~root", "a\nb"):
        for act in (f.manager.open, f.manager.delete):
            with pytest.raises(SessionError):
                act(name)
        with pytest.raises(SessionError):
            f.manager.fork("ok", name) if name else f.manager.open(name)
    assert outside.read_text() == '{"role":"user","content":"o"}\n'


@check("PATH-06")
def odd_titles(f: Folder) -> None:
    titles = ("CON", "nul.txt", "a:b?c*", "ends with dot.", "x" * 300, "é" * 300, ".hidden", "-rf", "\u202etxt.exe")
    for title in titles:
        session = f.manager.create(title)
        session.append({"role": "user", "content": "q"})
        assert session.title == title
        assert len(f"{session.id}.meta.json".encode()) <= 255
        assert session.id[0] not in "-."
        assert f.export(session.id)


@check("PATH-07")
def title_in_one_line(f: Folder) -> None:
    title = f.manager.list()[0].title
    assert not set("\n\r\t\x1b") & set(title)
    assert len(title) <= 200


# --- forks and merges ---------------------------------------------------------------------------------------------------


@check("FORK-01")
def cut_between_calls(f: Folder) -> None:
    before = f.bytes()
    for name, at in (("b", 2), ("c", 3)):
        try:
            f.load().fork(name, at)
        except SessionError:
            continue
        f.request(name)
    assert f.bytes() == before


@check("FORK-04")
def nothing_shared(f: Folder) -> None:
    before, tags, title = f.bytes(), f.load().tags, f.load().title
    child = f.load().fork("b")
    child.append({"role": "user", "content": "more"})
    child.add_tag("x")
    child.rename("other")
    f.manager.delete("b")
    assert (f.bytes(), f.load().tags, f.load().title) == (before, tags, title)


@check("FORK-05")
def a_chain(f: Folder) -> None:
    f.load().fork("b", 2)
    f.load("b").fork("c")
    f.add("c", "Hills then.")
    f.load("c").fork("d")
    assert [len(f.said(name)) for name in "cd"] == [3, 3]
    assert [f.load(name).parent for name in "dcb"] == ["c", "b", "a"]


@check("FORK-06")
def without_its_parent(f: Folder) -> None:
    f.load().fork("b")
    f.load("b").fork("c")
    f.manager.delete("a")
    assert {info.id for info in f.manager.list()} == {"b", "c"}
    f.manager.delete("b")
    assert len(f.said("c")) == 4


@check("FORK-07", "FORK-08")
def never_onto_another(f: Folder) -> None:
    before = f.bytes()
    there = "b" if f.of("b.jsonl").exists() else "a"
    with pytest.raises(SessionError):
        f.load().fork(there)
    first, second = f.load().fork(), f.load().fork()
    first.append({"role": "user", "content": "only in fork"})
    assert len({"a", first.id, second.id}) == 3
    assert f.bytes() == before


@check("FORK-10")
def times_are_kept(f: Folder) -> None:
    f.load().fork("b")
    times = [[m.get("timestamp") for m in f.load(name).messages] for name in "ab"]
    assert times[0] == times[1]


@check("FORK-12")
def key_order_is_no_difference(f: Folder) -> None:
    shared = comparison.shared_start([f.load(name).messages for name in "ab"])
    assert shared.messages == 2


def merged(f: Folder, *names: str) -> list[Any]:
    copy = f.load(names[0]).fork("m" + names[1])
    for name in names[1:]:
        copy.merge(f.load(name))
    return [message["content"] for message in copy.messages]


@check("MERGE-01")
def zones(f: Folder) -> None:
    assert merged(f, "a", "b", "c") == ["A1", "C1", "B1", "B2", "A2"]


@check("MERGE-03")
def without_times(f: Folder) -> None:
    assert merged(f, "a", "b") == ["A1", "A2", "B1", "A3"]
    together = merged(f, "a", "n")
    assert together.index("N2") == together.index("N1") + 1


@check("MERGE-05")
def shared_once(f: Folder) -> None:
    assert len(merged(f, "a", "b")) == 6


@check("MERGE-08")
def never_reversed(f: Folder) -> None:
    assert merged(f, "a", "b") == ["A1", "A2", "B1", "A3"]


# --- tokens -------------------------------------------------------------------------------------------------------------


@check("USE-01")
def one_answer_in_three_lines(f: Folder) -> None:
    f.bring()
    assert f.total() == 15124
    (info,) = f.manager.list()
    assert [m["role"] for m in f.load(info.id).messages].count("assistant") == 1


@check("USE-04")
def forks_count_once(f: Folder) -> None:
    f.load().fork("b")
    f.add("b", "q2")
    f.add("b", "r2", "assistant", usage={"prompt_tokens": 40, "completion_tokens": 10, "total_tokens": 50})
    f.load("b").fork("c")
    infos = {info.id: info for info in f.manager.list()}
    assert f.total() == 150
    assert [infos[name].tokens.total for name in "abc"] == [100, 150, 150]
    assert infos["b"].own_tokens.total == 50
    assert not infos["c"].own_tokens.total


@check("USE-05")
def cumulative(f: Folder) -> None:
    found, _ = importers.read(f.of("in/rollout.jsonl"))
    assert usage.total(m for one in found for m in one.messages).total == 180
    (step,) = f.bring()
    assert step.error  # not a word was said
    assert f.manager.list() == []


@check("USE-06")
def the_same_meaning(f: Folder) -> None:
    f.bring()
    for info in f.manager.list():
        total = usage.total(f.load(info.id).messages)
        assert (total.input, total.cached, total.output, total.total) == (1000, 800, 50, 1050)


@check("USE-07")
def odd_counts(f: Folder) -> None:
    assert f.total() in (42, 27)


@check("USE-09")
def results_are_no_turns(f: Folder) -> None:
    f.bring()
    (info,) = f.manager.list()
    assert info.turns == 2
    roles = ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert [m["role"] for m in f.load(info.id).messages] == roles


# --- search, tags, dates ------------------------------------------------------------------------------------------------


@check("SRCH-01")
def case_is_folded(f: Folder) -> None:
    for query in ("london", "LONDON", "London", "STRASSE"):
        assert [hit.session for hit in f.manager.search(query)] == ["a"], query


@check("SRCH-04")
def keys_are_no_text(f: Folder) -> None:
    for query in ("role", "content", "tool_call_id", "function", "null"):
        assert f.manager.search(query) == [], query


@check("SRCH-08")
def blank_queries(f: Folder) -> None:
    assert (f.manager.search(""), f.manager.search("   ")) == ([], [])
    assert [hit.session for hit in f.manager.search("x")] == ["a"]


@check("SRCH-10")
def a_bad_file_among_them(f: Folder) -> None:
    assert [hit.session for hit in f.manager.search("needle")] == ["a"]
    assert next(info for info in f.manager.list() if info.id == "bad").damaged


@check("SRCH-11")
def tags(f: Folder) -> None:
    f.load("a").add_tag("  Python ")
    f.load("a").add_tag("python")
    f.load("b").add_tag("résumé, café #1")
    with pytest.raises((SessionError, ValueError)):
        f.load("b").add_tag("")
    assert [info.id for info in f.manager.find_by_tag("PYTHON")] == ["a"]
    assert (len(f.load("a").tags), f.load("b").tags) == (1, ["résumé, café #1"])
    f.manager.delete("b")
    assert len(f.manager.tags()) == 1


@check("DATE-01")
def days_of_a_zone(f: Folder) -> None:
    for zone, first, second in ((ZoneInfo("America/Sao_Paulo"), 2, 0), (UTC, 0, 2)):
        assert len(f.manager.find_by_date("2026-03-01", zone)) == first
        assert len(f.manager.find_by_date("2026-03-02", zone)) == second


@check("DATE-03")
def by_what_was_said(f: Folder) -> None:
    f.of("s2.jsonl").touch()
    f.load("s2").add_tag("x")
    f.load("s2").rename("again")
    assert [info.id for info in f.manager.list()] == ["s1", "s2"]


@check("MERGE-09")
def five_spellings_of_a_time(f: Folder) -> None:
    assert [info.id for info in f.manager.find_by_date("2026-03-01", UTC)] == ["a"]
    assert {str(m)[:10] for m in messages.effective_times(f.load().messages)} == {"2026-03-01"}


@check("DATE-05")
def last_active(f: Folder) -> None:
    created = f.manager.info("a").created
    f.add("a", "r", "assistant", timestamp="2026-03-05T12:00:00Z")
    info = f.manager.info("a")
    assert str(info.last_active)[:16] == "2026-03-05 12:00"
    assert info.created == created


# --- exports and imports ------------------------------------------------------------------------------------------------


@check("XPRT-06")
def round_trip(f: Folder) -> None:
    path = f.place / "a.json"
    f.load().export(path, "json")
    list(importers.import_paths(f.manager, [path]))
    other = next(info.id for info in f.manager.list() if info.id != "a")
    assert f.load(other).messages == f.load().messages


@check("XPRT-07")
def no_base64(f: Folder) -> None:
    assert max(map(len, f.export().split())) < 300


def one(f: Folder) -> list[Any]:
    f.bring()
    (info,) = f.manager.list()
    return [m for m in f.load(info.id).messages if m.get("content") or m.get("tool_calls")]


@check("IMPT-01")
def the_main_line(f: Folder) -> None:
    f.bring()
    main = [info for info in f.manager.list() if "sub-agent" not in info.tags]
    assert len(main) == 1
    assert [content.text(m) for m in f.load(main[0].id).messages][-1] == "2.1 metres."
    assert main[0].messages == 2


@check("IMPT-03")
def a_gap(f: Folder) -> None:
    steps = f.bring()
    (info,) = f.manager.list()
    assert [content.text(m) for m in f.load(info.id).messages] == ["q1", "r1", "q2", "r2"]
    assert any(step.result.report.warnings for step in steps if step.result)


@check("IMPT-04")
def injected_texts(f: Folder) -> None:
    assert [m["role"] for m in one(f)] == ["user", "assistant", "tool", "assistant"]
    assert f.manager.list()[0].turns == 1


@check("IMPT-06")
def branches(f: Folder) -> None:
    f.bring()
    main = next(info for info in f.manager.list() if not info.parent)
    assert len(f.load(main.id).messages) == 4
    assert "Blue." not in [content.text(m) for m in f.load(main.id).messages]
    assert f.manager.search("Blue")


@check("IMPT-09")
def other_files(f: Folder) -> None:
    empty = f.place / "in/folder"
    empty.mkdir()
    names = ("in/empty.jsonl", "in/array.json", "in/text.txt", "in/folder", "in/missing")
    wrong = list(importers.import_paths(f.manager, [f.of("in/claude.jsonl")], "codex"))
    steps = [*wrong, *importers.import_paths(f.manager, [f.place / name for name in names])]
    assert all(step.error for step in steps)
    assert f.manager.list() == []


@check("FLD-05")
def the_screen_of_codex(f: Folder) -> None:
    said = one(f)
    assert [m["role"] for m in said] == ["user", "assistant"] * 2
    assert [m["usage"]["total_tokens"] for m in said if m["role"] == "assistant"] == [110, 135]
    assert f.manager.search("ferry")


@check("FLD-06")
def start_blocks(f: Folder) -> None:
    f.bring()
    for info in f.manager.list():
        assert (info.messages, info.turns, info.title) == (2, 1, "Is the ferry to Ember running?")


@check("FLD-11")
def an_unused_parent(f: Folder) -> None:
    steps = f.bring()
    assert f.total() == 55
    assert sum(step.error is not None for step in steps) == 1


@check("FLD-12")
def advisors(f: Folder) -> None:
    f.bring()
    by_model = stats.by_model(f.manager.catalog)
    assert sorted(int(total) for total in by_model["total"]) == [15780, 21293]


@check("FLD-13")
def forks_of_forks(f: Folder) -> None:
    f.bring("in/codex-c")
    assert f.total() == 3470
    assert sorted(info.inherited for info in f.manager.list()) == [0, 2, 4]


@check("FLD-16")
def titles_of_forks(f: Folder) -> None:
    session = f.manager.create("Refactor auth", tags=["sprint"])
    for text in ("q", "r"):
        session.append({"role": "user" if text == "q" else "assistant", "content": text})
    for _ in range(3):
        session = session.fork()
    assert (session.tags, session.title.count("·")) == (["sprint"], 1)
    assert session.title.startswith("Refactor auth")


@check("TOOL-12")
def windows_of_a_history(f: Folder) -> None:
    stored = f.load().messages
    for start in range(len(stored)):
        asked = messages.for_request([*stored[start:], {"role": "user", "content": "And now?"}])
        assert problems(user_first(asked)) == []


@check("PATH-08")
def what_is_no_session(f: Folder) -> None:
    assert [info.id for info in f.manager.list() if info.messages] == ["ok"]
    assert [hit.session for hit in f.manager.search("north")] == ["ok"]


@check("SRCH-03")
def literal_queries(f: Folder) -> None:
    queries = (
        "foo(",
        "src/main.py",
        "C++",
        "[a-z",
        "50%",
        "*",
        "a.b",
        "\\d",
        "don't",
        "$5",
        "@example.org",
        "#123",
        "ok?",
    )
    for query in queries:
        found = {hit.session for hit in f.manager.search(query)}
        assert "a" in found, query
        assert query not in ("a.b", "\\d") or "b" not in found, query


@check("XPRT-01")
def fences(f: Folder) -> None:
    from markdown_it import MarkdownIt

    result = f.load().messages[2]["content"]
    blocks = [t.content for t in MarkdownIt().parse(f.export()) if t.type in ("fence", "code_block")]
    assert sum(block.strip("\n") == result for block in blocks) == 1
    assert not any("Done." in block for block in blocks)


@check("FLD-02", "FLD-19")
def one_system_message_and_a_compaction(f: Folder) -> None:
    f.bring()
    for info in f.manager.list():
        stored = f.load(info.id).messages
        asked = messages.for_request(from_summary([*stored, {"role": "user", "content": "And now?"}]))
        assert problems(user_first(asked)) == []
        assert [m["role"] for m in asked[1:]].count("system") == 0
        assert any("OLD-SECRET-PLAN" in content.text(m) for m in stored)
        assert not any("OLD-SECRET-PLAN OLD-SECRET-PLAN" in content.text(m) for m in asked)


@check("FLD-03")
def call_ids_that_all_take(f: Folder) -> None:
    for name in "abc":
        first, again = f.request(name), f.request(name)
        called = [call["id"] for m in first for call in m.get("tool_calls", ())]
        assert [m["tool_call_id"] for m in first if m["role"] == "tool"] == called
        assert all(len(one) == 9 and one.isalnum() for one in called)
        assert first == again


@check("FLD-10")
def agents_of_agents(f: Folder) -> None:
    f.bring()
    agents = [f.load(info.id).meta["subagent_of"] for info in f.manager.list() if "sub-agent" in info.tags]
    assert {"toolu_wf", "toolu_d2"} <= {agent.get("tool_call_id") for agent in agents}
    assert all("session" in agent for agent in agents)


@check("FLD-17")
def an_extra_turn_stands_alone(f: Folder) -> None:
    branches = [comparison.Branch.of(f.load(name)) for name in ("ma", "mc")]
    rows = comparison.compare(branches).rows
    both = [row for row in rows if all(turn is not None for turn in row.turns)]
    assert (len(both), len(rows) - len(both)) == (3, 1)


@pytest.mark.parametrize("name", [name for name in READ if name in CHECKS])
def test_a_case_is_what_it_says(tmp_path: Path, name: str) -> None:
    CHECKS[name](Folder(tmp_path, READ[name]))


# --- pages, processes and providers: the tests that replay them, there ----------------------------------------------------

HELD = {
    "ENC-09": "cli/test_cli.py::test_a_locale_without_utf8_changes_no_file_and_breaks_no_output",
    "TOOL-14": "agent/test_agent.py::test_a_result_that_could_not_be_stored_is_an_error_and_the_tool_never_runs_again",
    "CONC-01": "test_crash.py::test_eight_processes_append_and_no_line_is_lost_or_interleaved",
    "CONC-03": "test_crash.py::test_the_lock_of_a_killed_process_is_gone_with_it",
    "CONC-05": "test_crash.py::test_tags_added_by_two_processes_all_survive_and_readers_never_see_half_a_file",
    "CONC-07": "store/test_session.py::test_twenty_threads_write_the_first_messages_of_a_new_session",
    "CONC-08": "store/test_session.py::test_a_line_finished_by_its_writer_is_read_whole_afterwards",
    "PATH-04": "store/test_session.py::test_a_link_in_the_folder_leads_no_read_write_or_delete_outside",
    "SRCH-09": "pages/test_sessions.py::test_all_of_250_sessions_are_reached_by_pages_and_the_total_is_told",
    "XPRT-04": "export/test_export_markdown.py::test_a_prompt_cannot_forge_messages_front_matter_or_links",
    "XPRT-05": "export/test_export_markdown.py::test_nothing_from_a_session_is_live_where_raw_html_is",
    "XPRT-10": "browser/test_dialogs.py::test_the_export_of_one_session_is_downloaded",
    "BIG-02": "store/folder/test_scan.py::test_a_very_long_line_hides_nothing_behind_it",
    "BIG-03": "store/folder/test_catalog.py::test_reopening_reads_no_session_again",
    "BIG-05": "browser/test_chat.py::test_5000_messages_open_with_little_more_than_50",
    "DEL-01": "agent/test_runs.py::test_a_session_deleted_while_it_is_answered_is_not_brought_back",
    "DEL-03": "store/test_session.py::test_everything_is_for_its_owner_alone_whatever_the_umask",
    "DEL-05": "store/test_session.py::test_a_full_disk_leaves_memory_as_the_file_and_the_next_write_goes_on",
    "DEL-06": "cli/test_cli_change.py::test_nothing_is_erased_for_its_file_time_or_without_an_answer",
    "PROV-01": "agent/test_agent.py::test_a_broken_stream_keeps_what_was_said_marked_as_interrupted",
    "PROV-03": "agent/test_agent.py::test_errors_before_the_first_word_are_tried_again_and_leave_no_trace",
    "PROV-04": "agent/test_agent.py::test_empty_choices_at_either_end_and_null_content_do_no_harm",
    "PROV-06": "agent/test_streaming.py::test_one_index_for_all_with_different_ids_is_several_calls",
    "PROV-07": "agent/test_streaming.py::test_calls_without_ids_get_different_ones",
    "PROV-09": "agent/test_agent.py::test_a_refusal_is_the_answer_and_the_next_request_is_valid",
    "PROV-11": "agent/test_streaming.py::test_no_chunk_raises_and_what_is_stored_can_be_sent",
    "PROV-12": "pages/test_chat.py::test_try_again_after_an_error_stores_the_prompt_once",
    "UI-01": "pages/test_chat.py::test_a_rerun_stores_nothing_twice_and_asks_nobody_again",
    "UI-02": "browser/test_chat.py::test_a_stream_that_breaks_keeps_what_was_said_and_can_be_tried_again",
    "UI-05": "pages/test_chat.py::test_dollars_in_an_answer_are_escaped_on_the_page_and_not_in_the_file",
    "UI-07": "pages/test_chat.py::test_a_prompt_is_shown_as_typed",
    "UI-09": "pages/test_chat.py::test_html_in_messages_titles_and_tags_is_never_html",
    "UI-10": "browser/test_chat.py::test_a_second_tab_and_another_visitor_see_the_answer_grow",
    "UI-11": "pages/test_session_queries.py::test_a_question_is_asked_again_only_after_a_change",
    "UI-12": "browser/test_chat.py::test_an_export_is_the_session_of_that_moment_and_changes_nothing",
    "UI-15": "pages/test_chat.py::test_fork_from_here_keeps_the_turns_up_to_it_and_opens_the_fork",
    "UI-16": "browser/test_chat.py::test_an_evil_address_makes_no_file",
    "FLD-01": "agent/test_owned.py::test_a_thought_signature_comes_back_with_its_call_and_stands_in_the_file",
    "FLD-21": "pages/test_sessions.py::test_days_are_those_of_the_zone_the_page_names",
    "FLD-22": "cli/test_cli_change.py::test_a_tag_written_in_another_case_is_there_in_the_new_spelling",
    "FLD-23": "export/test_what_leaves.py::test_no_secret_leaves_a_message_by_any_export",
    "FLD-25": "browser/test_chat.py::test_enter_pressed_three_times_sends_once",
    "FLD-26": "browser/test_chat.py::test_a_picture_is_sent_shown_and_stored_and_what_cannot_go_along_is_refused",
}


def test_every_case_is_replayed_here_or_by_a_test_that_is_there() -> None:
    here = Path(__file__).parent

    for node in HELD.values():
        file, _, name = node.partition("::")
        assert f"def {name}(" in (here / file).read_text(encoding="utf-8"), node
    assert set(READ) <= CHECKS.keys() | HELD.keys()
