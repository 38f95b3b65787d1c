"""The trials there are, newest first, and how to begin one.

Does not read the sessions of a trial: what it says stands in the trial itself.
"""

from __future__ import annotations

import streamlit as st

from pages.shared import folder, links
from pages.shared.frame import page
from pages.shared.safe_markdown import safe_label
from sessions_lib import text
from sessions_lib.errors import SessionError
from sessions_lib.store.store import SessionStore
from sessions_lib.trials import table
from sessions_lib.trials.trial import Trial


def draw() -> None:
    """A card a trial; a sentence on how to begin one where there is none."""
    store = folder.store()
    found, faults = _there(store)
    for fault in faults:
        st.warning(safe_label(fault), icon=":material/warning:")
    if not found and not faults:
        with st.container(border=True, key="trials-none"):
            st.markdown("**No trial yet.** One answer can be luck. Have several variants answer several times:")
            st.markdown(
                "- in **Chat**, open the menu of a turn: “Try it 10 times …”\n"
                "- in **Compare**, take the branches as variants: “Try 10 times …”\n"
                "- in a terminal: `forkbook trial new SESSION --prompt …`"
            )
        return
    for trial in sorted(found, key=lambda one: one.created, reverse=True):
        _card(trial)


def _there(store: SessionStore) -> tuple[list[Trial], list[str]]:
    """The trials of which a session is left, and what is wrong with those that cannot be read."""
    found: list[Trial] = []
    faults: list[str] = []
    for name in store.trials():
        try:
            trial = Trial.load(store, name)
        except SessionError as error:
            faults.append(str(error))
            continue
        found += [trial] if trial.is_left else []
    return found, faults


def _card(trial: Trial) -> None:
    with st.container(border=True, key=f"trials-card-{trial.name}", gap="small"):
        st.page_link(
            page("trials"), label=f"**{safe_label(trial.name)}**", icon=":material/science:",
            query_params=links.to_trial(trial.name),
        )  # fmt: skip
        variants = [variant.name for variant in trial.variants if not variant.is_noise]
        done = f"{len(trial.results)} of {text.count(len(trial.planned()), 'answer')}"
        st.caption(
            f"{safe_label(', '.join(variants))} · {done} · from {safe_label(folder.title_of(trial.session_id), 60)}"
        )
        for sentence in table.verdicts(table.rows(trial)) if trial.results else ():
            st.markdown(safe_label(sentence, 300))
