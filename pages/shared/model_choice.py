"""Choosing a model by name: from what a server lists, or typed.

A list that takes new names throws away one that was typed and left with Tab or a click; a field of text does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

import streamlit as st

_HINT = "Type a name"


def draw(label: str, listed: Sequence[str], key: str, *, current: str = "", start: int = 0, place: str = "") -> str:
    """The name that was chosen or typed, ``""`` for none; a typed one goes before the list.

    ``current`` stands in the field, or first in the list where there is one; else the list begins at ``start``.
    ``place`` tells the typed field from others on the page.
    """
    if not listed:
        st.text_input(label, current, key=f"{key}-name", placeholder=_HINT, autocomplete="off")
        return chosen(listed, key)
    options = list(dict.fromkeys([*([current] if current else []), *listed]))
    index = 0 if current or _list_key(listed, key) in st.session_state else min(start, len(options) - 1)
    st.selectbox(label, options, index=index, key=_list_key(listed, key))
    st.text_input(
        f"Or the name of another{place}", key=f"{key}-other", placeholder="One that is not listed", autocomplete="off"
    )
    return chosen(listed, key)


def chosen(listed: Sequence[str], key: str) -> str:
    """What stands in the fields that ``draw`` made for ``listed`` under ``key``."""
    fields = [f"{key}-other", _list_key(listed, key)] if listed else [f"{key}-name"]
    return next((name for field in fields if (name := str(st.session_state.get(field) or "").strip())), "")


def keep(name: str, listed: Sequence[str], key: str) -> None:
    """Have ``name``, which was typed before there was a list, stand in the fields for it."""
    if name:
        st.session_state[_list_key(listed, key) if name in listed else f"{key}-other"] = name


def _list_key(listed: Sequence[str], key: str) -> str:
    """Another list is another field: it must not keep a choice that it does not hold."""
    return f"{key}-of-{crc32(repr(listed).encode('utf-8', 'replace'))}"
