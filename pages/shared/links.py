"""Links into the app: the query parameters that reopen a view. ``message`` counts from 1, as the pages say it.

Does not draw, and never trusts what it reads from an address.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

import streamlit as st


def to_chat(session: str, message: int | None = None) -> dict[str, str]:
    """Query parameters of the Chat page for ``session``, open at the message of index ``message`` if given."""
    return {"session": session} if message is None else {"session": session, "message": str(message + 1)}


def to_compare(*sessions: str) -> dict[str, str]:
    """Query parameters of the Compare page for two to four sessions: ``a``, ``b``, ``c``, ``d``."""
    return dict(zip("abcd", sessions, strict=False))


def to_trial(name: str) -> dict[str, str]:
    """Query parameters of the Trials page for the trial ``name``."""
    return {"trial": name}


def to_new_trial(session: str, at: int, prompt: str = "", others: Sequence[str] = ()) -> dict[str, str | list[str]]:
    """Query parameters of a trial to be set up: where it starts, what it asks, the branches that are its variants."""
    asked: dict[str, str | list[str]] = {"new": session, "at": str(at)}
    return {**asked, **({"prompt": prompt} if prompt else {}), **({"branch": list(others)} if others else {})}


def address(page: str, query: dict[str, str]) -> str:
    """The whole address of a view, for a person to copy: ``http://localhost:8501/chat?session=quest-1``."""
    here = (st.context.url or "").split("?")[0].rstrip("/")
    base = here.rsplit("/", 1)[0] if here.count("/") > 2 else here
    return f"{base}/{page}?{urlencode(query)}"


def asked(name: str) -> str | None:
    """The query parameter ``name`` as it was given, ``None`` without one."""
    given = st.query_params.get(name)
    return given if isinstance(given, str) and given else None


def asked_message() -> int | None:
    """The index of the message the address asks for; ``None`` without one or if it is no number."""
    given = asked("message")
    return int(given) - 1 if given and given.isascii() and given.isdigit() and len(given) < 10 and int(given) else None
