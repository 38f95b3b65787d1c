"""The files to import in what a person names: files as they are, what folders and zips hold of JSON and databases.

Every path gives something: what is no regular file, cannot be read or holds nothing to import is refused by its name,
and the others go on. A device or a pipe is never opened.

Does not read a file.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sessions_lib.errors import ImportRefused
from sessions_lib.importers import zips
from sessions_lib.importers.belonging import is_storage
from sessions_lib.importers.source import Source

_EXTENSIONS = (".jsonl", ".json", ".ndjson", ".db", ".sqlite")
_SPECIAL = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a disk"),
)


@dataclass(frozen=True, slots=True)
class Refused:
    """What is no file to import, and why; ``found_in`` is what a person named, if that is another path."""

    error: ImportRefused
    found_in: Path | None = None


def find(paths: Iterable[Path]) -> Iterator[Source | Refused]:
    """The files to import in ``paths``, in order.

    A path that is not there, or a folder or zip with nothing to import in it, is a ``Refused`` among them.
    Metadata beside a session (``.meta.json``), hidden folders inside a folder and symbolic links in it are left out.
    """
    for path in paths:
        try:
            path = path.expanduser()
            refusal = _refusal(path)
        except RuntimeError:
            refusal = "there is no user of that name here"
        if refusal:
            yield Refused(ImportRefused(path, refusal))
        elif path.is_dir():
            yield from _in_folder(path)
        elif zips.is_zip(path):
            yield from _in_zip(path, None)
        else:
            yield Source(path)


def _refusal(path: Path) -> str:
    """Why ``path`` is not even looked into; ``""`` for a folder or a regular file."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "there is no such file or folder"
    except (OSError, ValueError) as error:
        return f"it cannot be looked at ({getattr(error, 'strerror', None) or error})"
    if stat.S_ISDIR(mode) or stat.S_ISREG(mode):
        return ""
    kind = next((kind for is_kind, kind in _SPECIAL if is_kind(mode)), "no file")
    return f"{kind}, which is never read: only regular files are"


def _in_folder(folder: Path) -> Iterator[Source | Refused]:
    found = False
    for path, refusal in _walk(folder):
        if refusal:
            found = True
            yield Refused(ImportRefused(path, refusal), folder)
        elif path.suffix.lower() == ".zip":
            found = True
            if zips.is_zip(path):
                yield from _in_zip(path, folder)
            else:
                yield Refused(ImportRefused(path, "a zip that is damaged, or none"), folder)
        elif _is_wanted(path.name):
            found = True
            yield Source(path, found_in=folder)
    if not found:
        yield Refused(ImportRefused(folder, "a folder without a .jsonl, .json or .zip file"))


def _walk(folder: Path) -> Iterator[tuple[Path, str]]:
    """Everything in ``folder`` that is no link, in order, and why it is not looked into if it is not."""
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        yield folder, f"a folder that cannot be read ({error.strerror or error})"
        return
    parts = {path.name for path in entries if path.is_dir()}
    for path in entries:
        if path.is_symlink() or (is_storage(parts) and path.is_dir() and path.name not in ("session", "info")):
            continue
        if path.is_dir():
            if not path.name.startswith("."):
                yield from _walk(path)
        elif refusal := _refusal(path):
            if _is_wanted(path.name) or path.suffix.lower() == ".zip":
                yield path, refusal
        else:
            yield path, ""


def _is_wanted(name: str) -> bool:
    lower = name.lower()
    return lower.endswith(_EXTENSIONS) and not lower.endswith(".meta.json") and not lower.startswith(".")


def _in_zip(path: Path, named: Path | None) -> Iterator[Source | Refused]:
    try:
        members = zips.names(path)
    except zips.ERRORS as error:
        yield Refused(ImportRefused(path, f"a zip that cannot be read ({error})"), named)
        return
    wanted = [m for m in members if _is_wanted(m.rsplit("/", 1)[-1]) and not m.startswith("__MACOSX/")]
    if not wanted:
        yield Refused(ImportRefused(path, "a zip without a .jsonl or .json file"), named)
    for member in wanted:
        yield Source(path, member, found_in=named or path)
