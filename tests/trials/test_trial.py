"""Trials: every repeat once, whatever ends it; rates with intervals; better is said only where luck is no explanation."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import Session, SessionManager, tool
from sessions_lib.errors import SessionError
from sessions_lib.export import export
from sessions_lib.export import trial as exporting
from sessions_lib.trials import Trial, Variant, checks, estimate, intervals, running, table
from sessions_lib.trials.checks import Run, look, passes
from tests.model_server import ModelServer, ask, say
from tests.record import call, result

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def session(tmp_path) -> Session:
    session = SessionManager(tmp_path).create("Cave", session_id="cave")
    session.extend([
        {"role": "user", "content": "How deep?"}, call("c1", name="depth"), result("c1", "40 m", name="depth"),
        {"role": "assistant", "content": "Forty."},
    ])  # fmt: skip
    return session


def served(session: Session, *replies: Any) -> ModelServer:
    server = ModelServer(*replies)
    session.update_meta({"base_url": server.url, "model": "tiny"})
    return server


def test_each_variant_and_the_first_once_more_is_asked_so_often(session) -> None:
    with served(session) as server:
        trial = Trial(
            session,
            4,
            ["And wide?"],
            [Variant("base"), Variant("short", system="Be short.")],
            [checks.contains("yes")],
            3,
        )
        trial.run(parallel=2)

    assert [row.variant.name for row in table.rows(trial)] == ["base", "base again", "short"]
    assert [(row.rate.passed, row.rate.runs) for row in table.rows(trial)] == [(3, 3)] * 3
    assert len(server.requests) == 9
    systems = sorted(
        str(request["messages"][0]["content"])
        for request in server.requests
        if request["messages"][0]["role"] == "system"
    )
    assert systems == ["Be short."] * 3
    repeats = [info for info in SessionManager(session.store).list() if info.id != "cave"]
    assert len(repeats) == 9
    assert {(info.parent, tuple(info.tags)) for info in repeats} == {("cave", (f"trial:{trial.name}",))}
    assert Session.open(session.store, f"{trial.name}.short.1").messages[-2]["content"] == "And wide?"


def test_what_ended_in_the_middle_goes_on_and_asks_nothing_twice(session) -> None:
    with served(session, *[say("Yes.")] * 4) as server:
        first = Trial(session, 4, ["And wide?"], [Variant("base")], [checks.contains("yes")], 4)
        run = running.start(first, 1)
        while len(first.results) < 2:
            time.sleep(0.01)
        run.stop()
        assert run.wait(10)
        asked = len(server.requests)
        again = Trial.load(session.store, first.name)
        again.run()

        assert asked < 8
        assert [(row.rate.passed, row.rate.runs) for row in table.rows(again)] == [(4, 4), (4, 4)]
        answers = [one for one in SessionManager(session.store).list() if one.id != "cave"]
        assert [one.messages for one in answers] == [6] * 8
        again.run()
        assert len(server.requests) <= asked + 8
        again.extend(5)
        again.run()
        assert [row.rate.runs for row in table.rows(again)] == [5, 5]


def test_a_killed_process_leaves_a_trial_that_ends_as_an_undisturbed_one(session, tmp_path) -> None:
    program = (
        "import sys\n"
        "from sessions_lib import Session, SessionManager\n"
        "from sessions_lib.trials import Trial, Variant, checks\n"
        f"session = SessionManager({str(tmp_path)!r}).open('cave')\n"
        "trial = Trial(session, 4, ['And wide?'], [Variant('base'), Variant('other', temperature=0.5)], [checks.contains('yes')], 6, name='killed')\n"
        "trial.run(parallel=3, on_progress=lambda p: print(p.done, flush=True))\n"
    )
    with served(session) as server:
        server.queue += [say("Yes.", pause_s=0.05)] * 40
        child = subprocess.Popen(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        while int(child.stdout.readline() or 99) < 4:
            pass
        child.send_signal(signal.SIGKILL)
        child.communicate()
        trial = Trial.load(session.store, "killed")
        trial.run()

    assert [(row.rate.passed, row.rate.runs, row.failed) for row in table.rows(trial)] == [(6, 6, 0)] * 3
    for info in SessionManager(session.store).list():
        if info.id != "cave":
            said = SessionManager(session.store).open(info.id).messages[4:]
            assert [message["role"] for message in said] == ["user", "assistant"]


def test_of_two_who_run_one_trial_the_second_is_told(session) -> None:
    with served(session, *[say("a b c d e f g h i j", pause_s=0.2)] * 2):
        trial = Trial(session, 4, ["And wide?"], repeats=1)
        run = running.start(trial, 1)
        with pytest.raises(SessionError, match="is being run already"):
            running.start(Trial.load(session.store, trial.name), 1)
        run.stop()
        run.wait(20)


def test_a_repeat_that_fails_says_why_counts_as_none_and_is_tried_again(session) -> None:
    trial = Trial(session, 4, ["And wide?"], checks=[checks.contains("yes")], repeats=1)
    session.update_meta({"base_url": "http://127.0.0.1:9/v1", "model": "tiny"})
    trial.run()

    assert [(row.failed, row.rate.runs) for row in table.rows(trial)] == [(1, 0), (1, 0)]
    assert all("127.0.0.1:9" in str(one.error) for one in trial.results.values())
    with served(session) as server:
        for name in trial.results:
            Session.open(session.store, name).update_meta({"base_url": server.url})
        trial.run()
    assert [(row.failed, row.rate.runs) for row in table.rows(trial)] == [(0, 1), (0, 1)]


def test_a_variant_may_pretend_that_a_tool_said_something_else(session) -> None:
    with served(session) as server:
        trial = Trial(
            session,
            4,
            [],
            [Variant("as it was", change=(2, "40 m")), Variant("shallow", change=(2, "4 m"))],
            [checks.contains("yes")],
            1,
        )
        trial.run()

    told = sorted(request["messages"][-1]["content"] for request in server.requests)
    assert told == ["4 m", "40 m", "40 m"]
    said = Session.open(session.store, f"{trial.name}.shallow.1").messages
    assert [message["content"] for message in said] == ["How deep?", None, "4 m", "Yes."]


def test_effects_need_a_yes_or_are_answered_from_the_recording(session) -> None:
    happened: list[str] = []

    @tool
    def depth(port: str) -> str:
        """How deep."""
        happened.append(port)
        return "real"

    def trial() -> Trial:
        return Trial(session, 4, ["Look again."], [Variant("base")], repeats=1)

    with served(
        session,
        *[ask(("d1", "depth", {"port": "Ember"})), say("So."), ask(("d2", "depth", {"port": "Ember"})), say("So.")],
    ):
        with pytest.raises(SessionError, match="depth may run in each of 2 answers"):
            trial().run(tools=[depth])
        simulated = trial()
        simulated.run(1, tools=[depth], effects="simulated")
    said = Session.open(session.store, f"{simulated.name}.base.1")
    assert happened == []
    assert said.messages[-2]["content"] == "40 m"
    assert said.meta["simulated"] is True
    assert (said.messages[-2]["simulated"], said.messages[-2]["effect"]) == (True, False)
    assert "Simulated: answered from the recording" in export.export(said.messages, said.meta, "markdown")
    assert "Simulated: tools that change the world" in exporting.html(simulated)

    with served(
        session,
        *[ask(("d1", "depth", {"port": "Ember"})), say("So."), ask(("d2", "depth", {"port": "Ember"})), say("So.")],
    ):
        trial().run(1, tools=[depth], effects="real")
    assert happened == ["Ember", "Ember"]


def test_a_judge_is_a_session_and_is_asked_once(session) -> None:
    with served(session, *[say("Ten.")] * 2, say("Fine. PASS"), say("Too short. FAIL")) as server:
        trial = Trial(session, 4, ["And wide?"], checks=[checks.judge("It says a number.")], repeats=1)
        trial.run(1)
        assert sorted(str(one.passed) for one in trial.results.values()) == ["False", "True"]
        Trial.load(session.store, trial.name).run(1)
        assert len(server.requests) == 4

    question = server.requests[2]["messages"][-1]["content"]
    assert "It says a number." in question
    assert "ANSWER\nTen.\nANSWER" in question
    assert "base" not in question
    judge = trial.judged[f"{trial.name}.as-it-is.1"]["0"]
    assert Session.open(session.store, judge["session"]).messages[-1]["role"] == "assistant"


def test_a_pick_is_unknown_until_a_person_said_it(session) -> None:
    with served(session):
        trial = Trial(session, 4, ["And wide?"], checks=[checks.picked()], repeats=2)
        trial.run()
    assert [row.unknown for row in table.rows(trial)] == [2, 2]
    trial.pick(f"{trial.name}.as-it-is.1", True)
    trial.pick(f"{trial.name}.as-it-is.2", False)

    again = Trial.load(session.store, trial.name)
    assert (table.rows(again)[0].rate.passed, table.rows(again)[0].rate.runs, table.rows(again)[1].unknown) == (1, 2, 2)


def test_the_frame_has_a_row_a_repeat(session) -> None:
    with served(session):
        trial = Trial(
            session, 4, ["And wide?"], checks=[checks.contains("yes"), lambda run: len(run.answer) < 3], repeats=2
        ).run()
    frame = trial.frame()

    assert list(frame.columns) == [
        "variant",
        "repeat",
        "session",
        "state",
        "passed",
        "tokens",
        "seconds",
        "dollars",
        "contains “yes”",
        "python “<lambda>”",
    ]
    assert frame["passed"].tolist() == [False] * 4
    assert frame["tokens"].tolist() == [15] * 4
    assert frame["dollars"].isna().all()  # a local server is unmetered, and that is not 0


@pytest.mark.parametrize(
    ("check", "answer", "passed"),
    [
        (checks.contains("KEY"), "the key", True),
        (checks.contains_not("key"), "the key", False),
        (checks.regex(r"\bkey$"), "the key", True),
        (checks.equals("42"), " 42\n", True),
        (checks.is_json(), '```json\n{"a": 1}\n```', True),
        (checks.is_json(), "{a: 1}", False),
        (checks.is_json({"type": "object", "required": ["b"]}), '{"a": 1}', False),
        (checks.is_json({"type": "object", "required": ["a"]}), '{"a": 1}', True),
        (checks.no_tool_failed(), "x", True),
        (checks.at_most(tokens=10), "x", None),
    ],
)  # fmt: skip
def test_a_check_says_whether_an_answer_passes(check: Any, answer: str, passed: bool | None) -> None:
    assert passes(look(check, Run([{"role": "assistant", "content": answer}]))) is passed


def test_a_check_of_tools_looks_at_all_calls() -> None:
    said = [call("c1", name="buy", arguments='{"item":"torch","count":2}'), result("c1", "no", is_error=True)]

    assert look(checks.called("buy", item="torch"), Run(said)) is True
    assert look(checks.called("buy", item="rope"), Run(said)) is False
    assert look(checks.called("sell"), Run(said)) is False
    assert look(checks.no_tool_failed(), Run(said)) is False
    assert look(checks.at_most(tokens=10, seconds=1), Run(said, tokens=10, seconds=0.5)) is True
    assert look(checks.at_most(tokens=10, seconds=1), Run(said, tokens=11)) is False


def test_a_function_of_a_file_may_be_a_check(tmp_path) -> None:
    (tmp_path / "mine.py").write_text(
        "def score(run):\n    return 0.7\ndef why(run):\n    return 'too short'\ndef bad(run):\n    raise ValueError('x')\n"
    )
    run = Run([{"role": "assistant", "content": "x"}])

    assert passes(look(checks.function(f"{tmp_path}/mine.py:score"), run)) is True
    assert look(checks.function(f"{tmp_path}/mine.py:why"), run) == "too short"
    for path, said in (
        ("mine.py:bad", "ValueError: x"),
        ("mine.py:none", "no function 'none'"),
        ("no.py:f", "no file of checks"),
    ):
        with pytest.raises(SessionError, match=said):
            look(checks.function(f"{tmp_path}/{path}"), run)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"regex": "("}, "no regular expression"), ({"sees": 1}, "is no check"), ({"at_most": {}}, "tokens, seconds or dollars"),
        ({"judge": {}}, "rubric"), ({"json": {"type": "nonsense"}}, "schema"), ({"called": {}}, "name of a tool"),
    ],
)  # fmt: skip
def test_a_check_that_is_none_is_refused(bad: Any, said: str) -> None:
    with pytest.raises(SessionError, match=said):
        checks.checked(bad)


def test_a_trial_that_cannot_be_is_refused_before_anything_is_asked(session) -> None:
    for make, said in (
        (lambda: Trial(session, 4, []), "asks something"),
        (lambda: Trial(session, 2, ["x"]), "not possible|cannot|nearest"),
        (lambda: Trial(session, 4, ["x"], repeats=0), "repeats"),
        (lambda: Trial(session, 4, ["x"], [Variant("a"), Variant("A")]), "Name them apart"),
        (lambda: Trial(session, 4, ["x"], [Variant("a", change=(9, "x"))]), "there are 4"),
        (lambda: Trial.load(session.store, "none"), "There is no trial"),
    ):
        with pytest.raises(SessionError, match=said):
            make()
    assert session.store.trials() == []


def test_wilson_and_newcombe_as_in_the_literature() -> None:
    # Newcombe 1998, Statistics in Medicine 17: table II, methods 10.
    assert [round(x or 0, 4) for x in (intervals.rate(81, 263).low, intervals.rate(81, 263).high)] == [0.2553, 0.3662]
    apart = intervals.difference(intervals.rate(48, 80), intervals.rate(56, 70))
    assert apart is not None
    assert (round(apart.low, 4), round(apart.high, 4)) == (0.0524, 0.3339)


def test_intervals_hold_the_truth_and_equal_variants_are_seldom_told_apart() -> None:
    chance = random.Random(7)
    for truth in (0.3, 0.5, 0.8):
        trials = [
            (sum(chance.random() < truth for _ in range(20)), sum(chance.random() < truth for _ in range(20)))
            for _ in range(2_000)
        ]
        rates = [(intervals.rate(a, 20), intervals.rate(b, 20)) for a, b in trials]
        held = sum((one.low or 0) <= truth <= (one.high or 1) for pair in rates for one in pair) / 4_000
        told = sum(bool((found := intervals.difference(*pair)) and found.is_told_apart) for pair in rates) / 2_000
        assert 0.92 <= held <= 0.98
        assert told <= 0.08


def test_better_is_said_only_where_luck_is_no_explanation(session) -> None:
    trial = Trial(session, 4, ["x"], [Variant("base"), Variant("good"), Variant("same")], [checks.picked()], 10)
    from sessions_lib.trials import Result

    for variant, passed in (("base", 3), ("base again", 4), ("good", 10), ("same", 5)):
        for repeat in range(1, 11):
            name = f"{variant}{repeat}"
            trial.results[name] = Result(variant, repeat, name, verdicts=(repeat <= passed,))

    assert table.verdicts(table.rows(trial)) == [
        "good is better than base: 10 of 10 against 3 of 10, a difference of 70% (+29% to +89%).",
        "same and base are not told apart by 10 repeats: 5 of 10 against 3 of 10; about 47 would be needed.",
        "The same variant twice: 3 of 10 and 4 of 10. So much is noise.",
    ]
    assert [row.pass_all for row in table.rows(trial)] == [
        pytest.approx(1 / 120),
        pytest.approx(4 / 120),
        1.0,
        pytest.approx(10 / 120),
    ]


def test_what_it_will_take_is_said_before_and_what_is_not_known_too(session) -> None:
    def sentence() -> str:
        return estimate.sentence(Trial(session, None, ["And wide?"], [Variant("base")], repeats=5))

    assert (
        sentence()
        == "10 requests at least; what they cost is not known before: no answer here has reported its tokens."
    )
    session.append({"role": "assistant", "content": "So.", "usage": {"prompt_tokens": 900, "completion_tokens": 100}})
    session.append(
        {
            "role": "assistant",
            "content": "So.",
            "model": "demo",
            "usage": {"prompt_tokens": 900, "completion_tokens": 100},
        }
    )
    assert sentence() == "10 requests at least, about 10,000 tokens in and 1,000 out, unmetered."
    session.update_meta({"model": "gpt-5", "base_url": "https://api.openai.com/v1"})
    assert sentence() == "10 requests at least, probably about $0.022 (about 10,000 tokens in and 1,000 out)."
    session.update_meta({"model": "nobody-knows"})
    assert sentence() == "10 requests at least, about 10,000 tokens in and 1,000 out; nobody-knows has no price."
    session.update_meta({"base_url": "http://127.0.0.1:11434/v1"})
    assert sentence() == "10 requests at least, about 10,000 tokens in and 1,000 out, unmetered."
