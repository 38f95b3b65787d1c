"""What is wrong with a session's files, and a file of messages written anew without it.

A mended file is written beside the old one and renamed into place; the old one goes to ``.trash`` as it was. No byte of
a good line changes; a second repair finds nothing to do.

Does not lock, and does not mend metadata.
"""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

from sessions_lib.errors import SessionError, StorageError
from sessions_lib.messages import encoding
from sessions_lib.messages.content import Message
from sessions_lib.store import checks
from sessions_lib.store.folder import disk, jsonl, metadata, trash
from sessions_lib.store.folder.folder import SUFFIX
from sessions_lib.store.records import Fault, as_told

_BETWEEN = b" \t\r\n\0\xef\xbb\xbf"  # blanks, NUL bytes and byte-order marks, as ``damage`` passes over them


def faults(folder: Path, session_id: str, *, is_running: bool) -> list[Fault]:
    """Every fault of the session's files, messages first. Any bytes at all are read.

    While somebody writes the session, its unfinished last line and its unanswered last calls are no faults.
    """
    file, meta_file = folder / (session_id + SUFFIX), folder / (session_id + metadata.SUFFIX)
    try:
        lines = jsonl.read(file)
    except FileNotFoundError:
        lines = jsonl.Lines()
    except (OSError, SessionError) as error:
        return [Fault(session_id, file.name, None, "unreadable", str(getattr(error, "strerror", None) or error))]
    found = [
        Fault(session_id, file.name, damage.line, damage.kind, damage.reason)
        for damage in [*as_told(lines.damaged), *lines.glued]
        if not (is_running and damage.kind == "torn")
    ]
    is_there, meta = os.path.lexists(meta_file), metadata.read(meta_file)
    is_open = is_running or meta.waits
    found += checks.faults_of(session_id, file.name, lines.messages, lines.line_numbers, is_running=is_open)
    return sorted(found, key=lambda fault: fault.line or 0) + checks.metadata_faults(
        session_id, meta, lines.messages, is_there=is_there
    )


def rewrite(folder: Path, session_id: str) -> None:
    """Put the mended messages in place of the session's file, which goes to the trash."""
    file = folder / (session_id + SUFFIX)
    content = mended(file)
    try:
        trash.put(folder, session_id, "repaired", [file], keep=True)
        disk.replace(file, content)
    except OSError as error:
        raise StorageError(file, f"cannot be repaired ({error.strerror or error})") from error


def mended(file: Path) -> bytes:
    """The content of ``file`` as a repair would write it; nothing is written."""
    raw = file.read_bytes()
    whole: list[Message] = []
    pieces: list[bytes] = []  # the bytes of message i, newline included, with what stands before it
    before, position, is_utf16 = b"", 0, False
    for line in jsonl.iterate(file):
        gap = raw[position : line.start]  # blank lines are no fault and stay
        position = line.end
        own = raw[line.start : line.end]
        is_utf16 = line.damage is not None and (
            line.damage.kind == "UTF-16" or (is_utf16 and line.damage.kind == "NUL")
        )
        is_deep = line.damage is not None and line.damage.kind == "too deep"
        if (is_utf16 or is_deep) and not line.records:
            before += gap + own  # to be converted as a whole, or read by another program: every byte of it stays
            continue
        if line.damage is None:
            chunks = [own if own.endswith(b"\n") else own + b"\n"]
        elif line.damage.kind == "glued":
            bounds = [line.start, *line.ends]
            parts = [raw[a:b].strip(_BETWEEN) for a, b in pairwise(bounds)]
            chunks = [_alone(part, one) + b"\n" for part, one in zip(parts, line.records, strict=True)]
        else:
            chunks = [encoding.encode(record) + b"\n" for record in line.records]
        before += gap
        for record, chunk in zip(line.records, chunks, strict=True):
            whole.append(record)
            pieces.append(before + chunk)
            before = b""
    for index, results in checks.missing_results(whole).items():
        pieces[index] += encoding.encode_lines(results)
    return b"".join(pieces) + before + raw[position:]


def _alone(part: bytes, record: Message) -> bytes:
    """The bytes of ``record`` on a line of its own: ``part`` as it is, unless something else stands in it."""
    read = jsonl.parse_line(part, 1, 0)
    is_clean = read is not None and read.damage is None and len(read.records) == 1
    return part if is_clean else encoding.encode(record)
