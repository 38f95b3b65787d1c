"""Money in the terminal, to the cent: what each session spent, each message once, and what has no price by its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from sessions_lib.store.manager import SessionManager
from tests import money
from tests.cli.terminal import Terminal
from tests.record import call, result


@pytest.fixture
def terminal(terminal: Terminal) -> Terminal:
    money.fill(SessionManager(terminal.folder))
    return terminal


def test_list_says_what_was_spent_in_each_session_when_asked(terminal: Terminal) -> None:
    lines = terminal.ok("list", "--cost").splitlines()

    assert "OWN COST" in lines[0]
    shown = {line.split()[0]: line for line in lines[1:]}
    for name, cost in {
        "parent": "$0.45",
        "fork": "$0.099",
        "grandchild": "$1.25",
        "mystery": "unpriced",
        "local": "unmetered",
        "silent": "-",
        "mixed": "≥ $0.01",
    }.items():
        assert f" {cost} " in shown[name], shown[name]
    assert "COST" not in terminal.ok("list")
    records = {row["id"]: row for row in terminal.records("list", "--cost")}
    assert records["fork"]["own_cost_usd"] == 0.099
    assert records["fork"]["inherited_cost_usd"] == 0.225
    assert (records["mystery"]["own_cost_usd"], records["mystery"]["own_unpriced_tokens"]) == (None, 1_500)


def test_show_says_what_a_session_and_each_answer_cost(terminal: Terminal) -> None:
    fork, mixed, silent = (terminal.ok("show", name) for name in ("fork", "mixed", "silent"))

    assert "63,000 own and 110,000 inherited tokens · $0.099 of its own, $0.225 inherited" in fork
    assert "63,000 tokens · $0.099" in fork
    assert "8,050 tokens · ≥ $0.01" in mixed
    assert "50 tokens · unpriced" in mixed
    assert "tokens unknown" in silent
    assert "$" not in silent
    assert "700 tokens · unmetered" in terminal.ok("show", "local")


def test_stats_sums_each_message_once_and_names_what_has_no_price(terminal: Terminal) -> None:
    said = terminal.ok("stats")
    (found,) = terminal.records("stats")

    assert "Cost          ≥ $1.81 (genai-prices " in said
    assert "1,550 tokens of mystery-9000 unpriced; 700 tokens of llama3.1 unmetered" in said
    assert "324,000 by forks" not in said
    assert "$0.549, not counted above" in said
    assert found["cost_usd"] == money.ONCE
    assert found["sent_again_cost_usd"] == money.AGAIN
    assert found["unpriced"] == [{"model": "mystery-9000", "tokens": 1_550}]
    assert found["unmetered"] == [{"model": "llama3.1", "tokens": 700}]
    assert found["prices"].startswith("genai-prices ")


def test_prices_that_change_tiers_batches_and_advisors_are_right_in_the_terminal(terminal: Terminal) -> None:
    money.vary(SessionManager(terminal.folder))

    shown = terminal.ok("show", "varied")
    answers = [line.rpartition(" · ")[2] for line in shown.splitlines() if "Assistant" in line]
    (found,) = terminal.records("stats", "varied")

    assert answers == list(money.VARIED)
    assert "· $2.98" in shown.splitlines()[1]
    assert found["cost_usd"] == money.VARIED_SUM
    assert " $2.98 " in terminal.ok("list", "--cost")


def test_stats_of_nothing_known_has_no_number(terminal: Terminal) -> None:
    (found,) = terminal.records("stats", "tag:odd", "model:mystery-9000", "cost:<0.001")
    (unknown,) = terminal.records("stats", "silent")

    assert (found["cost_usd"], found["unpriced"]) == (0.0, [])  # no session, so nothing was spent
    assert (unknown["cost_usd"], unknown["unpriced"]) == (None, [])


@pytest.mark.parametrize("by", ["model", "tag", "day", "session", "family"])
def test_every_table_of_stats_has_the_money(terminal: Terminal, by: str) -> None:
    rows = terminal.records("stats", "--by", by)
    shown = terminal.ok("stats", "--by", by)

    column = "own_cost_usd" if by == "session" else "cost_usd"
    known = [row[column] for row in rows if row[column] is not None]
    assert round(sum(known), 9) == money.ONCE
    assert any(" COST" in line and line.isupper() for line in shown.splitlines())


def test_a_broken_file_of_own_prices_is_told_and_nothing_else_fails(terminal: Terminal, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text("[model.m\n")

    done = terminal.run("stats", FORKBOOK_PRICES=str(tmp_path / "own.toml"))

    assert done.returncode == 0
    assert "≥ $1.81" in done.stdout
    assert "own.toml" in done.stderr
    assert "not used until it is put right" in done.stderr


def test_a_price_that_goes_by_another_name_is_said(terminal: Terminal) -> None:
    said = money.turn("guess", 1, "gpt-5.1-codex-max", money.usage(8_000, 0))
    SessionManager(terminal.folder).create(session_id="guess").extend(said)

    assert "8,000 tokens · $0.01 · at the price of openai gpt-5.1" in terminal.ok("show", "guess")
    assert "gpt-5.1-codex-max is taken at the price of openai gpt-5.1" in terminal.ok("stats")


def test_a_tool_has_its_calls_and_what_the_answers_that_called_it_cost(terminal: Terminal) -> None:
    asked, answer = money.turn("tool", 1, "gpt-5", money.usage(8_000, 0))
    session = SessionManager(terminal.folder).create(session_id="tool")
    session.extend([asked, {**answer, **call("c1", "c2"), "content": None}, result("c1"), result("c2", is_error=True)])

    (row,) = terminal.records("stats", "--by", "tool")
    shown = terminal.ok("stats", "--by", "tool")

    assert (row["tool"], row["calls"], row["failures"], row["cost_usd"]) == ("tide", 2, 1, 0.01)
    assert [cell.split() for cell in shown.splitlines()[-2:]] == [
        ["TOOL", "SESSIONS", "COST", "CALLS", "FAILURES"],
        ["tide", "1", "$0.01", "2", "1"],
    ]
