"""A session of the OpenAI Agents SDK that is a session of Forkbook: ``Runner.run(agent, "…", session=…)``.

Items are kept whole, beside the messages they make, so that a model gets its own reasoning back. What is taken away
(``pop_item``, ``clear_session``) is taken from a copy: the original goes to the trash. A write that was begun is
finished, whatever is cancelled meanwhile, and several processes may use one session.

Does not run an agent, and knows no model or usage: the SDK hands a session its items alone.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from sessions_lib import names
from sessions_lib.errors import SessionNotFound
from sessions_lib.messages import items as converting
from sessions_lib.messages.content import Message
from sessions_lib.messages.items import Item
from sessions_lib.redaction import ids
from sessions_lib.store.manager import SessionManager
from sessions_lib.store.session import Session

T = TypeVar("T")
_PATIENCE_S = 30.0  # for another process that is writing the same session
_KEY = "agents_session"  # in the metadata: the SDK's name of it, where that is no id of ours


class ForkbookSession:
    """The session ``session_id`` of ``save_dir`` (a folder, else where sessions are kept), made by its first item.

    Any ``session_id`` may be given; one that is no id here gets one made of it, the same every time.
    """

    def __init__(self, session_id: str, save_dir: str | Path | None = None, *, session_settings: Any = None) -> None:
        from agents.memory.session_settings import SessionSettings, coerce_session_settings

        self.session_id = session_id
        self.session_settings = coerce_session_settings(session_settings or SessionSettings())
        self._manager = SessionManager(save_dir)
        self._id = session_id if names.is_id(session_id) else _id_for(session_id)
        self._session: Session | None = None

    async def get_items(self, limit: int | None = None) -> list[Item]:
        """The newest ``limit`` items in the order they came, all without one; ``session_settings`` may hold one."""
        limit = self.session_settings.limit if limit is None else limit
        found = await _finished(self._items)
        return found if limit is None else found[max(0, len(found) - limit) :]

    async def add_items(self, items: Sequence[Item]) -> None:
        """Keep ``items``, all or none; they are on the disk when this returns."""
        added = converting.to_messages(items)
        if added:
            await _finished(lambda: self._add(added))

    async def pop_item(self) -> Item | None:
        """Take the newest item away and return it; ``None`` if there is none."""
        return await _finished(self._pop)

    async def clear_session(self) -> None:
        """Take all items away: the session goes to the trash, and one of the same name begins anew."""
        await _finished(self._clear)

    def fork(self, session_id: str | None = None, at: int | None = None) -> ForkbookSession:
        """A session that starts as a copy of the first ``at`` messages (default: of all), and goes its own way."""
        session = self._opened()
        if session is None:
            raise SessionNotFound(self._id)
        wanted = _id_for(session_id) if session_id is not None and not names.is_id(session_id) else session_id
        child = session.fork(wanted, at)
        branch = ForkbookSession(session_id or child.id, session_settings=self.session_settings)
        branch._manager, branch._id, branch._session = self._manager, child.id, child
        return branch

    def _opened(self) -> Session | None:
        """The session as it is now, or ``None`` if there is none (yet, or any more)."""
        try:
            if self._session is None:
                self._session = self._manager.open(self._id)
            self._session.refresh()
        except SessionNotFound:
            self._session = None
        return self._session

    def _items(self) -> list[Item]:
        session = self._opened()
        return [item for message in session.messages for item in converting.to_items(message)] if session else []

    def _add(self, added: list[Message]) -> None:
        session = self._opened()
        if session is None:
            session = self._session = self._manager.open_or_create(self._id)
            if self._id != self.session_id:
                session.update_meta({"title": self.session_id, _KEY: self.session_id})
        with session.hold(_PATIENCE_S):
            session.extend(added)

    def _pop(self) -> Item | None:
        store = self._manager.store
        if self._opened() is None:
            return None
        with store.hold(self._id, _PATIENCE_S) as hold:
            known = store.open(self._id)
            store.read(self._id, known, messages=True)
            said = known.messages
            end = next((end for end in range(len(said), 0, -1) if converting.to_items(said[end - 1])), 0)
            if not end:
                return None
            last = said[end - 1]
            *rest, popped = converting.to_items(last)
            own = {key: last[key] for key in ("id", "timestamp") if key in last}
            left = [{**message, **own} for message in converting.to_messages(rest)]
            store.replace(self._id, [*said[: end - 1], *left], known, hold, kept_as="popped")
        return popped

    def _clear(self) -> None:
        if self._opened() is not None:
            self._manager.delete(self._id)
            self._session = None


def _id_for(session_id: str) -> str:
    digest = hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    return f"{ids.made_of(session_id)[:100]}-{digest}"


async def _finished(work: Callable[[], T]) -> T:
    """What ``work`` gives, done in a thread to its end; whoever is cancelled meanwhile hears of it then."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        task.exception()  # it has been seen
        raise cancelled
    return task.result()
