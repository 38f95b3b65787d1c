"""What leaves, without secrets and personal data: the one way of every export, of sessions and of comparisons.

A ``Redaction`` is made for one export of however many files. Through it goes everything: messages (texts, reasoning,
names, models, results, unknown keys, and what stands *inside* JSON and text addresses), metadata with title, tags and
system prompt, ids with "forked from" and links, family lists and file names. It counts what it replaced. What is secret
is told by ``sessions_lib.redaction``.

Ids that hold a secret (made of a first prompt, say) are replaced, in all files of one export alike, and stay apart.
Left alone: roles, times, and the bytes of pictures and sounds. What is given is never changed.

Does not promise to find everything: what has no shape (a name, a password in a sentence) is not found.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from sessions_lib import messages, names
from sessions_lib.compare import Branch
from sessions_lib.errors import InvalidMessage
from sessions_lib.export import facts
from sessions_lib.export.facts import Relative
from sessions_lib.messages.content import Message
from sessions_lib.redaction import ids, texts, values
from sessions_lib.redaction.texts import redact_text as redact_text
from sessions_lib.store import records

NOTHING_FOUND = "Nothing was found that looks like a secret. Read what you share."
NOT_REDACTED = "Not redacted: it holds everything as it was said, keys and addresses too."
_AS_IT_IS = frozenset({"role", "type", "timestamp", "finish_reason", "created"})
_MESSAGE_IDS = frozenset({"id", "tool_call_id", "message_id"})
_ENCRYPTED = frozenset({"encrypted_content", "thought_signature", "thoughtSignature"})  # nobody knows what it says
_PERSONAL = ("e-mail address", "home folder")
_PLAIN_ID = re.compile(r"(?:[a-z]{1,12}[_-])?(?:[0-9a-f]{6,64}|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})\Z")
_NO_ID = frozenset({"title", "tags", "system"})  # of the metadata


@dataclass(frozen=True, slots=True)
class Finding:
    """One text that is replaced: ``message`` is its index, ``None`` in the metadata; ``kind`` says what it is."""

    message: int | None
    kind: str
    text: str
    replacement: str


@dataclass(frozen=True, slots=True)
class Leaving:
    """A session as it leaves: its messages and metadata (with ``id``), its family, and the family's addresses by id."""

    said: Sequence[Message]
    meta: Mapping[str, Any]
    family: Sequence[Relative]
    links: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Member:
    id: str
    title: str
    parent: str | None
    place: str


