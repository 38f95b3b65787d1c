"""Where a session may be forked, and the copy that a fork starts as.

A fork is a copy of the prefix's bytes under a new id. It is whole before the id is claimed, under a hidden name: a
process that is killed while it copies leaves no half a fork.

Does not open the new session: the session does.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sessions_lib import messages, times
from sessions_lib.errors import ForkPointForbidden
from sessions_lib.messages import tool_calls
from sessions_lib.store import records
from sessions_lib.store.folder import disk, jsonl
from sessions_lib.store.folder.folder import SUFFIX, claim

_INHERITED_SETTINGS = ("system", "model", "base_url", "temperature", "tags")


@dataclass(frozen=True, slots=True)
class ForkPoint:
    """A point where a fork is allowed.

    ``at`` messages, the ``size`` in bytes of their lines, the id of the last one (``None`` for none), how many
    messages stand behind it, and the parent's display title.
    """

    at: int
    size: int
    message_id: str | None
    left_out: int
    title: str


def point(session: str, title: str, lines: jsonl.Lines, at: int | None) -> ForkPoint:
    """The fork point after ``at`` messages (``None``: the last allowed), or ``ForkPointForbidden`` with the nearest."""
    said = lines.messages
    if at is None:
        at = tool_calls.last_fork_point(said)
    elif not tool_calls.is_fork_point(said, at):
        raise ForkPointForbidden(session, at, tool_calls.nearest_fork_points(said, at), len(said))
    message_id = messages.ids(said[:at])[-1] if at else None
    return ForkPoint(at, lines.ends[at - 1] if at else 0, message_id, len(said) - at, title)


def meta(session: str, parent: records.Metadata, point: ForkPoint, title: str | None) -> dict[str, Any]:
    """The metadata of a fork of ``session``: its lineage, and the parent's settings and tags."""
    return {
        "title": title or f"{point.title} · from message {point.at}",
        **{key: value for key, value in parent.values.items() if key in _INHERITED_SETTINGS},
        "created": times.now(),
        "forked_from": {"session": session, "messages": point.at, "message_id": point.message_id},
    }


def copy(file: Path, size: int, new_id: str | None, meta: dict[str, Any], *, number_title: bool) -> str:
    """Copy the first ``size`` bytes of ``file`` as a new session and return its id, made of the parent's without one.

    ``SessionExists`` if ``new_id`` is taken, ``FileNotFoundError`` if ``file`` is gone. ``number_title``: see
    ``folders.claim``.
    """
    parent = file.name.removesuffix(SUFFIX)
    copied = disk.sibling(file)
    try:
        if size:
            disk.copy_prefix(file, copied, size)
        child = claim(file.parent, new_id, f"{parent[:100]}-fork", meta, number_title=number_title)
        if size:
            disk.put_in_place(copied, file.with_name(child + SUFFIX))
    finally:
        copied.unlink(missing_ok=True)
    return child
