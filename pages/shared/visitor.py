"""What this server keeps for a visitor's browser: keys that were typed, tools that are on, what new sessions get.

A browser is known by the cookie that Streamlit gives it, so a reload and a second tab find what was typed in the first.
All of it is in memory alone, for the last ``MOST`` browsers, and gone when the server ends; a browser without that
cookie has it for its visit. Never written, never shown, never another visitor's.

Does not know endpoints: addresses and names of tools are texts here.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

MOST = 100
_COOKIE = "_streamlit_xsrf"
_VISIT = "visitor"
_browsers: OrderedDict[bytes, Visitor] = OrderedDict()  # by a hash of the cookie, the latest last
_lock = threading.Lock()


@dataclass
class Visitor:
    """Of one browser: address → key, the (address, tool) pairs that are on, and the settings of a new session."""

    keys: dict[str, str] = field(default_factory=dict, repr=False)
    tools: set[tuple[str, str]] = field(default_factory=set)
    defaults: dict[str, Any] = field(default_factory=dict)


def current() -> Visitor:
    """What is kept for the browser that is being drawn for."""
    token = _token(st.context.cookies.get(_COOKIE, ""))
    if token is None:
        visit: Visitor = st.session_state.setdefault(_VISIT, Visitor())
        return visit
    known_by = hashlib.blake2b(token).digest()
    with _lock:
        visitor = _browsers.setdefault(known_by, Visitor())
        _browsers.move_to_end(known_by)
        while len(_browsers) > MOST:
            _browsers.popitem(last=False)
    return visitor


def _token(cookie: str) -> bytes | None:
    """The token in Streamlit's cookie (``2|mask|masked token|time``), which is masked anew at every response."""
    try:
        version, mask_hex, masked_hex, _ = cookie.strip("\"'").split("|")
        mask, masked = bytes.fromhex(mask_hex), bytes.fromhex(masked_hex)
    except ValueError:
        return None
    if version != "2" or len(mask) != 4 or len(masked) < 16:
        return None
    return bytes(byte ^ mask[index % 4] for index, byte in enumerate(masked))
