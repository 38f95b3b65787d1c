"""Trials: is the better branch better, or was it luck? Variants × repeats × checks, with what is noise beside it."""

from __future__ import annotations

import streamlit as st

from pages.shared import acting, folder, links, presenting
from pages.shared.frame import frame, page
from pages.shared.safe_markdown import safe_label
from pages.trials_parts import listed, new_trial, picking, results, running_view
from sessions_lib.export import presentation
from sessions_lib.trials.trial import Trial

frame("Trials")
if (goes := new_trial.goes_to()) is not None:
    st.query_params.from_dict(goes)

name, begins_in = links.asked("trial"), links.asked("new")
st.title(safe_label(name) if name else "Trials", anchor=False)
acting.flash()
with folder.errors_told():
    if begins_in and not name:
        new_trial.draw(begins_in)
        st.stop()
    if not name:
        st.caption("Each variant answers several times; what can be told apart, and what was luck.")
        listed.draw()
        st.stop()
    trial = Trial.load(folder.store(), name)
    if presenting.is_on():
        presenting.draw(presentation.of_trial(trial))
        st.stop()
    results.head(trial)
    presenting.button(is_quiet=True)
    running_view.draw(trial)
    if trial.results:
        results.sentences(trial)
        results.rates(trial)
        results.table(trial)
        results.dots(trial)
        picking.draw(trial)
    st.page_link(page("trials"), label="All trials", icon=":material/arrow_back:")
