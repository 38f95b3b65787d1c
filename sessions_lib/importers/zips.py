"""Zips that a person gives: listed and read within bounds, whatever is in them.

A zip may be cut off, damaged, or made to fill the memory: three megabytes of it unpack to three gigabytes.

Does not unpack anything to disk.
"""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from functools import lru_cache
from pathlib import Path

from sessions_lib.messages.content import size_text

# What a damaged or unusual zip can raise, from its list to its last byte.
ERRORS = (
    *(OSError, EOFError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(RuntimeError, NotImplementedError, KeyError, IndexError, ValueError, OverflowError),
)
MAX_BYTES = 512_000_000  # of one file, unpacked
_HARMLESS_BYTES = 32_000_000
_MAX_RATIO = 64  # text is packed to a tenth, logs that repeat themselves to a thirtieth


class TooLarge(ValueError):
    """A file in a zip that unpacks to more than is read; the text says how much."""


def is_zip(path: Path) -> bool:
    """True for a regular file that ends as zips do; false for what cannot be read."""
    try:
        return path.is_file() and zipfile.is_zipfile(path)
    except ERRORS:
        return False


def names(path: Path) -> list[str]:
    """The names of the files in the zip ``path``; one of ``ERRORS`` if it cannot be listed."""
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


def opened(path: Path) -> zipfile.ZipFile:
    """The zip ``path``, listed once however many of its files are read; one of ``ERRORS`` if it cannot be."""
    state = path.stat()
    return _opened(path, state.st_size, state.st_mtime_ns, state.st_ino)


@lru_cache(maxsize=1)
def _opened(path: Path, *state: int) -> zipfile.ZipFile:
    return zipfile.ZipFile(path)


def read(archive: zipfile.ZipFile, member: str, most: int = MAX_BYTES) -> bytes:
    """The bytes of ``member``; ``TooLarge`` if there are more than ``most``, else one of ``ERRORS``."""
    info = archive.getinfo(member)
    if info.file_size > most:
        raise TooLarge(f"it unpacks to {size_text(info.file_size)}, more than the {size_text(most)} that are read")
    if info.file_size > max(_HARMLESS_BYTES, _MAX_RATIO * info.compress_size):
        raise TooLarge(f"{size_text(info.compress_size)} in it unpack to {size_text(info.file_size)}")
    return archive.read(info)
