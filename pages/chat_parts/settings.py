"""The dialog that changes who answers: address, key, model, behaviour and tools, as one form that is saved as a whole.

A form sends what stands in its fields with its buttons, wherever the cursor was left. Listing models and testing ask
the server only when a person presses the button.

Does not start a run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import streamlit as st

from pages.shared import model_choice, visitor
from pages.shared.folder import manager
from pages.shared.providers import endpoint, key_for, offered, own_tools, told
from pages.shared.safe_markdown import safe_label
from sessions_lib import text
from sessions_lib.agent import approval, budget, providers
from sessions_lib.agent.providers import Endpoint
from sessions_lib.errors import SessionError
from sessions_lib.store.session import Session

_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")
_DEMO, _OTHER = "Offline demo", "Another address"


def draw(session: Session | None, key: str) -> bool:
    """The settings of ``session``, or of new ones; True when they were saved."""
    settings = told(session.meta if session else {})
    url = _draw_place(settings, key)
    with st.form(f"{key}-form", border=False, enter_to_submit=False):
        if url is None:
            _draw_demo()
            chosen: dict[str, Any] = {
                **dict.fromkeys(("base_url", "wire", "effort", "context_tokens")),
                "model": providers.DEMO_MODEL,
            }
        else:
            chosen = _draw_endpoint(settings, url, key)
        chosen |= _draw_behaviour(settings, key)
        switched = _draw_tools(url, key) if url else {}
        if url:
            chosen[approval.ASK] = _draw_asking(settings, key)
        if not st.form_submit_button("Save", key=f"{key}-save", type="primary"):
            return False
    try:
        _save(session, chosen)
    except SessionError as error:
        st.error(safe_label(str(error)))
        return False
    if url:
        _keep(url.rstrip("/"), st.session_state.get(f"{key}-key", ""), switched)
    return True


def _draw_place(settings: Mapping[str, Any], key: str) -> str | None:
    """The chosen address; ``None`` for the demo."""
    try:
        current = endpoint(settings).base_url
    except SessionError:
        named = settings.get("base_url")
        current = named if isinstance(named, str) else ""
    presets = [_DEMO, *providers.PRESETS, _OTHER]
    by_url = {url: name for name, url in providers.PRESETS.items()}
    start = _DEMO if current is None else by_url.get(current, _OTHER)
    found: dict[str, list[str]] = st.session_state.get(f"{key}-local", {})
    chosen = st.selectbox(
        "Who answers",
        presets,
        index=presets.index(start),
        key=f"{key}-place",
        format_func=lambda name: _with_models(name, found),
    )
    st.button("Find local models", icon=":material/travel_explore:", key=f"{key}-find", on_click=_find, args=(key,))
    if f"{key}-local" in st.session_state and not found:
        st.caption("No server of models answers on this machine: Ollama, LM Studio, llama.cpp and vLLM were asked.")
    if chosen == _DEMO:
        return None
    default = providers.PRESETS.get(chosen, current if chosen == start and current else "")
    return st.text_input(
        "Address", default, key=f"{key}-url-{chosen}", placeholder="http://127.0.0.1:11434/v1", autocomplete="off"
    ).strip()


def _with_models(name: str, found: Mapping[str, list[str]]) -> str:
    listed = found.get(providers.PRESETS.get(name, ""))
    return name if listed is None else f"{name} · here, with {text.count(len(listed), 'model')}"


def _find(key: str) -> None:
    """Ask this machine's servers of models, and offer what they list."""
    found = providers.find_local()
    st.session_state[f"{key}-local"] = found
    for url, listed in found.items():
        st.session_state[f"{key}-models-{url}"] = listed


def _draw_demo() -> None:
    st.caption(
        "A scripted model inside this app, for trying everything without a key or a network. It knows the village by "
        "the Cave of Echoes and nothing else."
    )


