"""The days on which models are switched off, as their makers announced them; a server's own word comes first.

Kept by hand: a test reads it, so that no example of ours names a model that is about to end.
"""

from __future__ import annotations

from datetime import date

END_DATES = {
    "gpt-5": date(2026, 12, 11),
    "o3": date(2026, 12, 11),
    "gpt-4o": date(2027, 1, 14),
    "gpt-4o-mini": date(2027, 1, 14),
    "gpt-4.1": date(2027, 1, 14),
    "gpt-4.1-mini": date(2027, 1, 14),
}
