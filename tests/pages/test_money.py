"""Money on the pages, to the cent; unknown is never 0, what has no price is named."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from pages.shared import browser
from sessions_lib.store.manager import SessionManager
from tests import money
from tests.model_server import ModelServer


@pytest.fixture(autouse=True)
def filled(folder: Path) -> None:
    money.fill(SessionManager(folder))


def plain(markdown):
    """What Markdown shows of a text without marks: each sign that is escaped once."""
    return re.sub(r"\\(.)", r"\1", markdown)


def captions(page):
    return [plain(one.value) for one in page.caption]


def metrics(page):
    return {one.label: plain(one.value) for one in page.metric}


def test_chat_says_what_was_spent_in_the_session_and_apart_what_its_start_had_cost(open_page):
    said = captions(open_page("chat", session="fork"))

    assert any("63,000 own and 110,000 inherited tokens · $0.099 own and $0.225 inherited · " in one for one in said)
    assert "gpt-5 · 100,000 in · 10,000 out · $0.225" in said
    assert "claude-sonnet-4-5 · 61,000 in · 2,000 out · $0.099" in said


@pytest.mark.parametrize(
    ("session", "head", "turn"),
    [
        ("parent", "220,000 tokens · $0.45", "$0.225"),
        ("mystery", "1,500 tokens · unpriced", "unpriced"),
        ("local", "700 tokens · unmetered", "unmetered"),
        ("mixed", "8,050 tokens · ≥ $0.01", "unpriced"),
    ],
)
def test_chat_says_what_has_no_price(open_page, session, head, turn):
    said = captions(open_page("chat", session=session))

    assert any(head in one for one in said)
    assert any(one.endswith(f"out · {turn}") for one in said)


def test_prices_that_change_tiers_batches_and_advisors_are_right_on_every_page(open_page, folder):
    money.vary(SessionManager(folder))

    in_chat, at_home = captions(open_page("chat", session="varied")), captions(open_page("home"))
    table = open_page("sessions").dataframe[0].value

    assert [one.rpartition(" · ")[2] for one in in_chat if " out · $" in one] == list(money.VARIED)
    assert any("· $2.98 ·" in one for one in in_chat)
    assert any("· $2.98 ·" in one for one in at_home)
    assert "$2.98" in list(table["cost"])
    assert metrics(open_page("sessions", session="varied"))["Cost"] == "$2.98"
    assert metrics(open_page("stats", when="all", q="varied"))["Cost"] == "$2.98"


def test_nobody_knows_what_an_answer_without_usage_cost(open_page):
    for name in ("chat", "sessions"):
        page = open_page(name, session="silent")

        assert not any("$" in one for one in captions(page))
        assert metrics(page).get("Cost", "unknown") == "unknown"


def test_the_table_of_sessions_has_what_was_spent_in_each(open_page):
    page = open_page("sessions")

    (table,) = page.dataframe
    costs = dict(
        zip([title.strip(" \u2003└⑂") for title in table.value["title"]], table.value["cost"].fillna("–"), strict=True)
    )
    assert {title.split(" ·")[0]: cost for title, cost in costs.items() if "after" not in title} == {
        "Parent": "$0.45",
        "Mystery": "unpriced",
        "Local": "unmetered",
        "Silent": "–",
        "Mixed": "≥ $0.01",
    }
    assert sorted(cost for title, cost in costs.items() if "after" in title) == ["$0.099", "$1.25"]


def test_sessions_are_sorted_and_filtered_by_cost(open_page):
    dearest = open_page("sessions", order="cost").dataframe[0].value["cost"]
    found = open_page("sessions", q="cost:>0.2").dataframe[0].value["cost"]

    assert list(dearest)[:4] == ["$1.25", "$0.45", "$0.099", "≥ $0.01"]
    assert sorted(found) == ["$0.45", "$1.25"]


def test_a_sessions_own_view_has_both_costs(open_page):
    page = open_page("sessions", session="fork")

    assert (metrics(page)["Own cost"], metrics(page)["Inherited cost"]) == ("$0.099", "$0.225")
    assert any("· $1.25 ·" in one for one in captions(page))  # its own fork, in the family


def test_home_says_what_was_spent_in_each(open_page):
    said = captions(open_page("home"))

    assert any("63,000 own and 110,000 inherited tokens · $0.099 · " in one for one in said)
    assert any("700 tokens · unmetered" in one for one in said)


def test_stats_counts_each_message_once_and_names_the_models_without_a_price(open_page):
    page = open_page("stats", when="all")

    assert not page.exception
    assert metrics(page)["Cost"] == "≥ $1.81"
    (said,) = [one for one in captions(page) if "Prices: genai-prices" in one]
    assert "Forks hold 283.0k tokens again ($0.549), which are not added." in said
    assert "1,550 of mystery-9000 have no price, 700 of llama3.1 are not metered." in said


def test_own_prices_with_a_fault_are_told_on_every_page(open_page, tmp_path, monkeypatch):
    (tmp_path / "own.toml").write_text("[model.m\n")
    monkeypatch.setenv("FORKBOOK_PRICES", str(tmp_path / "own.toml"))

    for name in ("home", "sessions", "stats", "compare"):
        page = open_page(name)

        assert not page.exception
        assert "not used until it is put right" in page.warning[0].value


# --- budgets ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A model server whose answers cost $1.50 each."""
    (tmp_path / "own.toml").write_text("[model.served]\ninput = 100_000\noutput = 100_000\ncached = 10_000\n")
    monkeypatch.setenv("FORKBOOK_PRICES", str(tmp_path / "own.toml"))
    with ModelServer() as server:
        yield server