def _draw_endpoint(settings: Mapping[str, Any], url: str, key: str) -> dict[str, Any]:
    _draw_key(url, key)
    listed: list[str] = st.session_state.get(f"{key}-models-{url}", [])
    named = settings.get("model")
    current = named if isinstance(named, str) and named != providers.DEMO_MODEL else ""
    model = model_choice.draw("Model", listed, f"{key}-model", current=current)
    with st.container(horizontal=True):
        for label, icon, ask in (("List models", "list", _list_models), ("Test", "network_check", _test)):
            st.form_submit_button(label, key=f"{key}-{icon}", icon=f":material/{icon}:", on_click=ask, args=(url, key))
    if model and (day := providers.ends_on(model)) is not None:
        st.caption(f":material/event_busy: {safe_label(model, 60)} ends on {day}: choose another before.")
    if said := st.session_state.get(f"{key}-said-{url}"):
        st.caption(safe_label(said))
    sizes: dict[str, int] = st.session_state.get(f"{key}-sizes-{url}", {})
    shown = sizes.get(model) or _count(settings.get("context_tokens"))
    limit = st.number_input(
        "Context size in tokens, if you know it",
        min_value=0,
        step=1024,
        value=shown,
        key=f"{key}-context-{sizes.get(model, 0)}",
        help="Shows how full the model’s context is: a resumed session sends everything again.",
    )
    return {
        "base_url": url or None,
        "model": model or None,
        "wire": _draw_wire(settings, key),
        "effort": _draw_effort(settings, key),
        "context_tokens": int(limit) if limit else None,
    }


def _draw_wire(settings: Mapping[str, Any], key: str) -> str | None:
    named = settings.get("wire")
    wires = {None: "As the address wants it", "chat": "Chat Completions", "responses": "Responses"}
    options = list(wires)
    chosen = st.selectbox(
        "Wire",
        options,
        index=options.index(named) if named in options else 0,
        format_func=lambda wire: wires[wire],
        key=f"{key}-wire",
        help="OpenAI is asked over Responses, others over Chat Completions, unless you say otherwise.",
    )
    return chosen if isinstance(chosen, str) else None


def _draw_effort(settings: Mapping[str, Any], key: str) -> str | None:
    named = settings.get("effort")
    known = list(dict.fromkeys([None, *_EFFORTS, *([named] if isinstance(named, str) and named else [])]))
    chosen = st.selectbox(
        "Effort",
        known,
        index=known.index(named) if named in known else 0,
        format_func=lambda effort: effort or "The model’s default",
        key=f"{key}-effort",
        help="How long a reasoning model thinks before it answers.",
    )
    return chosen if isinstance(chosen, str) else None


def _draw_key(url: str, key: str) -> None:
    st.text_input("API key", key=f"{key}-key", type="password", autocomplete="off", placeholder=_key_hint(url))
    st.caption(
        "Kept in this server’s memory for your browser and sent to this address only; never written to disk, gone when "
        "the server ends. Local servers need none."
    )
    if key_for(url):
        st.form_submit_button(
            "Forget the key", key=f"{key}-forget", icon=":material/key_off:", on_click=_forget_key, args=(url,)
        )


def _key_hint(url: str) -> str:
    if key_for(url):
        return "A key is set for this address; type to replace it"
    try:
        known = providers.choose(None, url, None).api_key if url else None
    except SessionError:
        known = None
    return "The key of the environment is used" if known else "None"


def _forget_key(url: str) -> None:
    visitor.current().keys.pop(url.rstrip("/"), None)


def _typed(url: str, key: str) -> Endpoint:
    """The endpoint as it stands in the form, not saved yet."""
    typed_key = st.session_state.get(f"{key}-key") or key_for(url)
    listed = st.session_state.get(f"{key}-models-{url}", [])
    return providers.choose(model_choice.chosen(listed, f"{key}-model"), url, typed_key)


