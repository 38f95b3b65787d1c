"""What is wrong with a session in the database, and its lines without it.

Only lines that were put there whole can be damaged: what is appended is sound. Does not decide who may mend.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sessions_lib.messages import encoding
from sessions_lib.messages.content import Message
from sessions_lib.store import checks
from sessions_lib.store.postgres import writing
from sessions_lib.store.postgres.database import Connection
from sessions_lib.store.postgres.rows import Damage, line_numbers, parsed, seq_of_lines
from sessions_lib.store.postgres.sessions import damage_of
from sessions_lib.store.records import LEFT_ALONE, Contents, Fault, as_told


def faults(session_id: str, known: Contents, damaged: Sequence[Damage], *, is_running: bool) -> list[Fault]:
    """Every fault of the session that was read into ``known``, messages first."""
    found = [
        Fault(session_id, session_id, one.line, one.kind, one.reason)
        for one in [*as_told(known.damaged), *known.glued]
        if not (is_running and one.kind == "torn")
    ]
    numbers = line_numbers(len(known.messages), damaged)
    found += checks.faults_of(
        session_id, session_id, known.messages, numbers, is_running=is_running or known.meta.waits
    )
    meta = checks.metadata_faults(session_id, known.meta, known.messages, is_there=True)
    return sorted(found, key=lambda fault: fault.line or 0) + meta


def mended(
    messages: Sequence[Message], lines: Sequence[str], damaged: Sequence[Damage]
) -> tuple[list[str], list[Damage]]:
    """The lines of ``messages`` with what is missing between them, and those damaged ones that no repair touches."""
    missing = checks.missing_results(messages)
    whole: list[str] = []
    left: list[Damage] = []
    waiting = [one for one in damaged if one.kind in LEFT_ALONE and not one.held]
    for index, line in enumerate([*lines, None]):
        while waiting and waiting[0].seq <= index:
            one = waiting.pop(0)
            left.append(Damage(len(whole) + len(left) + 1, len(whole), 0, one.raw, one.kind, one.reason))
        if line is not None:
            whole += [line, *(encoding.encode(result).decode() for result in missing.get(index, ()))]
    return whole, left


def lines(connection: Connection, n: int, count: int, numbers: Collection[int]) -> dict[int, str]:
    """The lines ``numbers`` of the session ``n``, which has ``count`` messages."""
    damaged = damage_of(connection, n)
    if damaged:
        wanted = {line: at for line, at in seq_of_lines(count, damaged) if line in numbers}
    else:  # most sessions: a line is a message
        wanted = {line: line - 1 for line in numbers if 0 < line <= count}
    seqs = {at for at in wanted.values() if isinstance(at, int)}
    asked = (
        "select p.seq, m.line from forkbook.place p join forkbook.message m on m.n = p.message "
        "where p.session = %s and p.seq = any(%s)"
    )
    by_seq: dict[int, str] = dict(connection.execute(asked, (n, list(seqs))).fetchall()) if seqs else {}
    return {
        line: by_seq.get(at, "") if isinstance(at, int) else at.raw.decode("utf-8", "surrogateescape")
        for line, at in sorted(wanted.items())
    }


def put_lines(connection: Connection, n: int, given: Sequence[str]) -> None:
    """Keep ``given`` as the lines of the session ``n``, which has none; an empty last one ends the line before it."""
    written = given[:-1] if given and not given[-1] else given
    rows, damaged = parsed(written)
    writing.put(connection, n, rows, range(len(rows)))
    writing.put_damage(connection, n, damaged)
    size = sum(len(line.encode("utf-8", "surrogateescape")) + 1 for line in given) - 1
    writing.put_counts(connection, n, messages=len(rows), lines=len(written), size=size)
