"""Imported conversations → sessions of a folder: what is new is added, and nothing is ever overwritten.

A conversation is known again by its key in ``imported_from``, its messages by what ``unique_ids.known_by`` says:

* Every message is there already: nothing is written, whatever else the session holds.
* The source has grown, and the session holds only what was imported: the new messages are appended. Of an answer that
  was imported before it was complete, the rest is appended as a message of its own (the same id and ``+2``).
* The source has grown, and the session was continued here: nothing is interleaved. A new session holds the source's
  line, forked from the other where they part; from then on it is the one that grows.
* A branch is a session that names its parent in ``forked_from``, whichever of the two was imported first.
* What was deleted stays deleted, even if its source grows. Asked for it again, it comes back from the trash, with all
  that was changed here; one that was purged is as if it had never been imported.

A file whose size and time are those of its last import is not read again, unless a session it gave is gone or was cut
short by a crash.

Does not read sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sessions_lib import messages, names, text
from sessions_lib.importers.adding.growth import in_pieces, may_go, what_is_new, whole_id
from sessions_lib.importers.adding.store import Known, Store
from sessions_lib.importers.imported import Imported, common
from sessions_lib.importers.source import Source
from sessions_lib.importers.unique_ids import known_by
from sessions_lib.messages import places
from sessions_lib.messages.content import Message


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one conversation: ``change`` is ``new``, ``grown``, ``parted``, ``unchanged``, ``restored`` (from
    the trash) or ``deleted`` (here, before; it was left out).

    ``session`` is its id (``None`` for what a dry run would make), ``added`` how many messages were written.
    """

    session: str | None
    title: str
    change: str
    added: int
    messages: int


def put(store: Store, found: Sequence[Imported], source: Source, format: str, *, again: bool = False) -> list[Outcome]:
    """Write what is new in ``found`` and say what became of each; ``again`` restores what was deleted of it."""
    groups: dict[str, list[Imported]] = {}
    for imported in found:
        groups.setdefault(imported.conversation or imported.key, []).append(imported)
    outcomes: list[Outcome] = []
    for conversation, branches in groups.items():
        restored = store.bring_back(branches) if again else set()
        known = store.conversation(conversation)
        if branches[0].formerly:
            known.update({**store.conversation(branches[0].formerly), **known})
        if not known and len(groups) == 1:
            known.update(_shorter(store, branches[0], source))
        outcomes += _Merge(store, known, branches, source, format, len(found), restored).run()
    return outcomes


def _shorter(store: Store, branch: Imported, source: Source) -> dict[str, Known]:
    """What the file gave while it was so short that it looked like another conversation: its start, word for word."""
    found = {}
    line = known_by(branch.messages, keeps_as_is=branch.keeps_as_is)
    said = [messages.content_key(message) for message in branch.messages]
    for session in store.given_by(source):
        one = store.read(Known(session), keeps_as_is=branch.keeps_as_is)
        count = len(one.messages)
        if count and [messages.content_key(message) for message in one.messages] == said[:count]:
            one.ids = line[:count]
            found[session] = one
    return found


