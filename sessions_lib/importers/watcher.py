"""Keeping what other tools delete: their folders are followed, and what is new is imported within a second or two.

The kernel says which files were written (``watchdog``), and only those are read. Nothing is ever taken away here: a
source that shrinks, is written anew or goes leaves its session as it is. Everything is looked at when the watch begins,
and again every few minutes, for what was told to nobody; where the kernel tells nothing at all, that is the only way,
paced so that it takes a hundredth of a core.

Imports are those of ``import_paths``: a watch that is killed goes on where it was, and two at once, in two programs,
wait for each other and store nothing twice.

Does not print, and never writes into a source.
"""

from __future__ import annotations

import contextlib
import queue
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sessions_lib.errors import SessionError
from sessions_lib.importers import import_paths, places
from sessions_lib.importers.belonging import source_of
from sessions_lib.importers.progress import Progress
from sessions_lib.store.manager import SessionManager

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent
    from watchdog.observers.api import BaseObserver, ObservedWatch

LOOK_AGAIN_S = 300.0  # everything is looked at, whatever was told
PLACES_S = 15.0  # folders that did not exist are looked for
GATHER_S = 0.2  # lines that are written together are read together
_BUSY = 4  # an import rests this many times as long as the one before it took
_LOOK = 20  # the same, where a file alone says nothing and its whole folder is looked at
_UNTOLD = 100  # the same, where the kernel tells nothing
_RETRY_S = 2.0

Follow = Callable[[Sequence[Path]], tuple[bool, set[Path]]]


@dataclass(frozen=True, slots=True)
class Round:
    """One import of a watch: a ``Progress`` for each file that was looked at; ``error`` says why it ended early.

    ``is_whole`` is true if everything was looked at.
    """

    steps: list[Progress] = field(default_factory=list)
    error: SessionError | None = None
    is_whole: bool = False

    @property
    def added_sessions(self) -> int:
        """How many sessions were made."""
        return sum(step.result.added_sessions for step in self.steps if step.result)

    @property
    def added_messages(self) -> int:
        """How many messages were written."""
        return sum(step.result.added_messages for step in self.steps if step.result)


