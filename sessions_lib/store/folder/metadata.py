"""A session's metadata: title, tags, lineage, settings, in ``ID.meta.json`` beside the messages.

Version 1: ``{"version":1,"id","title","tags":[…],"created","forked_from":{"session","messages","message_id"},
"merged_from":[…],"imported_from":{…},"system","model","base_url","temperature","verdict"}``. Unknown keys are kept.
Small, replaced atomically, never needed to read the messages: missing, damaged or older metadata hides nothing.
A file of a newer version is read and never rewritten.

Does not lock: callers hold the metadata lock while they read, change and replace.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from sessions_lib.errors import NewerVersion, SessionError
from sessions_lib.messages import encoding
from sessions_lib.store.folder import disk
from sessions_lib.store.records import META_VERSION, Metadata

SUFFIX = ".meta.json"


def read(path: Path) -> Metadata:
    """The metadata in ``path``; empty without a fault if there is no file, empty with one if it is no JSON object."""
    try:
        descriptor = disk.open_to_read(path)
    except FileNotFoundError:
        return Metadata(where=path.name)
    except (OSError, SessionError) as error:
        return Metadata(fault=f"cannot be read ({getattr(error, 'strerror', None) or error})", where=path.name)
    with os.fdopen(descriptor, "rb") as file:
        raw = file.read()
    try:
        values = encoding.decode(raw)
    except ValueError:
        return Metadata(fault="is not JSON, perhaps cut off", where=path.name)
    if not isinstance(values, dict):
        return Metadata(fault="is JSON, but not an object", where=path.name)
    return Metadata(values, where=path.name)


def check_writable(path: Path, current: Metadata) -> None:
    """Refuse to rewrite a file of a newer version."""
    version = current.values.get("version")
    if isinstance(version, int | float) and version > META_VERSION:
        raise NewerVersion(path.name, version)


def encode(values: Mapping[str, Any]) -> bytes:
    """``values`` as the file holds them: indented JSON a person can read, without what is ``None``."""
    kept = {key: value for key, value in values.items() if value is not None}
    return msgspec.json.format(encoding.encode({"version": META_VERSION, **kept}), indent=1) + b"\n"
