"""Import: reading and importing a folder of Claude Code files against merely parsing each of their lines.

``rows()`` lists what was measured; each is a ratio of two things measured in turns in the same run, with its bar from
the project's targets. Run alone: ``python -m tests.benchmarks.imports``. Processor time; the disk's is not in it.
"""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from sessions_lib import importers
from sessions_lib.manager import SessionManager
from tests.benchmarks.compare import ROUNDS, Row, ratio, text

FILES, TURNS = 40, 60


def claude_code(rng: random.Random, session: str) -> list[dict[str, Any]]:
    """A session as Claude Code writes it: a line a block, tokens repeated, large tool results stored twice; 3 kB a line, as in real files."""
    lines: list[dict[str, Any]] = [{"type": "summary", "summary": "s", "leafUuid": "none"}]
    parent: str | None = None
    for turn in range(TURNS):
        for step, (kind, blocks) in enumerate(turn_blocks(rng, f"{session}-{turn}")):
            uuid = f"{session}-{turn}-{step}"
            message: dict[str, Any] = {"role": kind, "content": blocks}
            record = {"type": kind, "uuid": uuid, "parentUuid": parent, "isSidechain": False, "sessionId": session}
            record |= {"timestamp": "2026-03-01T10:00:00.000Z", "cwd": "/w", "version": "2.1.7", "message": message}
            if kind == "assistant":
                message |= {"id": f"msg_{session}_{turn}_{step // 3}", "model": "m", "stop_reason": None}
                message["usage"] = {"input_tokens": 9, "cache_read_input_tokens": 900, "output_tokens": 50 + step}
            elif isinstance(blocks, list):
                record["toolUseResult"] = {"stdout": blocks[0]["content"], "stderr": ""}
            lines.append(record)
            parent = uuid
    return lines


def turn_blocks(rng: random.Random, name: str) -> list[tuple[str, Any]]:
    call = {"type": "tool_use", "id": f"toolu_{name}", "name": "Bash", "input": {"command": text(rng, 12)}}
    return [
        ("user", text(rng, 30)),
        ("assistant", [{"type": "thinking", "thinking": text(rng, 60), "signature": "x" * 300}]),
        ("assistant", [call]),
        ("user", [{"type": "tool_result", "tool_use_id": f"toolu_{name}", "content": text(rng, 1100)}]),
        ("assistant", [{"type": "text", "text": text(rng, 150)}]),
    ]


def rows(rounds: int = ROUNDS) -> list[Row]:
    """Reading alone, and reading with writing the sessions, each against parsing the lines."""
    rng = random.Random(7)
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "projects"
        folder.mkdir()
        for number in range(FILES):
            lines = claude_code(rng, f"s{number}")
            (folder / f"s{number}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        decoder = msgspec.json.Decoder()

        def parse() -> None:
            for path in folder.iterdir():
                with path.open("rb") as file:
                    assert len([decoder.decode(line) for line in file]) == 1 + 5 * TURNS

        def read() -> None:
            for path in folder.iterdir():
                (found,), _ = importers.read(path)
                assert len(found.messages) == 4 * TURNS

        def write() -> None:
            manager = SessionManager(Path(home) / "sessions")
            steps = list(importers.import_paths(manager, [folder]))
            assert sum(step.result.added_messages for step in steps if step.result) == FILES * 4 * TURNS
            shutil.rmtree(manager.folder)

        reading, mine, theirs = ratio(read, parse, rounds)
        writing, whole, _ = ratio(write, parse, rounds)
    return [
        Row("import: read Claude Code files / parse their lines", reading, 4.0, f"{mine:.3f} s / {theirs:.3f} s"),
        Row("import: a folder into sessions / parse its lines", writing, 6.0, f"{whole:.3f} s / {theirs:.3f} s"),
    ]


if __name__ == "__main__":
    for row in rows():
        print(f"{row.ratio:6.2f}  (at most {row.bar})  {row.name}  [{row.note}]")
