"""What Codex puts into the user's mouth: instructions, the environment, notices, the summary of a compaction.

What a person typed stands in the screen's own record of it (``user_message``, ``UserMessage``); the lists here are for
what has none. Text is injected if it is nothing but blocks of tags, or the instructions of a project.

Pure functions, linear in the text, whatever it holds.
"""

from __future__ import annotations

import re

_KNOWN = frozenset(
    {"environment_context", "user_instructions", "permissions instructions", "collaboration_mode", "turn_aborted"}
    | {"skill", "skills", "skills_instructions", "apps_instructions", "plugins_instructions", "INSTRUCTIONS"}
    | {"subagent_notification", "user_shell_command", "model_switch", "personality_spec", "recommended_plugins"}
    | {"in-app-browser-context", "codex_internal_context", "multi_agent_mode", "app-context", "task-notification"}
    | {"hook_prompt", "goal_context", "user_action"}
)
_INSTRUCTIONS = re.compile(r"\s*# [^\n]*instructions for [^\n]*\n\s*<INSTRUCTIONS>")
_OPENS = re.compile(r"\s*<([A-Za-z][^<>/\s]{0,60})((?:\s[^<>]{0,500})?)>")
_SUMMARY = re.compile(r"\s*Another language model started to solve this problem and produced a summary[^\n:]{0,600}:")
_COMMAND = re.compile(
    r"\s*<user_shell_command>\s*<command>\n?(.*?)\n?</command>\s*<result>\n?(.*)\n?</result>\s*</user_shell_command>\s*\Z",
    re.DOTALL,
)
_MOST_BLOCKS = 50


def tags_of(text: str) -> list[str] | None:
    """The names of the blocks that ``text`` is made of; ``None`` if there is anything else in it.

    >>> tags_of("<tips>\\nUse tabs.\\n</tips> <environment_context>/w</environment_context>")
    ['tips', 'environment_context']
    """
    names: list[str] = []
    at = 0
    while len(names) < _MOST_BLOCKS:
        if instructions := _INSTRUCTIONS.match(text, at):
            name, start = "INSTRUCTIONS", instructions.end()
        elif opened := _OPENS.match(text, at):
            name, start = opened[1], opened.end()
            if text.find(f"</{name}>", start) < 0:
                name += opened[2].rstrip()  # ``<permissions instructions>``
        else:
            break
        closing = f"</{name}>"
        end = text.find(closing, start)
        if end < 0:
            return None
        names.append(name)
        at = end + len(closing)
        if text.rstrip().endswith(closing) and not _begins_a_block(text, at):
            return names  # the block holds its own tag: its last end is the one
    return names if names and not text[at:].strip() else None


def _begins_a_block(text: str, at: int) -> bool:
    return not text[at:].strip() or _OPENS.match(text, at) is not None or _INSTRUCTIONS.match(text, at) is not None


def is_known(names: list[str] | None) -> bool:
    """True if Codex injects blocks of these names."""
    return bool(names) and all(name in _KNOWN for name in names or ())


def summary_in(text: str) -> str | None:
    """The summary of a compaction that Codex gave the model as if it had been typed; ``None`` if it is none."""
    return text[found.end() :].strip() if (found := _SUMMARY.match(text)) else None


def command_in(text: str) -> tuple[str, str] | None:
    """What a person ran in the shell, and what came of it; ``None`` if ``text`` tells of no such thing."""
    found = _COMMAND.match(text)
    return (found[1], found[2].rstrip("\n")) if found else None
