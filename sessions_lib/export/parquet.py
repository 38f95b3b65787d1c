"""Sessions as two Parquet tables, which DuckDB, Polars, Spark and pandas read as they are: messages, and sessions.

``own`` is false for a message that a fork copied from its parent, and for one that stands in an earlier session of the
same export as well (a merge): sums over ``own`` count each message once, as ``forkbook stats`` does over the same
sessions, as long as their parents are among them. Tokens and dollars are of the answer alone, unknown is null and
never 0; ``input`` includes ``cached`` and ``cache_write``, ``output`` includes ``reasoning``. ``cost`` is in US
dollars at the prices of ``price_version``; ``unpriced`` and ``unmetered`` are the tokens that have none. Times are UTC.

Does not read or write files.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sessions_lib import messages, prices, times
from sessions_lib.export import facts
from sessions_lib.messages import content, model_calls, tool_calls, usage
from sessions_lib.messages.content import Message
from sessions_lib.store import records

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 20_000  # of messages, held in memory before they are written


def tables(sessions: Iterable[tuple[Sequence[Message], Mapping[str, Any]]]) -> dict[str, bytes]:
    """``messages.parquet`` and ``sessions.parquet`` of some sessions: messages, and metadata with ``id``."""
    import pyarrow as pa  # comes with Streamlit; when first used

    said_table, session_table = _Table(_message_schema(pa)), _Table(_session_schema(pa))
    seen: set[str] = set()
    for said, meta in sessions:
        said_table.add(_message_rows(said, meta, seen))
        session_table.add([_session_row(said, meta)])
    return {"messages.parquet": said_table.file(), "sessions.parquet": session_table.file()}


class _Table:
    """One file in memory, written a group of rows at a time."""

    def __init__(self, schema: pa.Schema) -> None:
        from pyarrow import parquet

        self._held = io.BytesIO()
        self._schema = schema
        self._writer = parquet.ParquetWriter(self._held, schema, compression="zstd")
        self._rows: list[dict[str, Any]] = []

    def add(self, rows: Iterable[dict[str, Any]]) -> None:
        self._rows += rows
        if len(self._rows) >= _ROWS:
            self._write()

    def _write(self) -> None:
        import pyarrow as pa

        rows = [messages.clean(row) for row in self._rows]
        self._writer.write_table(pa.Table.from_pylist(rows, self._schema))
        self._rows.clear()

    def file(self) -> bytes:
        self._write()
        self._writer.close()
        return self._held.getvalue()


def _message_schema(pa: Any) -> pa.Schema:
    call = pa.struct([("id", pa.string()), ("name", pa.string()), ("arguments", pa.string())])
    counts = ("input", "cached", "cache_write", "output", "reasoning", "total")
    return pa.schema(
        [
            ("session", pa.string()),
            ("seq", pa.int64()),
            ("id", pa.string()),
            ("own", pa.bool_()),
            ("role", pa.string()),
            ("model", pa.string()),
            ("at", pa.timestamp("us", tz="UTC")),
            ("said", pa.string()),
            ("reasoning_text", pa.string()),
            ("tool_calls", pa.list_(call)),
            ("tool_name", pa.string()),
            ("tool_args", pa.string()),
            ("is_error", pa.bool_()),
            ("finish_reason", pa.string()),
            ("duration_ms", pa.int64()),
            *((name, pa.int64()) for name in counts),
            ("cost", pa.float64()),
            ("unpriced", pa.int64()),
            ("unmetered", pa.int64()),
            ("price_version", pa.string()),
        ]
    )


def _session_schema(pa: Any) -> pa.Schema:
    texts = ("model", "base_url", "system", "tool", "verdict", "why")
    return pa.schema(
        [
            ("id", pa.string()),
            ("title", pa.string()),
            ("tags", pa.list_(pa.string())),
            ("created", pa.timestamp("us", tz="UTC")),
            ("parent", pa.string()),
            ("fork_at", pa.int64()),
            ("merged_from", pa.list_(pa.string())),
            ("messages", pa.int64()),
            ("turns", pa.int64()),
            ("against", pa.list_(pa.string())),
            *((name, pa.string()) for name in texts),
        ]
    )


def _message_rows(said: Sequence[Message], meta: Mapping[str, Any], seen: set[str]) -> Iterator[dict[str, Any]]:
    """The rows of a session; the identities of its own messages join ``seen``."""
    origin = facts.fork_point(meta)
    inherited = origin[1] if origin else 0
    settings, moments, version = prices.settings_of(meta), messages.effective_times(said), prices.version()
    last = max((moment for moment in moments if moment), default=None)
    calls_answered = {
        step.result_message: step.call for step in tool_calls.pair(said).steps if step.result_message is not None
    }
    identities, ids = messages.identities(said), messages.ids(said)
    for index, message in enumerate(said):
        is_own = index >= inherited and identities[index] not in seen
        if is_own:
            seen.add(identities[index])
        is_answer = message.get("role") == "assistant"
        made = model_calls.of(message)
        host = prices.host_of(message, settings)
        money = prices.spent((call, moments[index] or last, host) for call in made)
        tokens = (usage.of(message) if is_answer else None) or usage.Usage()
        call = calls_answered.get(index)
        yield {
            "session": content.as_text(meta.get("id")),
            "seq": index,
            "id": ids[index],
            "own": is_own,
            "role": content.as_text(message.get("role")),
            "model": (content.as_text(message.get("model")) or None) if is_answer else None,
            "at": times.parse(message.get("timestamp")),
            "said": facts.said(message),
            "reasoning_text": content.reasoning(message) or None,
            "tool_calls": [
                {"id": one.id, "name": one.name, "arguments": one.arguments} for one in tool_calls.calls_of(message)
            ],
            "tool_name": (content.as_text(message.get("name")) or (call.name if call else "")) or None
            if message.get("role") == "tool"
            else None,
            "tool_args": call.arguments if call else None,
            "is_error": bool(message.get("is_error")) if message.get("role") == "tool" else None,
            "finish_reason": content.as_text(message.get("finish_reason")) or None,
            "duration_ms": times.milliseconds(message.get("duration_ms")),
            "input": tokens.input,
            "cached": tokens.cached,
            "cache_write": usage.add(*(one.written for one in made)),
            "output": tokens.output,
            "reasoning": tokens.reasoning,
            "total": tokens.total,
            "cost": money.cost,
            "unpriced": money.unpriced,
            "unmetered": money.unmetered,
            "price_version": version if made else None,
        }


def _session_row(said: Sequence[Message], meta: Mapping[str, Any]) -> dict[str, Any]:
    read, origin = records.Metadata(dict(meta)), facts.fork_point(meta)
    verdict, source = meta.get("verdict"), meta.get("imported_from")
    about = verdict if isinstance(verdict, Mapping) else {}
    return {
        "id": content.as_text(meta.get("id")),
        "title": facts.title(said, meta),
        "tags": facts.tags(meta),
        "created": read.created,
        "parent": origin[0] if origin else None,
        "fork_at": min(origin[1], len(said)) if origin else None,
        "merged_from": _texts(meta.get("merged_from")),
        "messages": len(said),
        "turns": messages.turn_count(said),
        "model": content.as_text(meta.get("model")) or None,
        "base_url": content.as_text(meta.get("base_url")) or None,
        "system": content.as_text(meta.get("system")) or None,
        "tool": (content.as_text(source.get("tool")) or None) if isinstance(source, Mapping) else None,
        "verdict": records.verdict(meta) or None,
        "against": _texts(about.get("against")),
        "why": content.as_text(about.get("why")) or None,
    }


def _texts(value: Any) -> list[str]:
    return [content.as_text(one) for one in value] if isinstance(value, list) else []