def ask(page, prompt):
    page.chat_input[0].set_value(prompt).run()
    assert not page.exception
    return page


def wait_until_answered(folder, session, count):
    deadline = time.monotonic() + 60
    while len(SessionManager(folder).open(session).messages) < count:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_spent_budget_is_asked_about_before_the_next_request(open_page, folder, served):
    settings = {"base_url": served.url, "model": "served", "budget_usd": 1.8}
    SessionManager(folder).create(session_id="a", **settings)
    ask(open_page("chat", session="a"), "one")
    wait_until_answered(folder, "a", 2)
    warned = ask(open_page("chat", session="a"), "two")
    wait_until_answered(folder, "a", 4)

    page = ask(open_page("chat", session="a"), "three")

    assert "This session spent $1.50 of a budget of $1.80" in "\n".join(captions(warned))
    assert "This session spent $3.00 of a budget of $1.80; nothing was sent" in plain(page.error[0].value)
    assert len(served.requests) == 2
    assert "three" in [one.value for one in page.code]  # what was typed is kept
    page.button(key="chat-over-budget").click().run()
    wait_until_answered(folder, "a", 6)
    assert len(served.requests) == 3


def test_a_fork_says_what_sending_its_history_once_more_costs_before_it_is_asked(open_page, folder, served):
    session = SessionManager(folder).create(session_id="a", base_url=served.url, model="served")
    session.extend(money.turn("a", 1, "served", money.usage(10, 5)))
    session.fork("b")
    again = "The history is about 15 tokens: $1.50 to send it once more, $0.15 where the provider still has it cached."

    page = open_page("chat", session="b")

    assert again in captions(page)
    assert again not in captions(open_page("chat", session="a"))
    ask(page, "Go on")
    wait_until_answered(folder, "b", 4)
    assert again not in captions(open_page("chat", session="b"))


def test_the_budget_of_a_session_is_set_in_its_settings(open_page, folder):
    page = open_page("chat", session="parent")

    page.button(key="chat-settings").click().run()
    next(one for one in page.number_input if one.label == "Budget in US dollars").set_value(5.0)
    next(one for one in page.button if one.label == "Save").click().run()

    assert SessionManager(folder).open("parent").meta["budget_usd"] == 5.0


def test_what_the_tool_reported_stands_beside_what_is_computed(open_page, folder):
    session = SessionManager(folder).create(session_id="told")
    session.extend(money.turn("told", 1, "gpt-5", money.usage(100_000, 10_000), usage_reported={"cost": 0.2251}))
    session.extend(
        money.turn("told", 2, "gpt-5", money.usage(100_000, 10_000), usage_reported={"cost": {"total": 0.3}})
    )

    said = captions(open_page("chat", session="told"))

    own = metrics(open_page("sessions", session="told"))
    assert (own["Cost"], own["Reported cost"]) == ("$0.45", ":red[$0.525]")
    assert any("$0.45 · :red[$0.525 reported, more than the $0.45 computed]" in one for one in said)
    assert any(one.endswith("$0.225 · $0.225 reported") for one in said)
    assert any(one.endswith("$0.225 · :red[$0.30 reported, more than the $0.225 computed]") for one in said)


def test_a_price_that_goes_by_another_name_is_said(open_page, folder):
    said = money.turn("guess", 1, "gpt-5.1-codex-max", money.usage(8_000, 0))
    SessionManager(folder).create(session_id="guess").extend(said)

    in_chat, in_stats = captions(open_page("chat", session="guess")), captions(open_page("stats", when="all"))

    assert any(one.endswith("0 out · $0.01 · at the price of openai gpt-5.1") for one in in_chat)
    assert any("gpt-5.1-codex-max is taken at the price of openai gpt-5.1. Prices:" in one for one in in_stats)


def test_a_copied_turn_knows_where_it_was_answered(open_page, monkeypatch):
    copied = []
    monkeypatch.setattr(browser, "copy", lambda text, said: copied.append(text))
    page = open_page("chat", session="local")

    page.session_state["cell-menu-local-0"] = True
    page.run().button(key="cell-act-local-0-copy").click().run()

    assert "700 tokens · unmetered" in copied[0]