class _Titled(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def title(self) -> str: ...


class Redaction:
    """The redaction of one export; ``findings`` are what it replaced so far, in reading order."""

    def __init__(self, patterns: Sequence[str] = (), *, is_on: bool = True) -> None:
        """``patterns`` are regular expressions to redact, too; one that is not on lets all pass as it is.

        ``SessionError`` names a pattern that is not usable.
        """
        texts.own_rules(tuple(patterns))
        self.findings: list[Finding] = []
        self.is_on, self._patterns = is_on, tuple(patterns)
        self._ids: dict[str, str] = {}
        self._message_ids: dict[str, str] = {}
        self._counted: set[str] = set()  # ids of messages that several branches have
        self._index: int | None = None

    def leaving(
        self,
        said: Sequence[Message],
        meta: Mapping[str, Any],
        family: Sequence[Relative] = (),
        links: Mapping[str, str] | None = None,
    ) -> Leaving:
        """A session as it leaves: copies, with everything found replaced; redacting twice changes nothing more."""
        links = links or {}
        if not self.is_on:
            return Leaving(said, meta, family, links)
        made_of = [str(meta.get("title") or ""), messages.first_prompt(said), *(member.title for member in family)]
        self._index = None
        new_meta = {str(key): self._meta_value(str(key), value, made_of) for key, value in meta.items()}
        if new_meta.get("title") != meta.get("title"):
            new_meta.pop(records.MARK_AT, None)  # a place in the title as it was
        new_said = [self._message(index, message) for index, message in enumerate(said)]
        self._index = None
        return Leaving(
            new_said,
            new_meta,
            [self._member(member, made_of) for member in family],
            {self.session_id(session, made_of, counts=False): address for session, address in links.items()},
        )

    def name(self, said: Sequence[Message], meta: Mapping[str, Any]) -> Leaving:
        """``leaving`` for a file's name: what it replaces stands in the file too, and is counted there."""
        before = len(self.findings)
        left = self.leaving(said, meta)
        del self.findings[before:]
        return left

    def branches(self, compared: Sequence[Branch]) -> list[Branch]:
        """Branches to compare as they leave; what several of them have is counted once."""
        return [self._branch(branch) for branch in compared]

    def _branch(self, branch: Branch) -> Branch:
        if not self.is_on:
            return branch
        before = len(self.findings)
        left = self.leaving(branch.messages, {**branch.meta, "id": branch.id})
        known = {number for number, message in enumerate(branch.messages) if message.get("id") in self._counted}
        self.findings[before:] = [one for one in self.findings[before:] if one.message not in known]
        self._counted.update(message["id"] for message in branch.messages if isinstance(message.get("id"), str))
        meta = {key: value for key, value in left.meta.items() if key in branch.meta}
        return replace(branch, id=str(left.meta["id"]), title=self.title(branch), messages=left.said, meta=meta)

    def title(self, session: _Titled) -> str:
        """The title of a session beside its messages: in a list, in a file's name. It is counted with its session."""
        if not self.is_on:
            return session.title
        if session.title == session.id:
            return self.session_id(session.id, counts=False)
        return str(values.redacted(session.title, self._patterns, lambda match, text: None))

    def session_id(self, session: str, made_of: Sequence[str] = (), *, counts: bool = True) -> str:
        """The id of a session, without a secret; the same for the same session, another for another."""
        if not self.is_on:
            return session
        if session not in self._ids:
            clean = ids.without_secrets(session, made_of, self._patterns)
            if clean != session:
                clean = clean if names.is_id(clean) else names.id_from_title(clean)
                clean = names.unique_id(clean, {one.lower() for one in self._ids.values()})
                if counts:
                    self.findings.append(Finding(None, "session id", session, clean))
            self._ids[session] = clean
        return self._ids[session]

    def text(self, text: str) -> str:
        """A text beside the messages (a sentence, a file's name), with everything found replaced."""
        return str(self._walk(text)) if self.is_on else text

    def cell(self, text: str, row: Sequence[str] = ()) -> str:
        """A text of a table: an id as an id (made of another text of its ``row``, perhaps), all else as a text."""
        return self.session_id(text, row) if names.is_id(text) else self.text(text)

    def sentence(self) -> str:
        """What was replaced, by kind, or that nothing was; or that nothing is: the same words everywhere."""
        if not self.is_on:
            return NOT_REDACTED
        kinds = Counter(finding.kind for finding in self.findings)
        listed = ", ".join(f"{kind} ({times:,}x)" for kind, times in kinds.most_common())
        return f"Redacted: {listed}." if kinds else NOTHING_FOUND

    # ------------------------------------------------------------ the parts of a session

    def _message(self, index: int, message: Message) -> Message:
        self._index = index
        try:
            redacted: Message = self._walk(message)
        except RecursionError as error:
            raise InvalidMessage(
                "A message is nested too deeply to be searched for secrets. Export it without redaction."
            ) from error
        return redacted

    def _meta_value(self, key: str, value: Any, made_of: Sequence[str]) -> Any:
        """A value of the metadata; what may be an id (parent, merged sessions, verdicts) is one, as elsewhere."""

        def kept(inner_key: str, text: str) -> str | None:
            if key not in _NO_ID and names.is_id(text):
                return self.session_id(text, made_of)
            return self._kept(inner_key, text)

        return values.redacted(value, self._patterns, self._found, key, kept)

    def _member(self, member: Relative, made_of: Sequence[str]) -> Relative:
        parent = None if member.parent is None else self.session_id(member.parent, made_of, counts=False)
        here = self.session_id(member.id, made_of, counts=False)
        return _Member(here, self.title(member), parent, facts.place(member))

    # ------------------------------------------------------------ values

    def _walk(self, value: Any, key: str = "") -> Any:
        return values.redacted(value, self._patterns, self._found, key, self._kept)

    def _found(self, match: texts.Match, text: str) -> None:
        self.findings.append(Finding(self._index, match.kind, text[match.start : match.stop], match.replacement))

    def _kept(self, key: str, value: str) -> str | None:
        """What becomes of a text that is no prose: roles and times stay, ids of messages and calls are ids."""
        if key in _ENCRYPTED and value:
            self.findings.append(Finding(self._index, "encrypted reasoning", value, "[encrypted reasoning]"))
            return "[encrypted reasoning]"
        if key in _AS_IT_IS:
            return value
        if key not in _MESSAGE_IDS:
            return None
        return value if _PLAIN_ID.match(value) else self._message_id(value)

    def _message_id(self, value: str) -> str:
        """The id of a message or a call, alike wherever it stands; a key in it is replaced, an address is its own."""
        if value in self._message_ids:
            return self._message_ids[value]
        found = [one for one in texts.matches(value, self._patterns) if one.kind not in _PERSONAL]
        if not found:
            return value
        for one in found:
            self._found(one, value)
        clean = names.unique_id(texts.replaced(value, found), {one.lower() for one in self._message_ids.values()})
        self._message_ids[value] = clean
        return clean


def find(said: Sequence[Message], patterns: Sequence[str] = (), meta: Mapping[str, Any] | None = None) -> list[Finding]:
    """What an export would replace, in reading order: the preview before something is shared."""
    redaction = Redaction(patterns)
    redaction.leaving(said, meta or {})
    return redaction.findings


def redact(said: Sequence[Message], patterns: Sequence[str] = ()) -> list[Message]:
    """Copies of ``said`` with everything found replaced."""
    return list(Redaction(patterns).leaving(said, {}).said)
