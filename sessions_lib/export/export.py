"""Sessions as files for somewhere else: to read, to train on, or as tables.

* ``markdown``: to read, raw or rendered; no text can forge its structure (``markdown``).
* ``json``: everything there is: ``{"forkbook": 1, "id", "meta", "messages"}``, strict JSON. The messages are equal to
  the session's as Python objects: unknown keys, ``null``, missing and empty stay apart. Made to be imported again.
* ``jsonl``: the messages as the session's own file has them, one a line; as equal to them as ``json`` is.
* ``request``: what any OpenAI tool takes: the request a provider would be sent (``messages.for_request``), one message
  a line, the system prompt first. Only what a provider reads, made valid: no ids, times, models or orphan results.
* ``html``: one file that opens offline (``html``).
* ``finetune``: OpenAI fine-tuning data, one example on one line (``finetune``).
* ``atif``: a trajectory that says what was copied (``atif``); ``ipynb``: a notebook (``notebook``).
* ``parquet``: all sessions of an export in two tables, which lie in a folder (``parquet``).

``redacted`` replaces secrets and personal data in what is written, names included (``redact``); the session is not
changed. A session with nothing to write in a format is a ``SessionError`` that says why, never an empty file.

Does not choose where a file goes, and never writes through a symbolic link.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sessions_lib import messages, names
from sessions_lib.errors import InvalidMessage, SessionError, StorageError
from sessions_lib.export import atif, facts, finetune, html, markdown, notebook, parquet
from sessions_lib.export.facts import Relative
from sessions_lib.export.redact import Leaving, Redaction
from sessions_lib.messages import encoding
from sessions_lib.messages.content import Message
from sessions_lib.text import escaped

VERSION = 1


def format_name(name: str) -> str:
    """The key in ``FORMATS`` that ``name`` means (``md`` is ``markdown``), else ``SessionError``."""
    known = name.strip().lower()
    known = next((key for key, kind in FORMATS.items() if known and known == kind.also), known)
    if known not in FORMATS:
        raise SessionError(f"There is no export format {name[:40]!r}. Choose one of: {', '.join(FORMATS)}.")
    return known


def export(
    said: Sequence[Message],
    meta: Mapping[str, Any],
    format: str = "markdown",
    *,
    redacted: bool = False,
    patterns: Sequence[str] = (),
    family: Sequence[Relative] = (),
    links: Mapping[str, str] | None = None,
    redaction: Redaction | None = None,
) -> str:
    """The text of the file. The same session gives the same text.

    ``patterns`` are further regular expressions to redact; ``family`` and ``links`` (session id → address) draw the
    family tree of ``html``. ``redaction`` takes the place of ``redacted`` and ``patterns``: one for several files
    counts what was replaced in all, and replaces ids in all alike. ``SessionError`` if there is nothing to write.
    """
    redaction = redaction or Redaction(patterns, is_on=redacted)
    return _written(redaction.leaving(said, meta, family, links), format_name(format))


def _written(left: Leaving, kind: str) -> str:
    return "".join(FORMATS[kind].pieces(left))


def tables(sessions: Iterable[Leaving], format: str) -> dict[str, bytes]:
    """The files (name → bytes) that hold all of ``sessions`` in a ``format`` that is tables; see ``parquet``."""
    made = FORMATS[format_name(format)].tables
    if made is None:
        raise SessionError(f"{format} is a file for each session, no table.")
    return made(sessions)


def check(said: Sequence[Message], meta: Mapping[str, Any], format: str) -> None:
    """``SessionError`` if an export in ``format`` would be empty, with why."""
    kind = FORMATS[format_name(format)]
    if kind.can_be_empty:
        next(iter(kind.pieces(Leaving(said, meta, (), {}))))


def _session_lines(left: Leaving) -> Iterator[str]:
    if not left.said:
        raise SessionError("This session has no messages yet, so there are no lines. To keep its settings: json.")
    yield from (f"{escaped(encoding.encode(message).decode())}\n" for message in left.said)


def _request_lines(left: Leaving) -> Iterator[str]:
    system = left.meta.get("system")
    request = messages.for_request(left.said, system if isinstance(system, str) else None, keeps_ids=True)
    if not request:
        raise SessionError("This session holds nothing that a provider could be sent. To keep it as it is: jsonl.")
    yield from (f"{_json(message)}\n" for message in request)


def _training_lines(left: Leaving) -> Iterator[str]:
    yield f"{_json(finetune.example(left.said, left.meta))}\n"


def turn_markdown(said: Sequence[Message], meta: Mapping[str, Any]) -> str:
    """Some messages as Markdown, a turn for the clipboard for example: as in the export, without its head.

    ``meta`` is the session's.
    """
    return markdown.sections(said, meta)


def file_name(
    said: Sequence[Message],
    meta: Mapping[str, Any],
    format: str,
    *,
    redacted: bool = False,
    patterns: Sequence[str] = (),
    redaction: Redaction | None = None,
) -> str:
    """A file name for the export that every system takes, made of the session's title as the export shows it."""
    redaction = redaction or Redaction(patterns, is_on=redacted)
    prompt = [{"role": "user", "content": messages.first_prompt(said)}]  # all of a session that a name is made of
    named = redaction.name(prompt, {key: meta[key] for key in ("title", "id") if key in meta})
    return names.file_name(facts.title(named.said, named.meta), FORMATS[format_name(format)].extension)


