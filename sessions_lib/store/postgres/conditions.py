"""A query as conditions in SQL: which sessions ``s`` pass, and which of their messages at ``p`` may.

Does not look at what was said: ``search`` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sessions_lib import query
from sessions_lib.query import Query
from sessions_lib.store.plain_numbers import microseconds

Condition = tuple[str, tuple[Any, ...]]

TIME = "coalesce(p.time, s.last_active)"


def about_sessions(asked: Query) -> Condition:
    """The part of ``asked`` that is about sessions."""
    parts, values = ["s.kind is null"], list[Any]()

    def named(column: str, wanted: Sequence[str], negated: str = "") -> None:
        tests = []
        for name in wanted:
            is_start = len(name) > 1 and name.endswith("*")
            tests.append("starts_with(name, %s)" if is_start else "name = %s")
            values.append(name[:-1] if is_start else name)
        parts.append(f"{negated}exists(select from unnest({column}) as name where {' or '.join(tests)})")

    for tag in asked.tags:
        named("s.tags", [tag])
    for tool in asked.tools:
        named("s.tools", [tool])
    for column, wanted in (
        ("s.tags", asked.any_tags),
        ("s.models", asked.models),
        ("array[s.verdict]", asked.verdicts),
    ):
        if wanted:
            named(column, wanted)
    if asked.not_tags:
        named("s.tags", asked.not_tags, "not ")
    claims = {
        "s.tags = '{}'": asked.untagged,
        "s.parent is not null": asked.is_fork,
        "s.parent is null": asked.not_fork,
        "s.errors > 0": asked.has_error,
        "s.damaged": asked.has_damage,
    }
    parts += [clause for clause, is_asked in claims.items() if is_asked]
    for sign, bound in asked.cost:
        parts.append(f"s.cost {sign} %s")
        values.append(bound)
    return " and ".join(parts), tuple(values)


def about_messages(asked: Query, roles: Sequence[str]) -> Condition:
    """The roles (of all ``roles`` there are) and the days of ``asked``."""
    parts, values = ["true"], list[Any]()
    if asked.roles:
        parts.append("m.role = any(%s)")
        values.append([role for role in roles if query.role_matches(asked, role)])
    for sign, bound in ((">=", asked.since), ("<", asked.until)):
        if bound is not None:
            parts.append(f"{TIME} {sign} %s")
            values.append(microseconds(bound))
    return " and ".join(parts), tuple(values)


def active(asked: Query, *, without_messages: bool) -> Condition:
    """Sessions with a message of the days of ``asked``; ``without_messages``: or without any, last active then."""
    bounds, values = [], list[Any]()
    for sign, bound in ((">=", asked.since), ("<", asked.until)):
        if bound is not None:
            bounds.append(f"{{}} {sign} %s")
            values.append(microseconds(bound))
    test = " and ".join(bounds)
    said = f"exists(select from forkbook.place p where p.session = s.n and {test.format(*[TIME] * len(bounds))})"
    if not without_messages:
        return said, tuple(values)
    empty = f"s.messages = 0 and {test.format(*['s.last_active'] * len(bounds))}"
    return f"({said} or ({empty}))", (*values, *values)
