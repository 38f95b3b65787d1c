"""Any day from the year 1 to the year 9999 may stand in an address; none of them is an error."""

from __future__ import annotations

import pytest

from tests.record import GULL, write

DAYS = ["0001-01-01", "0900-01-01", "1000-01-01", "1677-09-20", "2262-04-12", "9999-12-30", "9999-12-31"]
SAID = ["0001-01-01T12:00:00Z", "0900-01-01T12:00:00Z", "2026-03-01T10:00:00Z", "9999-12-31T12:00:00Z"]


@pytest.fixture
def years(folder):
    """A session a day, from the calendar's first day to its last."""
    for number, stamp in enumerate(SAID):
        write(
            folder / f"s{number}.jsonl",
            {"role": "user", "content": "Tide?", "timestamp": stamp},
            {**GULL, "timestamp": stamp},
        )


@pytest.mark.parametrize("page", ["stats", "sessions"])
@pytest.mark.parametrize("day", DAYS)
def test_no_day_in_an_address_is_an_error(open_page, years, page, day):
    for zone, asked in (
        ("UTC", {"from": day}),
        ("Pacific/Kiritimati", {"to": day}),
        ("Pacific/Pago_Pago", {"from": day, "to": day, "q": f"on:{day}"}),
        ("UTC", {"q": f"before:{day}"}),
        ("Pacific/Kiritimati", {"q": f"on:{day[:7]}"}),
    ):
        opened = open_page(page, zone=zone, **asked)

        assert not opened.exception, asked


@pytest.mark.parametrize(
    ("asked", "sessions"),
    [
        ({"from": "0900-01-01"}, 3),
        ({"to": "9999-12-31"}, 4),
        ({"from": "9999-12-31", "to": "9999-12-31"}, 1),
        ({"q": "on:9999-12-31"}, 1),
        ({"q": "on:9999"}, 1),
        ({"q": "before:9999-12-31"}, 3),
        ({"q": "on:0001-01-01"}, 1),
        ({"q": "after:0001-01-01"}, 4),
        ({"q": "before:0001-01-01"}, 0),
    ],
)
def test_the_first_and_the_last_day_of_the_calendar_are_days(open_page, years, asked, sessions):
    page = open_page("sessions", zone="UTC", when="", **asked)

    shown = "\n".join(str(element.value) for element in (*page.caption, *page.markdown))
    assert ("Nothing passes all of this" in shown) == (sessions == 0)
    assert sum(len(table.value) for table in page.dataframe) == sessions


def test_a_day_in_a_far_year_has_its_four_digits(open_page, years):
    page = open_page("sessions", zone="UTC", **{"from": "0900-01-01", "to": "0900-01-01"})

    assert "0900-01-01 12:00" in page.dataframe[0].value.to_string()
