"""A source imported while it grows ends as one import at its end: each word, thought, call, result, failure and token.

Every file of lines is imported after each of its lines, and in two steps with a cut behind each line; documents grow
message by message, or node by node.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import SessionManager, importers, stats
from sessions_lib.importers.adding.growth import is_stand_in, whole_id
from sessions_lib.messages import content, model_calls
from sessions_lib.store.folder import disk
from tests.importers.files import CORPUS, DATA, call, claude, result, spent, text, write_lines
from tests.importers.test_damage import LAST, SOURCES

TOOLS = ("claude-code", "codex", "pi", "astorlm", "openai-finetune")
FOLDERS = (DATA, CORPUS) if CORPUS.exists() else (DATA,)
MANY, CUTS = 250, 40  # of a longer file, so many of its lines, evenly; and cuts in two steps


# ---------------------------------------------------------------- what a folder says, however it was imported


@dataclass
class Answer:
    """An answer, its parts put together."""

    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[Any] = field(default_factory=list)
    is_cut: bool = False

    def add(self, message: dict[str, Any]) -> None:
        self.texts += filter(None, [content.text(message)])
        self.thoughts += filter(None, [content.reasoning(message)])
        self.calls += [json.dumps(call, sort_keys=True) for call in message.get("tool_calls") or ()]
        self.is_cut = self.is_cut or message.get("interrupted") is True

    def told(self) -> tuple[Any, ...]:
        return "assistant", "\n\n".join(self.texts), "\n\n".join(self.thoughts), tuple(self.calls), self.is_cut


def said(stored: Sequence[dict[str, Any]]) -> tuple[Any, ...]:
    """What a session says, in order; empty answers that only hold tokens are told by ``spent_in``."""
    found: list[Any] = []
    answers: dict[str, Answer] = {}
    for message in stored:
        if message["role"] != "assistant":
            failed = bool(message.get("is_error"))
            found.append((message["role"], json.dumps(message["content"]), message.get("tool_call_id"), failed))
            continue
        own = whole_id(message.get("id", ""))
        if own not in answers or not own:
            found.append(answers.setdefault(own, Answer()) if own else Answer())
        (answers[own] if own else found[-1]).add(message)
    told = (one.told() if isinstance(one, Answer) else one for one in found)
    return tuple(one for one in told if one[0] != "assistant" or any(one[1:]))


def spent_in(stored: Sequence[dict[str, Any]]) -> frozenset[tuple[str, int]]:
    """The tokens of each model."""
    sums: Counter[str] = Counter()
    for message in stored:
        for one in model_calls.of(message):
            sums[f"{one.model} total"] += one.tokens.total or 0
            sums[f"{one.model} input"] += one.tokens.input or 0
            sums[f"{one.model} cached"] += one.tokens.cached or 0
            sums[f"{one.model} reasoning"] += one.tokens.reasoning or 0
            sums[f"{one.model} written"] += one.written or 0
    return frozenset((+sums).items())


def told(manager: SessionManager) -> dict[str, Any]:
    """Every session, and the sums of the folder."""
    sessions = Counter()
    for info in manager.list():
        stored = manager.open(info.id).messages
        sessions[said(stored), spent_in(stored)] += 1
    totals, by_model = stats.figures(manager.catalog), stats.by_model(manager.catalog)
    sums = {row.model: row.total for row in by_model.dropna(subset=["total"]).itertuples() if row.total}
    return {
        "sessions": sessions,
        "by model": sums,
        "sums": (totals.turns, totals.tool_calls, totals.errors, totals.tokens.total or 0, totals.tokens.cached or 0),
    }


# ---------------------------------------------------------------- files of lines


class Growing:
    """A file that grows, and the folders it is imported into."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.path = folder / "in" / name
        self.path.parent.mkdir(parents=True)
        self._clock = 0

    def import_as(self, content: bytes, manager: SessionManager) -> None:
        self.path.write_bytes(content)
        self._clock += 1
        os.utime(self.path, ns=(self._clock * 10**9, self._clock * 10**9))  # never the time of an import before
        list(importers.import_paths(manager, [self.path]))

    def manager(self, name: str) -> SessionManager:
        return SessionManager(self.folder / name)


