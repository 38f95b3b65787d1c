"""What Claude Code sessions cost, from the heads of their lines: tokens without converting what was said.

Each answer counts once, in however many lines, branches and files it stands: the sums of tokens are those that the
folder has after importing the files.

Does not import.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from sessions_lib.errors import SessionError
from sessions_lib.importers.claude.blocks import output_tokens
from sessions_lib.importers.imported import chat_usage
from sessions_lib.messages import encoding, usage
from sessions_lib.store.folder import disk, jsonl


class _Told(msgspec.Struct, gc=False):
    id: Any = None
    model: Any = None
    usage: Any = None


class _Record(msgspec.Struct, gc=False):
    type: Any = None
    uuid: Any = None
    isApiErrorMessage: Any = None  # as the files spell it
    message: _Told | None = None


_decoder = msgspec.json.Decoder(_Record)


def totals(paths: Iterable[Path]) -> usage.Totals:
    """The sums over the answers of models in the JSONL files ``paths``; a file that cannot be read has none."""
    found: dict[str, dict[str, Any] | None] = {}
    with encoding.without_gc():
        for path in paths:
            try:
                for record in _records(path):
                    _take(found, record)
            except (OSError, SessionError):
                continue
        return usage.total({"role": "assistant", "usage": told and chat_usage(told)} for told in found.values())


def _take(found: dict[str, dict[str, Any] | None], record: _Record) -> None:
    told = record.message
    if record.type != "assistant" or told is None or record.isApiErrorMessage or told.model == "<synthetic>":
        return
    key = told.id if isinstance(told.id, str) and told.id else f"uuid {record.uuid}"
    before = found.get(key)
    if not isinstance(told.usage, dict):
        found.setdefault(key, None)
    elif before is None or output_tokens(told.usage) >= output_tokens(before):
        found[key] = told.usage


def _records(path: Path) -> Iterator[_Record]:
    descriptor = disk.open_to_read(path)
    try:
        for _, block in jsonl.raw_blocks(descriptor, 0):
            try:
                if not block.isascii():
                    block.decode()  # texts that are passed over are not checked by the decoder
                records = _decoder.decode_lines(block)
            except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError, RecursionError):
                records = list(_one_by_one(block))
            yield from records
    finally:
        os.close(descriptor)


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
            yield _Record(record.get("type"), record.get("uuid"), record.get("isApiErrorMessage"), kept)
