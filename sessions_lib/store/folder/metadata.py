"""A session's metadata: title, tags, lineage, settings, in ``ID.meta.json`` beside the messages.

Version 1: ``{"version":1,"id","title","tags":[…],"created","forked_from":{"session","messages","message_id"},
"merged_from":[…],"imported_from":{…},"system","model","base_url","temperature","verdict"}``. Unknown keys are kept.
Small, replaced atomically, never needed to read the messages: missing, damaged or older metadata hides nothing.
A file of a newer version is read and never rewritten.

Does not lock: callers hold the metadata lock while they read, change and replace.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from sessions_lib import times
from sessions_lib.errors import NewerVersion, SessionError
from sessions_lib.messages import clean, encoding
from sessions_lib.store.folder import disk

VERSION = 1
SUFFIX = ".meta.json"
MAX_TAG = 100


@dataclass(frozen=True, slots=True)
class Metadata:
    """What ``ID.meta.json`` says; ``values`` is the object as it stands, ``fault`` why it could not be read, if so."""

    values: Mapping[str, Any] = field(default_factory=dict)
    fault: str | None = None

    @property
    def title(self) -> str | None:
        """The title a person gave, or ``None``."""
        title = self.values.get("title")
        return title if isinstance(title, str) and title.strip() else None

    @property
    def tags(self) -> list[str]:
        """The tags in the order they were added."""
        tags = self.values.get("tags")
        return [tag for tag in tags if isinstance(tag, str) and tag.strip()] if isinstance(tags, list) else []

    @property
    def created(self) -> datetime | None:
        """When the session was made; other tools' spellings are read too."""
        found = (times.parse(self.values.get(key)) for key in ("created", "created_at", "createdAt"))
        return next((moment for moment in found if moment), None)

    @property
    def parent(self) -> str | None:
        """The id of the session this one was forked from, or ``None``."""
        parent = self._forked_from.get("session")
        return parent if isinstance(parent, str) and parent else None

    @property
    def inherited(self) -> int:
        """How many messages were copied from the parent."""
        count = self._forked_from.get("messages")
        return count if isinstance(count, int) and not isinstance(count, bool) and count > 0 else 0

    @property
    def system(self) -> str | None:
        """The system prompt, or ``None``."""
        system = self.values.get("system")
        return system if isinstance(system, str) and system.strip() else None

    @property
    def _forked_from(self) -> Mapping[str, Any]:
        found = self.values.get("forked_from")
        return found if isinstance(found, Mapping) else {}


def read(path: Path) -> Metadata:
    """The metadata in ``path``; empty without a fault if there is no file, empty with one if it is no JSON object."""
    try:
        descriptor = disk.open_to_read(path)
    except FileNotFoundError:
        return Metadata()
    except (OSError, SessionError) as error:
        return Metadata(fault=f"cannot be read ({getattr(error, 'strerror', None) or error})")
    with os.fdopen(descriptor, "rb") as file:
        raw = file.read()
    try:
        values = encoding.decode(raw)
    except ValueError:
        return Metadata(fault="is not JSON, perhaps cut off")
    return Metadata(values) if isinstance(values, dict) else Metadata(fault="is JSON, but not an object")


def check_writable(path: Path, current: Metadata) -> None:
    """Refuse to rewrite a file of a newer version."""
    version = current.values.get("version")
    if isinstance(version, int | float) and version > VERSION:
        raise NewerVersion(path, version)


def encode(values: Mapping[str, Any]) -> bytes:
    """``values`` as the file holds them: indented JSON a person can read, without what is ``None``."""
    kept = {key: value for key, value in values.items() if value is not None}
    return msgspec.json.format(encoding.encode({"version": VERSION, **kept}), indent=1) + b"\n"


def clean_tag(tag: object) -> str:
    """``tag`` on one line without blanks around it; ``SessionError`` if nothing is left or it is too long."""
    if not isinstance(tag, str) or not (words := "".join(c if c.isprintable() else " " for c in clean(tag)).split()):
        raise SessionError("A tag cannot be empty. Give it a word.")
    line = " ".join(words)
    if len(line) > MAX_TAG:
        raise SessionError(f"A tag is at most {MAX_TAG} characters; this one has {len(line)}.")
    return line


def tag_key(tag: str) -> str:
    """``tag`` as tags are compared: case, blanks and the way an accent is composed make no other tag."""
    return unicodedata.normalize("NFC", " ".join(tag.split())).casefold()


def with_tag(tags: list[str], tag: str) -> list[str]:
    """``tags`` and ``tag``, unless it is there in some spelling of upper and lower case."""
    wanted = clean_tag(tag)
    return tags if any(tag_key(t) == tag_key(wanted) for t in tags) else [*tags, wanted]


def without_tag(tags: list[str], tag: str) -> list[str]:
    """``tags`` without ``tag``, upper and lower case ignored."""
    return [t for t in tags if tag_key(t) != tag_key(tag)]
