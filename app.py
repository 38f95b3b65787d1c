"""The shell: page config and top navigation around the pages. Start it with ``streamlit run app.py``."""

from __future__ import annotations

import streamlit as st

from pages.shared import frame

frame.configure()
page = st.navigation(frame.pages(), position="top")
frame.mark_shell()
page.run()
