"""Work that can be left alone: a slow iterator or call runs in a thread of its own, and a stop ends the waiting for it.

A read from a silent server cannot be cancelled, and neither can a Python function; what can end is our waiting. The
thread that was left ends by itself when its read or its function does; it never writes to a session.

Does not start a thread where nobody could stop it (``Stop.never()``): there, work is done in place.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterator
from typing import Any, TypeVar

from sessions_lib.messages.content import Message

T = TypeVar("T")
_LOOK_S = 0.05  # how long a stop may go unnoticed


class Stopped(Exception):
    """Somebody stopped the run; ``message`` is what was said until then, if anything."""

    message: Message | None = None


class Stop:
    """A request to stop: set once, from any thread."""

    def __init__(self) -> None:
        self._event: threading.Event | None = threading.Event()

    @classmethod
    def never(cls) -> Stop:
        """One that nobody can set."""
        stop = cls()
        stop._event = None
        return stop

    def set(self) -> None:
        """Ask to stop."""
        if self._event is not None:
            self._event.set()

    @property
    def is_set(self) -> bool:
        """True once asked to."""
        return self._event is not None and self._event.is_set()

    @property
    def is_possible(self) -> bool:
        """False for ``never()``."""
        return self._event is not None


def relay(source: Iterator[T], stop: Stop, abort: Callable[[], None]) -> Generator[T, None, None]:
    """The items of ``source``, read by a thread; ``Stopped`` as soon as ``stop`` is set, whatever the source does.

    The source's errors are raised here. Left early, it is aborted, and closed by its thread.
    """
    if not stop.is_possible:
        try:
            yield from source
        finally:
            close = getattr(source, "close", None)
            if close is not None:
                close()
        return
    items: queue.Queue[tuple[str, Any]] = queue.Queue()
    is_left = threading.Event()
    threading.Thread(target=_read, args=(source, items, is_left), name="model-read", daemon=True).start()
    is_ended = False
    try:
        while True:
            kind, item = _next(items, stop, is_left)
            if kind == "item":
                yield item
                continue
            is_ended = True
            if kind == "error":
                raise item
            return
    finally:
        is_left.set()
        if not is_ended:
            abort()


def _read(source: Iterator[Any], items: queue.Queue[tuple[str, Any]], is_left: threading.Event) -> None:
    try:
        for item in source:
            if is_left.is_set():
                return  # not an end: the source had more to say
            items.put(("item", item))
    except BaseException as error:  # noqa: BLE001 - raised again by whoever waits in relay
        items.put(("error", error))
    else:
        items.put(("end", None))
    finally:
        close = getattr(source, "close", None)
        if close is not None:
            close()


def _next(items: queue.Queue[tuple[str, Any]], stop: Stop, is_left: threading.Event) -> tuple[str, Any]:
    while True:
        try:
            if not stop.is_set:
                return items.get(timeout=_LOOK_S)
            is_left.set()  # what has arrived is still taken; the source puts at most one more
            return items.get_nowait()
        except queue.Empty as error:
            if stop.is_set:
                raise Stopped from error


def one(work: Callable[[], T], stop: Stop) -> T:
    """What ``work()`` returns; ``Stopped`` as soon as ``stop`` is set, while ``work`` runs on, unheard."""
    if not stop.is_possible:
        return work()
    results = relay((work() for _ in range(1)), stop, abort=lambda: None)
    try:
        return next(results)
    finally:
        results.close()
