"""A merge: two sessions become a new one, with a preview first.

Either chosen turns of the second are copied behind the first's last turn, or both are interleaved by time (the seeds'
``merge``, see ``merge``). The new session says what it was ``merged_from`` and is a fork of the first up to the
messages they share; both sources stay untouched.

Does not run a model: what was said is copied, never said again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sessions_lib import messages, names, text
from sessions_lib.errors import SessionError
from sessions_lib.messages import content, encoding
from sessions_lib.messages.content import Message
from sessions_lib.store import merge, records, tagging
from sessions_lib.store.manager import SessionManager
from sessions_lib.store.session import Session

_KEPT = ("system", "model", "base_url", "temperature")


@dataclass(frozen=True, slots=True)
class Preview:
    """What a merge would make of ``first`` and ``second``: its messages, and which of them come from ``second``.

    ``shared`` is how many messages at the top stand as in ``first``; ``added`` the indices of the messages that
    ``first`` does not have; ``turns`` one line for each turn that has any of them.
    """

    first: str
    second: str
    title: str
    messages: list[Message]
    added: list[int]
    shared: int
    turns: list[str]


def preview(
    manager: SessionManager, first: str, second: str, turns: Sequence[int] | None = None, title: str | None = None
) -> Preview:
    """The merge of two sessions, written nowhere: chosen ``turns`` of the second, or (``None``) both by time.

    ``SessionError`` if they are one session, a turn is not there, or the second would add nothing.
    """
    if first == second:
        raise SessionError(f"{first!r} cannot be merged with itself: nothing would change. Choose two sessions.")
    a, b = manager.open(first), manager.open(second)
    if turns is not None and not turns:
        raise SessionError("No turn was chosen; nothing would be copied. Choose one turn or more.")
    merged = (
        merge.merge(a.messages, b.messages) if turns is None else merge.graft(a.messages, b.messages, turns, second)
    )
    known = set(messages.identities(a.messages))
    added = [index for index, identity in enumerate(messages.identities(merged)) if identity not in known]
    if not added:
        raise SessionError(f"{second!r} has nothing there that {first!r} does not have; nothing would change.")
    return Preview(
        first,
        second,
        title or text.merge_title(records.bare_title(a.title, a.meta), records.bare_title(b.title, b.meta)),
        merged,
        added,
        added[0] if len(merged) > added[0] else len(merged),
        _turn_lines(merged, set(added)),
    )


def _turn_lines(merged: list[Message], added: set[int]) -> list[str]:
    lines, index = [], 0
    for number, turn in enumerate(messages.turns(merged), 1):
        if any(position in added for position in range(index, index + len(turn))):
            prompt = names.one_line(content.text(next((m for m in turn if m.get("role") == "user"), turn[0])), 100)
            lines.append(f"turn {number}: {prompt}")
        index += len(turn)
    return lines


def join(manager: SessionManager, plan: Preview, new_id: str | None = None) -> Session:
    """Write what ``plan`` shows as a new session and return it; ``SessionExists`` if ``new_id`` is taken."""
    a, b = manager.open(plan.first), manager.open(plan.second)
    tags = list(a.tags)
    tags += [tag for tag in b.tags if tagging.tag_key(tag) not in set(map(tagging.tag_key, tags))]
    kept = {key: value for key, value in a.meta.items() if key in _KEPT}
    encoding.encode_lines(plan.messages)  # what cannot be stored is said before a session is made for it
    shared_with = plan.messages[plan.shared - 1]["id"] if plan.shared else None
    session = manager.create(
        plan.title,
        tags,
        new_id,
        merged_from=[plan.first, plan.second],
        forked_from={"session": plan.first, "messages": plan.shared, "message_id": shared_with}
        if shared_with
        else None,
        **kept,
    )
    session.extend(plan.messages)
    return session
