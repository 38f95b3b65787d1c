"""Parquet: two tables that DuckDB reads, and whose sums are those of ``forkbook stats``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import SessionManager
from sessions_lib.export import export
from tests.cli.terminal import Terminal
from tests.export.other_side import judge
from tests.importers.files import DATA

SUMS = """
    select count(*) filter (own), count(*) filter (own and role = 'user'), count(*) filter (own and role = 'tool'),
      coalesce(sum(len(tool_calls)) filter (own), 0), count(*) filter (own and is_error),
      sum(input) filter (own), sum(cached) filter (own), sum(output) filter (own), sum(reasoning) filter (own),
      sum(total) filter (own), sum(total) filter (not own), sum(cost) filter (own)
    from read_parquet('{}/messages.parquet')
"""


def agree(terminal: Terminal, folder: Path) -> None:
    """What DuckDB counts in ``folder`` is what ``stats`` counts."""
    (row,) = judge("duckdb").sql(SUMS.format(folder)).fetchall()
    stats = json.loads(terminal.ok("stats", "--json"))
    tokens = stats["tokens"]

    assert row[:5] == tuple(stats[name] for name in ("messages", "turns", "tool_results", "tool_calls", "errors"))
    assert row[5:10] == tuple(tokens[name] for name in ("input", "cached", "output", "reasoning", "total"))
    assert row[10] == stats["sent_again"]
    assert row[11] == (None if stats["cost_usd"] is None else pytest.approx(stats["cost_usd"], abs=1e-9))


def test_duckdb_counts_what_stats_counts_each_message_once(terminal: Terminal) -> None:
    terminal.ok("demo")
    terminal.ok("import", str(DATA))
    manager = SessionManager(terminal.folder)
    forks = [info for info in manager.list() if info.inherited]
    terminal.ok("merge", str(forks[0].parent), forks[0].id, "--by-time")

    done = terminal.run("export", "--all", "--format", "parquet", "--output", "tables")

    assert done.returncode == 0, done.stderr
    assert "Redacted: " in done.stderr
    assert done.stdout.split() == ["tables/messages.parquet", "tables/sessions.parquet"]
    agree(terminal, terminal.work / "tables")
    copied = f"select count(*) from read_parquet('{terminal.work}/tables/messages.parquet') where not own"
    assert judge("duckdb").sql(copied).fetchall()[0][0] >= sum(info.inherited for info in forks)


def test_a_row_holds_what_its_message_says(terminal: Terminal) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "tide", "arguments": '{"port":"Ember"}'}}
    said: list[dict[str, Any]] = [
        {"role": "user", "content": "Tide?", "id": "m1", "timestamp": "2026-03-01T10:00:00.250+01:00"},
        {"role": "assistant", "content": None, "tool_calls": [call], "id": "m2", "model": "gpt-5", "duration_ms": 412},
        {"role": "tool", "tool_call_id": "c1", "content": "no such port", "id": "m3", "is_error": True},
    ]
    terminal.session("a", *said)
    verdict = {"verdict": "won", "against": ["b"], "why": "x"}
    SessionManager(terminal.folder).open("a").update_meta({"title": "Tides", "tags": ["sea"], "verdict": verdict})

    terminal.ok("export", "a", "--format", "parquet", "--no-redact")

    rows = judge("duckdb").sql(f"select * from read_parquet('{terminal.work}/Tides/messages.parquet') order by seq")
    names = [column[0] for column in rows.description]
    prompt, answer, result = (dict(zip(names, row, strict=True)) for row in rows.fetchall())
    assert (prompt["id"], prompt["said"], prompt["at"].isoformat()) == (
        "m1",
        "Tide?",
        "2026-03-01T09:00:00.250000+00:00",
    )
    assert answer["tool_calls"] == [{"id": "c1", "name": "tide", "arguments": '{"port":"Ember"}'}]
    assert (answer["model"], answer["duration_ms"], answer["said"]) == ("gpt-5", 412, "")
    assert [answer[name] for name in ("input", "total", "cost", "at")] == [None] * 4
    assert [result[name] for name in ("tool_name", "tool_args", "is_error")] == ["tide", '{"port":"Ember"}', True]
    found = judge("duckdb").sql(
        f"select id, title, tags, parent, messages, turns, verdict, against, why from read_parquet('{terminal.work}/Tides/sessions.parquet')"
    )
    assert found.fetchall() == [("a", "Tides", ["sea"], None, 3, 1, "won", ["b"], "x")]


def test_a_fork_alone_owns_only_what_it_wrote(terminal: Terminal) -> None:
    terminal.ok("demo")
    fork = next(info for info in SessionManager(terminal.folder).list() if info.inherited and info.own_messages)

    terminal.ok("export", fork.id, "--format", "parquet", "-o", "one")

    counted = (
        f"select own, count(*) from read_parquet('{terminal.work}/one/messages.parquet') group by own order by own"
    )
    assert judge("duckdb").sql(counted).fetchall() == [(False, fork.inherited), (True, fork.own_messages)]


def test_tables_are_never_printed_and_never_replace_what_is_there(terminal: Terminal) -> None:
    terminal.session("a", {"role": "user", "content": "q"})

    refused = terminal.run("export", "a", "--format", "parquet", "-o", "-")
    terminal.ok("export", "a", "--format", "parquet", "-o", "out")
    again = terminal.ok("export", "a", "--format", "parquet", "-o", "out")

    assert refused.returncode == 2
    assert "name a folder with --output" in refused.stderr
    assert again.split() == ["out/messages", "(2).parquet", "out/sessions", "(2).parquet"]


def test_the_library_writes_the_tables_into_a_folder(tmp_path: Path) -> None:
    session = SessionManager(tmp_path / "sessions").create("Tides")
    session.append({"role": "user", "content": "q \ud83d"})

    folder = session.export(tmp_path / "tables", "parquet")

    assert sorted(path.name for path in folder.iterdir()) == ["messages.parquet", "sessions.parquet"]
    with pytest.raises(export.SessionError, match="save them to a folder"):
        export.export(session.messages, session.meta, "parquet")


def test_many_rows_are_written_in_groups(tmp_path: Path) -> None:
    from sessions_lib.export import parquet

    said = [{"role": "user", "content": str(number)} for number in range(parquet._ROWS + 5)]

    tables = parquet.tables([(said, {"id": "a"}), ([], {"id": "b"})])

    (tmp_path / "m.parquet").write_bytes(tables["messages.parquet"])
    assert judge("duckdb").sql(f"select count(*) from '{tmp_path}/m.parquet'").fetchall() == [(len(said),)]
