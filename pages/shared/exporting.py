"""Sessions as files to download: one file, or a zip of several; secrets replaced unless a person says otherwise.

The file is made when it is asked for, so it holds what the session holds at that moment, and asking for it changes
nothing. Does not write into the folder.
"""

from __future__ import annotations

import contextlib
import io
import threading
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from urllib.parse import quote

import pandas as pd
import streamlit as st

from pages.shared import folder, session_queries
from pages.shared.safe_markdown import safe_label
from sessions_lib.errors import SessionError
from sessions_lib.export import export
from sessions_lib.export.redact import NOT_REDACTED, Finding, Leaving, Redaction
from sessions_lib.messages import content, places
from sessions_lib.store.family import family_of
from sessions_lib.store.records import SessionInfo
from sessions_lib.store.session import Session
from sessions_lib.text import visible

LIMIT_BYTES = 300_000_000  # a download is held in memory as a whole
_PREVIEWED = 20  # sessions searched for secrets without being asked
_SHOWN = 200


def one_file(session_id: str, kind: str, redacted: bool) -> tuple[str, bytes]:
    """The file's name and content for one session; tables are a zip of them."""
    session, redaction = folder.manager().open(session_id), Redaction(is_on=redacted)
    if export.FORMATS[kind].tables:
        return _name(session, kind, redaction), archive([session_id], kind, redacted)
    family = folder.manager().family(session_id) if kind == "html" else ()
    return _name(session, kind, redaction), _file(session, kind, redaction, family, {})


def _file(
    session: Session, kind: str, redaction: Redaction, family: Sequence[SessionInfo], links: Mapping[str, str]
) -> bytes:
    meta = {**session.meta, "id": session.id}
    return export.export(session.messages, meta, kind, redaction=redaction, family=family, links=links).encode()


def _name(session: Session, kind: str, redaction: Redaction) -> str:
    return export.file_name(session.messages, {**session.meta, "id": session.id}, kind, redaction=redaction)


def archive(sessions: Sequence[str], kind: str, redacted: bool) -> bytes:
    """A zip with a file for each session, or with the tables of all of them.

    Those that cannot be read or written are named in ``not exported.txt``. The web pages in it link to each other along
    their families.
    """
    held = io.BytesIO()
    missing: list[str] = []
    redaction = Redaction(is_on=redacted)
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as file:
        made = _tables if export.FORMATS[kind].tables else _files
        for name, data in made(sessions, kind, redaction, missing):
            file.writestr(name, data)
        if missing:
            file.writestr("not exported.txt", "\n".join(missing) + "\n")
    return held.getvalue()


def _files(sessions: Sequence[str], kind: str, redaction: Redaction, missing: list[str]) -> Iterator[tuple[str, bytes]]:
    file_names = _file_names(sessions, kind, redaction)
    by_id = {info.id: info for info in folder.manager().list()} if kind == "html" else {}
    links = {session_id: quote(name) for session_id, name in file_names.items()}
    for session_id in sessions:
        try:
            session = folder.manager().open(session_id)
            family = family_of(by_id, session_id) if session_id in by_id else ()
            written = _file(session, kind, redaction, family, links)
        except SessionError as error:
            missing.append(_why(session_id, error, redaction))
            continue
        yield file_names[session_id], written


def _tables(
    sessions: Sequence[str], kind: str, redaction: Redaction, missing: list[str]
) -> Iterable[tuple[str, bytes]]:
    def leaving() -> Iterator[Leaving]:
        for session_id in sorted(sessions):
            try:
                session = folder.manager().open(session_id)
                left = redaction.leaving(session.messages, {**session.meta, "id": session.id})
            except SessionError as error:
                missing.append(_why(session_id, error, redaction))
                continue
            yield left

    return export.tables(leaving(), kind).items()


def _why(session_id: str, error: SessionError, redaction: Redaction) -> str:
    left_id = redaction.session_id(session_id)
    return f"{left_id}: {redaction.text(str(error).replace(session_id, left_id))}"


