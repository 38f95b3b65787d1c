"""Tags: how one is written, which two are the same, and the tags of sessions.

Does not know where sessions are kept, and changes nothing that it is given.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sessions_lib.errors import SessionError
from sessions_lib.messages import clean
from sessions_lib.store.records import Metadata, SessionInfo

MAX_TAG = 100


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


def changed_tags(meta: Mapping[str, Any], add: Iterable[str], remove: Iterable[str]) -> list[str]:
    """The tags in ``meta`` without those to ``remove``, and then with those to ``add``."""
    tags = Metadata(meta).tags
    for tag in remove:
        tags = without_tag(tags, tag)
    for tag in add:
        tags = with_tag(tags, tag)
    return tags


def tags_of(meta: Mapping[str, Any]) -> tuple[str, ...]:
    """The tags in ``meta``, each once, upper and lower case alike."""
    return tuple({tag_key(tag): tag for tag in reversed(Metadata(meta).tags)}.values())[::-1]


def tag_counts(rows: Sequence[SessionInfo]) -> dict[str, int]:
    """How many of ``rows`` wear each tag, the most worn first; tags that differ by case only are one."""
    spelled: dict[str, set[str]] = {}
    counts: dict[str, int] = {}
    for row in rows:
        for tag in row.tags:
            spelled.setdefault(tag_key(tag), set()).add(tag)
            counts[tag_key(tag)] = counts.get(tag_key(tag), 0) + 1
    return {min(spelled[key]): counts[key] for key in sorted(counts, key=lambda key: (-counts[key], key))}
