"""A process to be killed: appends to a session and runs tool loops, saying what is on disk after each message."""

from __future__ import annotations

import random
from multiprocessing.connection import Connection

from sessions_lib import SessionManager
from tests.record import call, result


def main(folder: str, session_id: str, seed: int, acknowledge: Connection) -> None:
    """Write until killed; the id of each message goes through ``acknowledge`` once ``append`` has returned."""
    chance = random.Random(seed)
    session = SessionManager(folder).open_or_create(session_id)
    number = 0
    while True:
        number += 1
        size = chance.choice([10, 5_000, 4_000_000])
        turn = [
            {"role": "user", "content": f"{seed}-{number} " + "é" * (size // 2)},
            call(f"c{number}", f"d{number}"),
            result(f"c{number}", "x" * size),
            result(f"d{number}", "y"),
            {"role": "assistant", "content": "done"},
        ]
        for message in turn:
            acknowledge.send_bytes(session.append(message)["id"].encode())
