"""Money over every store: values typed in by hand, and each message's money once, whatever the forks."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessions_lib import prices, stats, text
from sessions_lib.prices import Spent
from sessions_lib.query import Query, parse
from sessions_lib.store.manager import SessionManager
from tests import money
from tests.store.test_store import STORES

UTC = ZoneInfo("UTC")
ALL = Query()


@pytest.fixture(params=STORES)
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> SessionManager:
    made = SessionManager(STORES[request.param](tmp_path / "sessions"))
    money.fill(made)
    return made


def spent(row: Any) -> tuple[float | None, int, int]:
    return None if pd.isna(row.cost) else row.cost, row.unpriced, row.unmetered


def test_what_each_session_spent_and_what_its_copies_had_cost(manager: SessionManager) -> None:
    costs = manager.catalog.costs([*money.OWN, "nowhere"])

    assert {name: (own.cost, own.unpriced, own.unmetered) for name, (own, _) in costs.items()} == money.OWN
    copied = {name: (part.cost, part.unpriced, part.unmetered) for name, (_, part) in costs.items()}
    assert copied == {**dict.fromkeys(money.OWN, (None, 0, 0)), **money.INHERITED}


def test_sums_count_each_message_once_and_copies_stand_beside_them(manager: SessionManager) -> None:
    figures = stats.figures(manager.catalog)

    assert figures.money == Spent(money.ONCE, 1_550, 700)
    assert figures.money_again == Spent(money.AGAIN, 0, 0)
    assert (figures.tokens.reported, figures.tokens.answers) == (8, 9)


def test_by_model_tag_tool_day_and_family(manager: SessionManager) -> None:
    by_model = {row.model: spent(row) for row in stats.by_model(manager.catalog).itertuples()}
    by_tag = {row.tag: spent(row) for row in stats.by_tag(manager.catalog).itertuples()}
    families = {row.root: spent(row) for row in stats.families(manager.catalog).itertuples()}
    (day,) = stats.by_day(manager.catalog, zone=UTC).itertuples()

    assert by_model == {
        "gpt-5": (1.71, 0, 0),
        "claude-sonnet-4-5": (0.099, 0, 0),
        "mystery-9000": (None, 1_550, 0),
        "llama3.1": (None, 0, 700),
    }
    assert by_tag == {"paid": (1.799, 0, 0), "odd": (0.01, 1_550, 700)}  # forks wear their parent's tags
    assert families["parent"] == (1.799, 0, 0)
    assert families["mystery"] == (None, 1_500, 0)
    assert spent(day) == (money.ONCE, 1_550, 700)
    assert stats.by_tool(manager.catalog).empty


def test_sessions_are_sorted_and_found_by_what_was_spent_in_them(manager: SessionManager) -> None:
    def ids(asked: str) -> set[str]:
        return set(manager.catalog.ids(parse(asked)))

    dearest = [row.id for row in manager.catalog.page(ALL, "cost").rows]

    assert dearest == ["grandchild", "parent", "fork", "mixed", "local", "mystery", "silent"]
    assert ids("cost:>1") == {"grandchild"}
    assert ids("cost:>=0.099 cost:<=$0.45") == {"parent", "fork"}
    assert ids("cost:<0.05") == {"mixed"}
    assert ids("cost:>0 tag:odd") == {"mixed"}
    assert ids("cost:dear") == set()
    assert parse("cost:dear").notes
    assert {hit.session for hit in manager.search("prompt cost:>1")} == {"grandchild"}


def test_the_price_of_a_day_and_of_the_address_of_an_answer_counts(manager: SessionManager) -> None:
    session = manager.create(session_id="o3", base_url="http://localhost:1/v1", model="small")
    usage = money.usage(100_000, 10_000)
    before = {**money.turn("o3", 1, "o3", usage)[1], "timestamp": "2025-06-09T23:59:59Z"}
    after = {**money.turn("o3", 2, "o3", usage)[1], "timestamp": "2025-06-10T00:00:00Z"}
    elsewhere = {**money.turn("o3", 3, "small", usage)[1], "base_url": "https://api.openai.com/v1"}
    session.extend([before, after, elsewhere, *money.turn("o3", 4, "small", usage)])

    own, _ = manager.catalog.costs(["o3"])["o3"]

    assert own == Spent(1.68, 110_000, 110_000)  # 1.40 and 0.28; "small" of OpenAI has no price, at home no meter
    session.update_meta({"base_url": "https://api.openai.com/v1"})
    assert manager.catalog.costs(["o3"])["o3"][0] == Spent(1.68, 220_000, 0)


def test_prices_that_change_tiers_batches_and_advisors_are_right_to_the_cent(manager: SessionManager) -> None:
    money.vary(manager)

    rows = stats.messages(manager.catalog, parse("varied"))
    by_day = stats.by_day(manager.catalog, parse("varied"), zone=UTC)
    by_model = {row.model: row.cost for row in stats.by_model(manager.catalog, parse("varied")).itertuples()}

    assert [text.money(cost) for cost in rows[rows["role"] == "assistant"]["cost"]] == list(money.VARIED)
    assert manager.catalog.costs(["varied"])["varied"][0] == Spent(money.VARIED_SUM)
    assert by_day["cost"].tolist() == [1.4, 0.28, 1.300256]
    assert by_model["o3"] == 1.68
    assert by_model["claude-opus-4-5"] == 0.0125
    context = stats.context(manager.catalog, "varied")
    assert [text.money(cost) for cost in context["cost"]] == list(money.VARIED)


def test_own_prices_count_as_soon_as_they_are_written(
    manager: SessionManager, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = stats.figures(manager.catalog).money
    (tmp_path / "own.toml").write_text('[model."mystery-*"]\ninput = 1\noutput = 2\n')
    monkeypatch.setenv("FORKBOOK_PRICES", str(tmp_path / "own.toml"))

    after = stats.figures(manager.catalog).money

    assert before == Spent(money.ONCE, 1_550, 700)
    assert after == Spent(1.81106, 0, 700)  # 1,040 × 1 and 510 × 2 millionths more
    monkeypatch.delenv("FORKBOOK_PRICES")
    assert stats.figures(manager.catalog).money == before


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    acts=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.sampled_from(["gpt-5", "o3", "m"])), max_size=12)
)
@pytest.mark.parametrize("kind", ["memory", "folder"])
def test_a_familys_cost_is_the_sum_of_its_messages_each_once(tmp_path_factory: Any, kind: str, acts: Any) -> None:
    manager = SessionManager(STORES[kind](tmp_path_factory.mktemp("money")))
    sessions = [manager.create(session_id="root")]
    for number, (whose, at, model) in enumerate(acts):
        session = sessions[whose % len(sessions)]
        if at % 3 == 0 and len(session.messages) > 1:
            sessions.append(session.fork(f"f{number}", at=2 * (at % (len(session.messages) // 2)) or None))
        else:
            session.extend(money.turn(f"n{number}", number, model, money.usage(1_000 * at, 10 * whose)))

    messages = {message["id"]: message for session in sessions for message in session.messages}
    each = [prices.of([message], {}) for message in messages.values()]
    (row,) = stats.families(manager.catalog).itertuples()

    total = prices.add(each)
    assert spent(row) == (total.cost if each else 0, total.unpriced, total.unmetered)
    assert (row.root, row.sessions) == ("root", len(sessions))