def _test(url: str, key: str) -> None:
    try:
        said = providers.tested(_typed(url, key))
    except SessionError as error:
        said = str(error)
    st.session_state[f"{key}-said-{url}"] = said


def _list_models(url: str, key: str) -> None:
    try:
        where = _typed(url, key)
        typed = model_choice.chosen(st.session_state.get(f"{key}-models-{url}", []), f"{key}-model")
        listed = providers.list_models(where)
        st.session_state[f"{key}-sizes-{url}"] = providers.context_sizes(where)
    except SessionError as error:
        st.session_state[f"{key}-said-{url}"] = str(error)
        return
    st.session_state[f"{key}-models-{url}"] = listed
    model_choice.keep(typed, listed, f"{key}-model")
    st.session_state[f"{key}-said-{url}"] = (
        f"{where.name} offers {text.count(len(listed), 'model')}."
        if listed
        else f"{where.name} lists no model; type its name."
    )


def _draw_behaviour(settings: Mapping[str, Any], key: str) -> dict[str, Any]:
    system = st.text_area(
        "System prompt",
        text.visible(str(settings.get("system") or "")),
        key=f"{key}-system",
        height=96,
        placeholder="None",
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
    limit = settings.get(budget.KEY)
    allowed = st.number_input(
        "Budget in US dollars",
        min_value=0.0,
        step=1.0,
        value=float(limit) if isinstance(limit, int | float) and limit >= 0 else None,
        placeholder="None",
        key=f"{key}-budget",
        help="A warning at 80 %; once it is spent, you are asked before the next request.",
    )
    return {"system": system.strip() or None, "temperature": temperature, budget.KEY: allowed}


def _draw_tools(url: str, key: str) -> dict[str, bool]:
    """A switch for each tool; name → whether it is on in the form."""
    st.caption("Tools the model may call. All are off until you switch them on; they run on this machine.")
    on = visitor.current().tools
    switched = {}
    for tool in offered():
        first_line = tool.description.strip().split("\n")[0]
        switched[tool.name] = st.toggle(
            f"**{safe_label(tool.name)}** {safe_label(first_line, 80)}",
            value=(url.rstrip("/"), tool.name) in on,
            key=f"{key}-tool-{url}-{tool.name}",
        )
    if wrong := own_tools()[1]:
        st.caption(safe_label(wrong))
    return switched


def _draw_asking(settings: Mapping[str, Any], key: str) -> str | None:
    is_all = st.toggle(
        "Ask before every tool, also one that only looks",
        value=settings.get(approval.ASK) == "all",
        key=f"{key}-ask-all",
        help="A tool that changes something is asked about in any case.",
    )
    return "all" if is_all else None


def _save(session: Session | None, chosen: dict[str, Any]) -> None:
    """Write the settings into the metadata of ``session``, and remember them for the visitor's new sessions."""
    if chosen["model"] != providers.DEMO_MODEL and not chosen["base_url"]:
        raise SessionError("The address is missing. It looks like http://127.0.0.1:11434/v1")
    where = providers.choose(chosen["model"], chosen["base_url"])
    if where.base_url and urlsplit(where.base_url).username is not None:
        raise SessionError(
            "A login in the address would be written to disk. Leave it out here, and set OPENAI_BASE_URL with it."
        )
    if session is not None:
        manager().open(session.id).update_meta(chosen)
    of_new = ("system", "temperature", budget.KEY, approval.ASK) if session is None else ()
    names = ("base_url", "model", "wire", "effort", "context_tokens", *of_new)
    visitor.current().defaults = {name: chosen[name] for name in names if chosen.get(name) is not None}


def _keep(address: str, typed_key: str, switched: Mapping[str, bool]) -> None:
    """Keep the key and the switches of an address for the visitor's browser."""
    kept = visitor.current()
    if typed_key.strip():
        kept.keys[address] = typed_key.strip()
    for name, is_on in switched.items():
        (kept.tools.add if is_on else kept.tools.discard)((address, name))


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
