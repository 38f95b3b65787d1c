"""What a command printed, where its tool put a head before it: Codex's ``Chunk ID``, ``Wall time``, ``Exit code``.

Pure functions, and fast for a text of megabytes: only the head is read.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

_HEAD = re.compile(
    r"(?:Chunk ID|Wall time|Original token count|Total output lines|Process running with session ID"
    r"|(?:Process exited with code|Exit code):? (?P<code>-?\d{1,10})\b|Script (?:completed|running|failed))"
)
_MOST_LINES = 10
_MOST_JSON = 200_000  # a longer one is shown as it is


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """The exit code (``None``: it still runs, or nobody said), what was printed, and whether it still runs."""

    exit_code: int | None
    printed: str
    is_running: bool = False


def split(text: str) -> CommandOutput | None:
    """``text`` without its head; ``None`` if it has none.

    >>> split("Chunk ID: a2\\nProcess exited with code 1\\nOutput:\\nno such file")
    CommandOutput(exit_code=1, printed='no such file', is_running=False)
    """
    code, is_running, start = None, False, 0
    for number in range(_MOST_LINES):
        end = text.find("\n", start)
        line = text[start : end if end >= 0 else start + 200]
        if number and line.startswith("Output:"):
            printed = text[start + len("Output:") :].removeprefix(" ").removeprefix("\n")
            return CommandOutput(code, printed, is_running)
        if (head := _HEAD.match(line)) is None:
            return None
        code = int(head["code"]) if head["code"] else code
        is_running = is_running or line.startswith("Process running")
        if end < 0:
            break
        start = end + 1
    return CommandOutput(code, "") if code is not None else None


def gist(text: str) -> str:
    """What to say of a result on one line: what was printed, without the head; the exit code where that is nothing.

    >>> gist("Exit code: 1\\nWall time: 0.1 seconds\\nOutput:\\n")
    'exit code 1'
    """
    output = split(text) or _split_json(text)
    if output is None or output.printed.strip():
        return text if output is None else output.printed
    if output.exit_code is not None:
        return f"exit code {output.exit_code}"
    return "still running" if output.is_running else "no output"


def _split_json(text: str) -> CommandOutput | None:
    """The output of the first Codex: ``{"output": …, "metadata": {"exit_code": …}}``."""
    if not text.startswith('{"output":') or len(text) > _MOST_JSON:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    metadata = value.get("metadata")
    code = metadata.get("exit_code") if isinstance(metadata, dict) else None
    printed = value["output"]
    return CommandOutput(code if isinstance(code, int) else None, printed) if isinstance(printed, str) else None
