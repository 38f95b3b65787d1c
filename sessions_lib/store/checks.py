"""What is wrong with a session, wherever it is kept, and how it is mended.

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

Pure functions: the stores read and write. Does not judge what was said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sessions_lib import messages, names, times
from sessions_lib.messages import tool_calls
from sessions_lib.messages.content import Message
from sessions_lib.store.records import META_VERSION, Fault, Metadata


def faults_of(
    session: str, file: str, said: Sequence[Message], lines: Sequence[int], *, is_running: bool
) -> list[Fault]:
    """What is wrong with the messages ``said``, which stand on ``lines``; unanswered last calls are none in a run."""
    return [*_call_faults(session, file, said, lines, is_running=is_running), *_id_faults(session, file, said, lines)]


def _call_faults(
    session: str, file: str, said: Sequence[Message], lines: Sequence[int], *, is_running: bool
) -> list[Fault]:
    pairing = tool_calls.pair(said)
    last = max((step.call.message for step in pairing.steps), default=-1)
    found = []
    for step in pairing.steps:
        line = lines[step.call.message]
        if step.result is None and not (is_running and step.call.message == last):
            text = f"{tool_calls.label(step.call)} has no result; requests say that its outcome is unknown"
            found.append(Fault(session, file, line, "unanswered call", text))
        if tool_calls.arguments(step.call) is None:
            text = f"the arguments of {step.call.name or 'a tool'} are no JSON object; requests send {{}}"
            found.append(Fault(session, file, line, "bad arguments", text))
    for index in pairing.orphans:
        text = "a result without a call before it; it is shown, and left out of requests"
        found.append(Fault(session, file, lines[index], "orphan result", text))
    for index in pairing.duplicates:
        text = "a second result for a call that has one; it is shown, and left out of requests"
        found.append(Fault(session, file, lines[index], "duplicate result", text))
    return found


def _id_faults(session: str, file: str, said: Sequence[Message], lines: Sequence[int]) -> list[Fault]:
    seen: set[str] = set()
    found = []
    for message, identity, line in zip(said, messages.identities(said), lines, strict=True):
        if not messages.has_id(message):
            continue
        if message["id"] in seen:
            told = "it is counted once" if identity in seen else "it says something else there: both are counted"
            text = f"the id {names.one_line(message['id'], 40)} stands on an earlier line; {told}"
            found.append(Fault(session, file, line, "duplicate id", text))
        seen |= {message["id"], identity}
    return found


def metadata_faults(session: str, meta: Metadata, said: Sequence[Message], *, is_there: bool) -> list[Fault]:
    """What is wrong with the metadata of a session whose messages are ``said``."""

    def fault(kind: str, text: str) -> list[Fault]:
        return [Fault(session, meta.where, None, kind, text)]

    if meta.fault:
        return fault("metadata damaged", f"it {meta.fault}; title and tags are unknown, messages are not")
    if not is_there:
        return fault("metadata missing", "title and tags are unknown; the first prompt is shown as title")
    faults: list[Fault] = []
    version = meta.values.get("version")
    if isinstance(version, int | float) and version > META_VERSION:
        return fault("newer version", f"written by a newer Forkbook (version {version}); it is read, never rewritten")
    if contradictions := _contradictions(session, meta.values, len(said)):
        faults += fault("metadata contradicts", "; ".join(contradictions))
    if meta.parent is not None and (right := _fork_point(meta, said)) != meta.inherited:
        what = f"message {right} is the copied one" if right else "the copied message is not in this session"
        faults += fault("fork point", f"says {meta.inherited} messages were copied from {meta.parent}, but {what}")
    return faults


def _contradictions(session: str, values: Mapping[str, Any], count: int) -> list[str]:
    found = []
    if values.get("id") not in (None, session):
        found.append(f"it says id {names.one_line(str(values['id']), 40)!r}")
    if isinstance(values.get("message_count"), int) and values["message_count"] != count:
        found.append(f"it says {values['message_count']} messages, the file has {count}")
    return found


def _fork_point(meta: Metadata, said: Sequence[Message]) -> int:
    """How many messages were really copied: up to the one metadata names, else as many as it says and there are."""
    forked_from = meta.values.get("forked_from") or {}
    named = forked_from.get("message_id")
    if not isinstance(named, str) or meta.inherited == 0:
        return min(meta.inherited, len(said))
    ids = messages.ids(said)
    if meta.inherited <= len(ids) and ids[meta.inherited - 1] == named:
        return meta.inherited
    return ids.index(named) + 1 if named in ids else 0


def mended_meta(session: str, meta: Metadata, said: Sequence[Message]) -> dict[str, Any]:
    """The keys of the metadata that a repair sets; ``None`` takes one away."""
    changes: dict[str, Any] = {"id": session}
    if "message_count" in meta.values:
        changes["message_count"] = len(said)
    if meta.created is None:
        first = next((moment for moment in messages.effective_times(said) if moment), None)
        if first is not None or not meta.was_imported:  # an imported session may have no time at all
            changes["created"] = times.iso(first) if first else times.now()
    if meta.parent is not None:
        right = _fork_point(meta, said)
        changes["forked_from"] = {**meta.values["forked_from"], "messages": right} if right else None
    return changes


def missing_results(said: Sequence[Message]) -> dict[int, list[Message]]:
    """Error results for the unanswered calls, by the index of the message they go behind."""
    missing: dict[int, list[Message]] = {}
    for call in tool_calls.pair(said).unanswered:
        index = call.message
        while index + 1 < len(said) and said[index + 1].get("role") == "tool":
            index += 1
        missing.setdefault(index, []).append(messages.stamped(tool_calls.unknown_outcome(call)))
    return missing