class _Merge:
    """One conversation of a source against the sessions that came from it before."""

    def __init__(
        self,
        store: Store,
        known: dict[str, Known],
        branches: list[Imported],
        source: Source,
        format: str,
        of: int,
        restored: set[str],
    ) -> None:
        self._store, self._source, self._format, self._of = store, source, format, of
        self._restored = restored
        self._branches = branches
        self._known = known
        self._as_is = branches[0].keeps_as_is
        self._lines = [known_by(branch.messages, keeps_as_is=self._as_is) for branch in branches]
        # Thousands of chats start with one system prompt: only those are read that may be this one.
        before = [one for one in known.values() if not self._as_is or any(map(one.may_hold, self._lines))]
        self._before = [store.read(one, keeps_as_is=self._as_is) for one in before]
        self._of_source = {one for line in self._lines for one in line} if known else set()
        self._used: set[str] = set()
        self._holding: dict[str, list[Known]] = {}
        for one in self._before:
            for message_id in one.ids:
                self._holding.setdefault(message_id, []).append(one)

    def run(self) -> list[Outcome]:
        """Place every line, the main one first."""
        outcomes = [self._place(branch, line) for branch, line in zip(self._branches, self._lines, strict=True)]
        for one in self._known.values():
            one.forget(keeps_ids=self._as_is)  # an import of a whole folder holds one file's messages at a time
        return outcomes

    def _place(self, branch: Imported, line: list[str]) -> Outcome:
        title = branch.title or names.title_from(messages.first_prompt(branch.messages)) or branch.key
        covering = self._covering(branch, line)
        for known in covering:
            if not what_is_new(known.messages, known.ids, branch.messages, line):
                self._used.add(known.id)
                self._store.remember(known.id, self._source, of=self._of)
                change = "restored" if known.id in self._restored else "unchanged"
                return Outcome(known.id, title, change, 0, len(line))
        # A rest of an answer cannot be put where it belongs behind what was said here since.
        grown = next((one for one in covering if self._is_pure(one)), None) or self._grown_from(branch, line)
        if grown is None:
            if self._store.deleted.has(branch, line):
                return Outcome(None, title, "deleted", 0, len(line))
            return self._add(branch, line, title)
        self._used.add(grown.id)
        added = what_is_new(grown.messages, grown.ids, branch.messages, line)
        self._store.extend(grown, added, self._source, keeps_as_is=branch.keeps_as_is, of=self._of)
        grown.messages += added
        grown.ids = known_by(grown.messages, keeps_as_is=self._as_is)
        return Outcome(grown.id, title, "grown", len(added), len(line))

    def _covering(self, branch: Imported, line: list[str]) -> list[Known]:
        """The sessions that hold every message of ``line``; where ids are only hashes, each covers one line."""
        wanted = _lasting(branch.messages, line) or line
        found = [one for one in self._holding.get(wanted[-1], []) if set(wanted) <= set(one.ids)]
        if branch.keeps_as_is:
            found = [one for one in found if one.id not in self._used]
        return sorted(found, key=lambda one: (one.id in self._used, len(one.ids)))

    def _is_pure(self, known: Known) -> bool:
        return all(whole_id(one) in self._of_source for one in _lasting(known.messages, known.ids))

    def _grown_from(self, branch: Imported, line: list[str]) -> Known | None:
        """The longest session that holds a start of ``line`` (perhaps none of it: a crash) and nothing else."""
        found: list[tuple[int, Known]] = []
        lasting = _lasting(branch.messages, line)
        for one in self._before:
            start = [i for i in _lasting(one.messages, one.ids) if whole_id(i) == i or i in self._of_source]
            if one.id not in self._used and start == lasting[: len(start)] and self._is_pure(one):
                found.append((len(start), one))
        return max(found, key=lambda pair: pair[0])[1] if found else None

    def _parent(self, branch: Imported, line: list[str]) -> tuple[str, int] | None:
        """The session ``branch`` parts from, and after how many messages."""
        found = self._store.nearest(self._store.parents_of(branch), line, keeps_as_is=self._as_is)
        if found is None and branch.parent_key is None and not branch.keeps_as_is:
            # A copy that names no parent: the sessions that start with the same message.
            others = [
                one
                for one in self._store.starting_with(line[0])
                if one not in self._known and not self._store.comes_from(one, branch.conversation)
            ]
            found = self._store.nearest(others, line, keeps_as_is=self._as_is)
        return found if found is None or found[1] or "subagent_of" not in branch.meta else None

    def _related(self, branch: Imported, line: list[str]) -> list[list[Message]]:
        """What is stored of the same answers: in this conversation, in its parents, and in copies either way."""
        others = dict.fromkeys([*self._store.parents_of(branch), *self._store.starting_with(line[0])])
        read = [self._store.read(Known(one), keeps_as_is=False) for one in others if one not in self._known]
        return [one.messages for one in (*self._known.values(), *read)]

    def _add(self, branch: Imported, line: list[str], title: str) -> Outcome:
        if not branch.keeps_as_is and (related := self._related(branch, line)):
            branch = replace(branch, messages=in_pieces(branch.messages, related))
            line = known_by(branch.messages, keeps_as_is=False)
        parent = self._parent(branch, line)
        continued = max(self._before, key=lambda one: common(one.ids, line), default=None)
        change = "new"
        if continued is not None and not branch.keeps_as_is and (shared := common(continued.ids, line)):
            change = "new" if branch.parent_key else "parted"
            if parent is None or shared >= parent[1]:
                parent = (continued.id, shared)
        own_title = branch.title
        if (parent is not None and branch.parent_key is None) or branch.shared:
            own_title = text.fork_title(title, places.place(branch.messages, parent[1] if parent else branch.shared))
        made = self._store.create(branch, self._source, self._format, parent, own_title, of=self._of)
        if made is not None:
            self._known[made] = Known(made, line, branch.messages, True)
        return Outcome(made, own_title or title, change, len(line), len(line))


def _lasting(said: Sequence[Message], line: Sequence[str]) -> list[str]:
    """What the messages are known by that stay what they are, however much their source grows."""
    return [one for message, one in zip(said, line, strict=True) if not may_go(message)]
