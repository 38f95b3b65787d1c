"""Where a model answers, over which wire, and what is said when it does not.

``endpoints`` chooses the address, the key and the wire, ``client`` makes the connection, ``chat`` sends one request,
``responses`` spells it for the other wire, ``refusals`` changes what a server refused. ``words`` reads what servers say
in errors and ``problems`` says it to a person, ``waiting`` knows when to ask again.
"""

from __future__ import annotations

from sessions_lib.agent.providers.chat import Changed, ModelCall
from sessions_lib.agent.providers.client import (
    check,
    client,
    context_sizes,
    ends_on,
    find_local,
    list_models,
    tested,
    watched,
    with_model,
)
from sessions_lib.agent.providers.endpoints import (
    DEMO_MODEL,
    OPENAI_URL,
    PRESETS,
    Endpoint,
    check_given,
    choose,
    is_loopback,
)
from sessions_lib.agent.providers.problems import problem, without_key
from sessions_lib.agent.providers.waiting import Wait

__all__ = [
    "DEMO_MODEL",
    "OPENAI_URL",
    "PRESETS",
    "Changed",
    "Endpoint",
    "ModelCall",
    "Wait",
    "check",
    "check_given",
    "choose",
    "client",
    "context_sizes",
    "ends_on",
    "find_local",
    "is_loopback",
    "list_models",
    "problem",
    "tested",
    "watched",
    "with_model",
    "without_key",
]
