"""Conversations kept as trees of messages, where an edit leaves a branch: the line that is shown, and the others.

Used for what names a message's parent and the leaf that is shown (ChatGPT, claude.ai, Open WebUI, LibreChat).

Does not know any tool's format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sessions_lib.importers.imported import common
from sessions_lib.messages.content import Message


@dataclass(frozen=True, slots=True)
class Line:
    """The messages from the start to a leaf; ``parent`` is the line it parts from, behind ``shared`` messages."""

    messages: list[Message]
    parent: int | None
    shared: int

    def key(self, conversation: str) -> str:
        """What names this line for good: the conversation, and the first message of its own."""
        return conversation if self.parent is None else f"{conversation}#{self.messages[self.shared]['id']}"


def lines(
    parents: Mapping[str, str | None],
    current: str | None,
    when: Callable[[str], float],
    said: Callable[[Sequence[str]], list[Message]],
) -> list[Line]:
    """The line to ``current`` first (else to the newest leaf), then those to the other leaves, newest first.

    ``parents`` are the nodes in their order, ``when`` is a node's time, and ``said`` gives the messages of a path of
    nodes, each with an ``id``. A line that says nothing of its own is left out.
    """
    found: list[Line] = []
    ids: list[list[str]] = []
    for leaf in _leaves(parents, current, when):
        messages = said(path(parents, leaf))
        own = [message["id"] for message in messages]
        if not messages or any(own == other[: len(own)] for other in ids):
            continue
        parting = [common(own, other) for other in ids]
        shared = max(parting, default=0)
        found.append(Line(messages, parting.index(shared) if ids else None, shared))
        ids.append(own)
    return found


def _leaves(parents: Mapping[str, str | None], current: str | None, when: Callable[[str], float]) -> list[str]:
    above = set(parents.values())
    leaves = [node for node in parents if node not in above]
    place = {node: number for number, node in enumerate(parents)}
    leaves.sort(key=lambda node: (when(node), place[node]), reverse=True)
    if current in parents and current is not None:
        return [current, *(node for node in leaves if node != current)]
    return leaves


def path(parents: Mapping[str, str | None], leaf: str) -> list[str]:
    """The nodes from the start to ``leaf``; a cycle ends where it closes."""
    found: list[str] = []
    seen: set[str] = set()
    at: str | None = leaf
    while at is not None and at in parents and at not in seen:
        seen.add(at)
        found.append(at)
        at = parents[at]
    return found[::-1]
