"""What branches were asked with: model, endpoint, system prompt and the rest, where it differs.

What a message says of itself (its model, its address) goes before what the session's metadata says of all. Does not
compare what was said: that is ``comparison``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sessions_lib import times
from sessions_lib.compare import word_diff
from sessions_lib.compare.word_diff_marks import Marked
from sessions_lib.messages import content, note, tool_calls
from sessions_lib.messages.content import Message

if TYPE_CHECKING:
    from sessions_lib.compare.comparison import Branch

NONE = "none"
UNKNOWN = "unknown"


class Setting(NamedTuple):
    """A setting that differs: its name, and for each branch its value, with its changed ``words`` if alike."""

    name: str
    values: tuple[str, ...]
    words: tuple[Marked | None, ...]


def differing(branches: Sequence[Branch], start: int) -> tuple[Setting, ...]:
    """The settings in which ``branches`` differ after their shared ``start`` (a number of messages).

    A branch that has said nothing of its own yet is asked with what its metadata names.
    """
    found = []
    for name, value in _SETTINGS.items():
        values = tuple(value(branch.messages[start:], branch.meta, branch.messages) for branch in branches)
        if len({known for known in values if known != UNKNOWN}) > 1:
            found.append(Setting(name, values, _words(values) if name == SYSTEM else (None,) * len(values)))
    return tuple(found)


def _words(values: Sequence[str]) -> tuple[Marked | None, ...]:
    """The changed words of each value, against those of the first; the first's against all of them."""
    base: Marked | None = None
    others: list[Marked | None] = []
    for value in values[1:]:
        found = word_diff.difference(values[0], value)
        if found.a is not None:
            base = found.a if base is None else word_diff.union(base, found.a)
        others.append(found.b)
    return base, *others


Own = Sequence[Message]
Meta = Mapping[str, Any]


def _listed(values: Sequence[Any]) -> str:
    return ", ".join(dict.fromkeys(value for value in values if isinstance(value, str) and value))


def _answers(own: Own) -> list[Message]:
    return [message for message in own if message.get("role") == "assistant"]


def _model(own: Own, meta: Meta, _: Own) -> str:
    return _listed([message.get("model") for message in _answers(own)]) or content.as_text(meta.get("model")) or UNKNOWN


def _endpoint(own: Own, meta: Meta, _: Own) -> str:
    said = _listed([message.get("base_url") for message in _answers(own)])
    return said or content.as_text(meta.get("base_url")) or UNKNOWN


def _system(_: Own, meta: Meta, every: Own) -> str:
    if given := content.as_text(meta.get("system")):
        return given
    said = (message for message in every if message.get("role") in ("system", "developer") and not note(message))
    return next(map(content.text, said), "") or NONE


def _temperature(_: Own, meta: Meta, every: Own) -> str:
    given = meta.get("temperature")
    return f"{given:g}" if isinstance(given, int | float) and not isinstance(given, bool) else "the model’s own"


def _effort(_: Own, meta: Meta, every: Own) -> str:
    return content.as_text(meta.get("effort")) or "the model’s own"


def _tools(own: Own, _: Meta, every: Own) -> str:
    if not _answers(own):
        return UNKNOWN
    return _listed(sorted(call.name for message in _answers(own) for call in tool_calls.calls_of(message))) or NONE


def _date(own: Own, _: Meta, every: Own) -> str:
    days = [found.date().isoformat() for message in own if (found := times.parse(message.get("timestamp")))]
    if not days:
        return UNKNOWN
    return days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"


def _asked_by(own: Own, _: Meta, every: Own) -> str:
    return _listed([message.get("author") for message in own if message.get("role") == "user"]) or UNKNOWN


SYSTEM = "System prompt"
_SETTINGS: dict[str, Callable[[Own, Meta, Own], str]] = {
    "Model": _model,
    "Endpoint": _endpoint,
    SYSTEM: _system,
    "Temperature": _temperature,
    "Effort": _effort,
    "Tools used": _tools,
    "Date": _date,
    "Asked by": _asked_by,
}
