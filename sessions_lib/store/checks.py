"""What is wrong with a session's files, and mending what can be mended.

``check`` reads and reports. ``repair`` writes a new file beside the old one and renames it into place; the old one goes
to ``.trash`` as it was. No byte of a good line changes; a second repair finds nothing to do.

| kind | what repair does |
|---|---|
| torn, not JSON, not a message | the line is left out (messages found in it are kept) |
| glued, undecodable, NUL | one clean line for each message in it |
| unanswered call | an error result that says the outcome is unknown |
| metadata missing, metadata damaged, metadata contradicts | written anew from what is known |
| fork point | the number of copied messages is corrected; a lineage that no message bears out is taken away |
| orphan result, duplicate result, bad arguments, duplicate id | nothing: whole lines; requests do without them |
| UTF-16 | nothing: ``iconv`` converts the file and loses none of it |
| too deep | nothing: whole JSON, which goes deeper than can be read |

Does not touch a session that is being written, and does not judge what was said.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from sessions_lib import messages, names, times
from sessions_lib.errors import SessionError, StorageError
from sessions_lib.messages import encoding, tool_calls
from sessions_lib.messages.content import Message
from sessions_lib.store import records
from sessions_lib.store.folder import disk, jsonl, locks, metadata, trash
from sessions_lib.store.folder.folder import SUFFIX
from sessions_lib.store.records import as_told
from sessions_lib.store.session import Session

_BETWEEN = b" \t\r\n\0\xef\xbb\xbf"  # blanks, NUL bytes and byte-order marks, as ``line`` passes over them
LEFT_ALONE = (
    "UTF-16",
    "too deep",
    "orphan result",
    "duplicate result",
    "bad arguments",
    "duplicate id",
    "newer version",
    "unreadable",
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong: session, file name, line (from 1, ``None`` for a whole file), kind, what it means."""

    session: str
    file: str
    line: int | None
    kind: str
    text: str

    @property
    def can_be_repaired(self) -> bool:
        """True if ``repair`` does something about it."""
        return self.kind not in LEFT_ALONE

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{where}: {self.kind}: {self.text}"


def check(folder: Path, session_id: str) -> list[Fault]:
    """Every fault of the session, messages first; ``SessionNotFound`` if there is none. Any bytes at all are read.

    While somebody writes the session, its unfinished last line and its unanswered last calls are no faults.
    """
    session = Session.open(folder, session_id)
    file = folder / (session_id + SUFFIX)
    try:
        lines = jsonl.read(file)
    except FileNotFoundError:
        lines = jsonl.Lines()
    except (OSError, SessionError) as error:
        return [Fault(session_id, file.name, None, "unreadable", str(getattr(error, "strerror", None) or error))]
    is_running = locks.holder(folder, session_id) is not None
    found = _line_faults(session.id, file.name, lines, is_running)
    found += _call_faults(session.id, file.name, lines, is_running)
    found += _id_faults(session.id, file.name, lines)
    return sorted(found, key=lambda fault: fault.line or 0) + _metadata_faults(folder, session.id, lines.messages)


def _line_faults(session: str, file: str, lines: jsonl.Lines, is_running: bool) -> list[Fault]:
    return [
        Fault(session, file, damage.line, damage.kind, damage.reason)
        for damage in [*as_told(lines.damaged), *lines.glued]
        if not (is_running and damage.kind == "torn")
    ]


def _call_faults(session: str, file: str, lines: jsonl.Lines, is_running: bool) -> list[Fault]:
    pairing = tool_calls.pair(lines.messages)
    last = max((step.call.message for step in pairing.steps), default=-1)
    found = []
    for step in pairing.steps:
        line = lines.line_numbers[step.call.message]
        if step.result is None and not (is_running and step.call.message == last):
            text = f"{tool_calls.label(step.call)} has no result; requests say that its outcome is unknown"
            found.append(Fault(session, file, line, "unanswered call", text))
        if tool_calls.arguments(step.call) is None:
            text = f"the arguments of {step.call.name or 'a tool'} are no JSON object; requests send {{}}"
            found.append(Fault(session, file, line, "bad arguments", text))
    for index in pairing.orphans:
        text = "a result without a call before it; it is shown, and left out of requests"
        found.append(Fault(session, file, lines.line_numbers[index], "orphan result", text))
    for index in pairing.duplicates:
        text = "a second result for a call that has one; it is shown, and left out of requests"
        found.append(Fault(session, file, lines.line_numbers[index], "duplicate result", text))
    return found


def _id_faults(session: str, file: str, lines: jsonl.Lines) -> list[Fault]:
    seen: set[str] = set()
    found = []
    for index, identity in enumerate(messages.identities(lines.messages)):
        message = lines.messages[index]
        if not messages.has_id(message):
            continue
        if message["id"] in seen:
            told = "it is counted once" if identity in seen else "it says something else there: both are counted"
            text = f"the id {names.one_line(message['id'], 40)} stands on an earlier line; {told}"
            found.append(Fault(session, file, lines.line_numbers[index], "duplicate id", text))
        seen |= {message["id"], identity}
    return found


