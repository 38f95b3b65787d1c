"""A comparison in words: the sentences and numbers that the page and every export show alike.

Does not escape: what it quotes are numbers and our own words only.
"""

from __future__ import annotations

from sessions_lib.compare import LETTERS, Comparison, Row, Shared, metrics
from sessions_lib.compare.cells import Cell, Line
from sessions_lib.compare.metrics import Figure

KINDS = {
    "system": "system",
    "prompt": "prompt",
    "said": "on the way",
    "tool": "tool",
    "answer": "answer",
    "stray": "result without a call",
}


def turn_label(row: Row) -> str:
    """``Turn 4``, or ``Turn 4 of A, turn 3 of B`` where the numbers differ; the rest of a turn says so."""
    held = [(letter, turn.number) for letter, turn in zip(LETTERS, row.turns, strict=False) if turn]
    if len({number for _, number in held}) == 1:
        label = f"Turn {held[0][1]}"
    else:
        label = ", ".join(
            f"{'turn' if at else 'Turn'} {number} of {letter}" for at, (letter, number) in enumerate(held)
        )
    return f"{label}, the rest of it" if row.is_rest else label


def state_label(line: Line, cell: Cell) -> str:
    """What to say of a cell: ``different answer``, ``arguments changed``…; ``""`` where the marks or nothing say it."""
    if cell.state in ("base", "same", "changed"):
        return ""
    if cell.state == "different":
        return {"prompt": "different prompt", "answer": "different answer"}.get(line.kind, "different text")
    return "only spacing differs" if cell.state == "spacing changed" else cell.state


def counted(number: int, one: str) -> str:
    """``1 message``, ``4 messages``, ``1,204 messages``."""
    return f"{number:,} {one}{'' if number == 1 else 's'}"


def shared(start: Shared) -> str:
    """The shared start in a line: ``4 messages · 122 tokens · identical``."""
    if not start.messages:
        return "No shared start"
    tokens = start.tokens.output
    said = [counted(start.messages, "message")]
    if tokens is not None:
        said.append(counted(tokens, "token"))
    said.append("identical" if start.basis == "id" else "the same texts, not copies")
    return " · ".join(said)


def counted_from(comparison: Comparison) -> str:
    """What the figures are of."""
    return "After the shared start" if comparison.shared.messages else "Whole sessions"


def parted(comparison: Comparison) -> str:
    """Where and how the branches part, in a sentence without an end: ``Forked after message 4: different prompts``."""
    if comparison.parted == "never":
        return "They never part"
    start = comparison.shared
    where = (
        "No shared start"
        if not start.messages
        else f"{'Forked' if start.basis == 'id' else 'Parted'} after message {start.messages}"
    )
    row = comparison.rows[comparison.first_difference or 0]
    if comparison.first_difference:
        number = next(turn.number for turn in row.turns if turn)
        where += f", first different in turn {number}"
    how = {
        "prompts": "different prompts",
        "answers": "same prompt, different answers",
        "tools": "same prompt, different tool calls",
        "end": _end(comparison, row),
    }[comparison.parted]
    if row.is_rest and comparison.parted in ("answers", "tools"):
        how = how.replace("same prompt, ", "")
    return f"{where}: {how}"


def _end(comparison: Comparison, row: Row) -> str:
    """Which branches have no turn in ``row``: they end there, or have other turns later."""
    missing = [at for at, turn in enumerate(row.turns) if turn is None]
    held = [at for at, turn in enumerate(row.turns) if turn is not None]
    later = comparison.rows[(comparison.first_difference or 0) + 1 :]
    if not any(other.turns[at] for other in later for at in missing):
        return f"{_letters(missing)} {'ends' if len(missing) == 1 else 'end'} here"
    what = "the rest of this turn" if row.is_rest else "this turn"
    return f"only {_letters(held)} {'has' if len(held) == 1 else 'have'} {what}"


def _letters(places: list[int]) -> str:
    return " and ".join(LETTERS[at] for at in places)


def figure(name: str, found: Figure) -> str:
    """A figure for people: ``1,204``, ``≥ 1,204`` where some did not report, ``unknown``."""
    if found.value is None:
        return "unknown"
    return ("≥ " if found.is_partial else "") + _number(name, found.value)


def delta(name: str, found: Figure, base: Figure) -> str:
    """The difference to the first branch: ``+35``, ``−2``, ``=``; ``""`` if either is unknown."""
    change = metrics.difference(found, base)
    if change is None:
        return ""
    if change.value == 0:
        return "=" if change.is_exact else "≈ ="
    sign = "+" if change.value > 0 else "−"
    return ("" if change.is_exact else "≈ ") + sign + _number(name, abs(change.value))


def known(found: Figure) -> str:
    """How much of a figure was reported, ``""`` if all of it."""
    if found.value is None:
        return "No answer reported it."
    return f"{found.known} of {found.of} answers reported it." if found.is_partial else ""


def duration(milliseconds: int | None) -> str:
    """``0.4 s``, ``12 s``, ``2 min 5 s``; ``""`` if unknown."""
    if milliseconds is None:
        return ""
    if not milliseconds:
        return "0 s"
    seconds = milliseconds / 1000
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60:,} min {whole % 60} s"


def _number(name: str, value: int) -> str:
    return duration(value) if name == "time_ms" else f"{value:,}"
