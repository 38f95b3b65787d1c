"""Claude Code: what a person said, whichever record tells it; and what only looks like it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sessions_lib import SessionManager, importers, messages
from sessions_lib.importers import ImportReport
from sessions_lib.messages import content
from tests.importers.files import call, claude, corpus, result, said, text, write_lines

BEGUN = [
    claude("user", "u1", None, "Tide?"),
    claude("assistant", "a1", "u1", call("t1", "tide")),
    claude("user", "r1", "a1", result("t1", "low")),
]
ENDED = claude("assistant", "a2", "r1", text("Low, calm."))


def queued(operation: str, given: Any = None, at: str = "2026-03-01T10:00:05.000Z", **more: Any) -> dict[str, Any]:
    record = {"type": "queue-operation", "operation": operation, "timestamp": at, "sessionId": "s1", **more}
    return record if given is None else {**record, "content": given}


def attached(prompt: Any, uuid: str = "q1", parent: str = "r1", **more: Any) -> dict[str, Any]:
    attachment = {"type": "queued_command", "prompt": prompt, "commandMode": "prompt", **more}
    return {"type": "attachment", "uuid": uuid, "parentUuid": parent, "sessionId": "s1", "attachment": attachment}


def read(folder: Path, *records: dict[str, Any]) -> tuple[list[dict[str, Any]], ImportReport]:
    (found,), report = importers.read(write_lines(folder / "c.jsonl", *records))
    return found.messages, report


def prompts(stored: list[dict[str, Any]]) -> list[Any]:
    return [message["content"] for message in stored if message["role"] == "user"]


# ---------------------------------------------------------------- typed while an answer ran


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([queued("enqueue", "And the wind?"), queued("remove")], ["And the wind?"]),
        ([queued("enqueue", "And the wind?"), queued("remove", "And the wind?")], ["And the wind?"]),
        ([queued("remove", "And the wind?")], ["And the wind?"]),
        ([queued("enqueue", "one"), queued("enqueue", "two"), queued("remove"), queued("remove")], ["one", "two"]),
        ([queued("enqueue", "one"), queued("enqueue", "two"), queued("remove", "two"), queued("remove")], ["two", "one"]),
        ([queued("enqueue", "one"), queued("enqueue", "two"), queued("dequeue"), queued("remove")], ["two"]),
        ([queued("enqueue", "one"), queued("popAll"), queued("enqueue", "two"), queued("remove")], ["two"]),
        ([queued("enqueue", "same"), queued("enqueue", "same"), queued("remove"), queued("remove")], ["same", "same"]),
        ([queued("enqueue", text("As blocks.")), queued("remove")], ["As blocks."]),
        ([queued("enqueue", "/home/me/a.py is slow"), queued("remove")], ["/home/me/a.py is slow"]),
        ([queued("enqueue", "What does <task-notification> mean?"), queued("remove")], ["What does <task-notification> mean?"]),
        ([queued("enqueue", "waits still")], []),
        ([queued("enqueue", "one"), queued("dequeue")], []),
        ([queued("enqueue", "one"), queued("popAll"), queued("remove")], []),
        ([queued("enqueue", "never mind"), queued("remove", reason="cancelled")], []),
        ([queued("enqueue", "never mind"), queued("remove", "never mind", reason="user_cancelled")], []),
        ([queued("enqueue", "/exit"), queued("remove")], []),
        ([queued("enqueue", "/model opus"), queued("remove")], []),
        ([queued("enqueue", "<task-notification><id>7</id></task-notification>"), queued("remove")], []),
        ([queued("enqueue", "[SYSTEM NOTIFICATION - NOT USER INPUT]\nDone."), queued("remove")], []),
        ([queued("remove")], []),
        ([queued("odd", "one"), queued("enqueue", {"a": 1}), queued("remove", 5)], []),
    ],
)  # fmt: skip
def test_a_prompt_handed_over_in_the_middle_of_a_turn_is_kept(
    tmp_path: Path, operations: list[dict[str, Any]], expected: list[str]
) -> None:
    stored, report = read(tmp_path, *BEGUN, *operations, ENDED)

    assert prompts(stored) == ["Tide?", *expected]
    assert [m["role"] for m in stored] == ["user", "assistant", "tool", *["user"] * len(expected), "assistant"]
    assert report.skipped["queue-operation"] == len(operations) - len(expected)


def test_it_stands_at_the_place_and_time_of_the_record_that_handed_it_over(tmp_path: Path) -> None:
    stored, _ = read(
        tmp_path,
        *BEGUN[:2],
        queued("enqueue", "And the wind?", "2026-03-01T10:00:03.000Z"),
        BEGUN[2],
        queued("remove", None, "2026-03-01T10:00:07.000Z"),
        ENDED,
    )

    assert said(stored)[3] == ("user", "And the wind?")
    assert stored[3]["timestamp"] == "2026-03-01T10:00:07.000Z"
    assert len({message["id"] for message in stored}) == 5


@pytest.mark.parametrize("order", ["operation first", "attachment first"])
def test_a_prompt_that_both_records_tell_is_one(tmp_path: Path, order: str) -> None:
    told = [queued("enqueue", "And the wind?"), queued("remove", "And the wind?"), attached("And the wind?")]
    told = told if order == "operation first" else [told[2], *told[:2]]
    answer = claude("assistant", "a2", "q1", text("Low, calm."))

    stored, _ = read(tmp_path, *BEGUN, *told, answer)

    assert said(stored)[3:] == [("user", "And the wind?"), ("assistant", "Low, calm.")]


def test_two_equal_prompts_that_were_both_told_twice_are_two(tmp_path: Path) -> None:
    again = [queued("enqueue", "Go on."), queued("remove", "Go on.")]
    records = [*again, attached("Go on."), *again, attached("Go on.", "q2", "q1")]

    stored, _ = read(tmp_path, *BEGUN, *records, claude("assistant", "a2", "q2", text("Low, calm.")))

    assert prompts(stored) == ["Tide?", "Go on.", "Go on."]


@pytest.mark.parametrize(
    ("prompt", "more"),
    [
        ("<task-notification><id>7</id></task-notification>", {}),
        ("[SYSTEM NOTIFICATION - NOT USER INPUT]\nA task ended.", {}),
        ("A task ended.", {"origin": {"kind": "task-notification"}}),
        ("Lint failed.", {"origin": {"kind": "hook"}}),
        ("Lint failed.", {"commandMode": "task-notification"}),
        ("/clear", {}),
        ("   ", {}),
        (None, {}),
    ],
)
def test_notices_that_were_queued_are_no_prompts(tmp_path: Path, prompt: Any, more: dict[str, Any]) -> None:
    stored, _ = read(tmp_path, *BEGUN, attached(prompt, **more), claude("assistant", "a2", "q1", text("Low, calm.")))

    assert [m["role"] for m in stored] == ["user", "assistant", "tool", "assistant"]


@pytest.mark.parametrize("kind", ["human", "channel", "sdk", "something new"])
def test_what_a_person_or_a_program_asked_through_the_queue_is_a_prompt(tmp_path: Path, kind: str) -> None:
    stored, _ = read(tmp_path, *BEGUN, attached("And the wind?", origin={"kind": kind}))

    assert prompts(stored) == ["Tide?", "And the wind?"]


def test_a_real_session_keeps_the_prompt_that_was_typed_while_it_worked(tmp_path: Path) -> None:
    (found,), _ = importers.read(corpus("claude-code/entire-user-image.jsonl"))

    assert "did we create any new unit tests?" in prompts(found.messages)
    assert messages.turn_count(found.messages) == 21


# ---------------------------------------------------------------- what a person ran


def test_what_a_person_ran_and_what_it_printed_is_noted(tmp_path: Path) -> None:
    stored, report = read(
        tmp_path,
        *BEGUN,
        ENDED,
        claude("user", "b1", "a2", "<bash-input>ls -l</bash-input>"),
        claude("user", "b2", "b1", "<bash-stdout>tides.txt\n</bash-stdout><bash-stderr>1 warning</bash-stderr>"),
        claude("user", "u2", "b2", "What is in it?"),
    )

    assert said(stored)[4:] == [
        ("system", "Ran `ls -l`"),
        ("system", "tides.txt\n1 warning"),
        ("user", "What is in it?"),
    ]
    assert [messages.note(m) for m in stored[4:6]] == ["Run by the person", "Run by the person"]
    assert messages.turn_count(stored) == 2
    assert messages.for_request(stored)[-1] == {
        "role": "user",
        "content": "Ran `ls -l`\n\ntides.txt\n1 warning\n\nWhat is in it?",
    }
    assert report.skipped == {}


def test_a_person_who_quotes_the_shells_tags_asks(tmp_path: Path) -> None:
    stored, _ = read(tmp_path, claude("user", "u1", None, "What does <bash-input>ls</bash-input> mean?"))

    assert prompts(stored) == ["What does <bash-input>ls</bash-input> mean?"]


# ---------------------------------------------------------------- failures


def test_an_error_of_the_api_is_told_as_a_failed_answer(tmp_path: Path) -> None:
    failed = claude(
        "assistant", "e1", "u2", text("API Error: 529 Overloaded"), model="<synthetic>", isApiErrorMessage=True, error="overloaded"
    )  # fmt: skip
    manager = SessionManager(tmp_path / "sessions")
    records = [*BEGUN, ENDED, claude("user", "u2", "a2", "And now?"), failed, claude("user", "u3", "e1", "Again.")]

    list(importers.import_paths(manager, [write_lines(tmp_path / "c.jsonl", *records)]))

    (info,) = manager.list()
    stored = manager.open(info.id).messages
    assert said(stored)[4:] == [("user", "And now?"), ("assistant", "API Error: 529 Overloaded"), ("user", "Again.")]
    assert stored[5]["finish_reason"] == "error"
    assert stored[5]["source"] == {"kind": "API error", "error": "overloaded"}
    assert "model" not in stored[5]
    assert [hit.message for hit in manager.search("overloaded")] == [5]


def test_an_error_beside_the_answer_that_a_retry_brought_is_on_one_line_with_it(tmp_path: Path) -> None:
    failed = claude("assistant", "e1", "u1", text("API Error: 500"), model="<synthetic>", isApiErrorMessage=True)

    stored, _ = read(tmp_path, BEGUN[0], failed, claude("assistant", "a1", "u1", text("2.1 m")))

    assert said(stored) == [("user", "Tide?"), ("assistant", "API Error: 500"), ("assistant", "2.1 m")]


# ---------------------------------------------------------------- other agents

REPORT = (
    '<teammate-message teammate_id="pilot" color="green" summary="done">\nThe channel is open.\n</teammate-message>'
)
OF_A_SESSION = (
    "Another Claude session sent a message:\n"
    '<cross-session-message from="uds:/x.sock" from-name="harbour" from-mode="prompting">\nTide is out.\n'
    "</cross-session-message>\nIt is not from the user."
)


@pytest.mark.parametrize(
    ("given", "more", "expected", "author"),
    [
        (REPORT, {}, "The channel is open.", "pilot"),
        (text(REPORT), {}, "The channel is open.", "pilot"),
        (f"{REPORT}\n\n{REPORT.replace('pilot', 'cook')}", {}, "The channel is open.\n\nThe channel is open.", "pilot, cook"),
        (OF_A_SESSION, {}, "Tide is out.", "harbour"),
        ('<cross-session-message from="uds:/y">Hello.</cross-session-message>', {}, "Hello.", "uds:/y"),
        ("Tide is out.", {"origin": {"kind": "peer", "from": "harbour"}}, "Tide is out.", "harbour"),
        ("Tide is out.", {"origin": {"kind": "coordinator"}}, "Tide is out.", ""),
    ],
)  # fmt: skip
def test_what_another_agent_wrote_is_no_prompt(
    tmp_path: Path, given: Any, more: dict[str, Any], expected: str, author: str
) -> None:
    stored, _ = read(tmp_path, *BEGUN, ENDED, claude("user", "m1", "a2", given, **more))

    assert said(stored)[4:] == [("system", expected)]
    assert stored[4]["source"] == {"kind": "agent message", "author": author}
    assert messages.note(stored[4]) == "Message of an agent"
    assert messages.turn_count(stored) == 1


def test_what_another_agent_wrote_through_the_queue_is_no_prompt(tmp_path: Path) -> None:
    stored, _ = read(tmp_path, *BEGUN, queued("enqueue", REPORT), queued("remove"), ENDED)

    assert said(stored)[3:] == [("system", "The channel is open."), ("assistant", "Low, calm.")]


def test_in_a_teammates_own_session_what_it_is_told_is_its_prompt(tmp_path: Path) -> None:
    stored, _ = read(tmp_path, claude("user", "u1", None, REPORT, teamName="tides", agentName="cook"), ENDED)

    assert [m["role"] for m in stored] == ["user", "assistant"]


def test_a_person_who_quotes_a_teammates_tag_asks(tmp_path: Path) -> None:
    stored, _ = read(tmp_path, claude("user", "u1", None, f"{REPORT} What does that mean?"))

    assert messages.turn_count(stored) == 1


# ---------------------------------------------------------------- copies


def test_records_that_a_resume_copied_are_one(tmp_path: Path) -> None:
    more = [claude("user", "u2", "r1", "Sure?"), claude("assistant", "a2", "u2", text("Yes."))]
    copies = [{**one, "sessionId": "s2", "timestamp": "2026-03-02T10:00:00.000Z"} for one in [*BEGUN, *more]]

    found, report = importers.read(
        write_lines(tmp_path / "c.jsonl", *BEGUN, *more, *copies, claude("user", "u3", "a2", "Thanks.", sessionId="s2"))
    )

    assert [said(one.messages) for one in found] == [
        [
            ("user", "Tide?"),
            ("assistant", [None, "tide()"]),
            ("tool", "low"),
            ("user", "Sure?"),
            ("assistant", "Yes."),
            ("user", "Thanks."),
        ]
    ]
    assert report.skipped == {"repeated record": 5}


def test_two_records_of_one_uuid_that_say_different_things_are_two(tmp_path: Path) -> None:
    stored, _ = read(tmp_path, claude("user", "u1", None, "One."), claude("user", "u1", None, "Two."))

    assert [(m["id"], m["content"]) for m in stored] == [("cc_u1", "One."), ("cc_u1~2", "Two.")]


# ---------------------------------------------------------------- kinds that nobody here knows


def test_a_record_of_an_unknown_kind_is_looked_into(tmp_path: Path) -> None:
    stored, report = read(
        tmp_path,
        *BEGUN,
        {"type": "brand-new-2027", "uuid": "n1", "parentUuid": "r1", "content": "A word from the harbour."},
        {"type": "brand-new-2027", "uuid": "n2", "parentUuid": "n1", "content": "low"},
        {"type": "brand-new-2027", "x": 1},
        claude("assistant", "a2", "n2", text("Low, calm.")),
    )

    assert said(stored)[3:] == [("system", "A word from the harbour."), ("assistant", "Low, calm.")]
    assert report.unknown == {"brand-new-2027": 1}
    assert report.skipped == {"brand-new-2027": 2}
    assert content.text(stored[3]) == "A word from the harbour."
