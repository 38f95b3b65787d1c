"""Commands about files: ``export``, ``check``, ``repair``, ``index``.

Do not overwrite a file that was not named.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import click

from sessions_lib.cli import options, printing
from sessions_lib.errors import SessionError, StorageError

if TYPE_CHECKING:
    from sessions_lib.export.redact import Leaving, Redaction
    from sessions_lib.store.manager import SessionManager
    from sessions_lib.store.records import Fault
    from sessions_lib.store.session import Session


@click.command("export")
@click.argument("sessions", metavar="[SESSION]...", nargs=-1, required=False)
@click.option("--all", "all_sessions", is_flag=True, help="All sessions of the folder.")
@click.option(
    "--format",
    "-f",
    "format",
    default="markdown",
    metavar="FORMAT",
    help="markdown, html, json, jsonl, request, finetune, atif, ipynb or parquet.",
)
@click.option(
    "--output",
    "-o",
    "output",
    metavar="FILE",
    help="Where to, a folder for several and for parquet; - prints one. Without it: new files named after the titles.",
)
@click.option(
    "--family", "family", is_flag=True, help="With every session of the family: forks, parents, and their forks."
)
@click.option(
    "--redact/--no-redact",
    "redact",
    default=None,
    help="Replace keys, tokens, passwords, addresses, names included; on but for json, jsonl, request and finetune.",
)
@click.option(
    "--pattern", "pattern", multiple=True, metavar="REGEX", help="Redact what this regular expression matches, too."
)
@options.folder
def export(
    sessions: tuple[str, ...],
    all_sessions: bool,
    format: str,
    output: str | None,
    family: bool,
    redact: bool | None,
    pattern: tuple[str, ...],
    folder: str | None,
) -> None:
    """Write sessions to files for somewhere else.

    SESSION: Ids, starts of ids, or titles; several go into a folder.

    The web pages of one call link to each other along their families.

    Example: forkbook export quest-1 --format html --family --output quest
    """
    from sessions_lib.export.export import FORMATS

    kind = _format(format)
    manager = options.manager(folder)
    if all_sessions == bool(sessions):
        raise click.UsageError("Name the sessions to export, or say --all.")
    listed = (info.id for info in manager.list()) if all_sessions else map(manager.resolve, sessions)
    chosen = list(dict.fromkeys(listed))
    if family:
        chosen = list(dict.fromkeys(info.id for one in chosen for info in manager.family(one)))
    redaction = options.redaction(FORMATS[kind].is_redacted if redact is None else redact, pattern)
    if FORMATS[kind].tables is not None:
        _export_tables(manager, chosen, kind, output, redaction)
    elif len(chosen) == 1 and not all_sessions:
        _export_one(manager.open(chosen[0]), manager, kind, output, redaction)
    elif output == "-":
        raise click.UsageError("Several sessions go into files: name a folder with --output.")
    else:
        _export_several(manager, chosen, kind, options.path(output) if output else options.path("."), redaction)
    if redaction.is_on or redact is None:
        options.say_redaction(redaction)


def _export_one(found: Session, manager: SessionManager, kind: str, output: str | None, redaction: Redaction) -> None:
    from sessions_lib.export import export as exporting

    meta = {**found.meta, "id": found.id}
    family = manager.family(found.id) if kind == "html" else ()
    if output == "-":
        text = exporting.export(found.messages, meta, kind, family=family, redaction=redaction)
        # Into a file or a pipe goes what the library exports, byte for byte; into a terminal what cannot steer it.
        sys.stdout.flush()
        sys.stdout.buffer.write((printing.plain(text) if sys.stdout.isatty() else text).encode("utf-8", "replace"))
        return
    target = options.path(output) if output else None
    if target is None or target.is_dir():
        name = options.path(exporting.file_name(found.messages, meta, kind, redaction=redaction))
        target = _new_file((target or options.path(".")) / name)
    for written in exporting.save(target, found.messages, meta, kind, family=family, redaction=redaction):
        printing.data(printing.plain(str(written)))


def _export_tables(
    manager: SessionManager, chosen: Sequence[str], kind: str, output: str | None, redaction: Redaction
) -> None:
    """All of ``chosen`` as the tables of a format, in a folder that is made: what was there stays."""
    from sessions_lib.export import export as exporting

    if output == "-":
        raise click.UsageError(f"{kind} is several tables: name a folder with --output.")
    if output is None and len(chosen) == 1:
        opened = manager.open(chosen[0])
        name = exporting.file_name(opened.messages, {**opened.meta, "id": opened.id}, kind, redaction=redaction)
        folder = _new_file(options.path(name).with_suffix(""))
    else:
        folder = options.path(output or ".")
    left_out: list[str] = []

    def leaving() -> Iterator[Leaving]:
        for session in printing.progress(sorted(chosen), "Exporting"):
            try:
                opened = manager.open(session)
                left = redaction.leaving(opened.messages, {**opened.meta, "id": session})
            except StorageError:
                raise
            except SessionError as error:
                left_out.append(f"{session}: {error}")
                continue
            yield left

    tables = exporting.tables(leaving(), kind)
    exporting.make_folder(folder)
    for name, data in tables.items():
        printing.data(printing.plain(str(exporting.write(_new_file(folder / name), data))))
    _tell_left_out(left_out, len(chosen))


def _export_several(
    manager: SessionManager, chosen: Sequence[str], kind: str, folder: Path, redaction: Redaction
) -> None:
    """A file for each of ``chosen`` in ``folder``, which is made; their web pages link to each other.

    One that cannot be exported is told, and the others are exported all the same.
    """
    from sessions_lib.export import export as exporting

    exporting.make_folder(folder)
    targets: dict[str, Path] = {}
    for session in chosen:
        opened = manager.open(session)
        name = exporting.file_name(opened.messages, {**opened.meta, "id": session}, kind, redaction=redaction)
        targets[session] = _new_file(folder / options.path(name), taken=set(targets.values()))
    links = {session: quote(os.fsencode(target.name)) for session, target in targets.items()}
    left_out = []
    for session in printing.progress(chosen, "Exporting"):
        opened = manager.open(session)
        meta = {**opened.meta, "id": session}
        family = manager.family(session) if kind == "html" else ()
        try:
            saved = exporting.save(
                targets[session], opened.messages, meta, kind, family=family, links=links, redaction=redaction
            )
        except StorageError:
            raise
        except SessionError as error:
            left_out.append(f"{session}: {error}")
            continue
        for written in saved:
            printing.data(printing.plain(str(written)))
    _tell_left_out(left_out, len(chosen))


def _tell_left_out(left_out: Sequence[str], of: int) -> None:
    for sentence in left_out:
        printing.talk(sentence)
    if left_out:
        raise SessionError(f"{printing.count(len(left_out), 'session')} of {of} could not be exported.")


def _format(name: str) -> str:
    from sessions_lib.export import export as exporting

    try:
        return exporting.format_name(name)
    except SessionError as error:
        raise click.UsageError(str(error)) from error


def _new_file(wanted: Path, taken: Collection[Path] = ()) -> Path:
    """A path that is not there and not ``taken``, upper and lower case alike: ``wanted``, else ``wanted (2)`` …"""
    target, number = wanted, 2
    names = {path.name.casefold() for path in taken}
    while target.name.casefold() in names or target.exists() or target.is_symlink():
        target = wanted.with_name(f"{wanted.stem} ({number}){wanted.suffix}")
        number += 1
    return target


@click.command("check")
@click.argument("sessions", metavar="[SESSION]...", nargs=-1, required=False)
@click.option("--all", "all_sessions", is_flag=True, help="All sessions of the folder.")
@options.as_json
@options.folder
def check(sessions: tuple[str, ...], all_sessions: bool, json: bool, folder: str | None) -> None:
    """Check sessions for faults, and exit 1 if there are any.

    SESSION: Which; all without one.

    Example: forkbook check quest-1
    """
    found = options.manager(folder)
    chosen = [found.resolve(name) for name in sessions or ()]
    if all_sessions or not chosen:
        chosen = sorted(found.store.ids())
    faults = [fault for one in printing.progress(chosen, "Checking") for fault in found.store.faults(one)]
    _print_faults(faults, json)
    if open_files := found.store.readable_by_others():
        few = ", ".join(open_files[:5]) + (" …" if len(open_files) > 5 else "")
        told = f"{printing.count(len(open_files), 'file')} can be read by others on this machine: {few}."
        printing.talk(printing.line(f"{told} To close them: chmod 600, or chmod 700 {found.store.where}", 500))
    if faults:
        first = next((fault.session for fault in faults if fault.can_be_repaired), None)
        see = f" See: forkbook repair {first}" if first else " None of them is for repair to mend."
        raise SessionError(f"{printing.count(len(faults), 'fault')} in {printing.count(len(chosen), 'session')}.{see}")
    printing.talk(f"No fault in {printing.count(len(chosen), 'session')}.")


@click.command("repair")
@options.session_name
@click.option("--write", "write", is_flag=True, help="Do it; without it nothing is written.")
@options.as_json
@options.folder
def repair(session: str, write: bool, json: bool, folder: str | None) -> None:
    """Repair what is damaged in a session.

    A dry run until told to write; the original is kept in the trash.

    Example: forkbook repair quest-1 --write
    """
    found = options.manager(folder)
    chosen = found.resolve(session)
    store = found.store
    faults = store.repair(chosen) if write else [one for one in store.faults(chosen) if one.can_be_repaired]
    _print_faults(faults, json)
    if not faults:
        printing.talk("There is nothing to repair.")
    elif write:
        printing.talk(f"Repaired {printing.count(len(faults), 'fault')}. The original: forkbook list --trash")
    else:
        printing.talk(
            f"{printing.count(len(faults), 'fault')} would be repaired. Nothing was written; to do it: "
            f"forkbook repair {chosen} --write"
        )


def _print_faults(faults: list[Fault], json: bool) -> None:
    for fault in faults:
        if json:
            printing.record(fault)
        else:
            printing.data(printing.line(str(fault), 500))


@click.command("index")
@options.folder
def index(folder: str | None) -> None:
    """Index everything that was said, so that searches need not read the files.

    Searches and the app index by and by; this does it now. Stopped, it goes on the next time.

    Example: forkbook index
    """
    from sessions_lib.query import parse

    found = options.manager(folder)
    with printing.bar(100, "Indexing") as drawn:
        found.catalog.index(on_progress=lambda done, todo: drawn.update(100 * done // todo - drawn.pos))
    if found.catalog.is_in_memory and found.store.ids():
        raise SessionError(
            f"{found.store.where}: no index can be kept here; searches read the files. Check the folder's permissions."
        )
    printing.talk(
        f"{printing.count(len(found.catalog.ids(parse(''))), 'session')} in {found.store.where} can be searched."
    )
