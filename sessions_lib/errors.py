"""What can go wrong, each error with its evidence and a next step.

Every error a person can meet is a ``SessionError``: its text says what, where, and what to do next; its attributes
carry the evidence. Raised low, caught once at each edge (command line, pages).

Does not print, log or decide what happens next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a session's lock: process id, host name and since when (ISO 8601, UTC); ``None`` where not known."""

    pid: int | None = None
    host: str | None = None
    since: str | None = None

    def __str__(self) -> str:
        if self.pid is None:
            return "another process"
        return f"process {self.pid} on {self.host or 'this host'} since {self.since or 'an unknown time'}"


class SessionError(Exception):
    """Something about a session that a person has to know; the text is one sentence and a next step."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions are rebuilt from their text alone, which the children's constructors do not take: an error that
        # crosses a process would come out as a TypeError there.
        return _rebuilt, (type(self), self.args, dict(self.__dict__))


def _rebuilt(kind: type[SessionError], arguments: tuple[Any, ...], evidence: dict[str, Any]) -> SessionError:
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(evidence)
    return error


class InvalidSessionId(SessionError):
    """An id that is not one, or that no file system could hold."""

    def __init__(self, session: str, reason: str) -> None:
        self.session, self.reason = session, reason
        super().__init__(
            f"{session[:60]!r} is not a session id: {reason}. An id is 1 to 128 letters, digits, '.', '_' or '-' "
            "and starts with a letter or digit."
        )


class SessionNotFound(SessionError):
    """There is no session of this id in the folder, or it was deleted while open."""

    def __init__(self, session: str, text: str | None = None) -> None:
        self.session = session
        super().__init__(text or f"There is no session {session!r}. See: forkbook list")


class SessionExists(SessionError):
    """The id that was asked for belongs to an existing session, which is never overwritten."""

    def __init__(self, session: str) -> None:
        self.session = session
        super().__init__(f"There is already a session {session!r}; nothing was changed. Choose another id.")


class SessionLocked(SessionError):
    """Another writer has the session; reading and forking it never wait."""

    def __init__(self, session: str, holder: Holder) -> None:
        self.session, self.holder = session, holder
        super().__init__(
            f"Session {session!r} is being written by {holder}; nothing was changed. "
            "Wait until it is done, or work in a fork."
        )


class ForkPointForbidden(SessionError):
    """A fork at this message would leave a tool call without its result, or there is no such message."""

    def __init__(self, session: str, at: int, allowed: Sequence[int], count: int | None = None) -> None:
        self.session, self.at, self.allowed = session, at, tuple(allowed)
        near = " or ".join(str(point) for point in self.allowed)
        is_there = count is None or 0 <= at <= count
        why = "it would end in a tool call without its result" if is_there else f"its last message is {count}"
        super().__init__(
            f"Session {session!r} cannot be forked after message {at}: {why}. "
            f"The nearest allowed: after message {near}."
        )


class StorageError(SessionError):
    """The disk refused: full, read-only, not permitted, gone. What is in memory equals what is stored.

    ``where`` is the place as a person calls it: a path, or an address without its password.
    """

    def __init__(
        self, where: object, reason: str, next_step: str = "Free space or fix the permissions, then retry."
    ) -> None:
        self.where, self.reason = str(where), reason
        super().__init__(f"{where}: {reason}; nothing was changed. {next_step}")


class NewerVersion(SessionError):
    """Written by a newer Forkbook: read, never rewritten."""

    def __init__(self, where: str, version: object) -> None:
        self.where, self.version = where, version
        super().__init__(
            f"{where} was written by a newer Forkbook (version {version}); it is read but never rewritten. "
            "Update Forkbook to change it."
        )


class InvalidMessage(SessionError):
    """Not a message: not an object with a string ``role``, or it holds what JSON cannot."""


class ImportRefused(SessionError):
    """A source that is not a session of a known tool; ``found`` says what it looked like."""

    def __init__(self, path: Path, found: str) -> None:
        self.path, self.found = path, found
        super().__init__(f"{path}: {found}. Nothing was imported.")


class ProviderError(SessionError):
    """The model's server failed or refused; the prompt is stored and can be answered again."""

    def __init__(self, text: str, *, status: int | None = None) -> None:
        self.status = status
        super().__init__(text)


class BudgetReached(SessionError):
    """A budget is spent: no request goes out before a person agrees. Dollars: ``limit``, and what was ``spent``."""

    def __init__(self, told: str, limit: float, spent: float) -> None:
        self.limit, self.spent = limit, spent
        super().__init__(f"{told}; nothing was sent. Raise the budget, or agree to go on.")


class ConversationTooLong(ProviderError):
    """What is sent does not fit into the model's context: a fork may go on with its newest turns."""


class ToolsRefused(ProviderError):
    """The model takes no tools, and was asked with some: whether to ask without them is a person's to say."""


class StepLimitReached(SessionError):
    """The model went on calling tools for ``max_steps`` model calls without an answer."""

    def __init__(self, max_steps: int) -> None:
        self.max_steps = max_steps
        super().__init__(
            f"No answer after {max_steps} steps; everything up to here is saved. "
            "Go on with another prompt, or raise max_steps."
        )
