"""Home: what this is, the last sessions, the demo, the four ways in."""

from __future__ import annotations

import streamlit as st

from pages.parts.frame import frame

frame("Home")
st.title("Forkbook")
