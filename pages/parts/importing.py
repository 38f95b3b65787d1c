"""Import sessions of other tools: by upload or from a folder of this machine, with a progress bar and a report.

Asks first. Reads the given files only, and never changes them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Any

import pandas as pd
import streamlit as st

from pages.parts import folder
from pages.parts.safe_markdown import safe_label, visible
from sessions_lib import importers, names
from sessions_lib.importers import Progress

_OPEN = "import_open"
_REPORT = "import_report"
_TOOLS = {".claude": "Claude Code", ".codex": "Codex", ".pi": "Pi"}
_KNOWN = "Claude Code, Codex, Pi, ChatGPT exports, OpenAI chats and Forkbook's own exports"
_SHOWN = 500


def tool_of(place: Path) -> str:
    """The name of the tool that keeps its sessions in ``place``."""
    return next((_TOOLS[part] for part in place.parts if part in _TOOLS), place.name)


def button(label: str = "Import") -> None:
    """The button that opens the dialog."""
    st.button(label, key="import_button", icon=":material/upload:", on_click=_open)


def offer() -> None:
    """A button to import what other tools keep on this machine, if they keep anything; it asks before it reads."""
    if places := importers.places():
        tools = " / ".join(tool_of(place) for place in places)
        button(f"Import my {tools} sessions")


def _open() -> None:
    st.session_state.pop(_REPORT, None)
    st.session_state[_OPEN] = True


def close() -> None:
    """Close the dialog."""
    st.session_state.pop(_OPEN, None)


def dialog() -> None:
    """Draw the dialog if it is open."""
    if st.session_state.get(_OPEN):
        _dialog()


@st.dialog("Import sessions", width="medium", on_dismiss=close)
def _dialog() -> None:
    report: list[Progress] | None = st.session_state.get(_REPORT)
    if report is not None:
        _draw_report(report)
        return
    st.caption(f"Reads {_KNOWN}. The files are only read; what was imported before is not imported twice.")
    wanted = _places()
    typed = st.text_input(
        "Another folder or file on this machine", key="import_path", placeholder="/home/me/exports", autocomplete="off"
    )
    uploaded = st.file_uploader("Or upload files", accept_multiple_files=True, key="import_files")
    paths = [*wanted, *([Path(typed.strip()).expanduser()] if typed and typed.strip() else [])]
    with st.container(horizontal=True, vertical_alignment="center"):
        starts = st.button("Import", key="import_start", type="primary", disabled=not (paths or uploaded))
    if starts:
        _import(paths, uploaded)
        st.rerun()


def _places() -> list[Path]:
    chosen = []
    for place in importers.places():
        if st.checkbox(f"{tool_of(place)}: {safe_label(str(place))}", key=f"import_place_{tool_of(place)}"):
            chosen.append(place)
    return chosen


def _import(paths: Sequence[Path], uploaded: Sequence[Any]) -> None:
    """Import everything, showing how far it is; the report is kept for the dialog."""
    bar = st.progress(0.0, "Looking for sessions")
    done: list[Progress] = []
    with tempfile.TemporaryDirectory() as held, folder.errors_told():
        given = [*paths, *_on_disk(uploaded, Path(held))]
        for step in importers.import_paths(folder.manager(), given):
            done.append(step)
            bar.progress(
                step.done / max(1, step.total), safe_label(f"{step.done} of {step.total}: {step.source.name}", 90)
            )
    st.session_state[_REPORT] = done


def _on_disk(uploaded: Sequence[Any], held: Path) -> list[Path]:
    """The uploaded files under names of their own: a browser may send any name, twice too."""
    written = []
    for number, file in enumerate(uploaded):
        place = held / str(number)
        place.mkdir()
        extension = PurePath(file.name).suffix.lstrip(".") or "jsonl"
        path = place / names.file_name(PurePath(file.name).stem, extension)
        path.write_bytes(file.getbuffer())
        written.append(path)
    return written


def _draw_report(report: list[Progress]) -> None:
    results = [step.result for step in report if step.result]
    sessions = sum(result.added_sessions for result in results)
    added = sum(result.added_messages for result in results)
    refused = sum(step.error is not None for step in report)
    st.markdown(
        f"**{sessions:,}** new session{'s' * (sessions != 1)}, **{added:,}** messages, from {len(results):,} "
        f"file{'s' * (len(results) != 1)}" + (f"; **{refused}** could not be imported." if refused else ".")
    )
    shown = sorted(report, key=lambda step: step.error is None)[:_SHOWN]
    st.dataframe(
        pd.DataFrame(
            {
                "File": [visible(step.source.name) for step in shown],
                "Result": [visible(_said(step)) for step in shown],
                "Left out": [visible(_left_out(step)) for step in shown],
            }
        ),
        hide_index=True,
        key="import_report_table",
        height="content" if len(shown) <= 10 else 360,
        column_config={"Result": st.column_config.TextColumn(width="large")},
    )
    with st.container(horizontal=True):
        if st.button("Done", key="import_done", type="primary"):
            close()
            st.rerun()
        st.button("Import more", key="import_more", on_click=_open)


def _said(step: Progress) -> str:
    if step.error is not None:
        return str(step.error)
    if step.result is None or step.result.is_unchanged:
        return "imported before, not changed since"
    return f"{step.result.report.format}: {step.result.summary}"


def _left_out(step: Progress) -> str:
    """What of the file is not in a session: damaged lines, records that are no conversation, warnings."""
    if step.result is None:
        return ""
    report = step.result.report
    damaged = sum(map(len, report.damaged.values()))
    said = [f"{damaged} damaged line{'s' * (damaged != 1)}"] if damaged else []
    said += [f"{count} × {kind}" for kind, count in report.skipped.most_common(3)]
    return "; ".join([*said, *report.warnings[:2]])
