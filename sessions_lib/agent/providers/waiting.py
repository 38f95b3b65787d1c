"""How long to wait before a request is sent again, and when not to: what a server asks for, and a minute at most.

Does not wait: ``chat`` does, and ends it at once when the run is stopped.
"""

from __future__ import annotations

import email.utils
import math
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sessions_lib import text

LONGEST_S = 60.0  # of all waits of one request together: a longer one needs a person's yes
SHOWN_FROM_S = 2.0  # a shorter wait is over before anybody has read of it
_FIRST_S, _MAX_BACKOFF_S = 0.5, 8.0
_AGAIN = (408, 409, 429)  # and everything from 500 on


@dataclass(frozen=True, slots=True)
class Wait:
    """A pause before the request is sent again; ``reason`` says who asked for it, in a few words."""

    seconds: float
    reason: str


def asked_for(headers: Mapping[str, str]) -> float | None:
    """The seconds a server asks to wait (``retry-after-ms``, ``retry-after`` as a number or a date), if it does."""
    for name, divisor in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            seconds = float(headers.get(name, "")) / divisor
        except ValueError:
            continue
        return seconds if math.isfinite(seconds) and seconds >= 0 else None
    try:
        moment = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
    except (TypeError, ValueError):
        return None
    return max(0.0, moment.timestamp() - time.time())


def before_next_try(error: Any, tries: int, waited_s: float) -> float | None:
    """The seconds to wait after ``tries`` requests and ``waited_s`` of waiting; ``None``: do not try again.

    ``error`` is the SDK's: a refusal with its response, or a connection that could not be made.
    """
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    status, is_wanted = getattr(error, "status_code", None), headers.get("x-should-retry")
    if status is not None and is_wanted != "true" and (is_wanted == "false" or not (status in _AGAIN or status >= 500)):
        return None
    seconds = asked_for(headers)
    if seconds is None:
        seconds = min(_FIRST_S * 2.0 ** (tries - 1), _MAX_BACKOFF_S) * (1 - 0.25 * random.random())
    return seconds if waited_s + seconds <= LONGEST_S else None


def said(seconds: float) -> str:
    """``40 s``, ``2 min 0 s``: a wait for people."""
    return text.duration(max(1.0, seconds) * 1000, 1000)
