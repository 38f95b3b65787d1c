"""The folder's catalog, and answers of it that are kept until something in the folder changes.

A rerun for a click that filters nothing, or for another visitor, costs no sums over all sessions. Kept for the process,
bounded; the folder is the same for all visitors.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from copy import copy
from pathlib import Path
from typing import Any, TypeVar

import streamlit as st

from pages.shared import folder
from sessions_lib.store.folder.index import catalog as catalogs
from sessions_lib.store.folder.index.catalog import Catalog

MOST = 48  # answers kept, those of several filters

T = TypeVar("T")
_answers: OrderedDict[tuple[Hashable, ...], tuple[Hashable, Any]] = OrderedDict()
_lock = threading.Lock()


@st.cache_resource(max_entries=4, show_spinner=False)
def _kept(folder_path: Path) -> Catalog:
    return catalogs.of(folder_path)


def catalog() -> Catalog:
    """The catalog of the folder, kept open for the process."""
    return _kept(folder.manager().folder)


def once(question: Callable[..., T], *values: Hashable) -> T:
    """A copy of ``question(catalog, *values)``, which is asked again only after a change in the folder."""
    asked = catalog()
    key, version = (asked.folder, question, *values), asked.ask(_version)
    with _lock:
        known = _answers.get(key)
    if known is None or known[0] != version:
        known = version, question(asked, *values)
        with _lock:
            for old in [one for one, (made, _) in _answers.items() if one[0] == asked.folder and made != version]:
                del _answers[old]
            _answers[key] = known
            if len(_answers) > MOST:
                _answers.popitem(last=False)
    answer: T = copy(known[1])
    return answer


def _version(db: sqlite3.Connection) -> Hashable:
    # A catalog that was made anew counts its changes from the start, but through another connection.
    return db, db.execute("SELECT value FROM facts WHERE name='change'").fetchone()[0]
