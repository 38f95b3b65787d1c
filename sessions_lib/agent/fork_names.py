"""What a fork is called once it goes its own way: its first own prompt, or the turn that it answers again.

Until then its title says where it was forked. A title that a person gave, or a mark that says what was changed, stays.

Does not name sessions that are no forks.
"""

from __future__ import annotations

from typing import Any

from sessions_lib import messages, names, text
from sessions_lib.messages import content
from sessions_lib.store import forks, records
from sessions_lib.store.session import Session


def name(session: Session, prompt: Any, model: str = "") -> None:
    """Call ``session`` what it is about to do: answer ``prompt``, or (``None``) its last turn again, by ``model``.

    Nothing happens unless it is a fork that has said nothing of its own, under the title it was made with. Where the
    family has that title already, a number tells the two apart.
    """
    meta = session.meta
    given = records.given_title(meta)
    bare = text.unmarked(given)
    if session.parent is None or len(session.messages) > session.inherited or records.MARK_AT in meta or bare == given:
        return
    if prompt is None:
        again = f"rerun of turn {messages.turn_count(session.messages)}"
        made = text.marked_title(bare, " · ".join(filter(None, [again, names.one_line(model, 40)])))
    elif not (made := names.title_from(content.text({"role": "user", "content": prompt}))):
        return
    catalog = session.store.catalog
    parents = {one: parent for one, (parent, _) in catalog.lineage().items()}
    kin = [one for one, parent in parents.items() if parent == session.parent and one != session.id]
    taken = {info.title for info in catalog.infos([session.parent, *kin]).values()}
    session.update_meta({"title": forks.numbered(made, taken)})