def json_document(said: Sequence[Message], meta: Mapping[str, Any]) -> str:
    """The JSON export: 2 blanks a level, non-ASCII as it is but for what steers terminals or breaks lines."""
    first = {"id": meta["id"]} if "id" in meta else {}  # whoever exports, the same bytes
    body = {"forkbook": VERSION, "id": meta.get("id"), "meta": {**first, **meta}, "messages": list(said)}
    return f"{_json(body, indent=2)}\n"


def _json(value: Any, indent: int | None = None) -> str:
    """Strict JSON in valid UTF-8: a lone surrogate becomes U+FFFD, NaN and infinity ``null``."""
    try:
        plain = messages.clean(value)
        try:
            written = json.dumps(plain, ensure_ascii=False, indent=indent, allow_nan=False)
        except ValueError:
            written = json.dumps(_finite(plain), ensure_ascii=False, indent=indent, allow_nan=False)
        except RecursionError:  # without indentation it goes deeper: as deep as a file can be read
            written = json.dumps(plain, ensure_ascii=False, allow_nan=False)
    except RecursionError as error:
        raise InvalidMessage("A message is nested too deeply for JSON. Export it as markdown.") from error
    except (TypeError, ValueError) as error:
        raise InvalidMessage(f"A message holds what JSON cannot: {error}. Export it as markdown.") from error
    return escaped(written)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return {key: _finite(item) for key, item in value.items()} if isinstance(value, dict) else value


def save(
    path: Path,
    said: Sequence[Message],
    meta: Mapping[str, Any],
    format: str = "markdown",
    *,
    redacted: bool = False,
    patterns: Sequence[str] = (),
    family: Sequence[Relative] = (),
    links: Mapping[str, str] | None = None,
    redaction: Redaction | None = None,
) -> list[Path]:
    """Write the export to ``path`` and return the files written; see ``export``.

    Tables go into a folder ``path``, which is made. Pictures in a Markdown export go into a folder beside it
    (``chat.md`` → ``chat-files/``), and are linked.
    """
    redaction = redaction or Redaction(patterns, is_on=redacted)
    left = redaction.leaving(said, meta, family, links)
    if FORMATS[format_name(format)].tables:
        make_folder(path)
        return [write(path / name, data) for name, data in tables([left], format).items()]
    if format_name(format) != "markdown":
        write(path, _written(left, format_name(format)))
        return [path]
    images = markdown.Images(f"{path.stem}-files")
    text = markdown.document(left.said, left.meta, images)
    folder = path.with_name(images.folder)
    if images.files:
        make_folder(folder)
    for name, data in images.files.items():
        write(folder / name, data)
    write(path, text)
    return [path, *(folder / name for name in images.files)]


