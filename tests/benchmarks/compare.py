"""Compare: lining up and diffing against difflib, growth with the number of turns, and what a long shared start costs.

``rows()`` lists what was measured; each is a ratio of two things measured in turns in the same run, with its bar from
the project's targets. Run alone: ``python -m tests.benchmarks.compare``.
"""

from __future__ import annotations

import difflib
import itertools
import os
import random
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sessions_lib import SessionManager, compare
from sessions_lib.compare import Branch, word_diff

ROUNDS = 5
clock = time.process_time  # of this process alone: what else the machine does is not in it
ROOT = Path(__file__).resolve().parents[2]
SYLLABLES = re.findall("..", "bacodifeguhajekilomunapequirosateulvewaxi")
VOCABULARY = [a + b for a in ["", *SYLLABLES] for b in SYLLABLES] + [
    a + b + c for a in SYLLABLES for b in SYLLABLES for c in SYLLABLES
]
# Word frequencies as in prose: the word of rank n is 1/n as frequent as the first (Zipf).
WEIGHTS = list(itertools.accumulate(1 / (rank + 2.7) for rank in range(len(VOCABULARY))))


@dataclass(frozen=True)
class Row:
    """One ratio and the most it may be."""

    name: str
    ratio: float
    bar: float
    note: str


def text(rng: random.Random, words: int) -> str:
    """Sentences of made-up words, as frequent as words in prose are."""
    made = rng.choices(VOCABULARY, cum_weights=WEIGHTS, k=words)
    for at in range(11, words, 12):
        made[at] += "."
    return " ".join(made)


def edited(rng: random.Random, said: str, share: float) -> str:
    """``said`` with runs of words replaced, about ``share`` of all."""
    words, at = said.split(), 0
    while at < len(words):
        if rng.random() < share / 4:
            size = rng.randint(1, 7)
            words[at : at + size] = text(rng, rng.randint(1, 7)).split()
            at += size
        at += 1
    return " ".join(words)


def conversation(rng: random.Random, turns: int, words: int = 450) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Two branches of different turns, each the other one edited."""
    a, b = [], []
    for number in range(turns):
        prompt, answer = text(rng, 20), text(rng, words)
        a += [{"role": "user", "content": prompt, "id": f"a{number}u"}, {"role": "assistant", "content": answer}]
        b += [
            {"role": "user", "content": edited(rng, prompt, 0.3), "id": f"b{number}u"},
            {"role": "assistant", "content": edited(rng, answer, 0.3)},
        ]
    return a, b


def ratio(
    first: Callable[[], object], second: Callable[[], object], rounds: int = ROUNDS
) -> tuple[float, float, float]:
    """Median of first / second over interleaved rounds, and both medians in seconds."""
    times: list[tuple[float, float]] = []
    first(), second()
    for _ in range(rounds):
        started = clock()
        first()
        between = clock()
        second()
        times.append((between - started, clock() - between))
    return (
        statistics.median(a / b for a, b in times),
        statistics.median(a for a, _ in times),
        statistics.median(b for _, b in times),
    )


def check_diff(a: str, b: str) -> None:
    """The fast diff is a diff: both sides whole, the common part common, and at least as long as difflib's."""
    found = word_diff.difference(a, b, alike=0.0)
    if found.a is None or found.b is None:
        return
    assert "".join(segment.text for segment in found.a) == a
    assert "".join(segment.text for segment in found.b) == b
    common = ["".join("".join(s.text for s in side if not s.changed).split()) for side in (found.a, found.b)]
    assert common[0] == common[1]


def all_marked(found: compare.Comparison) -> Iterator[tuple[word_diff.Segment, ...]]:
    """Every text of every turn in segments, as a page that draws them all asks for them."""
    for row in found.rows:
        for line in row.lines:
            yield from (cell.words.segments for cell in line.cells if cell is not None and cell.words is not None)


def against_difflib(rounds: int = ROUNDS) -> Row:
    """300 different turns lined up, diffed and cut into segments, against difflib as it comes on the same pairs.

    It is given words, signs and white space, which is what it takes to put a text together again from its diff.
    """
    a, b = conversation(random.Random(7), 300)
    pairs = [(x["content"], y["content"]) for x, y in zip(a, b, strict=True)]
    for pair in pairs[:40]:
        check_diff(*pair)
    token = re.compile(r"\s+|\w+|[^\w\s]")

    def plain() -> None:
        for mine, theirs in pairs:
            difflib.SequenceMatcher(None, token.findall(mine), token.findall(theirs)).get_opcodes()

    def ours() -> None:
        found = compare.compare([Branch("a", "a", a), Branch("b", "b", b)])
        assert sum(len(marked) for marked in all_marked(found)) > 300

    found, mine, theirs = ratio(ours, plain, rounds)
    return Row("compare: 300 turns, align and diff / difflib on words", found, 0.2, f"{mine:.3f} s / {theirs:.3f} s")


def growth(rounds: int = ROUNDS) -> Row:
    """1,000 turns against ten times 100 turns."""
    short, long = conversation(random.Random(1), 100), conversation(random.Random(1), 1000)

    def run(sides: tuple[list[dict[str, Any]], list[dict[str, Any]]], times: int) -> None:
        for _ in range(times):
            compare.compare([Branch("a", "a", sides[0]), Branch("b", "b", sides[1])])

    found, mine, theirs = ratio(lambda: run(long, 1), lambda: run(short, 10), rounds)
    return Row("compare: 1,000 turns / 10 x 100 turns", found, 1.3, f"{mine:.3f} s / {theirs:.3f} s")


def shared_start(rounds: int = ROUNDS) -> Row:
    """The page on two 1,000-message branches that share 900, against two of 100 that share nothing."""
    import streamlit as st
    from streamlit.testing.v1 import AppTest

    rng = random.Random(3)
    with tempfile.TemporaryDirectory() as home:
        for name, shared in (("long", 450), ("short", 0)):
            manager = SessionManager(Path(home) / name)
            start, _ = conversation(rng, max(shared, 1))
            a, b = conversation(rng, 50)
            first = manager.create(session_id="a")
            if shared:
                first.extend(start)
                second = first.fork("b")
            else:
                second = manager.create(session_id="b")
            for session, said in ((first, a), (second, b)):
                session.extend({key: value for key, value in message.items() if key != "id"} for message in said)
        before = os.environ.get("SESSIONS_DIR")

        def open_page(name: str) -> None:
            os.environ["SESSIONS_DIR"] = str(Path(home) / name)
            st.cache_data.clear()
            st.cache_resource.clear()
            page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
            page.query_params["a"], page.query_params["b"] = "a", "b"
            page.switch_page("pages/compare.py").run()
            assert not page.exception
            assert len(page.selectbox) == 2

        try:
            found, mine, theirs = ratio(lambda: open_page("long"), lambda: open_page("short"), rounds)
        finally:
            if before is None:
                os.environ.pop("SESSIONS_DIR")
            else:
                os.environ["SESSIONS_DIR"] = before
    return Row("compare: page, 2 x 1,000 sharing 900 / 2 x 100", found, 1.3, f"{mine:.3f} s / {theirs:.3f} s")


def rows(rounds: int = ROUNDS) -> list[Row]:
    """All of this module's ratios."""
    return [against_difflib(rounds), growth(rounds), shared_start(rounds)]


if __name__ == "__main__":
    for row in rows():
        print(f"{row.ratio:6.2f}  (at most {row.bar})  {row.name}  [{row.note}]")
