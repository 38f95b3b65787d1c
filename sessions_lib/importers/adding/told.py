"""Tokens that stored messages have told already: what they leave of the tokens that a source tells now.

By model and tier, so that numbers by model stay right when an answer is stored in parts, or when tokens were known
before the answer that took them.

Does not read or write anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sessions_lib.messages import model_calls
from sessions_lib.messages.content import Message
from sessions_lib.messages.model_calls import ModelCall
from sessions_lib.messages.usage import SUMS, Usage

_WRITTEN = ("written", "written_1h")
_Key = tuple[str, str]  # model, tier


class Told:
    """The tokens of some messages, each to be taken once."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        """What ``messages`` tell together."""
        self._left: dict[_Key, dict[str, int]] = {}
        for message in messages:
            for call in model_calls.of(message):
                self._add((call.model, call.tier), _counts(call))

    def _add(self, key: _Key, counts: dict[str, int]) -> None:
        sums = self._left.setdefault(key, {})
        for name, count in counts.items():
            sums[name] = sums.get(name, 0) + count

    def add(self, other: Told) -> None:
        """Take in what another one has left."""
        for key, counts in other._left.items():
            self._add(key, counts)

    def without(self, called: Sequence[ModelCall]) -> list[ModelCall]:
        """What ``called`` took beyond what was told; that is taken from here, each token once.

        A count that was told completely is left out, not 0: it is no news.
        """
        return [left for call in called if (left := self._beyond(call)) is not None]

    def _beyond(self, call: ModelCall) -> ModelCall | None:
        told = self._told(call)
        if told is None:
            return call
        left: dict[str, int] = {}
        for name, count in _counts(call).items():
            taken = min(count, told.get(name, 0))
            if taken:
                told[name] -= taken
            if count > taken:
                left[name] = count - taken
        if not left:
            return None
        tokens = Usage(**{name: left.get(name) for name in SUMS})
        return ModelCall(call.model, tokens, left.get("written"), left.get("written_1h"), call.tier)

    def _told(self, call: ModelCall) -> dict[str, int] | None:
        """What is left of the call's own model; else of tokens whose model or tier was told otherwise."""
        own = self._left.get((call.model, call.tier))
        if own is not None and any(own.values()):
            return own
        return next((counts for counts in self._left.values() if any(counts.values())), None)


def _counts(call: ModelCall) -> dict[str, int]:
    found = {name: getattr(call.tokens, name) for name in SUMS} | {name: getattr(call, name) for name in _WRITTEN}
    return {name: count for name, count in found.items() if count is not None}
