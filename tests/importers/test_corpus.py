"""Every supported file of the corpus against counts made here, plainly, from its lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import importers, messages
from sessions_lib.errors import ImportRefused
from sessions_lib.importers import Imported
from sessions_lib.messages import encoding, tool_calls, usage
from sessions_lib.messages.request import user_first
from sessions_lib.store.manager import SessionManager
from tests.importers.files import CORPUS, DATA, corpus
from tests.model_server import problems

TOOLS = ("claude-code", "codex", "pi", "chatgpt-export", "openai-chat", "openai-finetune")
DIALECTS = ("ai-sdk", "anthropic-api", "gemini-api")
NO_SESSION = ("feipi-empty.jsonl", "chronicle-empty-session.jsonl", "expected.json", "gen-expected-dev.json")

ONLY_COUNTS = {"archived.jsonl", "s2.jsonl"}  # not a word was said: read, and refused by an import


def files(tool: str) -> list[Any]:
    """The files of ``tool``: those made for these tests, then those of the corpus."""
    found = sorted(DATA.glob(f"{tool}/*.json*")) + sorted(
        p for p in (CORPUS / tool).rglob("*.json*") if p.name not in NO_SESSION and "ccl-records" not in p.parts
    )
    return [pytest.param(p, id=p.name) for p in found]


def records(path: Path) -> tuple[list[dict[str, Any]], list[int]]:
    """The objects in a file of lines, and the numbers of lines that are damaged."""
    found, damaged = [], []
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").split("\n"), 1):
        at, line = 0, line.strip()
        try:
            while at < len(line):
                value, at = json.JSONDecoder().raw_decode(line, at)
                found += [value] if isinstance(value, dict) else []
        except ValueError:
            damaged.append(number)
    return found, damaged


def once(found: list[Imported]) -> list[dict[str, Any]]:
    """The messages of all sessions, each identity once."""
    return list({message["id"]: message for one in found for message in one.messages}.values())


def call_ids(said: list[dict[str, Any]]) -> list[str]:
    return sorted(call["id"] for message in said for call in message.get("tool_calls", []))


def result_ids(said: list[dict[str, Any]]) -> list[str]:
    return sorted(message["tool_call_id"] for message in said if message["role"] == "tool")


def blocks(record: dict[str, Any], kind: str) -> Iterator[dict[str, Any]]:
    message = record.get("message")
    said = message.get("content") if isinstance(message, dict) else None
    for block in said if isinstance(said, list) else []:
        if isinstance(block, dict) and block.get("type") == kind:
            yield block


def without_copies(listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records without those that a resume copied: the same uuid, and the same message."""
    kept: list[dict[str, Any]] = []
    seen: set[str] = set()
    for record in listed:
        key = json.dumps([record.get("uuid"), record.get("type"), record.get("message")])
        if "uuid" not in record or "message" not in record or key not in seen:
            kept.append(record)
        seen.add(key)
    return kept


def output_and_input(told: dict[str, Any]) -> tuple[int, int]:
    sent = sum(told.get(f"{name}input_tokens") or 0 for name in ("", "cache_creation_", "cache_read_"))
    return told.get("output_tokens") or 0, sent


@pytest.mark.parametrize("path", files("claude-code"))
def test_claude_code_calls_results_answers_and_tokens_are_those_of_the_lines(path: Path) -> None:
    if path.suffix == ".json":
        listed, damaged = [r for r in json.loads(path.read_text())["loglines"] if isinstance(r, dict)], []
    else:
        listed, damaged = records(path)

    listed = without_copies(listed)

    found, report = importers.read(path)

    said = once(found)
    assert call_ids(said) == sorted(block["id"] for r in listed for block in blocks(r, "tool_use"))
    assert result_ids(said) == sorted(block["tool_use_id"] for r in listed for block in blocks(r, "tool_result"))
    assert [line for lines in report.damaged.values() for line, _ in lines] == damaged
    spent: dict[str, tuple[int, int]] = {}
    answers = set()
    for number, record in enumerate(listed):
        message = record.get("message")
        if record.get("type") != "assistant" or not isinstance(message, dict):
            continue
        only_text = [block["text"] for block in blocks(record, "text")]
        if message.get("model") == "<synthetic>" and only_text == ["No response requested."]:
            continue
        answers.add(message.get("id") or record.get("uuid") or number)
        told = message.get("usage") or {}
        beside = [one for one in told.get("iterations") or () if one["type"] == "advisor_message"]
        output, sent = (sum(numbers) for numbers in zip(*map(output_and_input, [told, *beside]), strict=True))
        own = message.get("id") or record.get("uuid") or str(number)
        spent[own] = max(spent.get(own, (0, 0)), (output, sent))
    summaries = sum(record.get("isCompactSummary") is True for record in listed)
    assert sum(message["role"] == "assistant" for message in said) == len(answers) + summaries
    assert (usage.total(said).total or 0) == sum(output + sent for output, sent in spent.values())


