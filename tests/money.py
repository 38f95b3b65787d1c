"""Sessions with money typed in by hand: priced, unpriced, unmetered, unknown, forks of forks, a price that changes.

What was spent, each message once: $1.809 (``ONCE``), and beside it 1,550 tokens without a price, 700 without a meter.
Forks hold $0.549 again.
"""

from __future__ import annotations

from typing import Any

from sessions_lib.store.manager import SessionManager

ONCE = 1.809
AGAIN = 0.549
CACHED = {  # 1,000 × 3 + 50,000 × 0.30 + 4,000 × 3.75 + 6,000 × 6 + 2,000 × 15 = 99,000 millionths of a dollar
    "prompt_tokens": 61_000,
    "completion_tokens": 2_000,
    "total_tokens": 63_000,
    "prompt_tokens_details": {"cached_tokens": 50_000, "cache_write_tokens": 10_000, "cache_write_1h_tokens": 6_000},
}
LOCAL = {"base_url": "http://127.0.0.1:11434/v1", "model": "llama3.1"}
# What was spent in each session itself, and the tokens that have no price and no meter.
OWN = {
    "parent": (0.45, 0, 0),
    "fork": (0.099, 0, 0),
    "grandchild": (1.25, 0, 0),
    "mystery": (None, 1_500, 0),
    "local": (None, 0, 700),
    "silent": (None, 0, 0),
    "mixed": (0.01, 50, 0),
}
INHERITED = {"fork": (0.225, 0, 0), "grandchild": (0.324, 0, 0)}


def usage(sent: int, made: int) -> dict[str, Any]:
    return {"prompt_tokens": sent, "completion_tokens": made, "total_tokens": sent + made}


def turn(name: str, minute: int, model: str | None, reported: Any, **more: Any) -> list[dict[str, Any]]:
    """A prompt and its answer of 1 November 2026, ``minute`` minutes after ten."""
    stamp = f"2026-11-01T10:{minute:02}:00.000Z"
    asked = {"role": "user", "content": f"Prompt of {name} {minute}", "id": f"{name}-p{minute}", "timestamp": stamp}
    answer = {"role": "assistant", "content": "Yes.", "id": f"{name}-a{minute}", "timestamp": stamp}
    return [asked, {**answer, "model": model, "finish_reason": "stop", "usage": reported, **more}]


def fill(manager: SessionManager) -> None:
    """Make the sessions."""
    parent = manager.create("Parent", ["paid"], "parent")
    parent.extend(
        [*turn("parent", 1, "gpt-5", usage(100_000, 10_000)), *turn("parent", 2, "gpt-5", usage(100_000, 10_000))]
    )
    fork = parent.fork("fork", at=2)
    fork.extend(turn("fork", 3, "claude-sonnet-4-5", CACHED))
    grandchild = fork.fork("grandchild")
    grandchild.extend(turn("grandchild", 4, "gpt-5", usage(1_000_000, 0)))
    for name, meta, said in (
        ("mystery", {}, turn("mystery", 5, "mystery-9000", usage(1_000, 500))),
        ("local", LOCAL, turn("local", 6, "llama3.1", usage(600, 100))),
        ("silent", {}, turn("silent", 7, "gpt-5", None)),
        ("mixed", {}, [*turn("mixed", 8, "gpt-5", usage(8_000, 0)), *turn("mixed", 9, "mystery-9000", usage(40, 10))]),
    ):
        manager.create(name.title(), ["odd"], name, **meta).extend(said)


# What each turn of ``vary`` cost, and all of it.
VARIED = ("$1.40", "$0.28", "$1.20", "$0.075", "$0.023")
VARIED_SUM = 2.980256
_ADVISED = [
    {"prompt_tokens": 1_000, "completion_tokens": 500},  # 0.0105, of its own
    {"prompt_tokens": 2_000, "completion_tokens": 100, "model": "claude-opus-4-5"},  # 0.0125, of the advisor
]


def vary(manager: SessionManager) -> None:
    """Make the session ``varied``: a price that changes, reasoning, a tier at 200,000, a batch, an advisor."""
    thought = {**usage(100_000, 10_000), "completion_tokens_details": {"reasoning_tokens": 9_000}}
    said = [
        *_at("2025-06-09", turn("varied", 1, "o3", usage(100_000, 10_000))),
        *_at("2025-06-10", turn("varied", 2, "o3", thought)),
        *turn("varied", 3, "claude-sonnet-4-5", usage(200_001, 100)),
        *turn("varied", 4, "claude-haiku-4-5", {**usage(100_000, 10_000), "service_tier": "batch"}),
        *turn("varied", 5, "claude-sonnet-4-5", {**usage(3_000, 600), "model_calls": _ADVISED}),
    ]
    manager.create("Varied", session_id="varied").extend(said)


def _at(day: str, said: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**message, "timestamp": day + message["timestamp"][10:]} for message in said]
