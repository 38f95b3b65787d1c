"""What differs, first: a sentence for each branch from the numbers, the count of differences, and the verdict.

Does not escape: a verdict quotes what a person wrote.
"""

from __future__ import annotations

from sessions_lib import text, times
from sessions_lib.compare import LETTERS, Comparison, metrics, verdicts, wording
from sessions_lib.messages import content

_MOST_CLAUSES = 3


def differs(comparison: Comparison) -> list[str]:
    """What each other branch did otherwise than the first, in a sentence each, from the numbers alone.

    ``B made 2 more tool calls; one call failed; its answer is 6 words shorter.`` Nothing of a branch without messages.
    """
    start = comparison.shared.messages
    held = [len(branch.messages) > start for branch in comparison.branches]
    return [_differs(comparison, at) for at in range(1, len(held)) if held[0] and held[at]]


def _differs(comparison: Comparison, at: int) -> str:
    base, other = comparison.figures[0], comparison.figures[at]

    def change(name: str) -> tuple[int, str]:
        """By how much a figure is larger, and ``about`` if one of the two is no whole sum."""
        found = metrics.difference(getattr(other, name), getattr(base, name))
        return (0, "") if found is None else (found.value, "" if found.is_exact else "about ")

    turns, _ = change("turns")
    calls, _ = change("tool_calls")
    tokens, about = change("tokens_in")
    did = [f"has {_more(turns, 'turn')}"] if turns else []
    did += [f"made {_more(calls, 'tool call')}"] if calls else []
    did += [f"took {about}{_more(tokens, 'token')} in"] if tokens else []
    did += _spent_more(comparison, at)
    time, about = change("time_ms")
    if time and len(did) < _MOST_CLAUSES:
        took = text.duration(abs(time), text.shared_step(base.time_ms.value, [other.time_ms.value]))
        did.append(f"was {about}{took} {'slower' if time > 0 else 'faster'}")
    ended = [text.listed(did[:_MOST_CLAUSES])] if did else []
    failed, before = other.errors.value or 0, base.errors.value or 0
    if failed != before:
        which = (
            "none of its calls failed" if not failed else f"{'one call' if failed == 1 else f'{failed} calls'} failed"
        )
        ended.append(which + (f", {before} of A’s did" if before else ""))
    words, _ = change("answer_words")
    if words:
        its = "its answers are" if (other.turns.value or 0) > 1 else "its answer is"
        ended.append(f"{its} {text.count(abs(words), 'word')} {'longer' if words > 0 else 'shorter'}")
    if not ended:
        return f"{LETTERS[at]} took as much as A, as far as is known."
    return f"{LETTERS[at]} {'; '.join(ended)}." if did else f"{LETTERS[at]}: {'; '.join(ended)}."


def _more(change: int, one: str) -> str:
    """``2 more tool calls``, ``1 fewer turn``."""
    return f"{abs(change):,} {'more' if change > 0 else 'fewer'} {text.noun(abs(change), one)}"


def _spent_more(comparison: Comparison, at: int) -> list[str]:
    (first, _), (other, is_whole) = (wording.own_cost(comparison, one) for one in (0, at))
    is_whole = is_whole and wording.own_cost(comparison, 0)[1]
    if first is None or other is None or not is_whole or first == other:
        return []
    return [f"cost {text.money(abs(other - first))} {'more' if other > first else 'less'}"]


def differences(comparison: Comparison) -> str:
    """In how many turns something differs: ``3 differences``, ``no difference``."""
    return text.count(comparison.differences, "difference") if comparison.differences else "no difference"


def verdict(comparison: Comparison) -> str:
    """Which branch a person called the better one: ``B won over A: it checked first (2026-12-01)``; ``""`` for none."""
    ids = [branch.id for branch in comparison.branches]
    for at, branch in enumerate(comparison.branches):
        found = verdicts.of(dict(branch.meta))
        if not found or found["verdict"] != verdicts.WON:
            continue
        against = [LETTERS[ids.index(one)] for one in found.get("against") or () if one in ids]
        who = content.as_text(found.get("who"))
        when = times.parse(found.get("when"))
        blind = "judged blind" if found.get("blind") is True else ""
        told = ", ".join(filter(None, [who, blind, when.date().isoformat() if when else ""]))
        why = content.as_text(found.get("why"))
        over = f" over {text.listed(against)}" if against else ""
        return f"{LETTERS[at]} won{over}{f': {why}' if why else ''}{f' ({told})' if told else ''}"
    return ""
