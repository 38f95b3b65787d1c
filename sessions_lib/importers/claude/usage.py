"""What Claude Code sessions cost, from the heads of their lines: tokens without converting what was said.

Each answer counts once, in however many lines, branches and files it stands: the sums of tokens are those that the
folder has after importing the files.

Does not import.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from sessions_lib.errors import SessionError
from sessions_lib.importers.imported import chat_usage, word
from sessions_lib.messages import encoding, model_calls, usage
from sessions_lib.messages.content import Message


class _Told(msgspec.Struct, gc=False):
    id: Any = None
    model: Any = None
    usage: Any = None


class _Record(msgspec.Struct, gc=False):
    type: Any = None
    uuid: Any = None
    isApiErrorMessage: Any = None  # as the files spell it
    advisorModel: Any = None
    timestamp: Any = None
    message: _Told | None = None


@dataclass(slots=True)
class _Answer:
    """What the lines of one answer told so far."""

    model: str = ""
    advisor: str = ""
    timestamp: Any = None
    reported: dict[str, Any] | None = None

    def message(self) -> Message:
        spent = chat_usage(self.reported, self.advisor)
        return {"role": "assistant", "model": self.model, "usage": spent, "timestamp": self.timestamp}


_decoder = msgspec.json.Decoder(_Record)
_BLOCK = 1 << 20


def by_model(answered: Iterable[Message]) -> dict[str, usage.Usage]:
    """What each model took in the ``answers`` of some files, the most tokens first; an advisor's are its own."""
    taken: dict[str, list[usage.Counts]] = {}
    for answer in answered:
        for model, counts in model_calls.by_model(answer["usage"], answer["model"]):
            taken.setdefault(model, []).append(counts)
    found = {model: usage.Usage(*usage.summed(counts)) for model, counts in taken.items()}
    return dict(sorted(found.items(), key=lambda one: -(one[1].total or 0)))


def answers(paths: Iterable[Path]) -> list[Message]:
    """The answers in the JSONL files ``paths``, each once: their models, times and usage alone."""
    found: dict[str, _Answer] = {}
    with encoding.without_gc():
        for path in paths:
            try:
                for record in _records(path):
                    _take(found, record)
            except (OSError, SessionError):
                continue
        return [answer.message() for answer in found.values()]


def _take(found: dict[str, _Answer], record: _Record) -> None:
    told = record.message
    if record.type != "assistant" or told is None or record.isApiErrorMessage or told.model == "<synthetic>":
        return
    key = told.id if isinstance(told.id, str) and told.id else f"uuid {record.uuid}"
    answer = found.get(key)
    if answer is None:
        answer = found[key] = _Answer()
    answer.model = word(told.model) or answer.model
    answer.timestamp = answer.timestamp or record.timestamp
    answer.advisor = word(record.advisorModel) or answer.advisor
    if isinstance(told.usage, dict) and told.usage != answer.reported:
        answer.reported = usage.fuller(answer.reported, told.usage)


def _records(path: Path) -> Iterator[_Record]:
    if path.is_symlink() or not path.is_file():
        return
    with path.open("rb") as file:
        while block := file.read(_BLOCK) + file.readline():
            try:
                if not block.isascii():
                    block.decode()  # texts that are passed over are not checked by the decoder
                records = _decoder.decode_lines(block)
            except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError, RecursionError):
                records = list(_one_by_one(block))
            yield from records


def _one_by_one(block: bytes) -> Iterator[_Record]:
    """The sound records of a block with something odd in it."""
    for line in block.split(b"\n"):
        try:
            record = encoding.decode(line) if line.strip() else None
        except ValueError:
            continue
        told = record.get("message") if isinstance(record, dict) else None
        if isinstance(record, dict) and isinstance(told, dict):
            kept = _Told(told.get("id"), told.get("model"), told.get("usage"))
            told_apart = (record.get("isApiErrorMessage"), record.get("advisorModel"), record.get("timestamp"))
            yield _Record(record.get("type"), record.get("uuid"), *told_apart, kept)
