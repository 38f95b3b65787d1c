"""The frames: each message once, unknown is unknown, days in the zone that is asked."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd
import pytest

from sessions_lib import SessionManager, query, stats
from sessions_lib.messages import usage
from sessions_lib.store.folder.index.catalog import Catalog
from tests.record import LIGHTHOUSES, call, result, write


def asked(text: str, **_: Any) -> query.Query:
    return query.parse(text, UTC)


def spent(total: int | None, **more: Any) -> dict[str, Any]:
    """An answer that reports ``total`` tokens."""
    tokens = {} if total is None else {"usage": {"prompt_tokens": total - 1, "completion_tokens": 1}}
    return {"role": "assistant", "content": "r", **tokens, **more}


@pytest.fixture
def chain(tmp_path: Path) -> Catalog:
    """Four sessions, each a fork of the one before with one turn of its own: 100, 200, 400 and 800 tokens."""
    manager = SessionManager(tmp_path)
    one = manager.create(session_id="a", tags=["sea"])
    for number, name in enumerate("abcd"):
        session = one if name == "a" else manager.fork("abcd"[number - 1], name)
        time = f"2026-03-0{number + 1}T10:00:00Z"
        session.extend(
            [
                {"role": "user", "content": f"q{number}", "timestamp": time},
                spent(100 * 2**number, model=f"m-{number % 2}", timestamp=time),
            ]
        )
    return Catalog(tmp_path)


def rows(frame: pd.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return list(frame[list(columns)].astype(object).itertuples(index=False, name=None))


def test_the_total_of_a_fork_chain_is_what_the_server_handed_out(chain: Catalog) -> None:
    found = stats.figures(chain)

    assert (found.sessions, found.forks, found.turns, found.messages) == (4, 3, 4, 8)
    assert found.tokens == usage.Totals(input=1496, output=4, total=1500, reported=4, answers=4)
    assert found.sent_again == 100 * 3 + 200 * 2 + 400
    assert stats.by_day(chain, zone=UTC)["total"].sum() == 1500
    assert stats.by_model(chain)["total"].sum() == 1500
    assert stats.messages(chain)["total"].sum() == 1500
    assert rows(stats.families(chain), "root", "sessions", "turns", "total", "sent_again") == [("a", 4, 4, 1500, 1100)]


def test_a_session_has_whole_and_own_numbers(chain: Catalog) -> None:
    frame = stats.sessions(chain)

    assert rows(frame, "id", "total", "own_total", "inherited") == [
        ("d", 1500, 800, 6),
        ("c", 700, 400, 4),
        ("b", 300, 200, 2),
        ("a", 100, 100, 0),
    ]


ADVISED = {
    "prompt_tokens": 160,
    "completion_tokens": 20,
    "model_calls": [
        {"model": "small", "prompt_tokens": 40, "completion_tokens": 4},
        {"model": "large", "prompt_tokens": 70, "completion_tokens": 9},
        {"model": "small", "prompt_tokens": 50, "completion_tokens": 7},
    ],
}


def test_the_tokens_of_each_model_that_worked_on_an_answer_are_its_own(tmp_path: Path) -> None:
    write(
        tmp_path / "a.jsonl",
        {"role": "user", "content": "q", "id": "u"},
        {
            "role": "assistant",
            "content": "r",
            "id": "a",
            "model": "small",
            "usage": ADVISED,
            "timestamp": "2026-03-01T10:00:00Z",
        },
        {"role": "user", "content": "q2", "id": "u2"},
        {"role": "assistant", "content": "r2", "id": "a2", "model": "large", "timestamp": "2026-03-02T10:00:00Z"},
    )
    write(
        tmp_path / "b.jsonl",
        {"role": "user", "content": "q", "id": "u"},
        {"role": "assistant", "content": "r", "id": "a", "model": "small", "usage": ADVISED},
    )
    catalog = Catalog(tmp_path)

    assert rows(stats.by_model(catalog), "model", "sessions", "answers", "reported", "input", "output", "total") == [
        ("small", 1, 1, 1, 90, 11, 101),
        ("large", 1, 1, 0, 70, 9, 79),
    ]
    days = stats.by_day(catalog, zone=UTC, split="model")
    assert rows(days[days["name"] != stats.NO_MODEL], "day", "name", "answers", "total") == [
        (date(2026, 3, 1), "large", 0, 79),
        (date(2026, 3, 1), "small", 1, 101),
        (date(2026, 3, 2), "large", 1, pd.NA),
    ]
    assert stats.figures(catalog).tokens.total == 180
    assert stats.figures(catalog).sent_again == 180
    assert rows(stats.sessions(catalog, asked("model:large")), "id", "models") == [
        ("b", ["small", "large"]),
        ("a", ["small", "large"]),
    ]


def test_what_a_model_that_only_took_part_did_not_report_is_unknown(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", {"role": "assistant", "content": "r", "model": "small", "usage": ADVISED})

    (large,) = stats.by_model(Catalog(tmp_path)).query("model == 'large'").itertuples()

    assert (large.answers, large.total, large.cached is pd.NA) == (0, 79, True)


def test_the_context_of_a_turn_is_the_input_of_its_own_models_last_call(tmp_path: Path) -> None:
    rest = {"role": "assistant", "content": "rest", "model": "small", "usage": {"completion_tokens": 3}}
    write(
        tmp_path / "a.jsonl",
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "r", "model": "small", "usage": ADVISED},
        rest,
    )

    assert rows(stats.context(Catalog(tmp_path), "a"), "context", "input", "output", "total") == [(50, 160, 23, 183)]


def test_a_range_counts_what_was_said_in_it(chain: Catalog) -> None:
    found = stats.figures(chain, asked("after:2026-03-02 before:2026-03-04"))

    assert (found.tokens.total, found.turns) == (600, 2)
    assert found.sent_again == 200 * 2 + 400
    assert found.sessions == 3


def test_filters_choose_sessions(chain: Catalog) -> None:
    assert stats.figures(chain, asked("-tag:sea")).sessions == 0
    assert stats.figures(chain, asked("is:fork")).tokens.total == 1400
    assert stats.figures(chain, asked("q3")).tokens.total == 800
    assert stats.figures(chain, asked("nothing-like-it")) == stats.Figures(
        sessions=0,
        forks=0,
        messages=0,
        turns=0,
        tokens=usage.Totals(),
        sent_again=None,
        tool_calls=0,
        tool_results=0,
        errors=0,
        first_token_ms=None,
    )


@pytest.mark.parametrize(
    ("text", "since", "until"),
    [
        ("after:2026-03-08 before:2026-03-15", datetime(2026, 3, 1), datetime(2026, 3, 8)),
        ("on:2026-03-08", datetime(2026, 3, 7), datetime(2026, 3, 8)),
        ("after:2026-03-08", datetime(2026, 3, 5), datetime(2026, 3, 8)),
    ],
)
def test_the_period_before_is_as_long(text: str, since: datetime, until: datetime) -> None:
    now = datetime(2026, 3, 10, 12, tzinfo=UTC)

    before = stats.period_before(asked(text), UTC, now)

    assert before is not None
    assert (before.since, before.until) == (since.replace(tzinfo=UTC), until.replace(tzinfo=UTC))


def test_without_a_start_there_is_no_period_before() -> None:
    assert stats.period_before(asked("tag:sea before:2026-03-01")) is None


@pytest.mark.parametrize(
    ("zone", "days"),
    [(ZoneInfo("America/Sao_Paulo"), [date(2026, 3, 1)]), (UTC, [date(2026, 3, 2)])],
)
def test_days_are_cut_in_the_zone_that_is_asked(tmp_path: Path, zone: ZoneInfo, days: list[date]) -> None:
    write(tmp_path / "a.jsonl", {"role": "user", "content": "late", "timestamp": "2026-03-02T02:30:00Z"})
    write(tmp_path / "b.jsonl", {"role": "user", "content": "late too", "timestamp": "2026-03-01T23:30:00-03:00"})

    frame = stats.by_day(Catalog(tmp_path), zone=zone)

    assert rows(frame, "day", "sessions", "turns") == [(days[0], 2, 2)]


def test_a_zone_with_an_odd_offset_has_its_own_days(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", {"role": "user", "content": "x", "timestamp": "2026-03-01T18:14:59Z"})
    write(tmp_path / "b.jsonl", {"role": "user", "content": "x", "timestamp": "2026-03-01T18:15:00Z"})

    frame = stats.by_day(Catalog(tmp_path), zone=ZoneInfo("Asia/Kathmandu"))

    assert rows(frame, "day", "turns") == [(date(2026, 3, 1), 1), (date(2026, 3, 2), 1)]


def test_unknown_is_not_zero(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", {"role": "user", "content": "q"}, spent(None), spent(10))
    write(tmp_path / "b.jsonl", {"role": "user", "content": "another"}, spent(None, model="m-2"))
    kept = Catalog(tmp_path)

    frame = stats.sessions(kept).set_index("id")
    models = stats.by_model(kept).set_index("model")

    assert (frame.loc["a", "total"], frame.loc["a", "reported"], frame.loc["a", "answers"]) == (10, 1, 2)
    assert frame.loc["b", "total"] is pd.NA
    assert frame.loc["b", "own_cached"] is pd.NA
    assert models.loc["m-2", "total"] is pd.NA
    assert models.loc["unknown model", "total"] == 10
    assert stats.figures(kept).tokens == usage.Totals(input=9, output=1, total=10, reported=1, answers=3)


def test_cached_and_reasoning_are_inside(tmp_path: Path) -> None:
    openai = {
        "prompt_tokens": 1000,
        "completion_tokens": 50,
        "total_tokens": 1050,
        "prompt_tokens_details": {"cached_tokens": 800},
        "completion_tokens_details": {"reasoning_tokens": 30},
    }
    anthropic = {"input_tokens": 200, "cache_read_input_tokens": 800, "output_tokens": 50}
    for name, tokens in {"a": openai, "b": anthropic}.items():
        write(
            tmp_path / f"{name}.jsonl", {"role": "assistant", "content": name, "usage": tokens, "timestamp": 1772355600}
        )

    frame = stats.messages(Catalog(tmp_path))

    assert rows(frame, "session", "input", "cached", "output", "reasoning", "total") == [
        ("a", 1000, 800, 50, 30, 1050),
        ("b", 1000, 800, 50, pd.NA, 1050),
    ]


def test_tools_are_counted_with_their_failures_and_times(tmp_path: Path) -> None:
    write(
        tmp_path / "a.jsonl",
        LIGHTHOUSES,
        call("c1", "c2"),
        result("c1", is_error=True, duration_ms=5),
        result("c2", duration_ms=7),
        call("c3", name="buy"),
    )
    SessionManager(tmp_path).fork("a", "b", at=4)
    kept = Catalog(tmp_path)

    frame = stats.tools(kept)

    assert list(frame.columns) == ["tool", "calls", "failures", "unanswered", "sessions", "duration_ms", "timed"]
    assert rows(frame, *frame.columns) == [("tide", 2, 1, 0, 1, 12, 2), ("buy", 1, 0, 1, 1, pd.NA, 0)]
    assert stats.figures(kept).error_rate == 0.5


def test_a_session_with_two_tags_stands_under_both(tmp_path: Path) -> None:
    for name, tags in {"a": ["Sea", "night"], "b": ["sea"], "c": []}.items():
        write(tmp_path / f"{name}.jsonl", {**LIGHTHOUSES, "timestamp": "2026-03-01T10:00:00Z"}, spent(10))
        write(tmp_path / f"{name}.meta.json", {"tags": tags})
    write(tmp_path / "b.jsonl", {"role": "user", "content": "other", "timestamp": "2026-03-01T10:00:00Z"}, spent(20))
    write(tmp_path / "c.jsonl", {"role": "user", "content": "third", "timestamp": "2026-03-01T10:00:00Z"}, spent(40))
    kept = Catalog(tmp_path)

    assert rows(stats.by_tag(kept), "tag", "sessions", "turns", "total") == [
        ("Sea", 2, 2, 30),
        ("night", 1, 1, 10),
        ("untagged", 1, 1, 40),
    ]
    assert rows(stats.by_day(kept, zone=UTC, split="tag"), "name", "total") == [
        ("Sea", 30),
        ("night", 10),
        ("untagged", 40),
    ]


def test_the_context_of_a_session_grows_turn_by_turn(chain: Catalog) -> None:
    frame = stats.context(chain, "c")

    assert rows(frame, "turn", "message", "inherited", "context", "total", "so_far") == [
        (1, 0, True, 99, 100, 100),
        (2, 2, True, 199, 200, 300),
        (3, 4, False, 399, 400, 700),
    ]


def test_the_median_wait_is_of_answers_that_recorded_it(tmp_path: Path) -> None:
    answers = [spent(10, first_token_ms=wait) for wait in (100, 900, 300)]
    write(tmp_path / "a.jsonl", LIGHTHOUSES, *answers, spent(10))

    assert stats.figures(Catalog(tmp_path)).first_token_ms == 300


FRAMES = ["sessions", "messages", "tools", "by_day", "by_tag", "by_model", "families"]


@pytest.mark.parametrize("name", FRAMES)
def test_an_empty_folder_has_frames_with_the_same_types(tmp_path: Path, chain: Catalog, name: str) -> None:
    empty = getattr(stats, name)(Catalog(tmp_path / "none"))
    full = getattr(stats, name)(chain)

    assert len(empty) == 0
    assert empty.dtypes.astype(str).to_dict() == full.dtypes.astype(str).to_dict()


def test_the_documented_types(chain: Catalog) -> None:
    frame = stats.sessions(chain)

    assert frame.dtypes.astype(str).to_dict() == {
        **dict.fromkeys(("id", "title", "parent"), "string"),
        **dict.fromkeys(("tags", "models"), "object"),
        **dict.fromkeys(("created", "last_active"), "datetime64[us, UTC]"),
        **dict.fromkeys(
            ("messages", "turns", "inherited", "tool_calls", "errors", "damaged", "unanswered", "size_bytes"), "int64"
        ),
        **dict.fromkeys(("input", "cached", "output", "reasoning", "total"), "Int64"),
        **dict.fromkeys(("own_input", "own_cached", "own_output", "own_reasoning", "own_total"), "Int64"),
        **dict.fromkeys(("reported", "answers", "own_reported", "own_answers"), "int64"),
        **dict.fromkeys(("cost", "own_cost"), "Float64"),
        **dict.fromkeys(("unpriced", "unmetered", "own_unpriced", "own_unmetered"), "int64"),
    }
    assert frame["tags"].tolist() == [["sea"]] * 4


def test_where_nothing_was_answered_the_frames_say_zero_and_not_unknown(tmp_path: Path) -> None:
    manager = SessionManager(tmp_path)
    manager.create(session_id="a").extend(
        [{"role": "user", "content": "q"}, {"role": "assistant", "content": "r", "usage": {"total_tokens": 5}}]
    )
    manager.fork("a", "b")
    manager.create(session_id="c").append({"role": "user", "content": "only asked"})

    rows = stats.sessions(manager.catalog).set_index("id")

    assert rows[["total", "own_total"]].loc[["a", "b", "c"]].to_numpy().tolist() == [[5, 5], [5, 0], [0, 0]]
    assert dict(stats.families(manager.catalog)[["root", "total"]].itertuples(index=False)) == {"a": 5, "c": 0}
    assert stats.context(manager.catalog, "c")[["total", "so_far"]].to_numpy().tolist() == [[0, 0]]


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago", "UTC"])
def test_the_first_and_the_last_moment_of_the_calendar_have_a_day_in_every_zone(tmp_path: Path, zone: str) -> None:
    ends = [{**LIGHTHOUSES, "timestamp": f"{end}Z"} for end in ("0001-01-01T00:00:00", "9999-12-31T23:59:59")]
    write(tmp_path / "a.jsonl", *ends)

    days = stats.by_day(Catalog(tmp_path), zone=ZoneInfo(zone))

    assert rows(days, "day", "messages") == [(date(1, 1, 1), 1), (date(9999, 12, 31), 1)]
