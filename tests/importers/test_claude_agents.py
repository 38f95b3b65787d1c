"""Claude Code's sub-agents: sessions of their own that name the session and the call that made them, however deep."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sessions_lib import SessionManager, importers, stats
from tests.importers.files import call, claude, result, spent, text, write_lines

MAIN = [
    claude("user", "u1", None, "Ask around."),
    claude("assistant", "a1", "u1", call("t1", "Agent", prompt="Ask the harbour."), usage=spent(100, 10)),
    claude("user", "r1", "a1", result("t1", "ok")),
]


def side(agent: str, kind: str, uuid: str, parent: str | None, said: Any, **more: Any) -> dict[str, Any]:
    return claude(kind, uuid, parent, said, isSidechain=True, agentId=agent, **more)


HARBOUR = [
    side("d1", "user", "d1u", None, "Ask the harbour."),
    side("d1", "assistant", "d1a", "d1u", call("t2", "Agent", prompt="Ask the pilot."), usage=spent(50, 7)),
    side("d1", "user", "d1r", "d1a", result("t2", "pilot says no")),
]
PILOT = [
    side("d2", "user", "d2u", None, "Ask the pilot."),
    side("d2", "assistant", "d2a", "d2u", text("No."), usage=spent(30, 3)),
]


def agents(manager: SessionManager) -> dict[str, dict[str, Any]]:
    """Each sub-agent's name, and the caller it names; sessions by what was asked in them."""
    asked = {info.id: info.title.removeprefix("Sub-agent: ") for info in manager.list()}
    found = {}
    for info in manager.list():
        if (agent := info.meta.get("subagent_of")) is not None:
            named = {**agent, "session": asked[agent["session"]]} if "session" in agent else agent
            found[info.meta["imported_from"]["agent"]] = named
    return found


IN_MAIN = {"key": "claude-code:s1", "session": "Ask around."}
EXPECTED = {
    "d1": {**IN_MAIN, "tool_call_id": "t1"},
    "d2": {"key": "claude-code:s1:agent:d1", "tool_call_id": "t2", "session": "Ask the harbour."},
}


def write(folder: Path, *, beside: bool, results: bool = False, prompts: bool = True) -> Path:
    """The three files, telling the callers in one way or another."""
    asked = [json.loads(json.dumps([MAIN, HARBOUR, PILOT][number])) for number in range(3)]
    if results:
        asked[0][2]["toolUseResult"], asked[1][2]["toolUseResult"] = {"agentId": "d1"}, {"agentId": "d2"}
    if not prompts:
        for records in asked[:2]:
            del records[1]["message"]["content"][0]["input"]["prompt"]
    project = folder / "projects" / "-work-cave"
    write_lines(project / "s1.jsonl", *asked[0])
    for name, number, tool_call in (("d1", 1, "t1"), ("d2", 2, "t2")):
        path = write_lines(project / "s1" / "subagents" / f"agent-{name}.jsonl", *asked[number])
        if beside:
            meta = {"agentType": "general-purpose", "toolUseId": tool_call}
            path.with_name(f"agent-{name}.meta.json").write_text(json.dumps(meta))
    return project


@pytest.mark.parametrize(
    "told",
    [
        {"beside": True, "prompts": False},
        {"beside": False, "results": True, "prompts": False},
        {"beside": False},
        {"beside": True, "results": True},
    ],
    ids=["by the file beside it", "by the call's result", "by its prompt", "by all"],
)
def test_a_sub_agents_sub_agent_names_the_call_that_made_it(tmp_path: Path, told: dict[str, bool]) -> None:
    manager = SessionManager(tmp_path / "sessions")

    list(importers.import_paths(manager, [write(tmp_path, **told)]))

    assert agents(manager) == EXPECTED
    assert stats.figures(manager.catalog).tokens.total == 110 + 57 + 33
    assert sorted(info.title for info in manager.list()) == [
        "Ask around.",
        "Sub-agent: Ask the harbour.",
        "Sub-agent: Ask the pilot.",
    ]


def test_a_caller_that_is_imported_later_is_named_then(tmp_path: Path) -> None:
    project = write(tmp_path, beside=True)
    subagents = project / "s1" / "subagents"
    manager = SessionManager(tmp_path / "sessions")

    list(importers.import_paths(manager, [subagents / "agent-d2.jsonl"]))
    list(importers.import_paths(manager, [project / "s1.jsonl"]))
    assert agents(manager) == {"d2": {"key": "claude-code:s1", "tool_call_id": "t2"}}
    list(importers.import_paths(manager, [subagents / "agent-d1.jsonl"]))

    assert agents(manager) == EXPECTED


def test_sub_agents_inside_their_callers_file_name_their_callers_too(tmp_path: Path) -> None:
    manager = SessionManager(tmp_path / "sessions")
    path = write_lines(tmp_path / "s1.jsonl", *MAIN[:2], *HARBOUR[:2], *PILOT, HARBOUR[2], MAIN[2])

    list(importers.import_paths(manager, [path]))

    assert agents(manager) == EXPECTED


def test_the_agents_of_a_workflow_name_its_call(tmp_path: Path) -> None:
    main = [
        MAIN[0],
        claude("assistant", "a1", "u1", call("t1", "Workflow", script="audit"), usage=spent(100, 10)),
        claude("user", "r1", "a1", result("t1", "done"), toolUseResult={"workflowId": "wf_77"}),
    ]
    project = tmp_path / "projects" / "-work-cave"
    write_lines(project / "s1.jsonl", *main)
    run = project / "s1" / "subagents" / "workflows" / "wf_77"
    write_lines(run / "agent-d1.jsonl", side("d1", "user", "d1u", None, "Look at the hull."))
    write_lines(run / "agent-d2.jsonl", side("d2", "user", "d2u", None, "Look at the sails."))
    (run / "agent-d2.meta.json").write_text('{"agentType": "workflow-subagent", "toolUseId": "t1"}')
    write_lines(run / "journal.jsonl", {"type": "agent_started", "agentId": "d1", "label": "hull"})
    manager = SessionManager(tmp_path / "sessions")

    steps = list(importers.import_paths(manager, [project]))

    expected = {"key": "claude-code:s1", "tool_call_id": "t1", "session": "Ask around."}
    assert agents(manager) == {"d1": expected, "d2": expected}
    (refused,) = [str(step.error) for step in steps if step.error]
    assert "Claude Code's journal of a workflow, not a session" in refused


def test_a_call_that_is_named_but_nowhere_to_be_found_is_not_pinned_on_anybody(tmp_path: Path) -> None:
    project = write(tmp_path, beside=True)
    (project / "s1" / "subagents" / "agent-d2.meta.json").write_text('{"toolUseId": "t9"}')
    manager = SessionManager(tmp_path / "sessions")

    list(importers.import_paths(manager, [project]))

    assert agents(manager)["d2"] == {"key": "claude-code:s1", "tool_call_id": "t9"}
