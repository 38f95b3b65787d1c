"""Which files belong together: a database and its log, a session of opencode and its messages in folders beside.

Does not read any of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sessions_lib.importers import zips
from sessions_lib.importers.source import Source

LOG = "-wal"  # behind a database's name: what was written last
_IN_STORAGE = {"session", "info", "message", "part"}


def files_of(source: Source) -> Iterator[Path]:
    """The files on disk that ``source`` is read from: its own first, then those that belong to it."""
    yield source.path
    if source.member is not None:
        return
    log = source.path.with_name(source.path.name + LOG)
    if log.is_file():
        yield log
    for message, parts in messages_of(source):
        yield message.path
        yield from (part.path for part in parts)


def source_of(written: Path) -> Path:
    """What is to be imported when the file ``written`` changed: itself, its database, or the storage it is in."""
    if written.name.endswith(LOG):
        return written.with_name(written.name.removesuffix(LOG))
    for folder in written.parents:
        if folder.name in _IN_STORAGE and is_storage({one.name for one in folder.parent.glob("*")}):
            return folder.parent
    return written


def is_storage(names: set[str]) -> bool:
    """True for the folder in which opencode keeps sessions apart from their messages; ``names`` are in it."""
    return {"message", "part"} <= names and not names.isdisjoint({"session", "info"})


def messages_of(source: Source) -> Iterator[tuple[Source, list[Source]]]:
    """The messages of a session in opencode's storage with their parts, in the order of their names."""
    folders = _in_zip(source) if source.member is not None else _on_disk(source)
    if folders is not None:
        yield from folders


def _on_disk(source: Source) -> Iterator[tuple[Source, list[Source]]] | None:
    session, above = source.path.stem, source.path.parent
    if above.name == "info":
        messages, parts = above.parent / "message" / session, above.parent / "part" / session
    elif above.parent.name == "session":
        messages, parts = above.parent.parent / "message" / session, above.parent.parent / "part"
    else:
        return None
    return ((Source(one), [Source(p) for p in _json_in(parts / one.stem)]) for one in _json_in(messages))


def _json_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.json") if path.is_file() and not path.is_symlink())


def _in_zip(source: Source) -> Iterator[tuple[Source, list[Source]]] | None:
    *above, kind, folder, name = ["", *(source.member or "").split("/")][-400:] if source.member else [""]
    if (source.member or "").count("/") < 2 or (kind != "session" and folder != "info"):
        return None
    session = name.rsplit(".", 1)[0]
    old = folder == "info"
    base = "/".join([*above, kind] if old else above).lstrip("/")
    base = f"{base}/" if base else ""
    try:
        names = zips.names(source.path)
    except zips.ERRORS:
        return None
    wanted = sorted(one for one in names if one.startswith(f"{base}message/{session}/") and one.endswith(".json"))
    under = f"{base}part/{session}/" if old else f"{base}part/"
    parts: dict[str, list[Source]] = {}
    for one in sorted(names):
        if one.startswith(under) and one.endswith(".json"):
            parts.setdefault(one[len(under) :].split("/")[0], []).append(Source(source.path, one))
    return ((Source(source.path, one), parts.get(one.rsplit("/", 1)[-1][:-5], [])) for one in wanted)