@pytest.fixture(autouse=True)
def _without_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of imports: what a crash would leave is for other tests."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(disk, "_sync", lambda _: None)


def line_files() -> list[Any]:
    return [
        pytest.param(path, id=f"{path.parent.name}/{path.name}")
        for folder in FOLDERS
        for path in sorted(path for tool in TOOLS for path in (folder / tool).rglob("*.jsonl"))
        if path.stat().st_size and "ccl-records" not in path.parts
    ]


@pytest.mark.parametrize("path", line_files())
def test_a_file_imported_after_each_line_is_the_file_imported_at_its_end(tmp_path: Path, path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    growing = Growing(tmp_path, path.name)
    fresh, grown = growing.manager("fresh"), growing.manager("grown")
    growing.import_as(b"".join(lines), fresh)

    for count in [*range(1, len(lines), 1 + len(lines) // MANY), len(lines)]:
        growing.import_as(b"".join(lines[:count]), grown)

    assert told(grown) == told(fresh)


@pytest.mark.parametrize("path", line_files())
def test_a_file_cut_behind_any_line_and_imported_in_two_steps_is_the_file_imported_at_its_end(
    tmp_path: Path, path: Path
) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    growing = Growing(tmp_path, path.name)
    fresh = growing.manager("fresh")
    growing.import_as(b"".join(lines), fresh)
    expected = told(fresh)

    for count in range(1, len(lines), 1 + len(lines) // CUTS):
        grown = growing.manager(f"grown-{count}")
        growing.import_as(b"".join(lines[:count]), grown)
        growing.import_as(b"".join(lines), grown)
        assert told(grown) == expected, f"cut behind line {count}"


# ---------------------------------------------------------------- documents


def cut_documents(value: Any) -> Iterator[Any]:
    """A document while it grew: a list of conversations, the messages of one, or the nodes of ChatGPT's tree."""
    if isinstance(value, list) and any("mapping" in one for one in value):
        value = [one for one in value if "mapping" in one]
        order = [(place, key) for place, one in enumerate(value) for key in one["mapping"]]
        for count in range(1, len(order) + 1):
            there = [{key for place, key in order[:count] if place == number} for number in range(len(value))]
            yield [_cut_tree(one, keys) for one, keys in zip(value, there, strict=True) if keys]
    elif isinstance(value, list):
        yield from (value[:count] for count in range(1, len(value) + 1))
    else:
        name = next(name for name in ("messages", "contents") if name in value)
        yield from ({**value, name: value[name][:count]} for count in range(1, len(value[name]) + 1))


def _cut_tree(conversation: dict[str, Any], keys: set[str]) -> dict[str, Any]:
    nodes = {key: node for key, node in conversation["mapping"].items() if key in keys}
    last = conversation["current_node"] if len(nodes) == len(conversation["mapping"]) else list(nodes)[-1]
    return {**conversation, "mapping": nodes, "current_node": last}


def document_files() -> list[Any]:
    tools = ("chatgpt-export", "ai-sdk", "anthropic-api", "gemini-api", "forkbook", "openai-chat")
    found = [path for folder in FOLDERS for tool in tools for path in sorted((folder / tool).glob("*.json"))]
    return [pytest.param(path, id=f"{path.parent.name}/{path.name}") for path in found]


@pytest.mark.parametrize("path", document_files())
def test_a_document_imported_message_by_message_is_the_document_imported_at_its_end(tmp_path: Path, path: Path) -> None:
    stages = [json.dumps(stage).encode() for stage in cut_documents(json.loads(path.read_text(encoding="utf-8")))]
    growing = Growing(tmp_path, path.name)
    fresh, grown = growing.manager("fresh"), growing.manager("grown")
    growing.import_as(stages[-1], fresh)

    for stage in [*stages[:: 1 + len(stages) // MANY], stages[-1]]:
        growing.import_as(stage, grown)

    assert told(grown) == told(fresh)


# ---------------------------------------------------------------- typed in


@pytest.mark.parametrize("format", ["claude-code", "codex", "pi"])
def test_odd_records_imported_one_by_one_are_the_file_imported_at_its_end(tmp_path: Path, format: str) -> None:
    lines = [json.dumps(record).encode() + b"\n" for record in [*SOURCES[format], LAST[format]]]
    growing = Growing(tmp_path, "odd.jsonl")
    fresh, grown = growing.manager("fresh"), growing.manager("grown")
    growing.import_as(b"".join(lines), fresh)

    for count in range(1, len(lines) + 1):
        growing.import_as(b"".join(lines[:count]), grown)

    assert told(grown) == told(fresh)


def in_steps(folder: Path, *steps: Sequence[dict[str, Any]]) -> tuple[SessionManager, list[dict[str, Any]]]:
    """The folder after importing a file that grew by ``steps``, and its only session's messages."""
    manager, records = SessionManager(folder / "sessions"), []
    for number, step in enumerate(steps):
        records += step
        path = write_lines(folder / "c.jsonl", *records)
        os.utime(path, ns=(number * 10**9, number * 10**9))
        list(importers.import_paths(manager, [path]))
    (info,) = manager.list()
    return manager, manager.open(info.id).messages


def thinking(thought: str) -> list[dict[str, str]]:
    return [{"type": "thinking", "thinking": thought}]


ASKED = claude("user", "u1", None, "Tide at Ember?")


def test_what_was_thought_after_the_first_words_of_an_answer_is_kept(tmp_path: Path) -> None:
    once = spent(10, 30)
    _, messages = in_steps(
        tmp_path,
        [ASKED, claude("assistant", "a1", "u1", text("Let me look."), id="m1", usage=once)],
        [claude("assistant", "a2", "a1", thinking("It is in the table."), id="m1", usage=once)],
        [claude("assistant", "a3", "a2", call("t1", "tide"), id="m1", usage=once, stop_reason="tool_use")],
        [claude("user", "r1", "a3", result("t1", "2.1 m"))],
    )

    assert [(m["id"], m["content"], m.get("reasoning_content"), bool(m.get("tool_calls"))) for m in messages] == [
        ("cc_u1", "Tide at Ember?", None, False),
        ("cc_m1", "Let me look.", None, False),
        ("cc_m1+2", None, "It is in the table.", False),
        ("cc_m1+3", None, None, True),
        ("cc_r1", "2.1 m", None, False),
    ]
    assert [m.get("usage", {}).get("total_tokens") for m in messages] == [None, 40, None, None, None]
    assert messages[3]["finish_reason"] == "tool_calls"


def test_the_second_of_two_calls_with_one_id_is_kept(tmp_path: Path) -> None:
    first = claude("assistant", "a1", "u1", call("t1", "tide", port="Ember"), id="m1")
    second = claude("assistant", "a2", "a1", call("t1", "tide", port="Gull"), id="m1")
    copy = claude("assistant", "a3", "a2", call("t1", "tide", port="Gull"), id="m1")

    _, whole = in_steps(tmp_path / "whole", [ASKED, first, second, copy])
    _, grown = in_steps(tmp_path / "grown", [ASKED, first], [second], [copy])

    ports = [[c["function"]["arguments"] for m in one for c in m.get("tool_calls", [])] for one in (whole, grown)]
    assert ports == [['{"port":"Ember"}', '{"port":"Gull"}']] * 2


def test_an_interruption_that_is_told_later_is_kept(tmp_path: Path) -> None:
    _, messages = in_steps(
        tmp_path,
        [ASKED, claude("assistant", "a1", "u1", text("Well, th"))],
        [claude("user", "i1", "a1", text("[Request interrupted by user]")), claude("user", "u2", "i1", "Shorter.")],
    )

    assert [(m["role"], m["content"], m.get("interrupted")) for m in messages] == [
        ("user", "Tide at Ember?", None),
        ("assistant", "Well, th", None),
        ("assistant", None, True),
        ("user", "Shorter.", None),
    ]
    assert not is_stand_in(messages[2])


def test_a_rest_that_comes_after_the_session_was_continued_here_makes_a_fork_with_it(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "c.jsonl", ASKED, claude("assistant", "a1", "u1", text("Let me look."), id="m1"))
    manager = SessionManager(tmp_path / "sessions")
    list(importers.import_paths(manager, [path]))
    (here,) = manager.list()
    manager.open(here.id).append({"role": "user", "content": "asked here"})
    more = claude("assistant", "a2", "a1", thinking("hm"), id="m1")
    write_lines(path, ASKED, claude("assistant", "a1", "u1", text("Let me look."), id="m1"), more)

    first = [step.result.outcomes[0].change for step in importers.import_paths(manager, [path]) if step.result]
    write_lines(path, *(json.loads(line) for line in path.read_text().splitlines()), {"type": "mode", "mode": "x"})
    again = [step.result.outcomes[0].change for step in importers.import_paths(manager, [path]) if step.result]

    assert (first, again) == (["parted"], ["unchanged"])
    (fork,) = [info for info in manager.list() if info.id != here.id]
    assert (fork.parent, fork.inherited) == (here.id, 2)
    assert [content.reasoning(m) for m in manager.open(fork.id).messages] == ["", "hm"]


def test_a_session_id_that_changes_as_the_file_grows_is_the_same_session(tmp_path: Path) -> None:
    _, messages = in_steps(
        tmp_path,
        [ASKED, claude("assistant", "a1", "u1", text("2.1 m"))],
        [claude("user", "u2", "a1", "And at Gull?", sessionId="s2")],
        [claude("assistant", "a2", "u2", text("1.9 m"), sessionId="s3")],
    )

    assert [m["content"] for m in messages] == ["Tide at Ember?", "2.1 m", "And at Gull?", "1.9 m"]


def test_a_file_that_looked_like_another_kind_while_it_was_short_is_the_same_session(tmp_path: Path) -> None:
    asked = {"role": "user", "content": "Where is the key?"}
    called = {"role": "assistant", "content": call("t1", "ask", who="mayor")}
    _, messages = in_steps(tmp_path, [asked], [called], [{"role": "user", "content": result("t1", "In the cave.")}])

    assert [m["role"] for m in messages] == ["user", "assistant", "tool"]


def test_a_copy_of_a_session_that_was_imported_half_written_counts_its_answers_once(tmp_path: Path) -> None:
    begun = claude("assistant", "a1", "u1", text("Let me look."), id="m1", usage=spent(10, 5))
    rest = claude("assistant", "a2", "a1", call("t1", "tide"), id="m1", usage=spent(10, 30))
    done = claude("user", "r1", "a2", result("t1", "low"))
    more = claude("assistant", "a3", "r1", text("Low."), id="m2", usage=spent(50, 2))

    for name, order in {"the original first": ("a", "b"), "the copy first": ("b", "a")}.items():
        folder = tmp_path / name
        manager = SessionManager(folder / "sessions")
        original, copy = folder / f"{order[0]}.jsonl", folder / f"{order[1]}.jsonl"
        list(importers.import_paths(manager, [write_lines(original, ASKED, begun)]))
        write_lines(original, ASKED, begun, rest, done)
        write_lines(copy, *({**record, "sessionId": "s2"} for record in (ASKED, begun, rest, done, more)))

        list(importers.import_paths(manager, sorted([original, copy])))

        totals = stats.figures(manager.catalog)
        assert (totals.tokens.total, totals.turns, totals.tool_calls, totals.forks) == (40 + 52, 1, 1, 1), name


def test_a_copy_that_holds_less_of_an_answer_leaves_its_tokens_to_the_other(tmp_path: Path) -> None:
    """A sub-agent that starts with what was said so far has of the last answer only the call that made it."""
    begun = claude("assistant", "a1", "u1", text("Let me ask."), id="m1", usage=spent(10, 30))
    rest = claude("assistant", "a2", "a1", call("t1", "Agent", prompt="Ask."), id="m1", usage=spent(10, 30))
    own = claude("assistant", "b1", "a1", text("Low."), id="m2", usage=spent(50, 2))
    files = {"a": [ASKED, begun, rest], "b": [{**record, "sessionId": "s2"} for record in (ASKED, begun, own)]}

    for order in (("a", "b"), ("b", "a")):
        manager = SessionManager(tmp_path / "".join(order) / "sessions")
        for name in order:
            list(
                importers.import_paths(
                    manager, [write_lines(tmp_path / "".join(order) / f"{name}.jsonl", *files[name])]
                )
            )

        assert stats.figures(manager.catalog).tokens.total == 40 + 52, order
