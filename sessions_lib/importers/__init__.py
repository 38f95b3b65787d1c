"""Other tools' sessions → ours: recognised by content, converted without loss, added without overwriting anything.

>>> from sessions_lib import importers
>>> for step in importers.import_paths(SessionManager(), [Path("~/.claude/projects")]):     # doctest: +SKIP
...     print(step.done, step.total, step.source, step.error or step.result.summary)

* ``read(path, format=None)`` gives a file's conversations (``Imported``) and an ``ImportReport``; nothing is written.
* ``import_paths(manager, paths, format=None, dry_run=False)`` imports files, folders and zips: one ``Progress`` a file.
  Stop iterating and nothing more is imported; import again and it goes on where it stopped, killed or stopped.
* ``places()`` are the folders where the tools of this machine keep sessions, as far as they exist; ``tool_at`` says
  whose one is.
* A file without a word of text in it is refused, and nothing of it stored.
* ``FORMATS`` are the formats, ``format_name`` reads what a person typed for one, ``total_of`` adds reports up, and
  ``refusals`` says what could not be imported.

One file a format, with its name, places and what it looks like (``reader``); ``readers`` lists them. ``refused`` names
what cannot be imported yet, and what it would need. ``writing`` says when a conversation is new, grown or unchanged.

Tokens mean one thing in all of them (see ``usage``): ``usage`` holds OpenAI's numbers, ``usage_reported`` what the tool
wrote. What a message cannot express is kept under its ``source``; what is no conversation is counted by kind.

Does not write into any source.
"""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path

from sessions_lib.errors import ImportRefused, SessionError, SessionLocked, StorageError
from sessions_lib.importers import readers
from sessions_lib.importers.adding.store import Store
from sessions_lib.importers.adding.writing import Outcome, put
from sessions_lib.importers.finding import Refused, find
from sessions_lib.importers.imported import Imported, ImportReport
from sessions_lib.importers.progress import ImportResult, Progress, Refusal, refusals
from sessions_lib.importers.reader import Reader
from sessions_lib.importers.readers import READERS, label_of, reader_of
from sessions_lib.importers.source import Source, load
from sessions_lib.messages import content, encoding
from sessions_lib.messages.content import Message
from sessions_lib.store.manager import SessionManager
from sessions_lib.store.store import Hold

__all__ = [
    "FORMATS",
    "ImportReport",
    "ImportResult",
    "Imported",
    "Outcome",
    "Progress",
    "Refusal",
    "format_name",
    "import_paths",
    "places",
    "read",
    "refusals",
    "tool_at",
    "total_of",
]

FORMATS: dict[str, str] = {name: reader.label for name, reader in READERS.items()}
_ALIASES = {alias: reader.name for reader in READERS.values() for alias in reader.aliases}
_MEDIA = ("image", "audio", "video", "file", "document")  # in the kind of a part that says something without a word
# What a source that is not what it looked like can raise inside a reader; each is told as a refusal of that file.
_WAIT_S = 2.0
_MISREAD = (TypeError, ValueError, KeyError, AttributeError, IndexError, RecursionError, OSError, zlib.error)


def format_name(text: str) -> str:
    """The format that ``text`` means, short names too (``claude``); ``SessionError`` lists them all."""
    name = text.strip().lower()
    name = _ALIASES.get(name, name)
    if name not in FORMATS:
        raise SessionError(f"{text[:40]!r} is not a format. Choose one of: {', '.join(FORMATS)}.")
    return name


def places() -> list[Path]:
    """The files and folders where the tools of this machine keep sessions, as far as they exist."""
    return list(readers.places())


def tool_at(place: Path) -> str:
    """Whose place that is."""
    return readers.places().get(place, place.name)


def read(path: str | Path, format: str | None = None) -> tuple[list[Imported], ImportReport]:
    """The conversations in the file ``path`` and a report of the rest; ``ImportRefused`` says what it looked like.

    ``format`` forces one of ``FORMATS``; without it the content decides.
    """
    sources = list(find([Path(path)]))
    if len(sources) == 1 and isinstance(sources[0], Source):
        return _read(sources[0], format_name(format) if format else None)
    if all(isinstance(source, Refused) for source in sources):
        raise next(source.error for source in sources if isinstance(source, Refused))
    found: list[Imported] = []
    report = ImportReport()
    for source in sources:
        if isinstance(source, Source):
            one, one_report = _read(source, format_name(format) if format else None)
            found += one
            report.add(one_report)
    return found, report


