"""Who answers: the provider settings of a visitor and of a session, and the dialog that changes them.

What a session was told (address, model, temperature, system prompt) is in its metadata. Keys are kept in the visitor's
own memory on the server, each for the address it was typed for, and are gone with the visit; they are never written and
never leave for another address.

Does not start anything: listing models and testing ask the server only when a person presses the button.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import streamlit as st

from pages.shared.folder import manager
from pages.shared.safe_markdown import safe_label
from sessions_lib import text
from sessions_lib.agent import demo_world, providers, tools
from sessions_lib.agent.providers import Endpoint
from sessions_lib.agent.runs import Settings
from sessions_lib.agent.tools import Tool
from sessions_lib.errors import SessionError
from sessions_lib.store.session import Session
from sessions_lib.text import visible

_KEYS = "providers_keys"  # address → key, of this visitor
_DEFAULTS = "providers_defaults"  # what a new session of this visitor is told
_SWITCHED_ON = "providers_tools"  # (address, tool) pairs this visitor has switched on
_DEMO, _OTHER = "Offline demo", "Another address"
SETTING_NAMES = ("base_url", "model", "temperature", "system", "context_tokens")


def told(meta: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that apply to a session with this metadata: its own, else this visitor's."""
    own = {name: meta[name] for name in SETTING_NAMES if meta.get(name) not in (None, "")}
    defaults: dict[str, Any] = dict(st.session_state.get(_DEFAULTS, {}))
    if "base_url" in own or "model" in own:
        defaults = {
            name: value for name, value in defaults.items() if name not in ("base_url", "model", "context_tokens")
        }
    return {**defaults, **own}


def for_new_session() -> dict[str, Any]:
    """The settings to write into the metadata of a new session of this visitor."""
    return dict(st.session_state.get(_DEFAULTS, {}))


def endpoint(settings: Mapping[str, Any]) -> Endpoint:
    """Where these settings lead, with this visitor's key for that address."""
    base_url, model = _text(settings.get("base_url")), _text(settings.get("model"))
    return providers.choose(model, base_url, _key_for(base_url))


def run_settings(meta: Mapping[str, Any]) -> Settings:
    """How a run of a session with this metadata answers, for this visitor. ``SessionError`` for a bad address."""
    settings = told(meta)
    where = endpoint(settings)
    temperature, system = settings.get("temperature"), settings.get("system")
    return Settings(
        folder=manager().folder,
        model=_text(settings.get("model")),
        base_url=_text(settings.get("base_url")),
        api_key=_key_for(_text(settings.get("base_url"))),
        temperature=float(temperature) if isinstance(temperature, int | float) else None,
        system=system if isinstance(system, str) else None,
        tools=None if where.is_demo else tuple(tool for tool in offered() if _is_on(where, tool)),
    )


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
    """The tools there are to switch on: the village’s, and those of the file that was named at the start."""
    return [*demo_world.TOOLS, *own_tools()[0]]


def own_tools() -> tuple[list[Tool], str]:
    """The tools of ``SESSIONS_TOOLS`` (or of the file named behind ``--``), and what is wrong with that file, if so."""
    named = [arg for arg in sys.argv[1:] if arg.endswith(".py")] if Path(sys.argv[0]).name == "app.py" else []
    path = named[0] if named else os.environ.get("SESSIONS_TOOLS", "")
    if not path:
        return [], ""
    try:
        return _tools_of(path, Path(path).expanduser().stat().st_mtime_ns), ""
    except OSError:
        return [], f"There is no file of tools at {path}. Check the path, or SESSIONS_TOOLS."
    except SessionError as error:
        return [], str(error)


@st.cache_resource(max_entries=4, show_spinner=False)
def _tools_of(path: str, changed_ns: int) -> list[Tool]:
    return tools.from_file(path)


def _is_on(where: Endpoint, tool: Tool) -> bool:
    return (where.base_url, tool.name) in st.session_state.get(_SWITCHED_ON, set())


def _key_for(base_url: str | None) -> str | None:
    keys: dict[str, str] = st.session_state.get(_KEYS, {})
    return keys.get(base_url.rstrip("/")) if base_url else None


def _text(value: object) -> str | None:
    return value.strip() or None if isinstance(value, str) else None


# ---------------------------------------------------------------- the dialog


def draw_settings(session: Session | None, key: str) -> bool:
    """The form of the settings, for ``session`` or for new ones; True when they were saved."""
    settings = told(session.meta if session else {})
    place = _draw_place(settings, key)
    if place is None:
        _draw_demo(key)
        chosen: dict[str, Any] = {"base_url": None, "model": providers.DEMO_MODEL, "context_tokens": None}
    else:
        chosen = _draw_endpoint(settings, place, key)
    chosen |= _draw_behaviour(settings, key)
    if place:
        _draw_tools(place, key)
    if not st.button("Save", key=f"{key}-save", type="primary"):
        return False
    return _save(session, chosen, st.session_state.get(f"{key}-key", "") if place else "")


def _draw_place(settings: Mapping[str, Any], key: str) -> str | None:
    """The chosen address; ``None`` for the demo."""
    try:
        current = endpoint(settings).base_url
    except SessionError:
        current = _text(settings.get("base_url"))
    presets = [_DEMO, *providers.PRESETS, _OTHER]
    by_url = {url: name for name, url in providers.PRESETS.items()}
    start = _DEMO if current is None else by_url.get(current, _OTHER)
    chosen = st.selectbox("Who answers", presets, index=presets.index(start), key=f"{key}-place")
    if chosen == _DEMO:
        return None
    default = providers.PRESETS.get(chosen, current if chosen == start and current else "")
    return st.text_input(
        "Address", default, key=f"{key}-url-{chosen}", placeholder="http://127.0.0.1:11434/v1", autocomplete="off"
    ).strip()


