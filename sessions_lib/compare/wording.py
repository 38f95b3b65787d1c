"""A comparison in words: the sentences and numbers that the page and every export show alike.

Does not escape: what it quotes are numbers and our own words only.
"""

from __future__ import annotations

from typing import NamedTuple

from sessions_lib import prices, text
from sessions_lib.compare import LETTERS, Comparison, Row, Shared, metrics
from sessions_lib.compare.branch_map import Lane, TurnMark
from sessions_lib.compare.cells import Cell, Line
from sessions_lib.compare.metrics import Figure
from sessions_lib.messages import places, usage

COST = "Cost"
_COST_MEANING = "What the answers cost, each at the price of its day; a branch is not charged for the shared start."
_WITH_PERCENT = ("tokens_in", "tokens_out", "time_ms", "answer_words")  # turns and calls are few: 1 is not "+100 %"
KINDS = {
    "system": "system",
    "note": "note",
    "prompt": "prompt",
    "said": "on the way",
    "tool": "tool",
    "answer": "answer",
    "stray": "result without a call",
}


def turn_label(row: Row) -> str:
    """``Turn 4``, ``Turn 4 of A, turn 3 of B`` where the numbers differ, ``Turn 2 of B`` where only B has it.

    The rest of a turn says so.
    """
    label = _turn(row, named=any(turn is None for turn in row.turns))
    return f"T{label[1:]}{', the rest of it' * row.is_rest}"


def _turn(row: Row, *, named: bool = False) -> str:
    """``turn 4``; with the letters of its branches where the numbers differ, or ``named``."""
    held = [(letter, turn.number) for letter, turn in zip(LETTERS, row.turns, strict=False) if turn]
    if len({number for _, number in held}) > 1:
        return ", ".join(f"turn {number} of {letter}" for letter, number in held)
    return f"turn {held[0][1]}" + (f" of {text.listed([letter for letter, _ in held])}" if named else "")


def state_label(line: Line, cell: Cell) -> str:
    """What to say of a cell: ``different answer``, ``arguments changed``…; ``""`` where the marks or nothing say it."""
    if cell.state in ("base", "same", "changed"):
        return ""
    if cell.state == "different":
        return {"prompt": "different prompt", "answer": "different answer"}.get(line.kind, "different text")
    return "only spacing differs" if cell.state == "spacing changed" else cell.state


def shared(start: Shared) -> str:
    """The shared start in a line: ``4 messages · 529 tokens · $1.10, once · identical``.

    Its tokens are those in and out. Its money was spent once, however many branches hold it.
    """
    if not start.messages:
        return "No shared start"
    said = [text.count(start.messages, "message")]
    if start.tokens.answers:
        said.append(text.tokens(start.tokens.total, is_partial=start.tokens.is_partial))
        if start.basis == "id" and start.money.cost is not None:
            said.append(f"{prices.said(start.money, start.tokens)}, once")
    said.append("identical" if start.basis == "id" else "the same texts, not copies")
    return " · ".join(said)


def counted_from(comparison: Comparison) -> str:
    """What the figures are of."""
    return "After the shared start" if comparison.shared.messages else "Whole sessions"


def after_start(comparison: Comparison, at: int) -> str:
    """How much a branch holds of what is compared: ``2 turns after the shared start``."""
    start = comparison.shared.messages
    messages, turns = len(comparison.branches[at].messages) - start, comparison.figures[at].turns.value
    if not messages:
        return "nothing after the shared start yet" if start else "nothing yet"
    counted = text.count(turns, "turn") if turns else text.count(messages, "message")
    return f"{counted} after the shared start" if start else counted


# --- the map ---------------------------------------------------------------------------------------------------------


def tokens_out(figure: Figure) -> str:
    """``1,204 tokens out``, ``≥ 1,204 tokens out``; what nobody reported is said to be unknown."""
    return f"{text.tokens(figure.value, is_partial=figure.is_partial)}{' out' * (figure.value is not None)}"