def make_folder(folder: Path) -> None:
    """Make ``folder`` for files of an export (0700) if it is not there; ``StorageError`` if that cannot be."""
    try:
        if not folder.is_dir():
            folder.mkdir(mode=0o700, exist_ok=True)
            folder.chmod(0o700)
    except OSError as error:
        raise StorageError(folder, error.strerror or str(error), "Choose another place.") from error
    if folder.is_symlink():
        raise StorageError(folder, "it is a symbolic link", "Remove the link or choose another place.")


def write(path: Path, text: str | bytes) -> Path:
    """Put ``text`` at ``path``, whole or not at all: UTF-8, mode 0600; a link at ``path`` is replaced, not followed.

    Returns ``path``. What stood there before stays if anything fails (``StorageError``).
    """
    data = text if isinstance(text, bytes) else messages.clean(text).encode()
    sibling = path.parent / f".export-{secrets.token_hex(8)}.tmp"  # no part of path's name: it may be 255 bytes long
    try:
        if path.exists() and not stat.S_ISREG(path.stat().st_mode):
            raise StorageError(path, "it is not a file", "Choose another place.")
        handle = os.open(sibling, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
        with os.fdopen(handle, "wb") as file:
            if hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), 0o600)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(sibling, path)
    except OSError as error:
        raise StorageError(path, error.strerror or str(error), "Choose another place, or free space.") from error
    finally:
        with contextlib.suppress(OSError):
            sibling.unlink(missing_ok=True)
    return path


@dataclass(frozen=True, slots=True)
class Format:
    """One kind of file: its extension, its media type, what it is in a few words, and how a session becomes its text.

    ``pieces`` are the text of the file, in order; one that ``can_be_empty`` raises ``SessionError`` for a session that
    it has nothing of. ``also`` is a second name; what ``is_redacted`` is made for others: redacted unless asked
    otherwise. ``tables`` make the files of a format that puts all sessions of an export into a few (name → bytes).
    """

    extension: str
    mime: str
    label: str
    pieces: Callable[[Leaving], Iterable[str]]
    also: str = ""
    is_redacted: bool = False
    can_be_empty: bool = False
    tables: Callable[[Iterable[Leaving]], dict[str, bytes]] | None = None


def _markdown(left: Leaving) -> list[str]:
    return [markdown.document(left.said, left.meta)]


def _html(left: Leaving) -> list[str]:
    return [html.document(left.said, left.meta, left.family, left.links)]


def _whole_json(left: Leaving) -> list[str]:
    return [json_document(left.said, left.meta)]


def _atif(left: Leaving) -> list[str]:
    return [f"{_json(atif.trajectory(left.said, left.meta), indent=2)}\n"]


def _notebook(left: Leaving) -> list[str]:
    return [f"{_json(notebook.document(left.said, left.meta), indent=1)}\n"]


def _parquet(sessions: Iterable[Leaving]) -> dict[str, bytes]:
    return parquet.tables((left.said, left.meta) for left in sessions)


def _no_text(left: Leaving) -> list[str]:
    raise SessionError("These tables are several files: save them to a folder (forkbook export --output FOLDER).")


# A new format is one function and one entry here: commands, dialogs and file names ask this table.
FORMATS: dict[str, Format] = {
    "markdown": Format("md", "text/markdown", "Markdown, to read", _markdown, also="md", is_redacted=True),
    "html": Format("html", "text/html", "One web page, offline", _html, also="htm", is_redacted=True),
    "json": Format("json", "application/json", "JSON, complete, can be imported again", _whole_json),
    "jsonl": Format(
        "jsonl", "application/x-ndjson", "JSONL, the session's own file", _session_lines, can_be_empty=True
    ),
    "request": Format(
        "jsonl", "application/x-ndjson", "Request, as providers take it", _request_lines, can_be_empty=True
    ),
    "finetune": Format("jsonl", "application/x-ndjson", "OpenAI fine-tuning data", _training_lines, can_be_empty=True),
    "atif": Format(
        "json", "application/json", "ATIF, a trajectory for training and evaluation", _atif, is_redacted=True
    ),
    "ipynb": Format("ipynb", "application/x-ipynb+json", "Jupyter notebook", _notebook, is_redacted=True),
    "parquet": Format("zip", "application/zip", "Parquet, two tables", _no_text, is_redacted=True, tables=_parquet),
}
