"""A folder of sessions: which ids are taken, how a new one is claimed, who may look inside.

An id is claimed by making ``ID.meta.json`` where there is none: of two who want one id, one gets it. Whoever makes a
session also clears what killed writers left: hidden copies that never got their name.

Does not read sessions.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from sessions_lib import names
from sessions_lib.errors import SessionExists, StorageError
from sessions_lib.store.folder import disk, metadata

SUFFIX = ".jsonl"
_LEFT_S = 3600.0  # nobody writes one file for an hour
_UNFINISHED = re.compile(
    r"\..+(\.jsonl|\.meta\.json)\.(?P<writer>\d+)\.[0-9a-f]{8}\.tmp\Z"
)  # as ``disk.sibling`` names them


def claim(
    folder: Path,
    wanted: str | None,
    base: str,
    meta: Mapping[str, Any],
    *,
    title: Callable[[Collection[str]], str] | None = None,
) -> str:
    """Make ``ID.meta.json`` for a new session and return its id: exactly ``wanted``, else one made of ``base``.

    ``SessionExists`` if ``wanted`` belongs to a session of ``folder``, upper and lower case alike. ``title``
    makes one, given the ids of the folder in lower case.
    """
    make_folder(folder)
    clear_unfinished(folder)
    while True:
        taken = ids_in(folder, lower=True)
        if wanted is not None and names.check_id(wanted).lower() in taken:
            raise SessionExists(wanted)
        new_id = wanted or names.unique_id(base, taken)
        values = {"id": new_id, **meta}
        if title is not None:
            values["title"] = title(taken)
        try:
            disk.write_new(folder / (new_id + metadata.SUFFIX), metadata.encode(values))
        except FileExistsError as error:
            if wanted is not None:
                raise SessionExists(wanted) from error
            continue
        return new_id


def ids_in(folder: Path, *, lower: bool = False) -> set[str]:
    """The ids that have a file in ``folder``."""
    found = {
        name.removesuffix(suffix)
        for name in _names_in(folder)
        for suffix in (SUFFIX, metadata.SUFFIX)
        if name.endswith(suffix)
    }
    return {name.lower() if lower else name for name in found if names.is_id(name)}


def _names_in(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StorageError(folder, f"cannot be read ({error.strerror or error})") from error


def clear_unfinished(folder: Path, *, at_once: bool = False) -> None:
    """Delete the hidden files of writers that were killed before they gave them a name, an hour after they died.

    What they held is whole in the file that was to be replaced or copied: nothing that was said is in them alone.
    ``at_once``: also those of the last hour whose writer does not run any more on this machine.
    """
    for name in _names_in(folder):
        if name.endswith(".tmp") and (unfinished := _UNFINISHED.match(name)):
            path = folder / name
            with suppress(OSError):  # cleared by somebody else, or not ours to clear
                state = os.lstat(path)
                is_left = state.st_mtime < time.time() - _LEFT_S or (at_once and not _runs(int(unfinished["writer"])))
                if stat.S_ISREG(state.st_mode) and is_left:
                    os.unlink(path)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it runs, as another account
        return True
    return True


def files_of_others(folder: Path) -> list[str]:
    """The files of sessions in ``folder`` that other accounts can read, sorted; none if they cannot enter it."""
    found = []
    with suppress(OSError):  # not there, or not ours to look at
        if folder.stat().st_mode & 0o011:
            for entry in os.scandir(folder):
                is_session = entry.name.endswith((SUFFIX, metadata.SUFFIX)) and entry.is_file(follow_symlinks=False)
                if is_session and entry.stat(follow_symlinks=False).st_mode & 0o044:
                    found.append(entry.name)
    return sorted(found)


def make_folder(folder: Path) -> None:
    """Make ``folder``, and those above it, for their owner alone (0700); one that is there and empty is closed, too."""
    try:
        disk.make_private_folder(folder)
        if folder.stat().st_mode & 0o077 and not any(os.scandir(folder)):
            folder.chmod(0o700)
    except OSError as error:
        raise StorageError(folder, f"cannot be used as the folder of sessions ({error.strerror or error})") from error