def turn_mark(turn: TurnMark) -> str:
    """What a turn wrote, and how many of its calls failed: ``40 tokens out · 1 call failed``."""
    failed = f" · {text.count(turn.failed, 'call')} failed" if turn.failed else ""
    return tokens_out(turn.tokens) + failed


def lane(lane: Lane) -> str:
    """What a branch wrote itself, on the map, behind its verdict: ``won · own: 2 turns, 239 tokens out``."""
    verdict = f"{lane.branch.verdict} · " if lane.branch.verdict else ""
    if not lane.turns:
        return f"{verdict}nothing of its own yet"
    return f"{verdict}own: {text.count(lane.turns, 'turn')}, {tokens_out(lane.tokens)}"


# --- where they part -------------------------------------------------------------------------------------------------


def parted(comparison: Comparison) -> str:
    """Where and how the branches part, in a sentence without an end: ``Forked after turn 2: different prompts``."""
    if comparison.parted == "never":
        return "They never part"
    row = comparison.rows[comparison.first_difference or 0]
    where = _fork_point(comparison)
    if comparison.parted == "end":
        return f"{where}: {_end(comparison, row)}"
    if comparison.first_difference:
        where += f", first different in {_turn(row)}"
    how = {"prompts": "different prompts", "answers": "different answers", "tools": "different tool calls"}
    same = "same prompt, " if comparison.parted != "prompts" and not row.is_rest else ""
    return f"{where}: {same}{how[comparison.parted]}"


def _fork_point(comparison: Comparison) -> str:
    start = comparison.shared
    if not start.messages:
        return "No shared start"
    found = [places.place(branch.messages, start.messages) for branch in comparison.branches]
    place = next((place for place in found if place.startswith("inside")), found[0])
    return f"{'Forked' if start.basis == 'id' else 'Parted'} {place}"


def _end(comparison: Comparison, row: Row) -> str:
    """Which branches have no turn in ``row``: they end before it, or have other turns later."""
    missing = [at for at, turn in enumerate(row.turns) if turn is None]
    number = comparison.first_difference or 0
    before, later = comparison.rows[:number], comparison.rows[number + 1 :]
    if any(other.turns[at] for other in later for at in missing):
        held = [at for at, turn in enumerate(row.turns) if turn is not None]
        what = f"the rest of {_turn(row)}" if row.is_rest else _turn(row)
        return f"only {_letters(held)} {'has' if len(held) == 1 else 'have'} {what}"
    verb = "ends" if len(missing) == 1 else "end"
    if not before:
        return f"{_letters(missing)} {verb} there"
    return f"the same to the end of {_turn(before[-1])}, where {_letters(missing)} {verb}"


def _letters(branches: list[int]) -> str:
    return text.listed([LETTERS[at] for at in branches])


# --- figures ---------------------------------------------------------------------------------------------------------


def figure(figure: Figure) -> str:
    """A figure that is a number: ``1,204``, ``≥ 1,204``, ``unknown``."""
    return text.number(figure.value, is_partial=figure.is_partial)


def duration(figure: Figure, step_ms: int | None = None) -> str:
    """A figure that is a time span: ``412 ms``, ``≥ 1.2 s``, ``unknown``."""
    return "≥ " * figure.is_partial + text.duration(figure.value, step_ms)


class FigureCell(NamedTuple):
    """A figure of one branch as it is written, and its ``delta`` to the first branch (``""`` for none).

    ``percent`` is the delta beside the first branch's figure (``+14 %``), of figures that are large enough for one.
    ``share`` is its size beside the largest of its kind, from 0 to 1; ``note`` says how much of it is known.
    """

    text: str
    delta: str
    share: float
    note: str
    percent: str = ""

    @property
    def against(self) -> str:
        """The delta with its per cent: ``+720, +14 %``."""
        return ", ".join(filter(None, [self.delta, self.percent]))


class FigureRow(NamedTuple):
    """One figure of all branches: its title, what it means, a cell a branch."""

    title: str
    meaning: str
    cells: tuple[FigureCell, ...]


