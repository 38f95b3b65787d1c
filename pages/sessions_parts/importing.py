"""Import sessions of other tools: by upload or from a folder of this machine, with a progress bar and a report.

Asks first. Reads the given files only, and never changes them. A long import goes on in the background
(``import_run``): it can be stopped, and the dialog can be closed and opened again meanwhile.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Any

import pandas as pd
import streamlit as st

from pages.sessions_parts import import_watch
from pages.sessions_parts.import_run import ImportRun
from pages.shared import acting, folder, moments
from pages.shared.safe_markdown import safe_label
from sessions_lib import importers, names, text
from sessions_lib.importers import ImportResult
from sessions_lib.text import visible

_OPEN = "import_open"
_RUN = "import_run"
_KNOWN = ", ".join(importers.FORMATS.values())
_SHOWN = 500
_SHORT_S = 2.0  # an import of so many seconds is waited for


def button(label: str = "Import") -> None:
    """The button that opens the dialog."""
    st.button(label, key="import_button", icon=":material/upload:", on_click=_open)


def offer() -> None:
    """A button to import what other tools keep on this machine, if they keep anything; it asks before it reads."""
    if places := importers.places():
        tools = " / ".join(dict.fromkeys(map(importers.tool_at, places)))
        button(f"Import my {tools} sessions")


def _open() -> None:
    run: ImportRun | None = st.session_state.get(_RUN)
    if run is not None and not run.is_running:
        del st.session_state[_RUN]
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
    run: ImportRun | None = st.session_state.get(_RUN)
    if run is not None:
        _watch(run) if run.is_running else _draw_report(run)
        return
    st.caption(f"Reads {_KNOWN}. The files are only read; what was imported before is not imported twice.")
    wanted = _places()
    _following()
    typed = st.text_input(
        "Another folder or file on this machine", key="import_path", placeholder="/home/me/exports", autocomplete="off"
    )
    uploaded = st.file_uploader("Or upload files", accept_multiple_files=True, key="import_files")
    again = st.checkbox("Bring back sessions that I deleted here", key="import_again")
    paths = [*wanted, *([Path(typed.strip())] if typed and typed.strip() else [])]
    if st.button("Import", key="import_start", type="primary"):
        if paths or uploaded:
            _import(paths, uploaded, again=again)
            st.rerun()
        st.caption(":red[Choose a place, a path or a file first.] A file that is still on its way needs a moment.")


def _places() -> list[Path]:
    chosen = []
    tools: set[str] = set()
    for place in importers.places():
        tool = importers.tool_at(place)
        is_first = tool not in tools
        tools.add(tool)
        if st.checkbox(f"{tool}: {safe_label(str(place))}", key=f"import_place_{tool if is_first else place}"):
            chosen.append(place)
    return chosen


def _following() -> None:
    """The switch that has the server follow this machine's tools, and what that brought so far."""
    manager, key = folder.manager(), "import_watch"
    watch = import_watch.running(manager)
    if watch is None and not importers.places():
        return
    st.session_state[key] = watch is not None  # another window may have switched it
    st.toggle(
        "Keep following these tools while the app runs",
        key=key,
        on_change=lambda: import_watch.switch(manager, is_on=st.session_state[key]),
        help="What they write is taken in within two seconds. What they delete stays here.",
    )
    if watch is not None:
        _draw_watch(watch)


@st.fragment(run_every=1.0)
def _draw_watch(watch: import_watch.ImportWatch) -> None:
    brought = f"{text.count(watch.sessions, 'new session')} and {text.count(watch.messages, 'message')}"
    st.caption(f"Switched on {moments.ago(watch.since)}: {brought}." if watch.is_running else "Off.")
    if watch.error is not None:
        st.caption(f":red[{safe_label(str(watch.error))}]")


