"""A finished file gets its name, and takes nobody's place."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from sessions_lib.errors import StorageError
from sessions_lib.store.folder import disk


def no_links(*_: Any, **__: Any) -> None:
    raise OSError(errno.EPERM, "Operation not permitted")


@pytest.mark.parametrize("has_links", [True, False])
def test_a_finished_file_never_replaces_another(
    tmp_path: Path, has_links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_links:
        monkeypatch.setattr(os, "link", no_links)
    whole, taken, free = tmp_path / ".whole", tmp_path / "taken", tmp_path / "free"
    whole.write_text("new")
    taken.write_text("old")

    with pytest.raises(StorageError, match="taken"):
        disk.put_in_place(whole, taken)
    disk.put_in_place(whole, free)

    assert (taken.read_text(), free.read_text(), whole.exists()) == ("old", "new", False)
