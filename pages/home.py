"""Home: what this is, the last sessions, the demo, the four ways in."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import streamlit as st

from pages.chat_parts import chat_composer, chat_state
from pages.sessions_parts import importing, table
from pages.shared import acting, demo_sessions, folder, frame, links, moments, providers, reading, session_queries
from pages.shared.money import shown as shown_money
from pages.shared.safe_markdown import safe_label
from sessions_lib import demo, text
from sessions_lib.prices import NOTHING, Spent
from sessions_lib.store.records import SessionInfo

WAYS = (
    ("chat", "Chat", ":material/forum:", "Ask, watch the tools work, resume tomorrow, fork at any turn."),
    (
        "sessions",
        "Sessions",
        ":material/list:",
        "Every conversation as a file: search inside, tag, export, undo a delete.",
    ),
    (
        "compare",
        "Compare",
        ":material/compare_arrows:",
        "Two forks side by side: where they parted, what each one cost.",
    ),
    ("stats", "Stats", ":material/bar_chart:", "Turns, tokens, money, tags, models and tools, each counted once."),
)
RECENT = 6


def start() -> None:
    """The button that opens Chat with nothing in it."""
    if st.button("Start a session", type="primary", icon=":material/add:", key="home-start"):
        chat_state.forget()
        st.switch_page(frame.page("chat"))


def try_it() -> None:
    """Send the starter prompt in a new session, and go where it is answered."""
    chat_composer.send(None, demo.DAY_1)
    st.session_state["home-goes"] = True


def draw_starter() -> None:
    """A prompt that works with nothing set up: the offline village answers."""
    if providers.is_demo(providers.told({})):
        st.caption("Try it now, offline: a scripted village answers, with tools.")
        st.button(safe_label(demo.DAY_1), icon=":material/chat_bubble:", key="home-try", on_click=try_it)


def walk(shown: Sequence[str]) -> list[tuple[str, str, str, str, dict[str, str]]]:
    """The four cards: through the demo's newest fork, session by session, if it is there; else the ways in."""
    infos = session_queries.infos(shown)
    forks = [info for info in infos.values() if info.parent in infos]
    if not forks:
        return [(*way, {}) for way in WAYS]
    fork = max(forks, key=lambda info: info.last_active or info.created or datetime.min.replace(tzinfo=UTC))
    parent = infos[str(fork.parent)]
    title = safe_label(parent.title, 40)
    return [
        (
            "chat",
            "1 · Open",
            WAYS[0][2],
            f"{title}: prompts, tools and answers, as they were said.",
            links.to_chat(parent.id),
        ),
        (
            "chat",
            "2 · Fork",
            ":material/fork_right:",
            f"{_fork_entry(fork.place)}, and go another way.",
            links.to_chat(parent.id, max(0, fork.inherited - 1)),
        ),
        (
            "compare",
            "3 · Compare",
            WAYS[2][2],
            "Two ways side by side: where they parted, what each one cost.",
            links.to_compare(parent.id, fork.id),
        ),
        ("stats", "4 · Stats", WAYS[3][2], "Turns, tokens, money, tags, models and tools, each counted once.", {}),
    ]


def _fork_entry(place: str) -> str:
    """What to choose in Chat for a fork at ``place``: ``after turn 2``."""
    where, _, turn = place.rpartition("turn ")
    entry = {"after ": "Fork from here", "inside ": "Rerun"}.get(where, "Fork before here")
    return f"Choose “{entry}” in the menu of turn {turn or 1}"


def draw_ways(cards: list[tuple[str, str, str, str, dict[str, str]]]) -> None:
    """Four cards, each a link."""
    for column, (name, title, icon, what, query) in zip(st.columns(len(cards)), cards, strict=True):
        with column, st.container(border=True, height="stretch", gap="xsmall"):
            st.page_link(frame.page(name), label=f"**{title}**", icon=icon, query_params=query)
            st.caption(what)


def draw_recent(infos: list[SessionInfo], total: int) -> None:
    """The sessions to go on with, one line each."""
    costs = session_queries.costs([info.id for info in infos])
    st.header("Go on with", anchor=False)
    with st.container(key="home-recent", gap=None):
        for info in infos:
            with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"home-row-{info.id}"):
                st.page_link(
                    frame.page("chat"),
                    label=safe_label(info.title, 70),
                    icon=":material/fork_right:" if info.parent else ":material/chat_bubble:",
                    query_params=links.to_chat(info.id),
                )
                st.space("stretch")
                st.caption(facts(info, costs.get(info.id, (NOTHING, NOTHING))[0]), width="content")
    if total > len(infos):
        st.page_link(frame.page("sessions"), label=f"All {total:,} sessions", icon=":material/arrow_forward:")


def facts(info: SessionInfo, money: Spent) -> str:
    """Tags, turns, tokens (its own, then those it copied), its own cost and time of one session, as one line."""
    pieces = [", ".join(safe_label(tag, 24) for tag in info.tags[:3])] if info.tags else []
    pieces.append(text.count(info.turns, "turn"))
    if info.tokens.answers:
        pieces.append(table.tokens(info))
        pieces += [shown_money(cost)] if (cost := table.cost(info, money)) else []
    if info.damaged:
        pieces.append("damaged lines")
    pieces.append(moments.ago(info.last_active))
    return " · ".join(pieces)


frame.frame("Home", width="home")
if st.session_state.pop("home-goes", False):
    st.switch_page(frame.page("chat"), query_params=st.query_params.to_dict())
acting.flash()
importing.dialog()
with st.container(horizontal=True, vertical_alignment="center", gap="large", key="home-hero"):
    with st.container(gap="small", key="home-words"):
        st.title("Forkbook", anchor=False)
        st.markdown("A notebook for agent sessions: **chat, resume, fork, compare, measure.**")
        st.caption(
            "Every conversation is a file, one message a line, written the moment it is said. So it outlives the "
            "program: go on tomorrow, try another way in a fork, and see what each way cost."
        )
        actions = st.container(horizontal=True, gap="small")
    with st.container(width=400, key="home-picture"):
        st.image(str(frame.PARTS / "picture.svg"), width=400, alt="A line of turns that forks after the fourth")

ways = st.container(key="home-ways")
shown: Sequence[str] = ()
with folder.errors_told(), session_queries.at_one_moment():
    recent, total, shown = session_queries.newest(RECENT), session_queries.total(), session_queries.of_the_demo()
    with ways:
        draw_ways(walk(shown))
    with actions:
        start()
        if not shown:
            demo_sessions.draw_load("home-demo-load")
        if not recent:
            importing.offer()
    if recent:
        draw_recent(recent, total)
    elif not reading.of(folder.store().name):
        st.header("Nothing here yet", anchor=False)
        st.caption(
            "Start a session, or load the demo: three quests with forks, a finished trial, "
            "and three months of small sessions."
        )
        draw_starter()

st.space("small")
if shown:
    demo_sessions.draw_remove(shown)
open_files = len(folder.store().readable_by_others())
readers = f"of which others on this machine can read {open_files:,}" if open_files else "readable by you alone"
st.caption(
    f"Sessions are files in {safe_label(folder.store().where)}, {readers}. "
    f"Who answers: {safe_label(providers.name_of(providers.told({})))}. Nothing leaves this machine on its own."
)
