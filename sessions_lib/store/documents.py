"""Documents: the messages in a file that ``save``, an export or another program wrote as JSON or JSONL.

Does not know other tools' formats (``importers`` does) and writes nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sessions_lib import messages
from sessions_lib.errors import SessionError, StorageError
from sessions_lib.messages import encoding
from sessions_lib.messages.content import Message
from sessions_lib.store.folder import jsonl


def read(path: Path) -> tuple[list[Message], dict[str, Any]]:
    """The messages and metadata in a file that ``save``, an export or another program wrote as JSON or JSONL."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise StorageError(path, f"cannot be read ({error.strerror or error})", "Check the path.") from error
    try:
        document = encoding.decode(raw)
    except ValueError:
        document = None
    meta: dict[str, Any] = {}
    if isinstance(document, dict) and isinstance(document.get("messages"), list):
        meta = document["meta"] if isinstance(document.get("meta"), dict) else {}
        document = document["messages"]
    if isinstance(document, list):
        found = [m for m in document if messages.is_message(m)]
        damaged = len(document) - len(found)
    else:
        lines = jsonl.read(path)
        found, damaged = lines.messages, len(lines.damaged)
    if not found or damaged:
        what = f"{damaged} entries that are no messages" if damaged else "no messages"
        raise SessionError(f"{path} holds {what}; nothing was loaded. To keep what is good: forkbook import {path}")
    return found, meta
