"""Timestamps of any kind that files hold, as one moment in UTC."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_lib import times

NINE = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1772355600, NINE),
        (1772355601000, NINE + timedelta(seconds=1)),
        (1772355602.5, NINE + timedelta(seconds=2.5)),
        (1772355600123456, NINE + timedelta(microseconds=123456)),
        (1772355600000000000, NINE),
        ("2026-03-01T09:00:03Z", NINE + timedelta(seconds=3)),
        ("1772355604", NINE + timedelta(seconds=4)),
        ("1772355604000", NINE + timedelta(seconds=4)),
        ("1772355602.5", NINE + timedelta(seconds=2.5)),
        ("2026-03-01T17:00:00+08:00", NINE),
        ("2026-03-01T09:00:00", NINE),
        ("2026-03-01 09:00:00", NINE),
        (" 2026-03-01T09:00:00.000Z ", NINE),
        ("2026-03-01T09:00:00.123456789Z", NINE + timedelta(microseconds=123456)),
        ("2026-03-01", datetime(2026, 3, 1, tzinfo=UTC)),
        ("20260301", datetime(2026, 3, 1, tzinfo=UTC)),
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        ("2026-03-01t09:00:00z", NINE),
        ("2026-03-01 09:00:00 UTC", NINE),
        ("2026-03-01T09:00:00 GMT", NINE),
        ("2026-02-28T24:00:00Z", datetime(2026, 3, 1, tzinfo=UTC)),
        ("2026-03-01T08:59:60Z", NINE),
        ("2026-03-01T16:59:60+08:00", NINE),
        ("Sun, 01 Mar 2026 09:00:00 GMT", NINE),
        ("1 Mar 2026 10:00:00 +0100", NINE),
    ],
)
def test_a_time_is_read_in_every_notation_and_unit(value: Any, expected: datetime) -> None:
    assert times.parse(value) == expected


@pytest.mark.parametrize(
    "value",
    [
        *(
            None,
            True,
            False,
            "",
            " ",
            "yesterday",
            "2026-13-01",
            "nan",
            "inf",
            "-inf",
            "1e9",
            "1_000",
            "٣٤٥",
            {},
            [],
            1e30,
        ),
        *(
            float("nan"),
            float("inf"),
            10**400,
            "9" * 5000,
            "0001-01-01T00:00:00+14:00",
            "12:30",
            "1772355600Z",
            "9999-12-31T24:00:00Z",
        ),
        *("1 Mär 2026 10:00", "1 Mar 99999 10:00", "2026-03-01T25:00:00Z", "2026-03-01T24:00:00Q", "31 Feb 2026 10:00"),
    ],
)
def test_what_is_no_time_is_none_and_never_1970(value: Any) -> None:
    assert times.parse(value) is None


def test_the_ends_of_the_calendar_can_be_shown_in_every_zone() -> None:
    first, last = datetime(1, 1, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)

    for hours in (-12, 14):
        zone = timezone(timedelta(hours=hours))
        assert {times.local(first, zone).year, times.local(last, zone).year} == {1, 9999}
        assert times.local_day(first, zone) == date(1, 1, 1)


@given(
    st.one_of(
        st.text(max_size=30), st.integers(), st.floats(), st.from_regex(r"[-+]?[0-9.TZ:+-]{0,30}", fullmatch=True)
    )
)
def test_anything_at_all_is_read_without_an_exception(value: Any) -> None:
    moment = times.parse(value)

    assert moment is None or moment.utcoffset() == timedelta(0)


def test_a_moment_is_written_in_utc_with_milliseconds() -> None:
    assert (
        times.iso(datetime(2026, 3, 1, 12, 0, 0, 123999, tzinfo=timezone(timedelta(hours=3))))
        == "2026-03-01T09:00:00.123Z"
    )


@given(st.datetimes(min_value=datetime(1900, 1, 1), timezones=st.just(UTC)))
def test_what_is_written_is_read_back(moment: datetime) -> None:
    assert times.parse(times.iso(moment)) == moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def test_now_is_a_time_between_before_and_after() -> None:
    before = times.iso(datetime.now(UTC))

    written = times.now()

    assert before <= written <= times.iso(datetime.now(UTC))


def test_a_day_is_the_local_one() -> None:
    late = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)

    assert times.local_day(late, timezone(timedelta(hours=8))) == date(2026, 3, 2)
    assert times.local_day(late, UTC) == date(2026, 3, 1)
