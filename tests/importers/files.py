"""Small files for the importers' tests: records typed in, files of ``data``, and the corpus where it is there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parent / "data"  # made for these tests, in the shape of each tool's files
CORPUS = Path(__file__).parents[3] / "shared" / "corpus"  # real files, beside the project


def corpus(name: str) -> Path:
    """A file of the corpus; where there is none the test is skipped, and fails in CI, which has to have it."""
    path = CORPUS / name
    if not path.exists():
        reason = f"the corpus is not beside the project: no {name}"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    return path


def write_lines(path: Path, *records: Any) -> Path:
    """``records`` as JSON lines; a string is written as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def claude(kind: str, uuid: str, parent: str | None, said: Any, **more: Any) -> dict[str, Any]:
    """A Claude Code record; an answer's ``message`` keys are given as ``id``, ``usage``, ``stop_reason``, ``model``."""
    message: dict[str, Any] = {"role": kind, "content": said}
    if kind == "assistant":
        message |= {"id": more.pop("id", f"msg_{uuid}"), "model": more.pop("model", "m-1"), "type": "message"}
        message["stop_reason"] = more.pop("stop_reason", None)
        if "usage" in more:
            message["usage"] = more.pop("usage")
    record = {"type": kind, "uuid": uuid, "parentUuid": parent, "isSidechain": False, "sessionId": "s1"}
    return {**record, "timestamp": f"2026-03-01T10:00:{len(uuid):02d}.000Z", "message": message, **more}


def text(said: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": said}]


def call(call_id: str, name: str, **given: Any) -> list[dict[str, Any]]:
    return [{"type": "tool_use", "id": call_id, "name": name, "input": given}]


def result(call_id: str, said: Any, **more: Any) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": call_id, "content": said, **more}]


def spent(sent: int, output: int, *, written: int = 0, read: int = 0) -> dict[str, int]:
    """Tokens as Anthropic reports them."""
    return {
        "input_tokens": sent,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "output_tokens": output,
    }


def codex(kind: str, **payload: Any) -> dict[str, Any]:
    """A wrapped Codex record."""
    return {"timestamp": "2026-03-01T10:00:00.000Z", "type": kind, "payload": payload}


def item_text(role: str, said: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return codex("response_item", type="message", role=role, content=[{"type": kind, "text": said}])


def tokens(total: int, last: int, *, cached: int = 0) -> dict[str, Any]:
    def numbers(count: int) -> dict[str, int]:
        return {"input_tokens": count - 10, "cached_input_tokens": cached, "output_tokens": 10, "total_tokens": count}

    return codex(
        "event_msg", type="token_count", info={"total_token_usage": numbers(total), "last_token_usage": numbers(last)}
    )


def said(messages: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    """Role and content of each message; of a call its tool's name, of a result its content."""
    found = []
    for message in messages:
        calls = [f"{c['function']['name']}()" for c in message.get("tool_calls", [])]
        found.append((message["role"], message["content"] if not calls else [message["content"], *calls]))
    return found


def screen(kind: str, **item: Any) -> dict[str, Any]:
    """An item as the screen of Codex 0.147 and later shows it."""
    return codex("event_msg", type="item_completed", thread_id="t1", turn_id="u1", item={"type": kind, **item})


def screen_text(role: str, said: str) -> dict[str, Any]:
    """A text as the screen of Codex 0.147 and later shows it."""
    if role == "user":
        return screen("UserMessage", content=[{"type": "text", "text": said}])
    return screen("AgentMessage", content=[{"type": "Text", "text": said}])
