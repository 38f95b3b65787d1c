"""Plain calls of the commands that look, read without Typer's machinery.

Typer 0.29 checks every parameter through pydantic: importing it and building the adapters takes longer than listing a
hundred sessions. ``read`` reads the same signatures, and only what it understands fully: flags, counts, texts and lists
of texts. Everything else (``--help``, abbreviations, a wrong call) it leaves to Typer.

Does not judge: what it does not return, Typer explains.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any, get_args, get_type_hints

from typer.models import OptionInfo, ParameterInfo

_COUNT = re.compile("[1-9][0-9]{0,17}")  # whatever least value an option names but 1, Typer has to judge


def read(command: Callable[..., Any], arguments: Sequence[str]) -> dict[str, Any] | None:
    """The parameters of ``command`` in ``arguments``, or ``None`` for whatever needs Typer."""
    options, positions = _signature(command)
    found: dict[str, Any] = {}
    texts: list[str] = []
    waiting = list(arguments)
    while waiting:
        word = waiting.pop(0)
        if not word.startswith("-"):
            texts.append(word)
            continue
        name, kind = options.get(word, ("", None))
        if kind is bool:
            found[name] = True
        elif kind is not None and waiting and not waiting[0].startswith("-"):
            value = waiting.pop(0)
            if kind is int and not _COUNT.fullmatch(value):
                return None
            found[name] = [*found.get(name, ()), value] if kind is list else kind(value)
        else:
            return None
    return _with_positions(found, positions, texts)


def _signature(command: Callable[..., Any]) -> tuple[dict[str, tuple[str, Any]], list[tuple[str, Any, bool]]]:
    """Spelling → (parameter, its kind) for options; (parameter, kind, is required) for arguments."""
    hints = get_type_hints(command, include_extras=True)
    options: dict[str, tuple[str, Any]] = {}
    positions = []
    for name, parameter in inspect.signature(command).parameters.items():
        kind, *extras = get_args(hints[name])
        info = next(extra for extra in extras if isinstance(extra, ParameterInfo))
        if isinstance(info, OptionInfo):
            if _kind(kind) is int and (info.min != 1 or info.max is not None):
                continue
            # Inside Annotated, Typer keeps the first spelling where the default of old-style options stood.
            spellings = (info.default, *(info.param_decls or ()))
            options.update({spelling: (name, _kind(kind)) for spelling in spellings if isinstance(spelling, str)})
        else:
            positions.append((name, _kind(kind), parameter.default is parameter.empty))
    return options, positions


def _kind(annotation: Any) -> Any:
    """``bool``, ``int``, ``str`` or ``list``; ``None`` for what is none of them."""
    inside = [part for part in get_args(annotation) if part is not type(None)]
    if annotation in (bool, int, str) or annotation == list[str]:
        return list if annotation == list[str] else annotation
    return _kind(inside[0]) if len(inside) == 1 and annotation != list[str] else None


def _with_positions(
    found: dict[str, Any], positions: list[tuple[str, Any, bool]], texts: list[str]
) -> dict[str, Any] | None:
    for name, kind, is_required in positions:
        if kind is list and texts:
            found[name], texts = texts, []
        elif kind is str and texts:
            found[name] = texts.pop(0)
        elif is_required or kind is None:
            return None
    return None if texts else found
