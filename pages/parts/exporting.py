"""Sessions as files to download: one file, or a zip of several; secrets replaced unless a person says otherwise.

The file is made when it is asked for, so it holds what the session holds at that moment, and asking for it changes
nothing. Does not write into the folder.
"""

from __future__ import annotations

import io
import zipfile
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath

import pandas as pd
import streamlit as st

from pages.parts import folder
from pages.parts.safe_markdown import safe_label, visible
from sessions_lib import content, export, redact
from sessions_lib.errors import SessionError
from sessions_lib.redact import Finding

TO_READ = ("html", "markdown")
LIMIT_BYTES = 300_000_000  # a download is held in memory as a whole
_PREVIEWED = 20  # sessions searched for secrets without being asked
_SHOWN = 200


def one_file(session_id: str, kind: str, redacted: bool) -> tuple[str, bytes]:
    """The file's name and content for one session."""
    session = folder.manager().open(session_id)
    meta = {"id": session.id, **session.meta}
    text = export.export(session.messages, meta, kind, redacted=redacted)
    shown = redact.redact_meta(meta) if redacted else meta
    said = redact.redact(session.messages[:2]) if redacted else session.messages
    return export.file_name(said, shown, kind), text.encode()


def archive(sessions: Sequence[str], kind: str, redacted: bool) -> bytes:
    """A zip with a file for each session; those that cannot be read are named in ``not exported.txt``."""
    held = io.BytesIO()
    taken: set[str] = set()
    missing: list[str] = []
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as file:
        for session in sessions:
            try:
                name, text = one_file(session, kind, redacted)
            except SessionError as error:
                missing.append(str(error))
                continue
            name = _unique(name, session, taken)
            file.writestr(name, text)
        if missing:
            file.writestr("not exported.txt", "\n".join(missing) + "\n")
    return held.getvalue()


def _unique(name: str, session: str, taken: set[str]) -> str:
    if name.casefold() in taken:
        path = PurePath(name)
        name = f"{path.stem} ({session}){path.suffix}"
    taken.add(name.casefold())
    return name


def panel(sessions: Sequence[str], prefix: str) -> None:
    """The choice of a format, what would be replaced, and the button that downloads."""
    kind = st.selectbox(
        "Format",
        list(export.FORMATS),
        index=1,
        format_func=lambda name: export.FORMATS[name].label,
        key=f"{prefix}_format",
    )
    redacted = st.toggle(
        "Replace secrets and personal data",
        value=kind in TO_READ,
        key=f"{prefix}_redacted_{kind in TO_READ}",
        help="Keys, tokens, passwords, e-mail addresses, home folders. The session itself is not changed.",
    )
    with folder.errors_told():
        size = sum(info.size_bytes for info in map(folder.manager().info, sessions[:2000]))
        if size > LIMIT_BYTES:
            st.warning(
                f"These are {content.size_text(size)}, too much for one download. Narrow the list, "
                "or copy the files themselves: they are in the folder.",
                icon=":material/warning:",
            )
            return
        if redacted:
            _preview(sessions, prefix)
        else:
            st.caption("The file will hold everything as it was said, keys and addresses too.")
        _download(sessions, kind, redacted, prefix)


def _download(sessions: Sequence[str], kind: str, redacted: bool, prefix: str) -> None:
    if len(sessions) == 1:
        name, _ = one_file(sessions[0], kind, redacted)
        mime, label = export.FORMATS[kind].mime, "Download"
    else:
        name, mime, label = "sessions.zip", "application/zip", f"Download {len(sessions)} sessions as zip"

    def made() -> bytes:
        if len(sessions) == 1:
            return one_file(sessions[0], kind, redacted)[1]
        return archive(sessions, kind, redacted)

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


def _preview(sessions: Sequence[str], prefix: str) -> None:
    wanted = list(sessions)
    if len(wanted) > _PREVIEWED and not st.button("Show what would be replaced", key=f"{prefix}_look"):
        st.caption(f"Secrets in {len(wanted)} sessions will be replaced.")
        return
    found: list[tuple[str, Finding]] = []
    for session_id in wanted:
        session = folder.current(session_id)
        found += [(session.title, one) for one in redact.find(session.messages, meta=session.meta)]
    if not found:
        st.caption("Nothing was found that looks like a secret. Look through the file before you share it.")
        return
    kinds = Counter(one.kind for _, one in found)
    st.markdown(
        "**Will be replaced:** " + ", ".join(f"{count} × {safe_label(kind)}" for kind, count in kinds.most_common())
    )
    st.dataframe(
        pd.DataFrame(
            {
                "Session": [visible(title) for title, _ in found[:_SHOWN]],
                "Where": [
                    "title, tags, settings" if f.message is None else f"message {f.message + 1}"
                    for _, f in found[:_SHOWN]
                ],
                "What": [f.kind for _, f in found[:_SHOWN]],
                "Starts with": [visible(f.text[:6]) + "…" for _, f in found[:_SHOWN]],
                "Becomes": [visible(f.replacement) for _, f in found[:_SHOWN]],
            }
        ),
        hide_index=True,
        height=min(250, 38 + 35 * len(found[:_SHOWN])),
        key=f"{prefix}_findings",
    )
    if len(found) > _SHOWN:
        st.caption(f"and {len(found) - _SHOWN} more")
