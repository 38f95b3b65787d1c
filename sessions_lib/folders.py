"""A folder of sessions: which ids are taken, how a new one is claimed, who may look inside.

An id is claimed by making ``ID.meta.json`` where there is none: of two who want one id, one gets it.

Does not read sessions.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sessions_lib import disk, metadata, names
from sessions_lib.errors import SessionExists, StorageError

SUFFIX = ".jsonl"


def claim(folder: Path, wanted: str | None, base: str, meta: Mapping[str, Any], *, number_title: bool = False) -> str:
    """Make ``ID.meta.json`` for a new session and return its id: exactly ``wanted``, else one made of ``base``.

    ``SessionExists`` if ``wanted`` belongs to a session of ``folder``, upper and lower case alike. ``number_title``
    gives a title the number that made the id unique.
    """
    make_folder(folder)
    while True:
        taken = ids_in(folder, lower=True)
        if wanted is not None and names.check_id(wanted).lower() in taken:
            raise SessionExists(wanted)
        new_id = wanted or names.unique_id(base, taken)
        values = {"id": new_id, **meta}
        if number_title and new_id != (wanted or base):
            values["title"] = f"{meta['title']} ({new_id.rsplit('-', 1)[-1]})"
        try:
            disk.write_new(folder / (new_id + metadata.SUFFIX), metadata.encode(values))
        except FileExistsError as error:
            if wanted is not None:
                raise SessionExists(wanted) from error
            continue
        return new_id


def ids_in(folder: Path, *, lower: bool = False) -> set[str]:
    """The ids that have a file in ``folder``."""
    try:
        with os.scandir(folder) as entries:
            found = {
                entry.name.removesuffix(suffix)
                for entry in entries
                for suffix in (SUFFIX, metadata.SUFFIX)
                if entry.name.endswith(suffix)
            }
    except FileNotFoundError:
        return set()
    except OSError as error:
        raise StorageError(folder, f"cannot be read ({error.strerror or error})") from error
    return {name.lower() if lower else name for name in found if names.is_id(name)}


def make_folder(folder: Path) -> None:
    """Make ``folder`` for its owner alone (0700); one that is there and empty is closed to others too."""
    try:
        if not folder.is_dir():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_mode & 0o077 and not any(os.scandir(folder)):
            folder.chmod(0o700)
    except OSError as error:
        raise StorageError(folder, f"cannot be used as the folder of sessions ({error.strerror or error})") from error
