"""The folder's catalog, and answers of it that are kept until the folder or a person's own prices change.

A rerun for a click that filters nothing, or for another visitor, costs no sums over all sessions. Kept for the process,
bounded; the folder is the same for all visitors.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from copy import copy
from typing import Any, TypeVar

from pages.shared import folder
from sessions_lib import own_prices
from sessions_lib.store.store import SessionCatalog

MOST = 48  # answers kept, those of several filters

T = TypeVar("T")
_answers: OrderedDict[tuple[Hashable, ...], tuple[object, Any]] = OrderedDict()
_lock = threading.Lock()


def catalog() -> SessionCatalog:
    """Questions about the sessions, kept open for the process."""
    return folder.store().catalog


def once(question: Callable[..., T], *values: Hashable) -> T:
    """A copy of ``question(catalog, *values)``, which is asked again only after a change in the folder."""
    name, asked = folder.store().name, catalog()
    key, version = (name, question, *values), (asked.mark(), own_prices.current().stamp)
    with _lock:
        known = _answers.get(key)
    if known is None or known[0] != version:
        known = version, question(asked, *values)
        with _lock:
            for old in [one for one, (made, _) in _answers.items() if one[0] == name and made != version]:
                del _answers[old]
            _answers[key] = known
            if len(_answers) > MOST:
                _answers.popitem(last=False)
    answer: T = copy(known[1])
    return answer
