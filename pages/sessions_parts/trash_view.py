"""The trash: what was deleted, restored with a click; deleted for good only after a second, explicit one."""

from __future__ import annotations

from datetime import tzinfo

import pandas as pd
import streamlit as st

from pages.shared import acting, folder, moments
from sessions_lib.messages import content
from sessions_lib.store.records import TrashEntry
from sessions_lib.text import visible

_ASK = "sessions_purge_ask"
_KINDS = {
    "deleted": "deleted",
    "merged": "original of a merge",
    "popped": "before a program took its end away",
    "repaired": "original of a repair",
    "metadata": "damaged metadata",
    "unfinished": "deleted or restored by half: restore ends it",
}


def draw(where: tzinfo) -> None:
    """Draw the trash and its acts."""
    entries: list[TrashEntry] = []
    with folder.errors_told():
        entries = folder.manager().trash()
    if not entries:
        st.info("The trash is empty. Deleted sessions lie here until they are purged.", icon=":material/delete:")
        return
    above = st.container()
    key = f"sessions_trash_{len(entries)}_{entries[0].entry}"
    event: object = st.dataframe(
        _frame(entries, where),
        key=key,
        hide_index=True,
        on_select="rerun",
        selection_mode="multi-row",
        height="content" if len(entries) <= 15 else 520,
        column_config={"Title": st.column_config.TextColumn(width="large")},
        alt="The trash",
    )
    rows = event["selection"]["rows"]  # type: ignore[index]  # the stub says DeltaGenerator too
    with above:
        _acts([entries[row] for row in rows if row < len(entries)], entries)


def _frame(entries: list[TrashEntry], where: tzinfo) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "Title": [visible(entry.title or entry.session) for entry in entries],
            "Session": [entry.session for entry in entries],
            "What": [_KINDS.get(entry.kind, entry.kind) for entry in entries],
            "Since": [moments.both(entry.when, where) for entry in entries],
            "Size": [content.size_text(entry.size_bytes) for entry in entries],
        }
    )


def _acts(selected: list[TrashEntry], entries: list[TrashEntry]) -> None:
    count = len(selected)
    chosen = selected or entries
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{count or len(entries)}** {'selected' if count else 'in the trash'}", width="stretch")
        st.button(
            "Restore",
            key="sessions_restore",
            icon=":material/restore_from_trash:",
            disabled=not count,
            on_click=acting.restore,
            args=([entry.entry for entry in selected],),
        )
        label = "Purge" if count else "Purge all"
        with st.popover(label, icon=":material/delete_forever:", key=_ASK, on_change="rerun"):
            st.markdown(f"Delete **{len(chosen)}** for good? No undo, no copy is kept.")
            st.button(
                f"Delete {len(chosen)} for good",
                key="sessions_purge",
                type="primary",
                on_click=_purge,
                args=([entry.entry for entry in chosen],),
            )


def _purge(wanted: list[str]) -> None:
    st.session_state[_ASK] = False
    manager = folder.manager()
    done, faults = manager.purge([one for one in manager.purgeable() if one.entry and one.entry.entry in wanted])
    acting.tell(f"{len(done)} deleted for good.", faults=faults)
