"""Where a session may be forked, and the copy that a fork starts as.

A fork is a copy of the prefix's bytes under a new id. It is whole before the id is claimed, under a hidden name: a
process that is killed while it copies leaves no half a fork.

Does not open the new session: the session does.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sessions_lib import messages, text, times
from sessions_lib.errors import ForkPointForbidden
from sessions_lib.messages import places, tool_calls
from sessions_lib.store import records
from sessions_lib.store.folder import disk, jsonl, metadata
from sessions_lib.store.folder.folder import SUFFIX, claim

_FORK = re.compile(r"(?:-fork(?:-\d+)?)+\Z")  # what earlier forks added to an id
_INHERITED_SETTINGS = ("system", "model", "base_url", "temperature", "tags")


@dataclass(frozen=True, slots=True)
class ForkPoint:
    """A point where a fork is allowed.

    ``at`` messages, the ``size`` in bytes of their lines, the id of the last one (``None`` for none), how many
    messages stand behind it, the parent's display title, and the point in turns: ``after turn 2``.
    """

    at: int
    size: int
    message_id: str | None
    left_out: int
    title: str
    place: str


def point(session: str, title: str, lines: jsonl.Lines, at: int | None) -> ForkPoint:
    """The fork point after ``at`` messages (``None``: the last allowed), or ``ForkPointForbidden`` with the nearest."""
    said = lines.messages
    if at is None:
        at = tool_calls.last_fork_point(said)
    elif not tool_calls.is_fork_point(said, at):
        raise ForkPointForbidden(session, at, tool_calls.nearest_fork_points(said, at), len(said))
    message_id = messages.ids(said[:at])[-1] if at else None
    size = lines.ends[at - 1] if at else 0
    return ForkPoint(at, size, message_id, len(said) - at, title, places.place(said, at))


def meta(session: str, parent: records.Metadata, point: ForkPoint, title: str | None, mark: str) -> dict[str, Any]:
    """The metadata of a fork of ``session``: its lineage, and the parent's settings and tags.

    Without a ``title`` it is the parent's name with one mark: ``mark``, else where the fork was taken.
    """
    name = records.bare_title(point.title, parent.values)
    made = text.marked_title(name, mark) if mark else text.fork_title(name, point.place)
    return {
        "title": title or made,
        records.MARK_AT: len(made) - len(mark) - 3 if mark and not title else None,
        **{key: value for key, value in parent.values.items() if key in _INHERITED_SETTINGS},
        "created": times.now(),
        "forked_from": {"session": session, "messages": point.at, "message_id": point.message_id},
    }


def base_id(parent: str, meta: Mapping[str, Any]) -> str:
    """What the id of a fork of ``parent`` is made of: the parent's, without its number and a secret of its title."""
    from sessions_lib.redaction import ids  # only a new session needs its rules

    return f"{_FORK.sub('', ids.without_secrets(parent, [str(meta['title'])]))[:100] or 'session'}-fork"


def copy(file: Path, size: int, new_id: str | None, meta: dict[str, Any], *, number_title: bool) -> str:
    """Copy the first ``size`` bytes of ``file`` as a new session and return its id, made of the parent's without one.

    ``SessionExists`` if ``new_id`` is taken, ``FileNotFoundError`` if ``file`` is gone. With ``number_title`` a fork
    called as one of its siblings gets a number.
    """
    base = base_id(file.name.removesuffix(SUFFIX), meta)
    copied = disk.sibling(file)
    try:
        if size:
            disk.copy_prefix(file, copied, size)
        named = partial(_numbered, file.parent, base, meta["title"]) if number_title else None
        child = claim(file.parent, new_id, base, meta, title=named)
        if size:
            disk.put_in_place(copied, file.with_name(child + SUFFIX))
    finally:
        copied.unlink(missing_ok=True)
    return child


def _numbered(folder: Path, base: str, title: str, taken: Collection[str]) -> str:
    """``title``, with a number if a session whose id is made of ``base`` is called so already.

    >>> _numbered(Path("/none"), "a-fork", "Tides · after turn 2", ())
    'Tides · after turn 2'
    """
    siblings = [base + one[len(base) :] for one in taken if one.startswith(base.lower())]
    titles = {metadata.read(folder / (one + metadata.SUFFIX)).title for one in siblings}
    number, numbered = 2, title
    while numbered in titles:
        numbered, number = f"{title} ({number})", number + 1
    return numbered
