"""Variants: what differs between the answers of a trial, and the first of them once more, which shows what is noise.

Does not ask and does not store.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from sessions_lib.errors import SessionError

NOISE = "again"


@dataclass(frozen=True, slots=True)
class Variant:
    """What differs between the answers: what is ``None`` stays as in the session.

    ``session`` and ``at`` begin in another branch; ``tools`` are the names of those that are on (``()``: none);
    ``change`` is (message, content): something else was said there, and the run goes on from it.
    """

    name: str
    session: str | None = None
    at: int | None = None
    model: str | None = None
    base_url: str | None = None
    system: str | None = None
    temperature: float | None = None
    tools: tuple[str, ...] | None = None
    change: tuple[int, str] | None = None
    is_noise: bool = False
    api_key: str | None = field(default=None, repr=False)  # never stored

    @property
    def settings(self) -> dict[str, Any]:
        """What it sets in the metadata of its sessions."""
        given = {name: getattr(self, name) for name in ("model", "base_url", "system", "temperature")}
        return {name: value for name, value in given.items() if value is not None}

    def stored(self) -> dict[str, Any]:
        """As it stands in the trial's file."""
        return {key: value for key, value in asdict(self).items() if value not in (None, False) and key != "api_key"}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Variant:
        """A variant as it was stored; ``SessionError`` if it is none."""
        known = {one.name for one in fields(cls)} - {"api_key"}
        if not isinstance(values.get("name"), str) or not values["name"].strip() or set(values) - known:
            raise SessionError(f"A variant has a name, and of {', '.join(sorted(known))} what it changes.")
        given = dict(values)
        for key in ("tools", "change"):
            given[key] = tuple(given[key]) if given.get(key) is not None else None
        return cls(**given)


def with_noise(variants: Sequence[Variant]) -> list[Variant]:
    """``variants``, the first once more behind it: what differs between these two is noise."""
    first, *others = (replace(variant, is_noise=False) for variant in variants)
    again = replace(first, name=f"{first.name} {NOISE}", is_noise=True)
    made = [first, again, *others]
    slugs = [slug(variant.name)[:30] for variant in made]
    if repeated := next((one.name for one in made if slugs.count(slug(one.name)[:30]) > 1), None):
        raise SessionError(f"Two variants would be called {repeated!r}. Name them apart in the first 30 letters.")
    return made


def slug(name: str) -> str:
    """The part of a repeat's id that a variant's name gives."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "variant"
