"""Ids that are unique everywhere, for messages of tools that number them within a conversation (``1``, ``m1``).

An id that is plainly unique already (a UUID, ``msg_…``) stays. Another one becomes ``ch_`` and a hash chained over what
was said before, so two files of one conversation name its messages alike, and no other conversation does. The tool's
own id is kept as ``source_id``; a message without an id gets none.

Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sessions_lib import messages
from sessions_lib.messages.content import Message
from sessions_lib.messages.identity import digest

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_RANDOM = re.compile(r"[0-9A-Za-z]{16,}")
_WORD = re.compile(r"[A-Za-z]{8,}")  # "conversation", "message": random letters and digits rarely make one so long
_SWITCH = re.compile(r"[0-9](?=[A-Za-z])|[A-Za-z](?=[0-9])")
_SAID = ("role", "content", "tool_calls", "tool_call_id")


def is_unique(message_id: str) -> bool:
    """True for an id that no other conversation has: a UUID, or a long run of letters and digits in no order."""
    if _UUID.search(message_id):
        return True
    return any(not _WORD.search(run) and len(_SWITCH.findall(run)) > 1 for run in _RANDOM.findall(message_id))


def unique(said: Sequence[Message]) -> list[Message]:
    """``said`` with ids that are unique everywhere where it has ids; the messages given are not changed."""
    made: list[Message] = []
    seen: set[str] = set()
    previous = ""
    for message in said:
        if messages.has_id(message) and (message["id"] in seen or not is_unique(message["id"])):
            own = message["id"]
            chained = digest([previous, own, *(message.get(key) for key in _SAID)])
            message = {**message, "id": f"ch_{chained}", "source_id": own}
        previous = messages.next_id(previous, message)
        seen.add(previous)
        made.append(message)
    return made


def known_by(said: Sequence[Message], *, keeps_as_is: bool) -> list[str]:
    """What the messages of an imported conversation are known by when it is imported again.

    Their ids, where the importer made them of the source's own unique names, because what such a message says may
    still grow; else their identities, with the ids that ``unique`` gives, so that sessions imported before it did are
    known again too.
    """
    return messages.identities(unique(said)) if keeps_as_is else messages.ids(said)