def _import(paths: Sequence[Path], uploaded: Sequence[Any], *, again: bool) -> None:
    """Start importing everything; a short import is over when this returns."""
    held = tempfile.TemporaryDirectory()
    given = [*paths, *_on_disk(uploaded, Path(held.name))]
    run = st.session_state[_RUN] = ImportRun(folder.manager(), given, again=again, held=held)
    bar = st.progress(0.0, "Looking for sessions")
    for _ in range(round(_SHORT_S / 0.1)):
        run.wait(0.1)
        if not run.is_running:
            break
        _draw_progress(bar, run)


@st.fragment(run_every=0.5)
def _watch(run: ImportRun) -> None:
    """How far a long import is, and the button that stops it; the whole page follows when it ends."""
    if not run.is_running:
        st.rerun()
    _draw_progress(st.progress(0.0, "Looking for sessions"), run)
    if run.is_stopped:
        st.caption("Stopping after this file.")
    else:
        st.button("Stop", key="import_stop", icon=":material/stop_circle:", on_click=run.stop)
        st.caption("You can close this window; the import goes on. Import opens it again.")


def _draw_progress(bar: Any, run: ImportRun) -> None:
    if run.done:
        step = run.done[-1]
        bar.progress(
            step.done / max(1, step.total), safe_label(f"{step.done:,} of {step.total:,}: {step.source.name}", 90)
        )


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


def _draw_report(run: ImportRun) -> None:
    report = list(run.done)
    if run.error is not None:
        st.error(safe_label(str(run.error)), icon=":material/error:")
    elif run.is_stopped and report and report[-1].done < report[-1].total:
        left = report[-1].total - report[-1].done
        st.info(f"Stopped with {left:,} files left. Import again, and it goes on from there.", icon=":material/info:")
    results = [step.result for step in report if step.result]
    refused = sum(step.error is not None for step in report)
    failed = f" :red[**{refused:,}** could not be imported.]" if refused else ""
    st.markdown(_brought(results, "**") + failed)
    if gone := sum(result.left_deleted for result in results):
        st.caption(f"{gone:,} that you deleted before stay deleted. To bring them back, import again and say so.")
    refused_alike = importers.refusals(report)
    rows = [(one.path.name, one.text.removeprefix(f"{one.path}: "), "") for one in refused_alike]
    rows += [(step.source.name, _said(step.result), _left_out(step.result)) for step in report if step.result]
    shown = [tuple(map(visible, row)) for row in rows[:_SHOWN]]
    st.dataframe(
        pd.DataFrame(shown, columns=["File", "Result", "Left out"]),
        hide_index=True,
        key="import_report_table",
        height="content" if len(shown) <= 10 else 360,
        column_config={"Result": st.column_config.TextColumn(width="large")},
    )
    with st.container(horizontal=True):
        if st.button("Done", key="import_done", type="primary"):
            close()
            acting.tell(f"Imported: {_brought(results)}")
            st.rerun()
        st.button("Import more", key="import_more", on_click=_open)


def _brought(results: Sequence[ImportResult], mark: str = "") -> str:
    """What was imported: ``1 new session, 12 messages, from 1 file.``, its first numbers between two ``mark``."""
    sessions = sum(result.added_sessions for result in results)
    added = sum(result.added_messages for result in results)
    new = f"{mark}{sessions:,}{mark} new {text.noun(sessions, 'session')}"
    messages = f"{mark}{added:,}{mark} {text.noun(added, 'message')}"
    return f"{new}, {messages}, from {text.count(len(results), 'file')}."


def _said(result: ImportResult) -> str:
    if result.is_unchanged:
        return "imported before, not changed since"
    return f"{result.report.format}: {result.summary}"


def _left_out(result: ImportResult) -> str:
    """What of the file is not in a session: damaged lines, records that are no conversation, warnings."""
    report = result.report
    damaged = sum(map(len, report.damaged.values()))
    said = [text.count(damaged, "damaged line")] if damaged else []
    said += [f"{count} × {kind} (unknown kind, taken in)" for kind, count in report.unknown.most_common(3)]
    said += [f"{count} × {kind}" for kind, count in report.skipped.most_common(3)]
    return "; ".join([*said, *report.warnings[:2]])
