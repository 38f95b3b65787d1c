"""Ids and file names without the secrets that the text they were made of held.

An id is made of a title or a first prompt: in lower case, a hyphen for each sign, cut off. So ``ghp_a1B2…`` stands in
it as ``ghp-a1b2…``, which no pattern for texts finds. Found is what the text's own secrets look like in an id, and what
begins as a token does; both become ``redacted``.

Does not keep two ids apart that become one: ``export.redact`` does.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache

from sessions_lib import names
from sessions_lib.redaction import texts, tokens

MARK = "redacted"
_SHORTEST = 4  # letters of a secret that may stand in an id
_SHORTEST_CUT = 6  # and where the end of the id cuts it off


def without_secrets(session_id: str, made_of: Iterable[str] = (), patterns: Sequence[str] = ()) -> str:
    """``session_id`` without secrets of its own, and without those of the texts that it may be ``made_of``.

    >>> without_secrets("mail-ana-example-org", ["Mail ana@example.org"])
    'mail-redacted'
    """
    found = texts.matches(session_id, patterns)
    result = texts.replaced(session_id, [texts.Match(one.start, one.stop, one.kind, MARK) for one in found])
    for secret in _slugs(made_of, patterns):
        result = _without(result, secret)
    return _tokens().sub(MARK, result) if len(result) >= tokens.SHORTEST else result


def made_of(title: str, *texts_held: str) -> str:
    """A readable id made of ``title``, without its secrets and those of ``texts_held`` (a prompt that it was cut from).

    >>> made_of("Mail ana@example.org about the tide")
    'mail-e-mail-address-about-the-tide'
    """
    made = names.id_from_title(texts.redact_text(title))
    clean = without_secrets(made, [title, *texts_held])
    return clean if names.is_id(clean) else names.id_from_title(clean)


def _slugs(made_of: Iterable[str], patterns: Sequence[str]) -> list[str]:
    found = {slug(text[one.start : one.stop]) for text in made_of for one in texts.matches(text, patterns)}
    return sorted((one for one in found if len(one) >= _SHORTEST), key=len, reverse=True)


def slug(text: str) -> str:
    """``text`` as it stands in an id: its letters and digits in ASCII and lower case, a hyphen for all else."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")


def _without(session_id: str, secret: str) -> str:
    """``session_id`` without ``secret``, whole or cut off by the end of what the id was made of."""
    lowered = re.sub(r"[._]", "-", session_id.lower())
    if secret == lowered:
        return MARK
    edge = r"(?<![a-z0-9])", r"(?![a-z0-9])"  # where the secret is no more than a word
    before, behind = edge if len(secret) < _SHORTEST_CUT else ("", "")
    spans = [match.span() for match in re.finditer(before + re.escape(secret) + behind, lowered)]
    if not spans and len(secret) > _SHORTEST_CUT:
        end = re.sub(r"(?:-(?:\d{1,4}|fork))+\Z", "", lowered)  # what made the id another's
        cut = (match.start() for match in re.finditer(re.escape(secret[:_SHORTEST_CUT]), end))
        spans = [(at, len(end)) for at in cut if secret.startswith(end[at:])][:1]
    for start, stop in reversed(spans):
        session_id = session_id[:start] + MARK + session_id[stop:]
    return session_id


@cache
def _tokens() -> re.Pattern[str]:
    """What begins as a token does, written as in an id, with a long run of letters and digits behind it."""
    begins = {slug(word) for _, words, _ in tokens.TOKENS for word in words.split()}
    listed = "|".join(sorted((re.escape(word) for word in begins if len(word) > 1), key=len, reverse=True))
    return re.compile(
        rf"(?<![a-z0-9])(?:{listed})-?(?:[a-z0-9]{{1,16}}-){{0,3}}?(?=[a-z]{{0,255}}[0-9])(?=[0-9]{{0,255}}[a-z])[a-z0-9]{{16,255}}",
        re.IGNORECASE,
    )