def _read(source: Source, forced: str | None) -> tuple[list[Imported], ImportReport]:
    with encoding.without_gc():
        try:
            records = load(source)
            looked_like = reader_of(records)
            reader = _chosen(source, looked_like, forced)
            report = ImportReport(format=reader.name, name=source.name)
            if records.damaged:
                report.damaged[str(source.label)] = list(records.damaged)
            if records.odd:
                report.skipped["line that is no object"] += len(records.odd)
            found = reader.read(source, records, report) if reader.read else []
        except _MISREAD as error:
            why = f"{type(error).__name__}: {error}"[:200]
            raise ImportRefused(source.label, f"it could not be understood ({why})") from error
    if not found:
        listed = ", ".join(f"{name}: {count:,}" for name, count in report.skipped.most_common(5))
        what = f"{looked_like.found}, but holds no conversation"
        raise ImportRefused(source.label, f"{what} ({listed})" if listed else what)
    report.sessions = len(found)
    report.messages = sum(len(one.messages) for one in found)
    return found, report


def _chosen(source: Source, found: Reader, forced: str | None) -> Reader:
    """The reader that a person named, or what the file looks like."""
    if forced is None:
        if found.read is None:
            raise ImportRefused(source.label, found.found)
        return found
    named = READERS[forced]
    if found.read is None:
        raise ImportRefused(source.label, f"not {named.label}: {found.found}")
    if found.name != forced and not (found.family and found.family == named.family):
        raise ImportRefused(source.label, f"{found.found}, not like {named.label}")
    return named


def import_paths(
    manager: SessionManager,
    paths: Iterable[str | Path],
    format: str | None = None,
    *,
    dry_run: bool = False,
    again: bool = False,
) -> Generator[Progress]:
    """Import every file in ``paths``, one ``Progress`` each, in order; a file that fails never stops the others.

    ``dry_run`` says what would be done and writes nothing. ``again`` brings back what was deleted here. A missing path
    or an empty folder is one ``Progress`` with an error. What was imported is on disk when the iteration ends or is
    closed. Memory is bounded by the largest file. ``SessionError`` if another import into the folder is running, or the
    disk refuses.
    """
    forced = format_name(format) if format else None
    with nullcontext() if dry_run else _alone(manager):
        sources = list(find([Path(path) for path in paths]))
        store = Store(manager, dry_run=dry_run)
        if again:
            store.deleted.forget()
        try:
            for done, source in enumerate(sources, 1):
                yield _step(store, source, forced, done, len(sources), again=again)
        finally:
            store.finish()


def _alone(manager: SessionManager) -> Hold:
    """The right to import: of two imports, one would not see what the other makes."""
    try:
        return manager.store.alone("import", _WAIT_S)
    except SessionLocked as error:
        raise SessionError(
            f"Another import into {manager.store.where} is running ({error.holder}). Import again when it has ended: "
            "what it brought is not imported twice."
        ) from error


def _step(
    store: Store, source: Source | Refused, forced: str | None, done: int, total: int, *, again: bool
) -> Progress:
    if isinstance(source, Refused):
        return Progress(done, total, source.error.path, source.found_in, error=source.error)
    try:
        with encoding.without_gc():
            result = _import_one(store, source, forced, again=again)
    except StorageError as error:
        if error.where == str(source.label):  # the source could not be read; else nothing more can be written
            return Progress(done, total, source.label, source.found_in, error=error)
        raise
    except SessionError as error:
        return Progress(done, total, source.label, source.found_in, error=error)
    return Progress(done, total, source.label, source.found_in, result=result)


def _import_one(store: Store, source: Source, forced: str | None, *, again: bool) -> ImportResult:
    if store.is_own(source):
        raise ImportRefused(source.label, "a file of the folder that is imported into")
    if forced is None and store.is_unchanged(source):
        return ImportResult(ImportReport(), is_unchanged=True, left_deleted=store.deleted_of(source))
    found, report = _read(source, forced)
    if not any(_says(message) for one in found for message in one.messages):
        raise ImportRefused(source.label, f"looks like {label_of(report.format)}, but holds not a word of text")
    outcomes = put(store, found, source, report.format, again=again)
    return ImportResult(report, outcomes, left_deleted=sum(outcome.change == "deleted" for outcome in outcomes))


def _says(message: Message) -> bool:
    """True if there is anything in ``message`` but counts of tokens."""
    parts = content.parts(message)
    return bool(message.get("tool_calls") or content.reasoning(message) or content.text(message).strip()) or any(
        kind in part.kind for part in parts for kind in _MEDIA
    )


def total_of(results: Sequence[ImportResult]) -> ImportReport:
    """One report for several files; warnings are told with their file's name."""
    report = ImportReport()
    for result in results:
        report.add(result.report)
    return report
