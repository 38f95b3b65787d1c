"""The query language: what is asked, what matches, and where the marks stand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_lib import query, snippets

SAO_PAULO = ZoneInfo("America/Sao_Paulo")
TEXT = st.text(alphabet=st.sampled_from("aAeEßéÉe\u0301\u0302ﬁ각가ᄀ\u1161\u11a8がか\u3099İıΣς 🦊\ufe0f\n\tx.*("))


def found(asked: str, text: str) -> bool:
    return query.match(query.parse(asked), {"role": "user", "content": text})


@pytest.mark.parametrize("asked", ["foo(", "src/main.py", "C++", "[a-z", "50%", "*", "a.b", "\\d", "don't", "$5"])
def test_punctuation_stands_for_itself(asked: str) -> None:
    text = "Fix foo( in src/main.py, C++ [a-z 50% * a.b \\d don't $5 alice@example.org #123 ok?"

    assert found(asked, text)
    assert not found(asked, "aXb and digits 7")


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ("STRASSE", "Die Straße ist lang."),
        ("straße", "STRASSE"),
        ("cafe", "Café"),
        ("CAFÉ", "Cafe\u0301"),
        ("naïve", "NAIVE"),
        ("istanbul", "İSTANBUL"),
        ("σίσυφος", "ΣΊΣΥΦΟΣ"),
        ("abc", "ＡＢＣ"),
        ("office", "oﬃce"),
        ("❤", "I ❤\ufe0f it"),
        ("がく", "か\u3099く"),
        ("각", "\u1100\u1161\u11a8"),
    ],
)
def test_case_accents_and_composition_do_not_matter(asked: str, text: str) -> None:
    assert found(asked, text)


@pytest.mark.parametrize(("asked", "text"), [("가", "각"), ("かく", "がく"), ("कि", "की"), ("a", "ب")])
def test_what_makes_another_letter_is_no_accent(asked: str, text: str) -> None:
    assert not found(asked, text)


def test_every_word_must_stand_in_one_message_in_any_order() -> None:
    assert found("tide table", "The table of every tide")
    assert found("tide", "see notes/tides.md")
    assert not found("tide chart", "The table of every tide")


def test_a_phrase_stands_together_across_any_blank() -> None:
    assert found('"low water"', "at low\n  water")
    assert found('"open sesame', "say open sesame")  # still being typed
    assert not found('"low water"', "water is low")


def test_a_star_behind_a_word_says_what_is_so_anyway() -> None:
    assert query.parse("decor*").words == ("decor",)
    assert query.parse("*").words == ("*",)
    assert query.parse("*.py").words == ("*.py",)


def test_filters_are_told_from_words() -> None:
    asked = query.parse('tide tag:"Night shift" -tag:draft untagged: model:gpt* tool:buy is:fork has:error has:damage')

    assert asked.words == ("tide",)
    assert (asked.tags, asked.not_tags, asked.models, asked.tools) == (
        ("night shift",),
        ("draft",),
        ("gpt*",),
        ("buy",),
    )
    assert (asked.untagged, asked.is_fork, asked.has_error, asked.has_damage) == (True, True, True, True)
    assert asked.notes == ()


@pytest.mark.parametrize("text", ["http://x", "after:lunch", "tag:", "is:big", "-foo", "a:b", "before:2026-13-01"])
def test_what_is_no_filter_is_a_word(text: str) -> None:
    assert query.parse(text).words == (text.lower(),)


def test_a_filter_that_is_not_understood_is_told() -> None:
    assert query.parse("after:lunch").notes == ("after:lunch is no filter that is known, so it is looked for as text.",)
    assert query.parse("http://x").notes == ()


@pytest.mark.parametrize("text", ["", "   ", "\n\t", "\u0301"])
def test_nothing_asked_is_blank(text: str) -> None:
    assert query.parse(text).is_blank


def test_days_are_those_of_the_zone() -> None:
    late = datetime(2026, 3, 2, 2, 30, tzinfo=UTC)

    assert query.time_matches(query.parse("on:2026-03-01", SAO_PAULO), late)
    assert not query.time_matches(query.parse("on:2026-03-02", SAO_PAULO), late)
    assert query.time_matches(query.parse("on:2026-03-02", UTC), late)
    assert not query.time_matches(query.parse("on:2026-03-01", UTC), late)


def test_after_includes_its_day_and_before_does_not() -> None:
    asked = query.parse("after:2026-03-01 before:2026-03-03", UTC)

    assert (asked.since, asked.until) == (datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 3, tzinfo=UTC))


def test_a_month_and_a_year_are_periods() -> None:
    month, year = query.parse("on:2026-12", UTC), query.parse("on:2026", UTC)

    assert (month.since, month.until) == (datetime(2026, 12, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC))
    assert (year.since, year.until) == (datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=14)), timezone(timedelta(hours=-12)), None])
@pytest.mark.parametrize("filter", ["after", "before", "on"])
@pytest.mark.parametrize("day", ["0001-01-01", "0001", "0900-02-28", "9999-12", "9999-12-30", "9999-12-31", "9999"])
def test_any_day_of_the_calendar_is_a_day(day: str, filter: str, zone: tzinfo | None) -> None:
    asked = query.parse(f"{filter}:{day}", zone)

    assert (asked.notes, asked.words) == ((), ())
    assert (asked.since is not None, asked.until is not None) == (filter != "before", filter != "after")


def test_the_last_day_of_the_calendar_has_an_end() -> None:
    asked = query.parse("on:9999-12-31", UTC)

    assert query.time_matches(asked, datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC))
    assert not query.time_matches(asked, datetime(9999, 12, 30, 23, 59, tzinfo=UTC))


@pytest.mark.parametrize("day", ["0000-01-01", "10000-01-01", "2026-02-29", "2026-13", "lunch"])
def test_what_is_no_day_is_looked_for_as_text_and_says_so(day: str) -> None:
    asked = query.parse(f"before:{day}", UTC)

    assert asked.words == (f"before:{day}",)
    assert asked.notes == (f"before:{day} is no filter that is known, so it is looked for as text.",)


def test_a_day_with_a_clock_change_has_23_hours() -> None:
    since, until = query.day_bounds(datetime(2026, 3, 29).date(), ZoneInfo("Europe/Berlin"))

    assert until.astimezone(UTC) - since.astimezone(UTC) == timedelta(hours=23)
    assert since.astimezone(timezone(timedelta())) == datetime(2026, 3, 28, 23, tzinfo=UTC)


def test_an_unknown_time_is_on_no_day() -> None:
    assert not query.time_matches(query.parse("after:2020"), None)
    assert query.time_matches(query.parse("tide"), None)


@pytest.mark.parametrize("word", ["role", "content", "tool_call_id", "function", "null", "call_1", "arguments", "port"])
def test_json_keys_roles_and_ids_are_not_searched(word: str) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "tide", "arguments": '{"port":"Ember"}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}

    assert not query.match(query.parse(word), message)
    assert query.match(query.parse("tide ember"), message)


def test_base64_is_not_searched() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo"}}
    message = {"role": "user", "content": [{"type": "text", "text": "see"}, image]}

    assert not query.match(query.parse("iVBOR"), message)
    assert query.match(query.parse("see"), message)


def test_roles_choose_messages() -> None:
    asked = query.parse("hi role:user role:tool")

    assert query.match(asked, {"role": "tool", "content": "hi"})
    assert not query.match(asked, {"role": "assistant", "content": "hi"})


def marked(text: str, asked: str, width: int = 160) -> tuple[str, list[str]]:
    piece = snippets.snippet(text, query.parse(asked), width)
    return piece.text, [piece.text[start:end] for start, end in piece.marks]


def test_a_snippet_marks_what_was_written_not_what_was_asked() -> None:
    assert marked("Die Straße ist lang.", "STRASSE") == ("Die Straße ist lang.", ["Straße"])
    assert marked("Cafe\u0301 au lait", "café") == ("Cafe\u0301 au lait", ["Cafe\u0301"])
    assert marked("low\n\n  water", '"low water"') == ("low water", ["low water"])
    assert marked("aaa", "aa a") == ("aaa", ["aaa"])


def test_a_snippet_shows_the_place_of_the_hit_in_a_long_text() -> None:
    text, marks = marked("é " * 5000 + "needle in the hay " + "x " * 5000, "NEEDLE", width=60)

    assert marks == ["needle"]
    assert text.startswith("…é ")
    assert text.endswith("…")
    assert len(text) <= 62


@given(TEXT, TEXT)
def test_folding_is_the_same_in_pieces_as_in_one(first: str, second: str) -> None:
    text = first + "\n" + second

    folded, origin = snippets._folded_with_origin(text)

    assert folded == query.fold(text) == query.fold(first) + "\n" + query.fold(second)
    assert len(origin) == len(folded)
    assert query.fold(folded) == folded


@given(TEXT, st.integers(0, 20), st.integers(1, 6))
def test_every_match_has_marks_that_hold_it(text: str, start: int, length: int) -> None:
    needle = "".join(query.fold(text)[start : start + length].split())
    asked = query.parse("")
    if not needle or needle not in query.fold(text):
        return
    asked = query.Query(words=(needle,))

    ranges = snippets.ranges(text, asked.needles)

    assert ranges
    assert all(needle in query.fold(text[a:b]) for a, b in ranges)