def figure_table(comparison: Comparison) -> list[FigureRow]:
    """The figures of all branches, written so that each difference agrees with the two figures it is of.

    Their cost is among them where any is known, or known to have no price.
    """
    columns = [dict(branch.items()) for branch in comparison.figures]
    rows = [
        FigureRow(title, metrics.MEANINGS[name], _figure_cells(name, [column[name] for column in columns]))
        for name, title in metrics.TITLES.items()
    ]
    if not any(money != prices.NOTHING for money in comparison.money):
        return rows
    behind = list(metrics.TITLES).index("tokens_out") + 1
    return [*rows[:behind], FigureRow(COST, _COST_MEANING, _money_cells(comparison)), *rows[behind:]]


def _money_cells(comparison: Comparison) -> tuple[FigureCell, ...]:
    """What each branch cost after the shared start; the difference only where both are known as a whole."""
    tokens = _own_tokens(comparison)
    known = [own_cost(comparison, at) for at in range(len(tokens))]
    costs, is_whole = [cost for cost, _ in known], [whole for _, whole in known]
    base, most = costs[0], max((cost or 0.0 for cost in costs), default=0.0)
    cells = []
    for at, (money, one, cost) in enumerate(zip(comparison.money, tokens, costs, strict=True)):
        delta = ""
        if at and cost is not None and base is not None:
            sign = "" if cost == base else "+" if cost > base else "−"
            delta = f"{sign}{text.money(abs(cost - base))}" if sign else "="
            delta = delta if is_whole[at] and is_whole[0] else f"≈ {delta}"
        said = text.count(money.unpriced, "token") if money.unpriced else ""
        note = f"{said} have no price." if said else "" if cost is not None else "No cost is known."
        percent = _percent(base, cost) if at and delta not in ("", "=") else ""
        cells.append(FigureCell(prices.said(money, one), delta, (cost or 0.0) / most if most else 0.0, note, percent))
    return tuple(cells)


def _own_tokens(comparison: Comparison) -> list[usage.Totals]:
    return [usage.total(branch.messages[comparison.shared.messages :]) for branch in comparison.branches]


def own_cost(comparison: Comparison, at: int) -> tuple[float | None, bool]:
    """What a branch cost after the shared start, and whether that is all of it."""
    money, tokens = comparison.money[at], _own_tokens(comparison)[at]
    return (money.cost if tokens.answers else 0.0), not (money.unpriced or tokens.is_partial)


def _percent(base: float | None, other: float | None) -> str:
    """``+14 %``; ``""`` where there is nothing to take it of, or less than half of one."""
    if not base or other is None or not (share := round(100 * (other - base) / base)):
        return ""
    return f"{'+' if share > 0 else '−'}{abs(share):,} %"


def _figure_cells(name: str, figures: list[Figure]) -> tuple[FigureCell, ...]:
    base, *others = (found.value for found in figures)
    step = text.shared_step(base, others) if name == "time_ms" else None
    most = max((found.value or 0 for found in figures), default=0)

    def cell(found: Figure, at: int) -> FigureCell:
        change = metrics.difference(found, figures[0]) if at else None
        share = (found.value or 0) / most if most else 0.0
        written = duration(found, step) if name == "time_ms" else figure(found)
        if change is None:
            return FigureCell(written, "", share, _known(found))
        size = text.duration(abs(change.value), step) if name == "time_ms" else text.number(abs(change.value))
        delta = "≈ " * (not change.is_exact) + text.signed(change.value, size)
        percent = _percent(figures[0].value, found.value) if name in _WITH_PERCENT and change.is_exact else ""
        return FigureCell(written, delta, share, _known(found), percent)

    return tuple(cell(found, at) for at, found in enumerate(figures))


def _known(figure: Figure) -> str:
    """How much of a figure was reported, ``""`` if all of it."""
    if figure.value is None:
        return "No answer reported it."
    return f"{figure.known} of {figure.of} answers reported it." if figure.is_partial else ""