@pytest.mark.parametrize(
    ("name", "sessions", "turns"),
    [
        ("entire-resume-after-exit.jsonl", 1, 2),
        ("entire-fork-two-answers.jsonl", 1, 4),
        ("entire-compact-small.jsonl", 1, 2),
        ("ccl-dag-compact-after-rewind.jsonl", 2, 4),
        ("ccviewer-5c0375b4.jsonl", 3, 1),
        ("codemie-9eda1058-interrupt.jsonl", 1, 3),
        ("codemie-196820da.jsonl", 1, 13),
        ("entire-user-image.jsonl", 1, 21),
    ],
)
def test_claude_code_branches_and_turns_are_those_a_person_counts(name: str, sessions: int, turns: int) -> None:
    path = corpus(f"claude-code/{name}")

    found, _ = importers.read(path)

    assert (len(found), messages.turn_count(found[0].messages)) == (sessions, turns)


@pytest.mark.parametrize("path", files("codex"))
def test_codex_calls_results_prompts_and_tokens_are_those_of_the_lines(path: Path) -> None:
    listed, damaged = records(path)
    payloads = [record.get("payload", record) for record in listed]
    kinds = [payload.get("type") for payload in payloads]

    found, report = importers.read(path)

    said = once(found)
    made = ("function_call", "custom_tool_call", "local_shell_call")
    assert len(call_ids(said)) == sum(kinds.count(kind) for kind in made)
    assert result_ids(said) == sorted(p["call_id"] for p in payloads if str(p.get("type")).endswith("call_output"))
    assert [line for lines in report.damaged.values() for line, _ in lines] == damaged
    screen = [p["item"]["type"] for p in payloads if isinstance(p.get("item"), dict)]
    shown = kinds.count("user_message") + screen.count("UserMessage")
    typed = [p for p in payloads if p.get("role") == "user"]
    if shown:
        assert messages.turn_count(said) == shown
    else:
        assert messages.turn_count(said) == len(typed)
    counts = [(p.get("info") or {}).get("total_token_usage") for p in payloads if p.get("type") == "token_count"]
    last = next((count for count in reversed(counts) if count), None)
    total = usage.total(said)
    if last is None:
        assert total.reported == 0
    else:
        assert (total.input, total.cached, total.output, total.reasoning, total.total) == (
            last["input_tokens"],
            last["cached_input_tokens"],
            last["output_tokens"],
            last["reasoning_output_tokens"],
            last["total_tokens"],
        )


def test_the_codex_accounting_set_adds_up_to_its_expected_numbers() -> None:
    folder = corpus("codex/usage-oracle")
    expected = json.loads((folder / "expected.json").read_text())["expected"]
    sums = expected["token_totals"]

    (parent,), report = importers.read(folder / "s1.jsonl")
    (child,), _ = importers.read(folder / "s2.jsonl")

    total = usage.total(once([parent, child]))
    assert (total.input, total.cached, total.output, total.reasoning, total.total) == (
        sums["input_tokens"],
        sums["cached_input_tokens"],
        sums["output_tokens"],
        sums["reasoning_output_tokens"],
        sums["total_tokens"],
    )
    assert total.reported == expected["canonical_counts"]["usage_events"]
    by_model = {row["model"]: 0 for row in expected["by_model_effort"]}
    for message in once([parent, child]):
        if "usage" in message:
            by_model[message["model"]] += message["usage"]["total_tokens"]
    wanted = dict.fromkeys(by_model, 0)
    for row in expected["by_model_effort"]:
        wanted[row["model"]] += row["total_tokens"]
    assert by_model == wanted
    told = expected["parentage"][0]
    assert child.meta["subagent_of"] == {"key": f"codex:{told['parent_session_id']}"}
    assert report.damaged_lines == expected["parser_diagnostics"]["invalid_json"]


