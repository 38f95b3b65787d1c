"""All importers, from the most particular to the most general: the first that a file looks like reads it.

The name of a file decides nothing. A new importer is one file and one entry here.

Does not convert anything.
"""

from __future__ import annotations

from pathlib import Path

from sessions_lib.importers import astorlm, pi
from sessions_lib.importers.agents import (
    agents_sdk,
    atif,
    copilot_chat,
    copilot_cli,
    gemini_cli,
    opencode,
    qwen_code,
    responses,
)
from sessions_lib.importers.chat import reader as chat
from sessions_lib.importers.chatgpt import reader as chatgpt
from sessions_lib.importers.claude import reader as claude
from sessions_lib.importers.codex import reader as codex
from sessions_lib.importers.exports import claude_ai, librechat, open_webui
from sessions_lib.importers.reader import Reader
from sessions_lib.importers.refused import REFUSED, nothing_in
from sessions_lib.importers.source import Records

_ALL = (
    *(chat.EXPORT, claude.READER, pi.READER, codex.READER, opencode.READER, gemini_cli.READER, qwen_code.READER),
    *(copilot_cli.READER, copilot_chat.READER, chatgpt.READER, claude_ai.READER, open_webui.READER, librechat.READER),
    *(agents_sdk.READER, responses.READER, atif.READER),
    *REFUSED,
    *(chat.AI_SDK, chat.GEMINI, chat.ANTHROPIC, chat.FINETUNE, astorlm.READER, chat.LINES, chat.OPENAI),
)
READERS: dict[str, Reader] = {reader.name: reader for reader in reversed(_ALL) if reader.name}
READERS = dict(reversed(READERS.items()))


def reader_of(records: Records) -> Reader:
    """The reader of the file that ``records`` were read from, or what is known of it if there is none."""
    if records.items or records.is_database:
        return next((reader for reader in _ALL if reader.looks_like(records)), nothing_in(records))
    return nothing_in(records)


def label_of(format: str) -> str:
    """Whose format that is; the name itself if it is none."""
    return READERS[format].label if format in READERS else format


def places() -> dict[Path, str]:
    """The files and folders where tools keep sessions on this machine, as far as they exist, and whose they are."""
    home = Path.home()
    known = {home / place: reader.label for reader in READERS.values() for place in reader.places}
    return {place: label for place, label in known.items() if place.exists()}
