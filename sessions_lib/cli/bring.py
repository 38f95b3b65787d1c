"""``import``: other tools' sessions into the folder.

Reads its sources only. Stopping it loses nothing: importing again goes on where it stopped.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from sessions_lib.cli import change, options, printing
from sessions_lib.errors import SessionError

if TYPE_CHECKING:
    from sessions_lib.importers import Progress
    from sessions_lib.importers.watcher import Round


@click.command("import")
@click.argument("paths", metavar="[PATH]...", nargs=-1, required=False)
@click.option("--from", "format", metavar="FORMAT", help="Take them for this format, whatever they look like.")
@click.option("--dry-run", "dry_run", is_flag=True, help="Say what would be imported, write nothing.")
@click.option("--again", "again", is_flag=True, help="Bring back what was deleted here.")
@click.option("--watch", "watch", is_flag=True, help="Go on, and take in what is written there until Ctrl-C.")
@options.as_json
@options.yes
@options.folder
def bring(
    paths: tuple[str, ...],
    format: str | None,
    dry_run: bool,
    again: bool,
    watch: bool,
    json: bool,
    yes: bool,
    folder: str | None,
) -> None:
    """Import sessions of Claude Code, Codex, Pi, ChatGPT and others.

    PATH: Files, folders, zips; without one, this machine's own folders.

    Importing twice adds nothing; nothing that is there is overwritten; what was deleted stays deleted. With --watch
    sessions stay here when the tool that wrote them deletes them.

    Example: forkbook import ~/.claude/projects --dry-run
    """
    from sessions_lib import importers

    kind = _format(format)
    if watch:
        if dry_run or again:
            raise click.UsageError(
                "--watch goes with neither --dry-run nor --again: import once with them, then watch."
            )
        follow([options.path(text) for text in paths], kind, json=json, yes=yes, folder=folder)
        return
    sources = [options.path(text) for text in paths or ()] or _offered(yes)
    done: list[Progress] = []
    steps = importers.import_paths(options.manager(folder), sources, kind, dry_run=dry_run, again=again)
    with _stopped_by_control_c() as stopped:
        for step in _counted(steps):
            done.append(step)
            if json or not (step.error and step.was_named and step.total == 1):  # else it is the command's own error
                _print_step(step, json)
            if stopped.is_set():
                break
        steps.close()
    if len(done) == 1 and done[0].error and done[0].was_named:
        raise done[0].error
    for refusal in importers.refusals(done) if not json else ():
        printing.talk(printing.line(refusal.text, 500))
    if any(step.result for step in done):
        _print_total(done, dry_run)
    if stopped.is_set() and done[-1].done < done[-1].total:
        raise SessionError("Stopped. Import again, and it goes on from there.")
    brought = {place for step in done if step.result for place in (step.source, *step.source.parents)}
    if not brought.issuperset(sources) or any(step.error and step.was_named for step in done):
        raise SessionError("Not everything that was named could be imported; see above.")


@contextmanager
def _stopped_by_control_c() -> Iterator[threading.Event]:
    """An event that Ctrl-C sets, so that the file in hand is ended and counted; a second Ctrl-C ends it at once."""
    stopped = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return

    def stop(number: int, frame: FrameType | None) -> None:
        stopped.set()
        os.write(2, b"Stopping after this file.\n")  # a signal may strike while something is being printed
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield stopped
    finally:
        signal.signal(signal.SIGINT, before)


def _format(name: str | None) -> str | None:
    from sessions_lib import importers

    try:
        return importers.format_name(name) if name else None
    except SessionError as error:
        raise click.UsageError(str(error)) from error


def follow(paths: list[Path], format: str | None, *, json: bool, yes: bool, folder: str | None) -> None:
    """Import ``paths``, or this machine's own folders, and what is written there from now on, until Ctrl-C."""
    from sessions_lib.importers.watcher import Watcher

    if missing := next((path for path in paths if not path.expanduser().exists()), None):
        raise SessionError(f"{missing}: there is no such file or folder.")
    places = paths or _offered(yes)
    manager = options.manager(folder)
    watcher = Watcher(manager, paths or None, format=format)
    told: set[str] = set()
    sessions = messages = 0
    with _ended_by_control_c(watcher.stop):
        printing.talk(
            printing.line(f"Following {', '.join(map(str, places))} into {manager.store.where}. Ctrl-C ends it.", 500)
        )
        for made in watcher.rounds():
            sessions, messages = sessions + made.added_sessions, messages + made.added_messages
            _print_round(made, told, json)
    brought = f"{printing.count(sessions, 'session')} and {printing.count(messages, 'message')}"
    printing.talk(f"Stopped following; {brought} were brought. Started again, it goes on from there.")


