"""One answer out of several: the prompt that quotes what branches say after their shared start, each by its name.

Does not ask a model, and does not fork.
"""

from __future__ import annotations

import re

from sessions_lib import names
from sessions_lib.compare.comparison import LETTERS, Comparison
from sessions_lib.messages import content, tool_calls

_FENCE = re.compile(r"^[ >]*(`{3,}|~{3,})", re.MULTILINE)

_TASK = (
    "Below is what {count} branches of this conversation said after this point. Write the one answer that they should "
    "have given: keep what is right in each, leave out what is wrong, and say where they contradict each other."
)


def prompt(comparison: Comparison) -> str:
    """What a model is asked; each branch is quoted whole, under its letter and title, and can end no quotation."""
    start = comparison.shared.messages
    parts = [_TASK.format(count=len(comparison.branches))]
    for letter, branch in zip(LETTERS, comparison.branches, strict=False):
        said = []
        for message in branch.messages[start:]:
            words = content.text(message).strip()
            if message.get("role") == "user" and words:
                said.append(f"[asked] {words}")
            elif message.get("role") == "assistant":
                said += [f"[tool] {tool_calls.label(call, 200)}" for call in tool_calls.calls_of(message)]
                said += [f"[answered] {words}"] if words else []
        parts.append(
            f"Branch {letter}, “{names.one_line(branch.title)}”:\n\n{_fenced(chr(10).join(said) or '(nothing)')}"
        )
    return "\n\n".join(parts)


def _fenced(said: str) -> str:
    longest = max((len(found) for found in _FENCE.findall(said)), default=2)
    fence = "`" * (max(longest, 2) + 1)
    return f"{fence}text\n{said}\n{fence}"
