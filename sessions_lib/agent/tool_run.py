"""Running a function somebody else wrote: where it prints, what becomes of what it returns, ``async`` or not.

Standard output belongs to whoever asked the agent, so what a function prints there goes to standard error. What it
returns becomes text whatever it is: a function that ran has run, and a value JSON cannot carry is told as one.

Does not catch what a function raises.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import TypeAdapter

from sessions_lib.messages import content

_SHOWN_BYTES = 64
_thread = threading.local()  # .depth: how many functions of others this thread is in
_lock = threading.Lock()
_count = 0  # of all threads


def run(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """What ``function`` returns; a coroutine is awaited, a generator read to its end."""
    with prints_to_stderr():
        returned = function(**arguments)
        if inspect.isawaitable(returned) or inspect.isasyncgen(returned):
            return _awaited(returned)
        return list(returned) if inspect.isgenerator(returned) else returned


def _awaited(returned: Any) -> Any:
    async def wait() -> Any:
        value = returned
        while inspect.isawaitable(value):  # one may return another
            value = await value
        if inspect.isasyncgen(value):
            return [item async for item in value]
        return list(value) if inspect.isgenerator(value) else value

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(wait())
    # Within a running loop, as in a notebook, no other can run in this thread.
    outcome: dict[str, Any] = {}
    context = contextvars.copy_context()

    def work() -> None:
        try:
            with prints_to_stderr():
                outcome["value"] = context.run(asyncio.run, wait())
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            outcome["error"] = error

    thread = threading.Thread(target=work, name="tool", daemon=True)
    thread.start()
    thread.join()
    if "error" in outcome:
        raise outcome["error"]
    return outcome["value"]


def as_text(returned: Any) -> str:
    """A returned value as a result's text: a text as it is, bytes that are one too, anything else as JSON.

    What JSON cannot carry is told in words: the call has not failed.
    """
    if isinstance(returned, str):
        return returned
    if isinstance(returned, bytes | bytearray | memoryview):
        return _bytes_as_text(bytes(returned))
    try:
        return TypeAdapter(Any).dump_json(returned).decode()
    except Exception:  # noqa: BLE001 - whatever an object of somebody's raises: it is told as it is
        return f"The tool ran, returned a {type(returned).__name__}, which is no JSON: {_shown(returned)}"


def _bytes_as_text(data: bytes) -> str:
    with contextlib.suppress(UnicodeDecodeError):
        if "\0" not in (text := data.decode()):
            return text
    start = repr(data[:_SHOWN_BYTES]) + ("…" if len(data) > _SHOWN_BYTES else "")
    return f"The tool ran, returned bytes that are no text ({content.size_text(len(data))}): {start}"


def _shown(value: Any) -> str:
    try:
        return repr(value)
    except Exception as error:  # noqa: BLE001 - an object of somebody's that cannot even be shown
        return f"it cannot be shown ({type(error).__name__})"


class _SplitOutput:
    """Standard output while functions of others run: what their threads write goes to standard error."""

    def __init__(self, usual: Any) -> None:
        self.usual = usual

    def write(self, text: str) -> int:
        """Write ``text`` where it belongs."""
        written: int = self._now.write(text)
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._now, name)

    @property
    def _now(self) -> Any:
        return sys.stderr if getattr(_thread, "depth", 0) else self.usual


@contextlib.contextmanager
def prints_to_stderr() -> Iterator[None]:
    """Within it, what this thread prints goes to standard error; other threads print where they did."""
    global _count
    with _lock:
        _count += 1
        if not isinstance(sys.stdout, _SplitOutput):
            sys.stdout = _SplitOutput(sys.stdout)
    _thread.depth = getattr(_thread, "depth", 0) + 1
    try:
        yield
    finally:
        _thread.depth -= 1
        with _lock:
            _count -= 1
            if not _count and isinstance(sys.stdout, _SplitOutput):
                sys.stdout = sys.stdout.usual