def _print_round(made: Round, told: set[str], json: bool) -> None:
    """What a round brought; what was refused, and why it could not go on, each once."""
    from sessions_lib import importers

    for step in made.steps:
        if step.result and step.result.added_messages:
            _print_step(step, json)
    sentences = [refusal.text for refusal in importers.refusals(made.steps)] if made.is_whole else []
    for sentence in [*sentences, *([str(made.error)] if made.error else [])]:
        if sentence not in told:
            told.add(sentence)
            printing.talk(printing.line(sentence, 500))


@contextmanager
def _ended_by_control_c(stop: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C calls ``stop``, so that the file in hand is ended; a second one ends the program at once."""

    def on_signal(number: int, frame: FrameType | None) -> None:
        stop()
        signal.signal(signal.SIGINT, before)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, on_signal)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _offered(yes: bool) -> list[Path]:
    """The folders in which this machine's tools keep sessions, if the person wants them imported."""
    from sessions_lib import importers

    found = importers.places()
    if not found:
        raise SessionError("No tool that is known keeps sessions here. Name a file or folder: forkbook import PATH")
    listed = "\n".join(f"  {place}" for place in found)
    change.ask(f"These folders hold sessions:\n{listed}\nImport them? They are only read", yes, "Nothing was imported")
    return found


def _counted(steps: Iterator[Progress]) -> Iterator[Progress]:
    """``steps``, with a progress bar on standard error if that is a terminal."""
    first = next(steps, None)
    if first is None:
        return
    with printing.bar(first.total, "Importing") as bar:
        yield first
        bar.update(1)
        for step in steps:
            yield step
            bar.update(1)


def _print_step(step: Progress, json: bool) -> None:
    outcome = step.result
    if json:
        printing.record(
            {
                "source": step.source,
                "error": str(step.error) if step.error else None,
                "format": outcome.report.format if outcome else None,
                "sessions": list(outcome.outcomes) if outcome else [],
                "is_unchanged": outcome.is_unchanged if outcome else None,
            }
        )
    elif outcome and outcome.added_messages:
        printing.data(printing.line(f"{step.source}: {outcome.summary}", 500))


def _print_total(done: list[Progress], dry_run: bool) -> None:
    from sessions_lib import importers

    results = [step.result for step in done if step.result]
    total = importers.total_of(results)
    sessions, said = sum(one.added_sessions for one in results), sum(one.added_messages for one in results)
    verb = "Would import" if dry_run else "Imported"
    printing.talk(
        f"{verb} {printing.count(sessions, 'session')} and {printing.count(said, 'message')} "
        f"from {printing.count(len(results), 'file')}."
    )
    if dry_run:
        _print_tokens(done)
    if gone := sum(one.left_deleted for one in results):
        printing.talk(f"{printing.count(gone, 'session')} that you deleted before left out; --again brings them back.")
    if total.skipped:
        listed = ", ".join(f"{kind} ({times:,})" for kind, times in total.skipped.most_common())
        printing.talk(printing.line(f"No conversation, and left out: {listed}", 1000))
    if total.unknown:
        listed = ", ".join(f"{kind} ({times:,})" for kind, times in total.unknown.most_common())
        printing.talk(printing.line(f"Of an unknown kind, their texts taken in as notes: {listed}", 1000))
    if total.damaged_lines:
        printing.talk(f"{printing.count(total.damaged_lines, 'damaged line')} could not be read.")
    for warning in total.warnings:
        printing.talk(printing.line(warning, 500))


def _print_tokens(done: list[Progress]) -> None:
    from sessions_lib import prices
    from sessions_lib.importers.claude import usage as claude_usage
    from sessions_lib.messages import usage

    read = [step.source for step in done if step.result and step.result.report.format == "claude-code"]
    answered = claude_usage.answers(path for path in read if path.suffix == ".jsonl")
    tokens = usage.total(answered)
    if tokens.reported:
        answers = printing.count(tokens.reported, "answer")
        spent = f"{printing.number(tokens.input)} in, {printing.number(tokens.output)} out"
        cost = f", {prices.said(prices.of(answered, {}), tokens)}"
        printing.talk(f"Claude Code reports {printing.number(tokens.total)} tokens in {answers}: {spent}{cost}.")
        models = claude_usage.by_model(answered)
        if len(models) > 1:
            listed = ", ".join(
                f"{name or 'unknown model'} {printing.number(one.total)}" for name, one in models.items()
            )
            printing.talk(printing.line(f"By model: {listed}.", 1000))
