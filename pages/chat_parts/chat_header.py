"""The top of Chat: title, tags, what the session holds and costs, three ways to read, and what can be done with it all.

Does not draw turns.
"""

from __future__ import annotations

from typing import Any, get_args

import streamlit as st

from pages.chat_parts import chat_state
from pages.chat_parts.cell_menu import open_dialog
from pages.chat_parts.turn import View
from pages.shared import browser, folder, links, presenting, providers
from pages.shared.money import reported, shown
from pages.shared.safe_markdown import safe_label
from sessions_lib import messages, names, prices, text
from sessions_lib.errors import SessionError
from sessions_lib.messages import model_calls, tool_calls, usage
from sessions_lib.store.session import Session

SHORTCUTS = (
    ("New session", "Alt+N"),
    ("Write a prompt", "Alt+P"),
    ("Fork the session here", "Alt+F"),
    ("Next turn", "Alt+↓"),
    ("Previous turn", "Alt+↑"),
    ("Stop the answer", "Esc"),
    ("Present", "Shift+P"),
)
_VIEWS = {"all": "All", "focused": "Focused", "raw": "Raw lines"}


def draw_header(session: Session) -> View:
    """The header of ``session``; the way its turns are to be read."""
    with st.container(key="chat-header", gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="top", gap="small", wrap=False, key="chat-top"):
            _draw_title(session)
            with st.container(horizontal=True, width="content", gap="small", wrap=False, key="chat-tools"):
                st.button(
                    "New",
                    icon=":material/add:",
                    type="tertiary",
                    key="chat-new",
                    on_click=chat_state.go,
                    args=(None,),
                    shortcut="Alt+N",
                )
                presenting.button(is_quiet=True)
                _draw_outline(session)
                _draw_more(session)
        st.caption(_facts(session))
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="chat-tags-row"):
            _draw_tags(session)
            return _draw_views()


def _draw_title(session: Session) -> None:
    renaming = f"chat-renaming-{session.id}"
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="chat-title"):
        if st.session_state.get(renaming):
            st.text_input(
                "Title",
                session.title,
                key=f"chat-title-{session.id}",
                label_visibility="collapsed",
                max_chars=300,
                on_change=_rename,
                args=(session.id,),
            )
            st.button("Done", key="chat-title-done", on_click=_rename, args=(session.id,))
            return
        st.title(safe_label(session.title, 160), anchor=False, width="content")
        st.button(
            "Rename", icon=":material/edit:", type="tertiary", key="chat-rename", on_click=_start, args=(renaming,)
        )


def _start(name: str) -> None:
    st.session_state[name] = True


def _rename(session_id: str) -> None:
    st.session_state.pop(f"chat-renaming-{session_id}", None)
    typed = st.session_state.get(f"chat-title-{session_id}")
    if isinstance(typed, str):
        _change(session_id, "rename", typed)


def _change(session_id: str, what: str, *values: Any) -> None:
    """Call the session's own ``rename`` or ``change_tags``, and tell what goes wrong."""
    try:
        getattr(folder.manager().open(session_id), what)(*values)
    except SessionError as error:
        chat_state.notify({"kind": "error", "text": str(error)})


def _draw_tags(session: Session) -> None:
    known = folder.known_tags()
    tags = session.tags
    key = f"chat-tags-{session.id}-{'|'.join(tags)}"
    st.multiselect(
        "Tags",
        list(dict.fromkeys([*tags, *known])),
        default=tags,
        key=key,
        label_visibility="collapsed",
        placeholder="Add tags",
        accept_new_options=True,
        select_all=False,
        on_change=_retag,
        args=(session.id, key, tuple(tags)),
    )


def _retag(session_id: str, key: str, before: tuple[str, ...]) -> None:
    chosen = list(st.session_state[key])
    added, gone = [tag for tag in chosen if tag not in before], [tag for tag in before if tag not in chosen]
    _change(session_id, "change_tags", added, gone)


def _draw_views() -> View:
    asked = links.asked("view")
    start = asked if asked in _VIEWS else "all"
    chosen = st.segmented_control(
        "How to read",
        list(get_args(View)),
        default=start,
        format_func=_VIEWS.__getitem__,
        key=f"chat-view-{start}",
        label_visibility="collapsed",
        required=True,
        width="content",
    )
    if chosen and chosen != start:
        if chosen == "all":
            del st.query_params["view"]
        else:
            st.query_params["view"] = chosen
    view: View = chosen or "all"
    return view


def _facts(session: Session) -> str:
    """Turns, tokens own and inherited, how full the context is, as one line."""
    stored, inherited = session.messages, session.inherited
    pieces = [text.count(messages.turn_count(stored), "turn")]
    own, copied = usage.total(stored[inherited:]), usage.total(stored[:inherited])
    if own.answers or copied.answers:
        pieces.append(text.tokens(own.total, copied.total, is_partial=own.is_partial))
        pieces += _cost(session, own, copied)
        pieces += reported(prices.reported(stored, session.meta, inherited))
    settings = providers.told(session.meta)
    if full := _context(stored, settings):
        pieces.append(full)
    pieces += _answered_by(stored, settings)
    pieces.append(safe_label(session.id))
    return " · ".join(pieces)


