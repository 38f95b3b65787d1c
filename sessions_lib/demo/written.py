"""A written turn as messages: with times, tokens and durations that are made up, the same for the same seed.

Does not store anything.
"""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

from sessions_lib import messages, times
from sessions_lib.demo.samples import Turn
from sessions_lib.messages.content import Message


def written(turn: Turn, model: str, start: datetime, dice: random.Random, sent: int) -> list[Message]:
    """A turn's messages with times and costs; ``sent`` is how many tokens the conversation had before."""
    moment = start
    said: list[Message] = [at(moment, {"role": "user", "content": turn.prompt})]
    sent += len(turn.prompt) // 4 + 8
    for number, step in enumerate(turn.steps):
        moment += timedelta(seconds=dice.randrange(1, 5))
        call_id = f"call_{dice.randrange(16**8):08x}"
        function = {"name": step.tool, "arguments": step.arguments}
        call = {"id": call_id, "type": "function", "function": function}
        asked = {"role": "assistant", "content": None, "tool_calls": [call], "finish_reason": "tool_calls"}
        said.append(at(moment, {**asked, **_cost(model, sent + 40 * number, step.arguments, dice)}))
        result = {"role": "tool", "tool_call_id": call_id, "name": step.tool, "content": step.result}
        marks = {"is_error": step.failed, "effect": step.effect, "duration_ms": dice.randrange(20, 1800)}
        moment += timedelta(seconds=1)
        said.append(at(moment, {**result, **marks}))
    moment += timedelta(seconds=dice.randrange(2, 9))
    ending = {"finish_reason": turn.finish} if turn.finish else {"interrupted": True}
    answer = {"role": "assistant", "content": turn.answer, **ending}
    said.append(at(moment, {**answer, **_cost(model, sent + 40 * len(turn.steps), turn.answer, dice)}))
    return said


def _cost(model: str, sent: int, written: str, dice: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {"model": model, "duration_ms": dice.randrange(700, 6000)}
    found["first_token_ms"] = found["duration_ms"] // dice.randrange(3, 9)
    output = len(written) // 3 + dice.randrange(4, 30)
    if model.endswith("local") and dice.random() < 0.5:
        return found  # many local servers report nothing: unknown, not 0
    usage: dict[str, Any] = {"prompt_tokens": sent, "completion_tokens": output, "total_tokens": sent + output}
    if model.endswith("large"):
        usage["prompt_tokens_details"] = {"cached_tokens": sent // 2}
    return {**found, "usage": usage}


def at(moment: datetime, message: Message) -> Message:
    """``message`` as it is stored, said at ``moment``."""
    return messages.stamped({**message, "timestamp": times.iso(moment)})
