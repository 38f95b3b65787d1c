"""What happens while a prompt is answered, in the order it happens: what ``Agent.stream`` yields.

Does not know where events come from or who looks at them; an event that is not known can be skipped.
"""

from __future__ import annotations

from dataclasses import dataclass

from sessions_lib.messages.content import Message
from sessions_lib.messages.tool_calls import Call
from sessions_lib.messages.usage import Usage


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """More of the model's reasoning, where the provider sends it."""

    text: str


@dataclass(frozen=True, slots=True)
class MessageStored:
    """A message is on disk (in memory, for a session there): the answer of a step, or the result of a call."""

    message: Message


@dataclass(frozen=True, slots=True)
class UsageReported:
    """What the provider says a step cost; absent where it does not say."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class ToolCallStarted:
    """A tool is about to run; its call is stored."""

    call: Call


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """A call has its result, and the result is stored."""

    call: Call
    message: Message


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the person should know, in one sentence: that the model gets a part of a result, for example."""

    text: str


@dataclass(frozen=True, slots=True)
class ApprovalAsked:
    """A call waits for a person's yes, on disk; the run ends here, and goes on with what is decided."""

    call: Call


@dataclass(frozen=True, slots=True)
class Waiting:
    """The server asked to wait ``seconds`` before the request is sent again; ``text`` says so. A stop ends the wait."""

    seconds: float
    text: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of the run. ``interrupted``: somebody stopped it, and ``answer`` is what was said until then.

    ``message`` is the last assistant message, ``None`` if it was stopped before anything was said. A
    ``finish_reason`` other than ``stop`` (``length``, ``content_filter``) means that the answer is not whole.
    """

    answer: str
    message: Message | None
    interrupted: bool
    finish_reason: str | None


Event = (
    TextDelta
    | ReasoningDelta
    | MessageStored
    | UsageReported
    | ToolCallStarted
    | ToolFinished
    | ApprovalAsked
    | Notice
    | Waiting
    | Finished
)
