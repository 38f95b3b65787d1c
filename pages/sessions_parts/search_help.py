"""The query language in one look, beside the search field."""

from __future__ import annotations

import streamlit as st

_ROWS = (
    ("lighthouse tide", "both words in one message, in any order, also inside longer words"),
    ('"low tide"', "these words next to each other"),
    ("tag:python  -tag:draft", "sessions with this tag, without that one; several tags: all of them"),
    ('tag:"night shift"  model:gpt*', "a name with a blank in quotes, the start of a name with a star"),
    ("untagged:", "sessions without tags"),
    ("model:gpt-5  tool:buy", "sessions that used this model, this tool"),
    ("role:user", "only what you said; also assistant, tool"),
    ("after:2026-03-01  before:2026-04", "from that day on; earlier than that day, month or year"),
    ("on:2026-03-01", "of that day, in the time zone shown"),
    ("is:fork  -is:fork", "forks, or none"),
    ("cost:>1  cost:<=0.05", "sessions in which more than a dollar was spent; five cents at most"),
    ("has:error  has:damage", "sessions with failed tools, with damaged lines"),
)


def draw() -> None:
    """A button that opens the help."""
    with st.popover("", icon=":material/help:", help="How to search", key="search_help"):
        st.markdown("**Search everything that was said**, tool arguments and results, titles and tags.")
        rows = [f"| `{example}` | {meaning} |" for example, meaning in _ROWS]
        st.markdown("\n".join(["| Write | to find |", "|---|---|", *rows]))
        st.caption(
            "Upper and lower case and accents do not matter; punctuation stands for itself. "
            "What is no filter is looked for as text. An empty search shows the whole list."
        )
