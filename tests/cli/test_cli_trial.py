"""``forkbook trial``: set up, run in a build, show, go on; promptfoo's YAML."""

from __future__ import annotations

import json

import pytest

from tests.cli.terminal import Terminal
from tests.model_server import ModelServer, say
from tests.record import GULL, LIGHTHOUSES


@pytest.fixture
def server():
    with ModelServer() as server:
        yield server


def model(server: ModelServer) -> dict[str, str]:
    return {"OPENAI_BASE_URL": server.url, "OPENAI_MODEL": "tiny"}


def test_a_trial_is_set_up_run_shown_and_listed(terminal: Terminal, server) -> None:
    terminal.session("a", LIGHTHOUSES, GULL)
    name = terminal.ok(
        "trial", "new", "a", "-p", "Sure?", "-v", "base", "-v", 'short:{"system":"Be short."}', "-c", "yes", "-n", "2"
    ).strip()
    shown = terminal.ok("trial", "run", name, **model(server))

    assert len(server.requests) == 6
    assert [line.split()[0] for line in shown.splitlines()] == ["VARIANT", "base", "base", "short"]
    assert "2 of 2" in shown
    (listed,) = [json.loads(line) for line in terminal.ok("trial", "list", "--json").splitlines()]
    assert (listed["trial"], listed["session"], listed["answers"], listed["planned"]) == (name, "a", 6, 6)
    rows = [json.loads(line) for line in terminal.ok("trial", "show", name, "--json").splitlines()]
    assert [(row["variant"], row["noise"], row["runs"], row["passed"], row["rate"]) for row in rows] == [
        ("base", False, 2, 2, 1.0), ("base again", True, 2, 2, 1.0), ("short", False, 2, 2, 1.0),
    ]  # fmt: skip
    assert set(rows[0]) >= {"low", "high", "cost_usd", "tokens", "seconds"}
    assert rows[0]["cost_usd"] is None


def test_a_trial_is_run_by_its_file_wherever_that_is(terminal: Terminal, server) -> None:
    terminal.session("a", LIGHTHOUSES, GULL)
    name = terminal.ok("trial", "new", "a", "-p", "Sure?", "-c", "yes").strip()
    file = str(terminal.folder / f"{name}.trial.json")

    shown = terminal.ok(
        "trial",
        "run",
        file,
        "--repeats",
        "10",
        "--parallel",
        "4",
        "--fail-below",
        "0.8",
        SESSIONS_DIR="",
        **model(server),
    )

    assert "10 of 10" in shown
    assert len(server.requests) == 20
    assert "There is no trial" in terminal.told("trial", "run", "gone.trial.json")


def test_a_copy_asks_everything_again_under_its_own_name(terminal: Terminal, server) -> None:
    terminal.session("a", LIGHTHOUSES, GULL)
    name = terminal.ok("trial", "new", "a", "-p", "Sure?", "-c", "yes", "-n", "2").strip()
    terminal.ok("trial", "run", name, **model(server))

    assert terminal.ok("trial", "copy", name, "second") == "second\n"
    assert "There is a trial 'second' already." in terminal.told("trial", "copy", name, "second")
    assert "2 of 2" in terminal.ok("trial", "run", "second", **model(server))
    assert len(server.requests) == 8
    assert len(terminal.ok("trial", "list").splitlines()) == 3


def test_a_build_fails_below_a_rate(terminal: Terminal, server) -> None:
    terminal.session("a", LIGHTHOUSES, GULL)
    name = terminal.ok("trial", "new", "a", "-p", "Sure?", "-c", "yes", "-n", "2").strip()
    server.queue += [say("No.")]

    done = terminal.run("trial", "run", name, "--parallel", "1", "--fail-below", "0.8", **model(server))
    again = terminal.run("trial", "run", name, "--repeats", "10", "--fail-below", "0.8", **model(server))

    assert (done.returncode, again.returncode) == (1, 0)
    assert "A variant passed 50% of its repeats, less than 80%." in done.stderr
    assert len(server.requests) == 20


def test_repeats_are_kept_out_of_the_list_unless_asked_for(terminal: Terminal, server) -> None:
    terminal.session("a", LIGHTHOUSES, GULL)
    name = terminal.ok("trial", "new", "a", "-p", "Sure?", "-n", "3").strip()
    terminal.ok("trial", "run", name, **model(server))

    assert [line.split()[0] for line in terminal.ok("list").splitlines()[1:]] == ["a"]
    assert [line.split()[0] for line in terminal.ok("list", "-n", "1").splitlines()[1:]] == ["a"]
    assert len(terminal.ok("list", "--tag", f"trial:{name}").splitlines()) == 7
    assert len(terminal.ok("search", f"tag:trial:{name}").splitlines()) >= 6


def test_a_promptfoo_file_is_run_and_written(terminal: Terminal, server) -> None:
    (terminal.work / "foo.yaml").write_text(
        "providers:\n"
        f"  - id: openai:gpt-5\n    label: five\n    config: {{temperature: 0.2, apiBaseUrl: '{server.url}'}}\n"
        f"  - id: openai:chat:gpt-6\n    label: six\n    config: {{apiBaseUrl: '{server.url}'}}\n"
        "prompts: ['Is {{it}} safe?']\n"
        "tests:\n"
        "  - vars: {it: Ember}\n    assert:\n      - {type: icontains, value: yes}\n      - {type: latency, threshold: 60000}\n".replace(
            "value: yes", "value: 'yes'"
        )
    )
    rows = [
        json.loads(line)
        for line in terminal.ok("trial", "run", "foo.yaml", "-n", "2", "--json", **model(server)).splitlines()
    ]
    again = terminal.ok("trial", "run", "foo.yaml", "--json", **model(server))

    assert [(row["variant"], row["passed"]) for row in rows] == [("five", 2), ("five again", 2), ("six", 2)]
    assert len(server.requests) == 6
    assert len(again.splitlines()) == 3
    assert {request["model"] for request in server.requests} == {"gpt-5", "gpt-6"}
    assert server.requests[0]["messages"][-1]["content"] == "Is Ember safe?"
    written = terminal.ok("trial", "show", rows[0]["trial"], "--promptfoo")
    assert "id: openai:gpt-5" in written
    assert "type: icontains" in written
    assert "threshold: 60000.0" in written


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "no YAML"), ("prompts: [x]", "needs prompts and providers"),
        ("prompts: [x]\nproviders: ['anthropic:claude']", "of another kind"),
        ("prompts: ['file://x']\nproviders: ['openai:a']", "files are not read"),
        ("prompts: ['{{a}}']\nproviders: ['openai:a']", "cannot be filled in"),
        ("prompts: [x]\nproviders: ['openai:a']\ntests: [{assert: [{type: javascript, value: '1'}]}]", "'javascript' cannot be checked here"),
    ],
)  # fmt: skip
def test_what_is_no_promptfoo_that_is_known_is_refused_and_nothing_is_made(
    terminal: Terminal, text: str, said: str
) -> None:
    (terminal.work / "bad.yaml").write_text(text)
    done = terminal.run("trial", "run", "bad.yaml")

    assert done.returncode == 1
    assert said in done.stderr
    assert terminal.ok("list") == ""
