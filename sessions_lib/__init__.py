"""Forkbook's library: agent sessions as JSONL files that can be resumed, forked, compared, merged and measured.

>>> from sessions_lib import Agent, Session, SessionManager, tool

The names below are imported when first used, so that ``forkbook list`` never waits for ``openai`` or ``pandas``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sessions_lib.agent import Agent
    from sessions_lib.errors import SessionError
    from sessions_lib.manager import SessionManager
    from sessions_lib.session import Session
    from sessions_lib.tools import tool

__all__ = ["Agent", "Session", "SessionError", "SessionManager", "tool"]

_HOMES = {
    "Agent": "agent",
    "Session": "session",
    "SessionError": "errors",
    "SessionManager": "manager",
    "tool": "tools",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
