"""Stats in a real browser: charts are drawn and narrow the page when they are clicked, tables are downloaded."""

from __future__ import annotations

import re

import pytest

from sessions_lib import SessionManager


def said(text, role="user", **keys):
    return {"role": role, "content": text, **keys}


@pytest.fixture(autouse=True)
def sessions(app):
    manager = SessionManager(app.folder)
    if manager.exists("a"):
        return manager
    usage = {"prompt_tokens": 60, "completion_tokens": 40, "total_tokens": 100}
    manager.create("Harbour", tags=["red"], session_id="a").extend(
        [
            said("Where?", timestamp="2026-03-04T10:00:00Z"),
            said("South.", "assistant", model="m-1", usage=usage, timestamp="2026-03-04T10:00:05Z", first_token_ms=400),
        ]
    )
    manager.create("Tower <b>notes</b> $5 $6 :red[x]", tags=["green"], session_id="b").extend(
        [
            said("How tall?", timestamp="2026-03-06T10:00:00Z"),
            said("30 metres.", "assistant", model="m-2", usage=usage, timestamp="2026-03-06T10:00:05Z"),
        ]
    )
    function = {"name": "tide", "arguments": "{}"}
    manager.open("b").append(
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": function}], "model": "m-2",
         "timestamp": "2026-03-06T10:00:06Z"}
    )  # fmt: skip
    manager.fork("a", "c", title="fork")
    return manager


def figure(page, name):
    box = page.locator('[data-testid="stMetric"]').filter(has_text=name)
    return box.locator('[data-testid="stMetricValue"]').inner_text()


def chart(page, name):
    """The drawing of the chart whose key starts with ``name``; its marks are clicked by place."""
    drawing = page.locator(
        f'[class*="st-key-stats_{name}_"] .vega-embed svg, [class*="st-key-stats_{name}_"] canvas'
    ).first
    drawing.wait_for()
    drawing.scroll_into_view_if_needed()
    page.wait_for_timeout(400)
    return drawing


def test_figures_count_the_start_that_a_fork_copied_once(app):
    page = app.open("/stats?when=all")

    assert figure(page, "Tokens") == "200"
    assert figure(page, "Sessions") == "3"
    assert "Forks hold 100 tokens again" in page.locator(".stMain").inner_text()


def test_a_click_on_a_bar_narrows_the_page_and_stands_in_the_address(app):
    page = app.open("/stats?when=all")
    box = chart(page, "models").bounding_box()

    # Two bars lie below each other, right of their names.
    page.mouse.click(box["x"] + box["width"] * 0.4, box["y"] + box["height"] * 0.27)
    page.wait_for_url(re.compile(r"model=m-\d"))
    app.settle(page)

    assert figure(page, "Tokens") == "100"
    page.locator(".st-key-stats_asked button:visible").first.click()
    page.wait_for_url(re.compile(r"/stats(?!.*model=)"))


def test_a_days_bar_narrows_to_that_day(app):
    page = app.open("/stats?when=all")
    box = chart(page, "turns-by-day").bounding_box()

    for share in (0.97, 0.95, 0.93, 0.9, 0.88):
        page.mouse.click(box["x"] + box["width"] * share, box["y"] + box["height"] * 0.55)
        page.wait_for_timeout(700)
        if "from=" in page.url:
            break

    assert "from=2026-03-06" in page.url
    assert "to=2026-03-06" in page.url


@pytest.mark.parametrize(
    ("name", "goes_to"),
    [
        ("tokens-by-day-kind", r"/stats\?.*from=2026-03-0\d"),
        ("year", r"/stats\?.*from=202\d-\d\d-\d\d"),
        ("tags", r"/stats\?.*tag=(red|green)"),
        ("tools", r"/stats\?.*q=tool%3Atide"),
        ("expensive-sessions", r"/sessions\?session=[ab]"),
        ("expensive-families", r"/sessions\?session=[ab]"),
        ("growth", r"/chat\?session=[ab]&message=1"),
    ],
)
def test_every_chart_leads_to_what_is_clicked(app, name, goes_to):
    page = app.open("/stats?when=all")
    box = chart(page, name).bounding_box()

    for across, down in ((0.5, 0.3), (0.5, 0.5), (0.4, 0.7), (0.95, 0.6), (0.97, 0.7), (0.1, 0.6), (0.12, 0.7)):
        page.mouse.click(box["x"] + box["width"] * across, box["y"] + box["height"] * down)
        page.wait_for_timeout(900)
        if re.search(goes_to, page.url):
            break

    assert re.search(goes_to, page.url), page.url
    app.settle(page)


def test_a_table_is_downloaded_as_csv(app):
    page = app.open("/stats?when=all")

    page.locator(".st-key-stats_models_open summary").click()
    page.wait_for_selector(".st-key-stats_models_csv button:visible")
    with page.expect_download() as waiting:
        page.locator(".st-key-stats_models_csv button:visible").click()

    lines = waiting.value.path().read_text(encoding="utf-8-sig").splitlines()
    assert waiting.value.suggested_filename == "models.csv"
    assert lines[0].startswith("Model,Sessions,Answers,Tokens in")
    assert sorted(line.split(",")[0] for line in lines[1:]) == ["m-1", "m-2"]


def test_the_days_are_those_of_the_browser_unless_chosen(app):
    here = app.open("/stats?when=all", timezone_id="America/Sao_Paulo")
    there = app.open("/stats?when=all&zone=Asia/Tokyo", timezone_id="America/Sao_Paulo")

    assert "Days are those of America/Sao_Paulo." in here.locator(".stMain").inner_text()
    assert "Days are those of Asia/Tokyo." in there.locator(".stMain").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_of_a_title_is_interpreted_in_either_theme(app, scheme):
    page = app.open("/stats?when=all", color_scheme=scheme)

    chart(page, "expensive-sessions")
    assert page.locator(".stMain b").count() == 0
    assert page.locator(".st-key-stats_growth input").input_value() == "Tower <b>notes</b> $5 $6 :red[x]"


def test_kinds_of_tokens_have_colours_of_no_branch(app):
    drawing = chart(app.open("/stats?when=all"), "tokens-by-day-kind")

    fills = drawing.evaluate(
        "node => [...node.querySelectorAll('.mark-rect path[aria-label]')].map(e => e.getAttribute('fill'))"
    )

    assert set(fills) == {"#64748b", "#4d7c0f"}  # in and out: indigo, teal, amber and pink are branches A to D


def test_an_axis_of_days_says_the_year(app):
    drawing = chart(app.open("/stats?when=all"), "tokens-by-day-kind")

    written = drawing.locator("text, tspan").all_text_contents()

    assert "2026" in written
    assert "04 Mar" in written