class Watcher:
    """A watch over files and folders; with none named, over the places where the tools of this machine keep sessions.

    A place that comes to be later is followed, too.
    """

    def __init__(
        self, manager: SessionManager, paths: Sequence[Path] | None = None, *, format: str | None = None
    ) -> None:
        """Follow ``paths`` into the sessions of ``manager``; nothing begins before ``rounds``."""
        self._manager, self._format = manager, format
        self._paths = None if paths is None else [path.expanduser().absolute() for path in paths]
        # Of all queues this one may be put into by a signal handler, whatever it interrupts.
        self._told: queue.SimpleQueue[Path | None] = queue.SimpleQueue()
        self._is_stopped = False

    def stop(self) -> None:
        """End the watch after the file in hand, from any thread and from a signal handler."""
        self._is_stopped = True
        self._told.put(None)

    def rounds(self) -> Iterator[Round]:
        """A ``Round`` at the beginning and after each import that something was written for, until it is stopped."""
        with _observer(self._on_change) as follow:
            pending: set[Path] = set()
            rest_until = look_at = look_s = 0.0
            refused: set[Path] = set()  # even where everything was looked at
            while not self._is_stopped:
                now = time.monotonic()
                is_told, begun = follow(self._places())
                pending |= begun
                if is_whole := now >= look_at:
                    pending = set(self._places())
                if (pending or is_whole) and now >= rest_until:
                    made = self._import(pending, is_whole=is_whole)
                    took = time.monotonic() - now
                    rest_until = time.monotonic() + (_RETRY_S if made.error else _BUSY * took)
                    if is_whole:
                        look_s = took
                        refused = {step.source for step in made.steps if step.error}
                        look_at = now + (_LOOK if made.error else LOOK_AGAIN_S if is_told else _UNTOLD * took + 1)
                    elif any(step.error and step.source not in refused for step in made.steps):
                        # Part of something larger, perhaps: its whole folder says.
                        look_at = min(look_at, time.monotonic() + max(_RETRY_S, _LOOK * look_s))
                    pending = pending if made.error and not is_whole else set()
                    yield made
                now = time.monotonic()
                due_at = rest_until if pending else max(look_at, rest_until)
                pending |= self._gather(min(PLACES_S, due_at - now))

    def _places(self) -> list[Path]:
        return places() if self._paths is None else self._paths

    def _import(self, pending: Iterable[Path], *, is_whole: bool) -> Round:
        """Import files and folders; that another import is running is an error of this round, and the next tries."""
        steps: list[Progress] = []
        there = [path for path in sorted(pending) if is_whole or path.exists()]  # what went again takes nothing away
        importing = import_paths(self._manager, there, self._format)
        try:
            for step in importing:
                steps.append(step)
                if self._is_stopped:
                    break
        except SessionError as error:
            return Round(steps, error, is_whole)
        finally:
            importing.close()
        return Round(steps, is_whole=is_whole)

    def _gather(self, wait: float) -> set[Path]:
        """What is written within ``wait`` seconds, or from the first on in ``GATHER_S``."""
        found: set[Path] = set()
        until = time.monotonic() + max(0.0, wait)
        while (left := until - time.monotonic()) > 0 and not self._is_stopped:
            try:
                told = self._told.get(timeout=left)
            except queue.Empty:
                break
            told = None if told is None else source_of(told)
            if told is not None and told not in found and self._is_followed(told):
                if not found:
                    until = min(until, time.monotonic() + GATHER_S)
                found.add(told)
        return found

    def _is_followed(self, path: Path) -> bool:
        """True for a file of a place that is no hidden one there, and none of our own."""
        inside = next((path.relative_to(place) for place in self._places() if path.is_relative_to(place)), None)
        return (
            inside is not None
            and not any(part.startswith(".") for part in inside.parts)
            and not self._manager.store.is_own(path)
        )

    def _on_change(self, event: FileSystemEvent) -> None:
        written = event.dest_path or event.src_path
        self._told.put(Path(written if isinstance(written, str) else written.decode("utf-8", "surrogateescape")))


@contextlib.contextmanager
def _observer(on_change: Callable[[FileSystemEvent], None]) -> Iterator[Follow]:
    """A function that has the kernel tell ``on_change`` of some places: whether it does of all, and of which anew."""
    from watchdog.events import FileCreatedEvent, FileModifiedEvent, FileMovedEvent, FileSystemEventHandler
    from watchdog.observers import Observer

    class Handler(FileSystemEventHandler):
        def on_any_event(self, event: FileSystemEvent) -> None:
            on_change(event)

    handler = Handler()
    observer: BaseObserver = Observer()
    observer.start()
    followed: dict[Path, tuple[ObservedWatch | None, tuple[int, int]]] = {}

    def follow(paths: Sequence[Path]) -> tuple[bool, set[Path]]:
        alive, begun = {emitter.watch for emitter in observer.emitters if emitter.is_alive()}, set[Path]()
        for path in paths:
            folder = path if path.is_dir() else path.parent
            watch, identity = followed.pop(path, (None, (0, 0)))
            now = _identity(folder)
            if now == identity != (0, 0) and watch in alive:
                followed[path] = watch, identity
                continue
            with contextlib.suppress(KeyError, OSError):  # another folder stands there now
                if watch is not None:
                    observer.unschedule(watch)
            with contextlib.suppress(OSError):  # there is none, or the system gives no more watches
                # Reading is told, too, unless it is left out: an import would wake itself.
                events: list[type[FileSystemEvent]] = [FileCreatedEvent, FileModifiedEvent, FileMovedEvent]
                watch = observer.schedule(handler, str(folder), recursive=folder == path, event_filter=events)
                followed[path] = watch, now
                begun.add(path)
        return all(path in followed for path in paths), begun

    try:
        yield follow
    finally:
        observer.stop()
        observer.join()


def _identity(folder: Path) -> tuple[int, int]:
    """Which folder stands at a path; (0, 0) if none does."""
    try:
        state = folder.stat()
    except OSError:
        return 0, 0
    return state.st_dev, state.st_ino
