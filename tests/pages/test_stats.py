"""Stats: each message once, unknown is no zero, days of the viewer's zone, and every chart narrows the page."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pandas as pd
import pytest

from pages.stats_parts import chart_box, charts, figures_row, spending
from sessions_lib import Agent, SessionManager, stats
from tests.model_server import ModelServer, say, usage_chunk


def write(folder, session, *lines, **meta):
    folder.mkdir(exist_ok=True)
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    (folder / f"{session}.jsonl").write_text(text, encoding="utf-8")
    if meta:
        (folder / f"{session}.meta.json").write_text(json.dumps(meta, ensure_ascii=False), encoding="utf-8")


def said(text, role="user", **keys):
    return {"role": role, "content": text, **keys}


def used(tokens_in, tokens_out, **more):
    return {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": tokens_in + tokens_out, **more}


def figures(page):
    return {metric.label: metric.value for metric in page.metric}


def changes(page):
    return {metric.label: metric.delta for metric in page.metric}


def texts(page):
    return "\n".join(str(element.value) for kind in ("markdown", "caption") for element in page.get(kind))


def table(page, name):
    """The table below the chart ``name``, opened."""
    page.session_state[f"stats_{name}_open"] = True
    [found] = page.run().dataframe
    return found.value


def test_an_empty_folder_says_what_to_do_next_and_writes_nothing(open_page, folder):
    page = open_page("stats")

    assert not page.exception
    assert "No sessions yet" in texts(page)
    assert not folder.exists()


def test_without_known_tokens_every_chart_of_tokens_says_so(open_page, folder):
    write(folder, "a", said("q", timestamp="2026-11-20T10:00:00Z"), said("r", "assistant", model="m-1"))

    page = open_page("stats", when="all")

    assert not page.exception
    assert figures(page)["Tokens"] == "unknown"
    assert texts(page).count("No tokens are known: none of these answers reported usage.") == 6
    assert "NaN" not in texts(page)
    for stack in ("model", "tag"):
        page.session_state["stats_stack"] = stack
        assert not page.run().exception
        assert texts(page).count("No tokens are known") == 6


def test_a_session_without_a_time_says_so_in_the_tables(open_page, folder):
    write(folder, "a", said("q"), said("r", "assistant", usage=used(60, 40)), imported_from={"key": "chat:a"})

    page = open_page("stats", when="all")

    assert not page.exception
    assert figures(page)["Tokens"] == "100"
    assert table(page, "expensive-sessions")["Last message (UTC)"].tolist() == ["unknown"]


@pytest.mark.any_store
def test_a_chain_of_forks_counts_each_message_once(open_page, folder):
    write(folder, "a", said("q1"), said("r1", "assistant", usage=used(60, 40)))
    manager = SessionManager(folder)
    for number, (parent, child) in enumerate((("a", "b"), ("b", "c"), ("c", "d"))):
        manager.fork(parent, child).extend([said(f"q{number}"), said(f"r{number}", "assistant", usage=used(30, 20))])

    page = open_page("stats", when="all")

    assert figures(page)["Tokens"] == "250"
    assert figures(page)["Sessions"] == "4"
    assert figures(page)["Forks"] == "3"
    assert figures(page)["Turns"] == "4"
    # The copies: 100 in b, 150 in c, 200 in d.
    assert "Forks hold 450 tokens again, which are not added." in texts(page)


def test_a_chain_four_deep_costs_what_the_server_handed_out(open_page, folder):
    handed_out = [used(11, 4), used(31, 8), used(47, 3), used(70, 21), used(102, 5)]
    replies = [
        replace(reply, chunks=[*reply.chunks, usage_chunk(usage)])
        for usage in handed_out
        for reply in [say("Yes.", usage=False)]
    ]
    with ModelServer(*replies) as server:
        branch = Agent(session_id="a", base_url=server.url, api_key="sk-test", model="tiny", save_dir=folder)
        branch.chat("Which tide?")
        for child in ("b", "c", "d", "e"):
            branch = branch.fork(new_session_id=child)
            branch.chat(f"And in {child}?")

    page = open_page("stats", when="all")

    total = sum(usage["total_tokens"] for usage in handed_out)
    assert len(server.requests) == 5
    assert figures(page)["Tokens"] == str(total) == "302"
    assert (figures(page)["Sessions"], figures(page)["Forks"], figures(page)["Turns"]) == ("5", "4", "5")
    assert table(page, "expensive-families")["Tokens"].tolist() == [302]
    assert stats.figures(SessionManager(folder).catalog).tokens.total == 302


@pytest.mark.any_store
def test_unknown_usage_is_told_and_is_no_zero(open_page, folder):
    write(
        folder,
        "a",
        said("q"),
        *[said(str(number), "assistant") for number in range(3)],
        said("4", "assistant", usage=used(10, 5)),
        said("5", "assistant", usage={"prompt_tokens": None}),
    )
    write(folder, "b", said("q"), said("r", "assistant", usage=None), tags=["silent"])

    page = open_page("stats", when="all")
    silent = open_page("stats", when="all", tag="silent")

    assert figures(page)["Tokens"] == "15"
    assert "1 of 6 answers reported usage." in texts(page)
    assert figures(silent)["Tokens"] == "unknown"
    assert figures(silent)["First token"] == "unknown"
    assert figures(silent)["Tool error rate"] == "–"
    assert not silent.exception


def test_cached_is_inside_input_and_reasoning_inside_output(open_page, folder):
    usage = used(
        1000, 50, prompt_tokens_details={"cached_tokens": 800}, completion_tokens_details={"reasoning_tokens": 30}
    )
    write(folder, "a", said("q", timestamp="2026-03-01T10:00:00Z"), said("r", "assistant", usage=usage))
    days = pd.DataFrame(
        {"day": ["2026-03-01"], "input": [1000], "cached": [800], "output": [50], "reasoning": [30]},
    ).astype(dict.fromkeys(("input", "cached", "output", "reasoning"), "Int64"))

    shown = spending.kinds(days)

    assert dict(zip(shown["name"], shown["total"], strict=True)) == {
        "In, not cached": 200,
        "In, cached": 800,
        "Out, not reasoning": 20,
        "Out, reasoning": 30,
    }
    assert figures(open_page("stats", when="all"))["Tokens"] == "1,050"


@pytest.mark.any_store
def test_days_are_those_of_the_zone_the_page_names(open_page, folder):
    write(folder, "a", said("late", timestamp="2026-03-02T02:30:00Z"))
    write(folder, "b", said("late too", timestamp="2026-03-01T23:30:00-03:00"))

    there = open_page("stats", when="all", zone="America/Sao_Paulo")
    here = open_page("stats", when="all", zone="UTC")

    assert list(table(there, "turns-by-day")["Day"]) == ["2026-03-01"]
    assert list(table(here, "turns-by-day")["Day"]) == ["2026-03-02"]
    assert "Days are those of America/Sao_Paulo." in texts(there)


def test_figures_are_against_the_period_before(open_page, folder):
    write(folder, "a", *[said(str(n), timestamp="2026-03-09T10:00:00Z") for n in range(3)])
    write(folder, "b", *[said(str(n), timestamp="2026-03-02T10:00:00Z") for n in range(2)])

    page = open_page("stats", **{"from": "2026-03-08", "to": "2026-03-14"})

    assert (figures(page)["Turns"], changes(page)["Turns"]) == ("3", "+50%")
    assert (figures(page)["Sessions"], changes(page)["Sessions"]) == ("1", "+0%")
    assert "Changes are against 2026-03-01 to 2026-03-07." in texts(page)


def test_all_time_has_nothing_before_it(open_page, folder):
    write(folder, "a", said("q", timestamp="2026-03-09T10:00:00Z"))

    page = open_page("stats", when="all")

    assert set(changes(page).values()) == {""}
    assert "Changes are against" not in texts(page)


def test_without_a_span_the_last_30_days_are_shown_or_all_if_they_are_silent(open_page, folder):
    write(folder, "old", said("q", timestamp="2020-03-09T10:00:00Z"))
    assert figures(open_page("stats"))["Turns"] == "1"

    write(folder, "new", said("q"), said("q"))
    now = datetime.now(UTC).isoformat()
    write(folder, "new", said("q", timestamp=now), said("q2", timestamp=now))

    assert figures(open_page("stats"))["Turns"] == "2"


def test_the_filters_of_sessions_narrow_the_figures(open_page, folder):
    write(folder, "a", said("one"), said("x", "assistant", model="m-1"), tags=["red"])
    write(folder, "b", said("two lighthouses"), tags=["green"])

    def sessions(**query):
        return figures(open_page("stats", when="all", **query))["Sessions"]

    assert sessions() == "2"
    assert sessions(tag="red") == "1"
    assert sessions(model="m-1") == "1"
    assert sessions(q="lighthouses") == "1"
    assert sessions(forks="only") == "0"


def test_nothing_in_these_days_says_what_to_drop(open_page, folder):
    write(folder, "a", said("one", timestamp="2020-01-01T00:00:00Z"), tags=["red"])

    page = open_page("stats", **{"from": "2026-03-08", "to": "2026-03-14"}, tag="red")

    assert "Nothing passes all of this" in texts(page)
    page.button(key="stats_without_0").click().run()
    assert not page.exception


def test_a_damaged_file_costs_nobody_else_a_number(open_page, folder):
    write(folder, "a", said("needle"))
    (folder / "bad.jsonl").write_bytes(b'\xff\xfe{"role":\n')

    page = open_page("stats", when="all")

    assert not page.exception
    assert figures(page)["Turns"] == "1"


@pytest.mark.any_store
def test_what_others_add_counts_at_the_next_run(open_page, folder):
    write(folder, "a", said("one"))
    page = open_page("stats", when="all")

    SessionManager(folder).open("a").append(said("two"))

    assert figures(page.run())["Turns"] == "2"


def test_hostile_titles_tags_and_tools_are_shown_as_text(open_page, folder):
    call = {"id": "c1", "type": "function", "function": {"name": "<b>rm</b>", "arguments": "{}"}}
    write(
        folder,
        "a",
        said("q"),
        {"role": "assistant", "content": None, "tool_calls": [call], "model": "<i>m</i>"},
        title=":red[boo] <b>t</b> $x$",
        tags=["<script>"],
    )

    page = open_page("stats", when="all")

    assert not page.exception
    for element in page.get("markdown"):
        assert "<b>" not in element.value
        assert ":red[" not in element.value
    assert list(table(page, "tools")["Tool"]) == ["<b>rm</b>"]


def test_a_csv_starts_no_formula_and_leaves_unknown_empty():
    rows = pd.DataFrame({"Tag": ["=1+1", "résumé", "@x"], "Tokens": pd.array([1, None, 3], dtype="Int64")})

    assert charts.as_csv(rows).decode("utf-8-sig") == "Tag,Tokens\r\n'=1+1,1\r\nrésumé,\r\n'@x,3\r\n"


def test_a_csv_leaves_without_secrets_in_titles_and_ids():
    title = "Mail ana@example.org"
    rows = pd.DataFrame({"Session": ["mail-ana-example-org"], "Title": [title], "Turns": [2]})

    written = charts.as_csv(rows).decode("utf-8-sig")

    assert written == "Session,Title,Turns\r\nmail-redacted,Mail [e-mail address],2\r\n"


def test_numbers_are_short_enough_for_the_back_of_a_room():
    assert [figures_row.short(n) for n in (0, 950, 9999, 12345, 4_600_000, 2.5e9)] == [
        "0", "950", "9,999", "12.3k", "4.6M", "2.5B",
    ]  # fmt: skip


def test_a_change_is_told_only_where_both_are_known():
    assert [figures_row.change(*pair) for pair in ((12, 10), (5, 10), (140, 10), (3, 0), (0, 0), (None, 1), (1, None))] == [
        "+20%", "-50%", "14×", "new", None, None, None,
    ]  # fmt: skip


def test_equal_titles_keep_bars_of_their_own():
    assert chart_box.distinct(["same", "same", "other"]) == ["same", "same (2)", "other"]


def test_a_label_that_is_cut_says_so():
    long, line = "word " * 40, "x" * 60

    assert chart_box.distinct([long, long, line, line + "x"]) == [
        "word " * 10 + "word…",
        "word " * 10 + "word… (2)",
        line,
        "x" * 59 + "…",
    ]
