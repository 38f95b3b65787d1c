"""Whether a tool may run: who is asked, what waits for an answer, and what a person said.

A tool that changes the world (``effect``), or any if the session says so, is asked about where somebody can be asked.
What waits stands in the session's metadata, beside its stored call: so it survives the process, and every window sees
it. It is taken out before the tool runs, so no call runs twice.

Does not run tools and does not ask: the agent does, and pages and terminal show the question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sessions_lib import names
from sessions_lib.agent.tools import Tool
from sessions_lib.errors import SessionError
from sessions_lib.messages import tool_calls
from sessions_lib.messages.tool_calls import Call
from sessions_lib.store.records import WAITING
from sessions_lib.store.session import Session

ALLOWED = "allowed_tools"  # the tools that a person allowed for the whole session
ASK = "ask_before_tools"  # "all", or whatever else for those with effects
DENIED = "Denied by the person, and not run"
WENT_ON = "Not run: the person asked something else instead of allowing it."


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person said of a call: ``always`` holds for its tool in this session; ``reason`` is told to the model."""

    is_allowed: bool
    reason: str = ""
    always: bool = False


Approve = Callable[[Call, Tool], Decision | bool]


def must_ask(session: Session, tool: Tool) -> bool:
    """True if a person is to be asked before ``tool`` runs in ``session``."""
    allowed = session.meta.get(ALLOWED)
    is_allowed = isinstance(allowed, list) and tool.name in allowed
    return not is_allowed and (tool.effect or session.meta.get(ASK) == "all")


def waiting(session: Session) -> list[Call]:
    """The calls that wait for a person, in order; empty if none does."""
    named = session.meta.get(WAITING)
    if not isinstance(named, list):
        return []
    return [call for call in tool_calls.pair(session.messages).unanswered if call.id in named]


def check(call: Call, tools: Sequence[Tool], decisions: Mapping[str, Decision]) -> None:
    """``SessionError`` if ``call``, which waits, cannot run since its tool is not among ``tools``; a no needs none."""
    decision = decisions.get(call.id)
    is_denied = decision is not None and not decision.is_allowed
    if not is_denied and call.name not in [tool.name for tool in tools]:
        raise SessionError(
            f"{names.one_line(call.name, 80)} waits for a yes, but is not among the tools that are on; nothing was "
            "run, and it goes on waiting. Switch it on, or deny it."
        )


def wait(session: Session, calls: Iterable[Call]) -> None:
    """Have ``calls`` wait; none: nothing waits any more."""
    found = [call.id for call in calls]
    if found or session.meta.get(WAITING):
        session.update_meta({WAITING: found or None})


def allow_always(session: Session, tool: Tool) -> None:
    """Remember that ``tool`` needs no more questions in ``session``."""
    known = session.meta.get(ALLOWED)
    listed = [name for name in known if isinstance(name, str)] if isinstance(known, list) else []
    session.update_meta({ALLOWED: sorted({*listed, tool.name})})


def decided(said: Decision | bool) -> Decision:
    """``said`` as a decision."""
    return said if isinstance(said, Decision) else Decision(bool(said))


def denied(decision: Decision) -> str:
    """What the model reads of a call that was not allowed."""
    return f"{DENIED}: {decision.reason}" if decision.reason.strip() else f"{DENIED}."
