"""The pictures of a ChatGPT export: found beside its conversations, in the same zip or folder, and made message parts.

A conversation only holds pointers (``file-service://file-AbC``, ``sediment://file_0a1``). The files are named after the
pointer's id: ``file-AbC-photo.png``, ``dalle-generations/file-AbC-….webp``, since 2026 ``file-AbC.dat``; what they are,
their first bytes tell.

Does not read anything but pictures, and none without a pointer to it.
"""

from __future__ import annotations

import base64
import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from sessions_lib.importers import zips
from sessions_lib.importers.imported import ImportReport
from sessions_lib.importers.source import Source
from sessions_lib.messages import content

_ID = re.compile(r"file[-_][A-Za-z0-9]+")
_KINDS = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))
_LARGEST = 20_000_000  # bytes; providers take no larger pictures either
_NAMED = 3  # missing pictures named in the report; the rest is counted


class Assets:
    """The pictures that belong to ``source``, read when they are asked for; closed by ``with``."""

    def __init__(self, source: Source, report: ImportReport) -> None:
        self._source, self._report = source, report
        self._places: dict[str, str] | None = None
        self._archive: zipfile.ZipFile | None = None
        self._missing: dict[str, str] = {}

    def __enter__(self) -> Assets:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._archive is not None:
            self._archive.close()
        if self._missing:
            named = ", ".join(list(self._missing)[:_NAMED])
            more = f" and {len(self._missing) - _NAMED} more" if len(self._missing) > _NAMED else ""
            self._report.skipped["picture that stays a pointer"] += len(self._missing)
            self._report.warn(f"pictures are pointers still, {next(iter(self._missing.values()))}: {named}{more}")

    def picture(self, part: Mapping[str, Any]) -> dict[str, Any] | None:
        """The picture that ``part`` points to as a part with a data URL; ``None`` if it cannot be had."""
        pointer = content.as_text(part.get("asset_pointer"))
        found = _ID.findall(pointer)
        if not found:
            return None
        asset = found[-1]
        try:
            raw = self._read(asset)
        except zips.ERRORS as error:
            self._missing.setdefault(asset, f"their files cannot be read ({error})")
            return None
        kind = next((kind for start, kind in _KINDS if raw and raw.startswith(start)), None)
        if kind is None and raw and raw[:4] == b"RIFF" and raw[8:12] == b"WEBP":
            kind = "image/webp"
        if raw is None or kind is None:
            self._missing.setdefault(asset, "no such picture is beside the conversations")
            return None
        url = f"data:{kind};base64,{base64.b64encode(raw).decode()}"
        return {"type": "image_url", "image_url": {"url": url}, "asset_pointer": pointer}

    def _read(self, asset: str) -> bytes | None:
        if self._places is None:
            self._places = dict(reversed(list(self._found())))
        place = self._places.get(asset)
        if place is None:
            return None
        if self._archive is None:
            path = Path(place)
            return path.read_bytes() if path.stat().st_size <= _LARGEST else None
        return zips.read(self._archive, place, _LARGEST)

    def _found(self) -> Iterator[tuple[str, str]]:
        """The ids of the files beside the conversations, and where they are."""
        if self._source.member is not None:
            self._archive = zipfile.ZipFile(self._source.path)
            names: Iterator[str] = iter(self._archive.namelist())
        else:
            names = _beside(self._source.path.parent)
        for name in names:
            found = _ID.match(name.replace(os.sep, "/").rsplit("/", 1)[-1])
            if found:
                yield found.group(), name


def _beside(folder: Path) -> Iterator[str]:
    """The files of ``folder`` and of the folders in it, no deeper: an export may lie among a person's downloads."""
    with os.scandir(folder) as entries:
        listed = sorted(entries, key=lambda entry: entry.name)
    for entry in listed:
        if entry.is_file(follow_symlinks=False):
            yield entry.path
        elif entry.is_dir(follow_symlinks=False):
            try:
                with os.scandir(entry.path) as inside:
                    yield from (one.path for one in inside if one.is_file(follow_symlinks=False))
            except OSError:  # a folder that is not ours to look into holds no pictures of ours
                continue