def _draw_demo(key: str) -> None:
    st.caption(
        "A scripted model inside this app, for trying everything without a key or a network. It knows the village by "
        "the Cave of Echoes and nothing else."
    )


def _draw_endpoint(settings: Mapping[str, Any], url: str, key: str) -> dict[str, Any]:
    st.text_input("API key", key=f"{key}-key", type="password", autocomplete="off", placeholder=_key_hint(url))
    st.caption(
        "Kept in this server’s memory for your visit and sent to this address only; never written to disk, gone after "
        "a restart. Local servers need none."
    )
    listed: list[str] = st.session_state.get(f"{key}-models-{url}", [])
    current = _text(settings.get("model")) or ""
    options = list(dict.fromkeys([*([current] if current and current != providers.DEMO_MODEL else []), *listed]))
    model_key = f"{key}-model-{url}-{len(listed)}"
    model = st.selectbox(
        "Model",
        options,
        index=0 if options else None,
        key=model_key,
        accept_new_options=True,
        placeholder="Type a name, or list what the server offers",
    )
    with st.container(horizontal=True):
        for label, icon, ask in (("List models", "list", _list_models), ("Test", "network_check", _test)):
            st.button(label, key=f"{key}-{icon}", icon=f":material/{icon}:", on_click=ask, args=(url, key, model_key))
    if said := st.session_state.get(f"{key}-said-{url}"):
        st.caption(safe_label(said))
    known: int | None = st.session_state.get(f"{key}-sizes-{url}", {}).get(model)
    limit = st.number_input(
        "Context size in tokens, if you know it",
        min_value=0,
        step=1024,
        value=known or _count(settings.get("context_tokens")),
        key=f"{key}-context-{known or 0}",
        help="Shows how full the model’s context is: a resumed session sends everything again.",
    )
    return {"base_url": url or None, "model": model or None, "context_tokens": int(limit) if limit else None}


def _key_hint(url: str) -> str:
    if _key_for(url):
        return "A key is set for this address; type to replace it"
    try:
        known = providers.choose(None, url, None).api_key if url else None
    except SessionError:
        known = None
    return "The key of the environment is used" if known else "None"


def _typed(url: str, key: str, model_key: str) -> Endpoint:
    """The endpoint as it stands in the form, not saved yet."""
    typed_key = st.session_state.get(f"{key}-key") or _key_for(url)
    return providers.choose(st.session_state.get(model_key) or None, url, typed_key)


def _test(url: str, key: str, model_key: str) -> None:
    try:
        said = providers.check(_typed(url, key, model_key))
    except SessionError as error:
        said = str(error)
    st.session_state[f"{key}-said-{url}"] = said


def _list_models(url: str, key: str, model_key: str) -> None:
    try:
        where = _typed(url, key, model_key)
        listed = providers.list_models(where)
        st.session_state[f"{key}-sizes-{url}"] = providers.context_sizes(where)
    except SessionError as error:
        st.session_state[f"{key}-said-{url}"] = str(error)
        return
    st.session_state[f"{key}-models-{url}"] = listed
    st.session_state[f"{key}-said-{url}"] = (
        f"{where.name} offers {text.count(len(listed), 'model')}."
        if listed
        else f"{where.name} lists no model; type its name."
    )


def _draw_behaviour(settings: Mapping[str, Any], key: str) -> dict[str, Any]:
    system = st.text_area(
        "System prompt", visible(str(settings.get("system") or "")), key=f"{key}-system", height=96, placeholder="None"
    )
    given = settings.get("temperature")
    temperature = st.number_input(
        "Temperature",
        min_value=0.0,
        max_value=2.0,
        step=0.1,
        value=float(given) if isinstance(given, int | float) and 0 <= given <= 2 else None,
        placeholder="The provider’s default",
        key=f"{key}-temperature",
    )
    return {"system": system.strip() or None, "temperature": temperature}


def _draw_tools(url: str, key: str) -> None:
    st.caption("Tools the model may call. All are off until you switch them on; they run on this machine.")
    switched: set[tuple[str, str]] = st.session_state.setdefault(_SWITCHED_ON, set())
    address = url.rstrip("/")
    for tool in offered():
        first_line = tool.description.strip().split("\n")[0]
        is_on = st.toggle(
            f"**{safe_label(tool.name)}** {safe_label(first_line, 80)}",
            value=(address, tool.name) in switched,
            key=f"{key}-tool-{url}-{tool.name}",
        )
        (switched.add if is_on else switched.discard)((address, tool.name))
    if wrong := own_tools()[1]:
        st.caption(safe_label(wrong))


def _save(session: Session | None, chosen: dict[str, Any], typed_key: str) -> bool:
    try:
        where = providers.choose(_text(chosen["model"]), _text(chosen["base_url"]), None)
        if chosen["model"] != providers.DEMO_MODEL and not chosen["base_url"]:
            raise SessionError("The address is missing. It looks like http://127.0.0.1:11434/v1")
        if session is not None:
            manager().open(session.id).update_meta(chosen)
    except SessionError as error:
        st.error(safe_label(str(error)))
        return False
    if typed_key and where.base_url:
        st.session_state.setdefault(_KEYS, {})[where.base_url] = typed_key.strip()
    remembered = {
        name: chosen[name] for name in ("base_url", "model", "context_tokens") if chosen.get(name) is not None
    }
    if session is None:
        remembered |= {name: chosen[name] for name in ("system", "temperature") if chosen.get(name) is not None}
    st.session_state[_DEFAULTS] = remembered
    return True


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
