"""Who answers: the settings of a session and of a visitor, as one endpoint with its key and its tools.

What a session was told (address, model, temperature, system prompt) is in its metadata, and it is answered there and
nowhere else. Keys and switched-on tools are the visitor's (see ``visitor``), each for the address it was given for.

Does not change settings (``chat_parts.settings`` does) and asks no server but for ``models_of``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import streamlit as st

from pages.shared import visitor
from pages.shared.folder import store
from sessions_lib import text
from sessions_lib.agent import demo_world, providers, tools
from sessions_lib.agent.approval import Decision
from sessions_lib.agent.providers import Endpoint
from sessions_lib.agent.runs import Settings
from sessions_lib.agent.tools import Tool
from sessions_lib.errors import SessionError

SETTING_NAMES = ("base_url", "model", "wire", "temperature", "effort", "system", "context_tokens", "budget_usd")
_OF_A_PLACE = ("base_url", "model", "wire", "effort", "context_tokens")


def told(meta: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that apply to a session with this metadata: its own, else this visitor's."""
    own = {name: meta[name] for name in SETTING_NAMES if meta.get(name) not in (None, "")}
    defaults = dict(visitor.current().defaults)
    if "base_url" in own or "model" in own:
        defaults = {name: value for name, value in defaults.items() if name not in _OF_A_PLACE}
    return {**defaults, **own}


def for_new_session() -> dict[str, Any]:
    """The settings to write into the metadata of a new session of this visitor: it goes on as it begins."""
    settings = told({})
    return {**endpoint(settings).settings, **settings}


def endpoint(settings: Mapping[str, Any]) -> Endpoint:
    """Where these settings lead, with this visitor's key for that address. ``SessionError`` where they lead nowhere."""
    where = providers.choose(session=settings)
    key = key_for(where.base_url)
    return replace(where, api_key=key) if key else where


def run_settings(
    meta: Mapping[str, Any],
    *,
    over_budget: bool = False,
    without_tools: bool = False,
    asks: bool = True,
    decisions: Mapping[str, Decision] | None = None,
) -> Settings:
    """How a run of a session with this metadata answers, for this visitor. ``SessionError`` for a bad address.

    ``over_budget``: the visitor agreed to go on where a budget is spent; ``without_tools``: to ask a model that takes
    none all the same; ``decisions``: of calls that waited for a yes. ``asks=False``: the visitor was told what tools
    may do, and agreed.
    """
    settings = told(meta)
    where = endpoint(settings)
    temperature, system = settings.get("temperature"), settings.get("system")
    return Settings(
        store=store(),
        model=where.model or None,
        base_url=where.base_url,  # the address that the key is for, whatever is written to the session meanwhile
        api_key=where.api_key,
        temperature=float(temperature) if isinstance(temperature, int | float) else None,
        system=system if isinstance(system, str) else None,
        tools=None if where.is_demo else tuple(switched_on(where)),
        over_budget=over_budget,
        wire=_text(settings.get("wire")),
        effort=_text(settings.get("effort")),
        without_tools=without_tools,
        asks_later=asks,
        decisions=decisions or {},
    )


def switch_on(meta: Mapping[str, Any], names: Collection[str]) -> None:
    """Switch on the tools ``names`` where a session leads: the visitor allowed a call of them, and what was on when it
    was made is gone with the server, or was another browser's."""
    if address := endpoint(told(meta)).base_url:
        on = {(address.rstrip("/"), tool.name) for tool in offered() if tool.name in names}
        visitor.current().tools.update(on)


def name_of(settings: Mapping[str, Any]) -> str:
    """Who answers, for a label: ``demo model``, or the model and where it runs. Not escaped."""
    try:
        where = endpoint(settings)
    except SessionError:
        return "no model: the address is not one"
    if where.is_demo:
        return "demo model"
    place = next((preset for preset, url in providers.PRESETS.items() if url == where.base_url), where.name)
    return f"{where.model or 'first model'} · {place}"


def conditions(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What else there is to know of who answers, each with an icon: the tools that are on, a key that is missing.

    Not escaped. Empty where the settings lead nowhere.
    """
    try:
        where = endpoint(settings)
    except SessionError:
        return []
    names = [tool.name for tool in (demo_world.TOOLS if where.is_demo else switched_on(where))]
    found = [("build", f"{text.count(len(names), 'tool')} on: {', '.join(names)}" if names else "no tools on")]
    if where.base_url is not None and not where.api_key and not providers.is_loopback(where.base_url):
        found.append(("key_off", "no API key"))
    return found


def is_demo(settings: Mapping[str, Any]) -> bool:
    """True if the offline village answers."""
    try:
        return endpoint(settings).is_demo
    except SessionError:
        return False


def models_of(where: Endpoint) -> tuple[list[str], str]:
    """The models ``where`` lists, its own first, and what is wrong if it cannot be asked. Asks the server."""
    try:
        listed = providers.list_models(where)
    except SessionError as error:
        return [where.model] if where.model else [], str(error)
    return list(dict.fromkeys([*([where.model] if where.model in listed else []), *listed])), ""


def offered() -> list[Tool]:
    """The tools there are to switch on: the village’s, and those of the file that was named at the start.

    Of two with one name, that of the file.
    """
    own = own_tools()[0]
    return [*(tool for tool in demo_world.TOOLS if tool.name not in {one.name for one in own}), *own]


def own_tools() -> tuple[list[Tool], str]:
    """The tools of ``SESSIONS_TOOLS`` (or of the file named behind ``--``), and what is wrong with that file, if so."""
    named = [arg for arg in sys.argv[1:] if arg.endswith(".py")] if Path(sys.argv[0]).name == "app.py" else []
    path = named[0] if named else os.environ.get("SESSIONS_TOOLS", "")
    if not path:
        return [], ""
    try:
        return _tools_of(path, Path(path).expanduser().stat().st_mtime_ns), ""
    except (OSError, RuntimeError):  # ``RuntimeError``: the home of a user that there is not
        return [], f"There is no file of tools at {path}. Check the path, or SESSIONS_TOOLS."
    except SessionError as error:
        return [], str(error)


@st.cache_resource(max_entries=4, show_spinner=False)
def _tools_of(path: str, changed_ns: int) -> list[Tool]:
    return tools.from_file(path)


def switched_on(where: Endpoint) -> list[Tool]:
    """The tools that this visitor has switched on for an address."""
    on = visitor.current().tools
    return [tool for tool in offered() if (where.base_url, tool.name) in on]


def key_for(base_url: str | None) -> str | None:
    """The key that this visitor typed for an address."""
    return visitor.current().keys.get(base_url.rstrip("/")) if base_url else None


def _text(value: object) -> str | None:
    return value.strip() or None if isinstance(value, str) else None
