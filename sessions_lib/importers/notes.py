"""What stands between prompts and answers as ``system`` notes: what a tool said itself, and records of unknown kinds.

Does not know any tool's format.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessions_lib.importers.imported import UNKNOWN_KIND, ImportReport, texts_in
from sessions_lib.messages.content import Message


def note(text: str, kind: str, plain: Mapping[str, Any]) -> list[Message]:
    """A note of ``kind`` with ``plain`` (id, time); none without a text."""
    return [{"role": "system", "content": text, **plain, "source": {"kind": kind}}] if text.strip() else []


def unknown(record: Mapping[str, Any], label: str, plain: Mapping[str, Any], report: ImportReport) -> list[Message]:
    """The texts in a record of a kind that is not known, as a note that says so; one without is counted as skipped."""
    texts = texts_in(record)
    if not texts:
        report.skipped[label] += 1
        return []
    report.unknown[label] += 1
    source = {"kind": UNKNOWN_KIND, "type": label, "record": dict(record)}
    return [{"role": "system", "content": "\n".join(texts), **plain, "source": source}]
