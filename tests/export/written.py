"""What the tests of exports share: an export as one text, also where it is tables."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyarrow import parquet

from sessions_lib.export import export
from sessions_lib.export.redact import Redaction

TEXTS = [kind for kind, format in export.FORMATS.items() if format.tables is None]  # one file a session


def written(
    said: list[dict[str, Any]],
    meta: dict[str, Any],
    kind: str,
    *,
    redacted: bool = False,
    patterns: Sequence[str] = (),
) -> str:
    """The export in ``kind``; of tables every cell, as JSON."""
    if kind in TEXTS:
        return export.export(said, meta, kind, redacted=redacted, patterns=patterns)
    left = Redaction(patterns, is_on=redacted).leaving(said, meta)
    return cells(export.tables([left], kind))


def cells(files: Mapping[str, bytes]) -> str:
    """Every cell of some Parquet files."""
    tables = {name: parquet.read_table(io.BytesIO(data)).to_pylist() for name, data in files.items()}
    return json.dumps(tables, ensure_ascii=False, default=str)
