"""OpenAI Agents SDK: the database of its ``SQLiteSession`` and ``AdvancedSQLiteSession``.

The rows of ``agent_messages`` are Responses items, by session. The advanced one tells branches (``message_structure``)
and the tokens of each turn (``turn_usage``), which are put on the turn's last answer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sessions_lib import times
from sessions_lib.importers import databases
from sessions_lib.importers.agents.responses import conversation
from sessions_lib.importers.imported import Imported, ImportReport, common, fill_times, iso, set_usage
from sessions_lib.importers.reader import Reader
from sessions_lib.importers.source import Records, Source
from sessions_lib.importers.unique_ids import unique
from sessions_lib.messages import content, encoding
from sessions_lib.messages.content import Message

Row = dict[str, Any]
_MAIN = "main"


def looks_like(records: Records) -> bool:
    """True for a database with the SDK's tables."""
    return {"agent_sessions", "agent_messages"} <= databases.tables(records).keys()


def read(source: Source, records: Records, report: ImportReport) -> list[Imported]:
    """Every session, and its branches as forks of it."""
    with databases.opened(source) as connection:
        sessions = list(databases.rows(connection, "SELECT * FROM agent_sessions ORDER BY rowid"))
        said: dict[str, list[Row]] = {}
        for row in databases.rows(connection, "SELECT * FROM agent_messages ORDER BY id"):
            said.setdefault(content.as_text(row["session_id"]), []).append(row)
        placed: dict[str, dict[str, list[Row]]] = {}
        if "branch_id" in databases.columns(connection, "message_structure"):
            query = "SELECT * FROM message_structure ORDER BY sequence_number"
            for row in databases.rows(connection, query):
                branches = placed.setdefault(content.as_text(row["session_id"]), {})
                branches.setdefault(content.as_text(row["branch_id"]), []).append(row)
        spent: dict[tuple[str, str], list[Row]] = {}
        if "user_turn_number" in databases.columns(connection, "turn_usage"):
            for row in databases.rows(connection, "SELECT * FROM turn_usage ORDER BY user_turn_number"):
                key = content.as_text(row["session_id"]), content.as_text(row.get("branch_id"))
                spent.setdefault(key, []).append(row)
    found: list[Imported] = []
    for session in sessions:
        own = content.as_text(session["session_id"])
        found += _session(own, session, said.get(own, []), placed.get(own, {}), spent, report)
    return found


def _session(
    own: str,
    session: Row,
    listed: list[Row],
    placed: Mapping[str, list[Row]],
    spent: Mapping[tuple[str, str], list[Row]],
    report: ImportReport,
) -> list[Imported]:
    by_id = {row["id"]: row for row in listed}
    lines = {
        branch: [by_id[r["message_id"]] for r in rows if r["message_id"] in by_id] for branch, rows in placed.items()
    }
    lines = {branch: rows for branch, rows in lines.items() if rows} or {_MAIN: listed}
    names = sorted(lines, key=lambda branch: branch != _MAIN)
    key = f"agents-sdk:{own}:{session.get('created_at')}"
    found: list[Imported] = []
    ids: list[list[str]] = []
    for branch in names:
        messages = _messages(key, lines[branch], report if not found else ImportReport())
        if not messages:
            continue
        _spend(messages, spent.get((own, branch), []))
        fill_times(messages, iso(session.get("created_at")))
        own_ids = [message["id"] for message in messages]
        shared = max((common(own_ids, other) for other in ids), default=0)
        if found and shared == len(messages):
            continue
        found.append(
            Imported(
                key=key if not found else f"{key}#{branch}",
                conversation=key,
                title=own if not found else f"{own}: {branch}",
                messages=messages,
                parent_key=key if found else None,
                shared=shared,
                source={"session": own},
                created=times.parse(session.get("created_at")),
            )
        )
        ids.append(own_ids)
    return found


def _messages(key: str, rows: list[Row], report: ImportReport) -> list[Message]:
    listed: list[Row] = []
    for row in rows:
        try:
            item = encoding.decode(content.as_text(row["message_data"]).encode())
        except ValueError:
            report.skipped["row that is not JSON"] += 1
            continue
        if isinstance(item, dict):
            listed.append({**item, "_row": row})
        else:
            report.skipped["row that is no item"] += 1
    made = conversation(listed, report)
    for message in made:
        row = message["items"][0]["_row"]
        message["items"] = [{k: v for k, v in item.items() if k != "_row"} for item in message["items"]]
        message["id"] = f"{key}:{row['id']}"
        if (moment := iso(row.get("created_at"))) is not None:
            message["timestamp"] = moment
    return unique(made)


def _spend(messages: list[Message], turns: list[Row]) -> None:
    """Put each turn's tokens on its last answer."""
    ends: dict[int, Message] = {}
    turn = 0
    for message in messages:
        turn += message["role"] == "user"
        if message["role"] == "assistant":
            ends[turn] = message
    for row in turns:
        answer = ends.get(row["user_turn_number"])
        if answer is not None and "usage" not in answer:
            told = {name: row.get(name) for name in ("input_tokens", "output_tokens", "total_tokens", "requests")}
            for name in ("input_tokens_details", "output_tokens_details"):
                if isinstance(row.get(name), str):
                    told[name] = _decoded(row[name])
            set_usage(answer, {name: value for name, value in told.items() if value is not None})


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


READER = Reader("agents-sdk", "OpenAI Agents SDK database", looks_like, read, aliases=("openai-agents", "agents"))
