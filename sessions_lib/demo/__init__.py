"""Sessions to look at, made without a model."""

from __future__ import annotations

from sessions_lib.demo.sessions import DAY_1, DAY_2, DAYS, MARK, WEST, is_loaded, load, remove

__all__ = ["DAYS", "DAY_1", "DAY_2", "MARK", "WEST", "is_loaded", "load", "remove"]
