"""What the metadata of an imported session says: where it came from, and what recognises it again.

``imported_from`` holds the tool, the file with its size and time, the conversation's key, the first message's id and
the version of what importers make of a source.

Does not write anything.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sessions_lib import messages, names, times
from sessions_lib.errors import SessionError
from sessions_lib.importers.belonging import files_of
from sessions_lib.importers.imported import Imported
from sessions_lib.importers.readers import label_of
from sessions_lib.importers.source import Source
from sessions_lib.messages.content import Message
from sessions_lib.redaction import ids
from sessions_lib.store import records, tagging

VERSION = 2  # of what importers make of a source; a higher one reads unchanged files again


def stamp_of(source: Source) -> tuple[int, int] | None:
    """Size and newest time of the files that a source is made of; ``None`` if it is gone."""
    try:
        found = [os.stat(path) for path in files_of(source)]
    except OSError:
        return None
    return sum(state.st_size for state in found), max(state.st_mtime_ns for state in found)


def file_of(origin: Mapping[str, Any]) -> tuple[Any, ...]:
    """The file that ``origin`` (an ``imported_from``) names as it was then: ``file_now`` if it has not changed."""
    return str(origin.get("path")), origin.get("size"), origin.get("modified"), origin.get("version_of_import")


def file_now(source: Source) -> tuple[Any, ...] | None:
    """The source's file as it is now; ``None`` if it is gone."""
    stamp = stamp_of(source)
    return None if stamp is None else (str(source.label.absolute()), *stamp, VERSION)


def origin_of(imported: Imported, source: Source, format: str) -> dict[str, Any]:
    """``imported_from`` for the session made of ``imported``."""
    origin: dict[str, Any] = {
        "tool": label_of(format),
        "format": format,
        "path": str(source.label.absolute()),
        "key": imported.key,
        "conversation": imported.conversation or imported.key,
        "messages": len(imported.messages),
        "at": times.now(),
        "version_of_import": VERSION,
        **imported.source,
    }
    if not imported.keeps_as_is and imported.messages:
        origin["first"] = imported.messages[0]["id"]
    stamp = stamp_of(source)
    if stamp is not None:
        origin["size"], origin["modified"] = stamp
    return origin


def imported_now(meta: Mapping[str, Any], source: Source, of: int, *, has_grown: bool = False) -> Mapping[str, Any]:
    """``meta`` with ``source`` as it is now, if the session came from there, or has grown from it."""
    origin, stamp, path = meta.get("imported_from"), stamp_of(source), str(source.label.absolute())
    if stamp is None or not isinstance(origin, dict) or not (has_grown or path == origin.get("path")):
        return meta
    size, modified = stamp
    now = {"path": path, "size": size, "modified": modified, "of": of, "version_of_import": VERSION}
    return {**meta, "imported_from": {**origin, **now}}


def forked_from(parent: tuple[str, int], said: Sequence[Message]) -> dict[str, Any]:
    """``forked_from`` for a session that shares its first messages with ``parent``: the id, and how many."""
    session, shared = parent
    message_id = messages.last_id(said[:shared]) if shared else None
    return {"session": session, "messages": shared, "message_id": message_id}


def tags_of(tags: Iterable[str]) -> list[str]:
    """Those of ``tags`` that can be tags here, each once."""
    kept: list[str] = []
    for tag in tags:
        try:
            kept = tagging.with_tag(kept, tag)
        except SessionError:
            continue
    return kept


def created_of(imported: Imported) -> dict[str, str]:
    """``created`` where the conversation's metadata has none: the source's word, else its first message's time."""
    if records.Metadata(imported.meta).created is not None:
        return {}
    first = imported.created or next(
        (moment for message in imported.messages if (moment := times.parse(message.get("timestamp")))), None
    )
    return {"created": times.iso(first)} if first else {}


def base_id(imported: Imported, title: str | None) -> str:
    """What the session's id is made of: its own id where the source is of our kind, else its title without secrets."""
    own = imported.source.get("id")
    if imported.key.startswith(("forkbook:", "astorlm:")) and names.is_id(str(own)):
        return str(own)
    prompt = messages.first_prompt(imported.messages)
    said = title or names.title_from(prompt)
    return ids.made_of(said, prompt[:4000])[:64].rstrip("-._") if said else names.random_id()
