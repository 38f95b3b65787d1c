"""Forkbook's library: agent sessions as JSONL files that can be resumed, forked, compared, merged and measured.

>>> from sessions_lib import Agent, Session, SessionManager, tool

The names below are imported when first used, so that ``forkbook list`` never waits for ``openai`` or ``pandas``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sessions_lib.agent.agent import Agent
    from sessions_lib.agent.tools import tool
    from sessions_lib.errors import SessionError
    from sessions_lib.store.manager import SessionManager
    from sessions_lib.store.session import Session

__all__ = ["Agent", "Session", "SessionError", "SessionManager", "tool"]

_HOMES = {
    "Agent": "agent.agent",
    "Session": "store.session",
    "SessionError": "errors",
    "SessionManager": "store.manager",
    "tool": "agent.tools",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
