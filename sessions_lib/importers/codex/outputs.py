"""What a tool gave back, and whether it failed.

A command's output stands behind a head (``Chunk ID``, ``Wall time``, ``Process exited with code 1``), or in JSON with
an exit code; what went wrong before a command ran is a sentence. Only the head is looked at: what a command printed
says nothing of whether it failed.

Pure functions.
"""

from __future__ import annotations

import json
import re
from typing import Any

from sessions_lib.importers.codex.parts import image
from sessions_lib.messages import command_output, content

Record = dict[str, Any]

# What Codex says instead of an output where a tool did not do what it was called for.
_FAILED = re.compile(
    r"tool call error:|(?:error: )?failed to find expected|patch rejected|apply_patch verification failed"
    r"|(?:\S+ )?failed in sandbox"
    r"|(?:exec_command|write_stdin|apply_patch) failed|execution error:|failed to parse function arguments"
    r"|unsupported call|script (?:failed|error)|command timed out|exec command rejected|rejected by user",
    re.IGNORECASE,
)
_TELLS = re.compile(r'"(?:exit_code|success|is_error|isError)"')


def output_of(item: Record) -> tuple[Any, bool | None]:
    """A result's content, and whether it failed; ``None`` if it does not say."""
    output = item.get("output")
    told = [_told(item)]
    if isinstance(output, dict):
        told.append(_told(output))
        output = output.get("content", output.get("content_items", output))
    said = _joined(output) if isinstance(output, list) else content.as_text(output)
    told.append(has_failed(said if isinstance(said, str) else content.text({"content": said})))
    return said, True if True in told else next((one for one in told if one is not None), None)


def has_failed(text: str) -> bool | None:
    """Whether the output ``text`` is that of a failure; ``None`` if it does not say."""
    head = command_output.split(text)
    if head is not None and (head.exit_code is not None or head.is_running):
        return not head.is_running and head.exit_code != 0  # one that still runs is judged by who looks at it last
    start = text[:400].lstrip()
    if _FAILED.match(start):
        return True
    if start.startswith("{") and _TELLS.search(text):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return None
        return _told(value) if isinstance(value, dict) else None
    return None


def event_failed(event: Record) -> bool | None:
    """Whether the end of an operation (``exec_command_end``, ``CommandExecution``, …) was a failure."""
    result = event.get("result")
    if isinstance(result, dict):
        if "Err" in result:
            return True
        inner = result.get("Ok", result)
        told = _told(inner) if isinstance(inner, dict) else None
        if told is not None:
            return told
    if event.get("error"):
        return True
    return _told(event)


def _told(value: Record) -> bool | None:
    """What an object says of its success, by any of the names Codex has for it."""
    for holder in (value, value.get("metadata")):
        if isinstance(holder, dict) and isinstance(code := holder.get("exit_code"), int) and not isinstance(code, bool):
            return code != 0
    if isinstance(success := value.get("success"), bool):
        return not success
    for key in ("is_error", "isError"):
        if isinstance(is_error := value.get(key), bool):
            return is_error
    return True if value.get("status") in ("failed", "declined", "Failed", "Declined") else None


def _joined(parts: list[Any]) -> Any:
    """A result in parts: its texts joined, or parts of a message where there is an image."""
    objects = [part if isinstance(part, dict) else {"text": content.as_text(part)} for part in parts]
    if not any(part.get("type") == "input_image" for part in objects):
        return "\n".join(content.as_text(part.get("text", part)) for part in objects)
    return [
        image(part)
        if part.get("type") == "input_image"
        else {"type": "text", "text": content.as_text(part.get("text"))}
        for part in objects
    ]