def _file_names(sessions: Sequence[str], kind: str, redaction: Redaction) -> dict[str, str]:
    """Session id → its file's name in the zip, each once; without those that cannot be read."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for session_id in sessions:
        with contextlib.suppress(SessionError):  # the archive says why, when it comes to the session
            name = _name(folder.manager().open(session_id), kind, redaction)
            found[session_id] = _unique(name, redaction.session_id(session_id), taken)
    return found


def _unique(name: str, session: str, taken: set[str]) -> str:
    if name.casefold() in taken:
        path = PurePath(name)
        name = f"{path.stem} ({session}){path.suffix}"
    taken.add(name.casefold())
    return name


def switch(key: str, *, is_on: bool) -> bool:
    """The switch of every export: whether secrets are replaced in what leaves."""
    return st.toggle(
        "Replace secrets and personal data",
        value=is_on,
        key=key,
        help="Keys, tokens, passwords, e-mail addresses, home folders, in names and ids too. "
        "The session itself is not changed.",
    )


def panel(sessions: Sequence[str], prefix: str, done: Callable[[str], None] | None = None) -> None:
    """The choice of a format, what would be replaced, and the button that downloads.

    ``done`` is called with the file's name once it was made, and the page is drawn again: a dialog closes then.
    """
    kind = st.selectbox(
        "Format",
        list(export.FORMATS),
        index=1,
        format_func=lambda name: export.FORMATS[name].label,
        key=f"{prefix}_format",
    )
    is_redacted = export.FORMATS[kind].is_redacted
    redacted = switch(f"{prefix}_redacted_{is_redacted}", is_on=is_redacted)
    with folder.errors_told():
        with session_queries.catalog().at_one_moment():
            size = sum(info.size_bytes for info in session_queries.infos(sessions).values())
        if size > LIMIT_BYTES:
            st.warning(
                f"These are {content.size_text(size)}, too much for one download. Narrow the list, "
                "or copy the files themselves: they are in the folder.",
                icon=":material/warning:",
            )
            return
        if len(sessions) == 1:
            session = folder.current(sessions[0])
            export.check(session.messages, session.meta, kind)
        if redacted:
            _preview(sessions, prefix)
        else:
            st.caption(NOT_REDACTED)
        _download(sessions, kind, redacted, prefix, done)


def _download(
    sessions: Sequence[str], kind: str, redacted: bool, prefix: str, done: Callable[[str], None] | None
) -> None:
    if len(sessions) == 1:
        name = _name(folder.current(sessions[0]), kind, Redaction(is_on=redacted))
        mime, label = export.FORMATS[kind].mime, "Download"
    else:
        name, mime, label = "sessions.zip", "application/zip", f"Download {len(sessions)} sessions as zip"

    is_made = threading.Event()

    def made() -> bytes:
        file = one_file(sessions[0], kind, redacted)[1] if len(sessions) == 1 else archive(sessions, kind, redacted)
        is_made.set()
        return file

    st.download_button(
        label,
        made,
        file_name=name,
        mime=mime,
        on_click="ignore",
        type="primary",
        icon=":material/download:",
        key=f"{prefix}_download",
    )
    st.caption(safe_label(name))
    if done is not None:
        _watch(is_made, name, done)


@st.fragment(run_every=0.4)
def _watch(is_made: threading.Event, name: str, done: Callable[[str], None]) -> None:
    # A click that reruns the page could take the button away before the browser has asked it for the file.
    if is_made.is_set():
        done(name)
        st.rerun()


def _preview(sessions: Sequence[str], prefix: str) -> None:
    wanted = list(sessions)
    if len(wanted) > _PREVIEWED and not st.button("Show what would be replaced", key=f"{prefix}_look"):
        st.caption(f"Secrets in {len(wanted)} sessions will be replaced.")
        return
    findings: list[tuple[str, str, Finding]] = []
    redaction = Redaction()
    for session_id in wanted:
        session = folder.current(session_id)
        before = len(redaction.findings)
        redaction.leaving(session.messages, {**session.meta, "id": session.id})
        turns = places.turns_of(session.messages)
        for one in redaction.findings[before:]:
            where = "title, tags, id, settings" if one.message is None else f"turn {turns[one.message]}"
            findings.append((session.title, where, one))
    st.caption(safe_label(redaction.sentence()))
    if not findings:
        return
    st.dataframe(
        pd.DataFrame(
            {
                "Session": [visible(title) for title, _, _ in findings[:_SHOWN]],
                "Where": [where for _, where, _ in findings[:_SHOWN]],
                "What": [f.kind for _, _, f in findings[:_SHOWN]],
                "Starts with": [visible(f.text[:6]) + "…" for _, _, f in findings[:_SHOWN]],
                "Becomes": [visible(f.replacement) for _, _, f in findings[:_SHOWN]],
            }
        ),
        hide_index=True,
        height="content" if len(findings) <= 6 else 240,
        key=f"{prefix}_findings",
    )
    if len(findings) > _SHOWN:
        st.caption(f"and {len(findings) - _SHOWN} more")
