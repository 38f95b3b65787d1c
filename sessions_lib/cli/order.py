"""Options before their command: ``forkbook --dir X import`` is ``forkbook import --dir X``.

Does not judge: what it does not understand it leaves as it is, and Typer explains.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, get_args, get_type_hints

from typer.models import OptionInfo

from sessions_lib.cli import commands

_ABOUT = ("--help", "-h", "--version")


def in_order(arguments: Sequence[str], names: Collection[str] = (*commands.COMMANDS, "sessions")) -> list[str]:
    """``arguments`` with the command first, and behind it what stood before it."""
    first = arguments[0] if arguments else ""
    if first == "sessions" and first in names:
        return [first, *in_order(arguments[1:], commands.SEEDS)]
    if not first.startswith("-") or first in _ABOUT:
        return list(arguments)
    for place, name in enumerate(arguments):
        options = arguments[:place]
        if name == "sessions" and name in names and _are_options(options, *map(commands.function, commands.SEEDS)):
            return [name, *in_order([*options, *arguments[place + 1 :]], commands.SEEDS)]
        if name in names and name != "sessions" and _are_options(options, commands.function(name)):
            return [name, *options, *arguments[place + 1 :]]
    return _without_command(arguments)


def _without_command(arguments: Sequence[str]) -> list[str]:
    """What is asked about the program itself, or the word that may have been meant for a command first."""
    if about := [word for word in arguments if word in _ABOUT]:
        return about
    usual = [commands.function(name) for name in ("list", "delete")]  # they have --dir, --json and --yes
    for place, word in enumerate(arguments):
        if not word.startswith("-") and _are_options(arguments[:place], *usual):
            return [word, *arguments[:place], *arguments[place + 1 :]]
    is_usual = any(arguments[0].partition("=")[0] in _spellings(function) for function in usual)
    return [] if is_usual else list(arguments)


def _are_options(words: Sequence[str], *functions: Callable[..., Any]) -> bool:
    """True if ``words`` are options of one of ``functions``, each with its value."""
    return any(_leaves_nothing(words, _spellings(function)) for function in functions)


def _leaves_nothing(words: Sequence[str], spellings: dict[str, bool]) -> bool:
    is_value = False
    for word in words:
        if is_value:
            is_value = False
        elif word in spellings:
            is_value = spellings[word]
        elif not (spellings.get(word.partition("=")[0]) or (word[:2] != "--" and spellings.get(word[:2]))):
            return False
    return not is_value


def _spellings(function: Callable[..., Any]) -> dict[str, bool]:
    """The spellings of a command's options, and whether a value follows."""
    found: dict[str, bool] = {}
    for name, hint in get_type_hints(function, include_extras=True).items():
        kind, *extras = get_args(hint) or (None,)
        for info in extras:
            if isinstance(info, OptionInfo):
                # Inside Annotated, Typer keeps the first spelling where the default of old-style options stood.
                given = [text for text in (info.default, *(info.param_decls or ())) if isinstance(text, str)]
                for spelling in "/".join(given or [f"--{name.replace('_', '-')}"]).split("/"):
                    found[spelling] = kind is not bool and bool not in get_args(kind)
    return found