@pytest.mark.parametrize("path", files("pi"))
def test_pi_messages_calls_and_tokens_are_those_of_the_entries(path: Path) -> None:
    listed, damaged = records(path)
    inner = [record["message"] for record in listed if record.get("type") == "message"]
    summaries = [record for record in listed if record.get("type") in ("compaction", "branch_summary")]

    found, report = importers.read(path)

    said = once(found)
    assert len(said) == len(inner) + len(summaries)
    parts = [part for message in inner for part in message["content"] if isinstance(part, dict)]
    assert call_ids(said) == sorted(part["id"] for part in parts if part["type"] == "toolCall")
    assert result_ids(said) == sorted(m["toolCallId"] for m in inner if m["role"] == "toolResult")
    told = [one["usage"] for one in [*inner, *summaries] if "usage" in one]
    assert usage.total(said).total == sum(
        one["input"] + one["output"] + one.get("cacheRead", 0) + one.get("cacheWrite", 0) for one in told
    )
    assert [line for lines in report.damaged.values() for line, _ in lines] == damaged
    parent = {record["id"]: record.get("parentId") for record in listed if "parentId" in record}
    leaves = {r["id"] for r in listed if r.get("type") in ("message", "compaction", "branch_summary") and "id" in r}
    for one in list(leaves):
        while (one := parent.get(one)) is not None:
            leaves.discard(one)
    assert len(found) == max(1, len(leaves))


@pytest.mark.parametrize("path", files("chatgpt-export"))
def test_chatgpt_messages_are_the_nodes_with_something_in_them(path: Path) -> None:
    conversations = [c for c in json.loads(path.read_text()) if "mapping" in c]

    found, report = importers.read(path)

    for conversation, one in zip(conversations, found, strict=True):
        inside = [node["message"] for node in conversation["mapping"].values() if node["message"]]
        texts = [
            m
            for m in inside
            if any(m["content"].get("parts", [])) or m["content"].get("text") or m["content"].get("result")
        ]
        assert len(one.messages) == len(texts)
        assert one.title == conversation["title"]
        assert not tool_calls.pair(one.messages).orphans
    assert report.sessions == len(conversations)


@pytest.mark.parametrize("path", files("openai-chat") + files("openai-finetune"))
def test_chat_files_come_through_unchanged(path: Path) -> None:
    raw = path.read_text()
    items = json.loads(raw) if path.suffix == ".json" else [json.loads(line) for line in raw.split("\n") if line]

    found, _ = importers.read(path)

    assert [one.messages for one in found] == [item.get("messages") or item["traj"] for item in items]


@pytest.mark.parametrize("whole", ["data", "corpus"])
def test_an_import_of_a_whole_folder_loses_nothing_and_a_second_adds_nothing(tmp_path: Path, whole: str) -> None:
    folder = DATA if whole == "data" else corpus("")
    manager = SessionManager(tmp_path / "sessions")

    steps = list(importers.import_paths(manager, [folder]))
    again = list(importers.import_paths(manager, [folder]))

    refused = [step for step in steps if step.error is not None]
    assert all(isinstance(step.error, ImportRefused) for step in refused)
    supported = [step.source for step in refused if step.source.parts[len(folder.parts)] in TOOLS]
    left = {p.name for p in supported if p.name not in NO_SESSION and "ccl-records" not in p.parts}
    assert left <= ONLY_COUNTS
    assert sum(step.result.added_messages for step in again if step.result) == 0
    for info in manager.list():
        assert info.damaged == 0
        assert info.messages > 0
        assert not info.parent or manager.exists(info.parent)


@pytest.mark.parametrize("path", [file for tool in (*TOOLS[:4], *DIALECTS) for file in files(tool)])
def test_what_a_provider_is_sent_of_an_imported_session_is_valid(path: Path) -> None:
    found, _ = importers.read(path)

    for one in found:
        request = messages.for_request([*one.messages, {"role": "user", "content": "And now?"}])
        assert problems(user_first(request)) == []
        for message in one.messages:
            assert encoding.decode(encoding.encode(message)) == message


def test_a_plain_clone_has_files_of_every_tool() -> None:
    found = [p for p in DATA.rglob("*.*") if p.is_file() and not p.name.endswith(".meta.json")]
    made = sorted(p for p in found if not {"message", "part"} & set(p.parts))  # of opencode's storage, not sessions

    formats = {report.format for _, report in map(importers.read, made)}

    assert formats == set(importers.FORMATS)
    assert len(made) >= 12
