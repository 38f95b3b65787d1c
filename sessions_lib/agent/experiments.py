"""Experiments: one prompt in several branches at once.

``ask`` sends a prompt to existing branches; ``try_in_parallel`` makes a fork for each variant first. Every branch has a
run, a file and a lock of its own; one that cannot start says why, and the others go on.

Does not wait for answers and does not compare them: pages watch the runs, ``compare`` lines up what they said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sessions_lib import names
from sessions_lib.agent import runs
from sessions_lib.agent.providers.endpoints import is_same_place, without_secrets
from sessions_lib.agent.runs import Run, Settings
from sessions_lib.errors import SessionError
from sessions_lib.store.manager import SessionManager

MOST = 4  # columns of a comparison


@dataclass(frozen=True, slots=True)
class Asked:
    """What became of one branch: its run, or why there is none in one sentence."""

    session: str
    run: Run | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to answer; what is ``None`` stays as in the session it is forked from."""

    model: str | None = None
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    temperature: float | None = None
    system: str | None = None


def ask(session_ids: Sequence[str], prompt: str, settings: Callable[[str], Settings]) -> list[Asked]:
    """Start a run of ``prompt`` in each session, with its own ``settings``; the order is that of ``session_ids``.

    The prompt is stored in each session whose run started, and in no other.
    """
    if not prompt.strip():
        raise SessionError("The prompt is empty; nothing was sent. Type a question.")
    return [_start(session_id, prompt, settings) for session_id in dict.fromkeys(session_ids)]


def _start(session_id: str, prompt: str, settings: Callable[[str], Settings]) -> Asked:
    try:
        return Asked(session_id, run=runs.start(session_id, prompt, settings(session_id)))
    except SessionError as error:
        return Asked(session_id, error=str(error))


def try_in_parallel(
    manager: SessionManager,
    session_id: str,
    at: int,
    prompt: str,
    variants: Sequence[Variant],
    settings: Callable[[str], Settings],
) -> list[Asked]:
    """Fork ``session_id`` after ``at`` messages once for each variant and ask ``prompt`` in each fork.

    A fork's title names what differs, its metadata keeps its settings. ``settings(fork)`` says how a branch answers
    where its variant says nothing. Nothing is forked if the fork point is forbidden or the prompt empty.
    """
    if not prompt.strip():
        raise SessionError("The prompt is empty; nothing was forked. Type a question.")
    if not 2 <= len(variants) <= MOST:
        raise SessionError(f"Try 2 to {MOST} variants at once; this is {len(variants)}.")
    parent = manager.open(session_id)
    forks = [parent.fork(at=at, mark=names.one_line(difference, 100)) for difference in differences(variants)]
    for fork, variant in zip(forks, variants, strict=True):
        fork.update_meta(_kept(variant))
    by_id = {fork.id: variant for fork, variant in zip(forks, variants, strict=True)}
    return ask([fork.id for fork in forks], prompt, lambda one: _with_variant(settings(one), by_id[one]))


def _given(variant: Variant) -> dict[str, Any]:
    named = ("model", "base_url", "temperature", "system")
    return {name: value for name in named if (value := getattr(variant, name)) is not None}


def _kept(variant: Variant) -> dict[str, Any]:
    """What the metadata of the variant's fork remembers: nothing secret."""
    given = _given(variant)
    return {**given, "base_url": without_secrets(given["base_url"])} if given.get("base_url") else given


def _with_variant(settings: Settings, variant: Variant) -> Settings:
    # A key belongs to its place: at another one, the key of the settings is not sent along.
    is_there = not variant.base_url or is_same_place(variant.base_url, settings.base_url or "")
    key = variant.api_key or (settings.api_key if is_there else None)
    return replace(settings, **_given(variant), api_key=key)


def differences(variants: Sequence[Variant]) -> list[str]:
    """What tells each variant from the others, in a few words; numbered where they are equal.

    >>> differences([Variant(model="a"), Variant(model="b", temperature=0.2)])
    ['a', 'b, temperature 0.2']
    """
    described = []
    for variant in variants:
        words = []
        if len({one.model for one in variants}) > 1:
            words.append(variant.model or "the same model")
        if len({one.base_url for one in variants}) > 1:
            words.append(variant.base_url or "the same endpoint")
        if len({one.temperature for one in variants}) > 1 and variant.temperature is not None:
            words.append(f"temperature {variant.temperature:g}")
        if len({one.system for one in variants}) > 1 and variant.system is not None:
            words.append(f"“{names.one_line(variant.system, 40)}”")
        described.append(", ".join(words))
    return [
        text if text and described.count(text) == 1 else f"{text or 'try'} {number}".strip()
        for number, text in enumerate(described, 1)
    ]
