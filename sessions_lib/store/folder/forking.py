"""The copy that a fork starts as: the bytes of the prefix under a new id.

It is whole before the id is claimed, under a hidden name: a process that is killed while it copies leaves no half a
fork.

Does not know where a fork is allowed.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Any

from sessions_lib.store import forks
from sessions_lib.store.folder import disk, metadata
from sessions_lib.store.folder.folder import SUFFIX, claim


def copy(file: Path, size: int, new_id: str | None, meta: dict[str, Any], *, number_title: bool, then: bytes) -> str:
    """Copy the first ``size`` bytes of ``file`` as a new session and return its id, made of the parent's without one.

    ``then`` are the lines behind them.

    ``SessionExists`` if ``new_id`` is taken, ``FileNotFoundError`` if ``file`` is gone. With ``number_title`` a fork
    called as one of its siblings gets a number.
    """
    base = forks.base_id(file.name.removesuffix(SUFFIX), meta)
    copied = disk.sibling(file)
    try:
        if size:
            disk.copy_prefix(file, copied, size)
        if then:
            disk.append(copied, then, create=not size)
        named = partial(_numbered, file.parent, base, meta["title"]) if number_title else None
        child = claim(file.parent, new_id, base, meta, title=named)
        if size or then:
            disk.put_in_place(copied, file.with_name(child + SUFFIX))
    finally:
        copied.unlink(missing_ok=True)
    return child


def _numbered(folder: Path, base: str, title: str, taken: Collection[str]) -> str:
    """``title``, with a number if a session whose id is made of ``base`` is called so already."""
    siblings = [base + one[len(base) :] for one in taken if one.startswith(base.lower())]
    return forks.numbered(title, {metadata.read(folder / (one + metadata.SUFFIX)).title for one in siblings})
