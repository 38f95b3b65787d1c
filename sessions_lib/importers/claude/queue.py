"""Prompts typed while an answer ran: Claude Code queues them, and ``queue-operation`` records say what became of each.

``enqueue`` adds one; ``dequeue`` took the oldest, which became an ordinary prompt; ``popAll`` gave them back to be
edited. ``remove`` handed one over in the middle of a turn, unless it says that it was cancelled: a prompt, at that
place and time, often told again by a ``queued_command`` attachment. Whichever of the two comes first in the file is
the prompt, so a file that grows gives the same one at every length.

Does not know the tree of records.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from sessions_lib.importers.claude import blocks as claude_blocks
from sessions_lib.messages import content

Record = dict[str, Any]

_CANCELLED = ("cancel", "discard", "abort", "edit")


class Queue:
    """The queue as a file's records tell it, taken in order."""

    def __init__(self) -> None:
        """Nothing waits yet."""
        self._waiting: list[Any] = []
        self._told: Counter[str] = Counter()  # texts that one of the two records told and the other one did not yet

    def take(self, record: Record) -> list[Any] | None:
        """The blocks that ``record`` handed over to the model; ``None`` for any other operation."""
        operation, given = record.get("operation"), record.get("content")
        if operation == "enqueue":
            self._waiting.append(given)
        elif operation == "popAll":
            self._waiting.clear()
        elif operation in ("dequeue", "remove"):
            handed = self._out(given)
            if operation == "remove" and not _is_cancelled(record):
                blocks = claude_blocks.blocks_of({"content": handed})
                return blocks if self.is_news(blocks, 1) else None
        return None

    def is_news(self, blocks: list[Any], sign: int = -1) -> bool:
        """False if these blocks were handed over by the other kind of record before: each tells a prompt once.

        ``sign`` is 1 for an operation, -1 for an attachment.
        """
        key = content.as_text(blocks)
        balance = self._told[key]
        self._told[key] += sign
        return balance * sign >= 0

    def _out(self, given: Any) -> Any:
        if given is None or given == "":
            return self._waiting.pop(0) if self._waiting else None
        if given in self._waiting:
            self._waiting.remove(given)
        return given


def _is_cancelled(record: Record) -> bool:
    reason = content.as_text(record.get("reason")).lower()
    return any(word in reason for word in _CANCELLED)
