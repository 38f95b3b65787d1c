"""Verdicts: which branch of a comparison won, and why, kept in the metadata of each.

``"verdict": {"verdict": "won" | "lost", "against": [ids], "why": text, "when": time, "blind": true}``. A new verdict
replaces the old one. Found again with ``verdict:won``.

Does not judge: a person does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sessions_lib import times
from sessions_lib.errors import SessionError
from sessions_lib.store import records
from sessions_lib.store.manager import SessionManager

WON, LOST = "won", "lost"


def give(
    manager: SessionManager,
    winner: str,
    others: Sequence[str],
    why: str = "",
    tags: Iterable[str] = (),
    *,
    is_blind: bool = False,
) -> list[str]:
    """Say that ``winner`` is better than ``others``, and tag it with ``tags``; a sentence for each that failed.

    ``is_blind``: whoever judged did not know which was which.
    A session that is running can be judged; one that was deleted meanwhile is named, the others are written.
    """
    if not others or winner in others:
        raise SessionError("A verdict needs a winner and at least one other session.")
    failed = []
    for session_id in (winner, *others):
        against = [one for one in (winner, *others) if one != session_id] if session_id == winner else [winner]
        verdict: dict[str, Any] = {
            "verdict": WON if session_id == winner else LOST,
            "against": against,
            "when": times.now(),
        }
        if is_blind:
            verdict["blind"] = True
        if why.strip():
            verdict["why"] = why.strip()
        try:
            session = manager.open(session_id)
            session.update_meta({"verdict": verdict})
            if session_id == winner:
                for tag in tags:
                    session.add_tag(tag)
        except SessionError as error:
            failed.append(str(error))
    return failed


def take_back(manager: SessionManager, session_ids: Iterable[str]) -> None:
    """Remove the verdict of each session."""
    for session_id in session_ids:
        manager.open(session_id).update_meta({"verdict": None})


def of(meta: dict[str, Any]) -> dict[str, Any] | None:
    """The verdict in a session's metadata, or ``None`` if there is none that we understand."""
    name, given = records.verdict(meta), meta.get("verdict")
    if name not in (WON, LOST):
        return None
    return {**(given if isinstance(given, dict) else {}), "verdict": name}