def _cost(session: Session, own: usage.Totals, copied: usage.Totals) -> list[str]:
    """What was spent in the session, and apart what its copied start had cost; nothing where nobody knows."""
    costs = folder.store().catalog.costs([session.id]).get(session.id)
    if costs is None:
        return []
    here, before = (prices.said(money, tokens) for money, tokens in zip(costs, (own, copied), strict=True))
    if not copied.answers:
        return [shown(here)] if here != text.UNKNOWN else []
    said = [f"{here} own"] if here != text.UNKNOWN else []
    said += [f"{before} inherited"] if before != text.UNKNOWN else []
    return [shown(" and ".join(said))] if said else []


def _answered_by(stored: list[dict[str, Any]], settings: dict[str, Any]) -> list[str]:
    """The model of the last answer that names one; before any answer, that the demo will give it."""
    answers = [message for message in stored if message.get("role") == "assistant"]
    models = [model for message in answers if isinstance(model := message.get("model"), str) and model]
    if models:
        return ["demo model" if models[-1] == "demo" else safe_label(models[-1], 60)]
    return [] if answers or not providers.is_demo(settings) else ["demo model"]


def _context(stored: list[dict[str, Any]], settings: dict[str, Any]) -> str:
    """How much of the model's context the next request fills, where both numbers are known."""
    limit = settings.get("context_tokens")
    last = next((found for message in reversed(stored) if (found := model_calls.last(message))), None)
    if not isinstance(limit, int) or limit <= 0 or last is None or last.total is None:
        return ""
    return f"context {round(100 * last.total / limit)}% full ({last.total:,} of {limit:,})"


# ---------------------------------------------------------------- outline


def _draw_outline(session: Session) -> None:
    outline = st.popover("Outline", icon=":material/toc:", type="tertiary", key="chat-outline", on_change="rerun")
    if not outline.open:
        return
    with outline, st.container(key="chat-outline-body", gap=None, width=420):
        stored = session.messages
        wanted = st.text_input("Find a prompt", key="chat-outline-find", placeholder="Find a prompt").casefold().strip()
        found = [
            (position + 1, start, prompt)
            for position, (start, end) in enumerate(tool_calls.each_turn(stored))
            if wanted in (prompt := messages.first_prompt(stored[start:end]) or "No prompt").casefold()
        ]
        pages = max(1, -(-len(found) // 15))
        page = st.pagination(pages, default=pages, key=f"chat-outline-page-{pages}") if pages > 1 else 1
        for position, start, prompt in found[(page - 1) * 15 : page * 15]:
            st.button(
                f"**{position}** {safe_label(names.request_in(prompt), 60)}",
                key=f"chat-outline-{start}",
                type="tertiary",
                width="stretch",
                on_click=_jump,
                args=(session.id, start),
            )
        if not found:
            st.caption("No prompt has these words." if wanted else "Nothing was said yet.")


def _jump(session_id: str, start: int) -> None:
    st.session_state["chat-outline"] = False
    st.session_state.pop(f"chat-window-{session_id}-asked", None)
    chat_state.go(session_id, start)


# ---------------------------------------------------------------- more


def _draw_more(session: Session) -> None:
    more = st.popover("More", icon=":material/more_horiz:", type="tertiary", key="chat-more", on_change="rerun")
    if not more.open:
        return
    with more, st.container(key="chat-more-body", gap=None):
        _item("Fork the session", "fork_right", "chat-more-fork", fork_here, (session.id,))
        _item("Copy link", "link", "chat-more-link", _copy_link, (session.id,))
        _item("Export …", "download", "chat-more-export", open_dialog, ("export", session.id, 0))
        _item("Model and settings …", "tune", "chat-more-settings", open_dialog, ("settings", session.id, 0))
        _item("Delete …", "delete", "chat-more-delete", open_dialog, ("delete", session.id, 0))
        st.divider()
        st.caption("Keyboard")
        st.markdown("\n".join(f"- **{keys}** {what}" for what, keys in SHORTCUTS))


def _item(label: str, icon: str, key: str, action: Any, args: tuple[Any, ...]) -> None:
    st.button(
        label, icon=f":material/{icon}:", type="tertiary", width="stretch", key=key, on_click=_act, args=(action, args)
    )


def _act(action: Any, args: tuple[Any, ...]) -> None:
    st.session_state["chat-more"] = False
    action(*args)


def fork_here(session_id: str) -> None:
    """Fork the session at its last allowed point, and open the fork."""
    try:
        child = folder.manager().fork(session_id)
    except SessionError as error:
        chat_state.notify({"kind": "error", "text": str(error)})
        return
    chat_state.go(child.id)


def _copy_link(session_id: str) -> None:
    browser.copy(links.address("chat", links.to_chat(session_id)), "Link copied")


def draw_delete(session: Session) -> None:
    """The dialog that moves the session to the trash."""
    st.text(text.visible(session.title))
    st.caption("It goes to the trash and can be restored; forks of it stay as they are.")
    if st.button("Move to the trash", key="chat-delete-yes", type="primary", icon=":material/delete:"):
        st.session_state.pop("chat_dialog", None)
        try:
            folder.manager().delete(session.id)
        except SessionError as error:
            chat_state.notify({"kind": "error", "text": str(error)})
        else:
            chat_state.go(None)
            chat_state.notify({"kind": "info", "text": "The session is in the trash.", "undo": session.id})
        st.rerun()
