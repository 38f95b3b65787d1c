"""Money of a comparison: what each branch cost after the shared start, which cost what it cost once."""

from __future__ import annotations

from pathlib import Path

import pytest

from sessions_lib import compare
from sessions_lib.compare import wording
from sessions_lib.export import comparison as export_comparison
from sessions_lib.export import comparison_html
from sessions_lib.prices import Spent
from sessions_lib.store.manager import SessionManager
from tests import money


@pytest.fixture
def manager(tmp_path: Path) -> SessionManager:
    made = SessionManager(tmp_path / "s")
    money.fill(made)
    return made


def compared(manager: SessionManager, *names: str) -> compare.Comparison:
    return compare.compare([compare.Branch.of(manager.open(name)) for name in names])


def row(found: compare.Comparison) -> list[tuple[str, str]]:
    (cost,) = [one for one in wording.figure_table(found) if one.title == "Cost"]
    return [(cell.text, cell.delta) for cell in cost.cells]


def test_the_shared_start_cost_its_money_once(manager: SessionManager) -> None:
    found = compared(manager, "parent", "fork", "grandchild")

    assert found.shared.money == Spent(0.225)
    assert wording.shared(found.shared) == "2 messages · 110,000 tokens · $0.225, once · identical"
    assert found.money == (Spent(0.225), Spent(0.099), Spent(1.349))
    assert row(found) == [("$0.225", ""), ("$0.099", "−$0.126"), ("$1.35", "+$1.12")]
    total = found.shared.money.cost + sum(one.cost for one in found.money)  # type: ignore[operator,misc]  # all are known
    assert round(total, 6) == round(1.799 + 0.099, 6)  # two branches hold what the fork added: the start is once


def test_what_has_no_price_is_no_difference(manager: SessionManager) -> None:
    assert row(compared(manager, "parent", "mystery", "local")) == [("$0.45", ""), ("unpriced", ""), ("unmetered", "")]
    assert row(compared(manager, "mixed", "parent", "silent")) == [
        ("≥ $0.01", ""),
        ("$0.45", "≈ +$0.44"),
        ("unknown", ""),
    ]
    nothing = wording.figure_table(compared(manager, "parent", "parent"))
    assert "Cost" not in [one.title for one in nothing]  # nobody spent anything after the shared start


def test_every_form_of_a_comparison_has_the_money(manager: SessionManager) -> None:
    found = compared(manager, "parent", "fork")
    written = export_comparison.as_json(found)

    assert written["money"][1] == {"cost_usd": 0.099, "unpriced_tokens": 0, "unmetered_tokens": 0}
    assert written["shared"]["cost_usd"] == 0.225
    assert "| Cost | $0.225 | $0.099 (−$0.126, −56 %) |" in export_comparison.markdown(found)
    assert "$0.225, once" in export_comparison.terminal(found, 100, colour=False)
    assert "−$0.126" in comparison_html.document(found)
