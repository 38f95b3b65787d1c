"""A plugin for the Agents SDK's own tests: where they make its SQLite session, they get ours."""

import tempfile
from typing import Any

import agents
import agents.memory

from sessions_lib.adapters.openai_agents import ForkbookSession


class Session(ForkbookSession):
    """Ours, made as the SDK's tests make theirs; two of one database are two of one folder."""

    def __init__(self, session_id: str, db_path: Any = ":memory:", *, session_settings: Any = None) -> None:
        place = tempfile.mkdtemp() if str(db_path) == ":memory:" else f"{db_path}.sessions"
        super().__init__(session_id, place, session_settings=session_settings)

    def close(self) -> None:
        """Nothing is open."""


agents.SQLiteSession = agents.memory.SQLiteSession = Session  # type: ignore[attr-defined,misc] # as a stand-in