def _metadata_faults(folder: Path, session: str, found: Sequence[Message]) -> list[Fault]:
    path = folder / (session + metadata.SUFFIX)
    meta = metadata.read(path)

    def fault(kind: str, text: str) -> list[Fault]:
        return [Fault(session, path.name, None, kind, text)]

    if meta.fault:
        return fault("metadata damaged", f"it {meta.fault}; title and tags are unknown, messages are not")
    if not os.path.lexists(path):
        return fault("metadata missing", "title and tags are unknown; the first prompt is shown as title")
    faults: list[Fault] = []
    version = meta.values.get("version")
    if isinstance(version, int | float) and version > metadata.VERSION:
        return fault("newer version", f"written by a newer Forkbook (version {version}); it is read, never rewritten")
    if contradictions := _contradictions(session, meta.values, len(found)):
        faults += fault("metadata contradicts", "; ".join(contradictions))
    if meta.parent is not None and (right := _fork_point(meta, found)) != meta.inherited:
        what = f"message {right} is the copied one" if right else "the copied message is not in this session"
        faults += fault("fork point", f"says {meta.inherited} messages were copied from {meta.parent}, but {what}")
    return faults


def _contradictions(session: str, values: Any, count: int) -> list[str]:
    found = []
    if values.get("id") not in (None, session):
        found.append(f"it says id {names.one_line(str(values['id']), 40)!r}")
    if isinstance(values.get("message_count"), int) and values["message_count"] != count:
        found.append(f"it says {values['message_count']} messages, the file has {count}")
    return found


def _fork_point(meta: records.Metadata, found: Sequence[Message]) -> int:
    """How many messages were really copied: up to the one metadata names, else as many as it says and there are."""
    forked_from = meta.values.get("forked_from") or {}
    named = forked_from.get("message_id")
    if not isinstance(named, str) or meta.inherited == 0:
        return min(meta.inherited, len(found))
    ids = messages.ids(found)
    if meta.inherited <= len(ids) and ids[meta.inherited - 1] == named:
        return meta.inherited
    return ids.index(named) + 1 if named in ids else 0


def repair(folder: Path, session_id: str, *, write: bool = False) -> list[Fault]:
    """The faults that a repair mends; with ``write`` they are mended. ``SessionLocked`` while it is being written."""
    if not write:
        return [fault for fault in check(folder, session_id) if fault.can_be_repaired]
    Session.open(folder, session_id)
    with locks.Lock(locks.lock_path(folder, session_id), session_id):
        faults = _faults_under_lock(folder, session_id)
        in_file = [fault for fault in faults if fault.file.endswith(SUFFIX)]
        if in_file:
            _rewrite(folder, session_id)
    if len(in_file) < len(faults):
        _mend_metadata(folder, session_id)
    return faults


def _faults_under_lock(folder: Path, session_id: str) -> list[Fault]:
    file = folder / (session_id + SUFFIX)
    lines = jsonl.read(file) if file.exists() else jsonl.Lines()
    found = _line_faults(session_id, file.name, lines, False) + _call_faults(session_id, file.name, lines, False)
    found += _metadata_faults(folder, session_id, lines.messages)
    return [fault for fault in found if fault.can_be_repaired]


def _rewrite(folder: Path, session_id: str) -> None:
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
    for index, results in _missing_results(whole).items():
        pieces[index] += b"".join(encoding.encode(messages.stamped(result)) + b"\n" for result in results)
    return b"".join(pieces) + before + raw[position:]


def _alone(part: bytes, record: Message) -> bytes:
    """The bytes of ``record`` on a line of its own: ``part`` as it is, unless something else stands in it."""
    read = jsonl.parse_line(part, 1, 0)
    is_clean = read is not None and read.damage is None and len(read.records) == 1
    return part if is_clean else encoding.encode(record)


def _missing_results(whole: Sequence[Message]) -> dict[int, list[Message]]:
    """Error results for the unanswered calls, by the index of the message they go behind."""
    missing: dict[int, list[Message]] = {}
    for call in tool_calls.pair(whole).unanswered:
        index = call.message
        while index + 1 < len(whole) and whole[index + 1].get("role") == "tool":
            index += 1
        missing.setdefault(index, []).append(tool_calls.unknown_outcome(call))
    return missing


def _mend_metadata(folder: Path, session_id: str) -> None:
    session = Session.open(folder, session_id)
    meta = metadata.read(folder / (session_id + metadata.SUFFIX))
    changes: dict[str, Any] = {"id": session_id}
    if "message_count" in meta.values:
        changes["message_count"] = len(session.messages)
    if meta.created is None:
        first = next((moment for moment in messages.effective_times(session.messages) if moment), None)
        if first is not None or not meta.was_imported:  # an imported session may have no time at all
            changes["created"] = times.iso(first) if first else times.now()
    if meta.parent is not None:
        right = _fork_point(meta, session.messages)
        changes["forked_from"] = {**meta.values["forked_from"], "messages": right} if right else None
    session.update_meta(changes)
