"""Money typed in by hand: dollars for tokens, from the price lists of the providers."""

from __future__ import annotations

from datetime import UTC, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from genai_prices.data import providers
from genai_prices.types import TieredPrices, TimeOfDateConstraint

from sessions_lib import own_prices, prices
from sessions_lib.importers.imported import chat_usage
from sessions_lib.price_table import STEPS

NOVEMBER = datetime(2026, 11, 1, 12, tzinfo=UTC)
CACHED = {
    "input_tokens": 1_000,
    "cache_creation_input_tokens": 10_000,
    "cache_creation": {"ephemeral_5m_input_tokens": 4_000, "ephemeral_1h_input_tokens": 6_000},
    "cache_read_input_tokens": 50_000,
    "output_tokens": 2_000,
}
ADVISED = {
    "input_tokens": 1_000,
    "output_tokens": 500,
    "cache_read_input_tokens": 0,
    "cache_creation_input_tokens": 0,
    "iterations": [
        {"type": "message", "input_tokens": 1_000, "output_tokens": 500},
        {"type": "advisor_message", "model": "claude-opus-4-5", "input_tokens": 2_000, "output_tokens": 100},
    ],
}


def chat(sent: int, made: int, **more: Any) -> dict[str, Any]:
    return {"prompt_tokens": sent, "completion_tokens": made, "total_tokens": sent + made, **more}


