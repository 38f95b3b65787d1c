"""Errors carry their evidence wherever they go: into another process, into a copy."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

from sessions_lib import errors
from sessions_lib.agent import demo_world, tools
from sessions_lib.errors import Holder, SessionError

RAISED = [
    SessionError("What, where. Next step."),
    errors.InvalidSessionId("a/b", "it has a character that is not allowed"),
    errors.SessionNotFound("a"),
    errors.SessionNotFound("a", "Session 'a' was deleted while it was open."),
    errors.SessionExists("a"),
    errors.SessionLocked("a", Holder(7, "here", "2026-11-29T19:40:01.123Z")),
    errors.ForkPointForbidden("a", 3, [2, 4], 9),
    errors.StorageError(Path("a.jsonl"), "cannot be written (No space left on device)"),
    errors.NewerVersion(Path("a.meta.json"), 2),
    errors.InvalidMessage("Not a message."),
    errors.ImportRefused(Path("x.txt"), "a text file, not JSON"),
    errors.ProviderError("The server failed.", status=500),
    errors.BudgetReached("The budget of this session is spent", 1.0, 1.2),
    errors.ToolsRefused("It takes no tools.", status=400),
    errors.ConversationTooLong("Too long.", status=400),
    errors.StepLimitReached(10),
    tools.ToolError("The tool file cannot be read."),
    demo_world.Refusal("No gold is left."),
]


def kinds(base: type[SessionError]) -> set[type[SessionError]]:
    return {base}.union(*(kinds(child) for child in base.__subclasses__()))


def test_every_kind_of_error_is_tried_below() -> None:
    ours = {kind for kind in kinds(SessionError) if kind.__module__.startswith("sessions_lib")}

    assert ours - {type(error) for error in RAISED} == set()


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(
    "through",
    [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy],
    ids=["pickle", "copy", "deep"],
)
def test_an_error_that_was_pickled_or_copied_says_and_carries_the_same(through, error: SessionError) -> None:
    error.add_note("while it was saved")

    found = through(error)

    assert type(found) is type(error)
    assert (str(found), found.args, found.__dict__) == (str(error), error.args, error.__dict__)
    assert found is not error