@pytest.fixture(autouse=True)
def no_own_prices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("FORKBOOK_PRICES", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


@pytest.mark.parametrize(
    ("usage", "model", "when", "dollars"),
    [
        # Sonnet 4.5: 3, cached 0.30, written 3.75, written for an hour 6, out 15
        # 1,000 × 3 + 50,000 × 0.30 + 4,000 × 3.75 + 6,000 × 6 + 2,000 × 15 = 99,000 millionths
        pytest.param(CACHED, "claude-sonnet-4-5-20250929", NOVEMBER, 0.099, id="both kinds of cache writes"),
        pytest.param(chat_usage(CACHED), "claude-sonnet-4-5", NOVEMBER, 0.099, id="the same after an import"),
        pytest.param(
            {**CACHED, "cache_creation": None}, "claude-sonnet-4-5", NOVEMBER, 0.0855, id="writes of five minutes alone"
        ),
        pytest.param(
            {"input_tokens": 4_000, "cache_creation": {"ephemeral_1h_input_tokens": 1_000}, "output_tokens": 0},
            "claude-sonnet-4-5",
            NOVEMBER,
            0.015,  # 3,000 × 3 + 1,000 × 6
            id="hour writes that no sum holds",
        ),
        pytest.param(chat(200_000, 100), "claude-sonnet-4-5", NOVEMBER, 0.6015, id="at 200,000"),
        pytest.param(chat(200_001, 100), "claude-sonnet-4-5", NOVEMBER, 1.202256, id="above 200,000: 6 and 22.50"),
        pytest.param(chat(200_001, 100), "claude-sonnet-4-6", datetime(2026, 3, 12, tzinfo=UTC), 1.202256, id="until"),
        pytest.param(chat(200_001, 100), "claude-sonnet-4-6", datetime(2026, 3, 13, tzinfo=UTC), 0.601503, id="since"),
        pytest.param(chat(100_000, 10_000), "o3", datetime(2025, 6, 9, 23, 59, tzinfo=UTC), 1.40, id="10 and 40"),
        pytest.param(chat(100_000, 10_000), "o3", datetime(2025, 6, 10, tzinfo=UTC), 0.28, id="2 and 8 the day after"),
        pytest.param(
            chat(100_000, 10_000, completion_tokens_details={"reasoning_tokens": 9_000}),
            "o3",
            NOVEMBER,
            0.28,
            id="reasoning is inside the output",
        ),
        pytest.param(
            {"promptTokenCount": 1_000, "candidatesTokenCount": 100, "thoughtsTokenCount": 900},
            "gemini-2.5-pro",
            NOVEMBER,
            0.01125,  # 1,000 × 1.25 + 1,000 × 10
            id="Gemini's thoughts are beside its output",
        ),
        pytest.param(
            chat(100_000, 10_000, prompt_tokens_details={"cached_tokens": 80_000}), "gpt-5", NOVEMBER, 0.135, id="read"
        ),  # 20,000 × 1.25 + 80,000 × 0.125 + 10,000 × 10
        pytest.param(
            chat(100_000, 10_000, service_tier="batch"), "claude-haiku-4-5", NOVEMBER, 0.075, id="batch: 0.50 and 2.50"
        ),
        pytest.param(chat(100_000, 10_000, service_tier="priority"), "gpt-5", NOVEMBER, 0.45, id="2.50 and 20"),
        pytest.param(chat(100_000, 10_000, service_tier="flex"), "gpt-5", NOVEMBER, 0.1125, id="0.625 and 5"),
        pytest.param(
            {"input_tokens": 10_000, "output_tokens": 1_000, "speed": "fast"},
            "claude-opus-5",
            NOVEMBER,
            0.15,
            id="fast",
        ),
        pytest.param(
            {"input_tokens": 1_000, "output_tokens": 0, "server_tool_use": {"web_search_requests": 3}},
            "claude-sonnet-4-5",
            NOVEMBER,
            0.033,  # 1,000 × 3, and 10 dollars for 1,000 searches
            id="web searches",
        ),
        # 1,000 × 3 + 500 × 15 of its own; 2,000 × 5 + 100 × 25 of the advisor
        pytest.param(chat_usage(ADVISED), "claude-sonnet-4-5", NOVEMBER, 0.023, id="an advisor at its own price"),
        pytest.param(
            chat_usage({**ADVISED, "server_tool_use": {"web_search_requests": 3}}),
            "claude-sonnet-4-5",
            NOVEMBER,
            0.053,
            id="the searches beside an advisor once",
        ),
        pytest.param(chat(1_000_000, 0), "openrouter/anthropic/claude-sonnet-5", NOVEMBER, 2.0, id="a router's name"),
        pytest.param(chat(1_000_000, 0), "anthropic/claude-sonnet-5", NOVEMBER, 2.0, id="a provider's name before it"),
        pytest.param(chat(0, 0), "gpt-5", NOVEMBER, 0.0, id="nothing, and known"),
        pytest.param({"completion_tokens": 1_000}, "gpt-5", NOVEMBER, 0.01, id="the rest of an answer"),
        pytest.param(
            chat(1_000, 0, prompt_tokens_details={"cached_tokens": 9_000}),
            "gpt-5",
            NOVEMBER,
            0.000125,
            id="too many read",
        ),
    ],
)
def test_a_table_typed_in_by_hand(usage: Any, model: str, when: datetime, dollars: float) -> None:
    cost = prices.cost(usage, model, when)

    assert (cost.state, cost.amount, cost.currency) == ("priced", dollars, "USD")


@pytest.mark.parametrize(
    ("usage", "model", "base_url", "state", "name"),
    [
        (chat(9, 9), "mystery-9000", None, "unpriced", "mystery-9000"),
        (chat(9, 9), "gpt-9-turbo", None, "unpriced", "gpt-9-turbo"),
        (chat(9, 9), "", None, "unpriced", "unknown model"),
        (chat(9, 9), "llama3.1", "https://api.openai.com/v1", "unpriced", "llama3.1"),
        (chat(9, 9), "deepseek-r1:14b", None, "unpriced", "deepseek-r1:14b"),  # a small copy, not what DeepSeek sells
        (
            chat(9, 9),
            "deepseek/deepseek-r1:free",
            None,
            "unpriced",
            "deepseek/deepseek-r1:free",
        ),  # not what DeepSeek sells
        ({"total_tokens": 18}, "gpt-5", "http://localhost:1/v1", "unmetered", "gpt-5"),
        ({"total_tokens": 18}, "gpt-5", None, "unpriced", "gpt-5"),  # nobody knows what was sent and what was made
        (None, "gpt-5", None, "unpriced", "gpt-5"),
        ({}, "gpt-5", None, "unpriced", "gpt-5"),
        (chat(9, 9), "gpt-5", "http://127.0.0.1:11434/v1", "unmetered", "gpt-5"),
        (chat(9, 9), "llama3.1", "http://localhost:1234", "unmetered", "llama3.1"),
        (chat(9, 9), "llama3.1", "http://[::1]:8080/v1", "unmetered", "llama3.1"),
        (chat(9, 9), "llama3.1", "http://192.168.1.7:11434/v1", "unmetered", "llama3.1"),
        (chat(9, 9), "llama3.1", "http://gpu.local:11434/v1", "unmetered", "llama3.1"),
        (chat(9, 9), "demo", None, "unmetered", "demo"),
        (chat(9, 9), "sample-large", None, "unmetered", "sample-large"),
    ],
)
def test_what_has_no_price_has_no_amount_and_never_zero(
    usage: Any, model: str, base_url: str | None, state: str, name: str
) -> None:
    cost = prices.cost(usage, model, NOVEMBER, base_url)

    assert (cost.state, cost.amount, cost.matched) == (state, None, name)


def test_an_answer_is_unpriced_as_long_as_one_of_its_models_is() -> None:
    usage = {"model_calls": [{**chat(1_000, 0), "model": "gpt-5"}, {**chat(7, 0), "model": "mystery"}]}

    assert (prices.cost(usage, "gpt-5").state, prices.cost(usage, "gpt-5").matched) == ("unpriced", "mystery")


@pytest.mark.parametrize(
    ("model", "base_url", "tier", "matched"),
    [
        ("gpt-5", None, "", "openai gpt-5"),
        ("gpt-5", "https://models.example.org/v1", "", "openai gpt-5"),
        ("gpt-5", "http://10.0.0.5:4000", "", "openai gpt-5"),  # a proxy of the house
        ("claude-sonnet-5", "https://openrouter.ai/api/v1", "", None),
        ("gpt-5", None, "flex", "openai gpt-5, flex"),
        ("claude-sonnet-5", None, "priority", "anthropic claude-sonnet-5, no price for priority: the usual one"),
    ],
)
def test_the_price_that_was_taken_is_named(model: str, base_url: str | None, tier: str, matched: str | None) -> None:
    cost = prices.cost(chat(9, 9, service_tier=tier), model, NOVEMBER, base_url)

    assert cost.amount is None if matched is None else (cost.matched == matched and cost.version)


def test_the_table_knows_no_length_and_no_time_that_sums_would_mix() -> None:
    starts, times = set(), set()
    for model in (model for provider in providers for model in provider.models):
        listed = model.prices if isinstance(model.prices, list) else []
        constraints = [one.constraint for one in (*listed, *(model.price_variants or ()))]
        times |= {
            moment
            for one in constraints
            if isinstance(one, TimeOfDateConstraint)
            for moment in (one.start_time, one.end_time)
        }
        for price in (*(one.prices for one in (*listed, *(model.price_variants or ()))), model.prices):
            if not isinstance(price, list):
                tiered = (value for value in vars(price).values() if isinstance(value, TieredPrices))
                starts |= {tier.start for value in tiered for tier in value.tiers}

    assert starts <= set(STEPS)
    assert all(moment.minute % 15 == 0 and moment.second == 0 and isinstance(moment, time) for moment in times)


# --- a person's own prices --------------------------------------------------------------------------------------------


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    monkeypatch.setenv("FORKBOOK_PRICES", str(path))
    return path


def test_own_prices_come_first_in_any_currency_with_one_rate(own: Path) -> None:
    own.write_text(
        'currency = "EUR"\nrate = 1.10\n'
        '[model."My-Model"]\ninput = 0.5\noutput = 2\ncached = 0.1\n'
        '[model."gpt-*"]\ninput = 1\noutput = 1\n[model."gpt-5"]\ninput = 3\noutput = 3\n'
    )
    usage = chat(1_000_000, 100_000, prompt_tokens_details={"cached_tokens": 400_000})

    assert prices.cost(usage, "my-model").amount == 0.594  # (600,000 × 0.5 + 400,000 × 0.1 + 100,000 × 2) × 1.10
    assert prices.cost(usage, "my-model", base_url="http://localhost:1").amount == 0.594
    assert prices.cost(chat(1_000_000, 0), "gpt-4o").amount == 1.1
    assert prices.cost(chat(1_000_000, 0), "openai/gpt-5").amount == 3.3
    assert prices.cost(usage, "my-model").matched == "My-Model of your mine.toml"
    assert "mine.toml" in prices.cost(usage, "my-model").version
    assert prices.cost(usage, "other").state == "unpriced"


def test_a_changed_file_counts_at_once(own: Path) -> None:
    own.write_text("[model.m]\ninput = 1\noutput = 1\n")
    before = prices.cost(chat(1_000_000, 0), "m").amount

    own.write_text("[model.m]\ninput = 20\noutput = 1\n")

    assert (before, prices.cost(chat(1_000_000, 0), "m").amount) == (1.0, 20.0)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[model.m\n", "line 1"),
        ("[model.m]\ninput = 1\n", 'model."m" needs input and output'),
        ("[model.m]\ninput = 1\noutput = -2\n", 'model."m" output is no amount'),
        ("[model.m]\ninput = nan\noutput = 2\n", 'model."m" input is no amount'),
        ("[model.m]\ninput = true\noutput = 2\n", 'model."m" input is no amount'),
        ("[model.m]\ninput = 1\noutput = 2\ncache = 3\n", 'model."m" says cache, which is none of input, output'),
        ("model = 3\n", "model is no table"),
        ('currency = "EUR"\n[model.m]\ninput = 1\noutput = 1\n', "prices in EUR need a rate"),
        ("[prices.m]\ninput = 1\n", "the file says prices, which is none of"),
        ("[budget]\nsession = 'much'\n", "budget session is no amount"),
    ],
)
def test_a_file_with_a_fault_is_not_used_and_says_why(own: Path, text: str, told: str) -> None:
    own.write_text(text)

    found = own_prices.current()

    assert told in found.fault
    assert (str(own) in found.fault, found.prices, found.folder_budgets) == (True, {}, {})


def test_a_named_file_that_is_not_there_is_told_and_the_usual_one_need_not_be(own: Path, monkeypatch: Any) -> None:
    missing = own_prices.current().fault
    monkeypatch.delenv("FORKBOOK_PRICES")

    assert f"{own} cannot be read" in missing
    assert own_prices.current() == own_prices.Own()


@pytest.mark.parametrize("named", ["~nobody-of-this-name/prices.toml", "\x01", "/"])
def test_a_path_that_leads_nowhere_is_told(monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    monkeypatch.setenv("FORKBOOK_PRICES", named)

    assert "cannot be read" in own_prices.current().fault


def test_sums_do_not_depend_on_their_order() -> None:
    parts = [prices.Spent(0.1), prices.Spent(0.2, 5), prices.Spent(None, 0, 7), prices.Spent(0.3)]

    assert prices.add(parts) == prices.add(reversed(parts)) == prices.Spent(0.6, 5, 7)
    assert prices.add([]) == prices.Spent()
    assert Decimal(str(prices.add(parts).cost)) == Decimal("0.6")


# --- what a tool reported ---------------------------------------------------------------------------------------------


def answered(told: Any, usage: Any = None, **more: Any) -> dict[str, Any]:
    """An answer of o3 that cost $0.28, and what a tool reported of it."""
    reported = {"usage_reported": {"cost": told}} if told is not None else {}
    stamp = "2026-11-01T12:00:00Z"
    return {
        "role": "assistant",
        "model": "o3",
        "usage": usage or chat(100_000, 10_000),
        "timestamp": stamp,
        **reported,
        **more,
    }


@pytest.mark.parametrize(
    ("said", "written", "differs"),
    [
        ([answered({"total": 0.28, "input": 0.2})], "$0.28 reported", False),
        ([answered(0.2801)], "$0.28 reported", False),
        ([answered(0.2773)], "$0.277 reported", False),  # within one per cent
        ([answered(0.25)], "$0.25 reported, less than the $0.28 computed", True),
        ([answered(0.0)], "$0 reported, less than the $0.28 computed", True),
        ([answered(0.28), answered(0.30), answered(None)], "$0.58 reported, more than the $0.56 computed", True),
        ([answered(0.1, model="mystery")], "$0.10 reported", False),
        ([answered(0.28), answered(0.1, model="mystery")], "$0.38 reported", False),
        ([answered(None, {**chat(100_000, 10_000), "cost": 0.28})], "$0.28 reported", False),  # OpenRouter
        ([answered(None, cost_usd=0.5)], "$0.50 reported, more than the $0.28 computed", True),
        ([answered("much"), answered(-1), answered(True), answered(float("nan")), answered(None)], None, None),
    ],
)
def test_what_a_tool_reported_stands_beside_what_is_computed(said: Any, written: str | None, differs: bool) -> None:
    found = prices.reported(said, {})

    assert (found and str(found), found and found.differs) == (written, differs)


def test_only_the_answers_that_were_asked_about_count() -> None:
    found = prices.reported([answered(0.28), answered(0.14)], {}, 1)

    assert found == prices.Reported(0.14, 0.28)


# --- a price by another name ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "tier", "names"),
    [
        ("gpt-5", "", []),
        ("claude-sonnet-4-5-20250929", "", []),
        ("anthropic/claude-sonnet-4.5", "", []),
        ("claude-opus-4-5@20251101", "", []),
        ("gpt-5", "flex", []),
        ("mystery", "", []),
        ("demo", "", []),
        ("gpt-5.1-codex-max", "", ["openai gpt-5.1"]),
        ("claude-opus-4-5-thinking", "", ["anthropic claude-opus-4-5"]),
        ("claude-sonnet-5", "priority", ["anthropic claude-sonnet-5, no price for priority: the usual one"]),
    ],
)
def test_a_price_of_another_name_is_said(model: str, tier: str, names: list[str]) -> None:
    said = [{"role": "assistant", "model": model, "usage": chat(9, 9, service_tier=tier)}] * 2

    assert prices.borrowed(said, {}) == names


def test_a_persons_own_price_is_none_of_another_name(own: Path) -> None:
    own.write_text('[model."gpt-*"]\ninput = 1\noutput = 1\n')

    assert prices.borrowed([{"role": "assistant", "model": "gpt-5.1-codex-max", "usage": chat(9, 9)}], {}) == []
